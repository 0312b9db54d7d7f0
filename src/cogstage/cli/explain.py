"""``explain``, ``discover`` and ``cases``: what a model says about pairs of terms, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from cogstage.rationale.cogstage import CogStage
    from cogstage.rationale.filters import Filter
    from cogstage.rationale.record import Prediction

MODEL = typer.Argument(..., help="Model folder.", metavar="MODEL")
K = typer.Option(5, "-k", "--top-rationales", min=0, help="How many rationales to show.")
THROUGH = typer.Option(None, "--through", help="Only rationales through this term.", metavar="TERM")
BY = typer.Option(None, "--rationale-relation", help="Only rationales of this relation.", metavar="R")
KNOWN = typer.Option(False, "--known-only", help="Only rationales that are training facts.")
FOLD = typer.Option(False, "--fold", help="Fold rationales about the same two associations into one.")
AS_JSON = typer.Option(False, "--json", help="One prediction record a line, as JSON.")
OUT = typer.Option(None, "--out", "-o", help="Write a file: .jsonl .tsv .parquet .kgx .graphml .dot .svg .png .html")


def explain(
    model: Path = MODEL,
    head: str | None = typer.Argument(None, help="Head term.", metavar="[HEAD]"),
    tail: str | None = typer.Argument(None, help="Tail term.", metavar="[TAIL]"),
    relation: str | None = typer.Option(None, "--relation", "-r", help="Relation; without it, all of the model's."),
    pairs: Path | None = typer.Option(None, "--pairs", help="Table of pairs: head, tail and optionally relation."),
    k: int = K,
    through: str | None = THROUGH,
    by: str | None = BY,
    known_only: bool = KNOWN,
    fold: bool = FOLD,
    as_json: bool = AS_JSON,
    html: bool = typer.Option(False, "--html", help="Print one self-contained HTML page."),
    out: Path | None = OUT,
) -> None:
    """Predict a pair of terms and show the strongest rationales.

    Example: cogstage explain model aspirin headache -k 10
    """
    from cogstage.errors import UsageError

    if pairs is None and (head is None or tail is None):
        raise UsageError("explain needs a head and a tail, or --pairs FILE")
    if pairs is not None and head is not None:
        raise UsageError("give a head and a tail, or --pairs FILE, not both")
    loaded = _load(model)
    choose = _filter(through, by, known_only, fold)
    failed = 0
    if pairs is not None:
        predictions, failed = _from_file(loaded, pairs, relation, k, choose)
    else:
        assert head is not None
        assert tail is not None
        nodes = loaded.vocabulary.find(head), loaded.vocabulary.find(tail)
        loaded.check_pair(*nodes)
        relations = [relation] if relation else list(loaded.relations)
        predictions = [loaded.predict_batch([nodes[0]], [nodes[1]], name, k, choose)[0] for name in relations]
    _show(predictions, as_json, html, out)
    if failed:
        raise typer.Exit(1)


def discover(
    model: Path = MODEL,
    head: str | None = typer.Argument(None, help="Head term; or give --tail.", metavar="[HEAD]"),
    relation: str | None = typer.Option(None, "--relation", "-r", help="Relation; needed if the model has several."),
    tail: str | None = typer.Option(None, "--tail", help="Rank heads for this tail instead."),
    top: int = typer.Option(20, "--top", min=1, help="How many candidates to show."),
    new_only: bool = typer.Option(False, "--new-only", help="Leave training facts out."),
    everywhere: bool = typer.Option(
        False, "--everywhere", help="Rank every node, not only usual ends of the relation."
    ),
    explained: bool = typer.Option(False, "--explain", help="Add the strongest rationales to each candidate."),
    k: int = K,
    through: str | None = THROUGH,
    by: str | None = BY,
    known_only: bool = KNOWN,
    fold: bool = FOLD,
    as_json: bool = AS_JSON,
    out: Path | None = OUT,
) -> None:
    """Rank the likeliest tails of a head (or heads of a tail).

    Example: cogstage discover model metformin --relation may_treat --new-only --explain
    """
    from cogstage.cli.console import progress
    from cogstage.errors import UsageError
    from cogstage.rationale.discover import discover as rank

    loaded = _load(model)
    if relation is None:
        if len(loaded.relations) > 1:
            raise UsageError(
                f"the model has several relations; choose one with --relation: {', '.join(loaded.relations)}"
            )
        relation = loaded.relations[0]
    if (head is None) == (tail is None):
        raise UsageError("discover needs a HEAD, or --tail TERM")
    predictions = rank(
        loaded,
        relation,
        head=None if head is None else loaded.vocabulary.find(head),
        tail=None if tail is None else loaded.vocabulary.find(tail),
        top=top,
        new_only=new_only,
        everywhere=everywhere,
        k=k if explained or as_json or out else 0,
        choose=_filter(through, by, known_only, fold),
        progress=progress(),
    )
    if as_json or out:
        _show(predictions, as_json, False, out)
    else:
        _print_ranking(predictions, by_head=head is not None, explained=explained)


def cases(
    model: Path = MODEL,
    dataset: Path = typer.Option(..., "--dataset", help="Data set folder whose test pairs are drawn from."),
    relation: str | None = typer.Option(None, "--relation", "-r", help="Relation; by default the model's first."),
    true: int = typer.Option(5, "--true", min=0, help="How many true pairs."),
    false: int = typer.Option(5, "--false", min=0, help="How many false pairs."),
    k: int = K,
    seed: int = typer.Option(0, "--seed", help="Which cases are drawn."),
    form: str = typer.Option("text", "--format", help="text, markdown, latex, html or jsonl."),
    out: Path | None = typer.Option(None, "--out", "-o", help="Write here instead of printing."),
) -> None:
    """Draw correctly predicted test pairs by seed and show their rationales, as in the paper's Table 4.

    Example: cogstage cases model --dataset dataset --seed 1 --format markdown
    """
    from cogstage.artefact import write_text
    from cogstage.errors import UsageError
    from cogstage.evaluation.cases import cases_section, choose_cases, to_latex, to_markdown, to_text
    from cogstage.knowledge.dataset import Dataset
    from cogstage.reporting import Report

    loaded = _load(model)
    data = Dataset.load(dataset)
    data.check_fits(loaded.vocabulary)
    relation = relation or loaded.relations[0]
    chosen = choose_cases(loaded, data, relation, true, false, seed, k)
    if form == "html":
        text = Report(f"Cases of {relation}, drawn with seed {seed}", sections=[cases_section(chosen)]).html()
    elif form == "jsonl":
        text = "".join(case.prediction.to_json() + "\n" for case in chosen)
    elif form in ("text", "markdown", "latex"):
        text = {"text": to_text, "markdown": to_markdown, "latex": to_latex}[form](chosen)
    else:
        raise UsageError(f"unknown format {form}; known are text, markdown, latex, html, jsonl")
    if out:
        write_text(out, text)
    else:
        typer.echo(text, nl=False)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (explain, discover, cases):
        app.command()(command)


def _load(path: Path) -> CogStage:
    from cogstage.rationale.cogstage import CogStage

    return CogStage.load(path)


def _filter(through: str | None, by: str | None, known_only: bool, fold: bool) -> Filter:
    from cogstage.rationale.filters import Filter

    return Filter(through, by, known_only, fold)


def _from_file(
    model: CogStage, path: Path, relation: str | None, k: int, choose: Filter
) -> tuple[list[Prediction], int]:
    """Predictions of a table of pairs; rows that cannot be used are named on stderr, the rest is done."""
    from cogstage.errors import CogstageError
    from cogstage.tables import BadRows, read_rows

    bad = BadRows(skip=True)
    wanted: dict[str, list[tuple[int, int, int]]] = {}
    number = 0
    for row in read_rows(path, required=("head", "tail"), optional=("relation",), bad=bad):
        try:
            head, tail = model.vocabulary.find(str(row["head"])), model.vocabulary.find(str(row["tail"]))
            model.check_pair(head, tail)
            for name in [row["relation"] or relation] if row["relation"] or relation else model.relations:
                model.check_relation(str(name))
                wanted.setdefault(str(name), []).append((number, head, tail))
                number += 1
        except CogstageError as error:
            bad.report(f"{row.where()}: {error}")
    for message in bad.first:
        typer.echo(f"left out: {message}", err=True)
    if bad.count > len(bad.first):
        typer.echo(f"left out: {bad.count - len(bad.first)} more rows", err=True)
    found: list[tuple[int, Prediction]] = []
    for name, entries in wanted.items():
        order, heads, tails = zip(*entries, strict=True)
        found += zip(order, model.predict_batch(heads, tails, name, k, choose), strict=True)
    return [prediction for _, prediction in sorted(found, key=lambda entry: entry[0])], bad.count


def _show(predictions: list[Prediction], as_json: bool, html: bool, out: Path | None) -> None:
    if out is not None:
        _write(predictions, out)
    elif html:
        typer.echo(_page(predictions), nl=False)
    elif as_json:
        for prediction in predictions:
            typer.echo(prediction.to_json())
    else:
        for prediction in predictions:
            _print_prediction(prediction)


def _page(predictions: list[Prediction]) -> str:
    from cogstage.evaluation.cases import Case, cases_section
    from cogstage.reporting import Report

    cases = cases_section([Case(prediction) for prediction in predictions])
    return Report("Predictions and their rationales", sections=[cases]).html()


def _write(predictions: list[Prediction], out: Path) -> None:
    from cogstage.artefact import write_text
    from cogstage.errors import UsageError
    from cogstage.rationale.exports import FORMATS, export
    from cogstage.rationale.picture import png, svg

    form = out.suffix.lower().removeprefix(".")
    if form in ("svg", "png") and len(predictions) != 1:
        raise UsageError(
            f"a picture shows one prediction, and there are {len(predictions)}; choose one with --relation"
        )
    if form == "svg":
        write_text(out, svg(predictions[0]))
    elif form == "png":
        out.write_bytes(png(predictions[0]))
    elif form == "html":
        write_text(out, _page(predictions))
    elif form in FORMATS:
        for path in export(predictions, out, form):
            typer.echo(f"wrote {path}", err=True)
        return
    else:
        raise UsageError(f"{out}: unknown ending; known are .svg, .png, .html, .{', .'.join(FORMATS)}")
    typer.echo(f"wrote {out}", err=True)


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def _print_prediction(prediction: Prediction) -> None:
    from rich.markup import escape
    from rich.table import Table

    from cogstage.relations import phrase

    console = _console()
    p = prediction
    colour = "green" if p.probability >= 0.5 else "red"
    known = "  (a training fact)" if p.known_fact else ""
    console.print(
        f"[bold]{escape(p.head.name)}[/] {phrase(p.relation)} [bold]{escape(p.tail.name)}[/]: "
        f"[{colour}]{p.probability:.3f}[/]{' calibrated' if p.calibrated else ' not calibrated'}"
        f", raw {p.raw_probability:.3f}{known}"
    )
    if not p.rationales:
        console.print(
            "  no rationale: no relation was recognised between what was recalled (or none passes the filter)\n"
        )
        return
    table = Table(box=None, pad_edge=False, header_style="dim", show_edge=False)
    for name in ("#", "rationale", "score", "contribution", "known", "together", "head recall", "tail recall"):
        table.add_column(name, justify="left" if name == "rationale" else "right")
    for rank, r in enumerate(p.rationales, start=1):
        table.add_row(
            str(rank),
            f"{escape(r.head.name)} [cyan]{phrase(r.relation)}[/] {escape(r.tail.name)}",
            f"{r.score:.3f}",
            f"{r.contribution:+.3f}",
            "yes" if r.known_fact else "no",
            "n/a" if r.cooccurrence is None else f"{r.cooccurrence:,}",
            _recall(r.head_recall.rank, r.head_recall.count),
            _recall(r.tail_recall.rank, r.tail_recall.count),
        )
    console.print(table)
    console.print(f"  [dim]rests on about {p.effective_assumptions:.0f} of {p.assumptions} assumptions[/]\n")


def _recall(rank: int, count: int | None) -> str:
    return f"rank {rank}, {'n/a' if count is None else f'{count:,}×'}"


def _print_ranking(predictions: list[Prediction], by_head: bool, explained: bool) -> None:
    from rich.markup import escape
    from rich.table import Table

    from cogstage.relations import phrase

    if explained:
        for prediction in predictions:
            _print_prediction(prediction)
        return
    console = _console()
    if not predictions:
        console.print("no candidates are left")
        return
    p = predictions[0]
    question = f"{p.head.name} {phrase(p.relation)} …" if by_head else f"… {phrase(p.relation)} {p.tail.name}"
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("#", escape(question), "probability", "known fact"):
        table.add_column(name, justify="left" if name not in ("#", "probability") else "right")
    for rank, prediction in enumerate(predictions, start=1):
        term = prediction.tail if by_head else prediction.head
        table.add_row(
            str(rank), escape(term.name), f"{prediction.probability:.3f}", "yes" if prediction.known_fact else ""
        )
    console.print(table)
