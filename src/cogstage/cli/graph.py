"""``cogstage graph``: build, import, merge, roll up and describe co-occurrence graphs."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli import graph_build, graph_import, graph_release, options
from cogstage.cli.app import CommandGroup
from cogstage.cli.console import print_json, report_graph, save_graph
from cogstage.cli.options import argument, count_option, output_option
from cogstage.errors import CogstageError

app = CommandGroup("Build, import, merge and describe co-occurrence graphs.")
app.command("build", epilog=graph_build.EXAMPLE)(graph_build.build)
app.add_typer(graph_import.app, name="import")
app.command(
    "release", epilog="Example: cogstage graph release bounded --private 1,1e-6,100 --budget 3,1e-5 --out shared"
)(graph_release.release)
app.command("audit", epilog="Example: cogstage graph audit --private 1,1e-6,100")(graph_release.audit)

GRAPH = argument(..., help="Graph folder.", metavar="GRAPH")
OUT = options.out("Output folder; an existing graph is replaced.")


@app.command("formats", epilog="Example: cogstage graph formats --json")
def formats(as_json: bool = options.as_json()) -> None:
    """List the input formats of `graph build` and their options."""
    from cogstage.corpus.readers import COMMON_OPTIONS, readers

    kinds = sorted(readers().items())
    described = {name: {o: a.help for o, a in {**kind.options, **COMMON_OPTIONS}.items()} for name, kind in kinds}
    if as_json:
        print_json({name: {"reads": kind.title, "options": described[name]} for name, kind in kinds})
        return
    for name, kind in kinds:
        typer.echo(f"{name}: {kind.title}")
        for option, meaning in described[name].items():
            typer.echo(f"  {option}: {meaning}")


@app.command("context", epilog="Example: cogstage graph context notes.csv --lexicon terms.tsv --examples 10")
def context(
    documents: list[str] = graph_build.DOCUMENTS,
    lexicon: list[str] = options.lexicon(graph_build.LEXICON, ...),
    examples: int = output_option(5, min=1, help="Number of examples per category.", metavar="N"),
    context_rules: str | None = options.CONTEXT_RULES,
    format: str = options.FORMAT,
    skip: bool = options.SKIP_BAD,
    as_json: bool = options.as_json(),
) -> None:
    """Show examples of mentions that are not counted: negated, family, hypothetical or historical."""
    from dataclasses import asdict

    from cogstage.corpus.annotate import Annotator
    from cogstage.corpus.context import rules_named
    from cogstage.corpus.context_examples import left_out_examples
    from cogstage.corpus.lexicon import Lexicon
    from cogstage.corpus.readers import open_reader
    from cogstage.tables import BadRows

    bad = BadRows(skip)
    annotator = Annotator(Lexicon.read(lexicon, bad=bad), rules=rules_named(context_rules))
    shown = list(left_out_examples(open_reader(documents, format, bad=bad), annotator, examples))
    if as_json:
        print_json([asdict(example) for example in shown])
        return
    for example in sorted(shown, key=lambda example: example.category):
        typer.echo(f"{example.category}: {example.before} [{example.mention}] {example.after}  ({example.where})")


@app.command("merge", epilog="Example: cogstage graph merge site-a site-b --out all")
def merge(
    graphs: list[Path] = argument(..., help="Graph folders, built with the same options.", metavar="FOLDER"),
    out: Path = OUT,
    as_json: bool = options.as_json(),
) -> None:
    """Add up the counts of several graphs, for example from several sites or months."""
    from cogstage.graph.merge import merge_folders

    merged = merge_folders(graphs, out)
    report_graph(merged, out, as_json)
    for note in merged.made_with["merged"]["notes"]:
        typer.echo(f"note: {note}", err=True)


@app.command("roll-up", epilog="Example: cogstage graph roll-up graph --map ingredient --vocabulary omop --out rolled")
def roll_up(
    graph: Path = GRAPH,
    map: str = count_option(
        ...,
        "--map",
        metavar="LEVEL|TABLE",
        help="Level or mapping table, as for --roll-up in `graph build`.",
    ),
    out: Path = OUT,
    vocabulary: Path | None = options.VOCABULARY,
    as_json: bool = options.as_json(),
) -> None:
    """Replace the codes of an existing graph by broader concepts, if the summed counts are exact."""
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.roll_up import read_roll_up, roll_up_graph

    loaded = Graph.load(graph)
    rolled = read_roll_up(map, loaded.vocabulary.term, vocabulary)
    if (unused := rolled.unused(loaded.vocabulary.term)) is not None:
        raise CogstageError(f"{unused}; nothing was written")
    save_graph(roll_up_graph(loaded, rolled), out, as_json)


@app.command("info", epilog="Example: cogstage graph info graph --plot degrees.png")
def info(
    graph: Path = GRAPH,
    top: int = options.top(10),
    plot: Path | None = output_option(None, help="Draw the degree distribution to this PNG file.", metavar="FILE"),
    as_json: bool = options.as_json(),
) -> None:
    """Show the nodes, edges, degrees and largest counts of a graph."""
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.info import describe, description_text, plot_degrees

    loaded = Graph.load(graph)
    about = describe(loaded, top)
    if plot is not None:
        plot_degrees(loaded, plot)
    if as_json:
        print_json(about)
        return
    typer.echo(f"{graph}: {description_text(about)}")
    if plot is not None:
        typer.echo(f"degree plot: {plot}")
