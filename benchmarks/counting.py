"""Counting pairs of terms against scipy's sparse product, on the same rows: time, memory, and equal totals."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.harness import add_ratios, measured, parser, report, run_side, side_row

FULL = {"n_rows": 2_000_000, "n_terms": 50_000, "n_units": 100_000}
QUICK = {"n_rows": 300_000, "n_terms": 25_000, "n_units": 15_000}


def rows(n_rows: int, n_terms: int, n_units: int, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Distinct (unit, term) rows in random order; common terms are common, as in text."""
    rng = np.random.default_rng(seed)
    weight = 1.0 / (np.arange(n_terms) + 400.0) ** 0.7
    edges = np.cumsum(weight / weight.sum())
    key = np.empty(0, np.int64)
    while len(key) < n_rows:
        unit = rng.integers(0, n_units, n_rows // 2)
        term = np.minimum(np.searchsorted(edges, rng.random(n_rows // 2)), n_terms - 1)
        key = np.unique(np.concatenate([key, unit.astype(np.int64) * n_terms + term]))
    key = rng.permutation(key)[:n_rows]
    names = rng.permutation(n_terms)  # a term's number says nothing about how common it is
    return (key // n_terms).astype(np.int32), names[key % n_terms].astype(np.int32)


def ours(check: bool = False, **size: int) -> dict[str, Any]:
    """Count with cogstage."""
    from cogstage.graph.counting import count_pairs

    begun = time.perf_counter()
    count_pairs(np.array([0, 0], np.int32), np.array([0, 1], np.int32), 2)  # compiles, or reads the compiled code
    compiling = time.perf_counter() - begun
    unit, term = rows(**size)
    with measured() as took:
        upper = count_pairs(unit, term, size["n_terms"])
    return {**took, "compiling": compiling, "entries": int(upper.nnz), **(totals(upper) if check else {})}


def scipy_product(check: bool = False, **size: int) -> dict[str, Any]:
    """Count with X.T @ X, in 32-bit integers, as cogstage does."""
    import scipy.sparse as sp

    unit, term = rows(**size)
    with measured() as took:
        x = sp.csr_matrix((np.ones(len(unit), np.int32), (unit, term)), shape=(size["n_units"], size["n_terms"]))
        product = x.T @ x
    return {**took, "entries": int(product.nnz), **(totals(product) if check else {})}


def totals(product: Any) -> dict[str, int]:
    """What must be equal: pairs above the diagonal, their sum, and a sum that depends on which pairs they are."""
    product = product.tocoo()
    upper = product.row < product.col
    row, col, count = product.row[upper].astype(np.int64), product.col[upper], product.data[upper].astype(np.int64)
    return {"pairs": len(count), "total": int(count.sum()), "mixed": int(((row * 31 + col) % 1009 * count).sum())}


def input_alone(**size: int) -> dict[str, Any]:
    """The rows alone: what either side holds before it counts."""
    unit, _term = rows(**size)
    return {"seconds": 0.0, "rows": len(unit)}


def main(argv: list[str] | None = None) -> None:
    """Run all sides, each in its own process, and report the ratios."""
    options = parser(__doc__).parse_args(argv)
    size = QUICK if options.quick else FULL
    sides = {
        name: [run_side(f"benchmarks.counting:{name}", size) for _ in range(1 if options.quick else 3)]
        for name in ("scipy_product", "ours")
    }
    checked = {name: run_side(f"benchmarks.counting:{name}", {**size, "check": True})["result"] for name in sides}
    base = run_side("benchmarks.counting:input_alone", size)
    equal = all(checked["ours"][key] == checked["scipy_product"][key] for key in ("pairs", "total", "mixed"))
    table: list[dict[str, Any]] = []
    for name, label in (("scipy_product", "scipy X.T @ X"), ("ours", "cogstage")):
        best = {key: min(run[key] for run in sides[name]) for key in ("seconds", "cpu_seconds", "peak_mb")}
        above = min(run["result"]["work_mb"] for run in sides[name])
        table.append(side_row(label, best, **{"MB above the rows": above, "pairs": checked[name]["pairs"]}))
    add_ratios(table, table[0])
    notes = {
        **size,
        "peak MB of making the rows alone": base["peak_mb"],
        "equal pairs, totals and checksum": equal,
        "seconds to load or compile the kernels": sides["ours"][0]["result"]["compiling"],
    }
    report("counting", table, options.out, notes)
    if not equal:
        raise SystemExit("the two sides disagree")


if __name__ == "__main__":
    main()
