"""``cogstage facts``: facts from UMLS, OMOP vocabularies or a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cogstage.cli.console import print_json, progress

if TYPE_CHECKING:
    from cogstage.knowledge.facts import Facts
    from cogstage.knowledge.matching import Names

UNMATCHED_SHOWN = 10

app = typer.Typer(help="Facts (head, relation, tail) from knowledge bases.", no_args_is_help=True)

GRAPH = typer.Option(None, "--graph", "-g", help="Match names to the nodes of this graph.")
LEXICON = typer.Option(None, "--lexicon", "-l", help="Match names to the terms of this lexicon table.")
AMBIGUOUS = typer.Option("first", help="A name that fits several concepts: first, all or skip.")
MAP = typer.Option(None, "--relations", help="Table that maps relations (default: the paper's).")
SOURCES = typer.Option([], "--source", "-s", help="Only this source vocabulary (may be given several times).")
OUT = typer.Option(..., "--out", "-o", help="Facts folder to write.")
JSON = typer.Option(False, "--json", help="Print what was done as JSON.")
SKIP_BAD = typer.Option(False, "--skip-bad", help="Leave rows out that cannot be read, and count them.")


@app.command()
def umls(
    meta: Path = typer.Argument(..., help="Folder with MRCONSO.RRF, MRREL.RRF and MRSTY.RRF, plain or .gz."),
    out: Path = OUT,
    graph: Path | None = GRAPH,
    lexicon: Path | None = LEXICON,
    ambiguous: str = AMBIGUOUS,
    source: list[str] = SOURCES,
    relations: Path | None = MAP,
    language: str = typer.Option("ENG", help="Language of the names (LAT)."),
    keep_suppressed: bool = typer.Option(False, "--keep-suppressed", help="Take suppressed rows too."),
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
    vocabulary: Path = typer.Argument(..., help="Folder with the tables CONCEPT and CONCEPT_RELATIONSHIP."),
    out: Path = OUT,
    graph: Path | None = GRAPH,
    lexicon: Path | None = LEXICON,
    ambiguous: str = AMBIGUOUS,
    source: list[str] = SOURCES,
    relations: Path | None = MAP,
    keep_invalid: bool = typer.Option(False, "--keep-invalid", help="Take withdrawn rows too."),
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
    files: list[str] = typer.Argument(..., help="Tables with head, relation, tail (TSV, CSV, JSON lines, Parquet)."),
    out: Path = OUT,
    graph: Path | None = GRAPH,
    lexicon: Path | None = LEXICON,
    ambiguous: str = AMBIGUOUS,
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """Read facts from tables by column name: head, relation, tail, and where there are any source and date.

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
