"""Release a graph: add noise to bounded counts, or hand on a protected graph, with a ledger of all releases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.edges import Edges
from cogstage.graph.ledger import Budget, Entry, Ledger, charge
from cogstage.graph.mechanism import mechanism_for
from cogstage.graph.noise import Randomness
from cogstage.graph.options import PrivacyOptions
from cogstage.graph.privacy import private_meta, release, released_nodes
from cogstage.graph.vocabulary import Vocabulary


def private_release(graph: Graph, private: PrivacyOptions, seed: int | None = None) -> Graph:
    """A private graph from exact counts to which a patient adds at most M pairs (``pairs_per_patient``).

    The same mechanism as that of a private build; ``seed`` is for tests, and recorded.
    """
    bound = graph.made_with.get("pairs_per_patient")
    if bound is None:
        raise UsageError("the counts do not bound the pairs of a patient; build the graph with `pairs_per_patient`")
    if bound != private.pairs:
        raise UsageError(f"the graph has {bound} pairs per patient, `private` says {private.pairs}")
    order = graph.in_order is not None
    edges = Edges(graph.source, graph.target, graph.count.astype(np.int64), None, graph.in_order)
    parts, kept, largest = released_nodes(release([edges], private, Randomness(seed), order), graph.n_nodes)
    noisy = parts[0]
    if len(noisy) == 0:
        least = mechanism_for(private, order).threshold
        raise CogstageError(f"no pair reaches the threshold of a private release (τ = {least:,}); increase ε or δ")
    made_with = {**private_meta(graph.made_with, private, order, seed), "how": "release"}
    words = _part_of(graph.vocabulary, kept, largest)
    return Graph(words, noisy.source, noisy.target, noisy.count, made_with, noisy.order)


def _part_of(words: Vocabulary, kept: np.ndarray, count: np.ndarray) -> Vocabulary:
    """The nodes ``kept``, in order, with other counts."""
    number = {node: index for index, node in enumerate(kept.tolist())}
    columns = [tuple(column[node] for node in number) for column in (words.term, words.concept, words.name, words.type)]
    synonyms = tuple((text, number[node]) for text, node in words.synonyms if node in number)
    return Vocabulary(columns[0], columns[1], columns[2], columns[3], count, synonyms)


def release_folder(
    path: Path, out: Path, private: PrivacyOptions | None, ledger: Path, budget: Budget | None = None
) -> tuple[Graph, Ledger]:
    """Release a graph folder to ``out`` and enter it in the ledger; raise before anything is written if it must not be.

    A graph with bounded counts needs ``private``. A private or suppressed graph is handed on as it is. The ledger is
    charged first, so that an interrupted release counts, too.
    """
    graph = Graph.load(path)
    made = graph.made_with
    order = graph.in_order is not None
    if made.get("pairs_per_patient") is not None:
        if private is None:
            raise UsageError(f"{path} has exact counts; set `private`, such as 1,1e-6,{made['pairs_per_patient']}")
        released = private_release(graph, private)
        return released, _enter(released, Entry(str(out), private, order), out, ledger, budget)
    if private is not None:
        raise UsageError(f"{path} was not built with `pairs_per_patient`, so no noise can be added")
    if (given := made.get("private")) is not None:
        parts = given.get("parts") or [given]
        if len(parts) > 1 or given.get("seed"):
            raise CogstageError(f"{path} is a merge of releases, or has noise from a known seed; release its parts")
        noise = "laplace" if "aplace" in given["noise"] else "gaussian"
        options = PrivacyOptions(given["epsilon"], given["delta"], given["pairs"], noise)  # type: ignore[arg-type]
        return graph, _enter(graph, Entry(str(out), options, order, 0, graph.hash), out, ledger, budget)
    if below := made.get("suppress_below"):
        return graph, _enter(graph, Entry(str(out), None, order, below, graph.hash), out, ledger, budget)
    raise CogstageError(
        f"{path} has exact counts; build it with `suppress_below`, `private` or `pairs_per_patient` to release it"
    )


def _enter(graph: Graph, entry: Entry, out: Path, ledger: Path, budget: Budget | None) -> Ledger:
    charged = charge(ledger, entry, budget)
    replace(graph, examples_file=None).save(out)
    return charged
