"""``cogstage graph signals``: statistics of drug safety from counts alone."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli import options
from cogstage.cli.console import print_json
from cogstage.cli.options import argument, count_option, model_option


def signals(
    graphs: list[Path] = argument(
        ..., help="Graph folder; several are strata of one population, such as women and men.", metavar="GRAPH"
    ),
    heads: str = model_option("drug", "--heads", help="Types of the heads, comma-separated.", metavar="TYPES"),
    tails: str = model_option(
        "", "--tails", help="Types of the tails, comma-separated; all other types by default.", metavar="TYPES"
    ),
    min_cases: int = count_option(
        3, "--min-cases", min=1, help="Leave out pairs that were counted fewer times.", metavar="N"
    ),
    top: int = options.top(20),
    out: Path | None = options.out("Output file, a table of all pairs (.tsv or .csv).", None, "FILE"),
    as_json: bool = options.as_json(),
) -> None:
    """Compare counts with expected ones: ROR, PRR, IC and EBGM with intervals, chi-square, observed/expected.

    No model is needed. Pairs are sorted by EB05, the lower end of EBGM.
    """
    from cogstage.artefact import write_text
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.signals import signals as compute
    from cogstage.reporting.table import csv_text

    kinds = [[kind.strip() for kind in text.split(",") if kind.strip()] for text in (heads, tails)]
    result = compute([Graph.load(graph) for graph in graphs], kinds[0], kinds[1], min_cases)
    best = result.strongest()
    if out is not None:
        rows = result.rows(best)
        columns = list(rows[0]) if rows else []
        text = csv_text(columns, ([row[c] for c in columns] for row in rows), "," if out.suffix == ".csv" else "\t")
        write_text(out, text)
    shown = result.rows(best[:top])
    if as_json:
        print_json({"basis": result.basis, "pairs": len(best), "top": shown})
        return
    typer.echo(f"{len(best):,} pairs; counts are {result.basis}")
    for row in shown:
        typer.echo(
            f"{row['head_name']} - {row['tail_name']}: {row['count']:,} (expected {row['expected']:.1f}), "
            f"EBGM {row['ebgm']:.2f} ({row['eb05']:.2f}-{row['eb95']:.2f}), "
            f"ROR {row['ror']:.2f} ({row['ror025']:.2f}-{row['ror975']:.2f}), "
            f"PRR {row['prr']:.2f} ({row['prr025']:.2f}-{row['prr975']:.2f}), "
            f"IC {row['ic']:.2f} ({row['ic025']:.2f}-{row['ic975']:.2f}), χ² {row['chi_square']:.1f}"
        )
    if out is not None:
        typer.echo(f"{out}: {len(best):,} pairs")
