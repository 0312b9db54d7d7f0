"""Names typed loosely find their node; unknown ones get the nearest suggestions."""

import difflib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogstage.graph.nearest import NearNames
from cogstage.graph.vocabulary import UnknownTerm, Vocabulary

VOCABULARY = Vocabulary(
    ("C1", "C2", "C3"),
    ("C1", "C2", "C3"),
    ("Acetylsalicylic acid", "Headache", "Crohn’s disease"),
    ("drug", "symptom", "disorder"),
    np.array([10, 20, 5]),
    synonyms=(("aspirin", 0), ("cephalalgia", 1), ("ASPIRIN", 2)),
)


@pytest.mark.parametrize(
    ("typed", "node"),
    [("C1", 0), ("headache", 1), ("HEADACHE ", 1), ("Aspirin", 0), ("cephalalgia", 1), ("acetylsalicylic  acid", 0)],
)
def test_case_spaces_and_synonyms_do_not_matter(typed: str, node: int) -> None:
    assert VOCABULARY.find(typed) == node


def test_unknown_term_names_the_nearest() -> None:
    with pytest.raises(UnknownTerm, match="did you mean Headache") as caught:
        VOCABULARY.find("hedache")
    assert caught.value.suggestions == ["Headache"]


@pytest.mark.parametrize(
    ("typed", "best"), [("anginna", "angina pectoris"), ("pectoralis", "angina pectoris"), ("vagna", "vagina")]
)
def test_a_part_of_a_name_is_enough(typed: str, best: str) -> None:
    assert NearNames(["vagina", "anguilla", "angina pectoris", "pectin"]).nearest(typed)[:1] == [best]


@pytest.mark.parametrize("typed", ["", "zzzzqqqq", "\U0001f600" * 3])
def test_nothing_near_gives_no_suggestion(typed: str) -> None:
    assert VOCABULARY.suggest(typed) == []


def similarity(name: str, typed: str) -> float:
    """The ratio of the whole name, or nine tenths of that of as many neighbouring words of it."""
    words, count = name.split(), len(typed.split())
    parts = [" ".join(words[at : at + count]) for at in range(len(words) - count + 1)]
    ratio, *of_parts = (difflib.SequenceMatcher(None, part, typed).ratio() for part in (name, *parts))
    return max([ratio, *(0.9 * part for part in of_parts)])


@given(
    st.lists(st.text("abcdef é", min_size=1, max_size=12), min_size=1, max_size=30, unique=True), st.integers(0, 10**6)
)
def test_a_name_with_one_letter_changed_is_suggested_when_similarity_allows(names: list[str], seed: int) -> None:
    generator = np.random.default_rng(seed)
    name = names[generator.integers(len(names))]
    place = int(generator.integers(len(name)))
    typed = name[:place] + "z" + name[place + 1 :]
    found = NearNames(names).nearest(typed, most=len(names))
    assert all(similarity(other, typed) >= 0.6 for other in found)
    if len(name) >= 6:  # long enough to share a three-letter piece with what was typed, and alike enough
        assert name in found


def test_write_and_read_give_the_same_vocabulary(tmp_path) -> None:  # type: ignore[no-untyped-def]
    VOCABULARY.write(tmp_path)
    again = Vocabulary.read(tmp_path)
    assert again.hash == VOCABULARY.hash
    assert again.synonyms == VOCABULARY.synonyms
    assert again.count.tolist() == VOCABULARY.count.tolist()
