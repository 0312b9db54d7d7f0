"""Terms that reach over the end of a sentence in long texts, and numbered items that begin one."""

from __future__ import annotations

from cogstage.corpus.annotate import Annotator
from cogstage.corpus.lexicon import Entry, Lexicon
from cogstage.corpus.tokens import normalise, sentence_breaks


def test_a_term_over_two_sentences_is_found_wherever_a_long_text_is_cut() -> None:
    """A text of 160,000 tokens is searched in pieces of whole sentences; here all begin within a term."""
    annotator = Annotator(Lexicon.build([Entry("alpha. beta")]))
    text = "Beta saw alpha. "
    assert len(annotator.sentences(text * 3)) == 3
    assert len(annotator.annotate(text * 40_000)) == 39_999


def test_numbered_items_begin_a_sentence_in_their_order_alone() -> None:
    text = normalise("1. rest 2. fluids 4. walk 3. sleep 7. stay")
    assert [text[at : at + 2] for at, _ in sentence_breaks(text)] == ["2.", "3."]
