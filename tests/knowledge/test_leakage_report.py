"""The leakage report finds what was planted, and measures what it says it measures."""

import json
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from knowledge_files import graph_of
from sklearn.metrics import roc_auc_score
from test_dataset_build import facts_of, popular_world
from typer.testing import CliRunner

from cogstage.choices import NegativeKind
from cogstage.cli.main import app
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.dataset import SPLITS
from cogstage.knowledge.leakage import BY_SPLIT, FLOORS, stems
from cogstage.statistics import auroc


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1))
def test_auroc_is_that_of_scikit_learn(rows: list[tuple[bool, int]]) -> None:
    label, score = np.array([r[0] for r in rows], int), np.array([r[1] for r in rows], float)
    if len(set(label.tolist())) < 2:
        assert auroc(label, score) is None
    else:
        assert auroc(label, score) == pytest.approx(roc_auc_score(label, score))


def test_popularity_answers_under_uniform_negatives_and_not_under_degree(tmp_path: Path) -> None:
    graph, facts = popular_world(heads=300, tails=400, facts=3000)
    floors = build_dataset(graph, facts, tmp_path / "data").leakage[FLOORS]
    assert floors["uniform"]["may_treat"]["degree"] > 0.75
    assert floors["degree"]["may_treat"]["degree"] == pytest.approx(0.5, abs=0.06)


def test_the_floors_are_those_of_the_files(tmp_path: Path) -> None:
    graph, facts = popular_world(heads=120, tails=150)
    data = build_dataset(graph, facts, tmp_path / "data", negatives="uniform")
    index = data.relations.index("causes")
    train = data.facts("train")
    of_relation = train.relation == index
    pairs = data.pairs("causes", "test")
    degree = [
        np.log1p(np.sum(train.head[of_relation] == h)) + np.log1p(np.sum(train.tail[of_relation] == t))
        for h, t in zip(pairs.head, pairs.tail, strict=True)
    ]
    association = graph.ppmi()[pairs.head, pairs.tail].A1
    floors = data.leakage[FLOORS]["uniform"]["causes"]
    assert floors["degree"] == pytest.approx(roc_auc_score(pairs.label, degree), abs=1e-4)
    assert floors["ppmi"] == pytest.approx(roc_auc_score(pairs.label, association), abs=1e-4)
    everything = [data.pairs("causes", split) for split in SPLITS]
    head = np.concatenate([p.head[p.label == 1] for p in everything])
    tail = np.concatenate([p.tail[p.label == 1] for p in everything])
    share = np.mean([graph.matrix[h, t] > 0 for h, t in zip(head, tail, strict=True)])
    assert data.leakage["share of pairs that co-occur"]["causes"]["facts"] == pytest.approx(share, abs=1e-4)


def test_building_leaves_the_graph_as_it_was(tmp_path: Path) -> None:
    graph, facts = popular_world(facts=400)
    before = graph.matrix.copy()
    build_dataset(graph, facts, tmp_path / "data")
    assert (graph.matrix != before).nnz == 0
    assert graph.matrix.nnz == before.nnz == 2 * graph.n_edges


