"""The HTML report of ``demo`` and ``evaluate``: one self-contained file with tables, plots and drawn cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cogstage.artefact import software_version, write_text
from cogstage.evaluation.cases import Case
from cogstage.rationale.picture import svg
from cogstage.relations import phrase


@dataclass(frozen=True)
class Table:
    """A table of figures; the first column names the rows. ``best`` marks cells (row, column) to be set in bold."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Plot:
    """A drawing as SVG text, with words that say what it shows."""

    caption: str
    svg: str


@dataclass
class Report:
    """What a report says, in order; :meth:`write` puts it into one file that needs nothing from outside."""

    title: str
    summary: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def html(self) -> str:
        """The whole report as one HTML document."""
        import jinja2

        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("cogstage.evaluation"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        cases = [{"case": case, "picture": svg(case.prediction)} for case in self.cases]
        page = environment.get_template("report.html")
        return page.render(report=self, cases=cases, phrase=phrase, version=software_version())

    def write(self, path: Path) -> None:
        """Write the report; a reader sees the old file or the new one, never half."""
        write_text(path, self.html())


def figure_svg(figure: Any) -> str:
    """A matplotlib figure as SVG that can stand inside a page."""
    import io

    import matplotlib

    stream = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "cogstage", "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


def text_table(table: Table) -> str:
    """The table as aligned plain text, for a terminal or a log."""
    rows: Sequence[Sequence[str]] = [table.columns, *table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.columns))]
    lines = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([table.caption, lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
