"""Hand-made prediction records for tests that need no model."""

from cogstage.rationale.record import Prediction, Provenance, Rationale, Recall, Term

HEAD = Term("C1", "Aspirin", "drug")
TAIL = Term("C2", "Headache", "symptom")
DRUGS = [Term(f"D{i}", name, "drug") for i, name in enumerate(["Caffeine", "Ibuprofen", "Paracetamol <500 mg>"])]
DISORDERS = [
    Term(f"S{i}", name, "disorder")
    for i, name in enumerate(
        ["Migraine", "Pain", "Cluster headache with a very long descriptive name indeed, yes", "Fever"]
    )
]
RELATIONS = ("may_treat", "causes", "contraindicates_inverse", "may_prevent", "symptom_of")


def rationale(rank: int) -> Rationale:
    """The ``rank``-th strongest of the sample's assumptions."""
    attention = 0.5 / (rank + 1)
    return Rationale(
        head=DRUGS[rank % 3],
        relation=RELATIONS[rank % 5],
        tail=DISORDERS[rank % 4],
        score=attention * 0.8,
        attention=attention,
        relation_probability=0.8,
        contribution=attention * (1 if rank % 3 else -1),
        head_recall=Recall(0.02 / (rank + 1), rank + 1, 12 + rank, 1.5),
        tail_recall=Recall(0.03 / (rank + 1), rank + 1, None, None),
        known_fact=rank % 2 == 0,
        types_fit=True,
        cooccurrence=5 if rank % 2 else None,
    )


def prediction(size: int = 5) -> Prediction:
    """A prediction with ``size`` rationales."""
    return Prediction(
        head=HEAD,
        relation="may_treat",
        tail=TAIL,
        probability=0.91,
        raw_probability=0.95,
        calibrated=True,
        known_fact=False,
        rationales=tuple(rationale(rank) for rank in range(size)),
        assumptions=1024,
        effective_assumptions=17.5,
        provenance=Provenance("m" * 8, "g" * 8, "0.1.0"),
    )
