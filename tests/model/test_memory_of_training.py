"""What training holds: nothing of a phase that is over, and the same results in blocks as at once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.planted import Plan, planted
from threadpoolctl import threadpool_info, threadpool_limits

from cogstage import scratch
from cogstage.estimator import CogStage
from cogstage.model import recognition
from cogstage.model.config import Config
from cogstage.model.fast import memory
from cogstage.model.fast.memory import late_zeros, quick_release, release, rest, wake
from cogstage.model.network import PER_TERM
from cogstage.scratch import is_mapped
from cogstage.training import fitting
from cogstage.training.fitting import prepare
from cogstage.training.staged import Phase, StagedTraining

OPTIONS = Config(dimension=16, associations=6, tower=16, folds=2, recall_passes=1, recognition_passes=1)


@pytest.fixture
def no_collection_by_chance() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection_by_chance")
def test_the_moments_of_a_phase_and_the_folds_are_not_held_when_they_are_over() -> None:
    graph, data = planted(Plan())
    training = prepare(graph, data.for_fitting(), [0], OPTIONS.replace(decision_epochs=1, decision_steps=0), 0)
    folds = [weakref.ref(parameter) for fold in training.network.folds for parameter in fold.parameters()]
    moments, phase = [], None
    for number in range(training.rounds):
        training.run_round(number, np.random.default_rng(number))
        if training._rounds[number][0] is not phase:
            assert not any(entry() is not None for entry in moments)  # those of the phases before
            phase = training._rounds[number][0]
        moments = [weakref.ref(entry) for entry in training.state().values()]
        assert len(moments) > 1
    assert all(parameter() is not None for parameter in folds)
    training.finish()
    assert not any(parameter() is not None for parameter in folds)


@pytest.mark.parametrize("rows", [2, 3, 64])
def test_towers_in_blocks_are_those_computed_at_once(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, data = planted(Plan())
    training = prepare(graph, data.for_fitting(), [0], OPTIONS, 0)
    network = training.network
    with torch.no_grad():
        nodes = torch.arange(graph.n_nodes)
        head, tail = network.eval().recognition.towers(network.recall.term, nodes, nodes)
        monkeypatch.setattr(recognition, "ROWS", rows)
        found = network.recognition.all_towers(network.recall.term)
    torch.testing.assert_close(found, (head, tail), rtol=0, atol=1e-6)


def trained(monkeypatch: pytest.MonkeyPatch, small: int) -> dict[str, np.ndarray]:
    """The weights after a short training in which arrays above ``small`` bytes are in files."""
    for module in (scratch, memory):
        monkeypatch.setattr(module, "SMALL", small)
    graph, data = planted(Plan())
    training = prepare(graph, data.for_fitting(), [0], OPTIONS.replace(decision_epochs=1, decision_steps=0), 0)
    for number in range(training.rounds):
        torch.manual_seed(number)  # of dropout
        training.run_round(number, np.random.default_rng(number))
        if not small:
            check_what_rests(training, training._rounds[number][0])
    seen = training._seen["train"]
    assert all((rows._held is None) == (not small) for rows in vars(seen).values())
    return {name: value.detach().numpy().copy() for name, value in training.network.named_parameters()}


def check_what_rests(training: StagedTraining, phase: Phase) -> None:
    """Only what a phase trains, and υ, is in memory; δ that no phase has trained yet takes none."""
    awake = {1: ["recall.context"], 2: [f"{'recognition' if phase.fold < 0 else f'folds.{phase.fold}'}.offset"], 3: []}
    later = [f"folds.{fold}.offset" for fold in range(phase.fold + 1, OPTIONS.folds)] if phase.stage < 3 else []
    later += ["recognition.offset"] if phase.stage == 1 else []
    large = {name: p for name, p in training.network.named_parameters() if name.endswith(PER_TERM_NAMES)}
    in_memory = {name for name, parameter in large.items() if not is_mapped(parameter.detach().numpy())}
    assert in_memory == {"recall.term", *awake[phase.stage], *later}


PER_TERM_NAMES = tuple(name.rpartition(".")[2] for name in PER_TERM)


@pytest.mark.slow
def test_training_in_files_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    in_files, in_memory = trained(monkeypatch, 0), trained(monkeypatch, 1 << 40)
    assert in_files.keys() == in_memory.keys()
    assert all(np.array_equal(in_files[name], in_memory[name]) for name in in_memory)


@pytest.mark.slow
@pytest.mark.parametrize("broken_off", [1, 3, 5])
def test_training_in_files_resumes_to_the_same_bits(
    broken_off: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, data = planted(Plan())
    model = CogStage(**OPTIONS.replace(decision_epochs=2, decision_steps=0).to_dict())
    for module in (scratch, memory):
        monkeypatch.setattr(module, "SMALL", 1 << 40)
    whole = model.fit(graph, data).fitted.weights_hash()
    for module in (scratch, memory):
        monkeypatch.setattr(module, "SMALL", 0)
    run_round = StagedTraining.run_round

    def broken(self: StagedTraining, number: int, *rest: Any) -> dict[str, float]:
        if number == broken_off:
            raise KeyboardInterrupt
        return run_round(self, number, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(StagedTraining, "run_round", broken)
        with pytest.raises(KeyboardInterrupt):
            model.fit(graph, data, checkpoint=tmp_path, checkpoint_every=0)
    resumed = model.fit(graph, data, checkpoint=tmp_path, resume=True)
    assert resumed.fitted.weights_hash() == whole


def resident(array: np.ndarray) -> int:
    """Kilobytes of memory that the mapping which begins at an array's first value takes (Linux)."""
    lines = Path("/proc/self/smaps").read_text(encoding="ascii", errors="replace").splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith(f"{array.ctypes.data:x}-"))
    return next(int(line.split()[1]) for line in lines[begin:] if line.startswith("Rss:"))


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs the maps of a process, as Linux shows them")
def test_a_resting_tensor_takes_no_memory_and_keeps_its_values() -> None:
    parameter = torch.nn.Parameter(torch.rand(2_000_000))
    values = parameter.detach().clone()
    rest(parameter)
    assert resident(parameter.detach().numpy()) == 0
    assert torch.equal(parameter.detach(), values)
    assert resident(parameter.detach().numpy()) >= 7_000
    with torch.no_grad():
        parameter[7] = 3.0
    rest(parameter)
    assert resident(parameter.detach().numpy()) == 0
    wake(parameter)
    values[7] = 3.0
    assert not is_mapped(parameter.detach().numpy())
    assert torch.equal(parameter.detach(), values)


