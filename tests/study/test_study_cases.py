"""Which predictions become cases of a study, and how the same reason in two sets is asked."""

from __future__ import annotations

import numpy as np
import pytest
from study_material import SECRET, crossover_study, small_study

from cogstage.errors import UsageError
from cogstage.study.blind import BlindForm
from cogstage.study.crossover import analyse_crossover
from cogstage.study.draw import StudyOptions, draw_study
from cogstage.study.judgements import Judgement
from cogstage.study.placement import place_cases
from cogstage.study.protocol import RationaleSet, Study, StudyCase
from cogstage.study.sources import ExplainedPair, Source, WeightedTriple

PAIR = ("D1", "may_treat", "S1")


def study_of(probability: float, contradicted: bool = False, threshold: float = 0.5) -> Study:
    """A study whose only case is a true pair, if a source predicts it positive."""
    sources = []
    for name in ("one", "two"):
        reasons = (WeightedTriple(name, "may_treat", "b", 1.0), WeightedTriple(name, "may_treat", "d", -0.5))
        given = ExplainedPair("Aspirin", "may_treat", "Headache", probability, reasons, contradicted)
        sources.append(Source(name, {PAIR: given}, {}))
    return draw_study(sources, {PAIR: 1}, StudyOptions(cases=1, threshold=threshold))


@pytest.mark.parametrize("threshold", [0.5, 0.7])
def test_a_probability_at_the_threshold_is_a_positive_prediction(threshold: float) -> None:
    assert study_of(threshold, threshold=threshold).cases[0].outcome == "true_positive"
    with pytest.raises(UsageError, match="only 0 labelled"):
        study_of(np.nextafter(threshold, 0.0), threshold=threshold)


def test_a_contradicted_prediction_is_not_positive() -> None:
    with pytest.raises(UsageError, match="only 0 labelled"):
        study_of(0.9, contradicted=True)


def test_a_reason_in_two_sets_is_asked_once_and_its_score_counts_for_both() -> None:
    study = small_study()
    first, second = study.cases[0].sets
    shared = RationaleSet(second.source, (first.rationales[1], *second.rationales[1:]))
    old = study.cases[0]
    case = StudyCase(old.key, old.head, old.relation, old.tail, old.label, old.outcome, (first, shared))
    form = BlindForm(study, case, place_cases(study, 1, SECRET)[0])
    asked = [row for entry in form.sets for row in entry.rows if row.triple == first.rationales[1]]
    assert [row.scored_in for row in asked] == [None, "A"]
    assert asked[0].field in form.fields
    assert asked[1].field not in form.fields
    stored = form.to_items(asked[0].field, "3")
    assert stored == {f"score:{first.source}:1": "3", f"score:{shared.source}:0": "3"}


def crossover_answers(study: Study, reviewers: int) -> list[Judgement]:
    """Reviewers who are right in 60 % of the pairs without reasons and in 80 % with them."""
    rng = np.random.default_rng(1)
    found = []
    for number in range(1, reviewers + 1):
        for placed in place_cases(study, number, SECRET):
            case = study.case(placed.case_key)
            right = rng.random() < (0.6 if placed.bare else 0.8)
            given = {"verdict": bool(case.label) == right, "confidence": 1, "seconds": 20.0, "questions": 4}
            shown = (placed.bare, placed.set_order, {}, {}, "yes", "no")
            found.append(Judgement(f"R{number}", case, *shown, arm=placed.arm, position=placed.position, **given))  # type: ignore[arg-type]
    return found


def test_the_interval_over_other_pairs_draws_reviewers_and_pairs() -> None:
    """Against a bootstrap with loops, and wider than one that draws reviewers alone."""
    study = crossover_study(20)
    found = crossover_answers(study, 12)
    estimate = analyse_crossover(study, found, draws=1000).measures[0].contrasts[0].other_pairs
    reviewers, pairs = sorted({j.reviewer for j in found}), sorted({j.case.key for j in found})
    right = {(j.reviewer, j.case.key): (not j.bare, float(j.verdict == bool(j.case.label))) for j in found}
    rng = np.random.default_rng(3)

    def interval(draw_pairs: bool) -> np.ndarray:
        differences = []
        for _ in range(1000):
            some = rng.choice(pairs, len(pairs)).tolist() if draw_pairs else pairs
            drawn = [right[r, p] for r in rng.choice(reviewers, len(reviewers)).tolist() for p in some]
            arms = [[value for reasons, value in drawn if reasons == arm] for arm in (True, False)]
            differences.append(np.mean(arms[0]) - np.mean(arms[1]))
        return np.quantile(differences, [0.025, 0.975])

    both, alone = interval(True), interval(False)
    assert (estimate.low, estimate.high) == pytest.approx(tuple(both), abs=0.04)
    assert estimate.high - estimate.low > 1.15 * (alone[1] - alone[0])
