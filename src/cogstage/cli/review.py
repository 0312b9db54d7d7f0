"""``cogstage review``."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli import options
from cogstage.cli.console import print_json, progress, say_skipped
from cogstage.cli.options import input_option, run_option
from cogstage.errors import UsageError


def review(
    model: Path = options.MODEL,
    pairs: Path | None = input_option(
        None,
        "--pairs",
        help="Table of pairs to predict (columns head, tail, and optionally relation).",
        metavar="TABLE",
    ),
    dataset: Path | None = options.dataset("Data set folder; its dev pairs are predicted, instead of --pairs.", None),
    corrections: Path | None = options.CORRECTIONS,
    out: Path | None = options.out("File for the queue (TSV); fill in the column verdict.", None, "FILE"),
    top: int = options.top(20),
    serve: bool = run_option(False, "--serve", help="Serve the queue as a page; verdicts are stored in --corrections."),
    host: str = options.HOST,
    port: int = options.port(8766),
    public_url: str | None = options.URL,
    as_json: bool = options.as_json(),
) -> None:
    """Rank the assumptions that an expert should check first.

    The order is by the expected change of all predictions for the given pairs, if an assumption is judged.

    Example: cogstage review model --pairs pairs.tsv --corrections corrections.tsv --serve
    """
    from cogstage.artefact import write_text
    from cogstage.estimator import CogStage
    from cogstage.rationale.corrections import Corrections
    from cogstage.reporting import Table
    from cogstage.review.queue import dev_pairs, pairs_of_table, queue_table, review_queue

    if (pairs is None) == (dataset is None):
        raise UsageError("review needs the pairs to predict: --pairs TABLE or --dataset FOLDER")
    if serve and corrections is None:
        raise UsageError("--serve stores verdicts; name their table with --corrections")
    loaded = CogStage.load(model)
    if pairs is not None:
        asked, bad = pairs_of_table(loaded, pairs)
        say_skipped(bad)
    else:
        assert dataset is not None
        asked = dev_pairs(loaded, dataset)
    if serve:
        from cogstage.web.review_app import ReviewQueue, create_review_app
        from cogstage.web.serving import Address
        from cogstage.web.workers import serve as run

        assert corrections is not None
        address, table = Address(host, port, public_url), corrections
        run(
            lambda: create_review_app(ReviewQueue(loaded, asked, table, top), public_url, address.access),
            address,
            announce=lambda: typer.echo(f"Review at {address.url} (stop with Ctrl-C)", err=True),
        )
        return
    if corrections is not None and corrections.exists():
        loaded = loaded.corrected(Corrections.read(corrections))
    queue = review_queue(loaded, asked, top, progress())
    if out is not None:
        write_text(out, queue_table(queue))
    if as_json:
        print_json([entry.to_dict() for entry in queue])
        return
    rows = tuple((e.words, f"{e.change:.3f}", f"{e.probability:.2f}", str(e.predictions)) for e in queue)
    columns = ("assumption", "expected change", "probability", "predictions")
    typer.echo(Table(f"Assumptions behind {len(asked):,} pairs", columns, rows).text())
