"""Evaluation on a reference set: pairs labelled by others, such as those of pharmacovigilance.

A pair names a head and either a tail or an outcome. An outcome stands for a set of concepts, any of which may be its
tail: the score of the pair is the highest of them. Pairs whose terms the graph does not have are counted, not scored.
For comparison, popularity rows use only how many facts the terms have: a model must beat them to be meaningful.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cogstage.corpus.tokens import casefold_text
from cogstage.errors import CogstageError, UsageError
from cogstage.evaluation.metrics import auroc, auroc_within
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.matching import Names
from cogstage.reporting import Table, interval_text
from cogstage.reporting.figures import UNDEFINED
from cogstage.statistics import interval, replicate
from cogstage.tables import read_rows
from cogstage.triples import TripleIndex, Triples

if TYPE_CHECKING:
    from cogstage.estimator import CogStage

Scorer = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(head ids, tail ids) -> a score for each pair, higher for likelier."""

RENAMES = {"drug": "head", "concept": "tail"}
LABELS = {"1": 1, "true": 1, "yes": 1, "positive": 1, "0": 0, "false": 0, "no": 0, "negative": 0}


@dataclass(frozen=True)
class ReferencePair:
    """A judged pair: a head, the names of the concepts that may be its tail, and the verdict."""

    head: str
    tails: tuple[str, ...]
    label: int
    outcome: str


@dataclass(frozen=True)
class ReferenceSet:
    """Labelled pairs of a head and the concepts of an outcome."""

    pairs: tuple[ReferencePair, ...]

    @classmethod
    def load(cls, path: Path | str, outcomes: Path | str | None = None) -> ReferenceSet:
        """Read a table with the columns head (or drug), label, and tail or outcome.

        ``outcomes`` is a table with the columns outcome and tail (or concept): the concepts of each outcome, one per
        row. Without it the tail itself is the outcome's only concept.
        """
        concepts = _outcome_concepts(Path(outcomes)) if outcomes is not None else {}
        pairs = []
        for row in read_rows(Path(path), required=("head", "label"), optional=("tail", "outcome"), renames=RENAMES):
            label = LABELS.get(str(row["label"]).strip().lower())
            if label is None:
                raise CogstageError(f"{row.where('label')}: {row['label']!r} is not a label; expected 1 or 0")
            outcome = str(row["outcome"] or row["tail"] or "")
            if not row["head"] or not outcome:
                raise CogstageError(f"{row.where()}: a pair needs a head and a tail or an outcome")
            tails = concepts.get(outcome, (str(row["tail"]),) if row["tail"] else ())
            if not tails and outcomes is None:
                raise UsageError(
                    f"{row.where()}: the outcome {outcome!r} has no tail; list its concepts in the table of `outcomes`"
                )
            pairs.append(ReferencePair(str(row["head"]), tails, label, outcome))
        if not pairs:
            raise UsageError(f"{path} contains no pairs")
        return cls(tuple(pairs))


@dataclass(frozen=True)
class MappedPairs:
    """The pairs whose terms are nodes of the graph, each with at least one tail, as flat arrays of candidates."""

    head: np.ndarray  # (C,) one row for each (pair, tail)
    tail: np.ndarray  # (C,)
    pair: np.ndarray  # (C,) number of the pair, 0..P-1
    label: np.ndarray  # (P,)
    outcome: np.ndarray  # (P,) number of the outcome
    first_head: np.ndarray  # (P,) the head, which the bootstrap draws by
    outcomes: tuple[str, ...]
    missing: tuple[str, ...]
    """Names that the graph does not have, each once."""
    asked: int
    """How many pairs the reference set has."""

    def highest(self, scores: np.ndarray) -> np.ndarray:
        """The highest score over the tails of each pair, (P,)."""
        best = np.full(len(self.label), -np.inf)
        np.maximum.at(best, self.pair, scores)
        return best


