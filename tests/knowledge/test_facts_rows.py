"""Rows of facts that become one fact, and pairs that one side of a split or a hold-out covers in both directions."""

from __future__ import annotations

import numpy as np
import pytest

from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.hold_out import HoldOut
from cogstage.knowledge.located import Concepts, LocatedFacts
from cogstage.knowledge.splits import LEFT_OUT, split_facts


def test_rows_of_one_fact_keep_the_first_year_and_all_sources() -> None:
    rows = [
        ("a", "causes", "b", "label", 1999),
        ("a", "causes", "b", "textbook", 1985),
        ("a", "causes", "b", "label", None),
        ("b", "causes", "a", "label", None),
        ("c", "causes", "c", "label", 1990),
    ]
    facts = Facts.from_statements(rows)
    assert list(zip(facts.head, facts.tail, facts.year, strict=True)) == [("a", "b", 1985), ("b", "a", None)]
    assert "label" in facts.source[0]
    assert "textbook" in facts.source[0]
    assert facts.source[1] == "label"
    assert facts.made_with["rows"] == {"read": 5, "self": 1, "duplicate": 2}


@pytest.mark.parametrize("kind", ["cold-head", "cold-tail"])
def test_the_two_directions_of_a_pair_have_one_side_or_none(kind: str) -> None:
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 40, (2, 300))
    apart = one != other
    head = np.concatenate([one[apart], other[apart]]).astype(np.int32)
    tail = np.concatenate([other[apart], one[apart]]).astype(np.int32)
    vocabulary = Vocabulary.from_terms([f"n{i}" for i in range(40)])
    concepts = Concepts.from_vocabulary(vocabulary)
    facts = LocatedFacts(("causes",), head, np.zeros(len(head), np.int16), tail, concepts.pair(head, tail))
    side = split_facts(facts, concepts, kind, rng)  # type: ignore[arg-type]
    half = len(head) // 2
    assert (side[:half] == side[half:]).all()
    assert (side == LEFT_OUT).any()
    assert {0, 1, 2} <= set(side.tolist())


def test_a_pair_is_held_out_in_whichever_direction_it_is_given() -> None:
    vocabulary = Vocabulary.from_terms(["a", "b", "c"])
    concepts = Concepts.from_vocabulary(vocabulary)
    held, missing = HoldOut((("b", "a"), ("a", "c"), ("a", "nowhere")), ()).numbers(vocabulary, concepts, {})
    assert held.tolist() == concepts.pair(np.array([0, 2]), np.array([1, 0])).tolist()
    assert missing == ["nowhere"]
