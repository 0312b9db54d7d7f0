"""Suppression means absence; a patient's share of a private graph is bounded, noisy and thresholded."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.corpus.lexicon import Entry, Lexicon
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.counting import Rows
from cogstage.graph.edges import Edges
from cogstage.graph.mechanism import mechanism_for
from cogstage.graph.noise import Randomness
from cogstage.graph.options import BuildOptions, PrivacyOptions
from cogstage.graph.privacy import bounded_edges, release
from cogstage.graph.units import number_of

rows_of = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 8)), min_size=1, max_size=90)

KEYS = np.random.default_rng(5).integers(0, 2**63, 10).astype(np.uint64)  # of the terms


def distinct(rows: list[tuple[int, int, int]]) -> Rows:
    columns = np.array(rows, np.int64).reshape(-1, 3)
    return Rows.from_columns(columns[:, 0], columns[:, 1], columns[:, 2]).distinct()


def as_counts(edges: Edges) -> dict[tuple[int, int], int]:
    return {(int(s), int(t)): int(c) for s, t, c in zip(edges.source, edges.target, edges.count, strict=True)}


@settings(max_examples=100, deadline=None)
@given(rows_of, st.integers(1, 12), st.integers(0, 2**40), st.integers(0, 5))
def test_a_patient_changes_the_counts_by_at_most_m(
    rows: list[tuple[int, int, int]], most: int, seed: int, patient: int
) -> None:
    with_all = as_counts(bounded_edges(distinct(rows), KEYS, most, seed))
    others = [row for row in rows if row[0] != patient]
    without = as_counts(bounded_edges(distinct(others), KEYS, most, seed)) if others else {}
    changed = {pair: with_all.get(pair, 0) - without.get(pair, 0) for pair in {*with_all, *without}}
    assert sum(abs(change) for change in changed.values()) <= most
    assert set(changed.values()) <= {0, 1}  # no pair more than once, nobody else's choice moves


@settings(max_examples=60, deadline=None)
@given(rows_of, st.integers(0, 2**40))
def test_with_room_for_all_pairs_bounding_counts_patients(rows: list[tuple[int, int, int]], seed: int) -> None:
    expected: dict[tuple[int, int], set[int]] = {}
    units: dict[tuple[int, int], set[int]] = {}
    for group, unit, term in rows:
        units.setdefault((group, unit), set()).add(term)
    for (group, _), terms in units.items():
        for pair in combinations(sorted(terms), 2):
            expected.setdefault(pair, set()).add(group)
    counted = as_counts(bounded_edges(distinct(rows), KEYS, 10_000, seed))
    assert counted == {pair: len(groups) for pair, groups in expected.items()}


def test_which_pairs_stay_is_even() -> None:
    """Of one patient's 45 pairs 9 stay; over many seeds each stays a fifth of the time."""
    rows = distinct([(7, 0, term) for term in range(10)])
    stayed = np.zeros((10, 10))
    for seed in range(2000):
        edges = bounded_edges(rows, KEYS, 9, seed)
        assert len(edges) == 9
        stayed[edges.source, edges.target] += 1
    shares = stayed[np.triu_indices(10, 1)] / 2000
    assert abs(shares.mean() - 0.2) < 1e-9
    assert shares.min() > 0.15  # five standard deviations are 0.045
    assert shares.max() < 0.25


def test_noise_is_discrete_laplace() -> None:
    private = PrivacyOptions(0.5, 1e-6, 3, "laplace")
    n, true = 60_000, 1000  # far above the threshold, so that nothing is cut off
    edges = Edges(np.zeros(n, np.int32), np.arange(1, n + 1, dtype=np.int32), np.full(n, true))
    noise = np.concatenate([part.count for part in release([edges], private, Randomness(5))]) - true
    p = math.exp(-private.epsilon / private.pairs)
    assert len(noise) == n
    assert abs(noise.mean()) < 0.2
    assert noise.var() == pytest.approx(2 * p / (1 - p) ** 2, rel=0.05)
    assert (noise == 0).mean() == pytest.approx((1 - p) / (1 + p), rel=0.05)
    assert (noise >= 12).mean() == pytest.approx(p**12 / (1 + p), rel=0.1)


@pytest.mark.parametrize("limits", [(1, 1e-6, 100), (0.1, 1e-5, 1), (8, 0.01, 5)])
def test_threshold_holds_delta(limits: tuple[float, float, int]) -> None:
    private = PrivacyOptions(*limits, "laplace")
    p, tau = math.exp(-private.epsilon / private.pairs), mechanism_for(private).threshold
    shows = lambda least: p ** (least - 1) / (1 + p)  # noqa: E731  P(1 + noise >= least)
    assert private.pairs * shows(tau) <= private.delta
    assert private.pairs * shows(tau - 1) > private.delta or tau == 2


