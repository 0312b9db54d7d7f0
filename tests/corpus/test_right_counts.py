"""Identifiers, patients and documents are told apart: against counts made in plain Python from the documentation."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_files import put, read

from cogstage.corpus.formats.annotated import identifiers
from cogstage.corpus.readers import WITHOUT_PATIENT, SeenIds, open_reader
from cogstage.corpus.records import as_code, as_concept, as_id, as_patient
from cogstage.errors import CogstageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions
from cogstage.tables import BadRows


def pairs(units: Iterable[Iterable[str]]) -> Counter[tuple[str, str]]:
    return Counter(pair for unit in units for pair in itertools.combinations(sorted(set(unit)), 2))


def edges_of(folder: Path) -> Counter[tuple[str, str]]:
    graph = Graph.load(folder)
    upper = graph.matrix.tocoo()
    term = graph.vocabulary.term
    found = {(term[i], term[j]): int(n) for i, j, n in zip(upper.row, upper.col, upper.data, strict=True) if i < j}
    return Counter(found)


@pytest.mark.parametrize(
    ("value", "type", "parts", "codes"),
    [
        ("c|SUB|G|181|A", "DNAMutation", "", ["c|SUB|G|181|A"]),
        ("c|SUB|G|181|A", "SequenceVariant", "", ["c|SUB|G|181|A"]),
        ("tmVar:p|SUB|V|600|E;HGVS:p.V600E;CorrespondingGene:673", "ProteinMutation", "",
         ["tmVar:p|SUB|V|600|E;HGVS:p.V600E;CorrespondingGene:673"]),
        ("3630;3643", "Gene", "", ["gene:3630", "gene:3643"]),
        ("3630,3643", "GeneOrGeneProduct", "", ["gene:3630", "gene:3643"]),
        ("D003920,D006973", "DiseaseOrPhenotypicFeature", "", ["D003920", "D006973"]),
        ("D014786|D006311", "Disease", "visual impairment|auditory impairment", ["D014786", "D006311"]),
        ("D014786|D006311", "Disease", "", ["D014786|D006311"]),
        ("D014786|D006311", "CompositeMention", "", ["D014786", "D006311"]),
        ("1,2-dichloroethane", "Compound", "", ["1,2-dichloroethane"]),
        ("-", "Gene", "", []), ("-1", "Disease", "", []), ("", "Gene", "", []),
        ("D1;D1", "Chemical", "", ["D1"]),
    ],
)  # fmt: skip
def test_identifiers_are_cut_only_where_several_are_meant(value: str, type: str, parts: str, codes: list[str]) -> None:
    assert identifiers(value, type, parts) == codes


VARIANT = "c|SUB|G|181|A"


def literature() -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Documents with their annotations (mention, type, identifier)."""
    chance = random.Random(3)
    pool = [("G181A", "DNAMutation", VARIANT), ("insulin", "Gene", "3630;3643"), ("diabetes", "Disease", "D003920"),
            ("aspirin", "Chemical", "D001241"), ("V600E", "ProteinMutation", "p|SUB|V|600|E"),
            ("ulcer", "Disease", "-1"), ("BRCA1", "Gene", "672"), ("181", "Gene", "181")]  # fmt: skip
    return [(str(n), chance.sample(pool, chance.randint(1, 6))) for n in range(60)]


def wanted_pairs() -> Counter[tuple[str, str]]:
    def codes(identifier: str, type: str) -> list[str]:
        if identifier == "-1":
            return []
        return [f"gene:{number}" for number in identifier.split(";")] if type == "Gene" else [identifier]

    return pairs([code for _, t, i in annotations for code in codes(i, t)] for _, annotations in literature())


