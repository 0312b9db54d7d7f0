"""Abbreviations match as they are written; terms that differ in case alone are counted; common words are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from corpus_files import put
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.corpus.annotate import Annotator
from cogstage.corpus.lexicon import Entry, Lexicon
from cogstage.corpus.tokens import TOKEN
from cogstage.graph.build import build_graph
from cogstage.tables import BadRows

CASE_NOTICE = "terms of the lexicon that differ only in case, merged"


def lexicon(*terms: tuple[str, str], any_case: bool = False, bad: BadRows | None = None) -> Lexicon:
    return Lexicon.build([Entry(term, concept) for term, concept in terms], any_case=any_case, bad=bad)


def concepts(words: Lexicon, text: str) -> list[str]:
    found = [mention.concept for mention in Annotator(words, context=False).annotate(text)]
    rows = Annotator(words, context=False).concept_rows([text], sentences=False)[2]
    assert [words.concepts[number] for number in rows.tolist()] == found
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MS was found", ["sclerosis"]), ("Ms Jones", []), ("5 ms later", []), ("ALL in all", ["leukaemia"]),
        ("ALL-TRANS retinoic acid", ["tretinoin"]), ("all-trans retinoic ACID", ["tretinoin"]),
        ("T4 and t4", ["thyroxine"]),
        ("nsaids and NSAIDS", ["nsaid", "nsaid"]), ("A CAT scan and a cat", ["tomography"]), ("(AIDS)", ["aids"]),
        ("hearing aids", []), ("no IN room", []),
    ],
)  # fmt: skip
def test_abbreviations_match_as_they_are_written(text: str, expected: list[str]) -> None:
    words = lexicon(("MS", "sclerosis"), ("ALL", "leukaemia"), ("all-trans retinoic acid", "tretinoin"),
                    ("T4", "thyroxine"), ("NSAIDS", "nsaid"), ("CAT", "tomography"), ("AIDS", "aids"))  # fmt: skip
    assert concepts(words, text) == expected


def test_any_case_can_be_asked_for() -> None:
    assert concepts(lexicon(("MS", "sclerosis"), any_case=True), "MS, ms and Ms") == ["sclerosis"] * 3


def test_a_term_in_small_letters_matches_in_any_case() -> None:
    assert concepts(lexicon(("ms", "sclerosis")), "MS, ms and Ms") == ["sclerosis"] * 3
    both = lexicon(("MS", "sclerosis"), ("ms", "millisecond"))
    assert concepts(both, "MS, ms and Ms") == ["sclerosis", "millisecond", "millisecond"]


def test_terms_that_differ_in_case_alone_are_counted() -> None:
    bad = BadRows()
    words = lexicon(("Aspirin", "A"), ("aspirin", "A"), ("ASPIRIN", "A"), ("AIDS", "B"), ("Aids", "B"), bad=bad)
    assert len(words) == 2
    assert bad.notices[CASE_NOTICE] == 3
    assert concepts(words, "aids, AIDS, aSPIRIN") == ["B", "B", "A"]
    assert concepts(lexicon(("AIDS", "B"), ("Aids", "B"), ("aids", "B")), "aids, AIDS, Aids") == ["B"] * 3


SPELLINGS = ["PACK", "Pack", "pack", "MS", "ms", "Ms", "ALL", "all-trans", "T4"]


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(SPELLINGS), min_size=1, max_size=4, unique=True),
    st.sampled_from(SPELLINGS),
    st.lists(st.sampled_from(["pack", "Pack", "PACK", "ms", "MS", "Ms", "all", "ALL-TRANS", "t4", "T4"]), max_size=8),
)
def test_a_further_spelling_of_a_concept_removes_no_match(terms: list[str], further: str, words: list[str]) -> None:
    before = Annotator(lexicon(*((term, "C1") for term in terms)), context=False).annotate(" ".join(words))
    more = dict.fromkeys([*terms, further])
    after = Annotator(lexicon(*((term, "C1") for term in more)), context=False).annotate(" ".join(words))
    covered = {place for mention in after for place in range(mention.start, mention.end)}
    assert all(set(range(mention.start, mention.end)) <= covered for mention in before)


def test_an_abbreviation_next_to_another_spelling_matches_in_any_case() -> None:
    for terms in (["Pack"], ["PACK", "Pack"], ["Pack", "PACK"]):
        assert concepts(lexicon(*((term, "C1") for term in terms)), "pack Pack PACK") == ["C1"] * 3


def test_notices_come_back_with_a_kept_lexicon(tmp_path: Path) -> None:
    table = put(tmp_path / "l.tsv", "term\tconcept\nFlu\tC1\nflu\tC1\n")
    for _ in range(2):
        bad = BadRows()
        Lexicon.read(table, bad=bad, cache=tmp_path / "cache")
        assert bad.notices[CASE_NOTICE] == 1


def test_a_cue_that_is_an_abbreviation_too_stays_a_cue() -> None:
    words = lexicon(("NO", "nitric oxide"), ("fever", "fever"))
    assert [(m.concept, m.negated) for m in Annotator(words).annotate("NO FEVER.")] == [
        ("nitric oxide", False),
        ("fever", True),
    ]


TERMS = ["all", "ALL", "ms", "MS", "all ms", "no all", "ms-all", "in all", "T4", "t4 all", "aspirin"]


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.sampled_from(TERMS), min_size=1, max_size=6, unique=True),
    st.lists(
        st.sampled_from(["all", "ALL", "All", "ms", "MS", "Ms", "no", "NO", "in", "T4", "t4", "-", "aspirin", "x"]),
        max_size=10,
    ),
)
def test_against_a_plain_matcher(chosen: list[str], words: list[str]) -> None:
    """Leftmost-longest over tokens; a token of an abbreviation must be equal, any other equal without case."""
    chosen = [term for term in chosen if not (term.upper() in chosen and term != term.upper() and len(term) <= 4)]
    table = lexicon(*((term, term) for term in chosen))
    tokens = TOKEN.findall(" ".join(words))
    expected: list[str] = []
    place = 0
    while place < len(tokens):
        best = max(
            (t for t in chosen if _matches(TOKEN.findall(t), tokens[place:], t)), key=lambda t: len(TOKEN.findall(t)),
            default=None,
        )  # fmt: skip
        expected += [best] if best else []
        place += len(TOKEN.findall(best)) if best else 1
    assert concepts(table, " ".join(words)) == expected


def _matches(term: list[str], tokens: list[str], written: str) -> bool:
    exact = len(written) <= 4 and written.isupper()
    return len(term) <= len(tokens) and all(
        a == b if exact else a.lower() == b.lower() for a, b in zip(term, tokens, strict=False)
    )


def test_common_words_are_named_with_their_counts(tmp_path: Path) -> None:
    table = put(tmp_path / "l.tsv", "term\tconcept\nwas\tC1\nfever\tC2\nALL\tC3\n")
    notes = put(tmp_path / "n.tsv", "doc_id\ttext\n1\tIt was fever\n2\tIt was nothing\n3\tfever\n")
    bad = BadRows()
    build_graph(notes, tmp_path / "graph", table, bad=bad)
    named = {re.search(r"'(\w+)'", what)[1]: count for what, count in bad.notices.items() if "common" in what}  # type: ignore[index]
    assert named == {"was": 2}
