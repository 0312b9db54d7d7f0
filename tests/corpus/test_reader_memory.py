"""Readers hold a document at a time, however large the file."""

from __future__ import annotations

import base64
import gzip
import json
import random
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cogstage.corpus.readers import Reader, open_reader
from cogstage.corpus.records import Document

CHANCE = random.Random(7)


def text() -> str:
    """A thousand characters that do not pack to nothing."""
    return "fever and cough " * 30 + CHANCE.randbytes(250).hex()


def big_table(path: Path) -> None:
    with gzip.open(path, "wt", compresslevel=1) as handle:
        handle.write("doc_id\ttext\n")
        handle.writelines(f"{number}\t{text()}\n" for number in range(12_000))


def big_medline(path: Path) -> None:
    with gzip.open(path, "wt", compresslevel=1) as handle:
        handle.write("<PubmedArticleSet>")
        for number in range(6_000):
            article = f"<Article><ArticleTitle>{text()}</ArticleTitle></Article>"
            citation = f"<MedlineCitation><PMID>{number}</PMID>{article}</MedlineCitation>"
            handle.write(f"<PubmedArticle>{citation}</PubmedArticle>")
        handle.write("</PubmedArticleSet>")


def big_bundle(path: Path) -> None:
    with gzip.open(path, "wt", compresslevel=1) as handle:
        handle.write('{"resourceType": "Bundle", "entry": [')
        for number in range(6_000):
            data = base64.b64encode(text().encode()).decode()
            resource = {
                "resourceType": "DocumentReference",
                "id": str(number),
                "content": [{"attachment": {"data": data}}],
            }
            handle.write((",\n" if number else "") + json.dumps({"resource": resource}))
        handle.write("]}")


@pytest.mark.parametrize(
    ("name", "write"), [("a.tsv.gz", big_table), ("a.xml.gz", big_medline), ("a.json.gz", big_bundle)]
)
def test_memory_does_not_grow_with_the_file(tmp_path: Path, name: str, write: Callable[[Path], None]) -> None:
    write(tmp_path / name)
    reader: Reader = open_reader(tmp_path / name)
    stream: Iterator[Document] = iter(reader)
    next(stream)
    assert reader.position() < reader.bytes_total / 2  # the first document comes long before the file is read
    tracemalloc.start()
    count = sum(1 for _ in stream)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count > 5_000
    assert peak < 3_000_000  # the text is 6 to 12 MB