def test_pubtator_and_bioc_give_the_same_right_counts(tmp_path: Path) -> None:
    tator = "\n".join(
        f"{n}|t|Title\n{n}|a|Text\n" + "".join(f"{n}\t0\t3\t{m}\t{t}\t{i}\n" for m, t, i in found)
        for n, found in literature()
    )
    documents = [
        {
            "id": n,
            "passages": [
                {
                    "text": "Text",
                    "annotations": [{"text": m, "infons": {"type": t, "identifier": i}} for m, t, i in found],
                }
            ],
        }
        for n, found in literature()
    ]
    xml = "".join(
        f"<document><id>{n}</id><passage><text>Text</text>"
        + "".join(
            f'<annotation><infon key="type">{t}</infon><infon key="identifier">{i}</infon><text>{m}</text></annotation>'
            for m, t, i in found
        )
        + "</passage></document>"
        for n, found in literature()
    )
    files = [
        put(tmp_path / "a.pubtator", tator),
        put(tmp_path / "b.json", json.dumps({"documents": documents})),
        put(tmp_path / "c.xml", f"<collection>{xml}</collection>"),
    ]
    for path in files:
        build_graph(path, tmp_path / "graph", options=BuildOptions(unit="document"))
        assert edges_of(tmp_path / "graph") == wanted_pairs()


@pytest.mark.parametrize(
    "value", ["", " ", "NULL", "null", "nan", "NaN", "None", "NA", "<NA>", float("nan"), None, "\\N"]
)
def test_no_patient_in_every_spelling(value: object) -> None:
    assert as_patient(value) is None


@pytest.mark.parametrize(("value", "id"), [("1.0", "1"), (1.0, "1"), ("1", "1"), (1, "1"), ("372328.0", "372328"),
                                           ("1.5", "1.5"), ("a.0", "a.0"), ("007", "007"), (" 7 ", "7")])  # fmt: skip
def test_whole_numbers_written_as_floats(value: object, id: str) -> None:
    assert as_id(value) == as_patient(value) == id


@pytest.mark.parametrize("value", ["0", "0.0", 0, 0.0, "00", "0.00", "", None, "nan", "NULL", "-0"])
def test_concept_0_in_every_spelling(value: object) -> None:
    assert as_concept(value) == as_code(value) == ""


def test_codes_of_icd_9_keep_their_zero() -> None:
    assert [as_code(code) for code in ("250.0", "250.00", "372328.0", "372328", 372328.0)] == [
        "250.0", "250.00", "372328", "372328", "372328",
    ]  # fmt: skip


MISSING = ["", "NULL", "NaN", "nan", "None"]


