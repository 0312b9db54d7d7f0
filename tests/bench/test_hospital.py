"""The made-up hospital: repeatable, of the sizes that were asked for, and its notes tell its rules and nothing else."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from benchmarks.hospital import HARD, PAPER, RULES, TABLE_1, Hospital, Plan, write_hospital
from benchmarks.planted_truths import hospital_data, rules_auroc, true_reasons

from cogstage.estimator import CogStage
from cogstage.evaluation.methods import find
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions
from cogstage.knowledge.dataset import Dataset
from cogstage.statistics import auroc

PLAN = Plan(terms=400, groups=8, patients=100, notes=5, table=0.01, patients_a_file=30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hospital")
    assert write_hospital(PLAN, out)["notes"] == 500
    return out


def notes_of(folder: Path) -> list[dict[str, str]]:
    lines = []
    for path in sorted((folder / "notes").iterdir()):
        with gzip.open(path, "rt", encoding="utf-8") as handle:
            lines += [json.loads(line) for line in handle]
    return lines


def test_the_same_plan_gives_the_same_notes(folder: Path, tmp_path: Path) -> None:
    write_hospital(PLAN, tmp_path / "again")
    write_hospital(replace(PLAN, seed=1), tmp_path / "other")
    assert notes_of(tmp_path / "again") == notes_of(folder) != notes_of(tmp_path / "other")
    for name in ("lexicon.tsv", "facts.tsv"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_the_graph_holds_what_the_notes_say_and_not_what_they_deny(folder: Path, tmp_path: Path) -> None:
    build_graph(folder / "notes", tmp_path / "graph", folder / "lexicon.tsv", BuildOptions(unit="document"))
    graph = Graph.load(tmp_path / "graph")
    assert graph.n_nodes == PLAN.terms  # not one term is missed
    concept = dict(zip(Hospital(PLAN).name, Hospital(PLAN).concept, strict=True))
    pairs: dict[tuple[str, str], int] = {}
    for note in notes_of(folder):
        said, _, denied = note["text"].partition(" Denies ")
        assert denied.count("Mother had ") == 1
        terms = sorted({concept[word] for word in re.findall(r"\w+", said) if word in concept})
        for pair in combinations(terms, 2):
            pairs[pair] = pairs.get(pair, 0) + 1
    names = graph.vocabulary.term
    found = zip(graph.source.tolist(), graph.target.tolist(), graph.count.tolist(), strict=True)
    assert {(names[a], names[b]): count for a, b, count in found} == pairs


def test_the_paper_has_its_table_1() -> None:
    hospital = Hospital(PAPER)
    assert len(set(hospital.name)) == PAPER.terms == 52_804
    facts = hospital.facts()
    assert {relation: len(np.unique(rows, axis=0)) for relation, rows in facts.items()} == TABLE_1
    for relation, rows in facts.items():
        assert 0.92 < hospital.follows(relation, rows[:, 0], rows[:, 1]).mean() < 0.97  # and a few exceptions
        for end, kind in enumerate(RULES[relation][:2]):
            assert {hospital.kind[term] for term in rows[:, end]} == {kind}


def test_rules_join_the_right_kinds_and_never_overlap() -> None:
    hospital = Hospital(PLAN)
    head, tail = (ids.ravel() for ids in np.meshgrid(np.arange(PLAN.terms), np.arange(PLAN.terms), indexing="ij"))
    held = np.stack([hospital.follows(relation, head, tail) for relation in RULES])
    assert held.sum(0).max() == 1
    for relation, holds in zip(RULES, held, strict=True):
        head_kind, tail_kind, offsets = RULES[relation]
        assert {hospital.kind[term] for term in head[holds]} == {head_kind}
        assert {hospital.kind[term] for term in tail[holds]} == {tail_kind}
        possible = hospital.kind.count(head_kind) * hospital.kind.count(tail_kind)
        assert holds.sum() / possible == pytest.approx(len(offsets) / PLAN.groups, rel=0.1)


def test_notes_tell_the_rules() -> None:
    hospital = Hospital(PLAN)
    mentions = hospital.mentions(0, PLAN.patients, np.random.default_rng(0))
    together = {"may_treat": ("Takes", "Problems:"), "contraindicates": ("Avoid", "Problems:")}
    together |= {"symptom_of": ("Reports", "Problems:"), "causes": ("Takes", "Side effects:")}
    for relation, (heads, tails) in together.items():
        head, tail = np.broadcast_arrays(mentions[heads][:, :, None], mentions[tails][:, None, :])
        share = hospital.follows(relation, head.ravel(), tail.ravel()).mean()
        assert share > 2 * len(RULES[relation][2]) / PLAN.groups, relation  # more than twice what chance gives


SMALL_HARD = replace(HARD, terms=600, groups=8, patients=1_200, least=500, table=0.0)


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> tuple[Hospital, Graph, Dataset]:
    return Hospital(SMALL_HARD), *hospital_data(tmp_path_factory.mktemp("hard"), SMALL_HARD)


def test_a_hard_hospital_is_told_by_its_rules_and_not_by_counts_or_popularity(
    hard: tuple[Hospital, Graph, Dataset],
) -> None:
    hospital, graph, data = hard
    rules = rules_auroc(hospital, graph, data)
    assert np.mean(list(rules.values())) > 0.85  # the fewer groups there are, the more negatives follow a rule
    found: dict[str, list[float]] = {"ppmi": [], "degree": []}
    for name, values in found.items():
        for relation in data.relations:
            pairs = data.pairs(relation, "test")
            fitted = find(name).fit(graph, data.for_fitting(), relation, 0)
            values.append(auroc(pairs.label, fitted.scores(pairs.head, pairs.tail)) or 0.0)
    assert np.mean(found["ppmi"]) < 0.65
    assert np.mean(found["degree"]) == pytest.approx(0.5, abs=0.03)


def test_notes_of_a_hard_hospital_keep_kinds_apart_and_confound() -> None:
    hospital = Hospital(SMALL_HARD)
    kind = dict(zip(hospital.name, hospital.kind, strict=True))
    together = alone = 0
    for note in hospital.notes(0, SMALL_HARD.patients):
        named = re.search(r"(?:Problems:|Takes|Reports) (.*?)\.", note["text"])
        kinds = {kind[word] for word in re.findall(r"\w+", note["text"].partition("Also noted")[0]) if word in kind}
        assert named
        together, alone = together + (len(kinds) > 1), alone + (len(kinds) == 1)
    assert together / (together + alone) == pytest.approx(SMALL_HARD.mixed, abs=0.02)


@pytest.mark.slow
def test_reasons_are_true_by_the_rules_of_a_hard_hospital(hard: tuple[Hospital, Graph, Dataset]) -> None:
    hospital, graph, data = hard
    model = CogStage("all", dimension=32, tower=32, associations=12, folds=2).fit(graph, data)
    found = true_reasons(hospital, model, data, data.relations)
    assert found["positive predictions"] > 100
    assert found["true by the rules"] >= 0.9
    pairs = data.pairs("may_treat", "dev")
    predictions = model.predict_batch(pairs.head, pairs.tail, "may_treat")
    reason = next(reason for one in predictions for reason in one.reasons if reason.relation in RULES)
    head, tail = (np.array([int(end.key[1:])]) for end in (reason.head, reason.tail))
    assert hospital.holds(*reason.triple) == hospital.follows(reason.relation, head, tail)[0]
    assert hospital.holds(reason.tail.key, f"{reason.relation}_inverse", reason.head.key) == hospital.holds(
        *reason.triple
    )
