"""Input made to hurt: texts that were quadratic, records that ended a build, lines and archives without end.

Sizes are such that quadratic work would take hours, so that finishing is the test and no clock is needed.
"""

from __future__ import annotations

import base64
import copy
import gzip
import io
import json
import random
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import pytest
from corpus_files import put, read
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage import csv_records, input_files, json_stream
from cogstage.corpus.annotate import Annotator
from cogstage.corpus.lexicon import Entry, Lexicon
from cogstage.corpus.markup import text_of_markup
from cogstage.corpus.readers import open_reader
from cogstage.corpus.tokens import normalise, sentence_breaks
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions
from cogstage.tables import BadRows

LEXICON = Lexicon.build([Entry("fever"), Entry("cough")])
LARGE, FEWER = 500_000, 100_000


@pytest.mark.parametrize(
    "text",
    ["fever" + "\n" * LARGE, "fever." + " \n" * LARGE, "fever" + "\n" * LARGE + "cough", "fever." + ")" * LARGE,
     "." * LARGE, "fever +" + "\u0301\u0327" * LARGE, "\u0301" * LARGE + "fever", "a\n" * FEWER, ". " * FEWER],
)  # fmt: skip
def test_texts_are_annotated_in_linear_time(text: str) -> None:
    annotator = Annotator(LEXICON)
    rows = annotator.term_rows([text])
    assert len(rows[2]) == text.count("fever") + text.count("cough")
    assert len(Annotator(LEXICON, context=False).term_rows([text], sentences=False)[2]) == len(rows[2])


@given(st.text(alphabet="aé\u0301\u0327\u0323 \n", max_size=60))
def test_normalisation_is_nfkc_where_no_run_of_marks_is_absurd(text: str) -> None:
    assert normalise(text) == unicodedata.normalize("NFKC", text) or "\u0301" * 8 in text or len(text) > 30


def test_white_space_at_the_end_makes_no_sentence() -> None:
    assert list(sentence_breaks("One. Two.\n\n \n")) == [(5, False)]


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("<p>a &amp; <b>b</b></p>", "a & b"), ("<script>x</script>a<STYLE>y</style >b", "a b"), ("a < b", "a < b"),
        ("<script>never closed", "never closed"), ("a<br", "a<br"), ("<scripted>a</scripted>", "a"), ("", ""),
        ("<script" * LARGE, "<script" * LARGE), ("<script>" * LARGE + "a", "a"), ("<" * LARGE, "<" * LARGE),
        ("<style>x" * (LARGE // 10) + "</style>a", "a"),
    ],
)  # fmt: skip
def test_markup_is_taken_away_in_linear_time(markup: str, words: str) -> None:
    assert text_of_markup(markup).split() == words.split()


def test_codes_with_wide_gaps(tmp_path: Path) -> None:
    gap = " " * 1_000_000
    (document,) = read(put(tmp_path / "d.tsv", f"doc_id\tcodes\n1\tA{gap};B{gap}x;{gap}\n"))
    assert document.codes == ("A", f"B{gap}x")


SURROGATE = '"\\ud800"'
GOOD_NOTE = '{"doc_id": "g", "codes": ["A", "B"]}'
GOOD_BIOC = {
    "id": "g",
    "passages": [
        {"text": "x", "annotations": [{"text": t, "infons": {"type": "Gene", "identifier": t}} for t in ("A", "B")]}
    ],
}
GOOD_FHIR = [
    {"resourceType": "Condition", "id": c, "code": {"coding": [{"code": c}]}, "subject": {"reference": "Patient/1"}}
    for c in ("A", "B")
]


