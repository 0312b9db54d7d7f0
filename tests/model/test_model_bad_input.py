"""Bad input gets one line or a defined behaviour: wrong pairs of folders, relations, isolated terms, damaged models."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from benchmarks.planted import Plan, planted
from safetensors.numpy import load_file, save_file
from save_planted import save_both
from training_settings import PAPER, QUICK

from cogstage.choices import Preset
from cogstage.cli.main import run
from cogstage.errors import CogstageError, UsageError
from cogstage.estimator import CogStage
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.dataset import Dataset
from cogstage.locks import lock_folder
from cogstage.model.config import Config
from cogstage.model.paper import PaperConfig
from cogstage.model.presets import preset_config


@pytest.fixture(scope="module")
def fitted(small: tuple[Graph, Dataset]) -> CogStage:
    return CogStage("may_treat", **QUICK).fit(*small)


def test_graph_and_dataset_of_different_terms(small: tuple[Graph, Dataset]) -> None:
    other = Graph(
        Vocabulary.from_terms([f"x{i}" for i in range(300)]), small[0].source, small[0].target, small[0].count
    )
    with pytest.raises(UsageError, match="do not belong together"):
        CogStage("may_treat").fit(other, small[1])


def test_relation_that_is_not_there(small: tuple[Graph, Dataset], fitted: CogStage) -> None:
    with pytest.raises(UsageError, match="no relation cures; it has may_treat, may_prevent"):
        CogStage("cures").fit(*small)
    with pytest.raises(UsageError, match="does not know the relation may_prevent"):
        fitted.probabilities([0], [1], "may_prevent")


def test_fewer_candidates_than_associations() -> None:
    plan = Plan(terms=40, edges=300, topics=2, facts=30)
    model = CogStage("may_treat", **{**QUICK, "associations": 5000}).fit(*planted(plan))
    candidates = np.unique(np.concatenate([model.fitted.facts.head, model.fitted.facts.tail]))
    view = model.predictor.view(np.array([0]), np.array([1]))  # type: ignore[attr-defined]
    assert view.association.shape == (1, 2, len(candidates) - 1)
    for end, own in ((0, 1), (1, 0)):  # every candidate but the term itself
        assert set(view.association[0, end].tolist()) <= set(candidates.tolist()) - {own}


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_isolated_terms_are_predicted(preset: str) -> None:
    graph, dataset = planted(Plan(isolated=5))
    options = QUICK if preset == "default" else {**PAPER, "epochs": 1}
    model = CogStage("may_treat", preset=preset, **options).fit(graph, dataset)
    assert all(np.isfinite(values).all() for values in model.fitted._arrays().values())
    last = graph.n_nodes - 1
    p = model.probabilities([last, last, 0], [0, last - 1, last], "may_treat")
    assert ((p > 0) & (p < 1)).all()
    assert np.isfinite(model.predict(last, 0).logit)


def test_graph_without_any_edge() -> None:
    _, dataset = planted(Plan())
    names = planted(Plan())[0].vocabulary
    empty = np.empty(0, np.int32)
    model = CogStage("may_treat", **QUICK).fit(Graph(names, empty, empty, empty.astype(np.int64)), dataset)
    assert np.isfinite(model.probabilities([0], [1], "may_treat")).all()


def test_no_assumption_at_all(fitted: CogStage) -> None:
    """Where nothing is recognised the decision is the baseline and what the counts of the pair itself say."""
    pairs = fitted.predict_batch([0, 1], [2, 3], "may_treat")
    found = fitted.predictor.removable(np.array([0, 1]), np.array([2, 3]), 0)
    nothing = found.decide(np.zeros(found.score.shape, bool))
    calibrated = fitted.calibration["may_treat"].logits(nothing)
    assert calibrated == pytest.approx([p.baseline + p.pair_share for p in pairs], abs=1e-6)


def test_node_out_of_range(fitted: CogStage) -> None:
    with pytest.raises(UsageError, match="out of range"):
        fitted.probabilities([300], [0], "may_treat")
    with pytest.raises(UsageError, match="same length"):
        fitted.probabilities([0, 1], [0], "may_treat")
    with pytest.raises(UsageError, match="same term"):
        fitted.predict(3, 3)
    assert len(fitted.probabilities([], [], "may_treat")) == 0


def test_unfitted_model() -> None:
    with pytest.raises(UsageError, match="not fitted yet"):
        CogStage("may_treat").predict_batch([0], [1], "may_treat")


def test_saved_model_gives_the_same(fitted: CogStage, small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    loaded = CogStage.load(tmp_path / "model")
    test = small[1].pairs("may_treat", "test")
    one, other = (m.probabilities(test.head, test.tail, "may_treat") for m in (fitted, loaded))
    assert np.array_equal(one, other)
    assert fitted.predict(int(test.head[0]), int(test.tail[0])) == loaded.predict(int(test.head[0]), int(test.tail[0]))
    single = np.array(
        [loaded.probabilities([h], [t], "may_treat")[0] for h, t in zip(test.head, test.tail, strict=True)]
    )
    assert np.allclose(single, fitted.probabilities(test.head, test.tail, "may_treat"), atol=1e-5)


@pytest.mark.parametrize(
    "damage",
    [
        "truncated weights",
        "missing vocabulary",
        "foreign weights",
        "weights of another width",
        "weights without one array",
        "other vocabulary",
        "bad json",
        "truncated evidence",
    ],
)
def test_damaged_model_folder(fitted: CogStage, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "model"
    fitted.save(path)
    weights = path / "model.safetensors"
    if damage == "truncated weights":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif damage == "truncated evidence":
        (path / "evidence.safetensors").write_bytes((path / "evidence.safetensors").read_bytes()[:50])
    elif damage == "missing vocabulary":
        (path / "vocabulary.parquet").unlink()
    elif damage == "foreign weights":
        shutil.copy(path / "evidence.safetensors", weights)
    elif damage.startswith("weights"):
        arrays = load_file(weights)
        if damage == "weights of another width":
            arrays["recognition.b_head"] = arrays["recognition.b_head"][:-1].copy()
        else:
            del arrays["decision.bias"]
        save_file(arrays, weights)
    elif damage == "other vocabulary":
        Vocabulary.from_terms([f"t{i}" for i in range(300)]).write(path, "vocabulary.parquet")
    else:
        (path / "config.json").write_text("{")
    with pytest.raises(CogstageError) as caught:
        CogStage.load(path)
    assert "again" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_folder_of_something_else(small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    small[0].save(tmp_path / "graph")
    with pytest.raises(UsageError, match="is a graph, not a model"):
        CogStage.load(tmp_path / "graph")
    with pytest.raises(UsageError, match="not a folder"):
        CogStage.load(tmp_path / "nowhere")


@pytest.mark.slow
def test_train_command(small: tuple[Graph, Dataset], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, data = save_both(*small, tmp_path)
    out = tmp_path / "model"
    command = ["train", "--graph", str(graph), "--dataset", str(data), "--relation", "may_treat", "--out", str(out)]
    settings = [text for name, value in QUICK.items() for text in ("--set", f"{name}={value}")]
    assert exit_code([*command, *settings]) == 0
    printed = capsys.readouterr()
    assert "may_treat" in printed.out
    assert "dev F1" in printed.out
    assert not (out / "checkpoint").exists()
    assert CogStage.load(out).relations == ("may_treat",)
    bands = CogStage.load(out).metrics["hit_rate"]["may_treat"]["head"]  # what the explorer's lists show
    assert bands[0]["from"] == bands[0]["to"] == 1
    assert all(0 <= band["rate"] <= 1 for band in bands)
    assert exit_code([*command, *settings, "--json"]) == 0  # a model folder may be replaced
    assert json.loads(capsys.readouterr().out)["dev"]["may_treat"]["pairs"] == 78
    for wrong, message in (
        (["--set", "fold=1"], "unknown option fold"),
        (["--set", "folds"], "write option=value"),
        (["--set", "margin=much"], "expected a value of type float"),
        (["--set", "folds=1"], "must be 0 or at least 2"),
        (["--set", "recognition_dropout=1"], "must be in [0, 1)"),
        (["--preset", "best"], "'best' is not one of 'default', 'paper'"),
        (["--relation", "cures"], "no relation cures"),
        (["--world", "flat"], "'flat' is not one of 'open', 'closed'"),
        (["--time-limit", "0"], "greater than 0"),
        (["--out", str(graph)], "not a model folder"),
        (["--dataset", str(graph)], "is a graph, not a dataset"),
    ):
        there = sorted(tmp_path.iterdir())
        assert exit_code([*command, *settings, *wrong]) == 2
        assert message in capsys.readouterr().err
        assert sorted(tmp_path.iterdir()) == there  # a training that cannot begin leaves nothing behind


def test_two_trainings_into_one_folder(
    small: tuple[Graph, Dataset], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second stops at once with a line that names the first."""
    graph, data = save_both(*small, tmp_path)
    out, held, go_on = tmp_path / "model", threading.Event(), threading.Event()

    def first() -> None:
        with lock_folder(out):
            held.set()
            go_on.wait(60)

    thread = threading.Thread(target=first)
    thread.start()
    assert held.wait(60)
    try:
        command = ["train", "--graph", str(graph), "--dataset", str(data), "--relation", "may_treat", "--out", str(out)]
        assert exit_code(command) == 2
        assert "is being written by" in capsys.readouterr().err
    finally:
        go_on.set()
        thread.join()
    assert not out.exists()


