"""Do reasons help? The analysis against plain least squares and planted effects, and the power it promises."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from study_material import crossover_study

from cogstage.cli.main import run
from cogstage.errors import UsageError
from cogstage.study.crossover import analyse_crossover, crossover_effect
from cogstage.study.folder import OpenStudy
from cogstage.study.judgements import Judgement, judgements
from cogstage.study.mixed import mixed_effects
from cogstage.study.observation import Observation
from cogstage.study.placement import place_cases
from cogstage.study.power import Scenario, contrast_powers, p_values, plan, power, simulate
from cogstage.study.protocol import EVIDENCE, WITH, WITHOUT, Study
from cogstage.study.report import build_report, latex, write_report


def observations(scenario: Scenario, right: np.ndarray, arm: np.ndarray) -> list[Observation]:
    """One simulated study, (reviewers, pairs), as answers."""
    arms = list(scenario.gains)
    orders = [scenario.orders[r % len(scenario.orders)] for r in range(right.shape[0])]
    return [
        Observation(f"R{r}", f"p{p}", arms[arm[r, p]], orders[r].index(arms[arm[r, p]]), float(right[r, p]))
        for r in range(right.shape[0])
        for p in range(right.shape[1])
    ]


def test_the_effect_is_that_of_least_squares_with_all_its_terms() -> None:
    """Reviewer, pair, period and arm in one regression give the same difference when answers are complete."""
    scenario = Scenario(reviewers=8, pairs=12)
    right, arm = simulate(scenario, 1, np.random.default_rng(1))
    rows = observations(scenario, right[0], arm[0])
    columns = []
    for row in rows:
        dummies = [row.reviewer == f"R{r}" for r in range(8)] + [row.pair == f"p{p}" for p in range(12)]
        columns.append([*dummies, row.period, row.arm == WITH])
    fitted, *_ = np.linalg.lstsq(np.array(columns, float), np.array([row.value for row in rows]), rcond=None)
    assert crossover_effect(rows).difference == pytest.approx(fitted[-1], abs=0.02)


@pytest.mark.parametrize("evidence_gain", [None, 0.1])
def test_power_uses_the_very_test_of_the_report(evidence_gain: float | None) -> None:
    scenario = Scenario(reviewers=12, pairs=12, evidence_gain=evidence_gain)
    right, arm = simulate(scenario, 20, np.random.default_rng(2))
    assert len(scenario.contrasts) == (1 if evidence_gain is None else 3)
    for contrast in scenario.contrasts:
        fast = p_values(scenario, right, arm, contrast)
        studies = [observations(scenario, y, a) for y, a in zip(right, arm, strict=True)]
        assert fast == pytest.approx([crossover_effect(rows, *contrast).p_value for rows in studies], abs=1e-9)


def test_the_test_without_pair_effects_is_the_textbook_crossover() -> None:
    """One pair per arm and reviewer, all pairs alike: half the difference of the two sequences' t test (Senn)."""
    rng = np.random.default_rng(3)
    rows, by_sequence = [], {True: [], False: []}
    for r in range(10):
        with_reasons, without = rng.normal(1, 1), rng.normal(0, 1)
        first = r % 2 == 0
        rows += [Observation(f"R{r}", f"{r}a", WITH, int(not first), with_reasons)]
        rows += [Observation(f"R{r}", f"{r}b", WITHOUT, int(first), without)]
        by_sequence[first].append(with_reasons - without)
    effect = crossover_effect([replace(row, pair="p") for row in rows])
    ab, ba = np.array(by_sequence[True]), -np.array(by_sequence[False])
    assert effect.difference == pytest.approx((ab.mean() - ba.mean()) / 2)
    plain = stats.ttest_ind(ab, ba)  # the period effect is in both, the treatment has opposite signs
    scaled = abs(float(plain.statistic)) * math.sqrt(9 / 10)  # the report's variance allows for pair effects
    assert effect.p_value == pytest.approx(2 * stats.t.sf(scaled, 8))


def test_a_period_effect_does_not_look_like_an_effect_of_reasons() -> None:
    rng = np.random.default_rng(4)
    scenario = Scenario(reviewers=24, pairs=20, gain=0.0)
    right, arm = simulate(scenario, 1, rng)
    rows = observations(scenario, right[0].astype(float), arm[0])
    for drift in (0.2, 5.0):
        later = [replace(row, value=row.value + drift * row.period) for row in rows]
        assert crossover_effect(later).difference == pytest.approx(crossover_effect(rows).difference)
        assert crossover_effect(later).p_value == pytest.approx(crossover_effect(rows).p_value, abs=0.01 * (1 + drift))


