"""``cogstage explain``, ``discover`` and ``cases``: predictions with their reasons."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cogstage import choices
from cogstage.cli import options
from cogstage.cli.console import progress
from cogstage.cli.options import argument, input_option, model_option, output_option
from cogstage.errors import UsageError

if TYPE_CHECKING:
    from cogstage.estimator import CogStage
    from cogstage.rationale.record import Prediction

K = options.reasons("Number of reasons (default: all).", min=0)
THROUGH = model_option(
    None, "--through", help="Show only reasons with this term; part of its name is enough.", metavar="TERM"
)
BY = model_option(None, "--reason-relation", help="Show only reasons with this relation.", metavar="RELATION")
KNOWN = model_option(False, "--known-only", help="Show only reasons that are known facts.")
BASE_RATE = model_option(
    0.5, "--base-rate", min=1e-6, max=1 - 1e-6, help="Share of true pairs that the probabilities assume.", metavar="P"
)
TRIPLE = '"HEAD relation TAIL"'
RECORDS = options.as_json("Print JSON, one prediction record per line.")
OUT = options.out(
    "Output file; its extension sets the format: .jsonl .tsv .parquet .kgx .graphml .dot .svg .png .html.",
    None,
    "FILE",
)


def explain(
    model: Path = options.MODEL,
    head: str | None = argument(None, help="Head term.", metavar="HEAD"),
    tail: str | None = argument(None, help="Tail term.", metavar="TAIL"),
    relation: str | None = options.relation("Relation. Default: the one with the strongest verdict."),
    pairs: Path | None = input_option(
        None,
        "--pairs",
        help="Table of pairs (columns head, tail, and optionally relation), instead of HEAD and TAIL.",
        metavar="TABLE",
    ),
    k: int | None = K,
    through: str | None = THROUGH,
    by: str | None = BY,
    known_only: bool = KNOWN,
    as_json: bool = RECORDS,
    prose: bool = output_option(False, "--prose", help="Print the explanation as two to five sentences."),
    html: bool = output_option(False, "--html", help="Print a self-contained HTML page."),
    without: list[str] = model_option(
        [], "--without", help="Predict as if this triple were not recognised; may be repeated.", metavar=TRIPLE
    ),
    assume: list[str] = model_option(
        [], "--assume", help="Predict as if this triple were a known fact; may be repeated.", metavar=TRIPLE
    ),
    base_rate: float = BASE_RATE,
    corrections: Path | None = options.CORRECTIONS,
    out: Path | None = OUT,
) -> None:
    """Predict the relations between two terms and show the reasons that add up to the answer.

    Example: cogstage explain model aspirin headache
    """
    from cogstage.rationale.filters import Filter
    from cogstage.rationale.pairs_table import predict_pairs_table

    if pairs is None and (head is None or tail is None):
        raise UsageError("explain needs a head and a tail, or --pairs FILE")
    if pairs is not None and head is not None:
        raise UsageError("give a head and a tail, or --pairs FILE, not both")
    loaded = _load(model, corrections, without, assume)
    choose = Filter(through, by, known_only)
    left_out = 0
    if pairs is not None:
        predictions, bad = predict_pairs_table(loaded, pairs, relation, k, choose)
        left_out = bad.count
        for message in bad.first:
            typer.echo(f"left out: {message}", err=True)
        if left_out > len(bad.first):
            typer.echo(f"left out: {left_out - len(bad.first)} more rows", err=True)
    else:
        prediction = choose.apply(loaded.predict(str(head), str(tail), relation))
        predictions = [prediction if k is None else prediction.top(k)]
    predictions = [prediction.with_base_rate(base_rate) for prediction in predictions]
    _show(predictions, "prose" if prose else "html" if html else "json" if as_json else "text", None if prose else out)
    if left_out:
        raise typer.Exit(1)


def discover(
    model: Path = options.MODEL,
    head: str | None = argument(None, help="Head term, unless --tail is given.", metavar="HEAD"),
    relation: str | None = options.relation("Relation. Default: all that fit the type of the term."),
    tail: str | None = input_option(None, "--tail", help="Tail term, to rank heads instead of tails.", metavar="TAIL"),
    top: int = options.top(20),
    new_only: bool = model_option(False, "--new-only", help="Leave out training facts."),
    with_facts: bool = model_option(
        False, "--with-facts", help="Rank only terms with training facts of the relation, not all of a fitting type."
    ),
    drop_indications: bool = model_option(
        False,
        "--drop-indications",
        help="With --relation causes, leave out disorders that the drug treats rather than causes, and list them.",
    ),
    drop_contradicted: bool = model_option(
        False,
        "--drop-contradicted",
        help="Leave out candidates for which an opposite relation is known or more likely; by default they come last.",
    ),
    explained: bool = output_option(False, "--explain", help="Show the reasons for each candidate."),
    k: int | None = K,
    through: str | None = THROUGH,
    by: str | None = BY,
    known_only: bool = KNOWN,
    as_json: bool = RECORDS,
    base_rate: float = BASE_RATE,
    corrections: Path | None = options.CORRECTIONS,
    out: Path | None = OUT,
) -> None:
    """Rank the most probable tails of a head, or heads of a tail.

    Example: cogstage discover model metformin --relation may_treat --new-only --explain
    """
    from cogstage.rationale.basis import Bases
    from cogstage.rationale.discover import candidates, fitting_relations, left_out_text
    from cogstage.rationale.discover import discover as rank
    from cogstage.rationale.filters import Filter
    from cogstage.rationale.side_effects import check_indications, discover_effects, indications_text
    from cogstage.rationale.text import ranking_text

    loaded = _load(model, corrections)
    if (head is None) == (tail is None):
        raise UsageError("discover needs a HEAD, or --tail TERM")
    given = {
        "head": None if head is None else loaded.vocabulary.find(head),
        "tail": None if tail is None else loaded.vocabulary.find(tail),
    }
    how: dict[str, Any] = {
        **given,
        "top": top,
        "new_only": new_only,
        "with_facts": with_facts,
        "drop_contradicted": drop_contradicted,
        "k": k if explained or as_json or out else 0,
        "choose": Filter(through, by, known_only),
        "base_rate": base_rate,
        "progress": progress(),
    }
    if drop_indications:
        check_indications(loaded, relation or "every relation")
        predictions, left_out = discover_effects(loaded, **how)
        typer.echo(indications_text(left_out, by_head=head is not None), err=True)
        lists = [predictions]
    else:
        names = (relation,) if relation else fitting_relations(loaded, **given)
        lists = [rank(loaded, name, **how) for name in names]
        for name in names:
            pool = candidates(loaded, name, **given, with_facts=with_facts)
            typer.echo(left_out_text(loaded, name, len(pool), with_facts), err=True)
    if as_json or out or explained:
        _show([p for predictions in lists for p in predictions], "json" if as_json else "text", out)
        return
    bases = Bases(loaded.counts, loaded.fitted.facts)
    texts = []
    for predictions in lists:
        terms = [loaded.vocabulary.index[(p.head if head is None else p.tail).key] for p in predictions]
        texts.append(ranking_text(predictions, head is not None, [bases.of(term).warning for term in terms]))
    typer.echo("\n".join(texts), nl=False)


def cases(
    model: Path = options.MODEL,
    dataset: Path = options.dataset("Data set folder; its test pairs are sampled."),
    relation: str | None = options.relation("Relation. Default: the first relation of the model."),
    true: int = model_option(5, "--true", min=0, help="Number of true pairs.", metavar="N"),
    false: int = model_option(5, "--false", min=0, help="Number of false pairs.", metavar="N"),
    seed: int = options.seed(),
    output_format: choices.OutputFormat = output_option("text", "--output-format", help="Output format."),
    out: Path | None = options.out("Output file. Default: print to the terminal.", None, "FILE"),
) -> None:
    """Sample correctly predicted test pairs and show their reasons.

    Example: cogstage cases model --dataset dataset --seed 1 --output-format markdown
    """
    from cogstage.artefact import write_text
    from cogstage.estimator import CogStage
    from cogstage.evaluation.cases import cases_text, choose_cases
    from cogstage.knowledge.dataset import Dataset

    loaded = CogStage.load(model)
    data = Dataset.load(dataset)
    data.check_fits(loaded.vocabulary)
    relation = relation or loaded.relations[0]
    chosen = choose_cases(loaded, data, relation, true, false, seed)
    text = cases_text(chosen, output_format, f"Cases of {relation}, sampled with seed {seed}")
    if out:
        write_text(out, text)
    else:
        typer.echo(text, nl=False)


def _load(path: Path, corrections: Path | None, without: Sequence[str] = (), assume: Sequence[str] = ()) -> CogStage:
    from cogstage.estimator import CogStage
    from cogstage.rationale.corrections import gather_corrections

    model = CogStage.load(path)
    verdicts = gather_corrections(corrections, without, assume, model.all_relations)
    return model.corrected(verdicts) if len(verdicts) else model


def _show(predictions: list[Prediction], form: str, out: Path | None) -> None:
    from cogstage.evaluation.prediction_files import predictions_text, write_predictions

    if out is None:
        typer.echo(predictions_text(predictions, form), nl=False)
        return
    for path in write_predictions(predictions, out):
        typer.echo(f"wrote {path}", err=True)
