"""``cogstage graph``: build a co-occurrence graph, import one, look at one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cogstage.cli.console import print_json, progress

if TYPE_CHECKING:
    from typing import Literal

    from cogstage.corpus.lexicon import Ambiguity
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.options import Unit
    from cogstage.tables import BadRows

app = typer.Typer(help="Build, import and describe co-occurrence graphs.", no_args_is_help=True, rich_markup_mode=None)
importing = typer.Typer(help="Take over a graph that others counted.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(importing, name="import")

OUT = typer.Option(..., "--out", help="Folder for the graph; an older graph there is replaced.")
SKIP_BAD = typer.Option(False, "--skip-bad", help="Leave bad rows out, count them and say so at the end.")
JSON = typer.Option(False, "--json", help="Print the result as JSON.")


@app.command(
    "build",
    epilog="Example: cogstage graph build notes.jsonl.gz --lexicon terms.tsv --unit patient-window --window 7d "
    "--per patient --suppress-below 11 --out graph",
)
def build(
    documents: list[str] = typer.Argument(..., help="Documents or coded records: files, folders or globs."),
    out: Path = OUT,
    lexicon: list[str] | None = typer.Option(None, "--lexicon", help="Table term, concept, name, type."),
    unit: str = typer.Option(
        "auto", help="document, sentence, visit or patient-window; auto takes patient-window for coded records."
    ),
    window: str = typer.Option("1d", help="patient-window: 1d, 7d, 30d, 90d, 180d, 365d or ever."),
    per: str = typer.Option("bin", help="patient-window: count bins, or each patient once (bin or patient)."),
    level: str = typer.Option("concept", help="What a node is: concept or term."),
    min_count: int = typer.Option(1, help="Leave out terms in fewer units."),
    suppress_below: int = typer.Option(0, help="Leave out terms and edges of fewer patients (or documents)."),
    private: str | None = typer.Option(
        None, metavar="EPS,DELTA,M", help="Differentially private release; a patient contributes at most M pairs."
    ),
    order: bool = typer.Option(False, "--order", help="Count which of two terms each patient has first."),
    lag: str = typer.Option("90d", help="--order: days that may lie between the two, or any."),
    until: str | None = typer.Option(None, metavar="YEAR|DATE", help="Leave out documents after this year or day."),
    copies: str = typer.Option(
        "auto", help="Nearly equal notes of one patient: drop or keep; auto drops them where there are patients."
    ),
    keep_context: bool = typer.Option(
        False, "--keep-context", help="Count negated, family, hypothetical and historical mentions too."
    ),
    count: str = typer.Option("auto", help="auto, text, codes or both: what of a document is counted."),
    ambiguity: str = typer.Option("first", help="A term of several concepts stands for the first, all, or skip it."),
    stop_list: Path | None = typer.Option(None, help="Terms not to look for, one a line."),
    roll_up: str | None = typer.Option(
        None, metavar="LEVEL|TABLE", help="Count codes as standard, ingredient, atc1-5, snomed1-9, or by a table."
    ),
    vocabulary: Path | None = typer.Option(None, help="--roll-up: folder of OMOP's concept tables."),
    add_to: Path | None = typer.Option(None, help="Count new files only and add them to this graph."),
    variants: bool = typer.Option(False, "--variants", help="Match plural and hyphen variants too."),
    any_case: bool = typer.Option(False, "--any-case", help="Match abbreviations like MS in any case."),
    context_rules: str | None = typer.Option(
        None, metavar="FILE|de|es", help="Rules of negation and so on for text that is not English."
    ),
    format: str = typer.Option("auto", help="Input format, detected by default; `cogstage graph formats` lists all."),
    column: list[str] | None = typer.Option(
        None, metavar="OURS=THEIRS", help="What a column is called in the table, like text=note_text."
    ),
    date_format: str | None = typer.Option(None, help="How the table writes dates, like %d/%m/%Y."),
    ids_across_files: bool = typer.Option(
        False, "--ids-across-files", help="A doc_id means the same document in all files; by default in its own."
    ),
    reader_option: list[str] | None = typer.Option(
        None, metavar="NAME=VALUE", help="Option of the format's reader, like tables=note,drug_exposure."
    ),
    engine: str = typer.Option("local", help="local or spark."),
    master: str = typer.Option("local[*]", help="Spark: local[*] or spark://host:port."),
    memory: str = typer.Option("4GB", help="Ceiling for counting; what is more goes to disk beside --out."),
    workers: int | None = typer.Option(None, help="Annotating processes; all cores if not given."),
    resume: bool = typer.Option(False, "--resume", help="Go on with the work of an interrupted build."),
    seed: int | None = typer.Option(None, help="For --private, to repeat a test; never for a real release."),
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """Count which terms occur together, in text or in coded records, and write a graph folder."""
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
    """Input formats that `graph build` reads, with the options of their readers."""
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
    documents: list[str] = typer.Argument(..., help="Documents: files, folders or globs."),
    lexicon: list[str] = typer.Option(..., "--lexicon", help="Table term, concept, name, type."),
    count: int = typer.Option(5, min=1, help="Examples of each category."),
    context_rules: str | None = typer.Option(None, metavar="FILE|de|es", help="Rules for text that is not English."),
    format: str = typer.Option("auto", help="Input format, detected by default."),
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
    edges: list[str] = typer.Argument(..., help="Table source, target, count."),
    out: Path = OUT,
    terms: list[str] | None = typer.Option(None, help="Table term, and optionally concept, name, type, count."),
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """A table of edges."""
    from cogstage.graph.importers import import_edges as read
    from cogstage.tables import BadRows

    bad = BadRows(skip=skip_bad)
    _save(read(edges, terms or None, bad, progress()), out, as_json)
    _say_skipped(bad)


@importing.command(
    "finlayson", epilog="Example: cogstage graph import finlayson dryad --window 1d --min-count 100 --out graph"
)
def import_finlayson(
    folder: Path = typer.Argument(..., help="Folder with the unpacked files of doi:10.5061/dryad.jp917."),
    out: Path = OUT,
    level: str = typer.Option("term", help="term or concept."),
    per: str = typer.Option("bin", help="bin or patient."),
    window: str = typer.Option("1d", help="1d, 7d, 30d, 90d, 180d, 365d or ever."),
    min_count: int = typer.Option(1, help="Leave out terms with a smaller singleton count."),
    as_json: bool = JSON,
) -> None:
    """The counts of 20 million clinical notes that Finlayson et al. published in 2014."""
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
    neighbours: Path = typer.Argument(..., help="Pickle: term id to a list of (term id, weight)."),
    out: Path = OUT,
    strings: Path | None = typer.Option(None, help="Pickle: term id to string."),
    concepts: Path | None = typer.Option(None, help="Pickle: term id to concept."),
    as_json: bool = JSON,
) -> None:
    """The published pickles of X-MedRELA, read without running anything in them."""
    from cogstage.graph.importers import import_xmedrela as read

    _save(read(neighbours, strings, concepts), out, as_json)


@app.command("merge", epilog="Example: cogstage graph merge site-a site-b --out all")
def merge(
    graphs: list[Path] = typer.Argument(..., help="Graph folders that were counted with the same options."),
    out: Path = OUT,
    as_json: bool = JSON,
) -> None:
    """Add up the counts of several sites or months."""
    from cogstage.graph.merge import merge_folders

    merged = merge_folders(graphs, out)
    _report(merged, out, as_json)
    for note in merged.made_with["merged"]["notes"]:
        typer.echo(f"note: {note}", err=True)


@app.command("roll-up", epilog="Example: cogstage graph roll-up graph --map ingredient --vocabulary omop --out rolled")
def roll_up(
    graph: Path = typer.Argument(..., help="A graph folder."),
    map: str = typer.Option(..., "--map", metavar="LEVEL|TABLE", help="As --roll-up of graph build."),
    out: Path = OUT,
    vocabulary: Path | None = typer.Option(None, help="Folder of OMOP's concept tables."),
    as_json: bool = JSON,
) -> None:
    """Roll up the codes of a graph that exists, where the sums of its counts are exact."""
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.roll_up import read_roll_up, roll_up_graph

    loaded = Graph.load(graph)
    _save(roll_up_graph(loaded, read_roll_up(map, loaded.vocabulary.term, vocabulary)), out, as_json)


@app.command("info", epilog="Example: cogstage graph info graph --plot degrees.png")
def info(
    graph: Path = typer.Argument(..., help="A graph folder."),
    top: int = typer.Option(10, help="How many of the largest counts to show."),
    plot: Path | None = typer.Option(None, help="Draw the degree distribution to this PNG file."),
    as_json: bool = JSON,
) -> None:
    """Nodes, edges, degrees and the largest counts of a graph."""
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
