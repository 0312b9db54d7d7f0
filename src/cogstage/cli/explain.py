"""``explain``, ``discover`` and ``cases``: what a model says about pairs of terms, and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cogstage.cli import panels

if TYPE_CHECKING:
    from cogstage.estimator import CogStage
    from cogstage.rationale.filters import Filter
    from cogstage.rationale.record import Prediction

MODEL = typer.Argument(..., help="Model folder.", metavar="MODEL", rich_help_panel=panels.INPUT)
K = typer.Option(
    None,
    "-k",
    "--reasons",
    min=0,
    help="Number of reasons to show; all by default.",
    metavar="N",
    rich_help_panel=panels.MODEL,
)
THROUGH = typer.Option(
    None, "--through", help="Show only reasons through this term.", metavar="TERM", rich_help_panel=panels.MODEL
)
BY = typer.Option(
    None,
    "--reason-relation",
    help="Show only reasons with this relation.",
    metavar="RELATION",
    rich_help_panel=panels.MODEL,
)
KNOWN = typer.Option(
    False, "--known-only", help="Show only reasons that are known facts.", rich_help_panel=panels.MODEL
)
AS_JSON = typer.Option(
    False, "--json", help="Print one prediction record per line, as JSON.", rich_help_panel=panels.OUTPUT
)
WITHOUT = typer.Option(
    [],
    "--without",
    help="Predict as if this triple were not recognised; may be repeated.",
    metavar='"HEAD relation TAIL"',
    rich_help_panel=panels.MODEL,
)
ASSUME = typer.Option(
    [],
    "--assume",
    help="Predict as if this triple were a known fact; may be repeated.",
    metavar='"HEAD relation TAIL"',
    rich_help_panel=panels.MODEL,
)
CORRECTIONS = typer.Option(
    None,
    "--corrections",
    help="Verdicts on triples to apply (columns head, relation, tail, verdict).",
    metavar="TABLE",
    rich_help_panel=panels.INPUT,
)
OUT = typer.Option(
    None,
    "--out",
    "-o",
    help="File to write; the ending sets the format: .jsonl .tsv .parquet .kgx .graphml .dot .svg .png .html",
    metavar="FILE",
    rich_help_panel=panels.OUTPUT,
)


def explain(
    model: Path = MODEL,
    head: str | None = typer.Argument(None, help="Head term.", metavar="HEAD", rich_help_panel=panels.INPUT),
    tail: str | None = typer.Argument(None, help="Tail term.", metavar="TAIL", rich_help_panel=panels.INPUT),
    relation: str | None = typer.Option(
        None,
        "--relation",
        "-r",
        help="Relation to predict; all relations of the model by default.",
        metavar="NAME",
        rich_help_panel=panels.MODEL,
    ),
    pairs: Path | None = typer.Option(
        None,
        "--pairs",
        help="Table of pairs: head, tail and optionally relation.",
        metavar="TABLE",
        rich_help_panel=panels.INPUT,
    ),
    k: int | None = K,
    through: str | None = THROUGH,
    by: str | None = BY,
    known_only: bool = KNOWN,
    as_json: bool = AS_JSON,
    prose: bool = typer.Option(
        False, "--prose", help="Print two to five plain sentences instead of the sum.", rich_help_panel=panels.OUTPUT
    ),
    html: bool = typer.Option(
        False, "--html", help="Print one self-contained HTML page.", rich_help_panel=panels.OUTPUT
    ),
    without: list[str] = WITHOUT,
    assume: list[str] = ASSUME,
    corrections: Path | None = CORRECTIONS,
    out: Path | None = OUT,
) -> None:
    """Predict the relation between two terms and show the reasons that add up to the answer.

    Example: cogstage explain model aspirin headache
    """
    from cogstage.errors import UsageError

    if pairs is None and (head is None or tail is None):
        raise UsageError("explain needs a head and a tail, or --pairs FILE")
    if pairs is not None and head is not None:
        raise UsageError("give a head and a tail, or --pairs FILE, not both")
    loaded = _load(model, corrections, without, assume)
    choose = _filter(through, by, known_only)
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
    if prose:
        from cogstage.rationale.prose import prose as sentences

        typer.echo("\n\n".join("\n".join(sentences(prediction)) for prediction in predictions))
    else:
        _show(predictions, as_json, html, out)
    if failed:
        raise typer.Exit(1)


def discover(
    model: Path = MODEL,
    head: str | None = typer.Argument(
        None, help="Head term, unless --tail is given.", metavar="HEAD", rich_help_panel=panels.INPUT
    ),
    relation: str | None = typer.Option(
        None,
        "--relation",
        "-r",
        help="Relation to rank; required if the model has several.",
        metavar="NAME",
        rich_help_panel=panels.MODEL,
    ),
    tail: str | None = typer.Option(None, "--tail", help="Tail term.", metavar="TAIL", rich_help_panel=panels.INPUT),
    top: int = typer.Option(
        20, "--top", min=1, help="Number of candidates to show.", metavar="N", rich_help_panel=panels.OUTPUT
    ),
    new_only: bool = typer.Option(
        False, "--new-only", help="Leave out facts of the training data.", rich_help_panel=panels.MODEL
    ),
    everywhere: bool = typer.Option(
        False,
        "--everywhere",
        help="Rank every node, not only nodes that usually take part in the relation.",
        rich_help_panel=panels.MODEL,
    ),
    explained: bool = typer.Option(
        False, "--explain", help="Show the reasons for each candidate.", rich_help_panel=panels.OUTPUT
    ),
    k: int | None = K,
    through: str | None = THROUGH,
    by: str | None = BY,
    known_only: bool = KNOWN,
    as_json: bool = AS_JSON,
    corrections: Path | None = CORRECTIONS,
    out: Path | None = OUT,
) -> None:
    """Rank the most probable tails of a head, or heads of a tail.

    Example: cogstage discover model metformin --relation may_treat --new-only --explain
    """
    from cogstage.cli.console import progress
    from cogstage.errors import UsageError
    from cogstage.rationale.discover import discover as rank

    loaded = _load(model, corrections)
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
        choose=_filter(through, by, known_only),
        progress=progress(),
    )
    if as_json or out:
        _show(predictions, as_json, False, out)
    elif explained:
        _show(predictions, False, False, None)
    else:
        from cogstage.rationale.text import ranking_text

        typer.echo(ranking_text(predictions, by_head=head is not None), nl=False)


def cases(
    model: Path = MODEL,
    dataset: Path = typer.Option(
        ...,
        "--dataset",
        help="Data set folder whose test pairs are sampled.",
        metavar="FOLDER",
        rich_help_panel=panels.INPUT,
    ),
    relation: str | None = typer.Option(
        None,
        "--relation",
        "-r",
        help="Relation to show; the model's first by default.",
        metavar="NAME",
        rich_help_panel=panels.MODEL,
    ),
    true: int = typer.Option(
        5, "--true", min=0, help="Number of true pairs.", metavar="N", rich_help_panel=panels.MODEL
    ),
    false: int = typer.Option(
        5, "--false", min=0, help="Number of false pairs.", metavar="N", rich_help_panel=panels.MODEL
    ),
    seed: int = typer.Option(
        0, "--seed", help="Random seed for sampling cases.", metavar="N", rich_help_panel=panels.MODEL
    ),
    form: str = typer.Option(
        "text",
        "--format",
        help="Output format.",
        metavar="text|markdown|latex|html|jsonl",
        rich_help_panel=panels.OUTPUT,
    ),
    out: Path | None = typer.Option(
        None, "--out", "-o", help="File to write instead of printing.", metavar="FILE", rich_help_panel=panels.OUTPUT
    ),
) -> None:
    """Sample correctly predicted test pairs and show their reasons.

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
    chosen = choose_cases(loaded, data, relation, true, false, seed)
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


def _load(
    path: Path, corrections: Path | None = None, without: Sequence[str] = (), assume: Sequence[str] = ()
) -> CogStage:
    """The model, with a team's corrections and what-if verdicts applied."""
    from cogstage.estimator import CogStage
    from cogstage.rationale.corrections import Correction, Corrections, split_triple

    model = CogStage.load(path)
    verdicts = Corrections() if corrections is None else Corrections.read(corrections)
    for texts, verdict in ((without, "wrong"), (assume, "right")):
        for text in texts:
            verdicts = verdicts.adding(Correction(*split_triple(text, model.all_relations), verdict))
    return model.corrected(verdicts) if len(verdicts) else model


def _filter(through: str | None, by: str | None, known_only: bool) -> Filter:
    from cogstage.rationale.filters import Filter

    return Filter(through, by, known_only)


def _from_file(
    model: CogStage, path: Path, relation: str | None, k: int | None, choose: Filter
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
        from cogstage.rationale.text import prediction_text

        typer.echo("\n".join(prediction_text(prediction) for prediction in predictions), nl=False)


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
