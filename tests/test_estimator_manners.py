"""CogStage behaves as scikit-learn users expect: parameters, clones, score, pickling, repr."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from small_model import small_data

import cogstage as cs
from cogstage.estimator import CogStage


@given(
    st.sampled_from(["all", "may_treat", ["may_treat", "causes"]]),
    st.sampled_from(["open", "closed"]),
    st.integers(1, 64),
)
def test_a_clone_has_the_same_parameters(relation: str | list[str], world: str, dimension: int) -> None:
    model = CogStage(relation, world=world, dimension=dimension, seed=3)
    assert clone(model).get_params() == model.get_params() == CogStage(**model.get_params()).get_params()
    assert model.get_params()["dimension"] == dimension
    assert eval(repr(model), {"CogStage": CogStage}).get_params() == model.get_params()


def test_parameters_are_set_and_checked() -> None:
    model = CogStage("may_treat").set_params(dimension=8, seed=5)
    assert (model.config.to_dict()["dimension"], model.seed) == (8, 5)
    with pytest.raises(cs.UsageError, match="unknown option depth"):
        model.set_params(depth=3)
    with pytest.raises(cs.UsageError, match="must be at least 1"):
        model.set_params(dimension=0)
    paper = model.set_params(preset="paper")
    assert paper.get_params() == CogStage("may_treat", preset="paper", seed=5).get_params()


def test_a_clone_of_a_fitted_model_is_not_fitted(model: CogStage) -> None:
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    with pytest.raises(cs.UsageError, match="not fitted yet"):
        fresh.predict(4, 7)


def test_only_a_model_without_weights_is_pickled(model: CogStage) -> None:
    assert pickle.loads(pickle.dumps(clone(model))).get_params() == model.get_params()
    with pytest.raises(cs.UsageError, match="use save\\(\\) and load\\(\\)"):
        pickle.dumps(model)
    assert copy.copy(model).predict(4, 7) == model.predict(4, 7)


def test_score_is_the_mean_auroc(model: CogStage) -> None:
    _, data = small_data()
    values = []
    for relation in model.relations:
        pairs = data.pairs(relation, "dev")
        values.append(roc_auc_score(pairs.label, model.probabilities(pairs.head, pairs.tail, relation)))
    assert model.score(data) == pytest.approx(np.mean(values))


def test_notebooks_show_models_graphs_and_data_sets(model: CogStage) -> None:
    graph, data = small_data()
    assert "not fitted" in CogStage("may_treat")._repr_html_()
    assert f"{graph.n_nodes:,}" in model._repr_html_()
    assert "may_treat, causes" in model._repr_html_()
    pairs = data.pairs("causes", "test")
    assert f"{pairs.label.sum():,} of {len(pairs):,}" in data._repr_html_()


def test_prediction_never_loads_torch(small_model_folder: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; import cogstage as cs; model = cs.CogStage.load(sys.argv[1]);"
        "record = model.predict('Drug number 4', 'Disorder number 7'); model.discover('Drug number 4', 'may_treat');"
        "record.without(record.reasons[0].triple); print(model.predict_batch([4], [7]).to_frame('pyarrow').num_rows)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(small_model_folder)], capture_output=True, text=True)
    assert done.stdout.strip() == "1", done.stderr
