"""Finding terms as people type them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogstage.corpus.tokens import casefold_text
from cogstage.graph.vocabulary import UnknownTerm, Vocabulary
from cogstage.web.search import TermSearch, other_names, words

NAMES = ("Myocardial Infarction", "Acetaminophen", "Aspirin", "Diabetes Mellitus, Type 2", "Diabetes Mellitus", "Spain")
VOCABULARY = Vocabulary(NAMES, NAMES, NAMES, ("",) * 6, np.array([50, 9, 40, 30, 60, 3]), (("ASA", 2),))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("heart attack", "Myocardial Infarction"),
        ("Heart  Attack", "Myocardial Infarction"),
        ("infarction myocardial", "Myocardial Infarction"),
        ("paracetamol", "Acetaminophen"),
        ("asprin", "Aspirin"),
        ("asa", "Aspirin"),
        ("type 2 diabetes", "Diabetes Mellitus, Type 2"),
        ("diabetes type 2", "Diabetes Mellitus, Type 2"),
        ("diabetes mel", "Diabetes Mellitus"),
    ],
)
def test_what_people_type(typed: str, name: str) -> None:
    assert NAMES[TermSearch(VOCABULARY).find(typed)[0]] == name


@pytest.mark.parametrize("typed", ["", "  ", "qqqqzzzz", "\x00"])
def test_no_match_is_empty(typed: str) -> None:
    assert TermSearch(VOCABULARY).find(typed) == []


def test_what_is_beyond_doubt_is_resolved_and_the_rest_is_offered() -> None:
    search = TermSearch(VOCABULARY)
    assert search.resolve("type 2 diabetes mellitus") == 3
    assert search.resolve("heart attack") == 0
    with pytest.raises(UnknownTerm) as error:
        search.resolve("asprin")
    assert error.value.suggestions[0] == "Aspirin"


WORD = st.text("abc", min_size=1, max_size=3)
NAME = st.lists(WORD, min_size=1, max_size=3).map(" ".join)


@given(st.lists(NAME, min_size=1, max_size=12), st.lists(WORD, min_size=1, max_size=3))
def test_names_with_all_words_are_found_in_any_order(names: list[str], typed: list[str]) -> None:
    """Against a plain scan: all words but the last whole, the last one perhaps unfinished."""
    vocabulary = Vocabulary.from_terms([f"k{n}" for n in range(len(names))])
    vocabulary = Vocabulary(vocabulary.term, vocabulary.term, tuple(names), ("",) * len(names), vocabulary.count)
    expected = {
        node
        for node, name in enumerate(names)
        if set(typed[:-1]) <= set(words(name)) and any(word.startswith(typed[-1]) for word in words(name))
    }
    found = set(TermSearch(vocabulary).find(" ".join(typed), most=1000))
    assert expected <= found


def test_other_names_are_folded_and_mutual() -> None:
    table = other_names()
    assert "acetaminophen" in table["paracetamol"]
    assert "paracetamol" in table["acetaminophen"]
    assert all(name == casefold_text(name) and name not in others for name, others in table.items())