@pytest.mark.parametrize(
    ("name", "bad_line", "good_lines"),
    [
        ("n.jsonl", f'{{"doc_id": "b", "codes": [{SURROGATE}, "A"]}}', [GOOD_NOTE]),
        ("n.jsonl", f'{{"doc_id": {SURROGATE}, "codes": ["A"]}}', [GOOD_NOTE]),
        ("n.jsonl", '{"doc_id": "b", "codes": ["A"], "patient_id": {"a": 1}}', [GOOD_NOTE]),
        ("n.jsonl", '{"doc_id": ["b"], "codes": ["A"]}', [GOOD_NOTE]),
        ("n.jsonl", '{"doc_id": "b", "codes": [["A"]]}', [GOOD_NOTE]),
        ("n.jsonl", '{"doc_id": "b", "codes": {"A": 1}}', [GOOD_NOTE]),
        ("n.jsonl", f'{{"doc_id": {"9" * 5_000}, "codes": ["A"]}}', [GOOD_NOTE]),
        ("n.jsonl", "[" * 100_000, [GOOD_NOTE]),
        ("b.jsonl", '{"id": "b", "passages": [null]}', [json.dumps(GOOD_BIOC)]),
        ("b.jsonl", '{"id": "b", "passages": [{"annotations": ["A"]}]}', [json.dumps(GOOD_BIOC)]),
        ("b.jsonl", '{"id": "b", "passages": [{"annotations": [{"infons": "A"}]}]}', [json.dumps(GOOD_BIOC)]),
        ("b.jsonl", f'{{"id": {"9" * 5_000}, "passages": []}}', [json.dumps(GOOD_BIOC)]),
        ("f.ndjson", json.dumps({**GOOD_FHIR[0], "subject": "Patient/1"}), [json.dumps(r) for r in GOOD_FHIR]),
        ("f.ndjson", json.dumps({**GOOD_FHIR[0], "code": {"coding": ["A"]}}), [json.dumps(r) for r in GOOD_FHIR]),
        ("f.ndjson", json.dumps({**GOOD_FHIR[0], "code": {"coding": [{"code": {}}]}}),
         [json.dumps(r) for r in GOOD_FHIR]),
        ("f.ndjson", json.dumps({**GOOD_FHIR[0], "onsetDateTime": "9" * 5_000}), [json.dumps(r) for r in GOOD_FHIR]),
        ("f.ndjson", f'{{"resourceType": "Condition", "id": {"9" * 5_000}}}', [json.dumps(r) for r in GOOD_FHIR]),
        ("f.ndjson", '{"resourceType": "Condition", "code": {"coding": [{"code": "\\ud800"}]}, "subject": {}}',
         [json.dumps(r) for r in GOOD_FHIR]),
    ],
)  # fmt: skip
def test_one_bad_record_costs_one_record(tmp_path: Path, name: str, bad_line: str, good_lines: list[str]) -> None:
    path = put(tmp_path / name, "\n".join([good_lines[0], bad_line, *good_lines[1:]]) + "\n")
    options = BuildOptions(unit="patient-window" if name[0] == "f" else "document", window=None)
    with pytest.raises(CogstageError, match=name) as caught:
        build_graph(path, tmp_path / "graph", options=options)
    assert "\n" not in str(caught.value)
    bad = BadRows(skip=True)
    build_graph(path, tmp_path / "graph", options=options, bad=bad)
    assert (bad.count, Graph.load(tmp_path / "graph").vocabulary.term) == (1, ("A", "B"))


def test_sentences_that_are_null(tmp_path: Path) -> None:
    document = {**GOOD_BIOC, "passages": [{**GOOD_BIOC["passages"][0], "sentences": None}]}  # type: ignore[dict-item]
    assert [d.codes for d in read(put(tmp_path / "b.json", json.dumps({"documents": [document]})))] == [("A", "B")]


def test_a_long_number_inside_a_bundle(tmp_path: Path) -> None:
    entries = ",".join(json.dumps({"resource": resource}) for resource in GOOD_FHIR)
    odd = f'{{"resource": {{"resourceType": "Patient", "weight": {"9" * 5_000}}}}}'
    path = put(tmp_path / "f.json", f'{{"resourceType": "Bundle", "entry": [{odd},{entries}]}}')
    assert [d.codes for d in read(path)] == [("A",), ("B",)]


VALUES: list[Any] = [None, "", "x", 0, 1.5, True, [], {}, ["x"], {"x": "y"}, [None], "\ud800", "9" * 40]
FULL_FHIR = [
    {**GOOD_FHIR[0], "onsetPeriod": {"start": "2020"}, "verificationStatus": {"coding": [{"code": "confirmed"}]},
     "encounter": {"reference": "Encounter/3"}},
    {"resourceType": "DocumentReference", "id": "d", "subject": {"reference": "Patient/1"}, "date": "2020-01-01",
     "context": {"encounter": [{"reference": "Encounter/3"}]},
     "content": [{"attachment": {"contentType": "text/html", "data": base64.b64encode(b"<p>fever").decode()}}]},
    {"resourceType": "MedicationRequest", "id": "m", "medicationReference": {"reference": "Medication/1"},
     "subject": {"identifier": {"value": "7"}}, "contained": [{"id": "1"}]},
    {"resourceType": "DiagnosticReport", "id": "r", "code": {"text": "x"}, "conclusion": "fever",
     "conclusionCode": [{"coding": [{"code": "c"}]}], "presentedForm": [{"data": "eA=="}], "subject": {}},
]  # fmt: skip


