"""Memory of `dataset build` and `train` over the size of the graph: each command in a process of its own.

The graph is made up and written as a stream, so that one larger than memory can be made. Terms have a type and a
topic; terms of one topic co-occur more often, and a relation joins the topics of its heads to those of its tails.
Training is cut short, because the peak of memory is reached in every phase from its first step on: one pass of each
stage, and SVDs without their power iterations.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import ONE_THREAD, ROOT, parser, report
from benchmarks.measured_command import disk_mb, run_measured
from benchmarks.planted import ARGUMENTS, TYPES

NO_ITERATIONS = "import cogstage.model.recall as recall; recall.POWER_ITERATIONS = 0; "
RUN = "from cogstage.cli.main import run; run()"
SHORT = {"recognition_passes": 1, "decision_epochs": 1, "decision_steps": 0}
WITHIN = 0.5  # share of the drawn edges that join terms of one topic
BLOCK = 1 << 20  # edges drawn together


@dataclass(frozen=True)
class Plan:
    """Sizes of a made-up graph and of its facts."""

    terms: int
    edges: int
    topics: int = 40
    facts: int = 11_765  # per relation; the five of the paper's Table 1 have 58,826 together


FULL = {
    0.05: Plan(30_000, 50_000),
    0.168: Plan(52_804, 168_000),  # as many terms as the paper, hardly any edges: what does not grow with the edges
    5: Plan(30_000, 5_000_000),
    16.8: Plan(52_804, 16_800_000),
    100: Plan(100_000, 100_000_000),
}
QUICK = {0.1: Plan(2_000, 100_000, topics=8, facts=300)}


def write_graph(plan: Plan, out: Path) -> None:
    """A graph folder, source by source: nothing but a block of edges is held."""
    from cogstage.artefact import new_folder
    from cogstage.graph.folder import write_edges
    from cogstage.graph.vocabulary import Vocabulary

    keys = tuple(f"T{node}" for node in range(plan.terms))
    kinds = tuple(TYPES[node // plan.topics % len(TYPES)] for node in range(plan.terms))
    vocabulary = Vocabulary(keys, keys, keys, kinds, np.ones(plan.terms, np.int64))
    with new_folder(out, "graph", {"made up": True, "nodes": plan.terms, "edges": plan.edges}) as folder:
        vocabulary.write(folder)
        write_edges(folder, edges(plan))


def edges(plan: Plan) -> Iterator[Any]:
    """The edges, sorted, in blocks of sources; every pair of terms is as likely to be of a block as any other."""
    from cogstage.graph.edges import Edges

    rng = np.random.default_rng(0)
    after = np.arange(plan.terms, 0, -1, dtype=np.float64) - 1  # terms behind each source
    upto = np.concatenate([[0], np.rint(np.cumsum(after) / after.sum() * plan.edges)]).astype(np.int64)
    first = 0
    while first < plan.terms - 1:
        last = max(first + 1, int(np.searchsorted(upto, upto[first] + BLOCK, "right")) - 1)
        wanted, keys = int(upto[last] - upto[first]), np.empty(0, np.int64)
        while len(keys) < wanted:
            drawn = int(1.2 * (wanted - len(keys))) + 100
            source = np.repeat(np.arange(first, last), rng.multinomial(drawn, _share(after[first:last])))
            room = after[source]
            step = 1 + (rng.random(drawn) * room).astype(np.int64)
            near = (1 + (rng.random(drawn) * (room // plan.topics)).astype(np.int64)) * plan.topics
            close = (rng.random(drawn) < WITHIN) & (near <= room)
            keys = np.unique(np.concatenate([keys, source * plan.terms + source + np.where(close, near, step)]))
        keys = np.sort(rng.choice(keys, wanted, replace=False))
        source, target = keys // plan.terms, keys % plan.terms
        same = source % plan.topics == target % plan.topics
        yield Edges(source.astype(np.int32), target.astype(np.int32), 1 + rng.poisson(np.where(same, 4.0, 0.5)))
        first = last


def write_facts(plan: Plan, out: Path) -> None:
    """A table of facts whose topics each relation joins."""
    rng = np.random.default_rng(1)
    node = np.arange(plan.terms)
    topic, kind = node % plan.topics, node // plan.topics % len(TYPES)
    lines = ["head\trelation\ttail"]
    for relation, (one, other) in ARGUMENTS.items():
        heads, tails, joins = node[kind == one], node[kind == other], rng.permutation(plan.topics)
        head = rng.choice(heads, 3 * plan.topics * plan.facts)
        tail = rng.choice(tails, len(head))
        fits = np.flatnonzero(joins[topic[head]] == topic[tail])[: plan.facts]
        lines += [f"T{h}\t{relation}\tT{t}" for h, t in zip(head[fits].tolist(), tail[fits].tolist(), strict=True)]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def measure(plan: Plan, folder: Path, chosen: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Make the graph and the facts, run the two commands, and give a row for each; ``chosen`` are options of --set."""
    write_graph(plan, folder / "graph")
    write_facts(plan, folder / "facts.tsv")
    short = [f"{name}={value}" for name, value in SHORT.items()]
    settings = [word for option in (*short, *chosen) for word in ("--set", option)]
    made = ["--graph", str(folder / "graph")]
    commands = {
        "facts table": ["facts", "table", str(folder / "facts.tsv"), "--out", str(folder / "facts")],
        "dataset build": ["dataset", "build", *made, "--facts", str(folder / "facts"), "--out", str(folder / "data")],
        "train": ["train", *made, "--dataset", str(folder / "data"), "--out", str(folder / "model"), *settings],
    }
    rows = []
    for name, words in commands.items():
        code = NO_ITERATIONS + RUN if name == "train" else RUN
        used = run_measured([sys.executable, "-c", code, *words], folder / f"{words[0]}.log", ONE_THREAD, ROOT)
        row = {
            "command": name,
            "terms": plan.terms,
            "edges": plan.edges,
            "processor seconds": used["processor_seconds"],
            "peak MB": used["peak_mb"],
            "bytes per edge": used["peak_mb"] * 2**20 / plan.edges,
            "MB on disk": disk_mb(Path(words[words.index("--out") + 1])),
        }
        print(row, flush=True)
        rows.append(row)
    return rows[1:]


def _share(weight: np.ndarray) -> np.ndarray:
    share: np.ndarray = weight / weight.sum()
    return share


def main(argv: list[str] | None = None) -> None:
    """Print and write the peak of memory of both commands at each size."""
    options = parser(__doc__)
    known = ", ".join(map(str, FULL))
    options.add_argument("--millions", type=float, nargs="*", choices=FULL, help=f"of {known} million edges")
    options.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="passed on to train")
    chosen = options.parse_args(argv)
    plans = QUICK if chosen.quick else {size: FULL[size] for size in chosen.millions or FULL}
    rows = []
    for plan in plans.values():
        with tempfile.TemporaryDirectory() as folder:
            rows += measure(plan, Path(folder), chosen.set)
    report("memory", rows, chosen.out, {"training": {**SHORT, "SVD iterations": 0}, "options": chosen.set})


if __name__ == "__main__":
    main(sys.argv[1:])
