"""Corrections in a comparison: CogStage's rows are scored with them, the others are not; old cells are not taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from small_model import small_data

import cogstage as cs
from cogstage.errors import CogstageError
from cogstage.estimator import CogStage
from cogstage.evaluation import compare as comparing
from cogstage.evaluation import comparison_process
from cogstage.rationale.corrections import Correction, Corrections


def test_corrections_change_the_pairs_that_share_a_term_and_no_others(
    model: CogStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every reason keeps one end of the question, so a verdict can reach only pairs that share a term with it."""
    graph, data = small_data()
    tasks_run: list[str] = []

    def fit(self: CogStage, *_: object, **__: object) -> CogStage:
        self._use(model.fitted)  # trained before; what is compared here is how it is scored
        return self

    def run_here(files: Any, tasks: Any, jobs: int, heads: int, splits: Any, progress: Any) -> dict[Any, str]:
        for task in tasks:
            tasks_run.append(task.method)
            comparison_process.run(files.folder, task.dataset, task.method, task.scope, task.seed, heads, splits)
        return {}

    monkeypatch.setattr(CogStage, "fit", fit)
    monkeypatch.setattr(comparing, "_run", run_here)
    names, dev = graph.vocabulary.term, data.pairs("causes", "dev")
    struck = [record.reasons[0] for record in model.predict_batch(dev.head[:2], dev.tail[:2], "causes")]
    given = [Correction(*reason.triple, "wrong") for reason in struck]
    asked: dict[str, Any] = {"methods": ["ppmi", "cogstage"], "seeds": 1, "out": tmp_path / "table"}
    asked |= {"relations": ["causes"], "plots": False, "ranking_heads": 0}

    def compared(corrections: Corrections | None) -> tuple[list[str], dict[str, np.ndarray]]:
        tasks_run.clear()
        cs.compare(graph, data, **asked, corrections=corrections)
        tables = {path.name: pq.read_table(path) for path in (tmp_path / "table/dev").rglob("predictions/**/*.parquet")}
        found = {"ppmi" if "ppmi" in name else "cogstage": table["probability"] for name, table in tables.items()}
        assert len(found) == 2
        return list(tasks_run), {name: column.to_numpy() for name, column in found.items()}

    done, before = compared(None)
    assert done == ["ppmi", "cogstage"]
    done, after = compared(Corrections(tuple(given)))
    assert done == ["cogstage"]  # a baseline has no reasons to correct
    assert np.array_equal(before["ppmi"], after["ppmi"])
    ends = {graph.vocabulary.find(term.key) for reason in struck for term in (reason.head, reason.tail)}
    touched = np.array([h in ends or t in ends for h, t in zip(dev.head.tolist(), dev.tail.tolist(), strict=True)])
    assert np.array_equal(before["cogstage"][~touched], after["cogstage"][~touched])
    assert (before["cogstage"][touched] != after["cogstage"][touched]).any()
    assert compared(Corrections(tuple(given)))[0] == []
    done, again = compared(None)
    assert done == ["cogstage"]
    assert np.array_equal(before["cogstage"], again["cogstage"])
    with pytest.raises(CogstageError, match="unknown term: nobody"):
        compared(Corrections((Correction("nobody", "causes", names[0], "wrong"),)))
