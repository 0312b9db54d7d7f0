"""What a merged graph says of terms that its parts left out for being rare."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_merge import LEXICON, write_notes

from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.merge import merge_graphs
from cogstage.graph.options import BuildOptions


@pytest.mark.parametrize("least", [(2, 5), (5, 2), (3, 3)])
def test_a_sum_lacks_what_the_strictest_part_left_out(tmp_path: Path, least: tuple[int, int]) -> None:
    parts = []
    for site, minimum in enumerate(least):
        some = [(number, site, number, ["aspirin", "fever"]) for number in range(20)]
        write_notes(tmp_path / f"{site}.jsonl", some)
        options = BuildOptions(unit="document", min_count=minimum)
        build_graph(tmp_path / f"{site}.jsonl", tmp_path / f"g{site}", LEXICON, options)
        parts.append(Graph.load(tmp_path / f"g{site}"))
    made = merge_graphs(parts).made_with
    assert made["min_count"] == max(least)
    assert not made["merged"]["exact"]
