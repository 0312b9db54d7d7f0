"""``cogstage federate``: add up the counts of several sites without seeing those of any."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli import options
from cogstage.cli.app import CommandGroup
from cogstage.cli.console import report_graph
from cogstage.cli.options import argument, input_option, privacy_option
from cogstage.errors import UsageError

app = CommandGroup("Add up the counts of several sites without seeing those of any site.")

ROUND = argument(..., help="Folder with the files of the round; shared, or copied by any means.", metavar="ROUND")
IDENTITY = input_option(..., "--identity", help="Identity file of this site or coordinator.", metavar="FILE")


@app.command("identity", epilog="Example: cogstage federate identity site-a.key")
def identity(file: Path = argument(..., help="File to create.", metavar="FILE")) -> None:
    """Create an identity, and print its public key for the coordinator."""
    from cogstage.graph.federation.messages import Identity

    typer.echo(Identity.create(file).public)


@app.command(
    "start", epilog="Example: cogstage federate start round --identity me.key --site a=KEY --site b=KEY --site c=KEY "
    "--lexicon terms.tsv"
)  # fmt: skip
def start(
    folder: Path = ROUND,
    identity: Path = IDENTITY,
    site: list[str] = input_option(..., "--site", help="Site and its public key; repeat for each.", metavar="NAME=KEY"),
    lexicon: list[str] | None = options.lexicon("Lexicon table; its concepts are the nodes of the round."),
    nodes: Path | None = input_option(
        None, help="Nodes of the round instead: a table (term, concept, name, type) or a graph folder.", metavar="TABLE"
    ),
    least_sites: int | None = privacy_option(
        None, help="Number of sites that must stay (default: more than two thirds).", metavar="N"
    ),
) -> None:
    """Start a round as its coordinator."""
    from cogstage.graph.federation.messages import Identity
    from cogstage.graph.federation.rounds import concepts_of, start_round, terms_of

    sites = {name: key for name, _, key in (text.partition("=") for text in site)}
    if (nodes is None) == (not lexicon):
        raise UsageError("a round needs either `lexicon` or `nodes`")
    if len(sites) < len(site):
        raise UsageError("`site` names a site twice")
    terms = concepts_of(lexicon or []) if nodes is None else terms_of(nodes)
    about = start_round(folder, Identity.read(identity), sites, terms, least_sites)
    typer.echo(
        f"{folder}: {len(about.sites)} sites, {about.threshold} must stay, {len(about.terms):,} terms; "
        f"fingerprint {about.fingerprint}"
    )


@app.command("step", epilog="Example: cogstage federate step round graph --identity site-a.key")
def step(
    folder: Path = ROUND,
    graph: Path = argument(..., help="Graph folder with the counts of this site.", metavar="GRAPH"),
    identity: Path = IDENTITY,
) -> None:
    """Take the next step as a site; repeat when files of the other sites have come."""
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.federation.messages import Identity
    from cogstage.graph.federation.site import take_step

    typer.echo(take_step(folder, Identity.read(identity), Graph.load(graph)))


@app.command("close", epilog="Example: cogstage federate close round --identity me.key")
def close(folder: Path = ROUND, identity: Path = IDENTITY) -> None:
    """Close a round as its coordinator: the sites that sent masked numbers are in the sum."""
    from cogstage.graph.federation.coordinator import close_round
    from cogstage.graph.federation.messages import Identity

    typer.echo(f"present: {', '.join(close_round(folder, Identity.read(identity)))}")


@app.command("sum", epilog="Example: cogstage federate sum round --identity me.key --private 1,1e-6,100 --out graph")
def add_up(
    folder: Path = ROUND,
    identity: Path = IDENTITY,
    out: Path = options.out("Output folder; an existing graph is replaced."),
    private: str | None = privacy_option(
        None,
        help="Release with differential privacy: noise is added once, to the sum.",
        metavar="EPS,DELTA,M",
    ),
    as_json: bool = options.as_json(),
) -> None:
    """Add up the masked counts as the coordinator, and write the graph."""
    from cogstage.graph.federation.coordinator import sum_round
    from cogstage.graph.federation.messages import Identity
    from cogstage.graph.options import PrivacyOptions
    from cogstage.graph.releasing import private_release

    wanted = None if private is None else PrivacyOptions.parse(private)
    graph = sum_round(folder, Identity.read(identity))
    graph = graph if wanted is None else private_release(graph, wanted)
    graph.save(out)
    report_graph(graph, out, as_json)
