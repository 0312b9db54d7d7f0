"""The queue of assumptions, against predictions repeated with each verdict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_model import save_small_data, small_data, small_model

from cogstage.errors import UsageError
from cogstage.estimator import CogStage
from cogstage.rationale.corrections import Correction, Corrections
from cogstage.review.queue import Assumption, dev_pairs, pairs_of_table, queue_table, review_queue

PAIRS = [(0, 5, None), (2, 7, "may_treat"), (4, 9, "causes"), (10, 3, None), (6, 11, "may_treat")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> CogStage:
    return CogStage.load(small_model(tmp_path_factory.getbasetemp()))


def predictions(model: CogStage) -> np.ndarray:
    """Every prediction of the stated pairs, one after another."""
    values = []
    for head, tail, relation in PAIRS:
        for name in model.relations if relation is None else (relation,):
            values.append(model.probabilities([head], [tail], name)[0])
    return np.array(values)


def slow_changes(model: CogStage, entry: Assumption) -> list[float]:
    """The summed absolute change if it is right, and if it is wrong, by predicting again."""
    before = predictions(model)
    return [
        float(np.abs(predictions(model.with_verdicts({entry.triple: verdict})) - before).sum())
        for verdict in (True, False)
    ]


def test_changes_are_those_of_predicting_again_with_each_verdict(model: CogStage) -> None:
    queue = review_queue(model, PAIRS)
    assert len(queue) > 40
    rng = np.random.default_rng(0)
    for entry in [*queue[:10], *(queue[n] for n in rng.choice(len(queue), 15))]:
        right, wrong = slow_changes(model, entry)
        assert entry.change_right == pytest.approx(right, abs=1e-6)
        assert entry.change_wrong == pytest.approx(wrong, abs=1e-6)
        expected = entry.probability * right + (1 - entry.probability) * wrong
        # the probability of a triple is the same in all predictions
        assert entry.change == pytest.approx(expected, abs=1e-6)
    changes = [entry.change for entry in queue]
    assert changes == sorted(changes, reverse=True)
    assert len({entry.triple for entry in queue}) == len(queue)


def test_no_assumption_that_matters_is_missing(model: CogStage) -> None:
    """Every reason of the predictions that is no known fact is in the queue."""
    triples = {entry.triple for entry in review_queue(model, PAIRS)}
    for head, tail, relation in PAIRS:
        for name in model.relations if relation is None else (relation,):
            for reason in model.predict_batch([head], [tail], name)[0].reasons:
                forward, inverse = reason.relation.removesuffix("_inverse"), reason.relation.endswith("_inverse")
                ends = (reason.tail.key, reason.head.key) if inverse else (reason.head.key, reason.tail.key)
                assert ((ends[0], forward, ends[1]) in triples) == (not reason.known_fact)


def test_a_verdict_takes_an_assumption_off_the_queue(model: CogStage) -> None:
    queue = review_queue(model, PAIRS, top=2)
    assert queue == review_queue(model, PAIRS)[:2]
    for entry, verdict in zip(queue, (True, False), strict=True):
        rest = review_queue(model.with_verdicts({entry.triple: verdict}), PAIRS)
        assert entry.triple not in {other.triple for other in rest}


def test_the_table_of_the_queue_is_a_table_of_corrections(model: CogStage, tmp_path: Path) -> None:
    queue = review_queue(model, PAIRS, top=3)
    text = queue_table(queue)
    header, *rows = text.splitlines()
    filled = [row.split("\t") for row in rows]
    for cells, verdict in zip(filled, ("right", "wrong", "right"), strict=True):
        cells[3] = verdict
    path = tmp_path / "queue.tsv"
    path.write_text("\n".join([header, *("\t".join(cells) for cells in filled)]) + "\n")
    corrections = Corrections.read(path)
    assert corrections.entries[1] == Correction(*queue[1].triple, "wrong")
    assert corrections.verdicts(model.vocabulary, model.all_relations)[queue[0].triple] is True


def test_pairs_come_from_a_table_or_a_data_set(model: CogStage, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("head\ttail\trelation\nC000\tC005\t\nDrug number 2\tC007\tmay_treat\nC001\tnothing\t\n")
    pairs, bad = pairs_of_table(model, path)
    assert pairs == PAIRS[:2]
    assert bad.count == 1
    _, data = small_data()
    expected = sum(len(data.pairs(relation, "dev").head) for relation in model.relations)
    assert len(dev_pairs(model, save_small_data(tmp_path / "data"))) == expected
    with pytest.raises(UsageError, match="no pair"):
        review_queue(model, [])