def map_pairs(reference: ReferenceSet, vocabulary: Vocabulary) -> MappedPairs:
    """Look up every name; a pair is left out if its head or all of its tails are missing.

    A name that no node has is matched as in a data set's hold-out: over spelling and word order, then over the salt of
    a drug. Where several nodes fit, the most frequent is taken.
    """
    found: dict[str, int | None] = {}
    names = Names.from_vocabulary(vocabulary)
    nodes: dict[str, int] = {}
    for node_id in np.argsort(vocabulary.count, kind="stable").tolist():
        nodes[vocabulary.concept[node_id] or vocabulary.term[node_id]] = node_id

    def node(name: str) -> int | None:
        if name not in found:
            known = vocabulary.index.get(name, vocabulary.casefolded.get(casefold_text(name)))
            if known is None:
                others = [nodes[concept] for concept in names.find_drug(name)]
                known = max(others, key=lambda other: int(vocabulary.count[other]), default=None)
            found[name] = known
        return found[name]

    outcomes = tuple(dict.fromkeys(pair.outcome for pair in reference.pairs))
    rows: list[tuple[int, int, int]] = []
    label: list[int] = []
    outcome: list[int] = []
    heads: list[int] = []
    for pair in reference.pairs:
        head = node(pair.head)
        tails = list(dict.fromkeys(t for t in map(node, pair.tails) if t is not None and t != head))
        if head is None or not tails:
            continue
        rows += [(head, tail, len(label)) for tail in tails]
        label.append(pair.label)
        outcome.append(outcomes.index(pair.outcome))
        heads.append(head)
    head_ids, tail_ids, number = np.array(rows, np.int64).reshape(-1, 3).T
    missing = tuple(name for name, place in found.items() if place is None)
    return MappedPairs(
        head_ids, tail_ids, number, np.array(label, np.int64), np.array(outcome, np.int64), np.array(heads, np.int64),
        outcomes, missing, len(reference.pairs),
    )  # fmt: skip


@dataclass(frozen=True)
class ReferenceResult:
    """Figures of the model and of the popularity rows on a reference set."""

    relation: str
    pairs: int
    covered: int
    positives: int
    known: int
    """Covered pairs with a tail that is a training fact of the model: it may have learned them by heart."""
    rows: dict[str, dict[str, Any]]
    """By row: ``overall`` and ``within`` as value and interval, and ``outcomes`` by name."""
    missing: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        names = ("relation", "pairs", "covered", "positives", "known", "rows")
        return {**{name: getattr(self, name) for name in names}, "missing": list(self.missing)}

    def table(self) -> Table:
        """One row per method, one column per outcome."""
        outcomes = list(next(iter(self.rows.values()))["outcomes"])
        rows = tuple(
            (
                name,
                _text(figures["overall"]),
                _text(figures["within"]),
                *(_text(figures["outcomes"][outcome]) for outcome in outcomes),
            )
            for name, figures in self.rows.items()
        )
        caption = (
            f"AUROC on the reference set, relation {self.relation}: {self.covered} of {self.pairs} pairs covered "
            f"({self.covered / self.pairs:.0%}), {self.positives} of them positive"
        )
        return Table(caption, ("score", "overall", "within outcome", *outcomes), rows, note=NOTE)

    def warnings(self) -> list[str]:
        """Return warnings about leakage and about simple scores that beat the model."""
        lines = []
        if self.known:
            lines.append(
                f"{self.known} of the {self.covered} covered pairs are training facts of the model; hold them out of "
                "the data set and train again"
            )
        model, *others = self.rows.items()
        for name, figures in others:
            if figures["overall"]["value"] > model[1]["overall"]["value"]:
                lines.append(
                    f"{name} alone (AUROC {figures['overall']['value']:.3f}) is better than the model "
                    f"({model[1]['overall']['value']:.3f})"
                )
        return lines


NOTE = (
    "95 % intervals by bootstrap over whole heads. Within outcome: only pairs of the same outcome are compared with "
    "each other, so that frequent outcomes have no advantage. Known facts are training facts of the relation."
)


