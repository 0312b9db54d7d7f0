"""The made-up graph of the memory benchmark: as many edges as planned, sound, related by topic, and read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks import memory

from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.table import facts_from_table

PLAN = memory.Plan(400, 6_000, topics=5, facts=40)


@pytest.mark.parametrize("block", [50, 1 << 20])
def test_a_streamed_graph_has_the_planned_size_and_topics(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "BLOCK", block)
    memory.write_graph(PLAN, tmp_path / "graph")
    graph = Graph.load(tmp_path / "graph")  # checks order, range and counts
    assert (graph.n_nodes, graph.n_edges) == (PLAN.terms, PLAN.edges)
    same = graph.source % PLAN.topics == graph.target % PLAN.topics
    assert np.mean(same) > 0.4  # a fifth by chance
    assert graph.count[same].mean() > 2 * graph.count[~same].mean()


def test_facts_of_a_relation_join_each_topic_to_one_other(tmp_path: Path) -> None:
    memory.write_facts(PLAN, tmp_path / "facts.tsv")
    facts = facts_from_table(tmp_path / "facts.tsv")
    assert 5 * PLAN.facts - 20 < len(facts) <= 5 * PLAN.facts  # a fact drawn twice counts once
    rows = [line.split("\t") for line in (tmp_path / "facts.tsv").read_text().splitlines()[1:]]
    joined = {(relation, int(head[1:]) % PLAN.topics, int(tail[1:]) % PLAN.topics) for head, relation, tail in rows}
    assert len(joined) == 5 * PLAN.topics
