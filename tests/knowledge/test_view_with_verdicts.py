"""Verdicts as training data, against sets of triples."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from small_model import small_data

from cogstage.knowledge.dataset import FittingView
from cogstage.knowledge.verdicts import view_with_verdicts

GRAPH, DATA = small_data()
VIEW = DATA.for_fitting()
N = GRAPH.n_nodes
Labelled = dict[tuple[int, int, int], int]


def facts_of(view: FittingView) -> set[tuple[int, int, int]]:
    facts = view.train_facts()
    return set(zip(facts.head.tolist(), facts.relation.tolist(), facts.tail.tolist(), strict=True))


def pairs_of(view: FittingView, split: str) -> Labelled:
    labelled: Labelled = {}
    for number, name in enumerate(view.relations):
        pairs = view.pairs(name, split)
        rows = zip(pairs.head.tolist(), pairs.tail.tolist(), pairs.label.tolist(), strict=True)
        labelled |= {(head, number, tail): label for head, tail, label in rows}
        assert len({(h, t) for h, t in zip(pairs.head.tolist(), pairs.tail.tolist(), strict=True)}) == len(pairs)
    return labelled


known = st.sampled_from(sorted(facts_of(VIEW)) + sorted(pairs_of(VIEW, "train")) + sorted(pairs_of(VIEW, "dev")))
free = st.tuples(st.integers(0, N - 1), st.integers(0, 1), st.integers(0, N - 1)).filter(lambda x: x[0] != x[2])


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.one_of(known, free), st.booleans(), max_size=8), st.booleans())
def test_right_triples_are_facts_and_wrong_ones_negatives(
    verdicts: dict[tuple[int, int, int], bool], turned: bool
) -> None:
    numbered = {(t, r + 2, h): right for (h, r, t), right in verdicts.items()} if turned else verdicts
    view = view_with_verdicts(VIEW, numbered, N)
    right = {triple for triple, is_right in verdicts.items() if is_right}
    wrong = verdicts.keys() - right
    assert facts_of(view) == (facts_of(VIEW) - wrong) | right
    labels = {triple: int(is_right) for triple, is_right in verdicts.items()}
    assert pairs_of(view, "train") == pairs_of(VIEW, "train") | labels
    assert pairs_of(view, "dev") == {k: v for k, v in pairs_of(VIEW, "dev").items() if k not in verdicts}
    facts = view.train_facts()
    assert view.is_taken(facts.head, facts.tail).all()
