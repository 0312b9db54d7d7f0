"""Readers hold a document at a time, however large the file."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cogstage.corpus.readers import Reader, open_reader
from cogstage.corpus.records import Document


def big_table(path: Path, text: str) -> None:
    with gzip.open(path, "wt", compresslevel=1) as handle:
        handle.write("doc_id\ttext\n")
        handle.writelines(f"{number}\t{text}\n" for number in range(12_000))


def big_medline(path: Path, text: str) -> None:
    with gzip.open(path, "wt", compresslevel=1) as handle:
        handle.write("<PubmedArticleSet>")
        for number in range(6_000):
            article = f"<Article><ArticleTitle>{text}</ArticleTitle></Article>"
            handle.write(
                f"<PubmedArticle><MedlineCitation><PMID>{number}</PMID>{article}</MedlineCitation></PubmedArticle>"
            )
        handle.write("</PubmedArticleSet>")


def big_bundle(path: Path, text: str) -> None:
    data = base64.b64encode(text.encode()).decode()
    resource = {"resourceType": "DocumentReference", "id": "1", "content": [{"attachment": {"data": data}}]}
    with gzip.open(path, "wt", compresslevel=1) as handle:
        handle.write('{"resourceType": "Bundle", "entry": [')
        handle.write(",\n".join(itertools.repeat(json.dumps({"resource": resource}), 6_000)))
        handle.write("]}")


@pytest.mark.parametrize(
    ("name", "write"), [("a.tsv.gz", big_table), ("a.xml.gz", big_medline), ("a.json.gz", big_bundle)]
)
def test_memory_does_not_grow_with_the_file(tmp_path: Path, name: str, write: Any) -> None:
    write(tmp_path / name, "fever and cough " * 60)
    reader: Reader = open_reader(tmp_path / name)
    stream: Iterator[Document] = iter(reader)
    next(stream)
    assert reader.position() < reader.bytes_total  # the first document comes before the file is read
    tracemalloc.start()
    count = sum(1 for _ in stream)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count > 5_000
    assert peak < 3_000_000  # the text is 6 to 12 MB