def exit_code(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as caught:
        run(arguments)
    return int(caught.value.code or 0)


@pytest.mark.slow
def test_unfinished_training_says_how_to_go_on(
    small: tuple[Graph, Dataset], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "model"
    CogStage("may_treat", **QUICK).fit(*small, checkpoint=out / "checkpoint", checkpoint_every=0.0)
    with pytest.raises(UsageError, match="unfinished training run; continue it"):
        CogStage.load(out)
    graph, data = save_both(*small, tmp_path)
    command = ["train", "--graph", str(graph), "--dataset", str(data), "--relation", "may_treat", "--out", str(out)]
    settings = [text for name, value in QUICK.items() for text in ("--set", f"{name}={value}")]
    assert exit_code([*command, *settings, "--resume"]) == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["data", "graph", "model"]
    assert CogStage.load(out).metrics["epochs"] == 1


def test_every_option_is_described() -> None:
    for config, most in ((Config, 25), (PaperConfig, 16)):
        lines = config.describe()
        assert len(lines) == len(config().to_dict()) <= most
        assert all(len(line.split("  ", 1)[1]) > 10 for line in lines)
    assert "folds=4  number of folds for cross-fitting stage 3; 0 turns it off" in Config.describe()


@pytest.mark.parametrize("name", get_args(Preset))
def test_presets_survive_a_round_trip(name: str) -> None:
    config = preset_config(name)
    assert type(config).from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_a_model_of_an_older_version_is_refused(
    fitted: CogStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 1 had another decision stage."""
    with monkeypatch.context() as patch:
        patch.setattr("cogstage.model_folder.MODEL_VERSION", 1)
        fitted.save(tmp_path / "model")
    with pytest.raises(CogstageError, match="older version"):
        CogStage.load(tmp_path / "model")
