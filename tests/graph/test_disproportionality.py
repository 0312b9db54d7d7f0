"""ROR, PRR and IC against scipy's tests of tables, the gamma distribution, and values worked out by hand."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gamma
from scipy.stats.contingency import odds_ratio, relative_risk

from cogstage.data import embedded
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.disproportionality import Margins, Population, disproportionality
from cogstage.graph.options import BuildOptions, PrivacyOptions
from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.vocabulary import Vocabulary
from cogstage.provenance import privacy_text

cells = st.tuples(*(st.integers(1, 5000) for _ in range(4)))


def of_table(a: int, b: int, c: int, d: int) -> np.ndarray:
    return disproportionality(np.array([a]), np.array([a + b]), np.array([a + c]), a + b + c + d)[0]


@given(cells)
def test_ratios_and_intervals_are_those_of_scipy(table: tuple[int, int, int, int]) -> None:
    a, b, c, d = table
    ror, prr, ic = of_table(a, b, c, d)
    odds = odds_ratio([[a, b], [c, d]], kind="sample")
    interval = odds.confidence_interval(0.95)
    assert ror == pytest.approx([odds.statistic, interval.low, interval.high], rel=1e-9)
    risk = relative_risk(a, a + b, c, c + d)
    interval = risk.confidence_interval(0.95)
    assert prr == pytest.approx([risk.relative_risk, interval.low, interval.high], rel=1e-9)
    expected = (a + b) * (a + c) / (a + b + c + d)
    posterior = gamma(a + 0.5, scale=1 / (expected + 0.5))
    ends = [np.log2((a + 0.5) / (expected + 0.5)), np.log2(posterior.ppf(0.025)), np.log2(posterior.ppf(0.975))]
    assert ic == pytest.approx(ends, rel=1e-9, abs=1e-9)


def test_values_worked_out_by_hand() -> None:
    ror, prr, ic = of_table(20, 80, 100, 1800)
    assert ror[0] == pytest.approx(20 * 1800 / (80 * 100))  # 4.5
    assert ror[1:] == pytest.approx([2.6494, 7.6433], abs=1e-3)  # ln 4.5 ± 1.96·√(1/20 + 1/80 + 1/100 + 1/1800)
    assert prr[0] == pytest.approx(0.2 / (100 / 1900))  # 3.8
    assert ic[0] == pytest.approx(np.log2(20.5 / 6.5))  # 100·120/2000 = 6 expected
    low = ic[0] - 3.3 * 20.5**-0.5 - 2 * 20.5**-1.5  # the published approximation of IC025
    assert ic[1] == pytest.approx(low, abs=0.06)
    high = ic[0] + 2.4 * 20.5**-0.5 - 0.5 * 20.5**-1.5
    assert ic[2] == pytest.approx(high, abs=0.06)


def test_empty_cells() -> None:
    assert np.isnan(of_table(0, 5, 5, 90)).all()  # never together: nothing to say
    ror, prr, _ = of_table(5, 0, 5, 90)
    assert ror[0] == pytest.approx(5.5 * 90.5 / (0.5 * 5.5))
    assert prr[0] == pytest.approx((5.5 / 6) / (5.5 / 96))
    assert np.isnan(disproportionality(np.array([9]), np.array([5]), np.array([9]), 20)).all()  # not within margins


def records(path: Path) -> Path:
    """Sixty patients: twenty have A and B, ten A alone, fifteen B alone, the others C; two visits each."""
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["patient_id", "date", "code"])
        for patient in range(60):
            codes = "AB" if patient < 20 else "AC" if patient < 30 else "BC" if patient < 45 else "CD"
            for day in ("2020-01-01", "2020-06-01"):
                writer.writerows([f"p{patient}", day, code] for code in codes)
    return path


def margins_of(graph: Graph) -> Margins:
    population = Population.from_meta(graph.made_with)
    found = Margins.from_counts(
        population, graph.vocabulary.count, PairCounts.from_graph(graph), privacy_text(graph.made_with)
    )
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("options", "total", "both", "basis"),
    [
        (BuildOptions(window=None, per="patient"), 60, 20, "patients"),
        (BuildOptions(window=1), 120, 40, "1d windows"),
        (BuildOptions(window=None, per="patient", suppress_below=10), 60, 20, "patients; counts below 10 suppressed"),
    ],
)
def test_margins_are_the_graphs_own(tmp_path: Path, options: BuildOptions, total: int, both: int, basis: str) -> None:
    build_graph(records(tmp_path / "r.csv"), tmp_path / "g", options=options)
    graph = Graph.load(tmp_path / "g")
    margins, (a, b) = margins_of(graph), (graph.vocabulary.index[code] for code in "AB")
    times = both // 20
    assert (margins.total, margins.basis) == (total, basis)
    assert (margins.term[a], margins.term[b]) == (30 * times, 35 * times)
    counts = PairCounts.from_graph(graph).counts(np.array([a]), np.array([b]))
    assert counts.tolist() == [both]
    estimate = disproportionality(counts, margins.term[[a]], margins.term[[b]], margins.total)[0]
    assert estimate[0, 0] == pytest.approx(20 * 15 / (10 * 15))


def test_the_embedded_graph_counts_documents() -> None:
    graph = embedded.graph()
    margins = margins_of(graph)
    assert (margins.total, margins.basis) == (graph.made_with["documents"], "documents")
    assert margins.term.tolist() == graph.vocabulary.count.tolist()


def test_without_totals_a_pair_of_terms_is_the_unit_and_that_is_said(tmp_path: Path) -> None:
    options = BuildOptions(window=None, private=PrivacyOptions(50.0, 0.1, 3))
    build_graph(records(tmp_path / "r.csv"), tmp_path / "g", options=options, seed=1)
    graph = Graph.load(tmp_path / "g")
    assert Population.from_meta(graph.made_with) is None
    margins = margins_of(graph)
    assert margins.basis == f"pairs of terms; {privacy_text(graph.made_with)}"
    assert "known seed" in margins.basis
    matrix = graph.matrix.toarray()
    assert margins.total == matrix.sum() / 2
    assert margins.term.tolist() == matrix.sum(1).tolist()


def test_ppmi_values_have_no_margins() -> None:
    words, made = Vocabulary.from_terms(["a", "b"]), {"values": "ppmi", "scale": 10}
    graph = Graph(words, np.array([0], np.int32), np.array([1], np.int32), np.array([7]), made)
    assert Population.from_meta(made) is None
    assert Margins.from_counts(None, words.count, PairCounts.from_graph(graph), "none") is None


def test_the_population_of_patient_counts_is_patients(tmp_path: Path) -> None:
    """Sixty patients have two visits each, so there are twice as many windows as patients."""
    build_graph(records(tmp_path / "r.csv"), tmp_path / "g", options=BuildOptions(window=7, per="patient"))
    made_with = Graph.load(tmp_path / "g").made_with
    assert (made_with["units"], made_with["groups"]) == (120, 60)
    assert Population.from_meta(made_with) == Population(60, "patients")
