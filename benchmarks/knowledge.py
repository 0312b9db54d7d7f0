"""Reading MRREL against a plain loop over its lines, on one synthetic file; and building the literature data set."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import add_ratios, measured, parser, report, run_side, side_row

FULL_ROWS, QUICK_ROWS = 20_000_000, 200_000
CONCEPTS = 300_000
MAPPED = ("may_treat", "may_be_treated_by", "has_manifestation", "manifestation_of", "induces", "due_to")
OTHERS = ("isa", "inverse_isa", "has_component", "mapped_to", "", "same_as", "has_finding_site", "finding_site_of")
SOURCES = ("MED-RT", "SNOMEDCT_US", "NCI", "MSH")
SIDES = {
    "cogstage, MRREL alone": "mrrel_alone",
    "cogstage, MRREL to facts with MRSTY and MRCONSO": "ours",
    "plain loop, MRREL alone": "plain_loop",
}


def write_release(folder: Path, rows: int, seed: int = 5, block: int = 200_000) -> None:
    """A release in the published layout; one row in twenty has a mapped relation, one in thirty is suppressed."""
    rng = np.random.default_rng(seed)
    names = [*MAPPED, *OTHERS]
    weight = np.repeat([0.05 / len(MAPPED), 0.95 / len(OTHERS)], [len(MAPPED), len(OTHERS)])
    with (folder / "MRREL.RRF").open("w", encoding="utf-8") as handle:
        for begin in range(0, rows, block):
            size = min(block, rows - begin)
            first, second = rng.integers(CONCEPTS, size=(2, size)).tolist()
            relation = rng.choice(len(names), size, p=weight).tolist()
            source = rng.integers(len(SOURCES), size=size).tolist()
            hidden = (rng.random(size) < 1 / 30).tolist()
            handle.writelines(
                f"C{a:07}|A{a:08}|AUI|RO|C{b:07}|A{b:08}|AUI|{names[r]}|R{begin + i:09}||{SOURCES[s]}|{SOURCES[s]}||Y|"
                f"{'O' if h else 'N'}||\n"
                for i, (a, b, r, s, h) in enumerate(zip(first, second, relation, source, hidden, strict=True))
            )
    with (folder / "MRCONSO.RRF").open("w", encoding="utf-8") as handle:
        handle.writelines(
            f"C{n:07}|ENG|P|L{n}|PF|S{n}|Y|A{n}||M{n}|D{n}|MSH|PT|D{n}|name {n}|0|N||\n" for n in range(CONCEPTS)
        )
    with (folder / "MRSTY.RRF").open("w", encoding="utf-8") as handle:
        handle.writelines(f"C{n:07}|{'T121' if n % 2 else 'T047'}|A1|type|AT{n}||\n" for n in range(CONCEPTS))


def mrrel_alone(folder: str) -> dict[str, Any]:
    """Read MRREL alone with cogstage, and keep the rows with a mapped relation that are not suppressed."""
    from cogstage.knowledge.relation_map import UMLS_RELATIONS, read_relation_map
    from cogstage.knowledge.umls import read_statements
    from cogstage.progress import SILENT
    from cogstage.tables import BadRows

    with measured() as took:
        counts: Counter[str] = Counter()
        rules = set(read_relation_map(UMLS_RELATIONS))
        kept = list(read_statements(Path(folder) / "MRREL.RRF", rules, set(), False, counts, BadRows(), SILENT))
    return {**took, "rows": counts["rows"], "kept": len(kept)}


def ours(folder: str) -> dict[str, Any]:
    """Read the release with cogstage: relations, types and names."""
    from cogstage.knowledge.umls import facts_from_umls

    with measured() as took:
        facts = facts_from_umls(folder)
    counts = facts.made_with["MRREL"]
    return {
        **took,
        "rows": counts["rows"],
        "kept": counts["with a mapped relation"] - counts["suppressed"],
        "facts": len(facts),
    }


def plain_loop(folder: str) -> dict[str, Any]:
    """Read MRREL alone, line by line, and keep the same rows."""
    wanted = set(MAPPED)
    rows = 0
    kept = []
    with measured() as took, (Path(folder) / "MRREL.RRF").open(encoding="utf-8") as handle:
        for line in handle:
            rows += 1
            fields = line.split("|")
            if fields[7] in wanted and fields[14] == "N":
                kept.append((fields[4], fields[7], fields[0], fields[10]))
    return {**took, "rows": rows, "kept": len(kept)}


def build_literature(graph: str, facts: str, out: str) -> dict[str, Any]:
    """One command: the data set of the literature benchmark."""
    command = [sys.executable, "-c", "from cogstage.cli.main import run; run()", "dataset", "build"]
    with measured() as took:
        subprocess.run(
            [*command, "--graph", graph, "--facts", facts, "--out", out], check=True, capture_output=True, text=True
        )
    return took


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark."""
    options = parser(__doc__)
    options.add_argument("--graph", help="graph folder for the literature data set; without it that part is left out")
    chosen = options.parse_args(argv)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_release(folder, QUICK_ROWS if chosen.quick else FULL_ROWS)
        size = (folder / "MRREL.RRF").stat().st_size / 2**30
        sides = {
            name: run_side(f"benchmarks.knowledge:{function}", {"folder": temporary})
            for name, function in SIDES.items()
        }
        if len({side["result"]["kept"] for side in sides.values()}) > 1:
            raise SystemExit(f"the sides kept different rows: {[side['result'] for side in sides.values()]}")
        for name, side in sides.items():
            read = side["result"]["rows"]
            more = {"rows": read, "GB": size, "rows per CPU second": read / side["cpu_seconds"]}
            rows.append(side_row(name, side, **more))
        add_ratios(rows, rows[-1])
        rows += literature(chosen.graph, chosen.data, folder)
    report("knowledge", rows, chosen.out)


def literature(graph: str | None, data: str, folder: Path) -> list[dict[str, Any]]:
    """The row of the literature data set, if there is a graph and there are facts."""
    source = Path(data)
    if graph is None or not data or not (source / "facts.tsv").exists():
        print("the literature data set is left out: it needs --graph FOLDER and facts.tsv in --data")
        return []
    from cogstage.knowledge.dataset import Dataset
    from cogstage.knowledge.table import facts_from_table

    facts_from_table(source / "facts.tsv").save(folder / "facts")
    places = {"graph": str(Path(graph).resolve()), "facts": str(folder / "facts"), "out": str(folder / "data")}
    side = run_side("benchmarks.knowledge:build_literature", places)
    counts = Dataset.load(folder / "data").manifest["counts"]["total"]
    more = {"rows": sum(counts.values())}
    return [side_row("dataset build on the literature graph, one command", side, **more)]


if __name__ == "__main__":
    main()
