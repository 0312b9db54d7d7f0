"""Files under a wrong name and options with a wrong value: one line that says what to do."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_files import put, read

from cogstage.cli.main import run
from cogstage.errors import CogstageError, UsageError

CSV = "doc_id,text\n1,fever\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", gzip.compress(CSV.encode(), mtime=0), r"a\.csv contains gzip data.*rename it to a\.csv\.gz"),
        ("a.jsonl", pa.compress(b"{}", codec="zstd", asbytes=True), r"zstd data.*rename it to a\.jsonl\.zst"),
        ("a.xml", b"PK\x03\x04 and more", r"zip data.*rename it to a\.zip"),
        ("a.csv", b"PAR1 and more", r"Parquet data.*rename it to a\.parquet"),
    ],
)  # fmt: skip
def test_a_file_under_the_name_of_another_kind(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read(tmp_path / name)


def test_parquet_inside_something_else(tmp_path: Path) -> None:
    pq.write_table(pa.table({"doc_id": ["1"], "text": ["fever"]}), tmp_path / "a.parquet")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(tmp_path / "a.parquet", "a.parquet")
    with pytest.raises(UsageError, match=r"a\.zip/a\.parquet: Parquet is not read inside an archive; unpack it first"):
        read(tmp_path / "a.zip")
    put(tmp_path / "b.parquet.gz", (tmp_path / "a.parquet").read_bytes())
    with pytest.raises(UsageError, match=r"Parquet is compressed already .*unpack it first"):
        read(tmp_path / "b.parquet.gz")


@pytest.mark.parametrize("date", ["03/04/2020", "3.4.2020", "03-04-20", "03/04/2020 10:30"])
def test_a_date_of_another_order_names_the_option(tmp_path: Path, date: str) -> None:
    path = put(tmp_path / "n.csv", f"doc_id,text,date\n1,fever,{date}\n")
    with pytest.raises(CogstageError, match=r"n\.csv:2, column date: .*day or month first\? Set `date_format`"):
        read(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--context-rules", "pt"], "--context-rules pt is neither a file nor one of the languages en, de, es, fr, it"),
        (["--vocabulary", "athena"], "athena is not a folder; --vocabulary is an unpacked download"),
        (["--roll-up", "ingredient", "--vocabulary", "athena"], "athena is not a folder"),
    ],
)
def test_options_of_the_command_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "n.csv", CSV)
    put(tmp_path / "l.csv", "term\nfever\n")
    with pytest.raises(SystemExit) as ended:
        run(["graph", "build", "n.csv", "--lexicon", "l.csv", "--out", "g", *options])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "g").exists()
