"""A report: words, tables and plots in sections, as one HTML file, Markdown, LaTeX or plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from cogstage.artefact import software_version, write_text
from cogstage.reporting import escape
from cogstage.reporting.look import icon, style_sheet
from cogstage.reporting.plots import Plot
from cogstage.reporting.table import Table

if TYPE_CHECKING:
    import jinja2

DISCLAIMER = "A research tool: nothing here is medical advice."


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it. ``Markup`` is HTML that its maker has escaped; other formats leave it out."""

    title: str
    blocks: Sequence[Table | Plot | Markup | str]


@dataclass
class Report:
    """What a report says, in order; :meth:`write` puts it into one HTML file that needs nothing from outside."""

    title: str
    summary: Sequence[str] = ()
    sections: Sequence[Section] = ()
    notes: Sequence[str] = ()

    @property
    def tables(self) -> list[Table]:
        """Every table of the report."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, Table)]

    def html(self) -> str:
        """One HTML document: styles and pictures stand inside, and it may load nothing."""
        page = template("cogstage.reporting", "report.html")
        values = {"sheet": Markup(style_sheet()), "icon": icon(), "version": software_version()}
        return page.render(report=self, kind=_kind, disclaimer=DISCLAIMER, **values)

    def markdown(self) -> str:
        """Title, summary, each table under its caption, notes."""
        lines = [f"# {escape.markdown(self.title)}", "", *(f"- {escape.markdown(line)}" for line in self.summary), ""]
        for table in self.tables:
            lines += [f"## {escape.markdown(table.caption)}", "", table.markdown(), ""]
            lines += [escape.markdown(table.note), ""] if table.note else []
        for note in self.notes:
            lines += [escape.markdown(note), ""]
        return "\n".join([*lines, f"Made by cogstage {software_version()}.", ""])

    def latex(self, wide: bool = False) -> str:
        """The tables, to be put into a paper; the notes are comments."""
        lines = [
            f"% {escape.one_line(self.title)}; made by cogstage {software_version()}",
            "% needs \\usepackage{booktabs}",
        ]
        for table in self.tables:
            lines += [table.latex(wide), ""]
        return "\n".join([*lines, *(f"% {escape.one_line(note)}" for note in self.notes), ""])

    def text(self) -> str:
        """The tables for a terminal."""
        return "\n\n".join(table.text() for table in self.tables)

    def write(self, path: Path) -> None:
        """Write the HTML document; a reader sees the old file or the new one, never half."""
        write_text(path, self.html())


def _kind(block: Table | Plot | Markup | str) -> str:
    if isinstance(block, Table):
        return "table"
    if isinstance(block, Plot):
        return "plot"
    return "markup" if isinstance(block, Markup) else "text"


def template(package: str, name: str) -> jinja2.Template:
    """A template of a package that escapes what it is given and refuses what it is not."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(name)
