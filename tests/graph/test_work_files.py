"""Work files of an interrupted build: synced, hashed, and checked before they are used again."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cogstage.artefact import new_file
from cogstage.errors import CogstageError
from cogstage.graph import build
from cogstage.graph.build import build_graph
from cogstage.graph.edges import Edges
from cogstage.graph.options import BuildOptions


@pytest.mark.parametrize("name", ["edges-", "run-", "seed.json", "copies.npy"])
@pytest.mark.parametrize("damage", ["emptied", "flipped"])
def test_damaged_work_is_done_again_or_refused(tmp_path: Path, name: str, damage: str) -> None:
    """A power cut or a full disk may leave work files empty; none of them may cost a count in silence."""
    rng = random.Random(0)
    with (tmp_path / "notes.jsonl").open("w", encoding="utf-8") as handle:
        for number in range(3000):
            codes = [f"c{rng.randrange(60)}" for _ in range(12)]
            note = {"doc_id": str(number), "patient_id": f"p{number % 700}", "codes": codes}
            handle.write(json.dumps(note) + "\n")
    options = BuildOptions(unit="patient-window", window=None, copies="drop")
    how: dict[str, Any] = {"memory": 600_000, "workers": 1}
    build_graph(tmp_path / "notes.jsonl", tmp_path / "whole", options=options, **how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "write_edges", stop)
        with pytest.raises(KeyboardInterrupt):
            build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", options=options, **how)
    files = sorted(path for path in (tmp_path / ".graph.work").glob(f"{name}*") if path.suffix != ".hash")
    assert files
    for path in files:
        content = path.read_bytes()
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes(b"" if damage == "emptied" else flipped)
    if name == "seed.json":
        with pytest.raises(CogstageError, match=r"is damaged \(seed\.json\); build without `resume`"):
            build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", options=options, resume=True, **how)
        return
    build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", options=options, resume=True, **how)
    for file in ("edges.parquet", "terms.parquet"):
        assert (tmp_path / "graph" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def stop(folder: Path, edges: Iterator[Edges], order: bool = False) -> int:
    """Counts everything and then stops, as a kill would."""
    list(edges)
    raise KeyboardInterrupt


def test_a_new_file_and_its_folder_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    plain = os.fsync

    def sync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    with new_file(tmp_path / "a") as temporary:
        temporary.write_text("a", encoding="utf-8")
    assert synced == [str(temporary), str(tmp_path)]
