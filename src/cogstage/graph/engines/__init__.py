"""Engines that find and count: on one machine or on Spark, behind one protocol, with equal results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np

from cogstage.choices import EngineName
from cogstage.corpus.names import CodeNames
from cogstage.corpus.near_duplicates import Signatures
from cogstage.graph.counting import Census
from cogstage.graph.edges import Edges
from cogstage.graph.job import BuildJob, Nodes
from cogstage.graph.runs import Run


class Engine(Protocol):
    """Finds the keys of a job's documents, then counts them; the methods are called in the order given here."""

    runs: list[Run]  # what was found; complete after :meth:`find`

    def signatures(self) -> Signatures:
        """What recognises copied notes, of all documents."""

    def find(self, copies: np.ndarray) -> int:
        """Find the keys of all documents that are not done yet, except ``copies``; how many were read in all."""

    def census(self) -> Census:
        """In how many units and groups each of the job's keys occurs."""

    def edges(self, nodes: Nodes) -> Iterator[Edges]:
        """All edges between these nodes, sorted, in pieces."""

    def names_of(self, codes: Iterable[str]) -> CodeNames:
        """Names that the source gives these codes, with how many patients share each."""

    def stop(self) -> None:
        """Release what the engine holds."""


def open_engine(name: EngineName, job: BuildJob, master: str) -> Engine:
    """The engine of this name for a job."""
    if name == "local":
        from cogstage.graph.engines.local import LocalEngine

        return LocalEngine(job)
    from cogstage.graph.engines.spark import SparkEngine

    return SparkEngine(job, master)
