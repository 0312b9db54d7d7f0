"""The leakage report and the counts of a data set as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cogstage.knowledge.dataset import SPLITS
from cogstage.knowledge.leakage import BY_SPLIT, FLOORS, PAPER_CO_OCCURRENCE
from cogstage.relations import ordered


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines of a table: the first column left-aligned, the others right-aligned."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    width = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [
        "  ".join(cell.ljust(width[0]) if column == 0 else cell.rjust(width[column]) for column, cell in enumerate(row))
        for row in cells
    ]
    return [lines[0], "-" * len(lines[0]), *lines[1:]]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def counts_text(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """The facts of each relation and split, as Table 1 of the paper has them."""
    columns = ("train", "dev", "test")
    names = (*ordered(name for name in counts if name != "total"), "total")
    rows = [[name.replace("_", " "), *(counts[name][column] for column in columns)] for name in names]
    return table(["relation", "Train", "Dev", "Test"], rows)


def coverage_text(manifest: Mapping[str, Any]) -> list[str]:
    """How many facts of each relation have both ends, one or none in the graph, and what else was left out."""
    by_relation = manifest.get("coverage", {}).get("relations", {})
    columns = ("facts", "both ends in the graph", "one end in the graph", "no end in the graph")
    rows = [[name, *(row[column] for column in columns)] for name, row in by_relation.items()]
    lines = table(["relation", "facts", "both ends", "one end", "none"], rows)
    missing = manifest.get("coverage", {}).get("missing most often", [])
    if isinstance(missing, Mapping):  # data sets of version 0.1
        missing = sorted(missing.items(), key=lambda item: (-item[1], item[0]))
    if missing:
        lines += ["", "Not in the graph, most often: " + ", ".join(f"{name} ({n})" for name, n in missing)]
    for name, count in manifest.get("left out", {}).get("relations with too few facts", {}).items():
        lines.append(f"Left out: {name}, with {count:,} facts in the graph")
    return lines


def leakage_text(report: Mapping[str, Any], counts: Mapping[str, Mapping[str, int]]) -> str:
    """Return the leakage report as text."""
    floors = report[FLOORS]
    modes = list(floors)
    relations = list(next(iter(floors.values()))) if floors else []
    lines = ["LEAKAGE REPORT", "", "Facts (pairs of nodes with the relation)", "", *counts_text(counts)]
    lines += ["", "Warnings", ""]
    lines += [f"- {warning}" for warning in report["warnings"]] or ["- none"]
    if others := report.get("warnings about other negatives"):
        lines += ["", "Warnings about negatives that were not chosen", "", *(f"- {warning}" for warning in others)]

    lines += ["", "AUROC of simple scores on test pairs (0.5 is chance), by kind of negatives", ""]
    scores = list(floors[modes[0]][relations[0]]) if relations else []
    for score in scores:
        rows = [[relation, *(floors[mode][relation][score] for mode in modes)] for relation in relations]
        lines += [*table([score, *modes], rows), ""]

    lines += ["AUROC of the training degrees in each split, by kind of negatives (should be near 0.5 in all)", ""]
    for mode, by_relation in report.get(BY_SPLIT, {}).items():
        rows = [[relation, *(by_split[split] for split in SPLITS)] for relation, by_split in by_relation.items()]
        lines += [*table([mode, *SPLITS], rows), ""]

    shares = report["share of pairs that co-occur"]
    rows = [[relation, *(row[key] for key in ("facts", *modes))] for relation, row in shares.items()]
    lines += [f"Share of pairs that co-occur in the graph ({PAPER_CO_OCCURRENCE:.1%} in the paper)", ""]
    lines += table(["relation", "facts", *modes], rows)

    names = report["names that share a word stem"]
    rows = [
        [relation, *(row[key] for key in ("facts", *modes)), " ".join(row["commonest"])]
        for relation, row in names.items()
    ]
    lines += ["", "Share of pairs whose two names share a word stem", ""]
    lines += table(["relation", "facts", *modes, "most frequent stems"], rows)

    lines += _time_text(report["time"]) if "time" in report else []

    several = report["pairs in several relations"]
    lines += ["", f"Pairs in several relations: {several['in several']:,} of {several['pairs']:,}"]
    lines += [f"- {names}: {count:,}" for names, count in several["combinations"].items()]

    lines += ["", "Pairs of concepts in two splits (must be 0)", ""]
    lines += [f"- {what}: {count:,}" for what, count in report["pairs of concepts across splits"].items()]

    keys = ("duplicate pairs", "duplicate jaccard", "inverse pairs", "inverse jaccard")
    rows = [
        [f"{row['relation']} / {row['other']}", *(row[key] for key in keys)]
        for row in report["overlap of relations"]
        if row["duplicate pairs"] or row["inverse pairs"]
    ]
    lines += ["", "Overlap of relations, in the same direction and with one reversed", ""]
    lines += table(["relations", *keys], rows) if rows else ["- none"]
    return "\n".join(lines) + "\n"


def _time_text(time: Mapping[str, Any]) -> list[str]:
    """The lines on a split by time."""
    until = time["graph until"] or "not known"
    lines = ["", f"Split by time: training facts before {time['before']}, later test facts; graph until {until}", ""]
    lines += [f"- facts {what}: {count:,}" for what, count in time["facts"].items()]
    for what in ("later facts in train or dev", "earlier facts in test"):
        lines.append(f"- {what} (must be 0): {time[what]:,}")
    never = time["test pairs never counted together"]
    rows = [[relation, row["facts"], row["negatives"]] for relation, row in never.items()]
    return [*lines, "", "Test pairs that never co-occur", "", *table(["relation", "facts", "negatives"], rows)]
