"""Agreement between reviewers, and of each reviewer with themselves on cases shown twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cogstage.statistics import (
    Bootstrap,
    Estimate,
    alpha_of_coincidences,
    coincidences,
    disagreement,
    kappa_of_table,
    pair_tables,
)
from cogstage.study.judgements import Judgement
from cogstage.study.protocol import Study

SCORE_LEVELS = 4
FEWEST_UNITS = 10  # fewer units are too few for κ and α
Unit = tuple[str, str, int]  # case, source, rationale


@dataclass(frozen=True)
class Agreement:
    """One figure of agreement; not defined below ten shared units."""

    question: str
    measure: str
    who: str
    estimate: Estimate


def agreement(
    study: Study, answered: Sequence[Judgement], reviewers: Sequence[str], boot: Bootstrap
) -> tuple[Agreement, ...]:
    """Krippendorff's α over all, Cohen's κ for each two, and both for each reviewer with themselves."""
    made: list[Agreement] = []
    for question, levels, units_of in (
        ("score of a reason", SCORE_LEVELS, _score_units),
        ("preference between sets", 3, lambda some: _preference_units(study, some)),
        ("verdict on a pair", 2, _verdict_units),
    ):
        first = {
            name: units_of([j for j in answered if j.reviewer == name and j.case.repeat_of is None])
            for name in reviewers
        }
        again = {
            name: units_of([j for j in answered if j.reviewer == name and j.case.repeat_of is not None])
            for name in reviewers
        }
        if not any(first.values()):
            continue
        if len(reviewers) > 1:
            made.append(_alpha(question, f"all {len(reviewers)} reviewers", list(first.values()), levels, boot))
        for a, b in combinations(reviewers, 2):
            made.append(_kappa(question, f"{a} and {b}", first[a], first[b], levels, boot))
        for name in reviewers:
            if again[name]:
                once = {unit: value for unit, value in first[name].items() if unit in again[name]}
                who = f"{name} with themselves"
                made.append(_kappa(question, who, once, again[name], levels, boot))
                made.append(_alpha(question, who, [once, again[name]], levels, boot))
    return tuple(made)


def _score_units(answered: Sequence[Judgement]) -> dict[Unit, float]:
    return {
        (j.case.repeat_of or j.case.key, source, n): float(score)
        for j in answered
        for source, scores in j.scores.items()
        for n, score in enumerate(scores)
        if score is not None
    }


def _preference_units(study: Study, answered: Sequence[Judgement]) -> dict[Unit, float]:
    return {
        (j.case.repeat_of or j.case.key, f"{a}/{b}", 0): float(sign + 1)
        for j in answered
        for a, b in combinations(study.sources, 2)
        if (sign := j.preference(a, b)) is not None
    }


def _verdict_units(answered: Sequence[Judgement]) -> dict[Unit, float]:
    return {(j.case.key, "verdict", 0): float(j.verdict) for j in answered if j.verdict is not None}


def _matrix(raters: Sequence[dict[Unit, float]]) -> tuple[list[Unit], np.ndarray]:
    units = sorted(unit for unit in set().union(*raters) if sum(unit in rater for rater in raters) > 1)
    rows = [[rater.get(unit, math.nan) for unit in units] for rater in raters]
    return units, np.array(rows, dtype=float).reshape(len(raters), len(units))


def _alpha(question: str, who: str, raters: Sequence[dict[Unit, float]], levels: int, boot: Bootstrap) -> Agreement:
    units, matrix = _matrix(raters)
    estimate = boot([unit[0] for unit in units], coincidences(matrix, levels), alpha_of_coincidences)
    return Agreement(question, "Krippendorff's α, ordinal", who, _enough(estimate))


def _kappa(
    question: str, who: str, a: dict[Unit, float], b: dict[Unit, float], levels: int, boot: Bootstrap
) -> Agreement:
    units, matrix = _matrix([a, b])
    weight = disagreement(levels)
    tables = pair_tables(matrix[0], matrix[1], levels)
    estimate = boot([unit[0] for unit in units], tables, lambda table: kappa_of_table(table, weight))
    return Agreement(question, "Cohen's κ, quadratic weights", who, _enough(estimate))


def _enough(estimate: Estimate) -> Estimate:
    return estimate if estimate.n >= FEWEST_UNITS else Estimate(math.nan, math.nan, math.nan, estimate.n)
