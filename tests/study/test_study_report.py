"""The figures and their three forms, against answers whose results are known."""

import csv
import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_material import small_study

from cogstage.study.export import answers_csv
from cogstage.study.folder import OpenStudy
from cogstage.study.judgements import Judgement, judgements
from cogstage.study.protocol import Study
from cogstage.study.report import build_report, latex, table_3, write_report
from cogstage.study.results import analyse


def judged(
    study: Study, number: int, reviewer: str, open_scores: str, closed_scores: str, better: str | None
) -> Judgement:
    """A judgement with scores written as digits; ``better`` names the set ranked higher, None for a tie."""
    return Judgement(
        reviewer=reviewer,
        case=study.cases[number],
        bare=False,
        set_order=("open", "closed") if number % 2 else ("closed", "open"),
        scores={"open": tuple(map(int, open_scores)), "closed": tuple(map(int, closed_scores))},
        ranks={"open": 2 if better == "closed" else 1, "closed": 2 if better == "open" else 1},
        familiar_head="yes",
        familiar_tail="kind_of",
        seconds=60.0 * (number + 1),
    )


def test_the_papers_table_from_its_counts() -> None:
    """17 wins, 8 ties and 5 losses of 30: ranking scores 17 and 5, p = 0.017."""
    study = small_study(cases=30)
    better = ["open"] * 17 + [None] * 8 + ["closed"] * 5
    found = [judged(study, n, "Dr A", "31000", "10000", name) for n, name in enumerate(better)]
    results = analyse(study, found, draws=200)
    first, second = results.table["all"]
    assert (first.ranking_score.value, second.ranking_score.value) == (17, 5)
    assert (first.average_sum.value, first.average_max.value) == (4.0, 3.0)
    assert (second.average_sum.value, second.average_max.value) == (1.0, 1.0)
    assert first.levels == (90, 30, 0, 30)
    assert first.ranking_score.low < 17 < first.ranking_score.high
    (comparison,) = results.comparisons
    assert (comparison.wins, comparison.ties, comparison.losses) == (17, 8, 5)
    assert round(comparison.p_value, 3) == 0.017
    assert results.familiarity == {"yes": 30, "kind_of": 30, "no": 0}
    (reviewer,) = results.reviewers
    assert (reviewer.minutes, reviewer.complete, reviewer.finished) == (15.5, 30, True)
    assert results.position is not None
    assert results.position.total == 30
    table = table_3(results)
    assert table.columns == ("", "open", "closed")
    assert str(table.rows[0][1]).startswith("17/30 [")
    assert str(table.rows[1][1]) == "4.00 [4.00, 4.00]"
    assert "n = 30 (open), 30 (closed)" in table.note
    report = build_report(results)
    assert "| 17 | 8 | 5 | 0.017 |" in report.markdown()
    assert "17 & 8 & 5 & 0.017 &" in latex(report)


def test_several_reviewers_repeats_and_half_answered_cases() -> None:
    study = small_study(cases=3, repeats=1)
    repeat = study.cases[3]
    original = next(n for n, case in enumerate(study.cases) if case.key == repeat.repeat_of)
    others = [n for n in range(3) if n != original]
    found = [judged(study, n, name, "32100", "10000", "open") for name in ("Dr A", "Dr B") for n in range(3)]
    found.append(judged(study, 3, "Dr A", "32100", "10001", "closed"))  # one score and the preference changed
    found[others[0]] = judged(study, others[0], "Dr A", "32100", "10000", "closed")
    found[others[1]].scores["closed"] = (1, 0, None, 0, 0)  # not complete: its sum does not count
    results = analyse(study, found, draws=100, include_unfinished=True)
    assert results.table["all"][0].ranking_score.value == 5
    assert results.table["all"][1].average_sum.n == 5
    counts = {c.who: (c.wins, c.ties, c.losses) for c in results.comparisons}
    assert counts == {"Dr A": (2, 0, 1), "Dr B": (3, 0, 0), "majority": (2, 1, 0)}
    figures = {(a.question[:5], a.measure[:5], a.who): a.estimate for a in results.agreement}
    assert figures["score", "Cohen", "Dr A and Dr B"].value == 1.0
    assert figures["score", "Cohen", "Dr A and Dr B"].n == 29
    again = figures["score", "Cohen", "Dr A with themselves"]
    assert again.n == 10
    assert 0.9 < again.value < 1.0
    assert figures["score", "Kripp", "all 2 reviewers"].value == 1.0


