"""Tables of documents and coded records, MIMIC notes: what comes out, what is refused and how it is said."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_files import DAY, put, read, without_place

from cogstage.corpus.readers import open_reader, recognise
from cogstage.corpus.records import parse_date
from cogstage.errors import CogstageError, UsageError
from cogstage.tables import BadRows

ROWS = [
    {"doc_id": "1", "text": "Fever, no cough", "patient_id": "7", "date": "2011-08-11", "codes": "A;B"},
    {"doc_id": "2", "text": 'He said "no"', "patient_id": "", "date": "", "codes": ""},
]
EXPECTED = [("1", "Fever, no cough", "7", DAY, ("A", "B")), ("2", 'He said "no"', None, None, ())]


def table(kind: str, path: Path) -> Path:
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
        return path
    if kind == "jsonl":
        return put(path, "".join(json.dumps(row) + "\n" for row in ROWS))
    if kind == "csv":
        lines = [",".join('"' + value.replace('"', '""') + '"' for value in row.values()) for row in ROWS]
        return put(path, "\n".join([",".join(ROWS[0]), *lines]))
    return put(path, "\n".join("\t".join(row) for row in [list(ROWS[0]), *(list(row.values()) for row in ROWS)]))


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_documents_in_every_kind_of_table(tmp_path: Path, kind: str, packing: str) -> None:
    if kind == "parquet" and packing:
        return
    path = table(kind, tmp_path / f"documents.{kind}{packing}")
    reader = open_reader(path)
    assert without_place(list(reader)) == EXPECTED
    assert reader.position() == reader.bytes_total == path.stat().st_size


def test_several_files_and_globs_in_a_stable_order(tmp_path: Path) -> None:
    for name in "ba":
        put(tmp_path / f"{name}.tsv", f"doc_id\ttext\n{name}\tx\n")
    reader = open_reader(str(tmp_path / "*.tsv"))
    assert [d.doc_id for d in reader] == ["a", "b"]
    assert [file.name for file in reader.files] == ["a.tsv", "b.tsv"]
    assert [d.doc_id for d in reader.read_file(reader.files[1])] == ["b"]
    assert [d.doc_id for d in read([tmp_path / "b.tsv", tmp_path / "a.tsv"])] == ["b", "a"]
    assert [d.doc_id for d in read(tmp_path)] == ["a", "b"]


def test_coded_records_and_their_names(tmp_path: Path) -> None:
    rows = "v1\t7\t2011-08-11\tI10\tHypertension\nv1\t7\t2011-08-11\tE11\tDiabetes\nv2\t7\t2011\tI10\t\n"
    reader = open_reader(put(tmp_path / "r.tsv", "doc_id\tpatient_id\tdate\tcode\tname\n" + rows))
    first, second = reader
    assert without_place([first]) == [("v1", "", "7", DAY, ("I10", "E11"))]
    assert second.date == datetime.date(2011, 1, 1)
    assert reader.names == {"I10": ("Hypertension", ""), "E11": ("Diabetes", "")}
    assert reader.names_of(["E11", "X"]) == {"E11": ("Diabetes", "")}
    plain = put(tmp_path / "p.csv", "patient_id,date,code\n7,2011-08-11,I10\n7,2011-08-11,E11\n")
    assert [d.codes for d in read(plain)] == [("I10",), ("E11",)]
    assert len({d.doc_id for d in read(plain)}) == 2


def test_numbers_and_gaps_from_parquet(tmp_path: Path) -> None:
    columns = {"doc_id": [1, 2], "text": ["a", "b"], "patient_id": [7.0, None], "codes": [["x", "y"], None]}
    pq.write_table(pa.table({**columns, "date": [DAY, None]}), tmp_path / "d.parquet")
    assert without_place(read(tmp_path / "d.parquet")) == [("1", "a", "7", DAY, ("x", "y")), ("2", "b", None, None, ())]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.tsv", "doc_id\tbody\n1\tx\n", r"a\.tsv:1: no column text .* the columns are body, doc_id"),
        ("a.tsv", "id\ttext\n1\tx\n", r"a\.tsv:1: no column doc_id; the columns are id, text"),
        ("a.tsv", "doc_id\ttext\n1\n", r"a\.tsv:2: 1 columns where the header has 2"),
        ("a.tsv", "doc_id\ttext\tdate\n1\tx\tsoon\n", r"a\.tsv:2, column date: 'soon' is not a date"),
        ("a.tsv", "doc_id\ttext\tdate\n1\tx\t2011-02-30\n", r"a\.tsv:2, column date: "),
        ("a.tsv", "person\tcode\n1\tx\n", r"a\.tsv:1: no column patient_id"),
        ("a.csv", 'doc_id,text\n1,"x" y\n', r"a\.csv:2: "),
        ("a.csv", 'doc_id,text\n1,"never closed\n', r"a\.csv:2: "),
        ("a.jsonl", '{"doc_id": 1, "text": "x"}\n{"doc_id": 2,\n', r"a\.jsonl:2, column \d+: not JSON"),
        ("a.jsonl", '{"doc_id": 1, "text": "x"}\n[1]\n', r"a\.jsonl:2: not a JSON object"),
        ("a.jsonl", '{"doc_id": 1, "text": "x"}\n{"doc_id": 2}\n', r"a\.jsonl:2: no column text"),
        ("a.jsonl", '{"doc_id": 1, "text": 5}\n', r"a\.jsonl:1, column text: expected text, not int"),
        ("a.tsv", b"doc_id\ttext\n1\tx\n2\tna\xefve\n", r"a\.tsv:3, column text: not UTF-8"),
        ("a.jsonl", b'{"doc_id": 1, "text": "na\xefve"}\n', r"a\.jsonl:1: not UTF-8"),
    ],
)
def test_bad_rows_are_named_or_counted(tmp_path: Path, name: str, content: str | bytes, said: str) -> None:
    path = put(tmp_path / name, content)
    with pytest.raises(CogstageError, match=said) as caught:
        read(path, "table")
    assert "\n" not in str(caught.value)
    if "no column" in said and name != "a.jsonl":
        return  # a table without the column has no good rows
    bad = BadRows(skip=True)
    read(path, "table", bad=bad)
    assert bad.count == 1
    assert len(bad.first) == 1


@pytest.mark.parametrize("content", ["", "\n\n", "doc_id\ttext\tText\n1\tx\ty\n"])
def test_headers_that_cannot_be_read(tmp_path: Path, content: str) -> None:
    """A column that is there twice could mean either: better no count than a wrong one."""
    with pytest.raises(CogstageError, match="the column Text occurs twice" if content.strip() else "is empty"):
        read(put(tmp_path / "a.tsv", content), "table")
    other = put(tmp_path / "b.tsv", "doc_id\tnote\ttext\tnote\n1\tx\ty\tz\n")
    assert [d.text for d in read(other)] == ["y"]  # nobody asks for the column that is there twice


def test_good_rows_around_a_bad_one_are_kept(tmp_path: Path) -> None:
    bad = BadRows(skip=True)
    path = put(tmp_path / "a.tsv.gz", b"doc_id\ttext\n1\tx\n2\tna\xefve\n3\n4\tna\xc3\xafve\n")
    assert [(d.doc_id, d.text) for d in read(path, bad=bad)] == [("1", "x"), ("4", "naïve")]
    assert bad.count == 2


def test_bad_rows_are_counted_by_kind_and_empty_notes_are_none(tmp_path: Path) -> None:
    rows = ["doc_id,text,date", *(f"{n},note,soon {n}" for n in range(7)), *(f"e{n},,2020-01-01" for n in range(33))]
    rows += ["a,fine,2020-01-01", "a,again,2020-01-02", "b,one,two,three"]
    bad = BadRows(skip=True)
    assert [d.doc_id for d in read(put(tmp_path / "n.csv", "\n".join(rows)), bad=bad)] == ["a"]
    assert bad.count == 9
    assert sorted(count for count, _ in bad.kinds.values()) == [1, 1, 7]
    assert bad.notices["documents without text, left out"] == 33
    lines = bad.summary()
    assert lines[0] == "documents without text, left out: 33"
    assert lines[1].startswith("9 bad rows were skipped")
    assert lines[2].startswith("  7 × ")
    assert "n.csv:2, column date: 'soon 0' is not a date" in lines[2]
    copy = BadRows(**bad.to_dict())
    copy.add(bad)
    assert sorted(count for count, _ in copy.kinds.values()) == [2, 2, 14]


@pytest.mark.parametrize("packing", ["gz", "zst"])
def test_a_file_cut_short(tmp_path: Path, packing: str) -> None:
    lines = "".join(f"{n}\ttext number {n * 7919 % 10007}\n" for n in range(20_000))
    path = put(tmp_path / f"a.tsv.{packing}", "doc_id\ttext\n" + lines)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(CogstageError, match="damaged or truncated"):
        read(path)


def test_what_is_not_there_or_unknown(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        open_reader(tmp_path / "none.tsv")
    with pytest.raises(UsageError, match="format not recognised"):
        open_reader(put(tmp_path / "x.docx", ""))
    with pytest.raises(UsageError, match="unknown format"):
        open_reader(put(tmp_path / "x.tsv", "doc_id\ttext\n"), "word")
    with pytest.raises(UsageError, match="the table reader has no option depth"):
        open_reader(tmp_path / "x.tsv", depth=3)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="contains no files"):
        open_reader(tmp_path / "empty")


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("2011-08-11", DAY), ("2011-08-11T23:59:59Z", DAY), ("2011-08-11 05:00", DAY), ("20110811", DAY),
        ("2011-08", datetime.date(2011, 8, 1)), ("2011", datetime.date(2011, 1, 1)), (" ", None), (None, None),
        (datetime.datetime(2011, 8, 11, 5), DAY), (2011, datetime.date(2011, 1, 1)),
    ],
)  # fmt: skip
def test_dates(value: object, day: datetime.date | None) -> None:
    assert parse_date(value) == day


@pytest.mark.parametrize("value", ["2011-13-01", "11/08/2011", "2011-08-11x", "99", "x", "2011-8-1"])
def test_dates_that_are_none(value: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_date(value)


def test_mimic_columns(tmp_path: Path) -> None:
    header = "ROW_ID,SUBJECT_ID,HADM_ID,CHARTDATE,CHARTTIME,STORETIME,CATEGORY,DESCRIPTION,CGID,ISERROR,TEXT"
    rows = '1,7,9,2011-08-11,,,Nursing,Report,,,"Line one\nLine two"\n2,7,9,2011-08-11,,,Nursing,Report,,1,withdrawn\n'
    path = put(tmp_path / "NOTEEVENTS.csv.gz", header + "\n" + rows + "3,8,9,,,,x,y,,,z\n")
    assert recognise(path) == "mimic"
    documents = read(path)
    assert without_place(documents) == [("1", "Line one\nLine two", "7", DAY, ()), ("3", "z", "8", None, ())]
    assert documents[1].where.endswith(":5")
