"""One table, five formats: text, Markdown, LaTeX, HTML and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape as html_escape
from typing import Any

from cogstage.reporting import escape


@dataclass(frozen=True)
class Cell:
    """A cell that needs more than its text."""

    text: str
    bold: bool = False
    mark: str = ""
    """Raised behind the text: stars and daggers of a significance test."""


@dataclass(frozen=True)
class Table:
    """Rows of text under a header. Plain strings and :class:`Cell` may be mixed.

    >>> table = Table("Test pairs", ("method", "F1"), (("degree", "0.51"), ("cogstage", Cell("0.85", bold=True))))
    >>> print(table.markdown())
    | method | F1 |
    | --- | ---: |
    | degree | 0.51 |
    | cogstage | **0.85** |
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    left: int = 1
    """How many leading columns hold words and are set flush left; the others hold figures."""
    note: str = ""
    """What a reader needs to know to read the table."""
    label: str = ""
    """Name of the table in LaTeX."""

    @classmethod
    def from_records(cls, caption: str, records: Sequence[Mapping[str, Any]], left: int = 1) -> Table:
        """A table of dictionaries: columns in the order in which they first appear, empty if a key is missing."""
        columns = tuple(dict.fromkeys(name for record in records for name in record))
        rows = tuple(tuple(value_text(record.get(name)) for name in columns) for record in records)
        return cls(caption, columns, rows, left)

    def cells(self) -> list[list[Cell]]:
        """Every row as cells, as many as there are columns."""
        rows = [[entry if isinstance(entry, Cell) else Cell(entry) for entry in row] for row in self.rows]
        for row in rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} cells in the table {self.caption!r} of {len(self.columns)}")
        return rows

    def text(self) -> str:
        """Aligned plain text under the caption, for a terminal or a log."""
        rows = [list(map(escape.one_line, self.columns))]
        rows += [[escape.one_line(cell.text + cell.mark) for cell in row] for row in self.cells()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(self.columns))]
        lines = [
            "  ".join(
                cell.ljust(width) if column < self.left else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        parts = [self.caption, lines[0], "  ".join("-" * width for width in widths), *lines[1:], self.note]
        return "\n".join(part for part in parts if part)

    def markdown(self) -> str:
        """A pipe table, without its caption."""
        rule = ["---"] * self.left + ["---:"] * (len(self.columns) - self.left)
        rows = [[_markdown(cell) for cell in row] for row in self.cells()]
        lines = [[escape.markdown(name) for name in self.columns], rule[: len(self.columns)], *rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def latex(self, wide: bool = False) -> str:
        """A ``table`` environment (``table*`` if ``wide``); needs the package booktabs."""
        kind = "table*" if wide else "table"
        align = "l" * self.left + "r" * (len(self.columns) - self.left)
        caption = ". ".join(part.rstrip(".") for part in (self.caption, self.note) if part)
        return "\n".join(
            [
                f"\\begin{{{kind}}}",
                "\\centering",
                f"\\begin{{tabular}}{{{align}}}",
                "\\toprule",
                " & ".join(map(escape.latex, self.columns)) + " \\\\ \\midrule",
                *(" & ".join(map(_latex, row)) + " \\\\" for row in self.cells()),
                "\\bottomrule",
                "\\end{tabular}",
                f"\\caption{{{escape.latex(caption)}.}}",
                *([f"\\label{{{self.label}}}"] if self.label else []),
                f"\\end{{{kind}}}",
            ]
        )

    def html(self) -> str:
        """A ``table`` element with its caption; every text is escaped."""
        words = ' class="words"'
        header = "".join(
            f'<th scope="col"{words if i < self.left else ""}>{html_escape(name)}</th>'
            for i, name in enumerate(self.columns)
        )
        rows = "\n".join("<tr>" + "".join(map(self._html_cell, enumerate(row))) + "</tr>" for row in self.cells())
        note = f'\n<p class="faint">{html_escape(self.note)}</p>' if self.note else ""
        return (
            f'<div class="scroll"><table>\n<caption>{html_escape(self.caption)}</caption>\n'
            f"<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>{note}"
        )

    def _html_cell(self, numbered: tuple[int, Cell]) -> str:
        column, cell = numbered
        text = html_escape(cell.text)
        text = f"<strong>{text}</strong>" if cell.bold else text
        text += f"<sup>{html_escape(cell.mark)}</sup>" if cell.mark else ""
        if column == 0:
            return f'<th scope="row">{text}</th>'
        return f'<td class="words">{text}</td>' if column < self.left else f"<td>{text}</td>"

    def csv(self) -> str:
        """Header and rows without emphasis."""
        return csv_text(self.columns, ([cell.text + cell.mark for cell in row] for row in self.cells()))


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]], delimiter: str = ",") -> str:
    """CSV (or TSV) that a spreadsheet opens without running any cell as a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", delimiter=delimiter)
    writer.writerow([escape.spreadsheet(name) for name in columns])
    for row in rows:
        writer.writerow([escape.spreadsheet(value) if isinstance(value, str) else value for value in row])
    return out.getvalue()


def value_text(value: Any) -> str:
    """A plain value as people read it: thousands grouped, three significant digits below one, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _markdown(cell: Cell) -> str:
    text = escape.markdown(cell.text)
    return (f"**{text}**" if cell.bold else text) + escape.markdown(cell.mark)


def _latex(cell: Cell) -> str:
    text = escape.latex(cell.text)
    text = f"\\textbf{{{text}}}" if cell.bold else text
    if not cell.mark:
        return text
    raised = cell.mark.replace("†", "\\dagger").replace("*", "\\ast")
    return text + f"$^{{{raised}}}$"
