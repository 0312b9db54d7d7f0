"""Plurals that a lexicon adds, and the length from which capitals no longer mean an abbreviation."""

from __future__ import annotations

import pytest

from cogstage.corpus.annotate import Annotator
from cogstage.corpus.lexicon import Entry, Lexicon


def concepts_in(text: str, *entries: Entry, stop_list: tuple[str, ...] = ()) -> list[str]:
    lexicon = Lexicon.build(entries, stop_list=stop_list, variants=True)
    return [mention.concept for mention in Annotator(lexicon).annotate(text)]


@pytest.mark.parametrize("order", [1, -1])
def test_a_term_that_is_written_like_a_plural_stays_itself(order: int) -> None:
    entries = (Entry("cold", "C1"), Entry("colds", "C2"))[::order]
    assert concepts_in("colds and cold", *entries) == ["C2", "C1"]


def test_a_plural_on_the_stop_list_is_not_added() -> None:
    assert concepts_in("fevers, fever, colds", Entry("fever", "C1"), Entry("cold", "C2")) == ["C1", "C1", "C2"]
    found = concepts_in("fevers, fever, colds", Entry("fever", "C1"), Entry("cold", "C2"), stop_list=("fevers",))
    assert found == ["C1", "C2"]


def test_capitals_up_to_four_letters_match_as_written_only() -> None:
    entries = Entry("ABCD", "C4"), Entry("ABCDE", "C5")
    assert concepts_in("ABCD and ABCDE", *entries) == ["C4", "C5"]
    assert concepts_in("abcd and abcde", *entries) == ["C5"]
