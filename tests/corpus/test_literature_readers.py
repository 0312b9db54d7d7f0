"""MEDLINE, PubTator and BioC, written small by the tests; broken and hostile files."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from corpus_files import DAY, put, read, without_place
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cogstage.corpus.readers import open_reader, recognise
from cogstage.errors import CogstageError
from cogstage.tables import BadRows

MEDLINE = """<?xml version="1.0"?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle//EN" "https://dtd.example/pubmed.dtd">
<PubmedArticleSet>
<PubmedArticle><MedlineCitation><PMID Version="1">11</PMID><Article><Journal><JournalIssue><PubDate><Year>2011</Year>
<Month>Aug</Month><Day>11</Day></PubDate></JournalIssue></Journal>
<ArticleTitle>Aspirin &amp; <i>fever</i>.</ArticleTitle>
<Abstract><AbstractText Label="AIM">To  see.</AbstractText><AbstractText>H<sub>2</sub>O.</AbstractText></Abstract>
</Article>
<MeshHeadingList><MeshHeading><DescriptorName UI="D001241" MajorTopicYN="N">Aspirin</DescriptorName>
<QualifierName UI="Q000627" MajorTopicYN="Y">therapeutic use</QualifierName></MeshHeading>
<MeshHeading><DescriptorName UI="D006801" MajorTopicYN="N">Humans</DescriptorName></MeshHeading></MeshHeadingList>
</MedlineCitation><PubmedData><ArticleIdList><ArticleId>11</ArticleId></ArticleIdList></PubmedData></PubmedArticle>
<PubmedArticle><MedlineCitation><PMID>12</PMID><Article><Journal><JournalIssue><PubDate>
<MedlineDate>1998 Dec-1999 Jan</MedlineDate></PubDate></JournalIssue></Journal>
<ArticleTitle>Two</ArticleTitle></Article>
</MedlineCitation></PubmedArticle>
<DeleteCitation><PMID>13</PMID></DeleteCitation>
</PubmedArticleSet>"""


def test_medline(tmp_path: Path) -> None:
    reader = open_reader(put(tmp_path / "pubmed.xml.gz", MEDLINE))
    assert without_place(list(reader)) == [
        ("11", "Aspirin & fever.\nTo see.\nH2O.", None, DAY, ("D001241", "D006801")),
        ("12", "Two", None, datetime.date(1998, 1, 1), ()),
    ]
    assert reader.names == {"D001241": ("Aspirin", "mesh"), "D006801": ("Humans", "mesh")}
    reader = open_reader(tmp_path / "pubmed.xml.gz", "medline", qualifiers=True, major=True)
    assert [d.codes for d in reader] == [("D001241", "D001241/Q000627"), ()]
    assert reader.names["D001241/Q000627"] == ("Aspirin/therapeutic use", "mesh")


def citation(pmid: int, version: int, title: str) -> str:
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="{version}">{pmid}</PMID><Article>'
        f"<ArticleTitle>{title}</ArticleTitle></Article><CommentsCorrectionsList><CommentsCorrections>"
        f'<PMID Version="1">{pmid + 1}</PMID></CommentsCorrections></CommentsCorrectionsList></MedlineCitation>'
        "</PubmedArticle>"
    )


def pubmed(path: Path, *articles: str, deleted: Sequence[str] = ()) -> Path:
    gone = f"<DeleteCitation>{''.join(deleted)}</DeleteCitation>" if deleted else ""
    return put(path, f"<PubmedArticleSet>{' '.join(articles)}{gone}</PubmedArticleSet>")


def test_the_newest_version_of_a_citation_counts(tmp_path: Path) -> None:
    """As in the baseline: PMID 20029612 is there in versions 1 to 4, in any order."""
    path = pubmed(
        tmp_path / "a.xml", *(citation(20029612, v, f"version {v}") for v in (2, 4, 1, 3)), citation(7, 1, "x")
    )
    bad = BadRows()
    assert [(d.doc_id, d.text) for d in read(path, bad=bad)] == [("20029612", "version 4"), ("7", "x")]
    assert sum(bad.notices.values()) == 3


def test_update_files_replace_and_delete(tmp_path: Path) -> None:
    one = pubmed(tmp_path / "pubmed24n0001.xml.gz", *(citation(n, 1, f"old {n}") for n in range(1, 7)))
    two = pubmed(
        tmp_path / "pubmed24n1220.xml.gz", citation(2, 1, "revised 2"), citation(3, 1, "one"), citation(3, 1, "second"),
        deleted=['<PMID Version="1">4</PMID>', "<PMID>5</PMID>"],
    )  # fmt: skip
    three = pubmed(tmp_path / "pubmed24n1221.xml.gz", citation(5, 1, "back again"), deleted=["<PMID>6</PMID>"])
    expected = {"1": "old 1", "2": "revised 2", "3": "second", "5": "back again"}
    for files in ([one, two, three], [three, one, two]):
        assert {d.doc_id: d.text for d in read(files)} == expected
    assert open_reader([one, two, three]).parts() == [[one, two, three]]
    assert open_reader([one]).parts() == [[one]]
    assert {d.doc_id: d.text for d in read([one])} == {str(n): f"old {n}" for n in range(1, 7)}


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3), st.booleans()), max_size=6), min_size=1, max_size=4
    )
)
def test_revisions_against_a_plain_replay(tmp_path: Path, files: list[list[tuple[int, int, bool]]]) -> None:
    """Play the files one by one into a dictionary of versions, as a mirror of PubMed is updated."""
    versions: dict[int, dict[int, str]] = {}
    paths = []
    for number, rows in enumerate(files):
        kept = [(pmid, version) for pmid, version, gone in rows if not gone]
        for at, (pmid, version) in enumerate(kept):
            versions.setdefault(pmid, {})[version] = f"text {number} {at}"
        for pmid, version, gone in rows:
            if gone:
                versions.get(pmid, {}).pop(version, None)
        articles = [citation(pmid, version, f"text {number} {at}") for at, (pmid, version) in enumerate(kept)]
        gone_ = [f'<PMID Version="{version}">{pmid}</PMID>' for pmid, version, gone in rows if gone]
        paths.append(pubmed(tmp_path / f"n{number}.xml", *articles, deleted=gone_))
    expected = {str(pmid): found[max(found)] for pmid, found in versions.items() if found}
    assert {d.doc_id: d.text for d in read(paths, "medline")} == expected


def test_pmids_are_seen_across_the_border_of_a_block(tmp_path: Path) -> None:
    filler = citation(1, 1, "x" * (1 << 20))
    for cut in range(0, 120, 7):
        path = pubmed(
            tmp_path / "a.xml", filler.replace("x" * cut, "", 1), citation(2, 1, "old"), citation(2, 2, "new")
        )
        assert [d.text for d in read(path)][1:] == ["new"]


def test_broken_xml_names_line_and_column(tmp_path: Path) -> None:
    path = put(tmp_path / "pubmed.xml", MEDLINE.replace("<DeleteCitation>", "<Delete & Citation>"))
    with pytest.raises(CogstageError, match=r"pubmed\.xml:17, column \d+: broken XML"):
        read(path)
    bad = BadRows(skip=True)
    others = MEDLINE.replace(">11<", ">21<").replace(">12<", ">22<")
    assert len(read([path, put(tmp_path / "second.xml", others)], bad=bad)) == 4
    assert bad.count == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(tmp_path: Path, encoding: str) -> None:
    laughs = '<!DOCTYPE PubmedArticleSet [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
    text = f'<?xml version="1.0" encoding="{encoding}"?>{laughs}<PubmedArticleSet>&b;</PubmedArticleSet>'
    path = put(tmp_path / "p.xml", text.encode(encoding))
    with pytest.raises(CogstageError, match="declares the entity 'a'"):
        read(path, "medline")
    outside = '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><collection><document>&f;</document></collection>'
    with pytest.raises(CogstageError, match="declares the entity 'f'"):
        read(put(tmp_path / "b.xml", outside), "bioc")


def test_pubtator(tmp_path: Path) -> None:
    text = (
        "11|t|Aspirin and | fever\n11|a|Given to many.\n11\t0\t7\tAspirin\tChemical\tMESH:D001241\n"
        "11\t12\t17\tfever\tDisease\tD005334;D000001\n11\t12\t17\tfever\tDisease\tD005334\n11\t1\t2\tx\tGene\t-\n11\tCID\tD001241\tD005334\n\n"
        "12|t|Two\n12|a|\n"
    )
    reader = open_reader(put(tmp_path / "x.pubtator", text))
    codes = ("MESH:D001241", "D005334", "D000001")
    assert without_place(list(reader)) == [
        ("11", "Aspirin and | fever\nGiven to many.", None, None, codes),
        ("12", "Two", None, None, ()),
    ]
    assert reader.names["D005334"] == ("fever", "Disease")
    broken = put(tmp_path / "y.txt", "11|t|One\nwhat is this\n12|t|Two\n")
    with pytest.raises(CogstageError, match=r"y\.txt:2, column 1: neither"):
        read(broken)
    bad = BadRows(skip=True)
    assert len(read(broken, bad=bad)) == 2
    assert bad.count == 1


def test_numbers_of_different_types_are_different_codes(tmp_path: Path) -> None:
    """9685 is a gene and the cat; a mention of two genes gives both their type, and a name where they have no other."""
    found = [("HCN4", "Gene", "9685"), ("cat", "Species", "9685"), ("HCN4 and INSR", "Gene", "9685;3643"),
             ("IR", "GeneOrGeneProduct", "3643;3630"), ("insulin", "Gene", "3630")]  # fmt: skip
    lines = "".join(f"1\t0\t3\t{mention}\t{kind}\t{code}\n" for mention, kind, code in found)
    annotations = [{"text": m, "infons": {"type": t, "identifier": i}} for m, t, i in found]
    files = [
        put(tmp_path / "a.pubtator", f"1|t|Title\n{lines}"),
        put(tmp_path / "b.json", json.dumps({"documents": [{"id": "1", "passages": [{"annotations": annotations}]}]})),
    ]
    for path in files:
        reader = open_reader(path)
        (document,) = reader
        assert document.codes == ("gene:9685", "species:9685", "gene:3643", "gene:3630")
        assert reader.names["gene:9685"] == ("HCN4", "Gene")
        assert reader.names["species:9685"] == ("cat", "Species")
        assert reader.names["gene:3643"] == ("HCN4 and INSR", "Gene")  # alphabetically first of two shared mentions
        assert reader.names["gene:3630"] == ("insulin", "Gene")


BIOC = {
    "source": "x",
    "infons": {"documents": ["not these"]},
    "documents": [
        {
            "id": "11",
            "passages": [
                {
                    "text": "Aspirin helps.",
                    "annotations": [
                        {"text": "Aspirin", "infons": {"type": "Chemical", "identifier": "MESH:D001241"}},
                        {"text": "helps", "infons": {"type": "x", "identifier": "-"}},
                    ],
                },
                {"text": "So it ]} does.", "annotations": []},
            ],
        },
        {"id": "12", "passages": [{"text": "Zwölf"}]},
    ],
}
BIOC_XML = """<collection><source>x</source><document><id>11</id><passage><offset>0</offset><text>Aspirin helps.</text>
<annotation id="1"><infon key="type">Chemical</infon><infon key="identifier">MESH:D001241</infon><text>Aspirin</text>
</annotation></passage><passage><text>So it ]} does.</text></passage></document>
<document><id>12</id><passage><text>Zwölf</text></passage></document></collection>"""
BIOC_EXPECTED = [
    ("11", "Aspirin helps.\nSo it ]} does.", None, None, ("MESH:D001241",)),
    ("12", "Zwölf", None, None, ()),
]


def test_bioc(tmp_path: Path) -> None:
    files = [
        put(tmp_path / "a.xml.gz", BIOC_XML),
        put(tmp_path / "b.json", json.dumps(BIOC, indent=1, ensure_ascii=False)),
        put(tmp_path / "c.jsonl", "\n".join(json.dumps(document) for document in BIOC["documents"])),  # type: ignore[union-attr]
        put(tmp_path / "d.jsonl", json.dumps(BIOC)),
    ]
    for path in files:
        assert recognise(path) == "bioc"
        reader = open_reader(path)
        assert without_place(list(reader)) == BIOC_EXPECTED
        assert reader.names == {"MESH:D001241": ("Aspirin", "Chemical")}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"documents": [{"id": "1", "passages": []}, {"id": ]}', r"b\.json:1, column \d+: not JSON"),
        ('{"documents": [\n{"id": "1", "passages": []}\n{"id"', r"b\.json:3, column 1: not JSON \(expected a comma"),
        ('{"documents": [\n{"id": "1"}]}', r"b\.json:2, column passages: not a BioC"),
        ('{"documents": [\n{"passages": []}]}', r"b\.json:2, column id: no value"),
        ("", r"b\.json:1, column 1: not JSON \(the file ends too early\)"),
    ],
)
def test_broken_bioc_json(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(CogstageError, match=said):
        read(put(tmp_path / "b.json", content), "bioc")
