"""``cogstage graph``: build a co-occurrence graph, import one, look at one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cogstage.cli import panels
from cogstage.cli.console import print_json, progress

if TYPE_CHECKING:
    from typing import Literal

    from cogstage.corpus.lexicon import Ambiguity
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.options import Unit
    from cogstage.tables import BadRows

app = typer.Typer(help="Build, import and describe co-occurrence graphs.", no_args_is_help=True)
importing = typer.Typer(help="Import existing co-occurrence counts.", no_args_is_help=True)
app.add_typer(importing, name="import")

OUT = typer.Option(
    ...,
    "--out",
    help="Graph folder to write; an existing graph is replaced.",
    metavar="FOLDER",
    rich_help_panel=panels.OUTPUT,
)
SKIP_BAD = typer.Option(
    False,
    "--skip-bad",
    help="Skip and count rows that cannot be read, instead of stopping.",
    rich_help_panel=panels.INPUT,
)
JSON = typer.Option(False, "--json", help="Print the result as JSON.", rich_help_panel=panels.OUTPUT)


@app.command(
    "build",
    epilog="Example: cogstage graph build notes.jsonl.gz --lexicon terms.tsv --unit patient-window --window 7d "
    "--per patient --suppress-below 11 --out graph",
)
def build(
    documents: list[str] = typer.Argument(
        ...,
        help="Documents or coded records: files, folders or glob patterns.",
        metavar="FILE",
        rich_help_panel=panels.INPUT,
    ),
    out: Path = OUT,
    lexicon: list[str] | None = typer.Option(
        None,
        "--lexicon",
        help="Lexicon with the columns term, concept, name, type; may be repeated.",
        metavar="TABLE",
        rich_help_panel=panels.INPUT,
    ),
    unit: str = typer.Option(
        "auto",
        help="Unit within which terms co-occur; auto uses patient-window for coded records and document for text.",
        metavar="document|sentence|visit|patient-window|auto",
        rich_help_panel=panels.COUNT,
    ),
    window: str = typer.Option(
        "1d",
        help="Length of the time window, for --unit patient-window.",
        metavar="1d|7d|30d|90d|180d|365d|ever",
        rich_help_panel=panels.COUNT,
    ),
    per: str = typer.Option(
        "bin",
        help="Count every window, or each patient once, for --unit patient-window.",
        metavar="bin|patient",
        rich_help_panel=panels.COUNT,
    ),
    level: str = typer.Option(
        "concept", help="What a node stands for.", metavar="concept|term", rich_help_panel=panels.COUNT
    ),
    min_count: int = typer.Option(
        1, help="Leave out terms with a lower count.", metavar="N", rich_help_panel=panels.COUNT
    ),
    suppress_below: int = typer.Option(
        0,
        help="Leave out terms and edges with fewer patients (or documents).",
        metavar="N",
        rich_help_panel=panels.PRIVACY,
    ),
    private: str | None = typer.Option(
        None,
        metavar="EPS,DELTA,M",
        help="Differentially private release; each patient contributes at most M pairs.",
        rich_help_panel=panels.PRIVACY,
    ),
    order: bool = typer.Option(
        False, "--order", help="Also count which of two terms each patient has first.", rich_help_panel=panels.COUNT
    ),
    lag: str = typer.Option(
        "90d",
        help="With --order: longest time between the two terms, such as 90d, or any.",
        metavar="DAYS",
        rich_help_panel=panels.COUNT,
    ),
    until: str | None = typer.Option(
        None, metavar="YEAR|DATE", help="Leave out documents after this year or day.", rich_help_panel=panels.COUNT
    ),
    copies: str = typer.Option(
        "auto",
        help="What to do with nearly equal notes of one patient; auto drops them if there are patient identifiers.",
        metavar="auto|drop|keep",
        rich_help_panel=panels.COUNT,
    ),
    keep_context: bool = typer.Option(
        False,
        "--keep-context",
        help="Also count negated, family, hypothetical and historical mentions.",
        rich_help_panel=panels.COUNT,
    ),
    count: str = typer.Option(
        "auto", help="What to count in a document.", metavar="auto|text|codes|both", rich_help_panel=panels.COUNT
    ),
    ambiguity: str = typer.Option(
        "first",
        help="What to do with a term that has several concepts.",
        metavar="first|all|skip",
        rich_help_panel=panels.COUNT,
    ),
    stop_list: Path | None = typer.Option(
        None, help="Terms to ignore, one per line.", metavar="FILE", rich_help_panel=panels.INPUT
    ),
    roll_up: str | None = typer.Option(
        None,
        metavar="LEVEL|TABLE",
        help="Replace codes by ancestors: standard, ingredient, atc1 to atc5, snomed1 to snomed9, or a table.",
        rich_help_panel=panels.COUNT,
    ),
    vocabulary: Path | None = typer.Option(
        None, help="Folder with the OMOP concept tables, for roll-up.", metavar="FOLDER", rich_help_panel=panels.INPUT
    ),
    add_to: Path | None = typer.Option(
        None,
        help="Graph folder to extend: count only new files and add them to its counts.",
        metavar="FOLDER",
        rich_help_panel=panels.INPUT,
    ),
    variants: bool = typer.Option(
        False, "--variants", help="Also match plural and hyphen variants of terms.", rich_help_panel=panels.COUNT
    ),
    any_case: bool = typer.Option(
        False, "--any-case", help="Match abbreviations such as MS in any case.", rich_help_panel=panels.COUNT
    ),
    context_rules: str | None = typer.Option(
        None,
        metavar="FILE|de|es",
        help="Rules for negation and other context in text that is not English.",
        rich_help_panel=panels.COUNT,
    ),
    format: str = typer.Option(
        "auto",
        help="Input format; detected from the files by default. `cogstage graph formats` lists them.",
        metavar="NAME",
        rich_help_panel=panels.INPUT,
    ),
    column: list[str] | None = typer.Option(
        None,
        metavar="OURS=THEIRS",
        help="Name of a column in the input table, such as text=note_text; may be repeated.",
        rich_help_panel=panels.INPUT,
    ),
    date_format: str | None = typer.Option(
        None,
        help="Format of dates in the input table, such as %d/%m/%Y.",
        metavar="FORMAT",
        rich_help_panel=panels.INPUT,
    ),
    ids_across_files: bool = typer.Option(
        False,
        "--ids-across-files",
        help="Treat equal doc_id values in different files as one document.",
        rich_help_panel=panels.INPUT,
    ),
    reader_option: list[str] | None = typer.Option(
        None,
        metavar="NAME=VALUE",
        help="Option of the input format, such as tables=note,drug_exposure; may be repeated.",
        rich_help_panel=panels.INPUT,
    ),
    engine: str = typer.Option("local", help="Where to count.", metavar="local|spark", rich_help_panel=panels.RUN),
    master: str = typer.Option(
        "local[*]",
        help="Spark master, such as local[*] or spark://host:port.",
        metavar="URL",
        rich_help_panel=panels.RUN,
    ),
    memory: str = typer.Option(
        "4GB",
        help="Memory limit for counting; the rest is kept on disk next to --out.",
        metavar="SIZE",
        rich_help_panel=panels.RUN,
    ),
    workers: int | None = typer.Option(
        None, help="Number of annotation processes; all cores by default.", metavar="N", rich_help_panel=panels.RUN
    ),
    resume: bool = typer.Option(False, "--resume", help="Continue an interrupted build.", rich_help_panel=panels.RUN),
    seed: int | None = typer.Option(
        None,
        help="Random seed for --private; only for tests, never for a real release.",
        metavar="N",
        rich_help_panel=panels.PRIVACY,
    ),
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """Count co-occurrences in text or coded records, and write a graph folder."""
    from typing import Any, cast

    from cogstage.corpus.readers import reader_options
    from cogstage.graph.build import build_graph
    from cogstage.graph.merge import add_documents
    from cogstage.graph.options import BuildOptions, Private, parse_lag, parse_size, parse_until, parse_window
    from cogstage.tables import BadRows

    options = BuildOptions(
        unit=cast("Unit", unit),  # checked there
        window=parse_window(window),
        per=cast('Literal["bin", "patient"]', per),
        level=cast('Literal["term", "concept"]', level),
        min_count=min_count,
        suppress_below=suppress_below,
        private=None if private is None else Private.parse(private),
        order=order,
        lag=parse_lag(lag),
        until=None if until is None else parse_until(until),
        copies=cast('Literal["auto", "drop", "keep"]', copies),
        keep_context=keep_context,
        codes=cast('Literal["auto", "text", "codes", "both"]', count),
        ambiguity=cast("Ambiguity", ambiguity),
        variants=variants,
        any_case=any_case,
        context_rules=context_rules,
        format=format,
        reader=reader_options(
            [
                *(reader_option or ()),
                *([f"columns={','.join(column)}"] if column else ()),
                *([f"date_format={date_format}"] if date_format else ()),
                *(["ids_across_files=true"] if ids_across_files else ()),
            ],
            format,
        ),
    )
    bad, bar = BadRows(skip=skip_bad), progress()
    how: dict[str, Any] = {
        "stop_list": stop_list if stop_list is not None else (),
        "roll_up": roll_up,
        "vocabulary": vocabulary,
        "engine": engine,
        "master": master,
        "memory": parse_size(memory),
        "workers": workers,
        "resume": resume,
        "seed": seed,
        "bad": bad,
        "progress": bar,
    }
    if add_to is None:
        built = build_graph(documents, out, lexicon or None, options, **how)
    else:
        built = add_documents(add_to, documents, out, lexicon or None, options, **how)
    _say_skipped(bad)
    if as_json:
        result = {"nodes": built.nodes, "edges": built.edges, "skipped": built.skipped, "out": str(out)}
        print_json(result if private else {**result, "documents": built.documents, "units": built.units})
    else:
        typer.echo(f"{out}: {built.nodes:,} nodes, {built.edges:,} edges")


@app.command("formats", epilog="Example: cogstage graph formats --json")
def formats(as_json: bool = JSON) -> None:
    """List the input formats of `graph build`, with their options."""
    from cogstage.corpus.readers import COMMON_OPTIONS, readers

    kinds = sorted(readers().items())
    options = {name: {o: a.help for o, a in {**kind.options, **COMMON_OPTIONS}.items()} for name, kind in kinds}
    if as_json:
        print_json({name: {"reads": kind.title, "options": options[name]} for name, kind in kinds})
        return
    for name, kind in kinds:
        typer.echo(f"{name}: {kind.title}")
        for option, meaning in options[name].items():
            typer.echo(f"  {option}: {meaning}")


@app.command("context", epilog="Example: cogstage graph context notes.csv --lexicon terms.tsv --count 10")
def context(
    documents: list[str] = typer.Argument(
        ...,
        help="Documents or coded records: files, folders or glob patterns.",
        metavar="FILE",
        rich_help_panel=panels.INPUT,
    ),
    lexicon: list[str] = typer.Option(
        ...,
        "--lexicon",
        help="Lexicon with the columns term, concept, name, type; may be repeated.",
        metavar="TABLE",
        rich_help_panel=panels.INPUT,
    ),
    count: int = typer.Option(
        5, min=1, help="What to count in a document.", metavar="auto|text|codes|both", rich_help_panel=panels.COUNT
    ),
    context_rules: str | None = typer.Option(
        None,
        metavar="FILE|de|es",
        help="Rules for negation and other context in text that is not English.",
        rich_help_panel=panels.COUNT,
    ),
    format: str = typer.Option(
        "auto",
        help="Input format; detected from the files by default. `cogstage graph formats` lists them.",
        metavar="NAME",
        rich_help_panel=panels.INPUT,
    ),
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """Show mentions that are left out as negated, family, hypothetical or historical."""
    from dataclasses import asdict

    from cogstage.corpus.annotate import Annotator
    from cogstage.corpus.context import rules_named
    from cogstage.corpus.context_examples import left_out_examples
    from cogstage.corpus.lexicon import Lexicon
    from cogstage.corpus.readers import open_reader
    from cogstage.tables import BadRows

    bad = BadRows(skip=skip_bad)
    annotator = Annotator(Lexicon.read(lexicon, bad=bad), rules=rules_named(context_rules))
    examples = list(left_out_examples(open_reader(documents, format, bad=bad), annotator, count))
    if as_json:
        print_json([asdict(example) for example in examples])
        return
    for example in sorted(examples, key=lambda example: example.category):
        typer.echo(f"{example.category}: {example.before} [{example.mention}] {example.after}  ({example.where})")


@importing.command("edges", epilog="Example: cogstage graph import edges pairs.tsv --terms terms.tsv --out graph")
def import_edges(
    edges: list[str] = typer.Argument(
        ..., help="Tables with the columns source, target, count.", metavar="FILE", rich_help_panel=panels.INPUT
    ),
    out: Path = OUT,
    terms: list[str] | None = typer.Option(
        None,
        help="Table with the column term, and optionally concept, name, type, count; may be repeated.",
        metavar="TABLE",
        rich_help_panel=panels.INPUT,
    ),
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """Import a co-occurrence table."""
    from cogstage.graph.importers import import_edges as read
    from cogstage.tables import BadRows

    bad = BadRows(skip=skip_bad)
    _save(read(edges, terms or None, bad, progress()), out, as_json)
    _say_skipped(bad)


@importing.command(
    "finlayson", epilog="Example: cogstage graph import finlayson dryad --window 1d --min-count 100 --out graph"
)
def import_finlayson(
    folder: Path = typer.Argument(
        ...,
        help="Folder with the unpacked files of doi:10.5061/dryad.jp917.",
        metavar="FOLDER",
        rich_help_panel=panels.INPUT,
    ),
    out: Path = OUT,
    level: str = typer.Option(
        "term", help="What a node stands for.", metavar="concept|term", rich_help_panel=panels.COUNT
    ),
    per: str = typer.Option(
        "bin",
        help="Count every window, or each patient once, for --unit patient-window.",
        metavar="bin|patient",
        rich_help_panel=panels.COUNT,
    ),
    window: str = typer.Option(
        "1d",
        help="Length of the time window, for --unit patient-window.",
        metavar="1d|7d|30d|90d|180d|365d|ever",
        rich_help_panel=panels.COUNT,
    ),
    min_count: int = typer.Option(
        1, help="Leave out terms with a lower count.", metavar="N", rich_help_panel=panels.COUNT
    ),
    as_json: bool = JSON,
) -> None:
    """Import the counts of 20 million clinical notes that Finlayson et al. published in 2014."""
    from cogstage.errors import UsageError
    from cogstage.graph.importers import import_finlayson as read
    from cogstage.graph.options import parse_window

    if level not in ("term", "concept") or per not in ("bin", "patient"):
        raise UsageError("--level is term or concept, --per is bin or patient")
    _save(read(folder, level, per, parse_window(window), min_count, progress()), out, as_json)


@importing.command(
    "xmedrela",
    epilog="Example: cogstage graph import xmedrela sub_neighbors_dict_ppmi_perBin_1.pkl "
    "--strings term_string_mapping.pkl --concepts term_concept_mapping.pkl --out graph",
)
def import_xmedrela(
    neighbours: Path = typer.Argument(
        ..., help="Pickle: term id to a list of (term id, weight).", metavar="FILE", rich_help_panel=panels.INPUT
    ),
    out: Path = OUT,
    strings: Path | None = typer.Option(
        None, help="Pickle: term id to string.", metavar="FILE", rich_help_panel=panels.INPUT
    ),
    concepts: Path | None = typer.Option(
        None, help="Pickle: term id to concept.", metavar="FILE", rich_help_panel=panels.INPUT
    ),
    as_json: bool = JSON,
) -> None:
    """Import the published pickles of X-MedRELA, without executing code in them."""
    from cogstage.graph.importers import import_xmedrela as read

    _save(read(neighbours, strings, concepts), out, as_json)


@app.command("merge", epilog="Example: cogstage graph merge site-a site-b --out all")
def merge(
    graphs: list[Path] = typer.Argument(
        ..., help="Graph folders counted with the same options.", metavar="FOLDER", rich_help_panel=panels.INPUT
    ),
    out: Path = OUT,
    as_json: bool = JSON,
) -> None:
    """Add up the counts of several graphs, such as sites or months."""
    from cogstage.graph.merge import merge_folders

    merged = merge_folders(graphs, out)
    _report(merged, out, as_json)
    for note in merged.made_with["merged"]["notes"]:
        typer.echo(f"note: {note}", err=True)


@app.command("roll-up", epilog="Example: cogstage graph roll-up graph --map ingredient --vocabulary omop --out rolled")
def roll_up(
    graph: Path = typer.Argument(..., help="Graph folder.", metavar="GRAPH", rich_help_panel=panels.INPUT),
    map: str = typer.Option(
        ...,
        "--map",
        metavar="LEVEL|TABLE",
        help="Target level or mapping table, as for --roll-up of `graph build`.",
        rich_help_panel=panels.COUNT,
    ),
    out: Path = OUT,
    vocabulary: Path | None = typer.Option(
        None, help="Folder with the OMOP concept tables, for roll-up.", metavar="FOLDER", rich_help_panel=panels.INPUT
    ),
    as_json: bool = JSON,
) -> None:
    """Replace the codes of an existing graph by their ancestors, where sums of counts are exact."""
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.roll_up import read_roll_up, roll_up_graph

    loaded = Graph.load(graph)
    _save(roll_up_graph(loaded, read_roll_up(map, loaded.vocabulary.term, vocabulary)), out, as_json)


@app.command("info", epilog="Example: cogstage graph info graph --plot degrees.png")
def info(
    graph: Path = typer.Argument(..., help="Graph folder.", metavar="GRAPH", rich_help_panel=panels.INPUT),
    top: int = typer.Option(
        10, help="Number of the largest counts to show.", metavar="N", rich_help_panel=panels.OUTPUT
    ),
    plot: Path | None = typer.Option(
        None, help="Draw the degree distribution to this PNG file.", metavar="FILE", rich_help_panel=panels.OUTPUT
    ),
    as_json: bool = JSON,
) -> None:
    """Show the nodes, edges, degrees and largest counts of a graph."""
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.info import describe, plot_degrees

    loaded = Graph.load(graph)
    about = describe(loaded, top)
    if plot is not None:
        plot_degrees(loaded, plot)
    if as_json:
        print_json(about)
        return
    degree = about["degree"]
    typer.echo(f"{graph}: {about['nodes']:,} nodes, {about['edges']:,} edges, density {about['density']:.4g}")
    made = {key: value for key, value in about["made_with"].items() if isinstance(value, (str, int)) and value}
    typer.echo("made with: " + ", ".join(f"{key} {value}" for key, value in made.items()))
    typer.echo(
        f"neighbours: mean {degree['mean']:.1f}, median {degree['median']:.0f}, largest {degree['largest']:,}; "
        f"{about['isolated']:,} nodes have none"
    )
    for bucket in degree["distribution"]:
        typer.echo(f"  {bucket['from']:>8,} to {bucket['to']:<8,} {bucket['nodes']:>10,} nodes")
    typer.echo("largest counts of terms:")
    for node in about["largest_nodes"]:
        typer.echo(f"  {node['count']:>10,}  {node['name']} ({node['degree']:,} neighbours)")
    typer.echo("largest counts of pairs:")
    for edge in about["largest_edges"]:
        typer.echo(f"  {edge['count']:>10,}  {edge['source']} - {edge['target']}")
    if plot is not None:
        typer.echo(f"degree plot: {plot}")


def _save(graph: Graph, out: Path, as_json: bool) -> None:
    graph.save(out)
    _report(graph, out, as_json)


def _report(graph: Graph, out: Path, as_json: bool) -> None:
    if as_json:
        print_json({"nodes": graph.n_nodes, "edges": graph.n_edges, "out": str(out)})
    else:
        typer.echo(f"{out}: {graph.n_nodes:,} nodes, {graph.n_edges:,} edges")


def _say_skipped(bad: BadRows) -> None:
    for line in bad.summary():
        typer.echo(line, err=True)