def test_inverse_and_duplicate_relations_are_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    base = {(f"c{a}", f"c{b}") for a, b in rng.integers(0, 60, (800, 2)) if a < b}
    half = set(sorted(base)[: len(base) // 2])
    triples = {(h, "causes", t) for h, t in base}
    triples |= {(t, "symptom_of", h) for h, t in base}
    triples |= {(h, "leads_to", t) for h, t in half}
    data = build_dataset(graph_of([f"c{i}" for i in range(60)]), facts_of(triples), tmp_path / "data")
    overlap = {(row["relation"], row["other"]): row for row in data.leakage["overlap of relations"]}
    assert overlap["causes", "symptom_of"]["inverse jaccard"] == 1.0
    assert overlap["causes", "symptom_of"]["duplicate jaccard"] == 0.0
    assert overlap["causes", "leads_to"]["duplicate jaccard"] == pytest.approx(len(half) / len(base), abs=1e-4)
    several = data.leakage["pairs in several relations"]
    assert several["in several"] == len(base)
    assert several["combinations"] == {
        "causes + symptom_of": len(base) - len(half),
        "causes + symptom_of + leads_to": len(half),
    }
    assert any("inverse" in line and "causes and symptom_of" in line for line in data.leakage["warnings"])
    assert set(data.leakage["pairs of concepts across splits"].values()) == {0}
    train = data.facts("train")  # nobody learns a test fact from its inverse
    seen = set(zip(train.tail.tolist(), train.head.tolist(), strict=True))
    test = data.facts("test")
    assert not seen & set(zip(test.head.tolist(), test.tail.tolist(), strict=True))


def test_a_symmetric_relation_is_found(tmp_path: Path) -> None:
    pairs = [(f"c{a}", f"c{b}") for a in range(16) for b in range(a)]
    triples = {(h, "interacts", t) for h, t in pairs} | {(t, "interacts", h) for h, t in pairs}
    nodes = [*(f"c{i}" for i in range(16)), *(f"d{i}" for i in range(4))]
    data = build_dataset(graph_of(nodes), facts_of(triples), tmp_path / "data")
    assert data.leakage["overlap of relations"][0]["inverse jaccard"] == 1.0


def test_names_that_give_the_answer_away(tmp_path: Path) -> None:
    names = [f"{w} {kind}" for w in ("hepatitis", "influenza", "tetanus", "rabies") for kind in ("vaccine", "disease")]
    names += [f"filler{i:03} thing{i:03}" for i in range(80)]
    keys = tuple(f"k{i}" for i in range(len(names)))
    plain = graph_of(keys)
    graph = Graph(
        Vocabulary(keys, keys, tuple(names), plain.vocabulary.type, plain.vocabulary.count),
        plain.source,
        plain.target,
        plain.count,
    )
    triples = {(f"k{2 * i}", "may_prevent", f"k{2 * i + 1}") for i in range(4)}
    triples |= {(f"k{8 + i}", "may_prevent", f"k{48 + (7 * i) % 40}") for i in range(36)}
    data = build_dataset(graph, facts_of(triples), tmp_path / "data", minimum=10)
    row = data.leakage["names that share a word stem"]["may_prevent"]
    shared = [bool(stems(names[int(h[1:])]) & stems(names[int(t[1:])])) for h, _, t in triples]
    assert row["facts"] == pytest.approx(np.mean(shared), abs=1e-4)
    assert stems("Hepatitis-B, acute form") == {"hepat", "acute"}
    assert stems("Hépatite 12345 IgG") == {"hépat"}


def test_the_readable_report_says_what_the_json_says(tmp_path: Path) -> None:
    graph, facts = popular_world()
    data = build_dataset(graph, facts, tmp_path / "data")
    report = json.loads((tmp_path / "data/leakage.json").read_text())
    assert report == data.leakage
    text = (tmp_path / "data/leakage.txt").read_text()
    for warning in report["warnings"]:
        assert warning in text
    for mode in get_args(NegativeKind):
        assert f"{report[FLOORS][mode]['causes']['ppmi']:.3f}" in text
    assert "must be 0" in text
    assert "11.4%" in text


def printed_tables(text: str) -> dict[str, dict[str, dict[str, str]]]:
    """The tables of a text by the first cell of their header: row -> column -> cell."""
    tables: dict[str, dict[str, dict[str, str]]] = {}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not line or set(line) != {"-"}:
            continue
        corner, *columns = re.split(r"\s{2,}", lines[number - 1].strip())
        rows = tables.setdefault(" ".join([corner, *columns]), {})
        for row in lines[number + 1 :]:
            if not row.strip():
                break
            name, *cells = re.split(r"\s{2,}", row.strip())
            rows[name] = dict(zip(columns, cells, strict=False))  # a last cell may be empty
    return tables


def test_every_printed_table_shows_the_values_of_its_file_under_their_names(tmp_path: Path) -> None:
    graph, facts = popular_world()
    build_dataset(graph, facts, tmp_path / "data")
    shown = CliRunner().invoke(app, ["dataset", "info", str(tmp_path / "data")])
    assert shown.exit_code == 0
    tables = printed_tables(shown.stdout)
    report = json.loads((tmp_path / "data/leakage.json").read_text())
    manifest = json.loads((tmp_path / "data/manifest.json").read_text())
    modes = sorted(get_args(NegativeKind))

    def cell(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else f"{value:,}"

    for mode in modes:
        for relation, row in report[BY_SPLIT][mode].items():
            assert tables[f"{mode} train dev test"][relation] == {split: cell(row[split]) for split in SPLITS}
    for score in ("degree", "ppmi"):
        table = next(rows for header, rows in tables.items() if header.split()[0] == score and "test" not in header)
        for relation in manifest["relations"]:
            assert table[relation] == {mode: cell(report[FLOORS][mode][relation][score]) for mode in modes}
    shares = next(rows for header, rows in tables.items() if header == " ".join(["relation", "facts", *modes]))
    for relation, row in report["share of pairs that co-occur"].items():
        assert shares[relation] == {key: cell(row[key]) for key in ("facts", *modes)}
    stems_table = next(rows for header, rows in tables.items() if "most frequent stems" in header)
    for relation, row in report["names that share a word stem"].items():
        assert {key: stems_table[relation][key] for key in ("facts", *modes)} == {
            key: cell(row[key]) for key in ("facts", *modes)
        }
    for relation, row in manifest["counts"].items():
        expected = {split.capitalize(): cell(row[split]) for split in SPLITS}
        assert tables["relation Train Dev Test"][relation.replace("_", " ")] == expected
    named = {"facts": "facts", "both ends": "both ends in the graph", "one end": "one end in the graph"}
    for relation, row in manifest["coverage"]["relations"].items():
        printed = tables["relation facts both ends one end none"][relation]
        assert printed == {**{k: cell(row[v]) for k, v in named.items()}, "none": cell(row["no end in the graph"])}