def test_private_graph_says_what_was_done_and_nothing_exact(tmp_path: Path) -> None:
    lexicon = Lexicon.build([Entry(word) for word in ("aspirin", "fever", "cough", "gout")])
    with (tmp_path / "notes.jsonl").open("w", encoding="utf-8") as handle:
        for number in range(900):
            text = "aspirin and fever and cough" if number else "aspirin and gout"
            record = {"doc_id": str(number), "patient_id": f"p{number // 3}", "text": text}
            handle.write(json.dumps(record) + "\n")
    options = BuildOptions(private=PrivacyOptions(2.0, 1e-6, 3))
    for name in ("one", "two"):
        build_graph(tmp_path / "notes.jsonl", tmp_path / name, lexicon, options, seed=1)
    build_graph(tmp_path / "notes.jsonl", tmp_path / "spilled", lexicon, options, seed=1, memory=5_000)
    for name in ("a", "b", "c", "d"):
        build_graph(tmp_path / "notes.jsonl", tmp_path / name, lexicon, options)
    graph = Graph.load(tmp_path / "one")
    assert (graph.count == Graph.load(tmp_path / "two").count).all()
    assert graph.hash == Graph.load(tmp_path / "spilled").hash
    # a seed nobody knows: three counts may come out alike by chance (1 in 100), but not four times
    assert {graph.hash} != {Graph.load(tmp_path / name).hash for name in ("a", "b", "c", "d")}
    assert graph.vocabulary.term == ("aspirin", "cough", "fever")  # gout was one patient's alone
    assert all(abs(count - 300) < 60 for count in graph.count.tolist())  # patients, not notes
    assert graph.vocabulary.count.max() == graph.count.max()
    made = graph.made_with
    assert made["private"]["epsilon"] == 2.0
    assert made["private"]["pairs"] == 3
    assert made["private"]["threshold"] == mechanism_for(options.private).threshold  # type: ignore[arg-type]
    assert not {"inputs", "documents", "units", "groups", "skipped"} & set(made)


def test_an_unfinished_private_build_tells_no_patient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its work is for its owner alone, under hashes that cannot be guessed back, and goes when the build is done."""
    notes = tmp_path / "notes.jsonl"
    patients = [f"patient {n:03d}" for n in range(60)]  # long enough not to stand among random bytes by chance
    notes.write_text(
        "".join(
            f'{{"doc_id": "{n}", "patient_id": "{patient}", "text": "gout fever"}}\n'
            for n, patient in enumerate(patients)
        )
    )
    lexicon, work = Lexicon.build([Entry("gout"), Entry("fever")]), tmp_path / ".graph.work"
    options = BuildOptions(private=PrivacyOptions(2.0, 1e-6, 3))
    with monkeypatch.context() as patch:
        patch.setattr("cogstage.graph.build.release", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            build_graph(notes, tmp_path / "graph", lexicon, options)
    assert work.stat().st_mode & 0o777 == 0o700
    held = b"".join(path.read_bytes() for path in work.rglob("*") if path.is_file() and path.suffix == ".npy")
    assert held
    for patient in patients:
        assert patient.encode() not in held
        for kind in ("patient", "group", "unit"):  # without the secret of this build nobody gets these numbers
            assert number_of(kind, patient).to_bytes(8, "little") not in held
    build_graph(notes, tmp_path / "graph", lexicon, options, resume=True)
    assert not work.exists()


def test_suppressed_means_absent_and_is_measured_in_patients(tmp_path: Path) -> None:
    """gout and rash share twenty notes of one patient, aspirin and fever one note each of twelve; others cough."""
    lexicon = Lexicon.build([Entry(word) for word in ("aspirin", "cough", "fever", "gout", "rash")])
    with (tmp_path / "notes.jsonl").open("w", encoding="utf-8") as handle:
        for number in range(44):
            patient, text = ("one", "gout and rash") if number < 20 else (f"p{number}", "aspirin and fever")
            text = text if number < 32 else "cough"
            handle.write(json.dumps({"doc_id": str(number), "patient_id": patient, "text": text}) + "\n")
    build_graph(tmp_path / "notes.jsonl", tmp_path / "all", lexicon)
    build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", lexicon, BuildOptions(suppress_below=11))
    assert Graph.load(tmp_path / "all").n_edges == 2
    graph = Graph.load(tmp_path / "graph")
    assert graph.vocabulary.term == ("aspirin", "cough", "fever")
    assert graph.count.tolist() == [12]
    assert graph.made_with["suppress_below"] == 11
    assert "gout" not in "".join(path.read_bytes().decode("latin-1") for path in (tmp_path / "graph").iterdir())


def test_wrong_private_options() -> None:
    for text in (
        "1",
        "0,1e-6,5",
        "1,2,5",
        "1,1e-6,0",
        "a,b,c",
        "inf,1e-6,5",
        "nan,1e-6,5",
        "1,5e-324,5",
        "1e-300,0.1,5",
        "1,1e-6,5,uniform",
        "1,1e-6,5,laplace,laplace",
    ):
        with pytest.raises(UsageError, match=r"`private` (must be|needs)|`noise` must be one of gaussian, laplace"):
            PrivacyOptions.parse(text)
    assert PrivacyOptions.parse("1,1e-6,100") == PrivacyOptions(1.0, 1e-6, 100)
    with pytest.raises(UsageError, match="min_count"):
        BuildOptions(private=PrivacyOptions(1, 1e-6, 5), min_count=3)


@pytest.mark.parametrize(
    "private", [PrivacyOptions(1, 1e-6, 100, "laplace"), PrivacyOptions(8, 2.3e-308, 5, "laplace")]
)
def test_threshold_holds_delta_with_order(private: PrivacyOptions) -> None:
    """Everything gets the noise of twice the sensitivity; one patient's pair shows with chance delta at most."""
    scale, tau = 2 * private.pairs / private.epsilon, mechanism_for(private, order=True).threshold
    log_shows = math.log(private.pairs) - (tau - 1) / scale - math.log1p(math.exp(-1 / scale))
    assert log_shows <= math.log(private.delta)


