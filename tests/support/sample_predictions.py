"""Hand-made prediction records for tests that need no model."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cogstage.rationale.record import (
    Alternative,
    Association,
    Order,
    PairEvidence,
    Prediction,
    ProfileEntry,
    Provenance,
    Reason,
    Signal,
    SignalValue,
    Term,
    sigmoid,
)
from cogstage.rationale.verdict import Profiles

HEAD = Term("C1", "Aspirin", "drug")
TAIL = Term("C2", "Headache", "symptom")
DRUGS = [Term(f"D{i}", name, "drug") for i, name in enumerate(["Caffeine", "Paracetamol <500 mg>", "Ibuprofen"])]
DISORDERS = [
    Term(f"S{i}", name, "disorder")
    for i, name in enumerate(
        ["Migraine", "Pain", "Cluster headache with a very long descriptive name indeed, yes", "Fever"]
    )
]
RELATIONS = ("may_treat", "causes", "contraindicates_inverse", "may_prevent", "symptom_of")
BASELINE = -0.25


def reason(rank: int) -> Reason:
    """The ``rank``-th strongest of the sample's reasons: even ones change the tail, odd ones the head."""
    share = 1.5 / (rank + 1) * (1 if rank % 3 else -1)
    association = Association(0.9 / (rank + 1), 0.2 / (rank + 1), rank + 1, None if rank % 2 else 12 + rank, 1.5)
    changes_tail = rank % 2 == 0
    return Reason(
        head=HEAD if changes_tail else DRUGS[rank % 3],
        relation=RELATIONS[rank % 5],
        tail=DISORDERS[rank % 4] if changes_tail else TAIL,
        share=share,
        effect=-0.9 * share,
        relation_probability=1.0 if rank % 4 == 0 else 0.8,
        known_fact=rank % 4 == 0,
        types_fit=True,
        count=5 if rank % 2 else None,
        ppmi=1.25 if rank % 2 else None,
        head_association=None if changes_tail else association,
        tail_association=association if changes_tail else None,
        order=None if rank % 3 == 0 else Order(34, 5, 2),
    )


def profile(
    logits: dict[str, float], known: Sequence[str] = (), wrong: Sequence[str] = (), unfit: Sequence[str] = ()
) -> tuple[ProfileEntry, ...]:
    """The profile of a pair whose relations have these log-odds."""
    names = tuple(logits)
    known_flags, misfits, wrong_flags = (
        np.array([[name in chosen for name in names]]) for chosen in (known, unfit, wrong)
    )
    logit = np.array([list(logits.values())], float)
    return Profiles.judge(names, logit, known_flags, ~misfits, np.array([True]), wrong_flags).entries()[0]


def judged(record: Prediction, logits: dict[str, float], **flags: Sequence[str]) -> Prediction:
    """The record with another profile; its own figures follow the profile."""
    entries = profile(logits, **flags)
    own = next(entry for entry in entries if entry.relation == record.relation)
    return replace(
        record,
        profile=entries,
        probability=own.probability,
        logit=own.logit,
        baseline=record.baseline + own.logit - record.logit,
        known_fact=own.known_fact,
        types_fit=own.types_fit,
    )


def inapplicable(record: Prediction) -> Prediction:
    """The record of a question whose relation does not join terms of these types."""
    swapped = Alternative(record.tail, record.relation, record.head)
    logits = {record.relation: record.logit, "causes": -1.5}
    return replace(judged(record, logits, unfit=(record.relation,)), alternatives=(swapped,))


def prediction(size: int = 5) -> Prediction:
    """A prediction with ``size`` reasons."""
    reasons = [reason(rank) for rank in range(size)]
    pair = PairEvidence(7, 2.5, 0.3, 0.4, 0.2)
    logit = BASELINE + pair.share + sum(entry.share for entry in reasons)
    return Prediction(
        head=HEAD,
        relation="may_treat",
        tail=TAIL,
        probability=sigmoid(logit),
        logit=logit,
        baseline=BASELINE,
        pair=pair,
        reasons_for=tuple(entry for entry in reasons if entry.share > 0),
        reasons_against=tuple(entry for entry in reasons if entry.share < 0),
        rest=0.0,
        base_rate=0.5,
        known_fact=False,
        types_fit=True,
        effective_reasons=4.5,
        provenance=Provenance("m" * 8, "g" * 8, "0.2.0"),
        profile=profile({"may_treat": logit, "causes": -1.5, "symptom_of": -3.0}),
        order=Order(3, 4, 1),
        signal=Signal(
            12,
            40,
            60,
            1000,
            "patients",
            SignalValue(8.29, 4.0, 17.2),
            SignalValue(6.1, 3.6, 10.4),
            SignalValue(2.1, 1.1, 2.8),
        ),
    )
