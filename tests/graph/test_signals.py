"""Signals of a graph against plain loops, published formulas, numeric integration and simulated counts."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import chi2_contingency, gamma, nbinom, poisson
from typer.testing import CliRunner

from cogstage.cli.main import app
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.disproportionality import disproportionality, stratified
from cogstage.graph.signals import _grouped, fit_prior, log_likelihood, shrunk, signals
from cogstage.graph.vocabulary import Vocabulary

table = st.tuples(*(st.integers(1, 400) for _ in range(4)))


def arrays(tables: list[tuple[int, int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Tables a, b, c, d of one pair in several strata, as counts and totals."""
    a, b, c, d = (np.array([row[i] for row in tables], float)[:, None] for i in range(4))
    return a, a + b, a + c, (a + b + c + d)[:, 0]


@given(st.lists(table, min_size=1, max_size=5))
def test_pooled_ratios_follow_the_published_formulas(tables: list[tuple[int, int, int, int]]) -> None:
    """Mantel-Haenszel, Robins-Breslow-Greenland and Greenland-Robins, written out stratum by stratum."""
    r = s = pr = ps_qr = qs = top = bottom = middle = expected = seen = 0.0
    for a, b, c, d in tables:
        n = a + b + c + d
        r, s = r + a * d / n, s + b * c / n
        pr += (a + d) / n * a * d / n
        ps_qr += (a + d) / n * b * c / n + (b + c) / n * a * d / n
        qs += (b + c) / n * b * c / n
        top, bottom = top + a * (c + d) / n, bottom + c * (a + b) / n
        middle += ((a + c) * (a + b) * (c + d) - a * c * n) / n**2
        expected, seen = expected + (a + b) * (a + c) / n, seen + a
    error = math.sqrt(pr / (2 * r**2) + ps_qr / (2 * r * s) + qs / (2 * s**2))
    ror, prr, ic = stratified(*arrays(tables))[0]
    assert ror == pytest.approx([r / s * math.exp(z * error) for z in (0, -1.959964, 1.959964)], rel=1e-6)
    error = math.sqrt(middle / (top * bottom))
    assert prr == pytest.approx([top / bottom * math.exp(z * error) for z in (0, -1.959964, 1.959964)], rel=1e-6)
    assert ic[0] == pytest.approx(math.log2((seen + 0.5) / (expected + 0.5)))
    assert ic[1] == pytest.approx(math.log2(gamma(seen + 0.5, scale=1 / (expected + 0.5)).ppf(0.025)), abs=1e-9)


@given(table)
def test_strata_that_are_alike_change_nothing_but_the_precision(cells: tuple[int, int, int, int]) -> None:
    one, four = stratified(*arrays([cells])), stratified(*arrays([cells] * 4))
    assert four[0, :2, 0] == pytest.approx(one[0, :2, 0])
    widths = [np.log(x[0, :2, 2] / x[0, :2, 1]) for x in (one, four)]
    assert widths[1] == pytest.approx(widths[0] / 2)
    a, first, second, total = arrays([cells])
    assert one == pytest.approx(disproportionality(a[0], first[0], second[0], total[0]))


def test_a_confounder_that_the_strata_separate() -> None:
    """Simpson: in each stratum the odds ratio is 1; together it is not."""
    strata = [(80, 20, 40, 10), (2, 48, 8, 192)]
    whole = tuple(sum(column) for column in zip(*strata, strict=True))
    assert stratified(*arrays([whole]))[0, 0, 1] > 1  # type: ignore[list-item]
    ror = stratified(*arrays(strata))[0, 0]
    assert ror[0] == pytest.approx(1)
    assert ror[1] < 1 < ror[2]


PRIOR = (0.4, 0.3, 3.0, 2.0, 0.3)


