"""The third arm of a crossover: reasons without the prediction; and a model whose errors all go one way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_material import crossover_study, small_study
from study_pages import client, join

from cogstage.errors import UsageError
from cogstage.study.folder import OpenStudy
from cogstage.study.placement import place_cases
from cogstage.study.protocol import EVIDENCE, WITH, WITHOUT, Study, study_from_dict
from cogstage.study.report import write_report

Make = Callable[[Study], OpenStudy]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(0, 6), st.text(min_size=1, max_size=8))
def test_three_arms_are_balanced(twelfths: int, six: int, secret: str) -> None:
    """Of three reviewers each pair is judged in all arms; of six, the periods have all orders."""
    study = crossover_study(12 * twelfths, evidence_arm=True)
    placed = [place_cases(study, 6 * six + number, secret) for number in range(1, 7)]
    orders = [tuple(dict.fromkeys(p.arm for p in one)) for one in placed]
    assert sorted(orders) == sorted(permutations((WITH, WITHOUT, EVIDENCE)))
    for one in placed:
        assert sorted(p.case_key for p in one) == sorted(case.key for case in study.cases)
        assert [p.position for p in one] == list(range(1, 12 * twelfths + 1))
        for arm in study.arms:
            chosen = [p for p in one if p.arm == arm]
            assert len(chosen) == 4 * twelfths
            assert chosen[-1].position - chosen[0].position == 4 * twelfths - 1  # a period
            assert sum(study.case(p.case_key).correct for p in chosen) == 2 * twelfths
    for three in (placed[:3], placed[3:]):
        arms = [{p.case_key: p.arm for p in one} for one in three]
        assert all(len({of[key] for of in arms}) == 3 for key in arms[0])


@pytest.mark.parametrize("bias", ["overcalls", "undercalls"])
def test_planted_errors_all_go_one_way(bias: str) -> None:
    study = crossover_study(8, planted_bias=bias)
    wrong = "false_positive" if bias == "overcalls" else "false_negative"
    assert Counter(case.outcome for case in study.cases) == {"true_positive": 2, "true_negative": 2, wrong: 4}
    assert study_from_dict(study.to_dict()) == study
    assert study.hash != crossover_study(8).hash


@pytest.mark.parametrize(
    "options", [{"evidence_arm": True}, {"planted_bias": "overcalls"}, {"planted_bias": "sideways"}]
)
def test_both_are_options_of_a_crossover(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        small_study(**options)
    with pytest.raises(UsageError, match="multiple of 12"):
        crossover_study(8, evidence_arm=True)


def turned(study: Study) -> Study:
    """The same study had the model predicted the opposite of everything."""
    flip = {"true_positive": "false_negative", "false_negative": "true_positive"}
    flip |= {"false_positive": "true_negative", "true_negative": "false_positive"}
    return replace(study, cases=tuple(replace(case, outcome=flip[case.outcome]) for case in study.cases))


def test_the_page_of_the_evidence_arm_does_not_depend_on_the_prediction(make_study: Make) -> None:
    """Every case with the opposite prediction: the page is the same but for its secrets."""
    study = crossover_study(12, evidence_arm=True)
    pages = []
    for one in (study, turned(study)):
        opened = make_study(replace(one, id=f"{one.id[:30]}{len(pages)}"))
        invitation = opened.access.invite("Dr A")
        browser, _ = join(opened, invitation)
        shown = {}
        for position in range(1, 13):
            form = opened.answers.form(invitation.reviewer.id, position)
            assert form is not None
            text = browser.get(f"/case/{position}").text
            body = text[text.index('<div class="statement') : text.index('<form id="case"')]
            reasons = text[text.index("q-reasons") : text.index("q-verdict")] if form.sets else ""
            shown[form.case.key, form.placement.arm] = body + reasons
        pages.append(shown)
    compared = 0
    for (key, arm), text in pages[0].items():
        if arm == EVIDENCE:
            compared += 1
            assert "predicts" not in text
            assert "Evidence for and against" in text
        if (key, arm) in pages[1]:
            assert (text == pages[1][key, arm]) == (arm == EVIDENCE)
    assert compared == 4


def test_three_arms_from_form_to_report(make_study: Make, tmp_path: Path) -> None:
    opened = make_study(crossover_study(12, evidence_arm=True, planted_bias="overcalls"))
    for number in range(6):
        person = opened.access.invite(f"Dr {number}").reviewer
        for position in range(1, 13):
            form = opened.answers.form(person.id, position)
            assert form is not None
            right = form.placement.arm == EVIDENCE or position % 2
            verdict = "yes" if bool(form.case.label) == bool(right) else "no"
            answers = {"familiar-head": "yes", "familiar-tail": "no", "verdict": verdict, "confidence": "2"}
            for field, value in answers.items():
                opened.answers.save(person.id, form.case.key, form.to_items(field, value))
    results = write_report(opened, tmp_path / "report", draws=20)
    accuracy = results.measures[0]  # type: ignore[union-attr]
    assert {arm: (e.value, e.n) for arm, e in accuracy.arms.items()} == {
        WITH: (0.5, 24), WITHOUT: (0.5, 24), EVIDENCE: (1.0, 24)
    }  # fmt: skip
    assert [c.name for c in accuracy.contrasts] == [
        f"{WITH} − {WITHOUT}", f"{EVIDENCE} − {WITHOUT}", f"{EVIDENCE} − {WITH}"
    ]  # fmt: skip
    assert accuracy.contrasts[1].effect.difference == pytest.approx(0.5)
    text = (tmp_path / "report" / "report.md").read_text()
    assert "Planted bias: whenever the prediction is wrong, it says yes." in text
    assert "| evidence only |" in text
    assert ",evidence only," in (tmp_path / "report" / "answers.csv").read_text()
    assert client(opened).get("/").status_code == 200