def test_outcomes_have_tables_of_their_own_and_trust_is_compared() -> None:
    study = small_study(cases=2, false_positives=1, without_rationales=1)
    found = []
    for number, case in enumerate(study.cases):
        base = judged(study, number, "Dr A", "30000", "10000", "open")
        found.append(
            Judgement(
                "Dr A",
                case,
                number == 3,
                base.set_order,
                {} if number == 3 else base.scores,
                {} if number == 3 else base.ranks,
                trust=1 if number == 3 else 3,
            )
        )
    results = analyse(study, found, draws=50)
    assert list(results.table)[:2] == ["all", "true_positive"]
    assert results.trust["difference"].value == 2.0
    assert {arm: e.n for arm, e in results.trust.items()} == {"with reasons": 3, "without reasons": 1, "difference": 4}
    assert any("Trust" in table.caption for table in build_report(results).tables)


def test_no_answers_at_all_still_make_a_report() -> None:
    results = analyse(small_study(), [], draws=10)
    report = build_report(results)
    for text in (report.markdown(), latex(report), report.html()):
        assert "–" in text or "--" in text


def test_html_is_one_page_and_names_are_only_text() -> None:
    study = small_study(title="<script>alert(1)</script> & co")
    found = [judged(study, n, "Dr <b>|_$", "32100", "10000", "open") for n in range(4)]
    results = analyse(study, found, draws=50)
    report = build_report(results)
    page = report.html()
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<svg") == 4  # the icon and three plots
    outside = [a for a in re.findall(r'(?:src|href)\s*=\s*"([^"]*)"', page) if not a.startswith("#")]
    assert outside == []
    assert "@import" not in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert "Dr &lt;b>\\|\\_$" in report.markdown()
    assert "Dr $<$b$>$|\\_\\$" in latex(report)
    assert build_report(results).html() == page


def test_report_folder_and_raw_answers(make_study: Callable[[Study], OpenStudy], tmp_path: Path) -> None:
    opened = make_study(small_study(cases=2, without_rationales=1))
    person = opened.access.invite("=cmd()").reviewer
    for position in (1, 2, 3):
        form = opened.answers.form(person.id, position)
        assert form is not None
        values = {item: "1" if item.startswith(("rank", "score", "trust")) else "yes" for item in form.needed}
        opened.answers.save(person.id, form.case.key, {**values, "comment": 'a, "b"\nc'})
    results = write_report(opened, tmp_path / "report", draws=50)
    assert results.counted == ("R1",)
    files = list((tmp_path / "report").iterdir())
    assert sorted(path.name for path in files) == [
        "answers.csv", "codebook.csv", "report.html", "report.md", "report.tex", "results.json", "table3.tex",
        "times.csv",
    ]  # fmt: skip
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert not any("cmd" in path.read_text() for path in files)
    rows = list(csv.DictReader(io.StringIO(answers_csv(opened, pseudonyms=False))))
    assert len(rows) == len(opened.answers.all())
    assert {row["reviewer"] for row in rows} == {"'=cmd()"}
    named = write_report(opened, tmp_path / "named", draws=50, names=True)
    assert named.counted == ("=cmd()",)
    assert {row["answer"] for row in rows if row["question"] == "comment"} == {'a, "b"\nc'}
    scores = [row for row in rows if row["question"] == "score"]
    assert len(scores) == 20
    for row in scores:
        case = opened.study.case(row["case"])
        shown = case.set_of(row["source"]).rationales[int(row["rationale_number"]) - 1]
        assert row["rationale"] == shown.text
    assert json.loads((tmp_path / "report" / "results.json").read_text())["finished"] == {"R1": True}
    assert len(judgements(opened)) == 3