def evaluate_on_reference(model: CogStage, reference: ReferenceSet, relation: str | None = None) -> ReferenceResult:
    """AUROC of a model on a reference set, for one of its relations (required if the model has several)."""
    if relation is None and len(model.relations) > 1:
        raise UsageError(f"the model has several relations; set `relation` to one of {', '.join(model.relations)}")
    name = relation or model.relations[0]
    model.check_relation(name)
    return evaluate_reference(
        reference,
        model.vocabulary,
        lambda head, tail: model.probabilities(head, tail, name),
        model.fitted.facts,
        model.all_relations,
        name,
        model.counts.ppmi,
    )


def evaluate_reference(
    reference: ReferenceSet,
    vocabulary: Vocabulary,
    scores: Scorer,
    facts: Triples,
    relations: Sequence[str],
    relation: str,
    ppmi: Scorer,
) -> ReferenceResult:
    """AUROC of ``scores`` on the reference set, overall and within outcome, next to popularity and PPMI.

    ``facts`` are the training facts of the model, whose relations count in ``relations``; ``ppmi`` gives the PPMI of
    pairs.
    """
    mapped = map_pairs(reference, vocabulary)
    if len(np.unique(mapped.label)) < 2:
        raise UsageError(
            f"only {len(mapped.label)} of {mapped.asked} reference pairs have both terms in the graph, and all of them "
            f"have the same label; missing terms: {', '.join(mapped.missing[:5])}"
        )
    number = list(relations).index(relation)
    own = facts.relation == number
    of_head, of_tail = (np.bincount(ids[own], minlength=len(vocabulary)) for ids in (facts.head, facts.tail))
    heads = of_head[mapped.first_head].astype(np.float64)
    tails = mapped.highest(of_tail[mapped.tail].astype(np.float64))
    known = TripleIndex(facts, len(relations), len(vocabulary)).contains(
        mapped.head, np.full(len(mapped.head), number), mapped.tail
    )
    measured = {
        "model": mapped.highest(np.asarray(scores(mapped.head, mapped.tail), np.float64)),
        "known facts of the head": heads,
        "known facts of the tail": tails,
        "known facts of head × tail": heads * tails,
        "PPMI": mapped.highest(np.asarray(ppmi(mapped.head, mapped.tail), np.float64)),
    }
    return ReferenceResult(
        relation,
        mapped.asked,
        len(mapped.label),
        int(mapped.label.sum()),
        int(mapped.highest(known.astype(np.float64)).sum()),
        {name: _figures(mapped, score) for name, score in measured.items()},
        mapped.missing,
    )


def _figures(mapped: MappedPairs, score: np.ndarray) -> dict[str, Any]:
    label, outcome = mapped.label, mapped.outcome

    def values(weights: np.ndarray) -> dict[str, np.ndarray]:
        found = {"overall": auroc(label, score, weights), "within": auroc_within(label, score, outcome, weights)}
        for number, name in enumerate(mapped.outcomes):
            rows = np.flatnonzero(outcome == number)
            found[f"outcome {name}"] = auroc(label[rows], score[rows], weights[:, rows])
        return found

    plain = values(np.ones((1, len(label))))
    drawn = replicate(values, mapped.first_head)
    figures = {name: {"value": float(plain[name][0]), "interval": list(interval(drawn[name]))} for name in plain}
    return {
        "overall": figures["overall"],
        "within": figures["within"],
        "outcomes": {name: figures[f"outcome {name}"] for name in mapped.outcomes},
    }


def _outcome_concepts(path: Path) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for row in read_rows(path, required=("outcome", "tail"), optional=(), renames=RENAMES):
        if row["outcome"] and row["tail"]:
            found.setdefault(str(row["outcome"]), []).append(str(row["tail"]))
    return {outcome: tuple(dict.fromkeys(names)) for outcome, names in found.items()}


def _text(figure: Mapping[str, Any]) -> str:
    return UNDEFINED if np.isnan(figure["value"]) else interval_text(figure["value"], *figure["interval"])
