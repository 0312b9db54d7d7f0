"""Data sets: properties that hold for any facts on any graph, checked on the files a build writes."""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from knowledge_files import graph_of

from cogstage.artefact import write_meta
from cogstage.choices import NegativeKind
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.dataset import SPLITS, Dataset
from cogstage.knowledge.facts import Facts

MODES = list(get_args(NegativeKind))
SLOW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def facts_of(triples: set[tuple[str, str, str]]) -> Facts:
    return Facts.from_statements((h, r, t, "test") for h, r, t in triples)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Graph, Facts]:
    """A graph of terms, several to a concept, and facts between concepts, some of them unknown to the graph."""
    n = draw(st.integers(4, 12))
    concepts = [f"c{i}" for i in range(n)]
    nodes = [c for c in concepts for _ in range(draw(st.integers(1, 2)))]
    graph = graph_of(nodes, draw(st.integers(0, 9)), terms=[f"t{i}" for i in range(len(nodes))])
    ends = st.sampled_from([*concepts, "elsewhere"])
    triple = st.tuples(ends, st.sampled_from(["may_treat", "causes", "other"]), ends)
    facts = facts_of(draw(st.sets(triple, min_size=5, max_size=60)))
    return graph, facts


def rows(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


@given(worlds(), st.sampled_from(MODES), st.sampled_from(["random", "cold-head", "cold-tail"]), st.integers(0, 99))
@SLOW
def test_what_holds_for_every_data_set(world: tuple[Graph, Facts], mode: str, split: str, seed: int) -> None:
    graph, facts = world
    concept = dict(zip(graph.vocabulary.term, graph.vocabulary.concept, strict=True))
    stated = set(zip(facts.head, facts.relation, facts.tail, strict=True))
    placed = {(h, r, t) for h, r, t in stated if h in graph.vocabulary.concept and t in graph.vocabulary.concept}
    known = {frozenset((h, t)) for h, _, t in placed}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "data"
        try:
            data = build_dataset(graph, facts, out, negatives=mode, split=split, seed=seed, minimum=1)
        except CogstageError:
            assert not placed
            assert not out.exists()
            return
        sides: dict[frozenset[str], set[str]] = {}  # unordered pair of concepts -> the splits it is seen in
        seen_facts = set()
        ends: dict[tuple[str, str], set[str]] = {}
        for name in SPLITS:
            for row in rows(out / f"facts_{name}.parquet"):
                h, t = concept[row["head"]], concept[row["tail"]]
                assert (h, row["relation"], t) in placed
                assert graph.vocabulary.term[row["head_id"]] == row["head"]
                assert graph.vocabulary.term[row["tail_id"]] == row["tail"]
                seen_facts.add((row["head"], row["relation"], row["tail"]))
                sides.setdefault(frozenset((h, t)), set()).add(name)
                ends.setdefault((name, "head"), set()).add(h)
                ends.setdefault((name, "tail"), set()).add(t)
        assert all(len(found) == 1 for found in sides.values())
        expanded = {
            (a, r, b) for h, r, t in placed for a in concept for b in concept if concept[a] == h and concept[b] == t
        }
        if split == "random":
            assert seen_facts == expanded
        else:
            assert seen_facts <= expanded
            end = split.removeprefix("cold-")
            for name in ("dev", "test"):
                assert not ends.get((name, end), set()) & ends.get(("train", end), set())
        check_negatives(out, data, concept, known, sides, seen_facts, graph, mode)


def check_negatives(
    out: Path,
    data: Dataset,
    concept: dict[str, str],
    known: set[frozenset[str]],
    sides: dict[frozenset[str], set[str]],
    facts: set[tuple[str, str, str]],
    graph: Graph,
    chosen: str,
) -> None:
    edges = {
        frozenset((graph.vocabulary.term[a], graph.vocabulary.term[b]))
        for a, b in zip(graph.source.tolist(), graph.target.tolist(), strict=True)
    }
    for mode in MODES:
        where = {pair: set(found) for pair, found in sides.items()}
        not_co_occurring = 0
        for relation in data.relations:
            heads = {h for h, r, _ in facts if r == relation}
            tails = {t for _, r, t in facts if r == relation}
            for name in SPLITS:
                negatives = rows(out / "negatives" / mode / relation / f"{name}.parquet")
                pairs = [(row["head"], row["tail"]) for row in negatives]
                assert len(set(pairs)) == len(pairs)
                for h, t in pairs:
                    pair = frozenset((concept[h], concept[t]))
                    assert len(pair) == 2
                    assert pair not in known
                    assert h in heads
                    assert t in tails
                    where.setdefault(pair, set()).add(name)
                    not_co_occurring += frozenset((h, t)) not in edges
                positive = sum(r["relation"] == relation for r in rows(out / f"facts_{name}.parquet"))
                short = data.manifest["negatives wanting"][mode].get(relation, {}).get(name, 0)
                assert len(pairs) + short == positive
                if mode == chosen:
                    labelled = rows(out / "pairs" / relation / f"{name}.parquet")
                    assert sorted((r["head"], r["tail"]) for r in labelled if r["label"] == 0) == sorted(pairs)
                    assert sum(r["label"] for r in labelled) == positive
        assert all(len(found) == 1 for found in where.values())
        if mode == "hard":
            said = data.manifest["hard negatives that do not co-occur"]
            assert not_co_occurring == sum(sum(by_split.values()) for by_split in said.values())


def popular_world(seed: int = 0, heads: int = 60, tails: int = 80, facts: int = 1200) -> tuple[Graph, Facts]:
    """Facts whose ends are drawn by a steep popularity, as in real knowledge bases."""
    rng = np.random.default_rng(seed)
    weight_head, weight_tail = (1 / np.arange(1, n + 1) for n in (heads, tails))
    triples: set[tuple[str, str, str]] = set()
    while len(triples) < facts:
        h = rng.choice(heads, p=weight_head / weight_head.sum())
        t = rng.choice(tails, p=weight_tail / weight_tail.sum())
        triples.add((f"h{h}", "may_treat" if rng.random() < 0.7 else "causes", f"t{t}"))
    graph = graph_of([*(f"h{i}" for i in range(heads)), *(f"t{i}" for i in range(tails))], seed)
    return graph, facts_of(triples)


def test_the_same_input_and_seed_give_the_same_bytes(tmp_path: Path) -> None:
    graph, facts = popular_world()
    shuffled = Facts.from_statements(
        reversed(list(zip(facts.head, facts.relation, facts.tail, facts.source, strict=True)))
    )
    build_dataset(graph, facts, tmp_path / "one", seed=3)
    build_dataset(graph, shuffled, tmp_path / "two", seed=3)
    build_dataset(graph, facts, tmp_path / "other", seed=4)
    names = sorted(p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*") if p.is_file())
    assert len(names) > 20
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    assert (tmp_path / "one/facts_test.parquet").read_bytes() != (tmp_path / "other/facts_test.parquet").read_bytes()


@pytest.mark.parametrize("split", ["random", "cold-head", "cold-tail"])
def test_shares_are_kept_in_every_relation(tmp_path: Path, split: str) -> None:
    graph, facts = popular_world()
    data = build_dataset(graph, facts, tmp_path / "data", split=split)
    for relation in data.relations:
        counts = data.manifest["counts"][relation]
        total = sum(counts[name] for name in SPLITS)
        slack = 0.01 if split == "random" else 0.08
        for name, share in zip(SPLITS, (0.70, 0.15, 0.15), strict=True):
            assert counts[name] / total == pytest.approx(share, abs=slack)


def test_degree_negatives_keep_the_count_of_every_head_and_tail(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    triples = {(f"h{rng.integers(50)}", "causes", f"t{rng.integers(200)}") for _ in range(900)}
    graph = graph_of([*(f"h{i}" for i in range(50)), *(f"t{i}" for i in range(200))])
    data = build_dataset(graph, facts_of(triples), tmp_path / "data", negatives="degree")
    for name in SPLITS:
        pairs = data.pairs("causes", name)
        for end in (pairs.head, pairs.tail):
            assert sorted(end[pairs.label == 1].tolist()) == sorted(end[pairs.label == 0].tolist())


def test_relations_with_too_few_facts_are_left_out_but_stay_known(tmp_path: Path) -> None:
    graph, facts = popular_world(facts=600)
    rare = [(h, "rare", t, "") for h, t in [("h1", "t70"), ("h2", "t71"), ("h50", "t1")]]
    facts = Facts.from_statements([*zip(facts.head, facts.relation, facts.tail, facts.source, strict=True), *rare])
    data = build_dataset(graph, facts, tmp_path / "data")
    assert data.relations == ("may_treat", "causes")
    assert data.manifest["left out"]["relations with too few facts"] == {"rare": 3}
    rare_pairs = {frozenset((h, t)) for h, _, t, _ in rare}
    for path in (tmp_path / "data/negatives").rglob("*.parquet"):
        assert not rare_pairs & {frozenset((row["head"], row["tail"])) for row in rows(path)}
    with pytest.raises(CogstageError, match=r"no relation has 5,000 facts .*may_treat \d+, causes \d+, rare 3"):
        build_dataset(graph, facts, tmp_path / "none", minimum=5000)
    assert not (tmp_path / "none").exists()


def test_the_cap_holds_and_capped_facts_are_never_negatives(tmp_path: Path) -> None:
    graph, facts = popular_world()
    data = build_dataset(graph, facts, tmp_path / "data", cap=150)
    for relation in data.relations:
        assert sum(data.manifest["counts"][relation][name] for name in SPLITS) == 150
    assert data.manifest["left out"]["facts above the cap"]["may_treat"] > 0
    stated = {frozenset(pair) for pair in zip(facts.head, facts.tail, strict=True)}
    term = graph.vocabulary.term
    for relation in data.relations:
        for name in SPLITS:
            pairs = data.pairs(relation, name)
            for h, t, label in zip(pairs.head, pairs.tail, pairs.label, strict=True):
                assert (frozenset((term[h], term[t])) in stated) == bool(label)


def test_facts_that_fit_the_graph_nowhere_are_explained(tmp_path: Path) -> None:
    graph = graph_of(["C1", "C2", "C3"])
    with pytest.raises(CogstageError, match=r"none of the 1 facts .*aspirin, pain .*C1, C2, C3 .*with this graph"):
        build_dataset(graph, facts_of({("aspirin", "may_treat", "pain")}), tmp_path / "data")
    with pytest.raises(CogstageError, match="no facts"):
        build_dataset(graph, facts_of(set()), tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


def test_a_relation_where_nearly_every_pair_is_a_fact(tmp_path: Path) -> None:
    triples = {(f"h{i}", "causes", f"t{j}") for i in range(10) for j in range(12) if (i, j) not in {(0, 0), (3, 4)}}
    graph = graph_of([*(f"h{i}" for i in range(10)), *(f"t{i}" for i in range(12))])
    data = build_dataset(graph, facts_of(triples), tmp_path / "data")
    negatives = sum(data.manifest["counts"]["causes"][f"{name} negatives"] for name in SPLITS)
    assert negatives == 2
    assert sum(data.manifest["negatives wanting"]["degree"]["causes"].values()) == 118 - 2


def test_wrong_options_are_said_before_anything_is_written(tmp_path: Path) -> None:
    graph, facts = popular_world(facts=200)
    for options, said in [
        ({"negatives": "random"}, "`negatives` must be one of uniform, degree, hard, not random"),
        ({"split": "warm"}, "`split` must be one of .* not warm"),
        ({"minimum": 0}, "at least 1"),
        ({"cap": 50}, "must be at least `minimum`"),
        ({"seed": -1}, "`seed` must be at least 0"),
        ({"relations": ("cures",)}, "no facts of cures; the relations are may_treat, causes"),
    ]:
        with pytest.raises(UsageError, match=said):
            build_dataset(graph, facts, tmp_path / "data", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_the_manifest_has_the_hash_of_every_file(tmp_path: Path) -> None:
    graph, facts = popular_world(facts=300)
    data = build_dataset(graph, facts, tmp_path / "data")
    written = {str(p.relative_to(tmp_path / "data")): p for p in (tmp_path / "data").rglob("*") if p.is_file()}
    assert set(data.manifest["files"]) == set(written) - {"manifest.json", "meta.json", "REPORT.md"}
    for name, digest in data.manifest["files"].items():
        assert hashlib.sha256(written[name].read_bytes()).hexdigest() == digest


def test_a_build_makes_no_matrix_of_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The matrix and its PPMI take ten times the edges' own memory."""
    graph, facts = popular_world(facts=300)

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a matrix was made")

    monkeypatch.setattr(Graph, "matrix", property(forbidden))
    monkeypatch.setattr(Graph, "ppmi", forbidden)
    assert len(build_dataset(graph, facts, tmp_path / "data").facts("train"))


@pytest.mark.parametrize("name", ["../../elsewhere", "..", "a/b", ""])
def test_a_relation_cannot_name_a_folder_outside(tmp_path: Path, name: str) -> None:
    graph, facts = popular_world(facts=300)
    hostile = Facts.from_statements((h, name, t, "") for h, t in zip(facts.head, facts.tail, strict=True))
    with pytest.raises(CogstageError, match="is not a valid file name"):
        build_dataset(graph, hostile, tmp_path / "deep/down/data")
    data = build_dataset(graph, facts, tmp_path / "data")
    manifest = {**data.manifest, "relations": [name]}
    (tmp_path / "data/manifest.json").write_text(json.dumps(manifest))
    write_meta(tmp_path / "data", "dataset", {})  # whoever made the folder also made its hashes
    with pytest.raises(CogstageError, match="is not a valid file name"):
        Dataset.load(tmp_path / "data")


def test_the_build_warns_of_the_negatives_that_were_chosen(tmp_path: Path) -> None:
    """Those about other kinds of negatives are in the report alone."""
    graph, facts = popular_world(facts=1500)
    for chosen in get_args(NegativeKind):
        leakage = build_dataset(graph, facts, tmp_path / chosen, negatives=chosen).leakage
        warned = [line for line in leakage["warnings"] if "negatives:" in line]
        assert all(f", {chosen} negatives:" in line for line in warned)
        assert not any(f", {chosen} negatives:" in line for line in leakage["warnings about other negatives"])
        assert len(warned) + len(leakage["warnings about other negatives"]) == 6  # three kinds, two relations
        text = (tmp_path / chosen / "leakage.txt").read_text()
        assert all(line in text for line in (*warned, *leakage["warnings about other negatives"]))
