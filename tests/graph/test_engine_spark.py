"""Spark gives the graph that one machine gives, byte for byte."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogstage.errors import CogstageError
from cogstage.graph.build import build_graph
from cogstage.graph.options import BuildOptions
from cogstage.tables import BadRows

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, which is not installed"),
]


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    from cogstage.graph.engines.spark import open_session

    opened, _ = open_session("local[2]")  # one for all builds of a test: starting it takes longest
    yield
    opened.stop()


WORDS = ["aspirin", "fever", "cough", "gout", "rash", "nausea", "asthma"]


@pytest.fixture
def notes(tmp_path: Path) -> list[Path]:
    rows = "".join(f"{word}\tC{place}\n" for place, word in enumerate(WORDS))
    (tmp_path / "lexicon.tsv").write_text("term\tconcept\n" + rows, encoding="utf-8")
    files = []
    for part in range(2):
        path = tmp_path / f"notes{part}.jsonl"
        files.append(path)
        with path.open("w", encoding="utf-8") as handle:
            for number in range(part, 900, 2):
                words = [WORDS[(number * k * k + k) % 7] for k in range(1, 5)]
                record = {
                    "doc_id": f"n{number}",
                    "patient_id": f"p{number % 41}",
                    "date": f"2020-0{1 + number % 8}-11",
                    "text": " and ".join(words) + ".",
                    "codes": [f"K{number % 11}"],
                }
                handle.write(json.dumps(record) + "\n")
    return files


def same_bytes(one: Path, other: Path) -> bool:
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


def test_spark_writes_the_identical_graph(tmp_path: Path, notes: list[Path]) -> None:
    lexicon = tmp_path / "lexicon.tsv"
    options = BuildOptions(unit="patient-window", window=90, per="patient", content="both", suppress_below=3)
    for engine in ("local", "spark"):
        build_graph(notes, tmp_path / engine, lexicon, options, engine=engine, master="local[2]")
    assert same_bytes(tmp_path / "local", tmp_path / "spark")
    notes[1].write_text(notes[1].read_text(encoding="utf-8") + "{broken\n", encoding="utf-8")
    with pytest.raises(CogstageError, match=r"notes1\.jsonl:451"):
        build_graph(notes, tmp_path / "bad", lexicon, engine="spark", master="local[2]")
    assert not (tmp_path / "bad").exists()
    options = BuildOptions(min_count=2, level="term")
    for engine in ("local", "spark"):
        bad = BadRows(skip=True)
        build_graph(notes, tmp_path / f"{engine}-skipped", lexicon, options, engine=engine, master="local[2]", bad=bad)
        assert bad.count == 1
    assert same_bytes(tmp_path / "local-skipped", tmp_path / "spark-skipped")


def test_resume_on_spark_gives_the_bytes_of_one_machine(
    tmp_path: Path, notes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted between finding and counting, with the work of one file lost; order, copies and roll-up included."""
    from cogstage.graph.engines.spark import SparkEngine

    lexicon, options = tmp_path / "lexicon.tsv", BuildOptions(unit="patient-window", window=30, order=True)
    (tmp_path / "map.tsv").write_text("code\tparent\nC1\tPAIN\nC3\tPAIN\n", encoding="utf-8")
    build_graph(notes, tmp_path / "local", lexicon, options, roll_up=tmp_path / "map.tsv")

    def interrupted(self: SparkEngine) -> None:
        raise KeyboardInterrupt

    how = {"engine": "spark", "master": "local[2]", "roll_up": tmp_path / "map.tsv"}
    with monkeypatch.context() as patched:
        patched.setattr(SparkEngine, "census", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build_graph(notes, tmp_path / "graph", lexicon, options, **how)  # type: ignore[arg-type]
    work = tmp_path / ".graph.work"
    assert not (tmp_path / "graph").exists()
    kept = {path: path.stat().st_mtime_ns for path in work.glob("part00000-*.npy")}
    assert kept
    for path in [*work.glob("part00001-*"), *work.glob("end-00001*")]:
        path.unlink()
    again: list[str] = []
    find = SparkEngine.find

    def watched(self: SparkEngine, copies: object) -> int:
        found = find(self, copies)  # type: ignore[arg-type]
        again.extend(path.name for path, then in kept.items() if path.stat().st_mtime_ns != then)
        return found

    monkeypatch.setattr(SparkEngine, "find", watched)
    build_graph(notes, tmp_path / "graph", lexicon, options, resume=True, **how)  # type: ignore[arg-type]
    assert again == []  # what was found is not found again
    assert same_bytes(tmp_path / "local", tmp_path / "graph")
    assert not work.exists()