def test_paired_differences_and_their_denominators() -> None:
    """Sum and maximum by hand; a case counts once however many reviewers judged it."""
    study = small_study(cases=4)
    found = [judged(study, n, name, "32000", "10000", "open") for n in range(4) for name in ("R1", "R2")]
    found[0] = replace(found[0], scores={**found[0].scores, "closed": (1, None, 0, 0, 0)})  # one "cannot judge"
    results = analyse(study, found, draws=100)
    by_measure = {d.measure: d for d in results.differences}
    assert {name: d.estimate.value for name, d in by_measure.items()} == {
        "ranking score": 1.0,
        "sum": 4.0,
        "maximum": 2.0,
    }
    assert {d.estimate.n for d in results.differences} == {4}
    assert {d.p_value for d in results.differences} == {2 / 2**4}
    first, second = results.table["all"]
    assert (first.average_sum.n, second.average_sum.n) == (8, 7)
    text = build_report(results).markdown()
    assert "| 4.00 [4.00, 4.00], n = 4 |" in text
    assert "8/8 [8, 8]" in text


def test_unfinished_reviewers_are_marked_and_left_out() -> None:
    study = small_study(cases=4)
    found = [judged(study, n, "R1", "32000", "10000", "open") for n in range(4)]
    found += [judged(study, n, "R2", "00000", "33333", "closed") for n in range(2)]
    results = analyse(study, found, draws=50)
    assert results.counted == ("R1",)
    assert results.table["all"][0].ranking_score.value == 4
    text = build_report(results).markdown()
    assert "in the figures: 1 (those who answered every question of every case)" in text
    assert "Left out as unfinished: R2." in text
    assert "| R2 | unfinished, left out |" in text
    everyone = analyse(study, found, draws=50, include_unfinished=True)
    assert everyone.table["all"][0].ranking_score.n == 6
    assert "| R2 | unfinished, counted |" in build_report(everyone).markdown()
    open_question = [replace(j, unanswered=1) if n == 0 else j for n, j in enumerate(found[:4])]
    assert analyse(study, open_question, draws=50).counted == ()


@pytest.mark.parametrize(("cases", "printed"), [(9, False), (10, True)])
def test_agreement_is_not_printed_below_ten_units(cases: int, printed: bool) -> None:
    study = small_study(cases=cases)
    found = [
        judged(study, n, name, "32100", "10000", ("open", "closed", None)[(n + shift) % 3])
        for shift, name in enumerate(("R1", "R2"))
        for n in range(cases)
    ]
    figures = {(a.question, a.measure[:5]): a.estimate for a in analyse(study, found, draws=50).agreement}
    for measure in ("Cohen", "Kripp"):
        estimate = figures["preference between sets", measure]
        assert (estimate.n, estimate.defined) == (cases, printed)
        assert figures["score of a reason", measure].defined  # ten reasons per case


def test_familiarity_haste_and_comments_are_shown() -> None:
    study = small_study(cases=4)
    found = []
    for n in range(4):
        known = judged(study, n, "R1", "32000", "10000", "open")
        hasty = replace(known, reviewer="R2", familiar_tail="yes", seconds=5.0, questions=13)
        found += [replace(known, comment="first | line\nsecond <b>"), hasty]
    results = analyse(study, found, draws=50)
    assert [(r.name, r.hasty) for r in results.reviewers] == [("R1", False), ("R2", True)]
    groups = results.by_familiarity
    assert {name: columns[0].average_sum.n for name, columns in groups.items()} == {
        "both terms familiar": 4,
        "one term or both not familiar": 4,
    }
    text = build_report(results).markdown()
    assert "| R2 |  | hasty |" in text
    assert text.count("first \\| line second &lt;b>") == 4
    assert "first" not in latex(build_report(results)).split("shown first")[0]  # comments may hold any character
    one_slow = [replace(j, seconds=60.0) if n > 1 else j for n, j in enumerate(found)]
    assert not analyse(study, one_slow, draws=50).reviewers[1].hasty  # one of four is a quarter, not more