def spoil(value: Any, chance: random.Random) -> Any:
    """The same JSON with one of its parts replaced by something else."""
    value = copy.deepcopy(value)
    paths: list[tuple[Any, Any]] = []
    stack: list[Any] = [value]
    while stack:
        holder = stack.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            paths.append((holder, key))
            if isinstance(holder[key], (dict, list)):
                stack.append(holder[key])
    holder, key = chance.choice(paths)
    holder[key] = chance.choice(VALUES)
    return value


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_spoilt_records_never_end_a_run_that_may_skip(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    chance = random.Random(seed)
    folder = tmp_path_factory.getbasetemp()
    bioc = {**GOOD_BIOC, "passages": [{**GOOD_BIOC["passages"][0], "sentences": [{"text": "y"}]}]}  # type: ignore[dict-item]
    table = {"doc_id": 5, "text": "fever", "patient_id": 7.0, "date": "2020-01-01", "codes": ["A"], "visit_id": 3}
    code = {"patient_id": 7, "date": "2020", "code": "A", "name": "alpha", "type": "x", "doc_id": "v"}
    for format, record in [("fhir", chance.choice(FULL_FHIR)), ("bioc", bioc), ("table", table), ("table", code)]:
        path = folder / "spoilt.jsonl"
        path.write_text(json.dumps(spoil(record, chance)) + "\n", encoding="utf-8")
        bad = BadRows(skip=True)
        reader = open_reader(path, format, bad=bad)
        documents = list(reader)
        assert len(documents) <= 1
        for document in documents:
            json.dumps([document.doc_id, document.text, *document.codes]).encode()
            reader.names_of(document.codes)


def test_a_line_without_end_is_refused_and_the_next_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (input_files, csv_records, json_stream):
        monkeypatch.setattr(module, "LONGEST_LINE", 1 << 17)
    long = "x" * (1 << 18)
    files = {
        "a.tsv": f"doc_id\ttext\n1\tgood\n2\t{long}\n3\tgood\n",
        "a.csv": f'doc_id,text\n1,good\n2,"{long}"\n3,good\n',
        "a.jsonl": "".join(json.dumps({"doc_id": n, "text": long if n == 2 else "good"}) + "\n" for n in (1, 2, 3)),
        "b.pubtator": f"1|t|good\n2|t|{long}\n3|t|good\n",
        "c.ndjson": "".join(
            json.dumps({**GOOD_FHIR[0], "id": str(n), "note": long if n == 2 else ""}) + "\n" for n in (1, 2, 3)
        ),
    }
    for name, text in files.items():
        path = put(tmp_path / name, text)
        with pytest.raises(CogstageError, match="131,072 characters"):
            read(path)
        bad = BadRows(skip=True)
        assert [d.doc_id.split("/")[-1] for d in read(path, bad=bad)] == ["1", "3"]
        assert bad.count == 1
    bundle = {"resourceType": "Bundle", "entry": [{"resource": {**GOOD_FHIR[0], "note": long}}]}
    with pytest.raises(CogstageError, match="value longer than the limit of 131,072 characters"):
        read(put(tmp_path / "d.json", json.dumps(bundle)))


def test_a_decompression_bomb_is_stopped(tmp_path: Path) -> None:
    raw = io.BytesIO()
    with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=9) as packed:
        packed.write(b'{"doc_id": "1", "text": "')
        for _ in range(100):
            packed.write(b" " * (1 << 20))
    bomb = tmp_path / "n.jsonl.gz"
    bomb.write_bytes(raw.getvalue())
    with pytest.raises(CogstageError, match="unpacks to more than 200 times its size"):
        read(bomb, "table", bad=BadRows(skip=True))
    with zipfile.ZipFile(tmp_path / "n.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("n.txt", b" " * (100 << 20))
    with pytest.raises(CogstageError, match="unpacks to more than 200 times its size"):
        read(tmp_path / "n.zip", bad=BadRows(skip=True))


def test_archives_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "n.zip").write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(CogstageError, match=r"n\.zip is not a readable \.zip archive"):
        read(tmp_path / "n.zip")
    with zipfile.ZipFile(tmp_path / "e.zip", "w") as archive:
        archive.writestr(".hidden", "x")
    with pytest.raises(UsageError, match="contains no files"):
        read(tmp_path / "e.zip")
