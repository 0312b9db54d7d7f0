"""``cogstage facts``: facts from UMLS, OMOP vocabularies or a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cogstage import choices
from cogstage.cli import options
from cogstage.cli.app import CommandGroup
from cogstage.cli.console import print_json, progress, say_skipped
from cogstage.cli.options import argument, input_option, model_option

if TYPE_CHECKING:
    from cogstage.knowledge.facts import Facts
    from cogstage.knowledge.matching import Names

UNMATCHED_SHOWN = 10

app = CommandGroup("Read facts (head, relation, tail) from knowledge bases.")

GRAPH = options.graph("Graph folder; names are matched to its nodes.", None)
LEXICON = options.lexicon("Lexicon table; names are matched to its terms.", None)
RELATION_MAP = model_option(
    None,
    "--relation-map",
    help="Mapping from relations of the source to relation names. Default: the built-in mapping.",
    metavar="TABLE",
)
SOURCES = input_option(
    [], "--source-vocabulary", help="Read only this source vocabulary; may be repeated.", metavar="NAME"
)
OUT = options.out()


@app.command()
def umls(
    meta: Path = argument(
        ..., help="Folder with MRCONSO.RRF, MRREL.RRF and MRSTY.RRF, plain or gzipped.", metavar="META"
    ),
    out: Path = OUT,
    graph: Path | None = GRAPH,
    lexicon: str | None = LEXICON,
    ambiguity: choices.Ambiguity = options.AMBIGUITY,
    source_vocabulary: list[str] = SOURCES,
    relation_map: Path | None = RELATION_MAP,
    language: str = input_option("ENG", help="Language of the names (column LAT of MRCONSO).", metavar="CODE"),
    keep_suppressed: bool = input_option(False, "--keep-suppressed", help="Also read suppressed rows."),
    skip: bool = options.SKIP_BAD,
    licence: list[str] = options.LICENCE,
    as_json: bool = options.as_json("Print JSON (a summary)."),
) -> None:
    """Read facts from a UMLS Metathesaurus release.

    Example: cogstage facts umls META --graph graph --source-vocabulary MED-RT --out facts
    """
    from cogstage.knowledge.umls import facts_from_umls
    from cogstage.tables import BadRows

    facts = facts_from_umls(
        meta,
        names=_names(graph, lexicon),
        ambiguity=ambiguity,
        sources=tuple(source_vocabulary),
        relation_map=relation_map,
        language=language,
        keep_suppressed=keep_suppressed,
        bad=BadRows(skip),
        progress=progress(),
    )
    _finish(facts, out, licence, as_json)


@app.command()
def omop(
    vocabulary: Path = argument(..., help="Folder with the tables CONCEPT and CONCEPT_RELATIONSHIP.", metavar="FOLDER"),
    out: Path = OUT,
    graph: Path | None = GRAPH,
    lexicon: str | None = LEXICON,
    ambiguity: choices.Ambiguity = options.AMBIGUITY,
    source_vocabulary: list[str] = SOURCES,
    relation_map: Path | None = RELATION_MAP,
    keep_invalid: bool = input_option(False, "--keep-invalid", help="Also read rows marked as invalid."),
    skip: bool = options.SKIP_BAD,
    licence: list[str] = options.LICENCE,
    as_json: bool = options.as_json("Print JSON (a summary)."),
) -> None:
    """Read facts from OMOP vocabulary tables (CSV, TSV or Parquet); no UMLS licence is needed.

    Example: cogstage facts omop VOCAB --lexicon lexicon.tsv --out facts
    """
    from cogstage.knowledge.omop import facts_from_omop
    from cogstage.tables import BadRows

    facts = facts_from_omop(
        vocabulary,
        names=_names(graph, lexicon),
        ambiguity=ambiguity,
        vocabularies=tuple(source_vocabulary),
        relation_map=relation_map,
        keep_invalid=keep_invalid,
        bad=BadRows(skip),
        progress=progress(),
    )
    _finish(facts, out, licence, as_json)


@app.command()
def table(
    files: list[str] = argument(
        ..., help="Tables with the columns head, relation and tail (TSV, CSV, JSON lines or Parquet).", metavar="FILE"
    ),
    out: Path = OUT,
    graph: Path | None = GRAPH,
    lexicon: str | None = LEXICON,
    ambiguity: choices.Ambiguity = options.AMBIGUITY,
    skip: bool = options.SKIP_BAD,
    licence: list[str] = options.LICENCE,
    as_json: bool = options.as_json("Print JSON (a summary)."),
) -> None:
    """Read facts from tables with the columns head, relation, tail, and optionally source and date.

    Example: cogstage facts table facts.tsv --out facts
    """
    from cogstage.knowledge.table import facts_from_table
    from cogstage.tables import BadRows

    bad = BadRows(skip)
    facts = facts_from_table(files, _names(graph, lexicon), ambiguity, bad)
    say_skipped(bad)
    _finish(facts, out, licence, as_json)


@app.command("import")
def import_(
    knowledge_base: choices.FactSource = argument(..., help="Knowledge base.", metavar="SOURCE"),
    files: list[str] = argument(..., help="Its files, or the folder with them.", metavar="FILE"),
    out: Path = OUT,
    graph: Path | None = GRAPH,
    lexicon: str | None = LEXICON,
    ambiguity: choices.Ambiguity = options.AMBIGUITY,
    skip: bool = options.SKIP_BAD,
    licence: list[str] = options.LICENCE,
    as_json: bool = options.as_json("Print JSON (a summary)."),
) -> None:
    """Read facts from CTD, SIDER, MED-RT, PrimeKG, Hetionet, or the relations in PubTator and BioC files (annotated).

    Statements between types that their relation does not join are left out and counted.

    Example: cogstage facts import ctd CTD_chemicals_diseases.csv.gz --graph graph --out facts
    """
    from cogstage.knowledge.fact_sources import facts_from_source
    from cogstage.tables import BadRows

    bad = BadRows(skip)
    facts = facts_from_source(knowledge_base, files, _names(graph, lexicon), ambiguity, bad)
    say_skipped(bad)
    _finish(facts, out, licence, as_json)


@app.command()
def embedded(
    graph: Path = options.graph("Graph folder; names are matched to its nodes."),
    out: Path = OUT,
    ambiguity: choices.Ambiguity = options.AMBIGUITY,
    as_json: bool = options.as_json("Print JSON (a summary)."),
) -> None:
    """Match the embedded facts to a graph with other identifiers, by code, name and synonym.

    Example: cogstage facts embedded --graph graph --out facts
    """
    from cogstage.data import embedded
    from cogstage.knowledge.fact_sources import facts_of_vocabulary
    from cogstage.knowledge.matching import Names

    facts = facts_of_vocabulary(embedded.facts(), embedded.graph().vocabulary, Names.from_graph(graph), ambiguity)
    _finish(facts, out, [], as_json)


def _names(graph: Path | None, lexicon: str | None) -> Names | None:
    from cogstage.errors import UsageError
    from cogstage.knowledge.matching import Names

    if graph is not None and lexicon is not None:
        raise UsageError("give --graph or --lexicon, not both")
    if graph is not None:
        return Names.from_graph(graph)
    return None if lexicon is None else Names.from_lexicon(lexicon)


def _finish(facts: Facts, out: Path, licences: list[str], as_json: bool) -> None:
    from cogstage.errors import CogstageError
    from cogstage.knowledge.facts import counts_text

    if not len(facts):
        raise CogstageError(f"no facts were found, and nothing was written: {', '.join(counts_text(facts.made_with))}")
    facts.save(out, {**facts.made_with, "licences": licences} if licences else None)
    if as_json:
        print_json(
            {"facts": len(facts), "relations": facts.relations, "unmatched": len(facts.unmatched), **facts.made_with}
        )
        return
    for relation, count in facts.relations.items():
        typer.echo(f"{relation:<20} {count:>10,}")
    for line in counts_text(facts.made_with):
        typer.echo(line)
    for names in facts.made_with.get("ambiguous names", [])[:UNMATCHED_SHOWN]:
        typer.echo(f"  ambiguous: {names}")
    if facts.unmatched:
        typer.echo(f"{len(facts.unmatched):,} names match no node ({out / 'unmatched.tsv'} lists them all):")
        for name, count, nearest in facts.unmatched[:UNMATCHED_SHOWN]:
            typer.echo(f"  {name} ({count:,})" + (f": nearest {nearest}" if nearest else ""))
    placed = facts.made_with.get("with both ends in the lexicon or graph")
    usable = "" if placed is None else f"; {placed:,} have both ends in the lexicon or graph"
    typer.echo(f"{len(facts):,} facts are in {out}{usable}.")
