"""The order in time of two terms against a count by hand: first days, lag, suppression, noise."""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.edges import Edges
from cogstage.graph.mechanism import mechanism_for
from cogstage.graph.noise import Randomness
from cogstage.graph.options import BuildOptions, PrivacyOptions
from cogstage.graph.privacy import release, suppress

DAY0 = datetime.date(2020, 1, 1)
records = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.sampled_from("ABCDE")), min_size=2, max_size=40)


def write_records(path: Path, some: list[tuple[int, int, str]]) -> None:
    with path.open("w", encoding="utf-8") as handle:
        for number, (patient, day, code) in enumerate(some):
            date = str(DAY0 + datetime.timedelta(days=day))
            record = {"doc_id": f"r{number}", "patient_id": f"p{patient}", "date": date, "codes": [code]}
            handle.write(json.dumps(record) + "\n")


def by_hand(some: list[tuple[int, int, str]], window: int | None, lag: int | None) -> dict[tuple[str, str], list[int]]:
    """Of the patients that have a pair in a window: who came first, if at most the lag lies between."""
    cells: dict[tuple[str, str], list[int]] = {}
    by_patient: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for patient, day, code in some:
        by_patient[patient].append((day, code))
    for events in by_patient.values():
        first = {code: min(day for day, other in events if other == code) for _, code in events}
        together = set()
        for (day, code), (day_, code_) in combinations(events, 2):
            bins = [((DAY0 - datetime.date(1970, 1, 1)).days + d) // window if window else 0 for d in (day, day_)]
            if code != code_ and bins[0] == bins[1]:
                together.add(tuple(sorted((code, code_))))
        for one, other in together:
            cell = cells.setdefault((one, other), [0, 0, 0])
            later = first[other] - first[one]
            if lag is None or abs(later) <= lag:
                cell[0 if later > 0 else 1 if later < 0 else 2] += 1
    return cells


def order_of(graph: Graph) -> dict[tuple[str, str], list[int]]:
    found = graph.order(graph.source, graph.target)
    term = graph.vocabulary.term
    ends = zip(graph.source.tolist(), graph.target.tolist(), strict=True)
    return {(term[s], term[t]): cell for (s, t), cell in zip(ends, found.tolist(), strict=True)}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    some=records,
    window=st.sampled_from([7, 30, None]),
    lag=st.sampled_from([0, 5, 90, None]),
    memory=st.sampled_from([500, 1 << 30]),
    per=st.sampled_from(["bin", "patient"]),
)
def test_order_equals_a_count_by_hand(
    tmp_path: Path, some: list[tuple[int, int, str]], window: int | None, lag: int | None, memory: int, per: str
) -> None:
    expected = by_hand(some, window, lag)
    if not expected:
        return
    write_records(tmp_path / "records.jsonl", some)
    options = BuildOptions(unit="patient-window", window=window, per=per, order=True, lag=lag)  # type: ignore[arg-type]
    build_graph(tmp_path / "records.jsonl", tmp_path / "with", options=options, memory=memory)
    graph = Graph.load(tmp_path / "with")
    assert order_of(graph) == expected
    turned = graph.order(graph.target, graph.source)
    assert np.array_equal(turned[:, [1, 0, 2]], graph.order(graph.source, graph.target))
    plain = BuildOptions(unit="patient-window", window=window, per=per)  # type: ignore[arg-type]
    build_graph(tmp_path / "records.jsonl", tmp_path / "without", options=plain)
    for name in ("edges.parquet", "terms.parquet"):  # asking for the order changes nothing else
        assert (tmp_path / "with" / name).read_bytes() == (tmp_path / "without" / name).read_bytes()
    assert not Graph.load(tmp_path / "without").order(graph.source, graph.target).any()


def test_order_is_kept_by_save_and_unknown_pairs_have_none(tmp_path: Path) -> None:
    some = [(p, d, c) for p in range(3) for d, c in ((0, "A"), (1 + p, "B"), (0, "C"))]
    write_records(tmp_path / "r.jsonl", some)
    build_graph(tmp_path / "r.jsonl", tmp_path / "g", options=BuildOptions(window=None, order=True, lag=2))
    graph = Graph.load(tmp_path / "g")
    a, b, c = (graph.vocabulary.index[code] for code in "ABC")
    assert graph.order([a, b, a, c], [b, a, c, c]).tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 3], [0, 0, 0]]  # type: ignore[arg-type]
    graph.save(tmp_path / "h")
    again = Graph.load(tmp_path / "h")
    assert again.hash == graph.hash
    assert (tmp_path / "g" / "order.parquet").read_bytes() == (tmp_path / "h" / "order.parquet").read_bytes()
    assert again.made_with["order"] == "2d"


def test_small_cells_take_the_order_of_their_pair_along() -> None:
    order = np.array([[11, 12, 0], [30, 7, 0], [0, 0, 40]], np.int32)
    edges = Edges(np.arange(3), np.arange(1, 4), np.array([23, 37, 40]), np.array([23, 37, 40]), order)
    kept = next(suppress([edges], 11))
    assert kept.order is not None
    assert kept.order.tolist() == [[11, 12, 0], [0, 0, 0], [0, 0, 40]]


@pytest.mark.parametrize("below", [2, 3, 11])
def test_no_cell_and_no_difference_of_order_is_below_the_threshold(below: int) -> None:
    """Every pair of small tables: cells, and the patients that are in no cell, are 0 or reach the threshold."""
    sizes = sorted({0, 1, 2, below - 1, below, below + 3})
    cells = np.array(list(product(sizes, repeat=4)), np.int32)  # three orders, and patients beyond the lag
    cells = cells[cells.sum(1) >= below]
    groups = cells.sum(1).astype(np.int64)
    n = len(cells)
    edges = Edges(np.zeros(n, np.int32), np.arange(1, n + 1, dtype=np.int32), groups, groups, cells[:, :3])
    kept = next(suppress([edges], below))
    assert kept.order is not None
    assert len(kept) == n
    for order, (*own, beyond) in zip(kept.order.tolist(), cells.tolist(), strict=True):
        fits = all(cell == 0 or cell >= below for cell in (*own, beyond))
        assert order == (own if fits else [0, 0, 0])


def test_order_gets_noise_of_its_own() -> None:
    private, n = PrivacyOptions(1.0, 1e-6, 2), 20_000
    order = np.full((n, 3), 500, np.int32)
    edges = Edges(np.zeros(n, np.int32), np.arange(1, n + 1, dtype=np.int32), np.full(n, 1500), None, order)
    released = next(release([edges], private, Randomness(3), order=True))
    assert released.order is not None
    noise = released.order - 500
    assert noise.var() == pytest.approx(mechanism_for(private, order=True).deviation ** 2, rel=0.05)
    assert mechanism_for(private, order=True).deviation > mechanism_for(private).deviation
    assert abs(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1]) < 0.05
    assert abs(np.corrcoef(noise[:, 0], released.count - 1500)[0, 1]) < 0.05


def test_private_order_counts_only_the_pairs_a_patient_gives(tmp_path: Path) -> None:
    some = [(p, d, c) for p in range(400) for d, c in ((0, "A"), (3, "B"))]
    write_records(tmp_path / "r.jsonl", some)
    options = BuildOptions(window=None, order=True, private=PrivacyOptions(5.0, 1e-3, 1))
    build_graph(tmp_path / "r.jsonl", tmp_path / "g", options=options, seed=1)
    graph = Graph.load(tmp_path / "g")
    cells = graph.order(np.array([0]), np.array([1]))[0]
    assert abs(int(cells[0]) - 400) < 20
    assert cells[1] < 20
    assert cells[2] < 20