@settings(max_examples=60, deadline=None)
@given(rows_of, st.integers(1, 12), st.integers(0, 2**40), st.integers(0, 5), st.integers(0, 9))
def test_a_patients_pairs_do_not_depend_on_what_others_have(
    rows: list[tuple[int, int, int]], most: int, seed: int, patient: int, extra: int
) -> None:
    """Terms of others shift the numbers of all terms; each patient's choice of pairs stays the same."""
    mine = [row for row in rows if row[0] == patient]
    if not mine:
        return
    alone = bounded_edges(distinct(mine), KEYS, most, seed)
    moved = distinct([(g, u, t + (t >= extra)) for g, u, t in mine])  # another patient's term takes the number
    keys = np.insert(KEYS, extra, np.uint64(12345))
    shifted = bounded_edges(moved, keys, most, seed)
    back = [term - (term > extra) for term in range(11)]
    assert as_counts(alone) == {(back[s], back[t]): c for (s, t), c in as_counts(shifted).items()}


def test_a_given_seed_is_warned_of_and_recorded(tmp_path: Path) -> None:
    lexicon = Lexicon.build([Entry(word) for word in ("aspirin", "fever")])
    with (tmp_path / "notes.jsonl").open("w", encoding="utf-8") as handle:
        for number in range(300):
            handle.write(json.dumps({"doc_id": str(number), "patient_id": str(number), "text": "aspirin fever"}) + "\n")
    said: list[str] = []

    class Listener:
        def start(self, title: str, total: int | None = None) -> None: ...
        def advance(self, amount: int = 1, note: str = "") -> None: ...
        def done(self, note: str = "") -> None: ...
        def say(self, line: str) -> None:
            said.append(line)

    options = BuildOptions(private=PrivacyOptions(2.0, 1e-6, 3))
    build_graph(tmp_path / "notes.jsonl", tmp_path / "g", lexicon, options, seed=1, progress=Listener())
    assert sum("seed" in line for line in said) == 1
    assert Graph.load(tmp_path / "g").made_with["private"]["seed"].startswith("1, set by the user")
    build_graph(tmp_path / "notes.jsonl", tmp_path / "h", lexicon, options)
    assert "seed" not in Graph.load(tmp_path / "h").made_with["private"]
    for private, least in ((PrivacyOptions(1, 1e-6, 100, "laplace"), "1,775"), (PrivacyOptions(1, 1e-6, 1000), "804")):
        with pytest.raises(CogstageError, match=f"τ = {least}"):
            build_graph(tmp_path / "notes.jsonl", tmp_path / "i", lexicon, BuildOptions(private=private))
        assert not (tmp_path / "i").exists()
