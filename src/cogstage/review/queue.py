"""The queue of assumptions: those first whose verdict is expected to change predictions most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.errors import UsageError
from cogstage.estimator import CogStage
from cogstage.progress import SILENT, Progress
from cogstage.rationale.evidence import Term, Triple
from cogstage.rationale.predictor import DefaultPredictor
from cogstage.relations import phrase
from cogstage.reporting import csv_text
from cogstage.review.effects import effects, lift_of_facts
from cogstage.tables import BadRows, read_rows

BATCH = 128  # pairs at a time
SMALLEST = 1e-9  # an expected change below it does not count

AskedPair = tuple[int, int, str | None]  # head, tail, relation (None: all relations of the model)


@dataclass(frozen=True)
class Assumption:
    """A triple that is no known fact and that nobody has marked, with the change that a verdict on it makes."""

    head: Term
    relation: str
    tail: Term
    probability: float  # of the triple, by the recognition stage
    change: float  # expected: probability × change_right + (1 - probability) × change_wrong
    change_right: float  # summed absolute change of all predictions if it is marked right
    change_wrong: float  # and if it is marked wrong
    predictions: int  # how many predictions change

    @property
    def triple(self) -> Triple:
        """Keys and relation."""
        return self.head.key, self.relation, self.tail.key

    @property
    def words(self) -> str:
        """The triple as a sentence."""
        return f"{self.head.name} {phrase(self.relation)} {self.tail.name}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def review_queue(
    model: CogStage, pairs: Sequence[AskedPair], top: int | None = None, progress: Progress = SILENT
) -> list[Assumption]:
    """Rank the assumptions behind the predictions of ``pairs``, most important first.

    The order is by the sum over all predictions of the expected absolute change of their calibrated probability.
    Triples that are known facts, were marked already, or do not fit the types of their terms are left out.
    """
    predictor = model.predictor
    if not isinstance(predictor, DefaultPredictor):
        raise UsageError("review needs a model of the default preset")
    if not pairs:
        raise UsageError("there is no pair to predict; give `pairs` or a `dataset`")
    n_relations, n_nodes = len(model.all_relations), len(model.vocabulary)
    progress.start("Effects of verdicts", len(pairs))
    parts = []
    for begin in range(0, len(pairs), BATCH):
        batch = pairs[begin : begin + BATCH]
        parts.append(_batch_effects(model, predictor, batch, n_nodes))
        progress.advance(len(batch))
    key, sums = _sum_by_key(np.concatenate([k for k, _ in parts]), np.concatenate([s for _, s in parts], 1))
    order = np.lexsort((key, -sums[0]))[:top]
    progress.done(f"{len(key):,} assumptions")
    explainer = model.explainer
    queue = []
    for at in order:
        (head, relation), tail = divmod(int(key[at]) // n_nodes, n_relations), int(key[at]) % n_nodes
        change, right, wrong, number, weighted = sums[:, at]
        queue.append(
            Assumption(
                explainer.term(head),
                model.all_relations[relation],
                explainer.term(tail),
                float(weighted / number),
                float(change),
                float(right),
                float(wrong),
                round(number),
            )
        )
    return queue


def _batch_effects(
    model: CogStage, predictor: DefaultPredictor, batch: Sequence[AskedPair], n_nodes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Keys of triples, and five sums of each: expected change, change if right, if wrong, predictions, probability."""
    head = np.array([pair[0] for pair in batch], np.int64)
    tail = np.array([pair[1] for pair in batch], np.int64)
    view = predictor.view(head, tail)
    lifted = lift_of_facts(predictor.prepared.recognition, view)
    n_relations = len(model.all_relations)
    probability = (1 / (1 + np.exp(-view.score.astype(np.float64)))).reshape(len(batch), -1)
    assumed = ((view.score != 0) & ~view.known).reshape(len(batch), -1)
    keys = _keys(view.head, view.tail, view.association, n_relations, n_nodes)
    reasons = predictor.network.config.reasons
    parts = []
    for target, weights in predictor.network.decisions.items():
        name = model.all_relations[target]
        asked = np.array([relation in (None, name) for *_, relation in batch])[:, None]
        if not asked.any():
            continue
        made = effects(weights, view, lifted, reasons, model.calibration[name])
        right, wrong = np.abs(made.right), np.abs(made.wrong)
        change = probability * right + (1 - probability) * wrong
        chosen = asked & assumed & (change > SMALLEST)
        sums = np.stack([change, right, wrong, np.ones_like(change), probability])[:, chosen]
        parts.append((keys[chosen], sums))
    return _sum_by_key(np.concatenate([k for k, _ in parts]), np.concatenate([s for _, s in parts], 1))


