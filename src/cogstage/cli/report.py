"""``cogstage report``: the release report of a folder."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from cogstage import choices
from cogstage.cli import options
from cogstage.cli.options import argument, output_option


def report(
    folder: Path = argument(..., help="Graph, facts, data set or model folder.", metavar="FOLDER"),
    output_format: choices.OutputFormat = output_option("text", "--output-format", help="Output format."),
    as_json: bool = options.as_json(),
    out: Path | None = options.out("Output file. Default: print to the terminal.", None, "FILE"),
) -> None:
    """Show where the content of a folder comes from: sources, licences, hashes, dates, privacy and figures.

    All files are first checked against their hashes. REPORT.md in the folder has the same content, without dates.

    Example: cogstage report model --output-format html --out model.html
    """
    from cogstage.artefact import write_text
    from cogstage.reporting.release import release_json, release_text, report_folder

    found = report_folder(folder)
    if as_json:
        text = json.dumps(release_json(found), indent=2, ensure_ascii=False) + "\n"
    elif output_format == "text":
        text = release_text(found)
    elif output_format == "jsonl":
        text = json.dumps(release_json(found), ensure_ascii=False) + "\n"
    else:
        text = {"markdown": found.markdown, "latex": found.latex, "html": found.html}[output_format]()
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)