@pytest.mark.parametrize(("n", "e"), [(1, 0.2), (4, 1.0), (30, 2.5), (120, 130.0)])
def test_shrunk_values_agree_with_integration(n: int, e: float) -> None:
    a1, b1, a2, b2, share = PRIOR

    def density(rate: float) -> float:
        prior = share * gamma.pdf(rate, a1, scale=1 / b1) + (1 - share) * gamma.pdf(rate, a2, scale=1 / b2)
        return float(prior * poisson.pmf(n, rate * e))

    limits, around = (0, max(40.0, 8 * n / e)), [n / e, 0.5 * n / e, 2 * n / e]
    whole = quad(density, *limits, points=around, limit=500)[0]
    mean = quad(lambda rate: density(rate) * math.log(rate), 1e-12, limits[1], points=around, limit=500)[0] / whole
    ebgm, low, high = shrunk(np.array([float(n)]), np.array([e]), PRIOR)[0]
    assert ebgm == pytest.approx(math.exp(mean), rel=1e-4)
    for level, value in ((0.05, low), (0.95, high)):
        below = quad(density, 0, value, points=[p for p in around if p < value], limit=500)[0]
        assert below / whole == pytest.approx(level, rel=1e-4)


def simulated(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts of at least 1 whose rates come from ``PRIOR``."""
    rng = np.random.default_rng(4)
    a1, b1, a2, b2, share = PRIOR
    first = rng.random(size) < share
    rate = np.where(first, rng.gamma(a1, 1 / b1, size), rng.gamma(a2, 1 / b2, size))
    expected = rng.gamma(1.5, 4.0, size)
    count = rng.poisson(rate * expected)
    return count[count > 0].astype(float), expected[count > 0]


def test_the_likelihood_is_that_of_truncated_negative_binomials() -> None:
    count, expected = simulated(300)
    a1, b1, a2, b2, share = PRIOR
    kinds = [nbinom(a, b / (b + expected)) for a, b in ((a1, b1), (a2, b2))]
    whole = share * kinds[0].pmf(count) + (1 - share) * kinds[1].pmf(count)
    never = share * kinds[0].pmf(0) + (1 - share) * kinds[1].pmf(0)
    assert log_likelihood(count, expected, PRIOR) == pytest.approx(np.log(whole / (1 - never)), rel=1e-9)


def test_the_prior_is_as_likely_as_the_true_one_and_gives_its_values() -> None:
    count, expected = simulated(15_000)
    prior = fit_prior(count, expected)
    assert log_likelihood(count, expected, prior).sum() >= log_likelihood(count, expected, PRIOR).sum() - 1
    ours, true = shrunk(count, expected, prior), shrunk(count, expected, PRIOR)
    often = count >= 5
    assert np.abs(np.log(ours[often] / true[often])).max() < 0.15
    for step in np.eye(5):  # no parameter can be improved by itself
        for sign in (0.97, 1.03):
            moved = tuple(np.array(prior) * np.where(step > 0, sign, 1.0))
            if moved[4] < 1:
                assert (
                    log_likelihood(count, expected, moved).mean()
                    <= log_likelihood(count, expected, prior).mean() + 1e-5
                )


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60_000))
def test_grouping_keeps_sums(size: int) -> None:
    rng = np.random.default_rng(size)
    count, expected = rng.integers(1, 4, size).astype(float), rng.random(size)
    n, e, weight = _grouped(count, expected)
    assert weight.sum() == size
    assert (n * weight).sum() == pytest.approx(count.sum())
    assert (e * weight).sum() == pytest.approx(expected.sum())
    assert len(n) <= 40_003


def graph(counts: dict[tuple[str, str], int], terms: dict[str, int], total: int) -> Graph:
    """A graph of patients; names that begin with d are drugs."""
    words = tuple(sorted(terms))
    kinds = tuple("drug" if word[0] == "d" else "event" if word[0] == "e" else "test" for word in words)
    edges = sorted((words.index(one), words.index(other), n) for (one, other), n in counts.items())
    source, target, count = (np.array(column) for column in zip(*edges, strict=True))
    node_count = np.array([terms[word] for word in words], np.int64)
    vocabulary = Vocabulary(words, words, tuple(word.upper() for word in words), kinds, node_count)
    made = {"per": "patient", "groups": total, "units": total}
    return Graph(vocabulary, source.astype(np.int32), target.astype(np.int32), count, made)


WOMEN = graph({("d1", "e1"): 30, ("d1", "e2"): 4, ("d2", "e1"): 9, ("d1", "d2"): 5, ("e1", "t1"): 8},
              {"d1": 60, "d2": 40, "e1": 90, "e2": 20, "t1": 10}, 600)  # fmt: skip
MEN = graph({("d1", "e1"): 10, ("d2", "e3"): 7, ("d1", "t1"): 2},
            {"d1": 30, "d2": 50, "e1": 45, "e3": 30, "t1": 6}, 500)  # fmt: skip


def test_one_graph_against_plain_loops() -> None:
    result = signals([WOMEN], ["drug"], ["event"])
    rows = {(row["head"], row["tail"]): row for row in result.rows(result.strongest())}
    assert set(rows) == {("d1", "e1"), ("d1", "e2"), ("d2", "e1")}
    row = rows["d1", "e1"]
    square = [[30, 30], [60, 480]]
    assert row["count"] == 30
    assert row["head_name"] == "D1"
    assert row["expected"] == pytest.approx(60 * 90 / 600)
    assert row["ln_oe"] == pytest.approx(math.log(30 / 9))
    assert row["chi_square"] == pytest.approx(chi2_contingency(square, correction=False).statistic)
    assert row["ror"] == pytest.approx(30 * 480 / (30 * 60))
    assert row["prr"] == pytest.approx((30 / 60) / (60 / 540))
    assert row["eb05"] < row["ebgm"] < row["eb95"]  # type: ignore[operator]
    assert result.basis == "patients"
    values = [row["eb05"] for row in result.rows(result.strongest())]
    assert values == sorted(values, reverse=True)  # type: ignore[type-var]


def test_strata_are_added_and_a_missing_term_counts_as_absent() -> None:
    result = signals([WOMEN, MEN], ["drug"])
    rows = {(row["head"], row["tail"]): row for row in result.rows(result.strongest())}
    assert set(rows) == {("d1", "e1"), ("d1", "e2"), ("d2", "e1"), ("d2", "e3"), ("d1", "t1")}
    row = rows["d1", "e1"]
    expected = 60 * 90 / 600 + 30 * 45 / 500
    assert (row["count"], row["expected"]) == (40, pytest.approx(expected))
    pooled = stratified(*arrays([(30, 30, 60, 480), (10, 20, 35, 435)]))[0]
    assert [row["ror"], row["ror025"], row["ror975"]] == pytest.approx(pooled[0].tolist())
    spread = sum(n1 * (n - n1) * n2 * (n - n2) / n**3 for n1, n2, n in ((60, 90, 600), (30, 45, 500)))
    assert row["chi_square"] == pytest.approx((40 - expected) ** 2 / spread)
    assert rows["d2", "e3"]["expected"] == pytest.approx(50 * 30 / 500)
    assert len(signals([WOMEN, MEN], ["drug"], min_cases=8).head) == 2


def test_what_has_no_signals_is_said() -> None:
    with pytest.raises(
        UsageError, match="no term has a type of `heads`; the types of the graph are: drug, event, test"
    ):
        signals([WOMEN], ["device"])
    with pytest.raises(UsageError, match="type of `tails`"):
        signals([WOMEN], ["drug"], ["device"])
    with pytest.raises(CogstageError, match="no head and tail of these types"):
        signals([WOMEN], ["drug"], ["test"])
    values = Graph(WOMEN.vocabulary, WOMEN.source, WOMEN.target, WOMEN.count, {"values": "ppmi", "scale": 10})
    with pytest.raises(CogstageError, match="PPMI values instead of counts"):
        signals([values], ["drug"])


def test_the_command_writes_all_pairs_and_shows_the_strongest(tmp_path: Path) -> None:
    for name, each in (("women", WOMEN), ("men", MEN)):
        each.save(tmp_path / name)
    words = ["graph", "signals", str(tmp_path / "women"), str(tmp_path / "men")]
    shown = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "all.tsv"), "--top", "1", "--min-cases", "1"])
    assert shown.exit_code == 0, shown.output
    assert "5 pairs; counts are patients" in shown.stdout
    assert "D1 - E1: 40 (expected 11.7), EBGM" in shown.stdout
    with (tmp_path / "all.tsv").open() as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    assert len(rows) == 5
    assert float(rows[0]["ror025"]) < float(rows[0]["ror"]) < float(rows[0]["ror975"])
    about = json.loads(CliRunner().invoke(app, [*words, "--tails", "event", "--json"]).stdout)
    assert (about["pairs"], about["basis"]) == (4, "patients")