def _keys(head: np.ndarray, tail: np.ndarray, association: np.ndarray, n_relations: int, n_nodes: int) -> np.ndarray:
    """A number for the triple at each position, the same for a triple and its inverse. int64 (B, M)"""
    relation = np.arange(2 * n_relations)
    one = np.stack([np.broadcast_to(head[:, None], association[:, 0].shape), association[:, 1]], 1)[..., None]
    other = np.stack([association[:, 0], np.broadcast_to(tail[:, None], association[:, 1].shape)], 1)[..., None]
    forward = relation < n_relations
    first, last = np.where(forward, one, other), np.where(forward, other, one)
    keys: np.ndarray = (first.astype(np.int64) * n_relations + relation % n_relations) * n_nodes + last
    return keys.reshape(len(head), -1)


def _sum_by_key(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys, and the sums of their values (C, n) -> (C, distinct)."""
    distinct, row = np.unique(keys, return_inverse=True)
    sums = [np.bincount(row.ravel(), weights=line, minlength=len(distinct)) for line in values]
    return distinct, np.array(sums).reshape(len(values), len(distinct))


def pairs_of_table(model: CogStage, path: Path) -> tuple[list[AskedPair], BadRows]:
    """The pairs of a table (head, tail and optionally relation), and the rows that cannot be used."""
    bad = BadRows(skip=True)
    pairs: list[AskedPair] = []
    for row in read_rows(path, required=("head", "tail"), optional=("relation",), bad=bad):
        try:
            head, tail = (model.vocabulary.find(str(row[side])) for side in ("head", "tail"))
            model.check_pair(head, tail)
            if row["relation"]:
                model.check_relation(str(row["relation"]))
            pairs.append((head, tail, str(row["relation"]) if row["relation"] else None))
        except UsageError as error:
            bad.report(f"{row.where()}: {error}")
    return pairs, bad


def dev_pairs(model: CogStage, dataset: Path) -> list[AskedPair]:
    """The dev pairs of a data set, each with its relation."""
    from cogstage.knowledge.dataset import Dataset

    data = Dataset.load(dataset)
    data.check_fits(model.vocabulary)
    pairs: list[AskedPair] = []
    for relation in model.relations:
        split = data.pairs(relation, "dev")
        pairs += [(int(h), int(t), relation) for h, t in zip(split.head, split.tail, strict=True)]
    return pairs


def queue_table(queue: Sequence[Assumption]) -> str:
    """The queue as TSV whose first columns are those of a table of corrections: fill in ``verdict`` and use it."""
    columns = (
        *("head", "relation", "tail", "verdict", "who", "when", "why", "statement"),
        *("change", "probability", "change_if_right", "change_if_wrong", "predictions"),
    )
    rows = [
        (
            *(entry.triple), "", "", "", "", entry.words, f"{entry.change:.6f}", f"{entry.probability:.4f}",
            f"{entry.change_right:.6f}", f"{entry.change_wrong:.6f}", entry.predictions,
        )
        for entry in queue
    ]  # fmt: skip
    return csv_text(columns, rows, delimiter="\t")
