"""MEDS shards, counted against plain Python."""

from __future__ import annotations

import datetime
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cogstage as cs
from cogstage.errors import UsageError


def dataset(folder: Path) -> Counter[tuple[str, str]]:
    """Two shards, codes with descriptions and subject splits; the number of subjects with both codes."""
    draw = np.random.default_rng(3)
    codes = ["ICD10CM//E11.9", "RxNorm//860975", "LOINC//4548-4", "MEDS_BIRTH"]
    both: Counter[tuple[str, str]] = Counter()
    for shard in range(2):
        rows = []
        for subject in range(shard * 50, shard * 50 + 50):
            chosen = sorted(draw.choice(codes, draw.integers(1, 4), replace=False).tolist())
            both.update(combinations(chosen, 2))
            rows += [(subject, datetime.datetime(2020, 1, 1 + n), code, float(n)) for n, code in enumerate(chosen)]
        values = map(list, zip(*rows, strict=True))
        columns = dict(zip(("subject_id", "time", "code", "numeric_value"), values, strict=True))
        path = folder / "data" / "train" / f"{shard}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path)
    (folder / "metadata").mkdir()
    described = {"code": codes[:2], "description": ["Type 2 diabetes", "metformin"], "parent_codes": [[], []]}
    pq.write_table(pa.table(described), folder / "metadata" / "codes.parquet")
    splits = {"subject_id": [0, 1], "split": ["train", "train"]}
    pq.write_table(pa.table(splits), folder / "metadata" / "subject_splits.parquet")
    return both


def test_subjects_are_counted_once(tmp_path: Path) -> None:
    expected = dataset(tmp_path / "meds")
    options = cs.BuildOptions(unit="patient-window", window=None, per="patient")
    graph = cs.build_graph(tmp_path / "meds", tmp_path / "graph", options=options)
    assert graph.made_with["format"] == "meds"
    edges = graph.to_frame("pyarrow").to_pylist()
    assert {(edge["source"], edge["target"]): edge["count"] for edge in edges} == dict(expected)
    words = graph.vocabulary
    assert words.name[words.index["ICD10CM//E11.9"]] == "Type 2 diabetes"
    assert words.find("metformin") == words.index["RxNorm//860975"]


def test_a_folder_without_events_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    with pytest.raises(UsageError, match="no events; MEDS shards have the columns"):
        cs.build_graph(tmp_path / "x.parquet", tmp_path / "g", options=cs.BuildOptions(format="meds"))