def test_latex_stands_alone_and_says_what_its_figures_mean() -> None:
    study = small_study(cases=4, title="Ω & 50 % of 中文")
    found = [judged(study, n, "Dr Ω_", "32000", "10000", "open") for n in range(4)]
    results = analyse(study, found, draws=50)
    text = latex(build_report(results, 50))
    assert text.startswith("\\documentclass{article}\n")
    assert text.rstrip().endswith("\\end{document}")
    assert max(map(ord, text)) <= 0x17F
    for name in ("document", "table", "tabular"):
        assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") > 0
    caption = re.search(r"\\caption\{(Quality of the reasons as judged.*?)\}\n\\label\{tab:study-quality\}", text, re.S)
    assert caption is not None
    for words in ("1 reviewer, 4 cases", "95 \\% percentile intervals from 50 bootstrap samples", "n judgements"):
        assert words in caption[1]
    assert "\\usepackage" not in text  # lines are drawn with or without booktabs


def test_pdflatex_compiles_the_report(tmp_path: Path) -> None:
    """Both documents, with names and titles of any characters; each table is on one page."""
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("pdflatex is not installed (Debian: texlive-latex-base)")
    study = small_study(cases=4, title="Ω & 50 % of 中文")
    found = [judged(study, n, "Dr Ω_#", "32000", "10000", "open") for n in range(4)]
    found += [judged(study, n, "Dr ~^", "00000", "33333", "closed") for n in range(4)]
    results = analyse(study, found, draws=20)
    report = build_report(results, 20)
    (tmp_path / "report.tex").write_text(latex(report), encoding="utf-8")
    subprocess.run([program, "-interaction=nonstopmode", "-halt-on-error", "report.tex"], cwd=tmp_path, check=True)
    log = (tmp_path / "report.log").read_text(encoding="latin-1")
    pages = re.search(r"Output written on report.pdf \((\d+) page", log)
    assert pages is not None
    tables = [table for table in report.tables if table.caption != "Comments"]
    assert int(pages[1]) == len(tables)
    assert "Float too large" not in log
    too_wide = [float(width) for width in re.findall(r"Overfull \\hbox \((\d+\.\d+)pt too wide\)", log)]
    assert max(too_wide, default=0.0) < 5


def test_negative_figures_have_minus_signs() -> None:
    study = small_study(cases=4)
    found = [judged(study, n, "R1", "00000", "32000", "closed") for n in range(4)]
    report = build_report(analyse(study, found, draws=20), 20)
    differences = next(table for table in report.tables if table.caption == "Paired differences")
    assert [row[2] for row in differences.rows][1] == "−5.00 [−5.00, −5.00], n = 4"
    assert "$-$5.00" in differences.latex()
    assert report.html().count('class="wide"') == 3  # plots take the whole width


digits = st.text("0123", min_size=5, max_size=5)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(digits, digits, st.sampled_from(["open", "closed", None])), min_size=1, max_size=4))
def test_averages_are_plain_averages(answers: list[tuple[str, str, str | None]]) -> None:
    study = small_study()
    found = [judged(study, n, "Dr A", a, b, better) for n, (a, b, better) in enumerate(answers)]
    first, second = analyse(study, found, draws=5, include_unfinished=True).table["all"]
    assert first.average_sum.value == pytest.approx(sum(sum(map(int, a)) for a, _, _ in answers) / len(answers))
    assert second.average_max.value == pytest.approx(sum(max(map(int, b)) for _, b, _ in answers) / len(answers))
    assert first.ranking_score.value == sum(better == "open" for _, _, better in answers)
