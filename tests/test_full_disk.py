"""A full disk is one clear line in every command that writes, and nothing half-written is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_disk import fill, small_disk
from small_model import QUICK, save_small_data, small_data
from study_material import write_sources

from cogstage.cli.main import run
from cogstage.estimator import CogStage

SETTINGS = [word for name, value in QUICK.items() for word in ("--set", f"{name}={value}")]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory, small_model_folder: Path) -> dict[str, Path]:
    """What the commands read, on a disk with room."""
    folder = tmp_path_factory.mktemp("inputs")
    graph, _ = small_data()
    graph.save(folder / "graph")
    save_small_data(folder / "data")
    notes = [{"doc_id": str(n), "text": f"aspirin {n} for fever and gout"} for n in range(500)]
    (folder / "notes.jsonl").write_text("\n".join(map(json.dumps, notes)))
    (folder / "lexicon.tsv").write_text("term\naspirin\nfever\ngout\n")
    (folder / "edges.tsv").write_text("source\ttarget\tcount\n" + "".join(f"a{n}\tb{n}\t5\n" for n in range(900)))
    with pytest.raises(SystemExit):
        run(["graph", "import", "edges", str(folder / "edges.tsv"), "--out", str(folder / "imported")])
    (folder / "facts.tsv").write_text(
        "head\trelation\ttail\n" + "".join(f"C{n:03d}\tmay_treat\tC{n + 1:03d}\n" for n in range(0, 200, 2))
    )
    with pytest.raises(SystemExit):
        run(["facts", "table", str(folder / "facts.tsv"), "--out", str(folder / "facts")])
    (folder / "pairs.tsv").write_text("head\trelation\ttail\nC004\tcauses\tC007\n")
    write_sources(folder)
    study = ["-s", f"open={folder / 'open.jsonl'}", "-s", f"closed={folder / 'closed.jsonl'}"]
    with pytest.raises(SystemExit):
        run(["study", "create", *study, "--out", str(folder / "study")])
    named = {path.stem: path for path in folder.iterdir() if path.is_dir() or path.name != "facts.tsv"}
    return {"model": small_model_folder, "table": folder / "facts.tsv", **named}


COMMANDS = {
    "graph build": "graph build {notes} --lexicon {lexicon} --min-count 1 --out {disk}/out",
    "graph merge": "graph merge {graph} {imported} --out {disk}/out",
    "graph import": "graph import edges {edges} --out {disk}/out",
    "graph plot": "graph info {graph} --plot {disk}/out.png",
    "facts": "facts table {table} --out {disk}/out",
    "dataset": "dataset build --graph {graph} --facts {facts} --minimum 1 --out {disk}/out",
    "train": "train --graph {graph} --dataset {data} --relation causes --out {disk}/out",
    "evaluate": "evaluate {model} --dataset {data} --ranking-heads 0 --out {disk}/out",
    "compare": "compare --graph {graph} --dataset {data} --methods degree --seeds 1 --out {disk}/out",
    "explain": "explain {model} C004 C007 --relation causes --out {disk}/out.html",
    "discover": "discover {model} C004 --relation causes --out {disk}/out.jsonl",
    "cases": "cases {model} --dataset {data} --relation causes --out {disk}/out.md",
    "study create": "study create -s open={open} -s closed={closed} --out {disk}/out",
    "study report": "study report {study} --draws 10 --out {disk}/out",
    "demo": "demo --out {disk}/out",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_one_line_and_nothing_left(
    command: str, inputs: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        fill(disk)
        words = COMMANDS[command].format(disk=disk, **inputs).split()
        with pytest.raises(SystemExit) as ended:
            run([*words, *(SETTINGS if command == "train" else [])])
        said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("cogstage: ")]
        assert ended.value.code == 1, said
        assert len(said) == 1
        assert "no space left on the disk" in said[0]
        left = [path for path in disk.rglob("*") if path.is_file() and path.parent.name != ".out.work"]
        assert left == [disk / "filler"]  # beside what `graph build --resume` needs


@pytest.mark.slow
def test_training_goes_on_once_there_is_room(
    inputs: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full when the model is written: the last checkpoint stays, and --resume begins there."""
    words = f"train --graph {inputs['graph']} --dataset {inputs['data']} --relation causes --checkpoint-every 0".split()
    with small_disk(tmp_path / "disk", 1024) as disk:
        kept = CogStage.save
        monkeypatch.setattr(CogStage, "save", lambda self, path: (fill(disk), kept(self, path)))
        with pytest.raises(SystemExit) as ended:
            run([*words, *SETTINGS, "--out", str(disk / "model")])
        assert ended.value.code == 1
        assert "no space left on the disk" in capfd.readouterr().err
        monkeypatch.undo()
        (disk / "filler").unlink()
        (disk / "model" / "checkpoint").rename(disk / ".model.checkpoint")  # as if killed while the model was written
        with pytest.raises(SystemExit) as ended:
            run([*words, *SETTINGS, "--out", str(disk / "model"), "--resume"])
        said = capfd.readouterr().err
        assert ended.value.code == 0, said
        assert "resumed after round" in said
        assert CogStage.load(disk / "model").relations == ("causes",)
        assert [path.name for path in disk.iterdir()] == ["model"]
