"""Splits by time, and pairs that are kept out: checked on the files against the dates and tables they came from."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from knowledge_files import graph_of
from test_cli_knowledge import cogstage

from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.dataset import SPLITS
from cogstage.knowledge.facts import Facts, Statement, year_of
from cogstage.knowledge.hold_out import HoldOut
from cogstage.knowledge.located import LocatedFacts
from cogstage.knowledge.table import facts_from_table
from cogstage.knowledge.time_split import never_counted

BEFORE = 1992


def dated_world(until: str | None = "1991-12-31") -> tuple[Graph, Facts, dict[tuple[str, str, str], int | None]]:
    """Facts of two relations with years, some without; a few pairs hold an early and a later one."""
    rng = np.random.default_rng(0)
    years: dict[tuple[str, str, str], int | None] = {}
    for _ in range(1500):
        relation = "causes" if rng.random() < 0.6 else "may_treat"
        triple = (f"h{rng.integers(50)}", relation, f"t{rng.integers(80)}")
        years[triple] = None if rng.random() < 0.1 else int(rng.choice([1980, 1991, 1992, 2005]))
    plain = graph_of([*(f"h{i}" for i in range(50)), *(f"t{i}" for i in range(80))], density=0.3)
    made_with = {"until": until} if until else {}
    graph = Graph(plain.vocabulary, plain.source, plain.target, plain.count, made_with)
    return graph, Facts.from_statements(Statement(*triple, "", year) for triple, year in years.items()), years


def triples_of(path: Path) -> set[tuple[str, str, str]]:
    return {(row["head"], row["relation"], row["tail"]) for row in pq.read_table(path).to_pylist()}


def test_earlier_facts_are_fitted_on_and_later_ones_tested(tmp_path: Path) -> None:
    graph, facts, years = dated_world()
    data = build_dataset(graph, facts, tmp_path / "data", split="time", before=BEFORE)
    first: dict[tuple[str, str], float] = {}
    for (h, _, t), year in years.items():
        first[h, t] = min(first.get((h, t), 9999), -1 if year is None else year)
    early = {triple for triple, year in years.items() if year is not None and year < BEFORE}
    late = {
        (h, r, t) for (h, r, t), year in years.items() if year is not None and year >= BEFORE and first[h, t] >= BEFORE
    }
    found = {split: triples_of(tmp_path / f"data/facts_{split}.parquet") for split in SPLITS}
    assert found["train"] | found["dev"] == early
    assert found["test"] == late
    assert len(found["dev"]) / len(early) == pytest.approx(0.15 / 0.85, abs=0.02)
    seen = {(h, t) for h, _, t in early}
    assert not seen & {(h, t) for h, _, t in late}
    time = data.leakage["time"]
    assert time["later facts in train or dev"] == time["earlier facts in test"] == 0
    assert time["facts"]["without a year"] == sum(year is None for year in years.values())
    assert sum(time["facts"].values()) == len(years)
    assert not any("until" in line or "leaks" in line for line in data.leakage["warnings"])
    assert "Split by time: training facts before 1992" in (tmp_path / "data/leakage.txt").read_text()


def test_nothing_stated_after_the_cut_reaches_fitting(tmp_path: Path) -> None:
    graph, facts, years = dated_world()
    view = build_dataset(graph, facts, tmp_path / "data", split="time", before=BEFORE).for_fitting()
    term = graph.vocabulary.term
    later = {(h, t) for (h, _, t), year in years.items() if year is not None and year >= BEFORE}
    later -= {(h, t) for (h, _, t), year in years.items() if year is None or year < BEFORE}
    trained = view.train_facts()
    assert not later & {(term[h], term[t]) for h, t in zip(trained.head, trained.tail, strict=True)}
    for relation in view.relations:
        for split in ("train", "dev"):
            pairs = view.pairs(relation, split)
            assert not later & {(term[h], term[t]) for h, t in zip(pairs.head, pairs.tail, strict=True)}
    head, tail = (np.array([graph.vocabulary.find(pair[end]) for pair in sorted(later)]) for end in (0, 1))
    assert not view.is_taken(head, tail).any()  # nor does a negative drawn while fitting tell which pairs they are


def test_a_split_that_leaks_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, facts, _ = dated_world()

    def at_random(chosen: LocatedFacts, *_: object, **__: object) -> np.ndarray:
        return np.random.default_rng(0).integers(3, size=len(chosen)).astype(np.int8)

    monkeypatch.setattr("cogstage.knowledge.build.split_facts", at_random)
    data = build_dataset(graph, facts, tmp_path / "data", split="time", before=BEFORE)
    warnings = "; ".join(data.leakage["warnings"])
    assert "later facts in train or dev: the split by time leaks" in warnings
    assert "earlier facts in test: the split by time leaks" in warnings


def test_negatives_of_the_later_facts_have_their_heads_and_tails(tmp_path: Path) -> None:
    graph, facts, _ = dated_world()
    data = build_dataset(graph, facts, tmp_path / "data", split="time", before=BEFORE)
    known = set(zip(facts.head, facts.tail, strict=True))
    for relation in data.relations:
        pairs = data.pairs(relation, "test")
        for end in (pairs.head, pairs.tail):
            positive, negative = (Counter(end[pairs.label == label].tolist()) for label in (1, 0))
            assert not negative - positive
        uniform = pq.read_table(tmp_path / f"data/negatives/uniform/{relation}/test.parquet").to_pylist()
        own = triples_of(tmp_path / "data/facts_test.parquet")
        assert {row["head"] for row in uniform} <= {h for h, r, _ in own if r == relation}
        assert not {(row["head"], row["tail"]) for row in uniform} & known
        apart = never_counted(graph, pairs)
        counted = np.array([graph.matrix[h, t] for h, t in zip(pairs.head, pairs.tail, strict=True)])
        np.testing.assert_array_equal(apart, counted == 0)
        assert data.leakage["time"]["test pairs never counted together"][relation] == {
            "facts": int(apart[pairs.label == 1].sum()),
            "negatives": int(apart[pairs.label == 0].sum()),
        }


def test_a_graph_that_knows_the_future_is_refused_and_an_undated_one_warned_of(tmp_path: Path) -> None:
    graph, facts, _ = dated_world(until="1992-01-01")
    with pytest.raises(UsageError, match=r"before=1992: the graph counts text until 1992-01-01; .* until=1991"):
        build_dataset(graph, facts, tmp_path / "data", split="time", before=BEFORE)
    graph, facts, _ = dated_world(until=None)
    data = build_dataset(graph, facts, tmp_path / "data", split="time", before=BEFORE)
    assert any("until=1991" in line for line in data.leakage["warnings"])
    with pytest.raises(UsageError, match="requires `before`"):
        build_dataset(graph, facts, tmp_path / "data", split="time")
    with pytest.raises(UsageError, match="requires `before`"):
        build_dataset(graph, facts, tmp_path / "data", before=1992)
    with pytest.raises(CogstageError, match="before=1900 leaves no facts to train on"):
        build_dataset(graph, facts, tmp_path / "data", split="time", before=1900)


def test_years_are_read_from_tables_and_kept(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text(
        "head\trelation\ttail\tdate\n"
        "a\tcauses\tb\t2001-05-02\na\tcauses\tb\t1991\na\tcauses\tc\t\na\tcauses\td\t1994.0\n"
    )
    facts = facts_from_table(tmp_path / "facts.tsv")
    assert dict(zip(facts.tail, facts.year, strict=True)) == {"b": 1991, "c": None, "d": 1994}
    facts.save(tmp_path / "facts")
    again = Facts.load(tmp_path / "facts")
    assert again.year == facts.year
    assert again.hash == facts.hash
    (tmp_path / "facts.tsv").write_text("head\trelation\ttail\tdate\na\tcauses\tb\tlast May\n")
    with pytest.raises(CogstageError, match="column date: last May is not a date"):
        facts_from_table(tmp_path / "facts.tsv")


@pytest.mark.parametrize(
    ("text", "year"), [("1991", 1991), (1991, 1991), ("19910502", 1991), ("1991-05", 1991), ("91", None), ("", None)]
)
def test_year_of(text: object, year: int | None) -> None:
    assert year_of(text) == year


def test_held_out_pairs_and_their_neighbours_are_in_no_split(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """h1 is judged on liver failure, which is t1, t2 and t3: no fact of h1 with any of them may be learned."""
    graph, facts, _ = dated_world()
    (tmp_path / "reference.tsv").write_text(
        "drug\toutcome\tlabel\nH1\tliver failure\t1\nh2\tliver failure\t0\nh9\tT50\t1\n"
    )
    (tmp_path / "outcomes.tsv").write_text(
        "outcome\tconcept\nliver failure\tt1\nliver failure\tt2\nliver failure\tt3\nliver failure\tunknown\n"
    )
    held = {(h, t) for h in ("h1", "h2") for t in ("t1", "t2", "t3")} | {("h9", "t50")}
    graph.save(tmp_path / "graph")
    facts.save(tmp_path / "facts")
    arguments = ["--hold-out", tmp_path / "reference.tsv", "--outcomes", tmp_path / "outcomes.tsv"]
    code, _, said = cogstage(
        capsys,
        *("dataset", "build", "--graph", tmp_path / "graph", "--facts", tmp_path / "facts"),
        *("--out", tmp_path / "data", *arguments),
    )
    assert code == 0
    assert "held out: 7 pairs of concepts" in said
    everywhere = set()
    for path in (tmp_path / "data").rglob("*.parquet"):
        everywhere |= {(row["head"], row["tail"]) for row in pq.read_table(path).to_pylist()}
    assert not everywhere & held
    stated = [(h, r, t) for h, r, t in zip(facts.head, facts.relation, facts.tail, strict=True) if (h, t) in held]
    assert stated
    hold_out = HoldOut.read(tmp_path / "reference.tsv", tmp_path / "outcomes.tsv")
    data = build_dataset(graph, facts, tmp_path / "again", hold_out=hold_out)
    report = data.manifest["held out"]
    assert report["facts taken out"] == dict(Counter(r for _, r, _ in stated))
    assert report["names not in the graph"] == ["unknown"]
    assert report["pairs of concepts in the graph"] == 7


def test_tails_of_one_outcome_are_neighbours_without_a_table_too(tmp_path: Path) -> None:
    (tmp_path / "r.tsv").write_text("head\ttail\toutcome\tlabel\na\tt1\tx\t1\nb\tt2\tx\t0\nc\tt3\t\t1\n")
    assert set(HoldOut.read(tmp_path / "r.tsv").pairs) == {
        ("a", "t1"),
        ("a", "t2"),
        ("b", "t1"),
        ("b", "t2"),
        ("c", "t3"),
    }


@pytest.mark.parametrize(
    ("made_with", "said"),
    [
        ({}, "none"),
        ({"suppress_below": 11}, "counts below 11 suppressed"),
        ({"private": {"epsilon": 1.0, "delta": 1e-6, "pairs": 8}}, "differentially private (ε=1, δ=1e-06, m=8)"),
    ],
)
def test_what_was_done_to_the_counts_travels_with_the_data_set(
    tmp_path: Path, made_with: dict[str, object], said: str
) -> None:
    graph, facts, _ = dated_world()
    graph = Graph(graph.vocabulary, graph.source, graph.target, graph.count, made_with)
    data = build_dataset(graph, facts, tmp_path / "data")
    assert data.manifest["graph"]["privacy"] == said
