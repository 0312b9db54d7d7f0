"""One flipped bit anywhere in a graph, facts, a data set, a model or a checkpoint is noticed when it is loaded."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from small_model import small_data

from cogstage.artefact import NO_VERIFY
from cogstage.cli.main import run
from cogstage.errors import CogstageError
from cogstage.estimator import CogStage
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.dataset import Dataset
from cogstage.knowledge.facts import Facts, Statement
from cogstage.training.checkpoint import Checkpoint

PER_FILE = 12


def make_facts() -> Facts:
    graph, _ = small_data()
    names = graph.vocabulary.term
    pairs = [(head, tail) for head in range(0, 40, 2) for tail in range(1, 60, 6)]
    return Facts.from_statements(Statement(names[head], "may_treat", names[tail], "source") for head, tail in pairs)


def make(kind: str, folder: Path, model: Path) -> Callable[[], object]:
    """Write an artefact of this kind; what loads it."""
    if kind == "graph":
        small_data()[0].save(folder)
        return lambda: Graph.load(folder)
    if kind == "facts":
        make_facts().save(folder)
        return lambda: Facts.load(folder)
    if kind == "dataset":
        build_dataset(small_data()[0], make_facts(), folder, minimum=1)
        return lambda: Dataset.load(folder)
    if kind == "model":
        shutil.copytree(model, folder)
        return lambda: CogStage.load(folder)
    weights = {"towers": torch.randn(8, 4), "step": torch.tensor(3), "seen": torch.tensor([True, False])}
    Checkpoint(folder).save(weights, {"round": 2})
    return lambda: Checkpoint(folder).load()


@pytest.mark.parametrize("kind", ["graph", "facts", "dataset", "model", "checkpoint"])
def test_it_is_noticed(kind: str, tmp_path: Path, small_model_folder: Path) -> None:
    load = make(kind, tmp_path / kind, small_model_folder)
    load()
    rng = random.Random(kind)
    flipped, noticed, silent = 0, 0, []
    for path in sorted(file for file in (tmp_path / kind).rglob("*") if file.is_file()):
        if kind == "checkpoint" and path.name == "meta.json":
            continue  # says that this is a checkpoint and nothing that a training uses
        sound = path.read_bytes()
        for place in rng.sample(range(len(sound)), min(PER_FILE, len(sound))):
            path.write_bytes(sound[:place] + bytes([sound[place] ^ (1 << rng.randrange(8))]) + sound[place + 1 :])
            flipped += 1
            try:
                load()
                silent.append((path.name, place))
            except CogstageError:
                noticed += 1
        path.write_bytes(sound)
    load()
    print(f"{kind}: {noticed} of {flipped} flipped bits noticed")
    assert not silent


def test_huge_folders_can_be_read_without_checking(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_data()[0].save(tmp_path / "graph")
    path = tmp_path / "graph" / "meta.json"
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")  # the content changed, and still reads
    monkeypatch.setenv(NO_VERIFY, "")  # put back after the test
    for arguments, code in ((["graph", "info"], 1), (["--no-verify", "graph", "info"], 0)):
        with pytest.raises(SystemExit) as end:
            run([*arguments, str(tmp_path / "graph")])
        assert end.value.code == code, capsys.readouterr().err
    assert "is damaged" in capsys.readouterr().err
