"""A table read back from each of its formats: by csv, an HTML parser, a Markdown renderer and LaTeX's own rules."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.reporting import Cell, Report, Section, Table, csv_text, figure_text, interval_text, json_ready, p_text
from cogstage.reporting.escape import one_line
from cogstage.reporting.plots import thinned

NASTY = ["a|b", "x_y", "_z_", "*bold*", "<script>alert(1)</script>", "50 %", "$x^2$", "a\\b", "[l](u)", "`c`", "{#~}"]
text = st.one_of(st.sampled_from(NASTY), st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=12))
tables = st.integers(1, 4).flatmap(
    lambda width: st.builds(
        lambda header, rows, left: Table("caption", tuple(header), tuple(map(tuple, rows)), left=min(left, width)),
        st.lists(text, min_size=width, max_size=width),
        st.lists(st.lists(text, min_size=width, max_size=width), max_size=4),
        st.integers(1, 3),
    )
)


class Cells(HTMLParser):
    """The texts of a table's cells, row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._in = False

    def handle_starttag(self, tag: str, attributes: object) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._in = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in = False

    def handle_data(self, data: str) -> None:
        if self._in:
            self.rows[-1][-1] += data


def cells_of(html: str) -> list[list[str]]:
    parser = Cells()
    parser.feed(html)
    return parser.rows


@given(tables)
@settings(max_examples=80, deadline=None)
def test_html_holds_every_text_and_nothing_else(table: Table) -> None:
    page = table.html()
    assert "<script" not in page
    assert cells_of(page) == [list(table.columns), *map(list, table.rows)]


@given(tables)
@settings(max_examples=80, deadline=None)
def test_a_markdown_renderer_shows_the_texts(table: Table) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    page = markdown_it.MarkdownIt().enable("table").render(table.markdown())
    shown = [[one_line(cell) for cell in row] for row in cells_of(page)]
    assert shown == [[one_line(cell) for cell in row] for row in (table.columns, *table.rows)]
    assert "<script" not in page
    assert "<em>" not in page
    assert "<strong>" not in page


@given(tables)
@settings(max_examples=80, deadline=None)
def test_latex_has_no_active_character_left(table: Table) -> None:
    body = table.latex().split("\\toprule\n")[1].split("\\bottomrule")[0]
    rows = body.strip().splitlines()
    assert len(rows) == 1 + len(table.rows)
    for row, cells in zip(rows, (table.columns, *table.rows), strict=True):
        assert len(re.findall(r"(?<!\\)&", row)) == len(cells) - 1
    plain = re.sub(r"\\[&%$#_{}]|\$[^$]*\$|\\text\w+\{\}|\\ldots\{\}|\\\\ \\midrule|\\\\|&", "", body)
    assert not set(plain) & set("\\%$#_{}~^&")


@given(st.lists(st.lists(text, min_size=2, max_size=2), max_size=5))
@settings(max_examples=80, deadline=None)
def test_csv_reads_back_and_runs_nothing(rows: list[list[str]]) -> None:
    found = list(csv.reader(io.StringIO(csv_text(("a", "b"), rows))))
    assert found[0] == ["a", "b"]
    for written, cells in zip(found[1:], rows, strict=True):
        assert [entry.removeprefix("'") for entry in written] == [cell.removeprefix("'") for cell in cells]


@pytest.mark.parametrize("cell", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "=HYPERLINK(1)"])
def test_formulas_are_disarmed(cell: str) -> None:
    assert next(csv.reader(io.StringIO(csv_text((cell,), [])))) == ["'" + cell]


@pytest.mark.parametrize("cell", ["-0.25", "+3", "1e-5", "-1,000", ".5", "12 %", "name"])
def test_numbers_and_words_stay(cell: str) -> None:
    assert csv_text(("x",), [[cell]]).splitlines()[1].strip('"') == cell


def test_bold_and_marks_in_every_format() -> None:
    table = Table("c", ("method", "F1"), (("ours", Cell("0.5", True, "**")), ("theirs", Cell("0.4", False, "†"))))
    assert table.markdown().splitlines()[2:] == ["| ours | **0.5**\\*\\* |", "| theirs | 0.4† |"]
    assert "\\textbf{0.5}$^{\\ast\\ast}$" in table.latex()
    assert "0.4$^{\\dagger}$" in table.latex()
    assert "<td><strong>0.5</strong><sup>**</sup></td>" in table.html()
    assert table.text().splitlines()[-2:] == ["ours    0.5**", "theirs   0.4†"]
    assert table.csv() == "method,F1\nours,0.5**\ntheirs,0.4†\n"


def test_text_is_aligned_and_a_crooked_row_is_refused() -> None:
    lines = Table("c", ("method", "F1"), (("a", "0.5"), ("longer", "0.25"))).text().splitlines()
    assert len({len(line) for line in lines[1:]}) == 1
    with pytest.raises(ValueError, match="3 cells"):
        Table("c", ("a", "b"), (("1", "2", "3"),)).text()


def test_a_table_of_records() -> None:
    table = Table.from_records(
        "c", [{"side": "ours", "seconds": 0.12345, "edges": 1234567}, {"side": "x", "MB": 2000.4}]
    )
    assert table.columns == ("side", "seconds", "edges", "MB")
    assert table.rows == (("ours", "0.123", "1,234,567", ""), ("x", "", "", "2,000"))


def test_figures() -> None:
    assert figure_text(float("nan")) == figure_text(None) == "–"
    assert interval_text(0.51234, 0.4, 0.6) == "0.512 [0.40, 0.60]"
    assert interval_text(0.5, float("nan"), float("nan")) == "0.500"
    assert [p_text(p) for p in (0.0004, 0.0312)] == ["< 0.001", "0.031"]


def test_one_report_in_every_format() -> None:
    table = Table("First", ("a", "b"), (("x", "1"),), note="Read it well.")
    report = Report("Title & more", ["fact"], [Section("S", [table, "words"]), Section("T", [table])], ["note"])
    assert report.markdown().count("## First\n\n| a | b |") == 2
    assert report.latex().count("\\begin{tabular}{lr}") == 2
    assert "\\caption{First. Read it well.}" in report.latex()
    assert report.html().count("<caption>First</caption>") == 2
    assert "<title>Title &amp; more</title>" in report.html()
    assert report.text().count("First") == 2


def test_a_thinned_curve_keeps_its_ends_and_order() -> None:
    x = np.linspace(0, 1, 12_345)
    thin_x, thin_y = thinned((x, 1 - x))
    assert len(thin_x) == 400
    assert (thin_x[0], thin_x[-1]) == (0.0, 1.0)
    assert np.array_equal(thin_y, 1 - thin_x)
    assert (np.diff(thin_x) > 0).all()
    assert thinned((x[:5], x[:5]))[0] is not None
    assert len(thinned((x[:5], x[:5]))[0]) == 5


def test_json_without_what_json_does_not_have() -> None:
    value = {"a": [1.0, float("nan"), (float("inf"), "x")], "b": {"c": -float("inf"), "d": True, "e": None, "f": 3}}
    ready = json_ready(value)
    assert ready == {"a": [1.0, None, [None, "x"]], "b": {"c": None, "d": True, "e": None, "f": 3}}
    json.dumps(ready, allow_nan=False)
