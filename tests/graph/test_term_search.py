"""Finding terms as people type them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogstage.corpus.tokens import casefold_text
from cogstage.data import embedded
from cogstage.graph.term_search import TermSearch, other_names, stems, words
from cogstage.graph.vocabulary import UnknownTerm, Vocabulary

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
    assert NAMES[TermSearch(VOCABULARY).find(typed)[0].node] == name


@pytest.mark.parametrize("typed", ["", "  ", "qqqqzzzz", "\x00"])
def test_no_match_is_empty(typed: str) -> None:
    assert TermSearch(VOCABULARY).find(typed) == []


def test_what_is_beyond_doubt_is_resolved_and_the_rest_is_offered() -> None:
    assert VOCABULARY.find("type 2 diabetes mellitus") == 3
    assert VOCABULARY.find("heart attack") == 0
    with pytest.raises(UnknownTerm) as error:
        VOCABULARY.find("asprin")
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
    found = {match.node for match in TermSearch(vocabulary).find(" ".join(typed), most=1000)}
    assert expected <= found


def test_other_names_are_folded_and_mutual() -> None:
    table = other_names()
    assert "acetaminophen" in table["paracetamol"]
    assert "paracetamol" in table["acetaminophen"]
    assert all(name == casefold_text(name) and name not in others for name, others in table.items())


TYPED = Path(__file__).parent / "typed_names.tsv"  # names that people type, and the MeSH headings they mean


def test_names_that_people_type_mean_the_right_term() -> None:
    """``-``: the graph has no such term. Several headings are parted by ``|``."""
    vocabulary = embedded.graph().vocabulary
    with TYPED.open(encoding="utf-8", newline="") as handle:
        rows = [(row["typed"], row["terms"].split("|")) for row in csv.DictReader(handle, delimiter="\t")]
    assert len(rows) >= 500
    right, wrong_in_silence = 0, []
    for typed, terms in rows:
        try:
            name, silent = vocabulary.name[vocabulary.find(typed)], True
        except UnknownTerm as error:
            name, silent = (error.suggestions or [""])[0], False
        right += name in terms or (terms == ["-"] and not silent)
        if silent and name not in terms:
            wrong_in_silence.append((typed, name))
    assert wrong_in_silence == []
    assert right / len(rows) >= 0.95


def test_a_brand_whose_substance_is_missing_says_so() -> None:
    with pytest.raises(UnknownTerm, match=r"^unknown term: Keytruda \(pembrolizumab\), which is not in this graph$"):
        VOCABULARY.find("Keytruda")


NAMED = ("Metformin", "Atomoxetine Hydrochloride", "Creatine", "Angina Pectoris", "Vagina", "Edema", "Crohn Disease")
DRUGS = Vocabulary(NAMED, NAMED, NAMED, ("",) * 7, np.array([5, 9, 3, 4, 60, 8, 2]), (("Glucophage", 0),))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("Metformin Hydrochloride", "Metformin"),
        ("atomoxetine", "Atomoxetine Hydrochloride"),
        ("creatine phosphate", None),  # another substance
        ("metformin diet", None),
        ("angina", "Angina Pectoris"),
        ("oedemas", "Edema"),
        ("Crohn's", "Crohn Disease"),
        ("vaginas", "Vagina"),
        ("disease", None),
    ],
)
def test_plurals_salts_spellings_and_head_words(typed: str, name: str | None) -> None:
    match = DRUGS.search.resolve(typed)
    assert (None if match is None else NAMED[match.node]) == name


def test_a_match_has_the_name_by_which_it_was_found() -> None:
    match = DRUGS.search.find("gluco")[0]
    assert (match.node, match.name) == (0, "Glucophage")


def test_of_names_spelt_alike_the_common_one_comes_first() -> None:
    names = ("Cortisane", "Cortisene")
    vocabulary = Vocabulary(names, names, names, ("", ""), np.array([1, 900]))
    assert vocabulary.suggest("cortisone") == ["Cortisene", "Cortisane"]


@given(st.lists(st.text("abcdeimnostux", min_size=1, max_size=9), min_size=1, max_size=4))
def test_stems_do_not_depend_on_the_number_of_the_last_word(parts: list[str]) -> None:
    *rest, last = parts
    if not last.endswith(("s", "y", "x", "e", "i", "u")) and len(last) > 3:
        assert stems(" ".join([*rest, last])) == stems(" ".join([*rest, last + "s"]))
