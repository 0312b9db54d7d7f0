"""Training says what is odd about its input and its outcome, and goes on."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.planted import Plan, planted
from training_settings import QUICK

from cogstage.estimator import CogStage
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset
from cogstage.progress import Silent
from cogstage.training import fitting


class Listening(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def said(graph: Graph, dataset: Dataset, **options: Any) -> list[str]:
    listening = Listening()
    quick = {**QUICK, "recognition_passes": 1, "folds": 0, **options}
    CogStage("may_treat", **quick).fit(graph, dataset, progress=listening)
    return listening.lines


def test_terms_without_edges_and_too_few_candidates() -> None:
    lines = said(*planted(Plan(terms=60, edges=600, facts=60, relations=1, isolated=3)), associations=70)
    assert any(line.startswith("3 of 60 terms have no positive PPMI") for line in lines)
    assert any("candidates for 70 associations" in line for line in lines)


@pytest.mark.parametrize(("auroc", "warned"), [(0.5, True), (0.8, False)])
def test_a_relation_that_was_not_learned_is_named(
    small: tuple[Graph, Dataset], monkeypatch: pytest.MonkeyPatch, auroc: float, warned: bool
) -> None:
    whole = fitting.dev_measures
    monkeypatch.setattr(fitting, "dev_measures", lambda *given: {**whole(*given), "auroc": auroc})
    line = "may_treat was not learned: dev AUROC 0.50 is chance; check the data, or train for longer"
    assert any(found.startswith(line) for found in said(*small)) == warned
