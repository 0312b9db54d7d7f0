"""``cogstage lexicon``: lexicon tables from UMLS, OMOP vocabularies or MeSH."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli import options
from cogstage.cli.app import CommandGroup
from cogstage.cli.console import print_json, progress, say_skipped
from cogstage.cli.options import argument, input_option

app = CommandGroup("Build lexicons: tables of terms with their concept, name and type.")


@app.callback()
def lexicon() -> None:
    """Keep ``build`` a command of its own, although the group has no other."""


@app.command("build", epilog="Example: cogstage lexicon build META --type drug --type disorder --out terms.tsv")
def build(
    sources: list[Path] = argument(
        ...,
        help="UMLS META folder, folder with OMOP vocabulary tables, or MeSH XML (descriptors, supplementary concepts).",
        metavar="SOURCE",
    ),
    out: Path = options.out("Output file, such as terms.tsv.", metavar="FILE"),
    types: list[str] = input_option(
        [],
        "--type",
        help="Read only this type, such as drug, T047 or Condition; may be repeated.",
        metavar="TYPE",
    ),
    source_vocabulary: list[str] = input_option(
        [], help="Read only this source vocabulary; may be repeated.", metavar="NAME"
    ),
    language: str = input_option("ENG", help="Language of the names (column LAT of MRCONSO).", metavar="CODE"),
    stop_list: Path | None = input_option(None, help="Terms of the lexicon to ignore, one per line.", metavar="FILE"),
    skip: bool = options.SKIP_BAD,
    as_json: bool = options.as_json("Print JSON (a summary)."),
) -> None:
    """Write a lexicon for `graph build --lexicon`, with synonyms and types; common English words are left out."""
    from dataclasses import asdict

    from cogstage.knowledge.lexicon_sources import LexiconOptions, build_lexicon
    from cogstage.tables import BadRows

    bad = BadRows(skip)
    chosen = LexiconOptions(tuple(types), tuple(source_vocabulary), language, stop_list if stop_list else ())
    summary = build_lexicon(sources, out, chosen, bad, progress())
    say_skipped(bad)
    if as_json:
        print_json({**asdict(summary), "out": str(out)})
        return
    for type, count in sorted(summary.types.items(), key=lambda item: -item[1]):
        typer.echo(f"{type:<20} {count:>10,} concepts")
    for reason, count in sorted(summary.left_out.items()):
        typer.echo(f"left out: {reason}: {count:,}")
    typer.echo(f"{out}: {summary.terms:,} terms of {summary.concepts:,} concepts")
