"""The tables of a report on a crossover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cogstage.reporting import Section, Table, estimate_text, interval_text, minus, p_text
from cogstage.study.crossover import CrossoverResults, Measure
from cogstage.study.mixed import NEEDS_STATSMODELS, has_statsmodels
from cogstage.study.plots import arms


def crossover_sections(results: CrossoverResults) -> list[Section]:
    """The figures of each arm, the differences between arms, and the plots."""
    blocks: list[Any] = [_arm_table(results), _difference_table(results, results.measures)]
    known = [(name, measure) for name, measure in results.by_familiarity.items()]
    if known:
        rows = tuple((name, *_arm_cells(measure)) for name, measure in known)
        note = "; ".join(f"{name}: n = {_arm_counts(measure)}" for name, measure in known)
        blocks.append(Table("Accuracy by familiarity", ("pairs", *results.study.arms), rows, note=f"{note}."))
    shares = [measure for measure in results.measures[:3] if any(e.defined for e in measure.arms.values())]
    if shares:
        blocks.append(arms(shares))
    return [Section("Do reasons help?", blocks)]


def _arm_table(results: CrossoverResults) -> Table:
    """The figures of each arm, with their denominators in the caption."""
    about = "; ".join(f"{m.name}: {m.about} (n = {_arm_counts(m)})" for m in results.measures)
    hidden = (
        " Reviewers of the arm without a prediction could not follow it: there, over- and under-reliance say how often "
        "they came to the same verdict by themselves."
    )
    return Table(
        "Judging with and without reasons",
        ("measure", *results.study.arms),
        tuple((m.name, *_arm_cells(m)) for m in results.measures),
        note=(
            f"{len(results.counted)} reviewers, {len(results.study.cases)} pairs. Accuracy is the primary measure. "
            f"{about}, in the order of the columns.{hidden if results.study.evidence_arm else ''}"
        ),
        label="tab:study-crossover",
    )


def _arm_cells(measure: Measure) -> list[str]:
    return [estimate_text(estimate, 1 if measure.is_ratio else 2, n=False) for estimate in measure.arms.values()]


def _arm_counts(measure: Measure) -> str:
    return ", ".join(str(estimate.n) for estimate in measure.arms.values())


def _difference_table(results: CrossoverResults, measures: Sequence[Measure]) -> Table:
    rows: list[tuple[str, ...]] = []
    for measure in measures:
        sign = "×" if measure.is_ratio else ""
        for contrast in measure.contrasts:
            effect, other = contrast.effect, contrast.other_pairs
            figure = interval_text(effect.difference, effect.low, effect.high, 2) if effect.defined else "–"
            p_value = p_text(effect.p_value) if effect.defined else "–"
            between = f"{sign}{estimate_text(other, n=False)}" if other.defined else "–"
            rows.append((measure.name, contrast.name, sign + minus(figure), p_value, between))
            if mixed := contrast.mixed:
                figure = minus(interval_text(mixed.difference, mixed.low, mixed.high, 2))
                rows.append((f"{measure.name}, mixed model", contrast.name, figure, p_text(mixed.p_value), "–"))
    reviewers = max((c.effect.reviewers for m in measures for c in m.contrasts), default=0)
    return Table(
        "Differences between the arms",
        ("measure", "arms", "difference", "p", "for other pairs, too"),
        tuple(rows),
        left=2,
        note=(
            f"n = {reviewers} reviewers. Brackets contain 95 % intervals: of the t test over reviewers, and of a "
            "bootstrap over reviewers and pairs. Time is compared by its ratio. Mixed model: sensitivity analysis with "
            "crossed random effects of reviewers and pairs."
        ),
        label="tab:study-crossover-differences",
    )


def crossover_notes(draws: int) -> list[str]:
    """What a reader needs to know of the design and its analysis."""
    return [
        *([] if has_statsmodels() else [NEEDS_STATSMODELS]),
        "Each reviewer judges every pair once, an equal part of them in each arm. Reviewers in twos (in threes, with "
        "an arm without predictions) judge the same pairs in different arms. The order of the periods is balanced.",
        "Difference: least squares with effects of reviewer, pair and arm, periods balanced; the reviewer is the unit "
        "of the t test and of its 95 % interval.",
        f"For other pairs, too: the plain difference with a 95 % interval from {draws:,} bootstrap samples of "
        "reviewers and of pairs; it is wider and also generalises to pairs that were not in the study. Intervals of the two "
        "arms resample reviewers.",
    ]
