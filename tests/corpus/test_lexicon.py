"""The lexicon table: what it takes, what it refuses, variants, and the compiled form on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogstage.corpus import lexicon_cache
from cogstage.corpus.annotate import Annotator
from cogstage.corpus.lexicon import Entry, Lexicon
from cogstage.errors import CogstageError, UsageError
from cogstage.tables import BadRows


def write(path: Path, *rows: str, header: str = "term\tconcept\tname\ttype") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def found(lexicon: Lexicon, text: str) -> list[str]:
    return [mention.concept for mention in Annotator(lexicon, context=False).annotate(text)]


def test_columns_names_and_types(tmp_path: Path) -> None:
    path = write(tmp_path / "l.tsv", "ASA\tC1\t\t", "aspirin\tC1\tAspirin\tdrug", "fever\tC2\t\tsymptom")
    lexicon = Lexicon.read(path, cache=False)
    assert lexicon.terms == ("ASA", "aspirin", "fever")
    assert lexicon.concepts == ("C1", "C2")
    assert lexicon.concept_names == ("Aspirin", "C2")
    assert lexicon.concept_types == ("drug", "symptom")
    assert lexicon.first_concept.tolist() == [0, 0, 1]
    assert found(lexicon, "ASA for FEVER, Asa") == ["C1", "C2"]


def test_terms_alone_are_their_own_concepts(tmp_path: Path) -> None:
    lexicon = Lexicon.read(write(tmp_path / "l.csv", "Fever", "chest  pain", header="Term"), cache=False)
    assert lexicon.concepts == ("fever", "chest pain")
    assert lexicon.concept_names == ("Fever", "chest  pain")
    assert found(lexicon, "chest pain") == ["chest pain"]


@pytest.mark.parametrize(("rule", "expected"), [("first", [["C1"]]), ("all", [["C1", "C2"]]), ("skip", [])])
def test_ambiguity(rule: str, expected: list[list[str]]) -> None:
    entries = [Entry("cold", "C1"), Entry("Cold", "C2"), Entry("flu", "C3")]
    lexicon = Lexicon.build(entries, ambiguity=rule)  # type: ignore[arg-type]
    mentions = Annotator(lexicon, context=False).annotate("a cold")
    assert [[lexicon.concepts[c] for c in lexicon.concepts_of(m.term_id)] for m in mentions] == expected
    assert lexicon.ambiguous == (rule == "all")


def test_stop_list(tmp_path: Path) -> None:
    stop = tmp_path / "stop.txt"
    stop.write_text("# words that are also terms\nWell\n\n", encoding="utf-8")
    lexicon = Lexicon.read(write(tmp_path / "l.tsv", "well\tC1\t\t", "flu\tC2\t\t"), stop_list=stop, cache=False)
    assert found(lexicon, "well flu") == ["C2"]
    with pytest.raises(UsageError, match="cannot be read"):
        Lexicon.read(tmp_path / "l.tsv", stop_list=tmp_path / "none.txt", cache=False)


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("headache", "headaches"),
        ("headaches", "headache"),
        ("biopsy", "biopsies"),
        ("allergies", "allergy"),
        ("metastasis", "metastases"),
        ("abscess", "abscesses"),
        ("beta-blocker", "beta blockers"),
        ("beta blocker", "beta-blocker"),
        ("non-small-cell lung cancer", "non small cell lung cancer"),
        ("virus", "viruses"),
    ],
)
def test_variants(term: str, text: str) -> None:
    assert found(Lexicon.build([Entry(term, "C")]), text) == []
    assert found(Lexicon.build([Entry(term, "C")], variants=True), text) == ["C"]


def test_a_variant_never_takes_the_place_of_a_term() -> None:
    lexicon = Lexicon.build([Entry("plant", "C1"), Entry("plants", "C2"), Entry("AIDS", "C3")], variants=True)
    assert found(lexicon, "plants plant AIDS aid aids") == ["C2", "C1", "C3"]


def test_repeated_rows_are_merged_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "l.tsv", "flu\tC1\t\t", "cold\tC2\t\t", "flu\tC1\t\t", "flu\tC1\tInfluenza\t")
    bad = BadRows()
    assert len(Lexicon.read(path, bad=bad, cache=False)) == 2
    assert (bad.count, sum(bad.notices.values())) == (0, 2)
    assert any("repeat a term" in line for line in bad.summary())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("term\tconcept\n", "has no terms"),
        ("", "is empty"),
        ("name\tconcept\nx\ty\n", "no column term; the columns are name, concept"),
        ("term\tconcept\n\tC1\n", r"l\.tsv:2, column term: no value"),
        ("term\tconcept\nx\n", r"l\.tsv:2: 1 columns where the header has 2"),
    ],
)
def test_tables_that_are_no_lexicon(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "l.tsv").write_text(content, encoding="utf-8")
    with pytest.raises(CogstageError, match=said):
        Lexicon.read(tmp_path / "l.tsv", cache=False)


def test_the_cache_gives_the_same_lexicon_and_notices_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, cache = write(tmp_path / "l.tsv", "flu\tC1\tInfluenza\td", "St. John's wort\tC2\t\t"), tmp_path / "cache"
    made = Lexicon.read(path, cache=cache)
    monkeypatch.setattr(Lexicon, "build", None)  # from here on only what is kept can answer
    kept = Lexicon.read(path, cache=cache)
    assert (kept.terms, kept.concepts, kept.concept_names, kept.tokens) == (
        made.terms, made.concepts, made.concept_names, made.tokens,
    )  # fmt: skip
    assert found(kept, "Flu, st. john's wort") == ["C1", "C2"]
    monkeypatch.undo()
    write(path, "flu\tC9\t\t")
    assert Lexicon.read(path, cache=cache).concepts == ("C9",)
    assert Lexicon.read(path, variants=True, cache=cache).concepts == ("C9",)
    assert len(list(cache.iterdir())) == 3


@pytest.mark.parametrize("damage", ["cut", "flip", "remove", "meta"])
def test_a_damaged_cache_is_made_again(tmp_path: Path, damage: str) -> None:
    path, cache = write(tmp_path / "l.tsv", "flu\tC1\t\t"), tmp_path / "cache"
    Lexicon.read(path, cache=cache)
    (folder,) = cache.iterdir()
    automaton = folder / "automaton.bin"
    if damage == "cut":
        automaton.write_bytes(automaton.read_bytes()[:10])
    elif damage == "flip":
        automaton.write_bytes(bytes(byte ^ 1 for byte in automaton.read_bytes()))
    elif damage == "remove":
        (folder / "tokens.parquet").unlink()
    else:
        (folder / "meta.json").write_text("{")
    if damage == "meta":  # no longer known to be ours, so it is left alone, and the lexicon is compiled each time
        assert found(Lexicon.read(path, cache=cache), "flu") == ["C1"]
        return
    assert found(Lexicon.read(path, cache=cache), "flu") == ["C1"]
    assert lexicon_cache.load(folder, BadRows()) is not None


def test_skipped_rows_are_counted_from_the_cache_too(tmp_path: Path) -> None:
    path, cache = write(tmp_path / "l.tsv", "flu\tC1\t\t", "\tC1\t\t"), tmp_path / "cache"
    for _ in range(2):
        bad = BadRows(skip=True)
        Lexicon.read(path, bad=bad, cache=cache)
        assert bad.count == 1
        assert "no value" in bad.first[0]
    with pytest.raises(CogstageError, match="no value"):
        Lexicon.read(path, cache=cache)


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = write(tmp_path / "l.tsv", "flu\tC1\t\t")
    assert len(Lexicon.read(path, cache=tmp_path / "file" / "below")) == 1


def test_old_lexicons_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COGSTAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(lexicon_cache, "MOST_KEPT", 2)
    for number in range(4):
        Lexicon.read(write(tmp_path / "l.tsv", f"flu{number}\tC1\t\t"))
    assert len(list((tmp_path / "cache" / "lexicons").iterdir())) == 2


def test_unknown_ambiguity_rule(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="first, all, skip"):
        Lexicon.read(write(tmp_path / "l.tsv", "flu\tC1\t\t"), ambiguity="some", cache=False)  # type: ignore[arg-type]
