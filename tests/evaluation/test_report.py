"""The HTML report is one file that needs nothing from outside and reads well in a real browser."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
import web_browser
from sample_predictions import prediction

from cogstage.evaluation.cases import Case, cases_section, to_latex, to_markdown, to_text
from cogstage.reporting import Cell, Report, Section, Table
from cogstage.reporting.plots import plot


def sample_report() -> Report:
    rows = (("cogstage", Cell("0.85", bold=True, mark="**")), ("degree", "0.51"))
    return Report(
        "A report & more",
        ["One <sentence>."],
        [
            Section("Figures", [Table("Test pairs of may_treat", ("method", "F1"), rows)]),
            Section("Plots", [plot("A line.", lambda axes: axes.plot([0, 1], [0, 1]))]),
            cases_section([Case(prediction(5), True), Case(prediction(0), False), Case(prediction(12))]),
        ],
        ["A note."],
    )


def test_nothing_comes_from_outside_and_text_is_escaped() -> None:
    page = sample_report().html()
    assert "One &lt;sentence&gt;." in page
    assert "<strong>0.85</strong><sup>**</sup>" in page
    without_names = re.sub(
        r'xmlns(:\w+)?="[^"]*"|"http://purl[^"]*"|rdf:resource="[^"]*"|<metadata>.*?</metadata>', "", page, flags=re.S
    )
    without_names = re.sub(r"<!DOCTYPE[^>]*>", "", without_names)
    assert not re.search(r'(src|href)\s*=\s*"(https?:)?//', without_names)
    assert "@import" not in page
    assert "url(http" not in page


@pytest.mark.slow
def test_report_opens_in_a_browser(tmp_path: Path) -> None:
    if reason := web_browser.reason_to_skip():
        pytest.skip(reason)
    sample_report().write(tmp_path / "report.html")
    with web_browser.browser(tmp_path / "profile") as driver:
        driver.get(f"file://{tmp_path / 'report.html'}")
        assert driver.title == "A report & more"
        assert len(driver.find_elements("css selector", "section figure svg")) == 3
        assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        assert not [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
        web_browser.screenshot(driver, "report")


def test_cases_in_every_form() -> None:
    cases = [Case(prediction(5), True), Case(prediction(3), False)]
    text, markdown, latex = to_text(cases), to_markdown(cases), to_latex(cases)
    assert "Aspirin may treat Headache?" in text
    assert markdown.count("### Case") == 2
    assert r"may\_treat" in latex
    assert latex.count(r"\\ \midrule") >= 2
    assert "Paracetamol <500 mg>" in text
    assert "Paracetamol &lt;500 mg>" in markdown  # which is what Markdown shows as the name


def test_the_table_numbers_reasons_as_the_picture_does() -> None:
    case = prediction(5)
    assert case.reasons_against
    page = Report("Cases", [], [cases_section([Case(case, True)])], []).html()
    rows = re.findall(r"<tr><td>(\d+)</td><td>(.*?) <em>", page)
    reasons = case.reasons_for + case.reasons_against
    expected = [reason.head.name for reason in reasons]
    assert [(int(number), unescape(head)) for number, head in rows] == list(enumerate(expected, 1))
    assert list(reasons) != list(case.reasons)  # which are sorted by size
