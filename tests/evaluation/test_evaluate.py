"""The figures of one model: right ones, with intervals, for what was asked; wrong calls explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.planted import planted_communities
from typer.testing import CliRunner

from cogstage.cli.main import app
from cogstage.errors import UsageError
from cogstage.evaluation.evaluate import evaluate, figures_table
from cogstage.evaluation.metrics import score
from cogstage.knowledge.dataset import Dataset
from cogstage.triples import TripleIndex


class Oracle:
    """Knows the communities of the planted graph, but is not sure of itself."""

    relations = ("may_treat", "causes")

    def __init__(self, data: Dataset, size: int = 100) -> None:
        self.graph = planted_communities(100)[0]
        self.vocabulary = self.graph.vocabulary
        self.all_relations = data.relations
        self.facts = TripleIndex(data.facts("train"), len(data.relations), data.n_nodes)
        self._size = size

    def check_relation(self, relation: str) -> None:
        if relation not in self.relations:
            raise UsageError(f"the model has no relation {relation}")

    def probabilities(self, head: Any, tail: Any, relation: str) -> np.ndarray:
        same = (np.asarray(head) < self._size) == (np.asarray(tail) < self._size)
        sure = 0.8
        return np.where(same, sure, 1 - sure)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return planted_communities(600, relations=("may_treat", "causes", "symptom_of"))[1]


def test_figures(data: Dataset) -> None:
    result = evaluate(Oracle(data), data, ranking_heads=10)  # type: ignore[arg-type]
    assert list(result["relations"]) == ["may_treat", "causes"]
    found = result["relations"]["may_treat"]
    pairs = data.pairs("may_treat", "test")
    assert found["pairs"] == len(pairs)
    expected = score(pairs.label, np.where(pairs.label == 1, 0.8, 0.2))
    for name, value in expected.items():
        assert found["metrics"][name]["value"] == pytest.approx(value), name
        low, high = found["metrics"][name]["interval"]
        assert low - 1e-9 <= value <= high + 1e-9
    assert found["metrics"]["ece"]["value"] == pytest.approx(0.2)
    assert found["metrics"]["f1_balanced"]["value"] == pytest.approx(expected["f1"])  # said yes as often as true
    assert result["contraindicated"] is None  # the data have no such relation
    assert 0 < found["metrics"]["mrr"]["value"] < 0.2  # all tails of a community are tied
    assert json.loads(json.dumps(result)) == result
    shown = figures_table(result)
    assert [row[0] for row in shown.rows] == ["may_treat", "causes"]
    cell = shown.rows[0][shown.columns.index("F1")]
    assert cell.startswith(f"{expected['f1']:.3f} [")
    assert len(shown.text().splitlines()) == 5  # caption, header, rule, two relations


def test_dev_and_one_relation(data: Dataset) -> None:
    result = evaluate(Oracle(data), data, "dev", ["causes"], ranking_heads=0)  # type: ignore[arg-type]
    assert list(result["relations"]) == ["causes"]
    assert "mrr" not in result["relations"]["causes"]["metrics"]
    assert result["relations"]["causes"]["pairs"] == len(data.pairs("causes", "dev"))


def test_wrong_calls(data: Dataset) -> None:
    model: Any = Oracle(data)
    with pytest.raises(UsageError, match="`split` must be one of train, dev, test, not validation"):
        evaluate(model, data, "validation")
    with pytest.raises(UsageError, match="no relation symptom_of"):
        evaluate(model, data, relations=["symptom_of"])
    with pytest.raises(UsageError, match="no relation causes"):
        evaluate(model, planted_communities(100)[1], relations=["causes"])
    model.vocabulary = type(model.vocabulary).from_terms(["a", "b"])
    with pytest.raises(UsageError, match="built on another graph"):
        evaluate(model, data)


def test_commands_explain_wrong_folders(tmp_path: Path) -> None:
    runner = CliRunner()
    for arguments in (
        ["evaluate", str(tmp_path / "m"), "--dataset", str(tmp_path / "d")],
        ["compare", "--graph", str(tmp_path / "g"), "--dataset", str(tmp_path / "d"), "--out", str(tmp_path / "t")],
    ):
        result = runner.invoke(app, arguments)
        assert isinstance(result.exception, UsageError)
        assert "is not a folder" in str(result.exception)
    for command in ("evaluate", "compare"):
        assert "Example: cogstage" in runner.invoke(app, [command, "--help"]).output
