"""What two published graphs of the same patients reveal together: nothing small, or the second one is refused."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.errors import CogstageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.edges import Edges
from cogstage.graph.ledger import Budget
from cogstage.graph.merge import merge_graphs
from cogstage.graph.options import BuildOptions
from cogstage.graph.privacy import suppress
from cogstage.graph.releasing import release_folder
from cogstage.graph.roll_up import read_roll_up, roll_up_graph

BELOW = 4
TERMS = 5


def counted(patients: list[set[int]]) -> tuple[Edges, np.ndarray]:
    """Counts of pairs and terms, patient by patient."""
    pairs = list(combinations(range(TERMS), 2))
    both = np.array([sum(set(pair) <= terms for terms in patients) for pair in pairs])
    source, target = np.array(pairs, np.int32).T
    term = np.array([sum(term in terms for terms in patients) for term in range(TERMS)])
    return Edges(source, target, both.astype(np.int64), both.astype(np.int64)).where(both > 0), term


def small(*counts: int) -> bool:
    return any(0 < count < BELOW for count in counts)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sets(st.integers(0, TERMS - 1)), min_size=1, max_size=40))
def test_a_pair_and_its_marginals_reveal_no_small_cell(patients: list[set[int]]) -> None:
    """Every cell of every published pair's table, computed from the patients, is 0 or large; no other pair is lost."""
    edges, term = counted(patients)
    (published,) = suppress([edges], BELOW, term, len(patients))
    shown = set(zip(published.source.tolist(), published.target.tolist(), strict=True))
    for one, other in combinations(range(TERMS), 2):
        cells = [
            sum((one in terms, other in terms) == wanted for terms in patients)
            for wanted in ((True, True), (True, False), (False, True), (False, False))
        ]
        assert ((one, other) in shown) == (cells[0] >= BELOW and not small(*cells))


def write(path: Path, patients: dict[str, set[str]]) -> Path:
    lines = [f"{patient},{code},2020-01-01\n" for patient, codes in patients.items() for code in sorted(codes)]
    path.write_text("patient_id,code,date\n" + "".join(lines))
    return path


def built(tmp_path: Path, name: str, patients: dict[str, set[str]], below: int = BELOW, **more: object) -> Graph:
    options = BuildOptions(unit="patient-window", window=7, per="patient", suppress_below=below)
    build_graph(write(tmp_path / f"{name}.csv", patients), tmp_path / name, options=options, **more)  # type: ignore[arg-type]
    return Graph.load(tmp_path / name)


def test_a_build_hides_terms_that_almost_all_patients_have(tmp_path: Path) -> None:
    """19 of 20 patients have cough: the total reveals the one who has not. Fever and gout have neither problem."""
    patients = {f"p{n}": {"cough"} | ({"fever", "gout"} if n % 2 else set()) for n in range(19)}
    patients["p19"] = {"fever", "gout"}
    graph = built(tmp_path, "g", patients)
    assert graph.vocabulary.term == ("fever", "gout")
    assert graph.made_with["groups"] == 20
    patients = {f"p{n}": {"fever"} | ({"gout"} if n < 9 else set()) for n in range(10)} | {
        f"q{n}": {"itch"} | ({"rash"} if n < 5 else set()) for n in range(10)
    }
    graph = built(tmp_path, "h", patients)  # 10 have fever and 9 of them gout, so that one has fever without gout
    assert as_counts(graph) == {("itch", "rash"): 5}
    assert graph.vocabulary.term == ("fever", "gout", "itch", "rash")


def as_counts(graph: Graph) -> dict[tuple[str, str], int]:
    term = graph.vocabulary.term
    rows = zip(graph.source.tolist(), graph.target.tolist(), graph.count.tolist(), strict=True)
    return {(term[s], term[t]): n for s, t, n in rows}


def test_merges_with_and_without_a_site_differ_by_what_the_site_shows_itself(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    sites = []
    for site in range(3):
        patients = {f"s{site}p{n}": {f"c{code}" for code in np.flatnonzero(rng.random(5) < 0.4)} for n in range(30)}
        sites.append(built(tmp_path, f"site{site}", patients))
    all_three, two = as_counts(merge_graphs(sites)), as_counts(merge_graphs(sites[:2]))
    difference = {pair: count - two.get(pair, 0) for pair, count in all_three.items()}
    assert {pair: count for pair, count in difference.items() if count} == as_counts(sites[2])
    assert not small(*difference.values())
    assert any(difference.values())


def test_a_graph_and_its_roll_up_are_not_both_released(tmp_path: Path) -> None:
    """Eight patients have A and X, two have B and X. P, the parent of A and B, would tell the two."""
    patients = {f"p{n}": {"A", "X"} for n in range(8)} | {"p8": {"B", "X"}, "p9": {"B", "X"}}
    patients |= {f"q{n}": {"B", "Z"} for n in range(9)} | {f"r{n}": {"X"} for n in range(4)}
    (tmp_path / "up.csv").write_text("code,parent\nA,P\nB,P\n")
    leaves = built(tmp_path, "leaves", patients)
    above = built(tmp_path, "above", patients, roll_up=tmp_path / "up.csv")
    assert ("B", "X") not in as_counts(leaves)
    assert as_counts(above)["P", "X"] - as_counts(leaves)["A", "X"] == 2  # what a reader of both would learn
    ledger = tmp_path / "ledger.json"
    release_folder(tmp_path / "leaves", tmp_path / "one", None, ledger, Budget(1, 1e-6))
    release_folder(tmp_path / "leaves", tmp_path / "again", None, ledger)
    with pytest.raises(CogstageError, match="difference between two such releases"):
        release_folder(tmp_path / "above", tmp_path / "two", None, ledger)
    assert not (tmp_path / "two").exists()
    with pytest.raises(CogstageError, match="sums would be too small"):  # nor is it derived from the suppressed one
        roll_up_graph(leaves, read_roll_up(tmp_path / "up.csv", leaves.vocabulary.term))


def test_two_thresholds_are_not_both_released(tmp_path: Path) -> None:
    patients = {f"p{n}": {"A", "X"} for n in range(8)} | {f"q{n}": {"Y", "Z"} for n in range(12)}
    built(tmp_path, "four", patients)
    built(tmp_path, "ten", patients, below=10)
    release_folder(tmp_path / "four", tmp_path / "one", None, tmp_path / "ledger.json")
    with pytest.raises(CogstageError, match="has suppressed counts of the same patients"):
        release_folder(tmp_path / "ten", tmp_path / "two", None, tmp_path / "ledger.json")
