"""Rolled-up counts against a count by hand; a graph that exists is rolled up exactly or not at all."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cogstage.cli.main import app
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions
from cogstage.graph.roll_up import read_roll_up, roll_up_graph

CODES = ["a1", "a2", "b1", "b2", "c"]
documents = st.lists(st.sets(st.sampled_from(CODES), min_size=1, max_size=3), min_size=1, max_size=12)
maps = st.dictionaries(st.sampled_from(CODES), st.sets(st.sampled_from(["A", "B", "c"]), min_size=1, max_size=2))


def write_documents(path: Path, some: list[set[str]]) -> Path:
    lines = [json.dumps({"doc_id": str(n), "codes": sorted(codes)}) for n, codes in enumerate(some)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def write_map(path: Path, parents: dict[str, set[str]]) -> Path:
    rows = [f"{code}\t{parent}" for code, found in sorted(parents.items()) for parent in sorted(found)]
    path.write_text("\n".join(["code\tparent", *rows, "unknown\tX"]) + "\n", encoding="utf-8")
    return path


def by_hand(some: list[set[str]], parents: dict[str, set[str]]) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    nodes: Counter[str] = Counter()
    edges: Counter[tuple[str, str]] = Counter()
    for codes in some:
        meant = set().union(*(parents.get(code, {code}) for code in codes))
        nodes.update(meant)
        edges.update(combinations(sorted(meant), 2))
    return dict(nodes), dict(edges)


def content(graph: Graph) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    term = graph.vocabulary.term
    nodes = dict(zip(term, graph.vocabulary.count.tolist(), strict=True))
    triples = zip(graph.source.tolist(), graph.target.tolist(), graph.count.tolist(), strict=True)
    return nodes, {(term[source], term[target]): count for source, target, count in triples}


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some=documents, parents=maps)
def test_rolled_up_counts_equal_a_count_by_hand(
    tmp_path: Path, some: list[set[str]], parents: dict[str, set[str]]
) -> None:
    expected = by_hand(some, parents)
    table = write_map(tmp_path / "map.tsv", parents)
    path = write_documents(tmp_path / "records.jsonl", some)
    if expected[1]:
        build_graph(path, tmp_path / "built", options=BuildOptions(unit="document"), roll_up=table)
        assert content(Graph.load(tmp_path / "built")) == expected
    if not by_hand(some, {})[1]:
        return
    build_graph(path, tmp_path / "plain", options=BuildOptions(unit="document"))
    plain = Graph.load(tmp_path / "plain")
    roll_up = read_roll_up(table, plain.vocabulary.term)
    shared = any(  # two codes of one concept in one document: sums would count it twice
        parents.get(one, {one}) & parents.get(other, {other})
        for codes in some
        for one, other in combinations(sorted(codes), 2)
    )
    if shared:
        with pytest.raises(CogstageError, match="would count these units twice"):
            roll_up_graph(plain, roll_up)
    else:
        rolled = roll_up_graph(plain, roll_up)
        rolled.check()
        assert content(rolled) == expected


def test_graphs_whose_sums_are_not_exact_are_refused(tmp_path: Path) -> None:
    rows = [f"{p},2020-01-0{d},{code}" for p in range(3) for d, code in ((1, "a1"), (1, "c"), (2, "a2"), (2, "c"))]
    (tmp_path / "r.csv").write_text("patient_id,date,code\n" + "\n".join(rows) + "\n", encoding="utf-8")
    table = write_map(tmp_path / "map.tsv", {"a1": {"A"}, "a2": {"A"}})
    for options, reason in (
        (BuildOptions(per="patient"), "counts patients"),
        (BuildOptions(suppress_below=2), "suppress_below 2"),
        (BuildOptions(min_count=2), "min_count 2"),
        (BuildOptions(order=True), "order in time"),
    ):
        build_graph(tmp_path / "r.csv", tmp_path / "g", options=options)
        graph = Graph.load(tmp_path / "g")
        with pytest.raises(CogstageError, match=reason):
            roll_up_graph(graph, read_roll_up(table, graph.vocabulary.term))
        build_graph(tmp_path / "r.csv", tmp_path / "g", options=options, roll_up=table)
        assert content(Graph.load(tmp_path / "g"))[0]["A"] == (3 if options.per == "patient" else 6)


def omop(folder: Path) -> Path:
    """Three strengths of one drug, a combination, a disorder and a code that is not standard."""
    folder.mkdir()
    concepts = [
        "1125315,Acetaminophen,Drug,RxNorm,Ingredient",
        "1174888,Hydrocodone,Drug,RxNorm,Ingredient",
        "1,Acetaminophen 325 MG,Drug,RxNorm,Clinical Drug",
        "2,Acetaminophen 500 MG,Drug,RxNorm,Clinical Drug",
        "3,Acetaminophen / Hydrocodone,Drug,RxNorm,Clinical Drug",
        "21604303,PARACETAMOL GROUP,Drug,ATC,ATC 3rd",
        "201826,Type 2 diabetes,Condition,SNOMED,Clinical Finding",
        "201820,Diabetes,Condition,SNOMED,Clinical Finding",
        "44833365,Diabetes II (ICD9),Condition,ICD9CM,5-dig billing code",
    ]
    head = "concept_id,concept_name,domain_id,vocabulary_id,concept_class_id\n"
    (folder / "CONCEPT.csv").write_text(head + "\n".join(concepts) + "\n", encoding="utf-8")
    (folder / "CONCEPT_RELATIONSHIP.csv").write_text(
        "concept_id_1,concept_id_2,relationship_id,invalid_reason\n44833365,201826,Maps to,\n1,2,Has form,\n",
        encoding="utf-8",
    )
    above = ["1125315,1,2", "1125315,2,2", "1125315,3,2", "1174888,3,2", "21604303,1,3", "201820,201826,1"]
    (folder / "CONCEPT_ANCESTOR.csv").write_text(
        "ancestor_concept_id,descendant_concept_id,min_levels_of_separation\n" + "\n".join(above) + "\n",
        encoding="utf-8",
    )
    drugs = ["1,7,1,2020-01-01", "2,7,2,2020-01-01", "3,8,3,2020-01-01"]
    (folder / "DRUG_EXPOSURE.csv").write_text(
        "drug_exposure_id,person_id,drug_concept_id,drug_exposure_start_date\n" + "\n".join(drugs) + "\n",
        encoding="utf-8",
    )
    (folder / "CONDITION_OCCURRENCE.csv").write_text(
        "condition_occurrence_id,person_id,condition_concept_id,condition_start_date\n"
        "1,7,44833365,2020-01-01\n2,8,201826,2020-01-01\n",
        encoding="utf-8",
    )
    return folder


@pytest.mark.parametrize(
    ("level", "edges"),
    [
        ("ingredient", {("1125315", "201826"): 2, ("1174888", "201826"): 1, ("1125315", "1174888"): 1}),
        ("atc3", {("2", "21604303"): 1, ("2", "201826"): 1, ("201826", "21604303"): 1, ("201826", "3"): 1}),
        ("standard", {("1", "2"): 1, ("1", "201826"): 1, ("2", "201826"): 1, ("201826", "3"): 1}),
    ],
)
def test_levels_of_omop(tmp_path: Path, level: str, edges: dict[tuple[str, str], int]) -> None:
    build_graph(omop(tmp_path / "omop"), tmp_path / "g", roll_up=level)
    graph = Graph.load(tmp_path / "g")
    assert content(graph)[1] == edges
    assert graph.made_with["roll_up"] == level
    if level == "ingredient":
        assert graph.vocabulary.name[graph.vocabulary.index["1125315"]] == "Acetaminophen"
        assert graph.vocabulary.type[graph.vocabulary.index["1125315"]] == "drug"


def vocabulary(folder: Path, concepts: dict[int, tuple[str, str, str, str]], parents: dict[int, list[int]]) -> Path:
    """OMOP's vocabulary tables of concepts and their parents, CONCEPT_ANCESTOR closed over them."""
    rows = [f"{number},{','.join(fields)}" for number, fields in concepts.items()]
    head = "concept_id,concept_name,domain_id,vocabulary_id,concept_class_id"
    folder.mkdir()
    (folder / "CONCEPT.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    above = []
    for number in concepts:
        levels, step = {number: 0}, {number}
        for far in range(1, len(concepts)):
            step = {parent for child in step for parent in parents.get(child, [])}
            levels |= {parent: far for parent in step if parent not in levels}
        above += [f"{ancestor},{number},{far}" for ancestor, far in levels.items()]
    head = "ancestor_concept_id,descendant_concept_id,min_levels_of_separation"
    (folder / "CONCEPT_ANCESTOR.csv").write_text("\n".join([head, *above]) + "\n", encoding="utf-8")
    return folder


def test_acetaminophen_is_one_node_and_not_eight(tmp_path: Path) -> None:
    strengths = range(10, 18)
    concepts = {1: ("Acetaminophen", "Drug", "RxNorm", "Ingredient")}
    concepts |= {n: (f"Acetaminophen {n} MG", "Drug", "RxNorm", "Clinical Drug") for n in strengths}
    omop = vocabulary(tmp_path / "omop", concepts, {n: [1] for n in strengths})
    path = write_documents(tmp_path / "r.jsonl", [{str(n), "fever"} for n in strengths] + [{"10", "11", "fever"}])
    build_graph(path, tmp_path / "plain", options=BuildOptions(unit="document"))
    assert Graph.load(tmp_path / "plain").n_nodes == 9
    options = BuildOptions(unit="document")
    build_graph(path, tmp_path / "g", options=options, roll_up="ingredient", vocabulary=omop)
    graph = Graph.load(tmp_path / "g")
    assert content(graph) == ({"1": 9, "fever": 9}, {("1", "fever"): 9})
    assert graph.vocabulary.name[graph.vocabulary.index["1"]] == "Acetaminophen"


SNOMED = {  # a child with two parents at different depths, and a concept that is its own level
    1: "Clinical finding",
    2: "Disease",
    3: "Finding by site",
    4: "Diabetes mellitus",
    5: "Disorder of kidney",
    6: "Type 2 diabetes",
    7: "Diabetic nephropathy",
}
PARENTS = {2: [1], 3: [1], 4: [2], 5: [2, 3], 6: [4], 7: [6, 5]}


@pytest.mark.parametrize(
    ("level", "nodes"),
    [
        ("snomed1", {"2": 4, "3": 1, "x": 4}),
        ("snomed2", {"2": 1, "4": 3, "5": 1, "x": 4}),
        ("snomed3", {"2": 1, "4": 1, "6": 2, "7": 1, "x": 4}),
        ("snomed9", {"2": 1, "4": 1, "6": 1, "7": 1, "x": 4}),
    ],
)
def test_levels_of_snomed_are_counted_from_the_top(tmp_path: Path, level: str, nodes: dict[str, int]) -> None:
    """Diabetes and its types meet at a level; what is above the level stays as it is."""
    concepts = {n: (name, "Condition", "SNOMED", "Clinical Finding") for n, name in SNOMED.items()}
    omop = vocabulary(tmp_path / "omop", concepts, PARENTS)
    path = write_documents(tmp_path / "r.jsonl", [{"4", "x"}, {"6", "x"}, {"7", "x"}, {"2", "x"}])
    build_graph(path, tmp_path / "g", options=BuildOptions(unit="document"), roll_up=level, vocabulary=omop)
    assert content(Graph.load(tmp_path / "g"))[0] == nodes


def test_on_the_command_line(tmp_path: Path) -> None:
    path = write_documents(tmp_path / "r.jsonl", [{"a1", "c"}, {"a2", "c"}])
    table = write_map(tmp_path / "map.tsv", {"a1": {"A"}, "a2": {"A"}})
    build_graph(path, tmp_path / "g")
    run = CliRunner().invoke(
        app, ["graph", "roll-up", str(tmp_path / "g"), "--map", str(table), "--out", str(tmp_path / "h")]
    )
    assert run.exit_code == 0, run.output
    assert content(Graph.load(tmp_path / "h")) == ({"A": 2, "c": 2}, {("A", "c"): 2})
    other = write_map(tmp_path / "other.tsv", {"RxNorm:a1": {"A"}})  # codes written in another way
    run = CliRunner().invoke(
        app, ["graph", "roll-up", str(tmp_path / "g"), "--map", str(other), "--out", str(tmp_path / "same")]
    )
    assert run.exit_code == 1
    assert "other.tsv contains none of the 3 codes, such as a1, a2, c" in str(run.exception)
    assert not (tmp_path / "same").exists()
    said = CliRunner().invoke(
        app, ["graph", "build", str(path), "--roll-up", str(other), "--out", str(tmp_path / "same")]
    )
    assert said.exit_code == 0, said.output
    assert "none of the 3 codes, such as a1, a2, c: they stay as they are" in " ".join(said.output.split())
    (tmp_path / "broken.tsv").write_text("code\tparent\na1\n", encoding="utf-8")
    run = CliRunner().invoke(
        app,
        ["graph", "roll-up", str(tmp_path / "g"), "--map", str(tmp_path / "broken.tsv"), "--out", str(tmp_path / "h")],
    )
    assert run.exit_code == 1
    with pytest.raises(CogstageError, match=r"broken\.tsv:2: 1 columns where the header has 2$"):  # no --skip-bad here
        read_roll_up(tmp_path / "broken.tsv", ["a1"])
    with pytest.raises(UsageError, match=r"neither a level .* nor a table"):
        read_roll_up("nowhere", ["a"])
    with pytest.raises(UsageError, match="needs a folder"):
        read_roll_up("ingredient", ["a"])


def test_codes_that_are_standard_already_are_no_mistake(tmp_path: Path) -> None:
    write_documents(tmp_path / "r.jsonl", [{"1", "2"}, {"1", "2", "3"}])
    folder = tmp_path / "vocabulary"
    folder.mkdir()
    (folder / "CONCEPT.csv").write_text("concept_id,concept_name,domain_id\n1,One,Drug\n2,Two,Drug\n")
    rows = ["1,1,Maps to,", "2,2,Maps to,"]
    (folder / "CONCEPT_RELATIONSHIP.csv").write_text(
        "\n".join(["concept_id_1,concept_id_2,relationship_id,invalid_reason", *rows])
    )
    rolled = read_roll_up("standard", ["1", "2", "3"], folder)
    assert (dict(rolled.parents), rolled.unchanged, rolled.unused(["1", "2", "3"])) == ({}, 2, None)
    command = ["graph", "build", str(tmp_path / "r.jsonl"), "--roll-up", "standard", "--vocabulary", str(folder)]
    built = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "g")])
    assert built.exit_code == 0
    assert "0 of 3 codes became 0, 2 are at this level already" in built.stderr
    assert "contains none" not in built.stderr
    assert "contains none of the 1 codes" in (read_roll_up("standard", ["7"], folder).unused(["7"]) or "")
