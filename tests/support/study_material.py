"""Prediction records and small studies for tests, written here so that no model is needed."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

from sample_predictions import profile

from cogstage.rationale.record import Association, Prediction, Provenance, Term
from cogstage.rationale.record import Reason as RecordReason
from cogstage.study.draw import StudyOptions, draw_study
from cogstage.study.protocol import Study
from cogstage.study.sources import ExplainedPair, Source, WeightedTriple, explained, pair_of

SECRET = "0" * 64  # behind every random order of a test

DRUGS = ["cefuroxime", "azelastine", "aspirin", "ibuprofen", "metformin", "lisinopril", "warfarin", "amoxicillin"]
DISORDERS = ["bacterial infection", "allergic rhinitis", "headache", "type 2 diabetes", "hypertension", "fever"]
CONTEXT = ["sulbactam", "pseudoephedrine", "pain relief", "low grade fever", "nasal congestion", "insulin", "stroke"]


def term(name: str) -> Term:
    return Term(key=name, name=name, type="")


def rationale(head: str, relation: str, tail: str, share: float) -> RecordReason:
    like = Association(0.1, 0.1, 1, 7, 1.5)
    return RecordReason(term(head), relation, term(tail), share, -share, 0.8, False, None, None, None, like, like)


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
    logit = math.log(probability / (1 - probability))
    baseline = logit - sum(entry.share for entry in triples)
    return Prediction(
        term(head), "may_treat", term(tail), probability, logit, baseline, None, triples, (), 0.0, 0.5, False, None,
        5.0, Provenance("modelhash", "graphhash", "0", world), profile({"may_treat": logit}),
    )  # fmt: skip


@cache
def sources(worlds: tuple[str, ...] = ("open", "closed")) -> tuple[list[Source], dict[tuple[str, str, str], int]]:
    """48 pairs: 30 true positives, 6 false positives, 6 false negatives, 6 on which the sources differ."""
    made = {
        world: {pair_of(entry): explained(entry) for entry in entries} for world, entries in records(worlds).items()
    }
    labels = {pair: 0 if 30 <= number < 36 else 1 for number, pair in enumerate(made[worlds[0]])}
    return [Source(world, predictions, {}) for world, predictions in made.items()], labels


def records(worlds: tuple[str, ...] = ("open", "closed")) -> dict[str, list[Prediction]]:
    """The prediction records behind them."""
    found: dict[str, list[Prediction]] = {world: [] for world in worlds}
    pairs = [(drug, disorder) for drug in DRUGS for disorder in DISORDERS]
    for number, (drug, disorder) in enumerate(pairs):
        for world in worlds:
            positive = number < 36 or (number >= 42 and world == worlds[0])
            found[world].append(prediction(drug, disorder, 0.9 if positive else 0.2, world))
    return found


def crossover_source(quarter: int = 6) -> tuple[Source, dict[tuple[str, str, str], int]]:
    """``quarter`` pairs of each outcome, with reasons for and against."""
    labels: dict[tuple[str, str, str], int] = {}
    predictions: dict[tuple[str, str, str], ExplainedPair] = {}
    for number, (probability, label) in enumerate([(0.9, 1), (0.9, 0), (0.1, 1), (0.1, 0)]):
        for n in range(quarter):
            pair = (f"drug {number}", "may_treat", f"disease {n}")
            reasons = tuple(
                WeightedTriple(
                    f"reason {number} {n} {k}", "may_treat", f"sign {k}", (0.5 - k) * (1 if probability > 0.5 else -1)
                )
                for k in range(3)
            )
            predictions[pair] = ExplainedPair(pair[0], pair[1], pair[2], probability, reasons)
            labels[pair] = label
    return Source("model", predictions, labels), labels


def crossover_study(pairs: int = 8, **options: object) -> Study:
    """A crossover of eight pairs unless options say otherwise."""
    source, labels = crossover_source(max(6, pairs // 4))
    made = StudyOptions(**{"protocol": "crossover", "pairs_per_reviewer": pairs, "seed": 3, **options})  # type: ignore[arg-type]
    return draw_study([source], labels, made)


def small_study(worlds: tuple[str, ...] = ("open", "closed"), **options: object) -> Study:
    """A study of four cases unless options say otherwise."""
    made, labels = sources(worlds)
    return draw_study(made, labels, StudyOptions(**{"cases": 4, "seed": 3, **options}))  # type: ignore[arg-type]


def write_sources(folder: Path, worlds: tuple[str, ...] = ("open", "closed")) -> list[Path]:
    """The same as files of records with labels."""
    _, labels = sources(worlds)
    paths = []
    for world, entries in records(worlds).items():
        path = folder / f"{world}.jsonl"
        lines = [json.dumps({**entry.to_dict(), "label": labels[pair_of(entry)]}) for entry in entries]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        paths.append(path)
    return paths
