"""What a run on the hospital found, as Markdown: stages, data set, figures beside the floor and the rules, examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cogstage.reporting import Table

PAPER_SPLITS = {  # Table 1 of the paper: train, dev, test
    "symptom_of": (14_326, 3_001, 3_087),
    "may_treat": (12_924, 2_664, 2_735),
    "contraindicates": (10_593, 2_237, 2_197),
    "may_prevent": (2_113, 440, 460),
    "causes": (1_389, 305, 354),
}


def page(rows: Sequence[Mapping[str, Any]], notes: Mapping[str, Any]) -> str:
    """The tables, ready for a page of the documentation."""
    parts = [
        _table(
            ("stage", "seconds", "processor seconds", "peak MB", "MB on disk"),
            [[row["stage"], *(_number(row[key]) for key in list(row)[1:])] for row in [*rows, _total(rows)]],
        ),
        f"The graph: {notes['terms']:,} terms, {notes['edges']:,} edges. {_once(notes)}",
        _table(
            ("facts", "train", "dev", "test", "paper"),
            [
                [relation, *(f"{size:,}" for size in sizes), " / ".join(f"{size:,}" for size in PAPER_SPLITS[relation])]
                for relation, sizes in notes["facts"].items()
            ],
        ),
        _table(
            (f"{notes['test pairs']:,} test pairs", "F1", "AUROC"),
            [[name, f"{found['f1']:.3f}", f"{found['auroc']:.3f}"] for name, found in notes["figures"].items()],
        ),
        f"Of {notes['pairs explained']} test pairs explained, {notes['predicted positive']} were predicted positive. "
        f"{_share(notes['true rationales'])} of their top 5 rationales are true by the hospital's rules, and "
        f"{_share(notes['with a true rationale'])} of them have at least one that is.",
        _examples(notes["examples"]),
    ]
    return "\n\n".join(parts) + "\n"


def _total(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All stages together; of memory the highest."""
    total = {key: sum(row[key] for row in rows) for key in ("seconds", "processor_seconds")}
    return {
        "stage": "together",
        **total,
        "peak_mb": max(row["peak_mb"] for row in rows),
        "disk_mb": sum(row["disk_mb"] for row in rows),
    }


def _once(notes: Mapping[str, Any]) -> str:
    return f"{_share(notes['edges counted once'])} of them were counted once."


def _examples(examples: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for example in examples:
        lines.append(f"- **{example['pair']}**, {example['probability']:.2f}; held out: {example['label']}")
        for text, true in example["rationales"]:
            lines.append(f"    - {text} ({'true' if true else 'not true'} by the rules)")
    return "\n".join(lines)


def _table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return Table("", tuple(header), tuple(map(tuple, lines))).markdown()


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"
