"""``cogstage facts``: facts from UMLS, OMOP vocabularies or a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cogstage.cli import panels
from cogstage.cli.console import print_json, progress

if TYPE_CHECKING:
    from cogstage.knowledge.facts import Facts
    from cogstage.knowledge.matching import Names

UNMATCHED_SHOWN = 10

app = typer.Typer(help="Read facts (head, relation, tail) from knowledge bases.", no_args_is_help=True)

GRAPH = typer.Option(
    None,
    "--graph",
    "-g",
    help="Match names to the nodes of this graph.",
    metavar="FOLDER",
    rich_help_panel=panels.INPUT,
)
LEXICON = typer.Option(
    None,
    "--lexicon",
    "-l",
    help="Match names to the terms of this lexicon.",
    metavar="TABLE",
    rich_help_panel=panels.INPUT,
)
AMBIGUOUS = typer.Option(
    "first",
    help="What to do with a name that matches several concepts.",
    metavar="first|all|skip",
    rich_help_panel=panels.MODEL,
)
MAP = typer.Option(
    None,
    "--relations",
    help="Mapping from source relations to relation names; the built-in mapping by default.",
    metavar="TABLE",
    rich_help_panel=panels.MODEL,
)
SOURCES = typer.Option(
    [],
    "--source",
    "-s",
    help="Read only this source vocabulary; may be repeated.",
    metavar="NAME",
    rich_help_panel=panels.INPUT,
)
OUT = typer.Option(..., "--out", "-o", help="Facts folder to write.", metavar="FOLDER", rich_help_panel=panels.OUTPUT)
JSON = typer.Option(False, "--json", help="Print a summary as JSON.", rich_help_panel=panels.OUTPUT)
SKIP_BAD = typer.Option(
    False,
    "--skip-bad",
    help="Skip and count rows that cannot be read, instead of stopping.",
    rich_help_panel=panels.INPUT,
)


@app.command()
def umls(
    meta: Path = typer.Argument(
        ...,
        help="Folder with MRCONSO.RRF, MRREL.RRF and MRSTY.RRF, plain or gzipped.",
        metavar="META",
        rich_help_panel=panels.INPUT,
    ),
    out: Path = OUT,
    graph: Path | None = GRAPH,
    lexicon: Path | None = LEXICON,
    ambiguous: str = AMBIGUOUS,
    source: list[str] = SOURCES,
    relations: Path | None = MAP,
    language: str = typer.Option(
        "ENG", help="Language of the names (column LAT of MRCONSO).", metavar="CODE", rich_help_panel=panels.INPUT
    ),
    keep_suppressed: bool = typer.Option(
        False, "--keep-suppressed", help="Also read suppressed rows.", rich_help_panel=panels.INPUT
    ),
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """Read facts from a UMLS Metathesaurus release (MRREL, which reads from CUI2 to CUI1).

    Example: cogstage facts umls META --graph graph --source MED-RT --source SNOMEDCT_US --out facts
    """
    from cogstage.knowledge.umls import facts_from_umls
    from cogstage.tables import BadRows

    facts = facts_from_umls(
        meta,
        names=_names(graph, lexicon),
        ambiguous=ambiguous,
        sources=tuple(source),
        relation_map=relations,
        language=language,
        keep_suppressed=keep_suppressed,
        bad=BadRows(skip_bad),
        progress=progress(),
    )
    _finish(facts, out, as_json)


@app.command()
def omop(
    vocabulary: Path = typer.Argument(
        ...,
        help="Folder with the tables CONCEPT and CONCEPT_RELATIONSHIP.",
        metavar="FOLDER",
        rich_help_panel=panels.INPUT,
    ),
    out: Path = OUT,
    graph: Path | None = GRAPH,
    lexicon: Path | None = LEXICON,
    ambiguous: str = AMBIGUOUS,
    source: list[str] = SOURCES,
    relations: Path | None = MAP,
    keep_invalid: bool = typer.Option(
        False, "--keep-invalid", help="Also read rows marked as invalid.", rich_help_panel=panels.INPUT
    ),
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """Read facts from OMOP vocabulary tables (tabs, commas or Parquet), which need no UMLS licence.

    Example: cogstage facts omop VOCAB --lexicon lexicon.tsv --out facts
    """
    from cogstage.knowledge.omop import facts_from_omop
    from cogstage.tables import BadRows

    facts = facts_from_omop(
        vocabulary,
        names=_names(graph, lexicon),
        ambiguous=ambiguous,
        vocabularies=tuple(source),
        relation_map=relations,
        keep_invalid=keep_invalid,
        bad=BadRows(skip_bad),
        progress=progress(),
    )
    _finish(facts, out, as_json)


@app.command()
def table(
    files: list[str] = typer.Argument(
        ...,
        help="Tables with head, relation, tail (TSV, CSV, JSON lines, Parquet).",
        metavar="FILE",
        rich_help_panel=panels.INPUT,
    ),
    out: Path = OUT,
    graph: Path | None = GRAPH,
    lexicon: Path | None = LEXICON,
    ambiguous: str = AMBIGUOUS,
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """Read facts from tables with the columns head, relation, tail, and optionally source and date.

    Example: cogstage facts table facts.tsv --out facts
    """
    from cogstage.knowledge.table import facts_from_table
    from cogstage.tables import BadRows

    bad = BadRows(skip_bad)
    facts = facts_from_table(files, _names(graph, lexicon), ambiguous, bad)
    for line in bad.first:
        typer.echo(f"left out: {line}", err=True)
    _finish(facts, out, as_json)


def _names(graph: Path | None, lexicon: Path | None) -> Names | None:
    from cogstage.errors import UsageError
    from cogstage.knowledge.matching import Names

    if graph is not None and lexicon is not None:
        raise UsageError("give --graph or --lexicon, not both")
    if graph is not None:
        return Names.of_graph(graph)
    return None if lexicon is None else Names.of_lexicon(lexicon)


def _finish(facts: Facts, out: Path, as_json: bool) -> None:
    from cogstage.errors import CogstageError
    from cogstage.knowledge.facts import counts_text

    if not len(facts):
        raise CogstageError(f"no facts were found, and nothing was written: {', '.join(counts_text(facts.made_with))}")
    facts.save(out)
    if as_json:
        print_json(
            {"facts": len(facts), "relations": facts.relations, "unmatched": len(facts.unmatched), **facts.made_with}
        )
        return
    for relation, count in facts.relations.items():
        typer.echo(f"{relation:<20} {count:>10,}")
    for line in counts_text(facts.made_with):
        typer.echo(line)
    if facts.unmatched:
        typer.echo(f"{len(facts.unmatched):,} names match no node ({out / 'unmatched.tsv'} lists them all):")
        for name, count, nearest in facts.unmatched[:UNMATCHED_SHOWN]:
            typer.echo(f"  {name} ({count:,})" + (f": nearest {nearest}" if nearest else ""))
    typer.echo(f"{len(facts):,} facts are in {out}.")