def test_ten_points_are_found_and_nothing_is_not() -> None:
    """24 reviewers × 20 pairs. The bounds are three standard errors of the simulation away from what is promised."""
    studies = 2000
    found = power(Scenario(reviewers=24, pairs=20, gain=0.10), studies, seed=5)
    assert found - 3 * math.sqrt(found * (1 - found) / studies) >= 0.80
    null = power(Scenario(reviewers=24, pairs=20, gain=0.0), studies, seed=6)
    assert null == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / studies))


def test_planted_accuracies_come_out() -> None:
    scenario = Scenario(accuracy=0.6, gain=0.15, evidence_gain=0.25, reviewers=42, pairs=48)
    right, arm = simulate(scenario, 60, np.random.default_rng(7))
    shares = {name: right[arm == number].mean() for number, name in enumerate(scenario.gains)}
    assert shares == pytest.approx({WITH: 0.75, WITHOUT: 0.60, EVIDENCE: 0.85}, abs=0.03)
    for within in range(0, 42, 3):  # of every three reviewers, each pair is judged in all arms
        assert (np.sort(arm[:, within : within + 3], axis=1) == np.arange(3)[:, None]).all()


def test_a_third_arm_is_found_and_nothing_is_not() -> None:
    """36 reviewers × 36 pairs: planted effects of ten points are found at 80 %, and no effect at 5 %."""
    studies = 1000
    scenario = Scenario(reviewers=36, pairs=36, gain=0.0, evidence_gain=0.10)
    found = contrast_powers(scenario, studies, seed=5)
    for contrast in ((EVIDENCE, WITHOUT), (EVIDENCE, WITH)):
        assert found[contrast] - 3 * math.sqrt(found[contrast] * (1 - found[contrast]) / studies) >= 0.80
    assert found[WITH, WITHOUT] == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / studies))
    null = contrast_powers(replace(scenario, evidence_gain=0.0), 2 * studies, seed=6)
    assert list(null.values()) == pytest.approx([0.05] * 3, abs=3 * math.sqrt(0.05 * 0.95 / studies))


def test_the_mixed_model_is_that_of_its_formula() -> None:
    """Against statsmodels' own formulas: REML, crossed random effects of reviewers and pairs."""
    pandas, formula = pytest.importorskip("pandas"), pytest.importorskip("statsmodels.formula.api")
    scenario = Scenario(reviewers=6, pairs=12, gain=0.2, evidence_gain=0.1)
    right, arm = simulate(scenario, 1, np.random.default_rng(8))
    rows = observations(scenario, right[0] + np.random.default_rng(9).normal(0, 0.1, right[0].shape), arm[0])
    table = pandas.DataFrame([vars(row) | {"all": 1} for row in rows])
    model = formula.mixedlm(
        f"value ~ C(arm, Treatment('{WITHOUT}')) + C(period)",
        table,
        groups="all",
        vc_formula={"reviewer": "0 + C(reviewer)", "pair": "0 + C(pair)"},
    ).fit()
    effects = mixed_effects(rows, (WITH, WITHOUT, EVIDENCE))
    for name in (WITH, EVIDENCE):
        (term,) = [key for key in model.params.index if name in key]
        mine = effects[name, WITHOUT]
        assert mine.difference == pytest.approx(model.params[term], abs=2e-3)
        assert mine.p_value == pytest.approx(model.pvalues[term], abs=2e-2)
        assert mine.high - mine.low == pytest.approx(2 * 1.959964 * model.bse[term], rel=0.05)


def test_more_reviewers_or_pairs_are_never_worse() -> None:
    made = plan(Scenario(reviewers=12, pairs=12), studies=200, seed=1)
    assert made.power == made.table[12, 12]
    assert made.table[48, 48] >= made.table[24, 20] - 0.05 >= made.table[8, 12] - 0.1
    needed = [made.needed[p] for p in sorted(made.needed)]
    assert all(n is not None and n % 2 == 0 for n in needed)
    assert needed == sorted(needed, reverse=True)  # type: ignore[type-var]
    for wrong in (Scenario(accuracy=1.0), Scenario(gain=0.5), Scenario(pairs=10), Scenario(reviewers=2)):
        with pytest.raises(UsageError):
            power(wrong)


def test_the_power_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run(
            [
                "study",
                "power",
                "--studies",
                "100",
                "--pairs-per-reviewer",
                "12",
                "--reviewers",
                "8",
                "--gain",
                "0.3",
                "--accuracy",
                "0.6",
            ]
        )
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert "8 reviewers × 12 pairs" in out
    assert "needed for 80 %" in out
    with pytest.raises(SystemExit):
        run(["study", "power", "--studies", "100", "--json"])
    assert 0 < json.loads(capsys.readouterr().out)["power"] <= 1


