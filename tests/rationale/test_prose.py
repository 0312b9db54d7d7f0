"""Sentences: two to five, each about a reason of the record, and no term that is not in it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_predictions import inapplicable, prediction

from cogstage.rationale.prose import prose
from cogstage.rationale.record import Prediction, Term
from cogstage.rationale.wording import in_words, pair_in_words, status_in_words
from cogstage.relations import phrase

TEMPLATES = """likely unlikely probability and it known fact the model alone not thought to cause treat or assumed
considered similar which counts for against note that this relation contradicts the one in question No was recognised
assumes of such pairs are true The two terms occur together PPMI"""
WORDS = {"%", *TEMPLATES.split()}


def names(p: Prediction) -> list[str]:
    found = [p.head.name, p.tail.name]
    found += [term.name for reason in p.reasons for term in (reason.head, reason.tail)]
    return sorted(found, key=len, reverse=True)


@pytest.mark.parametrize("size", range(0, 12))
def test_two_to_five_sentences_and_only_terms_of_the_record(size: int) -> None:
    record = prediction(size)
    sentences = prose(record)
    assert 2 <= len(sentences) <= 5
    for sentence in sentences:
        rest = sentence
        for name in names(record):
            rest = rest.replace(name, "")
        for relation in ("may_treat", "causes", "contraindicates", "may_prevent", "symptom_of"):
            rest = rest.replace(phrase(relation), "").replace(phrase(relation + "_inverse"), "")
        left = [word.strip(".,;()") for word in rest.split()]
        unknown = [
            w for w in left if w and w not in WORDS and w != "is" and not w.strip("+-%×").replace(".", "").isdigit()
        ]
        assert not unknown, (sentence, unknown)


def test_every_reason_shown_is_the_strongest_of_its_side() -> None:
    record = prediction(9)
    sentences = prose(record)
    for reason, sentence in zip(record.reasons_for[:2], sentences[1:], strict=False):
        assert sentence.startswith(f"{in_words(reason)} ({status_in_words(reason)})")
        assert f"{reason.share:+.2f}" in sentence
    assert f"{record.reasons_against[0].share:+.2f}" in sentences[3]


def test_the_counts_of_the_pair_are_shown_where_they_say_most() -> None:
    record = prediction(9)
    assert record.pair is not None
    strong = replace(record, pair=replace(record.pair, ppmi_share=9.0))
    assert prose(strong)[1] == "The two terms occur together 7× (PPMI 2.50), which counts for it (+9.00)."
    assert not any("occur together" in sentence for sentence in prose(replace(record, pair=None)))
    hidden = replace(record.pair, count=None, ppmi=None)
    words = "The two terms do occur together more often than by chance"
    assert pair_in_words(replace(record, pair=hidden))[0] == (words, 0.3)
    apart = replace(record, pair=replace(hidden, ppmi_share=0.0))
    assert pair_in_words(apart)[0] == (words.replace("do", "do not"), 0.0)


def test_a_share_that_rounds_to_nothing_is_not_shown() -> None:
    record = prediction(9)
    small = replace(record, reasons_against=tuple(replace(reason, share=-0.004) for reason in record.reasons_against))
    assert any("counts against it" in sentence for sentence in prose(record))
    assert not any("counts against it" in sentence for sentence in prose(small))


def test_nothing_is_claimed_where_the_question_does_not_apply() -> None:
    sentences = prose(inapplicable(prediction(5)))
    assert len(sentences) == 2
    assert "does not apply" in sentences[0]
    assert not any("0." in sentence for sentence in sentences)


@given(st.text(min_size=1, max_size=30), st.floats(0.01, 0.99))
def test_names_and_base_rates_of_any_kind(name: str, rate: float) -> None:
    record = replace(prediction(4), head=Term("x", name)).with_base_rate(rate)
    sentences = prose(record)
    assert name in sentences[0]
    assert f" {100 * rate:g} % of such pairs" in sentences[-1]


@pytest.mark.parametrize(("rate", "words"), [(0.5, "50 %"), (0.001, "0.1 %"), (0.07, "7 %"), (0.125, "12.5 %")])
def test_a_small_base_rate_is_not_rounded_to_nothing(rate: float, words: str) -> None:
    assert f" assumes that {words} of such pairs" in prose(prediction(5).with_base_rate(rate))[-1]
