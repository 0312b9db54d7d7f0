"""What several releases cost together, against exact sums; the ledger and `graph release`."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from typer.testing import CliRunner

from cogstage.cli import main
from cogstage.cli.main import app
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.ledger import Budget, Entry, Ledger, charge, read_ledger, spent_epsilon
from cogstage.graph.mechanism import appearance, mechanism_for
from cogstage.graph.options import BuildOptions, PrivacyOptions
from cogstage.graph.releasing import private_release, release_folder

REACH = 300


def outputs(private: PrivacyOptions, count: int) -> np.ndarray:
    """Probabilities of "not released", τ, τ + 1, ... of one pair."""
    mechanism = mechanism_for(private)
    z = np.arange(-4 * REACH, 4 * REACH + 1)
    spread = float(mechanism.spread)
    weight = np.exp(-(z**2) / (2 * spread) if private.noise == "gaussian" else -np.abs(z) / spread)
    weight /= weight.sum()
    if count == 0:
        return np.append(1.0, np.zeros(REACH))
    first = 4 * REACH + mechanism.threshold - count
    released = weight[first : first + REACH]
    return np.append(1 - released.sum(), released)


def exact_epsilon(one: np.ndarray, other: np.ndarray, delta: float) -> float:
    """The smallest ε for which both distributions are (ε, δ)-near."""

    def excess(epsilon: float) -> float:
        both = (np.maximum(p - math.exp(epsilon) * q, 0).sum() for p, q in ((one, other), (other, one)))
        return float(max(both)) - delta

    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, 50.0))


@pytest.mark.parametrize(
    "releases",
    [
        (PrivacyOptions(1, 0.01, 1), PrivacyOptions(0.5, 0.01, 1)),
        (PrivacyOptions(1, 1e-4, 1), PrivacyOptions(2, 1e-3, 1, "laplace")),
        (PrivacyOptions(0.7, 0.001, 1), PrivacyOptions(0.7, 0.001, 1)),
    ],
)
def test_the_cost_covers_every_combination_of_inputs(releases: tuple[PrivacyOptions, PrivacyOptions]) -> None:
    """Shared and own pairs in each of two releases; the sum over all outputs never needs a higher ε."""
    delta = 1.2 * sum(private.delta for private in releases)
    claimed = spent_epsilon([(private, False) for private in releases], delta)
    worst = 0.0
    for shared in product((True, False), repeat=2):
        counts = [
            mechanism_for(private).threshold + 60 if s else 0 for private, s in zip(releases, shared, strict=True)
        ]
        one, other = (
            np.outer(*(outputs(private, count + more) for private, count in zip(releases, counts, strict=True))).ravel()
            for more in (1, 0)
        )
        worst = max(worst, exact_epsilon(one, other, delta))
    assert 0 < worst <= claimed
    assert claimed <= sum(private.epsilon for private in releases)


def test_many_releases_cost_little_more_than_they_must() -> None:
    """Twenty alike: the sum of their noise decides; a convolution gives its distribution."""
    private, delta = PrivacyOptions(0.5, 1e-7, 1), 1e-4
    variance = float(mechanism_for(private).spread)
    z = np.arange(-2000, 2001)
    mass = np.exp(-(z**2) / (2 * variance * 20))  # a sum of discrete Gaussians, to within 1e-16 at this variance
    mass /= mass.sum()
    literal = exact_epsilon(np.roll(mass, 20), mass, delta)
    claimed = spent_epsilon([(private, False)] * 20, delta)
    assert literal <= claimed <= 1.25 * literal
    assert claimed < 0.4 * 20 * private.epsilon


def test_one_release_costs_what_it_claims_and_none_nothing() -> None:
    private = PrivacyOptions(1, 1e-6, 100)
    assert spent_epsilon([(private, False)], 1e-6) == 1
    assert spent_epsilon([], 1e-6) == 0
    assert spent_epsilon([(private, False)] * 2, 1e-6) > 2 or math.isinf(spent_epsilon([(private, False)] * 2, 1e-6))
    costs = [spent_epsilon([(private, False)] * n, 1e-4) for n in range(1, 12)]
    assert costs == sorted(costs)
    assert 0 < appearance(100, mechanism_for(private)) < 1e-6


@pytest.fixture
def bounded(tmp_path: Path) -> Path:
    """300 patients with two pairs each of three, and one patient with a pair of their own."""
    with (tmp_path / "records.csv").open("w", encoding="utf-8") as handle:
        handle.write("patient_id,code,date\n")
        for number in range(300):
            codes = ("gout", "rare") if number == 0 else ("fever", "cough", "aspirin")
            handle.writelines(f"p{number},{code},2020-01-01\n" for code in codes)
    options = BuildOptions(unit="patient-window", window=7, pairs_per_patient=2)
    build_graph(tmp_path / "records.csv", tmp_path / "bounded", options=options)
    return tmp_path / "bounded"


def test_bounded_counts_are_exact_and_bounded(bounded: Path) -> None:
    graph = Graph.load(bounded)
    assert graph.made_with["pairs_per_patient"] == 2
    assert graph.count.sum() == 299 * 2 + 1
    assert dict(zip(graph.vocabulary.term, graph.vocabulary.count.tolist(), strict=True))["fever"] == 299


def test_a_release_has_noise_and_nothing_exact(bounded: Path) -> None:
    private = PrivacyOptions(2, 1e-6, 2)
    graph = Graph.load(bounded)
    released = [private_release(graph, private) for _ in range(4)]
    assert len({each.hash for each in released}) > 1
    for each in released:
        assert each.vocabulary.term == ("aspirin", "cough", "fever")
        assert abs(each.count - 199).max() < 60
        made = each.made_with
        assert made["private"]["pairs"] == 2
        assert not {"inputs", "documents", "units", "groups", "pairs_per_patient", "skipped"} & set(made)
    with pytest.raises(UsageError, match="2 pairs per patient, `private` says 3"):
        private_release(graph, PrivacyOptions(2, 1e-6, 3))
    with pytest.raises(CogstageError, match=r"\(τ = 1,124\)"):
        private_release(graph, PrivacyOptions(0.02, 1e-6, 2))


def test_the_ledger_refuses_what_exceeds_its_budget(bounded: Path, tmp_path: Path) -> None:
    private, ledger = PrivacyOptions(1, 1e-6, 2), tmp_path / "ledger.json"
    with pytest.raises(UsageError, match="set its `budget`"):
        release_folder(bounded, tmp_path / "one", private, ledger)
    made = 4  # a plain sum would allow 2
    for number in range(made):
        release_folder(bounded, tmp_path / f"r{number}", private, ledger, None if number else Budget(2.5, 1e-5))
    with pytest.raises(CogstageError, match=r"the releases so far used .* ε would be .*; nothing was released"):
        release_folder(bounded, tmp_path / f"r{made}", PrivacyOptions(2, 1e-6, 2), ledger)
    assert read_ledger(ledger).spent() <= 2.5
    assert len(read_ledger(ledger).entries) == made
    assert not (tmp_path / f"r{made}").exists()
    assert ledger.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match=r"has the budget 2\.5,1e-05"):
        charge(ledger, Entry("x", private), Budget(30, 1e-5))


def test_a_private_graph_is_charged_once(bounded: Path, tmp_path: Path) -> None:
    options = BuildOptions(unit="patient-window", window=7, private=PrivacyOptions(2, 1e-6, 2))
    build_graph(tmp_path / "records.csv", tmp_path / "noisy", options=options)
    ledger = tmp_path / "ledger.json"
    for name in ("a", "b"):
        release_folder(tmp_path / "noisy", tmp_path / name, None, ledger, Budget(3, 1e-5))
    assert len(read_ledger(ledger).entries) == 1
    assert Graph.load(tmp_path / "b").hash == Graph.load(tmp_path / "noisy").hash
    build_graph(tmp_path / "records.csv", tmp_path / "seeded", options=options, seed=3)
    with pytest.raises(CogstageError, match="known seed"):
        release_folder(tmp_path / "seeded", tmp_path / "c", None, ledger)


def test_exact_counts_are_not_released(bounded: Path, tmp_path: Path) -> None:
    build_graph(tmp_path / "records.csv", tmp_path / "plain")
    with pytest.raises(CogstageError, match="exact counts"):
        release_folder(tmp_path / "plain", tmp_path / "x", None, tmp_path / "ledger.json")
    with pytest.raises(UsageError, match="was not built with `pairs_per_patient`"):
        release_folder(tmp_path / "plain", tmp_path / "x", PrivacyOptions(1, 1e-6, 2), tmp_path / "ledger.json")
    with pytest.raises(UsageError, match="set `private`, such as 1,1e-6,2"):
        release_folder(bounded, tmp_path / "x", None, tmp_path / "ledger.json")
    assert not (tmp_path / "ledger.json").exists()
    assert not (tmp_path / "x").exists()
    with pytest.raises(UsageError, match="later; drop `private`"):
        BuildOptions(pairs_per_patient=3, suppress_below=5)
    with pytest.raises(UsageError, match="must be at least 1"):
        BuildOptions(pairs_per_patient=0)


def test_a_damaged_ledger_is_one_line(tmp_path: Path) -> None:
    for text in ("", "[]", '{"kind": "graph"}', '{"kind": "ledger", "budget": {"epsilon": 1}, "releases": []}'):
        (tmp_path / "ledger.json").write_text(text)
        with pytest.raises(CogstageError, match="not a ledger"):
            read_ledger(tmp_path / "ledger.json")
    assert Ledger(Budget(1, 1e-6)).spent() == 0
    for text in ("1", "0,1e-6", "1,2", "a,b"):
        with pytest.raises(UsageError, match="`budget` must be EPS,DELTA"):
            Budget.parse(text)


def test_the_command(bounded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["graph", "release", str(bounded), "--private", "2,1e-6,2", "--out", str(tmp_path / "shared")]
    shown = CliRunner().invoke(app, [*words, "--budget", "3,1e-5", "--json"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["edges"] == 3
    assert "1 private releases used ε = 1.9" in shown.stderr
    assert (tmp_path / "bounded.ledger.json").exists()
    with pytest.raises(SystemExit) as ended:
        main.run([*words, "--budget", "9,1e-5"])
    assert ended.value.code == 2
    assert "leave --budget out" in capfd.readouterr().err
