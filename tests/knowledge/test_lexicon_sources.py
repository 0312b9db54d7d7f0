"""Lexicons from UMLS, OMOP and MeSH in the published layouts, against readings in plain Python."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from knowledge_files import mrconso, mrsty, write_lines, write_umls

from cogstage.cli.main import run
from cogstage.corpus.annotate import Annotator
from cogstage.corpus.lexicon import Lexicon
from cogstage.corpus.mesh import type_of_trees
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions
from cogstage.knowledge.lexicon_sources import LexiconOptions, build_lexicon

CONSO = [
    mrconso("C1", "ASA", sab="MSH"),
    mrconso("C1", "Aspirin", preferred=True, sab="RXNORM"),
    mrconso("C1", "Aspirine", lat="FRE"),
    mrconso("C1", "old name", suppress="O"),
    mrconso("C2", "Headache (finding)", preferred=True, sab="SNOMEDCT_US"),
    mrconso("C2", "headache", sab="MSH"),
    mrconso("C2", "Cephalalgia", sab="MSH"),
    mrconso("C3", "Condition", preferred=True),
    mrconso("C3", "7", sab="MSH"),
    mrconso("C4", "a b c d e f g h i j k l", preferred=True),
    mrconso("C5", "Hospital", preferred=True),
]
STY = [mrsty("C1", "T121"), mrsty("C1", "T109"), mrsty("C2", "T184"), mrsty("C3", "T047"), mrsty("C4", "T047")]


def rows(path: Path) -> list[tuple[str, ...]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return [tuple(row.values()) for row in csv.DictReader(handle, delimiter="\t")]


def test_umls(tmp_path: Path) -> None:
    meta = write_umls(tmp_path / "META", [], CONSO, [*STY, mrsty("C5", "T073")])
    summary = build_lexicon([meta], tmp_path / "l.tsv", LexiconOptions(types=("drug", "T184", "Some Type")))
    # written by hand from the documentation of MRCONSO: English, not suppressed, preferred name first
    assert rows(tmp_path / "l.tsv") == [
        ("Aspirin", "C1", "Aspirin", "drug"),
        ("ASA", "C1", "Aspirin", "drug"),
        ("Headache", "C2", "Headache", "symptom"),
        ("Cephalalgia", "C2", "Headache", "symptom"),
        ("Hospital", "C5", "Hospital", ""),
    ]
    assert (summary.terms, summary.concepts) == (5, 3)
    assert dict(summary.left_out) == {
        "common English words": 1,
        "names of one character or without letters": 1,
        "names of more than 10 tokens": 1,
    }
    build_lexicon([meta], tmp_path / "d.tsv", LexiconOptions(types=("T121",)))
    assert {concept for _, concept, _, _ in rows(tmp_path / "d.tsv")} == {"C1"}
    build_lexicon([meta], tmp_path / "m.tsv", LexiconOptions(vocabularies=("MSH",), stop_list=["asa"]))
    assert [term for term, *_ in rows(tmp_path / "m.tsv")] == ["headache", "Cephalalgia", "Hospital"]
    build_lexicon([meta], tmp_path / "f.tsv", LexiconOptions(language="FRE"))
    assert [term for term, *_ in rows(tmp_path / "f.tsv")] == ["Aspirine"]
    lexicon = Lexicon.read(tmp_path / "l.tsv", cache=False)
    assert [mention.concept for mention in Annotator(lexicon).annotate("Took ASA for cephalalgia.")] == ["C1", "C2"]


def test_omop(tmp_path: Path) -> None:
    folder = tmp_path / "v"
    folder.mkdir()
    concepts = [
        ("1", "Aspirin", "Drug", "RxNorm", "S", ""),
        ("2", "Headache", "Condition", "SNOMED", "S", ""),
        ("3", "R51", "Condition", "ICD10CM", "", ""),
        ("4", "Gone", "Drug", "RxNorm", "S", "D"),
    ]
    header = "concept_id\tconcept_name\tdomain_id\tvocabulary_id\tstandard_concept\tinvalid_reason"
    write_lines(folder / "CONCEPT.csv", [header, *("\t".join(row) for row in concepts)])
    synonyms = [("2", "Headache (finding)", "4180186"), ("2", "Kopfschmerz", "4182504"), ("1", "ASA", "4180186")]
    header = "concept_id\tconcept_synonym_name\tlanguage_concept_id"
    write_lines(folder / "CONCEPT_SYNONYM.csv", [header, *("\t".join(row) for row in synonyms)])
    build_lexicon([folder], tmp_path / "l.tsv")
    assert rows(tmp_path / "l.tsv") == [
        ("Aspirin", "1", "Aspirin", "drug"),
        ("ASA", "1", "Aspirin", "drug"),
        ("Headache", "2", "Headache", "disorder"),
    ]
    for one in ("drug", "Drug"):
        build_lexicon([folder], tmp_path / "d.tsv", LexiconOptions(types=(one,)))
        assert {concept for _, concept, _, _ in rows(tmp_path / "d.tsv")} == {"1"}


def mesh_term(name: str, permuted: str = "N") -> str:
    return f'<Term IsPermutedTermYN="{permuted}"><TermUI>T1</TermUI><String>{name}</String></Term>'


def descriptor(identifier: str, name: str, trees: list[str], terms: list[str]) -> str:
    numbers = "".join(f"<TreeNumber>{tree}</TreeNumber>" for tree in trees)
    return (
        f'<DescriptorRecord DescriptorClass="1"><DescriptorUI>{identifier}</DescriptorUI>'
        f"<DescriptorName><String>{name}</String></DescriptorName><TreeNumberList>{numbers}</TreeNumberList>"
        f"<ConceptList><Concept><TermList>{''.join(terms)}</TermList></Concept></ConceptList></DescriptorRecord>"
    )


def write_mesh(folder: Path) -> Path:
    folder.mkdir()
    pain = descriptor(
        "D015746", "Abdominal Pain", ["C23.888.592.612.054", "C23.888.821.030"],
        [mesh_term("Abdominal Pain"), mesh_term("Pain, Abdominal", "Y"), mesh_term("Colicky Pain")],
    )  # fmt: skip
    aspirin = descriptor("D001241", "Aspirin", ["D02.455.426.559.389"], [mesh_term("Acetylsalicylic Acid")])
    (folder / "desc2026.xml").write_text(f"<DescriptorRecordSet>{pain}{aspirin}</DescriptorRecordSet>")
    (folder / "supp2026.xml").write_text(
        '<SupplementalRecordSet><SupplementalRecord SCRClass="3"><SupplementalRecordUI>C538</SupplementalRecordUI>'
        "<SupplementalRecordName><String>Rare syndrome</String></SupplementalRecordName>"
        "</SupplementalRecord></SupplementalRecordSet>"
    )
    return folder


def test_mesh(tmp_path: Path) -> None:
    folder = write_mesh(tmp_path / "mesh")
    build_lexicon([folder], tmp_path / "l.tsv")
    assert rows(tmp_path / "l.tsv") == [
        ("Abdominal Pain", "D015746", "Abdominal Pain", "symptom"),
        ("Colicky Pain", "D015746", "Abdominal Pain", "symptom"),
        ("Aspirin", "D001241", "Aspirin", "drug"),
        ("Acetylsalicylic Acid", "D001241", "Aspirin", "drug"),
        ("Rare syndrome", "C538", "Rare syndrome", "disorder"),
    ]


@pytest.mark.parametrize(
    ("trees", "type"),
    [
        (["D02.455"], "drug"),
        (["C10.597.617.152", "G11.561.790"], "symptom"),
        (["C10.228", "F03.615"], "disorder"),
        (["E07.505"], "device"),
        (["E02.095"], "procedure"),
        (["Z01.107"], ""),
        ([], ""),
    ],
)
def test_types_of_the_tree(trees: list[str], type: str) -> None:
    assert type_of_trees(trees) == type


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    write_mesh(tmp_path / "mesh")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        run(["lexicon", "build", "mesh", "--type", "symptom", "--out", "terms.tsv"])
    assert ended.value.code == 0
    assert "terms.tsv: 2 terms of 1 concepts" in capsys.readouterr().out


def test_sources_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UsageError, match="no such file"):
        build_lexicon([tmp_path / "missing"], tmp_path / "l.tsv")
    with pytest.raises(UsageError, match=r"expected a folder with MRCONSO\.RRF or CONCEPT, or MeSH XML"):
        build_lexicon([tmp_path / "notes.txt"], tmp_path / "l.tsv")
    with pytest.raises(CogstageError, match="no terms of the types"):
        build_lexicon([write_mesh(tmp_path / "mesh")], tmp_path / "l.tsv", LexiconOptions(types=("planet",)))
    assert not (tmp_path / "l.tsv").exists()


@pytest.mark.parametrize("by", ["desc2026.xml", "mtrees2026.bin"])
def test_a_medline_graph_has_types_from_the_tree(tmp_path: Path, by: str) -> None:
    """With types, drugs and events can be told apart, as the safety statistics need."""
    folder = write_mesh(tmp_path / "mesh")
    (folder / "mtrees2026.bin").write_text("Abdominal Pain;C23.888.821.030\nAspirin;D02.455\nBody Regions;A01\n")
    heading = '<MeshHeading><DescriptorName UI="{}">{}</DescriptorName></MeshHeading>'
    named = {"D015746": "Abdominal Pain", "D001241": "Aspirin", "D999": "Unlisted"}
    headings = "".join(heading.format(*pair) for pair in named.items())
    (tmp_path / "a.xml").write_text(
        "<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID><Article><ArticleTitle>T</ArticleTitle>"
        "</Article><ChemicalList><Chemical><NameOfSubstance UI='C000605'>ticagrelor</NameOfSubstance></Chemical>"
        "</ChemicalList><SupplMeshList><SupplMeshName Type='Disease' UI='C538'>Rare</SupplMeshName></SupplMeshList>"
        f"<MeshHeadingList>{headings}</MeshHeadingList></MedlineCitation></PubmedArticle></PubmedArticleSet>"
    )
    types = {"D015746": "symptom", "D001241": "drug", "D999": "", "C000605": "drug", "C538": "disorder"}
    options = {"chemicals": True, "supplementary": True}
    for given, expected in (({"mesh": str(folder / by)}, types), ({}, dict.fromkeys(types, "mesh"))):
        build_graph(tmp_path / "a.xml", tmp_path / "g", options=BuildOptions(reader={**options, **given}))
        words = Graph.load(tmp_path / "g").vocabulary
        assert dict(zip(words.term, words.type, strict=True)) == expected
