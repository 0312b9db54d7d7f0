"""A small trained model with named and typed terms, for tests of what stands behind the model."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import training_settings
from benchmarks.planted import planted_communities
from filelock import FileLock
from save_planted import save_dataset

from cogstage.estimator import CogStage
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.dataset import Dataset

RELATIONS = ("may_treat", "causes")
QUICK = {**training_settings.QUICK}


@cache
def small_data() -> tuple[Graph, Dataset]:
    """A planted graph whose even terms are drugs and whose odd terms are disorders, with synonyms."""
    graph, data = planted_communities(pairs=1500, relations=RELATIONS)
    nodes = range(graph.n_nodes)
    vocabulary = Vocabulary(
        term=tuple(f"C{node:03d}" for node in nodes),
        concept=tuple(f"C{node:03d}" for node in nodes),
        name=tuple(f"{'Drug' if node % 2 == 0 else 'Disorder'} number {node}" for node in nodes),
        type=tuple("drug" if node % 2 == 0 else "disorder" for node in nodes),
        count=graph.vocabulary.count + 10,
        synonyms=tuple((f"remedy {node}", node) for node in nodes if node % 2 == 0),
    )
    graph = replace(graph, vocabulary=vocabulary)
    return graph, replace(data, vocabulary_hash=vocabulary.hash)


def small_model(folder: Path, seed: int = 0, world: str = "open") -> Path:
    """The folder of a model of both relations, trained once for all processes of a test run below ``folder``."""
    path = folder / f"small-{world}-{seed}"
    with FileLock(f"{path}.lock"):
        if not path.exists():
            graph, data = small_data()
            CogStage(relation="all", world=world, seed=seed, **QUICK).fit(graph, data).save(path)
    return path


def save_small_data(path: Path) -> Path:
    """The data set of :func:`small_data` as a folder."""
    graph, data = small_data()
    manifest = {**data.manifest, "vocabulary_hash": graph.vocabulary.hash, "nodes": graph.n_nodes}
    save_dataset(replace(data, manifest=manifest), path)
    return path
