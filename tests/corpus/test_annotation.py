"""Annotation against a matcher written down plainly, on random texts and lexicons, and on known hard cases."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cogstage.corpus.annotate import Annotator
from cogstage.corpus.lexicon import Entry, Lexicon, is_exact
from cogstage.corpus.tokens import TOKEN, casefold_token, casefold_tokens, normalise, sentence_breaks


def lexicon_of(*terms: str, **options: object) -> Lexicon:
    return Lexicon.build([Entry(term) for term in terms], **options)  # type: ignore[arg-type]


def lexicon_of_distinct(*terms: str) -> Lexicon:
    return lexicon_of(*{casefold_tokens(term): term for term in terms}.values())


def brute_force(text: str, terms: list[str]) -> list[tuple[int, int, str]]:
    """Leftmost-longest over tokens by trying every term at every token; a line end between sentences is a wall."""
    text = normalise(text)
    walls = {place for place, line_end in sentence_breaks(text) if line_end}
    tokens = [(m.start(), m.end(), casefold_token(m[0])) for m in TOKEN.finditer(text)]
    keys = {casefold_tokens(term): term for term in reversed(terms)}
    longest = max(map(len, keys))
    found, place = [], 0
    while place < len(tokens):
        for size in range(min(longest, len(tokens) - place), 0, -1):
            piece = tokens[place : place + size]
            if any(start in walls for start, _, _ in piece[1:]):
                continue
            if (key := tuple(token for _, _, token in piece)) in keys:
                found.append((piece[0][0], piece[-1][1], keys[key]))
                place += size
                break
        else:
            place += 1
    return found


words = st.sampled_from(["a", "B", "aspirin", "heart", "Heart", "failure", "no", "é", "ß", "İ", "β", "x1", "2", "ab"])
marks = st.sampled_from([" ", " ", " ", "-", ".", ". ", ", ", "\n", "\n\n", "(", ")", "'", "’", "–", "_", "  ", "! "])
texts = st.lists(st.tuples(words, marks), max_size=25).map(lambda parts: "".join(w + m for w, m in parts))
terms = st.lists(
    st.lists(st.tuples(words, st.sampled_from([" ", "-", ". ", "'", " – "])), min_size=1, max_size=3).map(
        lambda parts: "".join(w + m for w, m in parts)[: -len(parts[-1][1])]
    ),
    min_size=1,
    max_size=8,
).map(lambda found: list({casefold_tokens(term): term for term in reversed(found)}.values())[::-1])


@settings(max_examples=300, deadline=None)
@given(texts, terms)
def test_equals_brute_force(text: str, found: list[str]) -> None:
    lexicon = lexicon_of(*found)
    given_ = [(m.start, m.end, lexicon.terms[m.term_id]) for m in Annotator(lexicon).annotate(text)]
    expected = [(a, b, " ".join(term.split())) for a, b, term in brute_force(text, found)]
    if normalise(text) == text:
        assert given_ == expected
    else:
        assert [term for *_, term in given_] == [term for *_, term in expected]


@settings(max_examples=200, deadline=None)
@given(st.lists(texts, max_size=5), terms)
def test_the_batch_call_says_the_same_as_the_single_one(batch: list[str], found: list[str]) -> None:
    for context in (True, False):
        annotator = Annotator(lexicon_of(*found), context=context)
        expected = [
            (number, mention.sentence, mention.term_id)
            for number, text in enumerate(batch)
            for mention in annotator.annotate(text)
            if not mention.context
        ]
        rows = annotator.term_rows(batch)
        assert all(row.dtype == np.int32 for row in rows)
        assert list(zip(*(row.tolist() for row in rows), strict=True)) == expected


lines = st.text(alphabet="aB1_ \t\n\n\n.!?:;\"')]`\x00\x1c,", max_size=40)
odd_lines = st.text(alphabet="aB1\n\n .!:)”’–éßĄİβµ±\u0307\u2028\u3000\ud800𝒜中", max_size=40)
wide = st.lists(
    st.sampled_from(["word " * 10, "Heart failure " * 4, "a. ", "x\n", "B:\n", "\n", "no " * 40]), max_size=14
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(texts, lines, odd_lines, wide.map("".join)), max_size=6), terms)
def test_rows_without_sentences_are_the_same_rows(batch: list[str], found: list[str]) -> None:
    annotator = Annotator(lexicon_of_distinct(*found, "a", "b . a", "` x", "word heart"), context=False)
    expected, given_ = annotator.term_rows(batch), annotator.term_rows(batch, sentences=False)
    assert given_[0].tolist() == expected[0].tolist()
    assert given_[2].tolist() == expected[2].tolist()
    assert not given_[1].any()


def test_a_long_text_in_pieces_gives_what_its_sentences_give() -> None:
    """Terms may reach over the end of a sentence, and so over the end of a piece."""
    chance = random.Random(1)
    words, ends = ["no", "fever", "aspirin", "heart", "failure", "word"], ["fever", "failure", "ending", "aspirin"]
    inner_words = [chance.choices(words, k=chance.randint(0, 10)) for _ in range(30_000)]
    sentences = [" ".join([chance.choice(ends).title(), *inner, chance.choice(ends)]) + "." for inner in inner_words]
    annotator = Annotator(lexicon_of("fever", "heart failure", "ending . aspirin", "aspirin", "failure . fever word"))
    rows = annotator.term_rows([" ".join(sentences)])
    few = 200  # sentences of a short text, which is searched at once; neighbours overlap by some
    expected: dict[int, list[int]] = {}
    for at in range(0, len(sentences), few - 40):
        _, number, term = annotator.term_rows([" ".join(sentences[at : at + few])])
        inner = (number >= 20) | (at == 0)
        inner &= (number < few - 20) | (at + few >= len(sentences))
        for sentence, found in zip(number[inner].tolist(), term[inner].tolist(), strict=True):
            expected.setdefault(at + sentence, []).append(found)
    assert len(" ".join(sentences).split()) > 2 * (1 << 16)
    given_: dict[int, list[int]] = {}
    for sentence, found in zip(rows[1].tolist(), rows[2].tolist(), strict=True):
        given_.setdefault(sentence, []).append(found)
    assert given_ == expected


def test_a_text_without_marks_is_cut_into_long_sentences() -> None:
    text = "fever " * 60_000 + "no fever"
    breaks = list(sentence_breaks(text))
    assert [position % 6 for position, _ in breaks] == [0] * 3
    assert max(np.diff([0, *(position for position, _ in breaks), len(text)])) <= 100_006
    rows = Annotator(lexicon_of("fever")).term_rows([text])
    assert len(rows[2]) == 60_000
    assert np.unique(rows[1]).tolist() == [0, 1, 2, 3]
    assert list(sentence_breaks("x" * 300_000)) == []


@settings(max_examples=200, deadline=None)
@example("ó", ["Ó"])
@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=4))
def test_any_text_at_all(text: str, found: list[str]) -> None:
    found = list({casefold_tokens(term): term for term in found if casefold_tokens(term)}.values())
    folded = [term for term in found if not is_exact(" ".join(normalise(term).split()))]
    for any_case, some in ((True, found), (False, folded)):  # abbreviations as written: test_lexicon_case.py
        if not some:
            continue
        lexicon = lexicon_of(*some, any_case=any_case)
        mentions = Annotator(lexicon, context=False).annotate(text)
        expected = [" ".join(term.split()) for *_, term in brute_force(text, some)]
        assert [lexicon.terms[m.term_id] for m in mentions] == expected
        assert all(0 <= m.start < m.end <= len(text) for m in mentions)


def test_shorter_terms_that_a_character_matcher_with_a_boundary_filter_loses() -> None:
    # over characters the longest match at "heart" is "heart failures" cut at "heart failure|s"; filtering it away loses
    # "heart"; over tokens "heart" is what is there
    lexicon = lexicon_of("heart", "heart failure", "art")
    found = [lexicon.terms[m.term_id] for m in Annotator(lexicon).annotate("heart failures of the art")]
    assert found == ["heart", "art"]


def test_folding_and_places_in_the_original_text() -> None:
    lexicon = lexicon_of("Alzheimer's disease", "naïve t-cell", "25 μg", "office fever")
    text = "ALZHEIMER’S  Disease, nai\u0308ve T‑cell; 25 µg of oﬃce fever."
    found = [(text[m.start : m.end], lexicon.terms[m.term_id]) for m in Annotator(lexicon).annotate(text)]
    assert found == [
        ("ALZHEIMER’S  Disease", "Alzheimer's disease"),
        ("nai\u0308ve T‑cell", "naïve t-cell"),
        ("25 µg", "25 μg"),
        ("oﬃce fever", "office fever"),
    ]


def test_terms_with_full_stops_and_across_wrapped_lines() -> None:
    lexicon = lexicon_of("St. John's wort", "E. coli", "chest pain")
    text = "Takes St. John's wort for E. coli and severe chest\npain at night."
    assert [lexicon.terms[m.term_id] for m in Annotator(lexicon).annotate(text)] == [
        "St. John's wort",
        "E. coli",
        "chest pain",
    ]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One here. Two there.", ["One here.", "Two there."]),
        ("Seen by Dr. Lee today. Well.", ["Seen by Dr. Lee today.", "Well."]),
        ("Has hepatitis C. The liver is large.", ["Has hepatitis C.", "The liver is large."]),
        ("J. Smith came at 3.5 mg/dL.", ["J. Smith came at 3.5 mg/dL."]),
        ("no fever. has cough.", ["no fever.", "has cough."]),
        ("Some drugs, e.g. aspirin, help.", ["Some drugs, e.g. aspirin, help."]),
        ("Fig. 2 shows it vs. Fig. 3.", ["Fig. 2 shows it vs. Fig. 3."]),
        ('He said "no." Then he left (at 5.) Good.', ['He said "no."', "Then he left (at 5.)", "Good."]),
        ("Title of it\nFirst line.\nsecond", ["Title of it", "First line.", "second"]),
        ("Plan:\n- aspirin\n- rest", ["Plan:", "- aspirin", "- rest"]),
        ("a long line\n\nbut apart", ["a long line", "but apart"]),
        ("\n\n \nOnly this\n\n", ["Only this"]),
        ("", []),
        ("Dr. X", ["Dr. X"]),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert Annotator(lexicon_of("x")).sentences(text) == sentences


def test_lines_wrapped_by_hand_run_on() -> None:
    lines = [
        "The patient is a man of sixty years with a history of",
        "Hodgkin lymphoma who came to the hospital because of",
        "Fever and chills for the last two days and has had no",
        "Cough at all. He was seen by his own physician before",
        "He came here.",
    ]
    assert len(Annotator(lexicon_of("x")).sentences("\n".join(lines))) == 2


def test_sentence_numbers() -> None:
    rows = Annotator(lexicon_of("fever", "cough")).term_rows(["Fever. Cough and fever.\nCough", "", "Nothing", "cough"])
    assert [row.tolist() for row in rows] == [[0, 0, 0, 0, 3], [0, 1, 1, 2, 0], [0, 1, 0, 1, 1]]


def test_concept_rows_repeat_ambiguous_terms() -> None:
    entries = [Entry("cold", "C1"), Entry("cold", "C2"), Entry("flu", "C3")]
    annotator = Annotator(Lexicon.build(entries, ambiguity="all"))
    rows = annotator.concept_rows(["flu. cold", "cold flu"])
    names = [annotator.lexicon.concepts[number] for number in rows[2]]
    assert list(zip(rows[0].tolist(), rows[1].tolist(), names, strict=True)) == [
        (0, 0, "C3"), (0, 1, "C1"), (0, 1, "C2"), (1, 0, "C1"), (1, 0, "C2"), (1, 0, "C3"),
    ]  # fmt: skip


def test_an_annotator_travels_to_other_processes() -> None:
    annotator = Annotator(lexicon_of("fever"), context=False)
    copy = pickle.loads(pickle.dumps(annotator))
    assert copy.annotate("No fever") == annotator.annotate("No fever")
    assert len(copy.annotate("No fever")) == 1


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    import cogstage.corpus.annotate as module

    monkeypatch.setattr(module, "_MOST_REMEMBERED", 10)
    annotator = Annotator(lexicon_of("fever"))
    assert len(annotator.annotate(" ".join(f"w{number} fever" for number in range(100)))) == 100
    assert len(annotator._characters) <= 10
