"""Prediction records and small studies for tests, written here so that no model is needed."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from cogstage.rationale.record import Prediction, Provenance, Rationale, Recall, Term
from cogstage.study.draw import StudyOptions, draw_study
from cogstage.study.protocol import Study
from cogstage.study.sources import Source, pair_of

DRUGS = ["cefuroxime", "azelastine", "aspirin", "ibuprofen", "metformin", "lisinopril", "warfarin", "amoxicillin"]
DISORDERS = ["bacterial infection", "allergic rhinitis", "headache", "type 2 diabetes", "hypertension", "fever"]
CONTEXT = ["sulbactam", "pseudoephedrine", "pain relief", "low grade fever", "nasal congestion", "insulin", "stroke"]


def term(name: str) -> Term:
    return Term(key=name, name=name, type="")


def rationale(head: str, relation: str, tail: str, score: float) -> Rationale:
    recall = Recall(0.1, 1, 7, 1.5)
    return Rationale(term(head), relation, term(tail), score, score, 1.0, score / 2, recall, recall, False, None, None)


def prediction(head: str, tail: str, probability: float, world: str, number: int = 7) -> Prediction:
    """A record whose rationales tell the worlds apart, so that a test can see which set is where."""
    shift = 0 if world == "open" else 3
    triples = tuple(
        rationale(
            DRUGS[(n + shift) % len(DRUGS)],
            "may_treat" if n % 2 else "may_prevent",
            f"{CONTEXT[(n + shift) % len(CONTEXT)]} {world[0]}{n}",
            1.0 / (n + 2),
        )
        for n in range(number)
    )
    return Prediction(
        term(head), "may_treat", term(tail), probability, probability, False, False, triples, 900, 70.0,
        Provenance("modelhash", "graphhash", "0", world),
    )  # fmt: skip


@cache
def sources(worlds: tuple[str, ...] = ("open", "closed")) -> tuple[list[Source], dict[tuple[str, str, str], int]]:
    """48 pairs: 30 true positives, 6 false positives, 6 false negatives, 6 on which the sources differ."""
    labels: dict[tuple[str, str, str], int] = {}
    found: dict[str, list[Prediction]] = {world: [] for world in worlds}
    pairs = [(drug, disorder) for drug in DRUGS for disorder in DISORDERS]
    for number, (drug, disorder) in enumerate(pairs):
        label = 0 if 30 <= number < 36 else 1
        for world in worlds:
            positive = number < 36 or (number >= 42 and world == worlds[0])
            found[world].append(prediction(drug, disorder, 0.9 if positive else 0.2, world))
        labels[drug, "may_treat", disorder] = label
    return [Source(world, {pair_of(entry): entry for entry in found[world]}, {}) for world in worlds], labels


def small_study(worlds: tuple[str, ...] = ("open", "closed"), **options: object) -> Study:
    """A study of four cases unless options say otherwise."""
    made, labels = sources(worlds)
    return draw_study(made, labels, StudyOptions(**{"cases": 4, "seed": 3, **options}))  # type: ignore[arg-type]


def write_sources(folder: Path, worlds: tuple[str, ...] = ("open", "closed")) -> list[Path]:
    """The same as files of records with labels."""
    made, labels = sources(worlds)
    paths = []
    for source in made:
        path = folder / f"{source.name}.jsonl"
        lines = [json.dumps({**entry.to_dict(), "label": labels[pair]}) for pair, entry in source.predictions.items()]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        paths.append(path)
    return paths