def test_records_without_a_patient_are_units_of_their_own(tmp_path: Path) -> None:
    rows = [(f"{p}.0" if p % 2 else str(p), "2020-01-01", f"C{c}") for p in (1, 2, 3) for c in (1, 2)]
    rows += [(missing, "2020-01-01", code) for missing in MISSING for code in ("C1", "C9")]
    rows += [("1", "2020-01-01", "C3"), ("2.0", "2020-01-01", "0.0"), ("2", "2020-01-01", "0")]
    text = "patient_id,date,code\n" + "".join(",".join(row) + "\n" for row in rows)
    wanted = pairs([["C1", "C2", "C3"], ["C1", "C2"], ["C1", "C2"]])  # strangers make no pair
    bad = BadRows()
    options = BuildOptions(unit="patient-window", window=7)
    build_graph(put(tmp_path / "r.csv", text), tmp_path / "graph", options=options, bad=bad)
    assert edges_of(tmp_path / "graph") == wanted
    assert bad.notices[WITHOUT_PATIENT] == 2 * len(MISSING)
    graph = Graph.load(tmp_path / "graph")
    assert graph.vocabulary.count[graph.vocabulary.index["C9"]] == len(MISSING)
    table = pa.table({
        "patient_id": [1.0, 1.0, None, float("nan"), None], "date": ["2020-01-01"] * 5, "code": [*"ababc"],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "r.parquet")
    build_graph(tmp_path / "r.parquet", tmp_path / "graph", options=options)
    assert edges_of(tmp_path / "graph") == Counter({("a", "b"): 1})


def note_file(path: Path, notes: list[tuple[str, str]]) -> Path:
    lines = [json.dumps({"doc_id": doc_id, "text": text}) for doc_id, text in notes]
    return put(path, "\n".join(lines) + "\n")


LEXICON = "term\tconcept\nfever\tF\ncough\tC\nrash\tR\n"


@pytest.mark.parametrize("unit", ["document", "sentence"])
def test_a_doc_id_means_a_document_of_its_file(tmp_path: Path, unit: str) -> None:
    lexicon = put(tmp_path / "lexicon.tsv", LEXICON)
    a = note_file(tmp_path / "a.jsonl", [("1", "fever and cough")])
    b = note_file(tmp_path / "b.jsonl", [("1", "rash and cough")])
    build_graph([a, b], tmp_path / "graph", lexicon, BuildOptions(unit=unit))  # type: ignore[arg-type]
    assert edges_of(tmp_path / "graph") == Counter({("C", "F"): 1, ("C", "R"): 1})
    with pytest.raises(CogstageError, match=r"b\.jsonl:1: document '1' is already in the files"):
        build_graph(
            [a, b], tmp_path / "graph", lexicon, BuildOptions(unit=unit, reader={"ids_across_files": True})  # type: ignore[arg-type]
        )  # fmt: skip
    c = note_file(tmp_path / "c.jsonl", [("1", "fever and cough"), ("2", "rash"), ("1", "fever and rash")])
    with pytest.raises(CogstageError, match=r"c\.jsonl:3: document '1' is already in the file"):
        build_graph(c, tmp_path / "graph", lexicon, BuildOptions(unit=unit))  # type: ignore[arg-type]
    bad = BadRows(skip=True)
    build_graph(c, tmp_path / "graph", lexicon, BuildOptions(unit=unit), bad=bad)  # type: ignore[arg-type]
    assert (edges_of(tmp_path / "graph"), bad.count) == (Counter({("C", "F"): 1}), 1)


@pytest.mark.parametrize("unit", ["document", "sentence"])
def test_rows_of_a_visit_are_one_document(tmp_path: Path, unit: str) -> None:
    header = "doc_id,patient_id,date,code\n"
    a = put(tmp_path / "conditions.csv", header + "v1,7,2020-01-01,I10\nv2,8,2020-01-01,E11\nv1,7,2020-01-01,J45\n")
    b = put(tmp_path / "drugs.csv", header + "v1,7,2020-01-01,aspirin\n")
    build_graph([a, b], tmp_path / "graph", options=BuildOptions(unit=unit))  # type: ignore[arg-type]
    assert edges_of(tmp_path / "graph") == pairs([["I10", "J45"]])
    options = BuildOptions(unit=unit, reader={"ids_across_files": True})  # type: ignore[arg-type]
    build_graph([a, b], tmp_path / "graph", options=options)
    assert edges_of(tmp_path / "graph") == pairs([["I10", "J45", "aspirin"]])


def test_seen_ids_against_a_set() -> None:
    chance, seen, known = random.Random(1), SeenIds(), set()
    for _ in range(20_000):
        identifier = str(chance.randrange(9_000))
        assert seen.add(identifier) == (identifier not in known)
        known.add(identifier)


@pytest.mark.parametrize("repeat", [7, 700])
def test_an_unclosed_quote_costs_one_row(tmp_path: Path, repeat: int) -> None:
    lines = ["doc_id,text"] + [f'{n},"note {n}, with a comma"' if n % 3 else f"{n},note {n}" for n in range(repeat)]
    for at, broken in ((1, '0,"never closed'), (repeat, f'{repeat - 1},"never closed')):
        text = [*lines]
        text[at] = broken
        bad = BadRows(skip=True)
        documents = read(put(tmp_path / "n.csv", "\n".join(text) + "\n"), bad=bad)
        assert [d.doc_id for d in documents] == [str(n) for n in range(repeat) if n != at - 1]
        assert (bad.count, bad.lines) == (1, 1)
        assert f"n.csv:{at + 1}:" in bad.first[0]
        with pytest.raises(CogstageError, match=rf"n\.csv:{at + 1}: "):
            read(tmp_path / "n.csv")


def test_a_bad_note_of_several_lines_says_what_it_cost(tmp_path: Path) -> None:
    text = 'doc_id,text\n1,"one\ntwo"\n2,"a "bad" one\nwith more lines\nand more"\n3,three\n4,"fo""ur\n4"\n'
    bad = BadRows(skip=True)
    documents = read(put(tmp_path / "n.csv", text), bad=bad)
    assert [(d.doc_id, d.text) for d in documents] == [("1", "one\ntwo"), ("3", "three"), ("4", 'fo"ur\n4')]
    assert (bad.count, bad.lines) == (1, 3)
    assert bad.first[0].endswith("3 lines left out")
    assert any("1 bad rows (3 lines) were skipped" in line for line in bad.summary())


def test_a_row_that_swallows_the_next_one_is_noticed(tmp_path: Path) -> None:
    bad = BadRows(skip=True)
    documents = read(put(tmp_path / "n.csv", 'doc_id,text\n1,"open\n2,",odd"\n3,x\n'), bad=bad)
    assert [(d.doc_id, d.text) for d in documents] == [("2", ",odd"), ("3", "x")]
    assert bad.lines == 1


def test_unbalanced_quotes_everywhere_stop_the_file(tmp_path: Path) -> None:
    path = put(tmp_path / "n.csv", "doc_id,text\n" + 'a","b\n' * 20_000)
    with pytest.raises(CogstageError, match="too many rows to continue reading"):
        read(path, bad=BadRows(skip=True))


def omop(folder: Path, nlp: str) -> Path:
    put(folder / "NOTE.csv", "note_id,person_id,note_date,note_text\n1,7,2020-01-01,fever and cough\n")
    put(folder / "NOTE_NLP.csv", "note_nlp_id,note_id,note_nlp_concept_id,term_exists\n" + nlp)
    return folder


@pytest.mark.parametrize("rows", ["", "1,1,0,Y\n", "1,1,0.0,\n2,1,,Y\n", "1,1,55,N\n"])
def test_a_note_nlp_without_concepts_does_not_replace_the_notes(tmp_path: Path, rows: str) -> None:
    bad = BadRows()
    reader = open_reader(omop(tmp_path / "cdm", rows), bad=bad)
    assert [d.text for d in reader] == ["fever and cough"]
    assert "NOTE was read" in bad.summary()[0]


def test_a_note_nlp_with_concepts_does(tmp_path: Path) -> None:
    folder, bad = omop(tmp_path / "cdm", "1,1,55.0,Y\n2,1,56,\n"), BadRows()
    assert [d.codes for d in open_reader(folder, bad=bad)] == [("55", "56")]
    assert "NOTE_NLP was read" in bad.summary()[0]
    assert [d.text for d in open_reader(folder, tables=["note"])] == ["fever and cough"]


def test_names_are_counted_with_their_patients(tmp_path: Path) -> None:
    rows = [("1", "hypertension"), ("2", "hypertension"), ("2", "hypertension"), ("3", "HTN - pt Jones")]
    text = "patient_id,date,code,name,type\n" + "".join(f"{p},2020,I10,{n},disorder\n" for p, n in rows)
    reader = open_reader(put(tmp_path / "r.csv", text))
    list(reader)
    assert reader.names == {"I10": ("hypertension", "disorder")}
    counted = [(n.name, n.count, n.patients, n.vocabulary) for n in reader.all_names_of(["I10"]).names_of("I10")]
    assert counted == [("hypertension", 3, 2, False), ("HTN - pt Jones", 1, 1, False)]