def test_late_zeros_are_zeros() -> None:
    assert torch.equal(late_zeros(3, 4), torch.zeros(3, 4))
    assert torch.equal(late_zeros(5, dtype=torch.float64), torch.zeros(5, dtype=torch.float64))
    release()


class Cycle:
    """An object that only a collection can free."""

    def __init__(self) -> None:
        self.own = self


@pytest.mark.usefixtures("no_collection_by_chance")
def test_a_quick_release_frees_what_was_made_within_it_and_looks_at_nothing_else() -> None:
    gc.unfreeze()
    before = Cycle()
    kept = weakref.ref(before)
    with quick_release():
        del before
        freed = weakref.ref(Cycle())
        release()
        assert freed() is None
        assert kept() is not None
    assert not gc.get_freeze_count()
    release()
    assert kept() is None
    gc.freeze()  # as the tests do
    with quick_release():
        pass
    assert gc.get_freeze_count()


def test_training_runs_on_one_thread_and_gives_the_others_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    seen = []
    place_facts = fitting.place_facts
    monkeypatch.setattr(fitting, "place_facts", lambda *given: (seen.append(threads()), place_facts(*given)))
    graph, data = planted(Plan())
    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        CogStage("may_treat", **{**OPTIONS.to_dict(), "decision_epochs": 1}).fit(graph, data)
        assert threads() == {2}
    assert seen == [{1}]
