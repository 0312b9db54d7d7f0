"""``cogstage evaluate``: the floor beside the model, reference sets, another graph, and what is checked first."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_model import save_small_data, small_data

from cogstage.baselines.resolver import resolve
from cogstage.cli.main import run
from cogstage.estimator import CogStage
from cogstage.evaluation.floor_rows import floor_warnings
from cogstage.evaluation.metrics import score
from cogstage.graph.cooccurrence import Graph


def evaluate(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> tuple[str, str]:
    with pytest.raises(SystemExit) as ended:
        run(["evaluate", *map(str, arguments)])
    said = capsys.readouterr()
    assert (ended.value.code or 0) == code, said.err
    return said.out, said.err


def test_the_floor_stands_beside_the_model(
    small_model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = save_small_data(tmp_path / "data")
    arguments = [small_model_folder, "-d", folder, "--ranking-heads", "3", "--out", tmp_path / "out"]
    printed, said = evaluate(capsys, *arguments)
    for words in ("Always positive", "Degree", "Popularity of the head", "Popularity of head × tail", "PPMI"):
        assert words in printed
    assert "Evaluating" in said  # progress
    result = json.loads((tmp_path / "out" / "metrics.json").read_text(encoding="utf-8"))
    graph, data = small_data()
    pairs = data.pairs("causes", "test")
    for name in ("ppmi", "popularity-head"):
        method = resolve(name).fit(graph, data.for_fitting(), "causes")
        expected = score(pairs.label, method.scores(pairs.head, pairs.tail))["auroc"]
        assert result["floor"]["causes"][name]["auroc"]["value"] == pytest.approx(expected, abs=1e-6)
        assert "mrr" in result["floor"]["causes"][name]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Baselines that need no model, on test pairs" in page
    for warning in result["warnings"]:
        assert warning in said


def test_a_floor_row_that_beats_the_model_is_warned_of() -> None:
    lines = floor_warnings(
        {"causes": {"degree": 0.6, "ppmi": 0.95}, "may_treat": {"degree": 0.5}}, {"causes": 0.9, "may_treat": 0.8}
    )
    assert len(lines) == 2
    assert all(line.startswith("causes: PPMI alone") for line in lines)
    assert floor_warnings({"causes": {"degree": 0.6}}, {"causes": 0.7}) == []


def test_a_models_graph_is_the_graph_it_was_fitted_on(model: CogStage) -> None:
    graph, _ = small_data()
    kept = model.graph
    assert kept.hash == graph.hash
    assert np.allclose(kept.ppmi().toarray(), graph.ppmi().toarray())


def test_a_reference_set(
    small_model_folder: Path, model: CogStage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names, facts = model.vocabulary.name, model.fitted.facts
    rows = ["head\ttail\tlabel"]
    rows += [f"{names[2 * i]}\t{names[2 * i + 41]}\t{i % 2}" for i in range(30)]
    rows.append("Nobody's drug\tDisorder number 1\t1")
    known = int(np.flatnonzero(facts.relation == model.all_relations.index("causes"))[0])
    rows.append(f"{names[facts.head[known]]}\t{names[facts.tail[known]]}\t1")
    path = tmp_path / "set.tsv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    printed, said = evaluate(capsys, small_model_folder, "--reference", path, "-r", "causes", "--json")
    result = json.loads(printed)
    assert (result["pairs"], result["covered"]) == (32, 31)
    assert result["known"] >= 1
    assert "training facts of the model" in said
    assert result["missing"] == ["Nobody's drug"]
    heads = [2 * i for i in range(30)] + [int(facts.head[known])]
    tails = [2 * i + 41 for i in range(30)] + [int(facts.tail[known])]
    label = np.array([i % 2 for i in range(30)] + [1])
    expected = score(label, model.probabilities(heads, tails, "causes"))["auroc"]
    assert result["rows"]["model"]["overall"]["value"] == pytest.approx(expected)
    printed, _ = evaluate(capsys, small_model_folder, "--reference", path, "-r", "causes", "--out", tmp_path / "out")
    assert "known facts of head × tail" in printed
    assert "Not in the graph" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    _, said = evaluate(capsys, small_model_folder, "--reference", path, code=2)
    assert "set --relation to one of may_treat, causes" in said


def test_another_graph(small_model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same counts give the same figures (but for what is learned anew); others are really read."""
    graph, _ = small_data()
    kept = np.random.default_rng(0).random(graph.n_edges) < 0.5
    Graph(graph.vocabulary, graph.source[kept], graph.target[kept], graph.count[kept]).save(tmp_path / "half")
    folder = save_small_data(tmp_path / "data")
    arguments = [small_model_folder, "-d", folder, "--ranking-heads", "0", "--json", "--on", "dev"]
    before = json.loads(evaluate(capsys, *arguments)[0])
    after = json.loads(evaluate(capsys, *arguments, "--graph", tmp_path / "half")[0])
    auroc = [result["floor"]["causes"]["ppmi"]["auroc"]["value"] for result in (before, after)]
    assert auroc[0] > auroc[1]  # half of the counts are gone
    ours = [result["relations"]["causes"]["metrics"]["auroc"]["value"] for result in (before, after)]
    assert ours[0] != ours[1]
    other = replace(graph, vocabulary=type(graph.vocabulary).from_terms([f"x{i}" for i in range(graph.n_nodes)]))
    other.save(tmp_path / "other")
    _, said = evaluate(capsys, *arguments, "--graph", tmp_path / "other", code=2)
    assert "keyed alike" in said


