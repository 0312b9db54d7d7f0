"""Compare methods × relations × seeds on frozen data, in parallel and resumable.

Figures are for dev pairs, for model selection. Test pairs are scored only on request.

The folder gathers cells over several calls (other methods, more seeds, a second data set); tables and plots are made
of all that is there. A finished cell is computed again only if its method's settings have changed since.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cogstage.artefact import (
    is_artefact,
    new_file,
    new_folder,
    read_meta,
    safe_name,
    to_json,
    write_text,
)
from cogstage.baselines.contract import ALL
from cogstage.errors import CogstageError, UsageError
from cogstage.evaluation.comparison_folder import CellKey, ComparisonFolder, read_cell
from cogstage.evaluation.comparison_process import VECTORS
from cogstage.evaluation.evaluate import correction_warnings
from cogstage.evaluation.inputs import dataset_hash, save_dataset, save_populations
from cogstage.evaluation.methods import encoder_of, expand, find, is_baseline
from cogstage.evaluation.populations import populations
from cogstage.evaluation.results import SEED_MARK, Comparison
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset
from cogstage.locks import lock_folder
from cogstage.progress import SILENT, Progress
from cogstage.rationale.corrections import Corrections

KIND = "comparison"
RANKING_HEADS = 200
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Task:
    """One process to run: vectors to encode, or a cell (a joint method: one for all relations)."""

    dataset: str
    method: str  # an encoder where scope is VECTORS
    scope: str
    seed: int
    needs: Task | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.scope} seed {self.seed} on {self.dataset}"


def compare(
    graph: Graph,
    data: Dataset | Mapping[str, Dataset],
    methods: Sequence[str] | None = None,
    seeds: int | Sequence[int] = 5,
    out: Path | str = "comparison",
    relations: Sequence[str] | None = None,
    jobs: int = 2,
    ranking_heads: int = RANKING_HEADS,
    plots: bool = True,
    progress: Progress = SILENT,
    test: bool = False,
    corrections: Corrections | None = None,
) -> Comparison:
    """Compare methods: run those that are missing in ``out``, then write all results, tables and plots.

    Parameters
    ----------
    graph
        The graph.
    data
        A data set built on the graph, or several as a dictionary by name.
    methods
        Names such as "svd+distmult" or "cogstage", or groups such as "paper"; None for the default groups.
    seeds
        Number of seeds, or the seeds themselves.
    out
        Output folder; finished runs in it are reused.
    relations
        The relations to compare on; None for all.
    jobs
        Number of parallel runs, each in its own process.
    ranking_heads
        Largest number of heads to rank; 0 turns ranking off.
    plots
        Whether to draw plots.
    progress
        Receiver of progress reports.
    test
        Whether to evaluate on the test pairs as well and return those figures. Use it once, after all choices are
        made: figures that guided a choice are no longer test figures.
    corrections
        Corrections that are applied to the predictions of CogStage, but not used in training.

    Returns
    -------
    Comparison
        Figures on dev pairs, or on test pairs with ``test``. Failed runs are reported at the end and retried by the
        next call.

    Examples
    --------
    >>> graph, data = cs.Graph.load("graph"), cs.Dataset.load("data")
    >>> result = cs.compare(graph, data, ["degree", "always-positive"], 1, "table", plots=False, ranking_heads=0)
    >>> sorted({row["method"] for row in result.rows()})
    ['always-positive', 'degree']
    """
    named = {dataset_name(data): data} if isinstance(data, Dataset) else dict(data)
    chosen_seeds = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not chosen_seeds or jobs < 1:
        raise UsageError("a comparison needs at least one seed and one job")
    names = expand(methods)
    splits = ("dev", "test") if test else ("dev",)
    for dataset in named.values():
        _relations(dataset, relations, "dev")
    with lock_folder(out):
        files = _prepare(Path(out), graph, named, splits)
        _keep_corrections(files, corrections, graph, named, splits, progress)
        tasks = [
            task
            for name, dataset in named.items()
            for task in _tasks(files, name, dataset, relations, names, chosen_seeds, splits, progress, corrections)
        ]
        failed = _run(files, tasks, jobs, ranking_heads, splits, progress)
        for split in splits:
            result = Comparison.gather(files.folder, split)
            result.write(plots=plots)
    for warning in result.floor_warnings():
        progress.say(f"warning: {warning}")
    if failed:
        first = next(iter(failed.items()))
        raise CogstageError(
            f"{len(failed)} of {len(tasks)} runs failed, the first was {first[0]}: {first[1]}; "
            "the others are finished, so repeat the command to retry"
        )
    return result


def dataset_name(data: Dataset) -> str:
    """What tells two data sets of one graph apart: the negatives, and the split and its seed if they are not the usual.

    ``degree``, ``degree-cold-head``, ``degree-seed1`` and so on.
    """
    options = data.manifest.get("options", {})
    if not isinstance(options, Mapping):
        return "dataset"
    name = safe_name(options.get("negatives", "dataset"), "the data set's manifest")
    split, seed = options.get("split", "random"), options.get("seed", 0)
    if split != "random":
        name += "-" + safe_name(split, "the data set's manifest")
    return f"{name}{SEED_MARK}{seed}" if isinstance(seed, int) and seed > 0 else name


def _relations(data: Dataset, asked: Sequence[str] | None, split: str) -> list[str]:
    """The relations to compare on: those asked for (or all) that have pairs in the split."""
    for relation in asked or ():
        if relation not in data.relations:
            raise UsageError(f"the data set has no relation {relation}; it has {', '.join(data.relations)}")
    kept = [relation for relation in data.relations if not asked or relation in asked]
    return [safe_name(relation, "the data set's relations") for relation in kept if len(data.pairs(relation, split))]


def _prepare(folder: Path, graph: Graph, named: Mapping[str, Dataset], splits: Sequence[str]) -> ComparisonFolder:
    """The folder with the frozen inputs; one that was begun with other inputs is refused."""
    identity = {"graph": graph.hash}
    for data in named.values():
        data.check_fits(graph.vocabulary)
    if not is_artefact(folder, KIND):
        with new_folder(folder, KIND, identity) as fresh:
            graph.save(ComparisonFolder(fresh).graph)
    if (folder / "cells").exists():
        raise UsageError(
            f"{folder} was written by an earlier version that stored only test figures; choose another folder"
        )
    if read_meta(folder, KIND)["made_with"]["graph"] != graph.hash:
        raise UsageError(f"{folder} was started with another graph; choose another folder")
    files = ComparisonFolder(folder)
    for name, data in named.items():
        path, about = files.dataset(name), files.dataset(name).with_suffix(".json")
        here = {"hash": dataset_hash(data)}
        if not about.exists():
            with new_file(path) as temporary:
                save_dataset(data, temporary)
            write_text(about, to_json(here))
        elif json.loads(about.read_text(encoding="utf-8")) != here:
            raise UsageError(f"{folder} was started with another data set named {name}; choose another folder")
        for split in splits:
            if not files.populations(name, split).exists():
                with new_file(files.populations(name, split)) as temporary:
                    save_populations(populations(graph, data, split), temporary)
    return files


def _keep_corrections(
    files: ComparisonFolder,
    corrections: Corrections | None,
    graph: Graph,
    named: Mapping[str, Dataset],
    splits: Sequence[str],
    progress: Progress,
) -> None:
    """Put the verdicts where the processes read them; those of an earlier call go."""
    files.corrections.unlink(missing_ok=True)
    if corrections is None:
        return
    corrections.write(files.corrections)
    for name, data in named.items():
        corrections.verdicts(graph.vocabulary, data.relations)  # raises early if a term is unknown
        for split in splits:
            for warning in correction_warnings(corrections, graph.vocabulary, data, split):
                progress.say(f"warning: {name}: {warning}")


def _tasks(
    files: ComparisonFolder,
    name: str,
    data: Dataset,
    asked: Sequence[str] | None,
    methods: Sequence[str],
    seeds: Sequence[int],
    splits: Sequence[str],
    progress: Progress,
    corrections: Corrections | None,
) -> list[Task]:
    """The missing tasks, seed by seed, with vectors before the cells that use them."""
    tasks: list[Task] = []
    relations = {split: _relations(data, asked, split) for split in splits}
    for seed in seeds:
        encodings: dict[str, Task] = {}
        for method in methods:
            settings = find(method, corrections=corrections).settings
            open_cells = [
                relation
                for split in splits
                for relation in relations[split]
                if not _finished(files.split(split).cell(CellKey(name, method, relation, seed)), settings, progress)
            ]
            missing = [relation for relation in data.relations if relation in open_cells]
            if not missing:
                continue
            encoder = encoder_of(method)
            if encoder and encoder not in encodings:
                encodings[encoder] = Task(name, encoder, VECTORS, seed)
                tasks.append(encodings[encoder])
            needs = encodings.get(encoder) if encoder else None
            if find(method).joint:
                scopes = [ALL]
            else:  # a baseline's relations share a process: starting one takes longer than fitting some of them
                scopes = [",".join(missing)] if is_baseline(method) else missing
            tasks += [Task(name, method, scope, seed, needs) for scope in scopes]
    return tasks


def _finished(cell: Path, settings: str, progress: Progress) -> bool:
    """Whether a cell is there, of a method that was set up as it would be now; a damaged one is named."""
    if not cell.exists():
        return False
    try:
        return bool(read_cell(cell).get("settings", settings) == settings)
    except CogstageError as error:
        progress.say(f"warning: {error}; it will be computed again")
        return False


def _run(
    files: ComparisonFolder,
    tasks: Sequence[Task],
    jobs: int,
    ranking_heads: int,
    splits: Sequence[str],
    progress: Progress,
) -> dict[Task, str]:
    """Run the tasks in ``jobs`` parallel processes; return the failed ones with one line each."""
    waiting, running = list(tasks), {}  # type: list[Task], dict[Task, tuple[subprocess.Popen[bytes], Path]]
    done: set[Task] = set()
    failed: dict[Task, str] = {}
    progress.start("Comparing methods", len(tasks))
    with tempfile.TemporaryDirectory() as logs:
        try:
            while waiting or running:
                for task in [t for t in waiting if t.needs in failed]:
                    waiting.remove(task)
                    failed[task] = f"{task.needs} failed"
                    progress.advance(1, f"{task}: failed")
                ready = (t for t in waiting if t.needs is None or t.needs in done)
                while len(running) < jobs and (begun := next(ready, None)) is not None:
                    log = Path(logs) / f"{len(done) + len(failed)}-{len(running)}-{time.monotonic_ns()}"
                    running[begun] = (_start(files, begun, ranking_heads, splits, log), log)
                waiting = [t for t in waiting if t not in running]
                for task, (process, log) in list(running.items()):
                    if process.poll() is None:
                        continue
                    del running[task]
                    if process.returncode == 0:
                        done.add(task)
                    else:
                        failed[task] = _reason(log, process.returncode)
                    progress.advance(1, f"{task}: {'done' if task in done else failed[task]}")
                time.sleep(0.05)
        finally:
            for process, _ in running.values():
                process.kill()
                process.wait()
    progress.done(f"{len(done)} done, {len(failed)} failed" if failed else f"{len(done)} done")
    return failed


def _start(
    files: ComparisonFolder, task: Task, ranking_heads: int, splits: Sequence[str], log: Path
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "cogstage.evaluation.comparison_process", str(files.folder.resolve())]
    command += [task.dataset, task.method, task.scope, str(task.seed), str(ranking_heads), ",".join(splits)]
    with log.open("wb") as handle:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=handle, stderr=subprocess.STDOUT, env={**os.environ, **ONE_THREAD}
        )


def _reason(log: Path, code: int) -> str:
    """The error message of a process, or the end of its traceback."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if not lines:
        return f"stopped by signal {-code}" if code < 0 else f"exit code {code}"
    try:
        return str(json.loads(lines[-1])["error"])
    except (ValueError, KeyError, TypeError):
        return lines[-1]
