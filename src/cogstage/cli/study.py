"""``cogstage study``: the blind expert study, from drawing its cases to the report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cogstage.cli import panels
from cogstage.cli.console import print_json, progress
from cogstage.errors import UsageError

if TYPE_CHECKING:
    from cogstage.study.folder import OpenStudy

app = typer.Typer(help="Run a blind expert study of rationales: create, serve, report.", no_args_is_help=True)

FOLDER = typer.Argument(
    ..., metavar="STUDY", help="Study folder made by `cogstage study create`.", rich_help_panel=panels.INPUT
)
DATABASE = typer.Option(
    None,
    "--database",
    envvar="COGSTAGE_DATABASE",
    help="PostgreSQL database (postgresql://user@host/name) to use instead of the SQLite file in the folder.",
    metavar="URL",
    rich_help_panel=panels.RUN,
)
AS_JSON = typer.Option(False, "--json", help="Print the result as JSON.", rich_help_panel=panels.OUTPUT)


@app.command()
def create(
    source: list[str] = typer.Option(
        ...,
        "--source",
        "-s",
        metavar="NAME=PATH",
        help="Source of reasons: prediction records, a table of reasons, or a model or graph folder. "
        "Give two or more (crossover: one).",
        rich_help_panel=panels.INPUT,
    ),
    out: Path = typer.Option(
        ..., "--out", "-o", help="Study folder to write.", metavar="FOLDER", rich_help_panel=panels.OUTPUT
    ),
    dataset: Path | None = typer.Option(
        None,
        help="Data set whose test pairs carry the labels; otherwise the records need a `label` field.",
        metavar="FOLDER",
        rich_help_panel=panels.INPUT,
    ),
    protocol: str = typer.Option(
        "sets",
        help="sets asks whose reasons help more; crossover asks whether reasons help at all.",
        metavar="sets|crossover",
        rich_help_panel=panels.MODEL,
    ),
    pairs: int = typer.Option(
        20,
        help="With --protocol crossover: pairs per reviewer, half of them wrongly predicted.",
        metavar="N",
        rich_help_panel=panels.MODEL,
    ),
    cases: int = typer.Option(
        30, help="Number of correctly predicted positives.", metavar="N", rich_help_panel=panels.MODEL
    ),
    false_positives: int = typer.Option(
        0, help="Number of extra cases: negatives predicted positive.", metavar="N", rich_help_panel=panels.MODEL
    ),
    false_negatives: int = typer.Option(
        0, help="Number of extra cases: positives predicted negative.", metavar="N", rich_help_panel=panels.MODEL
    ),
    repeats: int = typer.Option(
        0, help="Number of cases shown twice, to measure self-consistency.", metavar="N", rich_help_panel=panels.MODEL
    ),
    without_rationales: int = typer.Option(
        0,
        help="Number of extra cases judged without reasons; also asks for trust in every case.",
        metavar="N",
        rich_help_panel=panels.MODEL,
    ),
    top: int = typer.Option(5, help="Number of reasons per set.", metavar="N", rich_help_panel=panels.MODEL),
    relation: str | None = typer.Option(
        None, help="Use only pairs of this relation.", metavar="NAME", rich_help_panel=panels.MODEL
    ),
    judged_by: str = typer.Option(
        "all",
        help="Whose predictions decide that a case is correct: all sources, or the first.",
        metavar="all|first",
        rich_help_panel=panels.MODEL,
    ),
    threshold: float = typer.Option(
        0.5, help="Probability at which a prediction counts as positive.", metavar="P", rich_help_panel=panels.MODEL
    ),
    title: str | None = typer.Option(
        None, help="Title shown to reviewers.", metavar="TEXT", rich_help_panel=panels.OUTPUT
    ),
    consent: Path | None = typer.Option(
        None, help="Text that reviewers must agree to before they start.", metavar="FILE", rich_help_panel=panels.OUTPUT
    ),
    contact: str = typer.Option("", help="Contact shown to reviewers.", metavar="TEXT", rich_help_panel=panels.OUTPUT),
    seed: int = typer.Option(0, help="Random seed for sampling the cases.", metavar="N", rich_help_panel=panels.MODEL),
    database: str | None = DATABASE,
    as_json: bool = AS_JSON,
) -> None:
    """Sample the cases of a study and write its folder; prints the administrator's password once.

    Example: cogstage study create -s open=open.jsonl -s closed=closed.jsonl --repeats 5 --seed 1 -o study
    """
    from dataclasses import asdict

    from cogstage.artefact import file_hash
    from cogstage.study.draw import StudyOptions, draw_study
    from cogstage.study.folder import check_new, create_folder
    from cogstage.study.protocol import check_source_names
    from cogstage.study.secret import new_password
    from cogstage.study.sources import labels_of_dataset, read_source

    check_new(out)
    paths = dict(_name_and_path(entry) for entry in source)
    check_source_names([_name_and_path(entry)[0] for entry in source], protocol)
    options = StudyOptions(
        title=title or "",
        protocol=protocol,
        pairs=pairs,
        cases=cases,
        false_positives=false_positives,
        false_negatives=false_negatives,
        repeats=repeats,
        without_rationales=without_rationales,
        per_set=top,
        relation=relation,
        judged_by=judged_by,
        threshold=threshold,
        seed=seed,
        consent=_text_of(consent) if consent else "",
        contact=contact,
    )
    report = progress()
    labels = labels_of_dataset(dataset, relation) if dataset else {}
    report.start("Reading the sources", len(paths))
    sources = []
    for name, path in paths.items():
        sources.append(read_source(name, path, labels, top, dataset))
        report.advance()
    report.done(", ".join(f"{entry.name}: {len(entry.predictions):,} predictions" for entry in sources))
    study = draw_study(sources, labels, options)
    made_with = {
        **asdict(options),
        "sources": {name: file_hash(path) if path.is_file() else str(path.name) for name, path in paths.items()},
    }
    password = new_password()
    create_folder(out, study, password, made_with, database)
    if as_json:
        print_json({"study": str(out), "id": study.id, "cases": len(study.cases), "administrator_password": password})
        return
    typer.echo(f"Study with {len(study.cases)} cases in {out}.")
    typer.echo(f"Administrator's password (shown only now): {password}")
    typer.echo(f"Next: cogstage study serve {out}")


@app.command()
def serve(
    study: Path = FOLDER,
    host: str = typer.Option("127.0.0.1", help="Address to listen on.", metavar="ADDRESS", rich_help_panel=panels.RUN),
    port: int = typer.Option(
        8765, min=1, max=65535, help="Port to listen on.", metavar="PORT", rich_help_panel=panels.RUN
    ),
    url: str | None = typer.Option(
        None,
        help="Public address, if a proxy stands in front of the server.",
        metavar="URL",
        rich_help_panel=panels.RUN,
    ),
    tls_cert: Path | None = typer.Option(
        None, help="TLS certificate (PEM), to serve https without a proxy.", metavar="FILE", rich_help_panel=panels.RUN
    ),
    tls_key: Path | None = typer.Option(
        None, help="Private key of the certificate (PEM).", metavar="FILE", rich_help_panel=panels.RUN
    ),
    secure_cookies: bool | None = typer.Option(
        None,
        "--secure-cookies/--no-secure-cookies",
        help="Send cookies over https only. Default: on, except on a loopback address.",
        rich_help_panel=panels.RUN,
    ),
    allowed_hosts: str = typer.Option(
        "",
        help="Other host names to answer to, comma-separated; * allows any.",
        metavar="NAMES",
        rich_help_panel=panels.RUN,
    ),
    trusted_proxies: str = typer.Option(
        "",
        help="Addresses or networks of proxies whose X-Forwarded-For header is trusted, comma-separated.",
        metavar="ADDRESSES",
        rich_help_panel=panels.RUN,
    ),
    database: str | None = DATABASE,
) -> None:
    """Serve the study's pages to reviewers and administrator until stopped.

    Example: cogstage study serve study --url https://study.example.org
    """
    from cogstage.study.folder import open_folder
    from cogstage.web.serving import LOOPBACK, Address, listed
    from cogstage.web.serving import serve as run
    from cogstage.web.study_app import create_study_app

    address = Address(host, port, url, tls_cert, tls_key, listed(allowed_hosts), listed(trusted_proxies))
    address.check()
    opened = open_folder(study, database)
    secure = address.secure_cookies if secure_cookies is None else secure_cookies
    public = address.url if url or address.certificate else None
    typer.echo(f"Study at {address.url}, administrator at {address.url}/admin (stop with Ctrl-C)", err=True)
    if secure and not address.is_https:
        typer.echo(
            "Cookies are for https only: put a TLS proxy before this and give --url, or give --tls-cert and --tls-key",
            err=True,
        )
    # On loopback the server knows its own address; elsewhere only its administrator knows how reviewers reach it.
    link_base = address.url if public or address.host in LOOPBACK else None
    if link_base is None:
        typer.echo("No links can be made on the administrator's page without --url", err=True)
    run(create_study_app(opened, public, secure, address.access, link_base), address)


@app.command()
def report(
    study: Path = FOLDER,
    out: Path = typer.Option(
        ...,
        "--out",
        "-o",
        help="Folder for the report and the raw answers.",
        metavar="FOLDER",
        rich_help_panel=panels.OUTPUT,
    ),
    names: bool = typer.Option(
        False, "--names", help="Show reviewers' names instead of R1, R2 and so on.", rich_help_panel=panels.OUTPUT
    ),
    include_unfinished: bool = typer.Option(
        False,
        "--include-unfinished",
        help="Include reviewers who did not answer everything in the main figures.",
        rich_help_panel=panels.MODEL,
    ),
    draws: int = typer.Option(
        2000,
        min=10,
        max=100_000,
        help="Number of bootstrap samples per interval.",
        metavar="N",
        rich_help_panel=panels.MODEL,
    ),
    seed: int = typer.Option(0, help="Random seed of the bootstrap.", metavar="N", rich_help_panel=panels.MODEL),
    database: str | None = DATABASE,
    as_json: bool = AS_JSON,
) -> None:
    """Compute the results with intervals, tests and agreement, and write them out with the raw answers.

    Example: cogstage study report study -o report
    """
    from cogstage.study.report import as_json as plain
    from cogstage.study.report import build_report, write_report

    opened = _open(study, database)
    try:
        results = write_report(opened, out, draws, seed, names, include_unfinished)
    finally:
        opened.close()
    if as_json:
        print_json(plain(results))
        return
    typer.echo(build_report(results, draws).text())
    if results.reviewers and not results.counted:
        typer.echo("No reviewer has finished: --include-unfinished shows the figures so far.", err=True)
    typer.echo(f"Written to {out}: {', '.join(sorted(path.name for path in out.iterdir()))}", err=True)


@app.command()
def power(
    accuracy: float = typer.Option(
        0.75, help="Expected share of correct verdicts without reasons.", metavar="P", rich_help_panel=panels.MODEL
    ),
    gain: float = typer.Option(
        0.10, help="Smallest gain from reasons that the study should detect.", metavar="P", rich_help_panel=panels.MODEL
    ),
    reviewers: int = typer.Option(
        24, help="Number of reviewers; must be even.", metavar="N", rich_help_panel=panels.MODEL
    ),
    pairs: int = typer.Option(
        20, help="Number of pairs per reviewer, half of them with reasons.", metavar="N", rich_help_panel=panels.MODEL
    ),
    reviewer_spread: float = typer.Option(
        0.5, help="Standard deviation between reviewers, in log-odds.", metavar="SD", rich_help_panel=panels.MODEL
    ),
    pair_spread: float = typer.Option(
        1.5, help="Standard deviation between pairs, in log-odds.", metavar="SD", rich_help_panel=panels.MODEL
    ),
    studies: int = typer.Option(
        1000,
        min=100,
        max=100_000,
        help="Number of simulated studies per design.",
        metavar="N",
        rich_help_panel=panels.MODEL,
    ),
    seed: int = typer.Option(0, help="Random seed of the simulation.", metavar="N", rich_help_panel=panels.MODEL),
    as_json: bool = AS_JSON,
) -> None:
    """Estimate by simulation how many reviewers and pairs a crossover study needs.

    Example: cogstage study power --accuracy 0.7 --gain 0.1
    """
    from cogstage.reporting import Table
    from cogstage.study.power import Scenario, plan

    made = plan(Scenario(accuracy, gain, reviewer_spread, pair_spread, reviewers, pairs), studies, seed)
    if as_json:
        table = [{"reviewers": r, "pairs": p, "power": value} for (r, p), value in made.table.items()]
        print_json({"power": made.power, "reviewers_for_80_percent": made.needed, "designs": table})
        return
    columns = sorted({p for _, p in made.table})
    rows = [(str(r), *(f"{made.table[r, p]:.0%}" for p in columns)) for r in sorted({r for r, _ in made.table})]
    needed = ("needed for 80 %", *("over 200" if made.needed[p] is None else str(made.needed[p]) for p in columns))
    head = ("reviewers", *(f"{p} pairs" for p in columns))
    caption = f"Power to find {accuracy:.0%} against {accuracy + gain:.0%} right verdicts at the 5 % level"
    typer.echo(Table(caption, head, (*rows, needed)).text())
    typer.echo(f"{reviewers} reviewers × {pairs} pairs: {made.power:.0%} of {studies:,} simulated studies find it.")


@app.command()
def invite(
    study: Path = FOLDER,
    names: list[str] = typer.Argument(
        ..., metavar="NAME", help="Names of reviewers, each in quotation marks.", rich_help_panel=panels.INPUT
    ),
    days: int = typer.Option(
        30, help="Number of days until the links expire.", metavar="N", rich_help_panel=panels.MODEL
    ),
    url: str | None = typer.Option(
        None, help="Public address of the study, with which the links start.", metavar="URL", rich_help_panel=panels.RUN
    ),
    database: str | None = DATABASE,
    as_json: bool = AS_JSON,
) -> None:
    """Create personal links for reviewers; each is printed once and stored hashed.

    Example: cogstage study invite study "Dr Ada Lovelace" "Dr John Snow" --url https://study.example.org
    """
    from cogstage.web.serving import Address

    if url is None:
        raise UsageError("links need the address that reviewers use, for example --url https://study.example.org")
    Address(public_url=url).check()
    opened = _open(study, database)
    try:
        made = opened.access.invite_all(names, days)
    finally:
        opened.close()
    links = {entry.reviewer.name: f"{url.rstrip('/')}/join/{entry.ticket}" for entry in made}
    if as_json:
        print_json(links)
        return
    for name, link in links.items():
        typer.echo(f"{name}\t{link}")


@app.command("close")
def close_study(study: Path = FOLDER, database: str | None = DATABASE) -> None:
    """Close the study to new answers; saved answers are kept.

    Example: cogstage study close study
    """
    opened = _open(study, database)
    opened.answers.close()
    opened.close()
    typer.echo("The study is closed.")


@app.command()
def reopen(study: Path = FOLDER, database: str | None = DATABASE) -> None:
    """Open a closed study for answers again.

    Example: cogstage study reopen study
    """
    opened = _open(study, database)
    opened.answers.reopen()
    opened.close()
    typer.echo("The study is open.")


@app.command("admin-password")
def admin_password(
    study: Path = FOLDER,
    generate: bool = typer.Option(
        False, "--generate", help="Generate a random password and print it.", rich_help_panel=panels.OUTPUT
    ),
    database: str | None = DATABASE,
) -> None:
    """Set the administrator's password, typed or from standard input, and end their sessions.

    Example: cogstage study admin-password study --generate
    """
    from cogstage.study.secret import new_password

    opened = _open(study, database)
    try:
        if generate:
            password = new_password()
        elif sys.stdin.isatty():
            password = typer.prompt("New password", hide_input=True, confirmation_prompt=True)
        else:
            password = sys.stdin.readline().rstrip("\n")
        opened.access.set_password(password)
    finally:
        opened.close()
    typer.echo(f"Administrator's password: {password}" if generate else "The administrator's password is set.")


@app.command()
def upgrade(study: Path = FOLDER, database: str | None = DATABASE) -> None:
    """Upgrade a study made by an older version. Make a copy first.

    Example: cogstage study upgrade study
    """
    from cogstage.study.folder import open_folder

    open_folder(study, database, upgrade=True).close()
    typer.echo("The study's tables are up to date.")


def _open(study: Path, database: str | None) -> OpenStudy:
    from cogstage.study.folder import open_folder

    return open_folder(study, database)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as text: {error}") from None


def _name_and_path(entry: str) -> tuple[str, Path]:
    name, separator, path = entry.partition("=")
    if not separator or not path:
        raise UsageError(f"--source {entry}: write it as NAME=PATH, for example open=open.jsonl")
    return name, Path(path)