def test_what_is_wrong_is_said_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    _, said = evaluate(capsys, "no-model", "-d", "no-data", "--out", tmp_path / "file" / "out", code=2)
    assert "cannot be written" in said
    _, said = evaluate(capsys, "no-model", code=2)
    assert "--dataset" in said
    _, said = evaluate(capsys, "no-model", "-d", "x", "--reference", "y", code=2)
    assert "--reference" in said
    _, said = evaluate(capsys, "no-model", "-d", "x", "--outcomes", "y", code=2)
    assert "--outcomes" in said


def test_corrections_are_applied_and_those_of_held_out_pairs_are_named(
    small_model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = save_small_data(tmp_path / "data")
    graph, data = small_data()
    facts, names, test = data.facts("train"), graph.vocabulary.term, data.pairs("causes", "test")
    mine = np.flatnonzero(facts.relation == data.relations.index("causes"))[:40]
    rows = [(names[facts.head[row]], "causes", names[facts.tail[row]], "wrong") for row in mine.tolist()]
    rows.append((names[test.head[0]], "causes", names[test.tail[0]], "right"))
    lines = ["\t".join(row) for row in [("head", "relation", "tail", "verdict"), *rows]]
    (tmp_path / "corrections.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    arguments = [small_model_folder, "-d", folder, "--ranking-heads", "0", "-r", "causes", "--json"]
    plain = json.loads(evaluate(capsys, *arguments)[0])
    printed, said = evaluate(capsys, *arguments, "--corrections", tmp_path / "corrections.tsv")
    found = json.loads(printed)
    assert found["corrections"] == len(rows)
    assert plain["corrections"] == 0
    asked = {
        frozenset((names[h], names[t]))
        for relation in data.relations
        for pairs in [data.pairs(relation, "test")]
        for h, t in zip(pairs.head.tolist(), pairs.tail.tolist(), strict=True)
    }
    judged = {frozenset((head, tail)) for head, _, tail, _ in rows}
    assert judged & asked
    assert f"{len(judged & asked)} of {len(judged)} corrected pairs are test pairs" in said
    model = CogStage.load(small_model_folder)
    verdicts = {(head, relation, tail): verdict == "right" for head, relation, tail, verdict in rows}
    expected = score(test.label, model.with_verdicts(verdicts).probabilities(test.head, test.tail, "causes"))["auroc"]
    assert found["relations"]["causes"]["metrics"]["auroc"]["value"] == pytest.approx(expected)
    assert expected != plain["relations"]["causes"]["metrics"]["auroc"]["value"]