def planted(study: Study, reviewers: int, seed: int, help_by: float) -> list[Judgement]:
    """Reviewers who are right more often, faster and surer with reasons."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(1, reviewers + 1):
        for placed in place_cases(study, number, "secret"):
            case = study.case(placed.case_key)
            right = rng.random() < 0.6 + (0 if placed.bare else help_by)
            found.append(
                Judgement(
                    f"R{number}", case, placed.bare, placed.set_order, {}, {}, "yes", "yes" if number % 2 else "no",
                    arm=placed.arm,
                    verdict=bool(case.label) == right,
                    confidence=1 if placed.bare else 2,
                    seconds=40.0 if placed.bare else 20.0,
                    position=placed.position,
                    questions=4,
                )
            )  # fmt: skip
    return found


def test_measures_of_planted_reviewers() -> None:
    study = crossover_study(20)
    found = planted(study, 12, 1, 0.35)
    results = analyse_crossover(study, found, draws=200)
    measures = {m.name: m for m in results.measures}
    judged = [j for j in found if not j.bare]
    accuracy = np.mean([j.verdict == bool(j.case.label) for j in judged])
    assert measures["accuracy"].arms[WITH].value == pytest.approx(accuracy)
    assert measures["accuracy"].arms[WITH].n == 120
    assert measures["accuracy"].effect.difference == pytest.approx(0.35, abs=0.12)
    assert measures["accuracy"].effect.p_value < 0.001
    assert measures["over-reliance"].arms[WITH].n == 60  # half of the predictions are wrong
    followed = [j.verdict == j.case.predicted for j in judged if not j.case.correct]
    assert measures["over-reliance"].arms[WITH].value == pytest.approx(np.mean(followed))
    assert measures["over-reliance"].effect.difference < 0
    assert measures["under-reliance"].arms[WITH].n == 60
    assert measures["confidence"].effect.difference == pytest.approx(1.0)
    assert measures["time"].effect.difference == pytest.approx(0.5)
    assert measures["time"].arms[WITH].value == pytest.approx(20.0)
    wide, narrow = measures["accuracy"].contrasts[0].other_pairs, measures["accuracy"].effect
    assert wide.low < narrow.difference < wide.high
    assert list(results.by_familiarity) == ["both terms familiar", "one term or both not familiar"]
    report = build_report(results, 200)
    assert "0.50" in report.markdown()
    assert "\\label{tab:study-crossover}" in latex(report)
    assert "12 reviewers, 20 pairs" in report.html()


def test_unfinished_and_empty_crossovers() -> None:
    study = crossover_study(8)
    assert not analyse_crossover(study, [], draws=10).measures[0].effect.defined
    found = planted(study, 4, 2, 0.2)[:-3]
    results = analyse_crossover(study, found, draws=20)
    assert results.counted == ("R1", "R2", "R3")
    assert analyse_crossover(study, found, draws=20, include_unfinished=True).counted[-1] == "R4"
    report = build_report(results)
    assert "Left out as unfinished: R4." in report.markdown()
    assert "unfinished, left out" in report.markdown()


def test_a_crossover_from_form_to_report(make_study: Callable[[Study], OpenStudy], tmp_path: Path) -> None:
    opened = make_study(crossover_study())
    for number in range(4):
        person = opened.access.invite(f"Dr {number}").reviewer
        for position in range(1, 9):
            form = opened.answers.form(person.id, position)
            assert form is not None
            assert list(form.fields) == ["familiar-head", "familiar-tail", "verdict", "confidence"]
            assert len(form.sets) == (0 if form.placement.bare else 1)
            answers = {"familiar-head": "yes", "familiar-tail": "no", "verdict": "yes", "confidence": "2"}
            for field, value in answers.items():
                opened.answers.save(person.id, form.case.key, form.to_items(field, value))
        assert opened.answers.progress(person.id).done == 8
    found = judgements(opened)
    assert {(j.verdict, j.confidence, j.unanswered) for j in found} == {(True, 2, 0)}
    results = write_report(opened, tmp_path / "report", draws=20)
    assert results.measures[0].arms[WITH].value == 0.5  # type: ignore[union-attr]
    rows = (tmp_path / "report" / "answers.csv").read_text()
    assert ",verdict," in rows
    assert ",without rationales," in rows
    assert not (tmp_path / "report" / "table3.tex").exists()
