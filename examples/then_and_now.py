"""Train on counts and facts of 1977 to 1979, and show which relations known today the model ranks high.

    python examples/then_and_now.py [page.html]

The model sees nothing published after 1979. For each relation that today's sources state, and that no record of
1977 to 1979 stated, all tails of the relation are ranked for its head. Medicine knew some of these relations long
before 1977: "known today" means stated by today's sources, not discovered since. Nothing here is medical advice.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import cogstage as cs
from cogstage.data import embedded
from cogstage.reporting import Report, Section, Table

RELATIONS = ("may_treat", "causes")  # the two with enough facts from 1977 to 1979
MOST = 300  # facts of today that are ranked per relation, drawn by seed
SHOWN = 10
SEED = 0

Score = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Ranked:
    """A relation known today, and where the model of 1979 puts it: 1 is above all other tails, 0 below them."""

    head: int
    tail: int
    position: float
    popularity: float
    probability: float


def split_by_time(facts: cs.Facts, terms: Iterable[str]) -> tuple[cs.Facts, dict[str, set[tuple[str, str]]]]:
    """The facts that records of 1977 to 1979 state, and the other facts between terms of that time, by relation."""
    known = set(terms)
    rows = list(zip(facts.head, facts.relation, facts.tail, facts.source, strict=True))
    then = [row for row in rows if embedded.THEN in row[3].split(";") and row[0] in known and row[2] in known]
    stated = {frozenset((head, tail)) for head, _, tail, _ in then}
    today: dict[str, set[tuple[str, str]]] = {}
    for head, relation, tail, _ in rows:
        if head in known and tail in known and frozenset((head, tail)) not in stated:
            today.setdefault(relation, set()).add((head, tail))
    return cs.Facts.from_statements(then), today


def position(score: float, others: np.ndarray) -> float:
    """Share of the other candidates that score lower; ties count half."""
    return float(((others < score).sum() + 0.5 * (others == score).sum()) / max(len(others), 1))


def rank(
    facts: list[tuple[int, int]], true: set[tuple[int, int]], tails: np.ndarray, often: Counter[int], score: Score
) -> list[Ranked]:
    """Each fact among all tails that are not true of its head themselves."""
    found = []
    for head in sorted({head for head, _ in facts}):
        chances = score(np.full(len(tails), head), tails)
        chance = dict(zip(tails.tolist(), chances.tolist(), strict=True))
        wrong = [tail for tail in tails.tolist() if (head, tail) not in true and tail != head]
        others, common = np.array([chance[tail] for tail in wrong]), np.array([often[tail] for tail in wrong])
        for tail in sorted(tail for other, tail in facts if other == head):
            above, by_popularity = position(chance[tail], others), position(often[tail], common)
            found.append(Ranked(head, tail, above, by_popularity, chance[tail]))
    return sorted(found, key=lambda ranked: (-ranked.position, -ranked.probability, ranked.head, ranked.tail))


def main(page: Path) -> None:
    """Train, rank and write the page."""
    graph = embedded.graph_1977_1979()
    then, today = split_by_time(embedded.facts(), graph.vocabulary.term)
    index, name = graph.vocabulary.index, graph.vocabulary.name
    with tempfile.TemporaryDirectory() as folder:
        data = cs.build_dataset(graph, then, Path(folder) / "dataset", seed=SEED, relations=RELATIONS)
        model = cs.CogStage("all", seed=SEED).fit(graph, data)
    rows, sections = [], []
    for relation in RELATIONS:
        new = sorted((index[head], index[tail]) for head, tail in today[relation])
        chosen = np.random.default_rng(SEED).permutation(len(new))[:MOST]
        facts = [new[row] for row in sorted(chosen.tolist())]
        stated = [
            (index[head], index[tail])
            for head, other, tail in zip(then.head, then.relation, then.tail, strict=True)
            if other == relation
        ]
        tails = np.array(sorted({tail for _, tail in [*new, *stated]}))
        often = Counter(tail for _, tail in stated)
        ranked = rank(facts, {*new, *stated}, tails, often, lambda h, t, name=relation: model.probabilities(h, t, name))
        rows.append(_row(relation, len(new), len(tails), ranked))
        for words, part in (("best", ranked[:SHOWN]), ("worst", ranked[: -SHOWN - 1 : -1])):
            caption = f"{relation}: the {SHOWN} {words} of {len(ranked)} ranked"
            cells = tuple((name[r.head], name[r.tail], f"{r.position:.1%}", f"{r.probability:.2f}") for r in part)
            table = Table(caption, ("head", "tail", "ranked above", "probability"), cells, left=2)
            sections.append(Section(f"{relation}, {words}", [table]))
    columns = ("relation", "known today", "tails", "mean position", "in the top tenth", "by popularity")
    summary = Table("Relations known today, ranked by a model of 1979", columns, tuple(rows), note=NOTE)
    report = Report("Then and now", [SUMMARY], [Section("All ranked relations", [summary]), *sections])
    report.write(page)
    print(summary.text())
    for section in sections:
        print("\n" + "\n".join(block.text() for block in section.blocks if isinstance(block, Table)))
    print(f"\nPage: {page}")


def _row(relation: str, new: int, tails: int, ranked: list[Ranked]) -> tuple[str, ...]:
    positions = np.array([r.position for r in ranked])
    popular = np.mean([r.popularity for r in ranked])
    top = np.mean(positions >= 0.9)
    return relation, f"{new:,}", f"{tails:,}", f"{positions.mean():.1%}", f"{top:.0%}", f"{popular:.1%}"


SUMMARY = (
    "The model was trained on co-occurrence counts and facts of 1977 to 1979. It then ranked, for the head of each "
    "relation that today's sources state and no record of that time stated, all tails of the relation."
)
NOTE = (
    "Position: share of the false tails that rank below the true one; 50 % is chance. By popularity: the same when "
    f"tails are ranked by how many facts of 1977 to 1979 name them. At most {MOST} relations were sampled at random."
)

if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "then_and_now.html"))
