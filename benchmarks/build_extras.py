"""What a build pays for the order in time, and for recognising copied notes: time and memory against a plain build."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks import hospital, order_in_time
from benchmarks.harness import measured, parser, report, run_side, side_row

RECORDS = order_in_time.Plan(patients=60_000)
NOTES = hospital.Plan(terms=6_000, groups=40, patients=3_000)
COPIED = 5  # of each patient's five notes, how often one is copied forward with another heading
COPIES = ("keep", "drop")


def records(plan: dict[str, Any], order: bool) -> dict[str, Any]:
    """Build the graph of coded records."""
    from cogstage.graph.build import build_folder
    from cogstage.graph.options import BuildOptions

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        order_in_time.write_hospital(order_in_time.Plan(**plan), folder)
        options = BuildOptions(unit="patient-window", window=None, per="patient", order=order)
        with measured() as took:
            built = build_folder(folder / "records.csv", folder / "graph", options=options)
    return {**took, "edges": built.edges, "documents": built.documents}


def notes(plan: dict[str, Any], copied: int, copies: str) -> dict[str, Any]:
    """Build the graph of notes; one of each patient's is copied forward so many times."""
    from cogstage.graph.build import build_folder
    from cogstage.graph.options import BuildOptions

    made = hospital.Hospital(hospital.Plan(**plan))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with (folder / "notes.jsonl").open("w", encoding="utf-8") as handle:
            for number, note in enumerate(made.notes(0, made.plan.patients)):
                for copy in range(1 + copied * (number % made.plan.notes == 0)):
                    text = note["text"] if copy == 0 else f"Day {copy}. {note['text']}"
                    handle.write(json.dumps({**note, "doc_id": f"{note['doc_id']}-{copy}", "text": text}) + "\n")
        rows = zip(made.name, made.concept, made.kind, strict=True)
        lines = [f"{name}\t{concept}\t{kind}" for name, concept, kind in rows]
        (folder / "lexicon.tsv").write_text("\n".join(["term\tconcept\ttype", *lines]) + "\n", encoding="utf-8")
        options = BuildOptions(unit="document", copies=copies)  # type: ignore[arg-type]
        with measured() as took:
            built = build_folder(folder / "notes.jsonl", folder / "graph", folder / "lexicon.tsv", options)
    return {**took, "edges": built.edges, "documents": built.documents}


def main(argv: list[str] | None = None) -> None:
    """Both comparisons; ratios above 1 are the price."""
    options = parser(__doc__).parse_args(argv)
    coded, written = RECORDS, NOTES
    if options.quick:
        coded, written = replace(coded, patients=8_000), replace(written, patients=500)
    rows: list[dict[str, Any]] = []
    for label, side, given, name, choices in (
        ("records", "records", {"plan": asdict(coded)}, "order", (False, True)),
        ("notes, half of them copies", "notes", {"plan": asdict(written), "copied": COPIED}, "copies", COPIES),
        ("notes, none of them copies", "notes", {"plan": asdict(written), "copied": 0}, "copies", COPIES),
    ):
        plain: dict[str, Any] = {}
        for choice in choices:
            done = run_side(f"benchmarks.build_extras:{side}", {**given, name: choice})
            found = done["result"]
            row = side_row(f"{label}, {name} {choice}", done, documents=found["documents"], edges=found["edges"])
            plain = plain or row
            row["× CPU"], row["× memory"] = (row[k] / plain[k] for k in ("CPU seconds", "peak MB"))
            rows.append(row)
    report("build_extras", rows, options.out, {"patients": coded.patients, "note patients": written.patients})


if __name__ == "__main__":
    main()
