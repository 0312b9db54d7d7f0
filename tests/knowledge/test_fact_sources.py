"""Facts from public knowledge bases, in small files with their published columns."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from cogstage.choices import FactSource
from cogstage.cli.main import run
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.fact_sources import LICENCES, READERS, facts_from_source, facts_of_vocabulary, our_type
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.matching import Names
from cogstage.tables import BadRows


def put(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def ctd(folder: Path) -> Path:
    return put(
        folder / "CTD_chemicals_diseases.csv.gz",
        "# Report created: today",
        "# Fields:",
        "# ChemicalName,ChemicalID,CasRN,DiseaseName,DiseaseID,DirectEvidence,InferenceGeneSymbol,InferenceScore,"
        "OmimIDs,PubMedIDs",
        "#",
        "Aspirin,D001241,50-78-2,Headache,MESH:D006261,therapeutic,,,,1|2",
        "Aspirin,D001241,50-78-2,Bleeding,MESH:D006470,marker/mechanism,,,,3",
        "Aspirin,D001241,50-78-2,Asthma,MESH:D001249,,IL6,4.1,,4",
    )


def sider(folder: Path) -> Path:
    put(folder / "drug_names.tsv", "CID100000001\taspirin")
    put(folder / "meddra_all_se.tsv.gz",
        "CID100000001\tCID000000001\tC0019080\tLLT\tC0019080\tBled",
        "CID100000001\tCID000000001\tC0019080\tPT\tC0019080\tBleeding")  # fmt: skip
    put(folder / "meddra_all_indications.tsv",
        "CID100000001\tC0018681\ttext_mention\tHeadache\tPT\tC0018681\tHeadache")  # fmt: skip
    return folder


def medrt(folder: Path) -> Path:
    def association(name: str, to: str, code: str) -> str:
        return (
            f"<association><namespace>MED-RT</namespace><name>{name}</name><from_namespace>RxNorm</from_namespace>"
            f"<from_name>aspirin</from_name><from_code>1191</from_code><to_namespace>MeSH</to_namespace>"
            f"<to_name>{to}</to_name><to_code>{code}</to_code>"
            "<qualifier><name>Authority</name><value>FDA</value></qualifier></association>"
        )

    rows = association("may_treat", "Headache", "D006261"), association("induces", "Bleeding", "D006470")
    return put(
        folder / "Core_MEDRT.xml", "<terminology>", *rows, association("has_MoA", "Inhibition", "N01"), "</terminology>"
    )


def primekg(folder: Path) -> Path:
    head = "relation,display_relation,x_index,x_id,x_type,x_name,x_source,y_index,y_id,y_type,y_name,y_source"
    drug = "0,DB00945,drug,Aspirin,DrugBank"
    return put(
        folder / "kg.csv",
        head,
        f"indication,indication,{drug},1,5,disease,Headache,MONDO",
        f"indication,indication,1,5,disease,Headache,MONDO,{drug}",
        f"drug_effect,side effect,{drug},2,7,effect/phenotype,Bleeding,HPO",
        f"drug_protein,ppi,{drug},3,9,gene/protein,PTGS1,NCBI",
        f"contraindication,contraindication,{drug},3,9,gene/protein,PTGS1,NCBI",
    )


def hetionet(folder: Path) -> Path:
    put(folder / "hetionet-v1.0-nodes.tsv", "id\tname\tkind", "Compound::DB00945\tAspirin\tCompound",
        "Disease::DOID:9\tHeadache\tDisease", "Side Effect::C0019080\tBleeding\tSide Effect",
        "Gene::9021\tPTGS1\tGene")  # fmt: skip
    put(folder / "hetionet-v1.0-edges.sif.gz", "source\tmetaedge\ttarget",
        "Compound::DB00945\tCtD\tDisease::DOID:9", "Compound::DB00945\tCcSE\tSide Effect::C0019080",
        "Compound::DB00945\tCbG\tGene::9021")  # fmt: skip
    return folder


def pubtator(folder: Path) -> Path:
    return put(
        folder / "a.pubtator",
        "1|t|Aspirin, headache and bleeding with PTGS1",
        "1\t0\t7\tAspirin\tChemicalEntity\tD001241",
        "1\t9\t17\theadache\tDiseaseOrPhenotypicFeature\tD006261",
        "1\t22\t30\tbleeding\tDiseaseOrPhenotypicFeature\tD006470",
        "1\t36\t41\tPTGS1\tGeneOrGeneProduct\t5742",
        "1\tNegative_Correlation\tD006261\tD001241\tNovel",
        "1\tPositive_Correlation\tD001241\tD006470\tNo",
        "1\tPositive_Correlation\tD001241\t5742\tNo",
        "1\tAssociation\tD006261\tD006470\tNo",
    )


def bioc(folder: Path) -> Path:
    def annotation(number: int, type: str, code: str, text: str) -> str:
        infons = f'<infon key="type">{type}</infon><infon key="identifier">{code}</infon>'
        return f'<annotation id="{number}">{infons}<text>{text}</text></annotation>'

    annotations = (
        annotation(1, "Chemical", "D001241", "Aspirin"),
        annotation(2, "Disease", "D006261", "headache"),
        annotation(3, "Disease", "D006470", "bleeding"),
    )
    return put(
        folder / "a.xml",
        f"<collection><document><id>1</id><passage><text>x</text>{''.join(annotations)}</passage>",
        '<relation id="R0"><infon key="entity1">D001241</infon><infon key="entity2">D006261</infon>'
        '<infon key="type">Negative_Correlation</infon></relation>',
        '<relation id="R1"><infon key="relation">CID</infon><node refid="1" role="Chemical"/>'
        '<node refid="3" role="Disease"/></relation></document></collection>',
    )


SOURCES: list[tuple[FactSource, object]] = [
    ("ctd", ctd), ("sider", sider), ("medrt", medrt), ("primekg", primekg), ("hetionet", hetionet),
    ("annotated", pubtator), ("annotated", bioc),
]  # fmt: skip


def graph_names() -> Names:
    """A graph with its own keys, as of an OMOP database."""
    terms = {"D1": ("Aspirin", "drug"), "C1": ("Headache", "disorder"), "C2": ("Bleeding", "disorder"),
             "P1": ("Headache", "procedure")}  # fmt: skip
    name, type = zip(*terms.values(), strict=True)
    return Names.from_vocabulary(Vocabulary(tuple(terms), tuple(terms), name, type, np.ones(4, np.int64)))


@pytest.mark.parametrize(("source", "write"), SOURCES, ids=lambda value: getattr(value, "__name__", ""))
def test_every_source_states_the_same_two_facts(tmp_path: Path, source: FactSource, write: object) -> None:
    """In the words of each source: aspirin treats headache and causes bleeding; nothing treats a gene or procedure."""
    path = write(tmp_path / "in")  # type: ignore[operator]
    facts = facts_from_source(source, path, graph_names())
    assert set(zip(facts.head, facts.relation, facts.tail, strict=True)) == {
        ("D1", "may_treat", "C1"),
        ("D1", "causes", "C2"),
    }
    assert facts.made_with["with both ends in the lexicon or graph"] == 2
    assert facts.made_with["licences"] == [LICENCES[source]]
    plain = facts_from_source(source, path)
    assert sorted(plain.relation) == ["causes", "may_treat"]


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    counts = facts_from_source("annotated", pubtator(tmp_path)).made_with["annotated"]
    assert counts == {
        "statements": 4,
        "of relations that are not mapped": 1,
        "between types that the relation does not join": 1,
    }
    assert facts_from_source("primekg", primekg(tmp_path)).made_with["primekg"] == {
        "statements": 5,
        "of relations that are not mapped": 1,
        "between types that the relation does not join": 1,
    }


@pytest.mark.parametrize("code", ["D006261", "MESH:D006261", "mesh:D006261"])
def test_codes_match_before_names(tmp_path: Path, code: str) -> None:
    """A node that has the code is meant, however it is named."""
    words = Vocabulary(("d", code), ("d", code), ("Aspirin", "Cephalgia"), ("drug", "disorder"), np.ones(2, np.int64))
    facts = facts_from_source("ctd", ctd(tmp_path), Names.from_vocabulary(words))
    assert ("d", "may_treat", code) in set(zip(facts.head, facts.relation, facts.tail, strict=True))


def test_facts_of_one_vocabulary_on_another() -> None:
    """Embedded facts have MeSH identifiers; an OMOP graph has others, but the same names and synonyms."""
    terms, names, types = (
        ("M1", "M2", "M3"),
        ("Acetylsalicylic Acid", "Cephalalgia", "Rash"),
        ("drug", "disorder", ""),
    )
    mesh = Vocabulary(terms, terms, names, types, np.ones(3, np.int64), (("Aspirin", 0), ("Headache", 1)))
    facts = Facts.from_statements([("M1", "may_treat", "M2", "s"), ("M1", "causes", "M3", "s")])
    placed = facts_of_vocabulary(facts, mesh, graph_names())
    assert set(zip(placed.head, placed.relation, placed.tail, strict=True)) == {
        ("D1", "may_treat", "C1"),
        ("D1", "causes", "M3"),
    }
    assert placed.made_with["with both ends in the lexicon or graph"] == 1
    assert [name for name, _, _ in placed.unmatched] == ["Rash"]


@pytest.mark.parametrize(
    ("drug", "disorder"),
    [("drug", "condition"), ("medicationrequest", "observation"), ("ChemicalEntity", "DiseaseOrPhenotypicFeature"),
     ("Chemical", "Disease"), ("drug", "reaction"), ("", "")],
)  # fmt: skip
def test_types_of_every_kind_of_graph_fit(tmp_path: Path, drug: str, disorder: str) -> None:
    """OMOP, FHIR, PubTator and FAERS have their own words for drugs and disorders."""
    terms, names = ("d", "h", "b"), ("Aspirin", "Headache", "Bleeding")
    words = Vocabulary(terms, terms, names, (drug, disorder, disorder), np.ones(3, np.int64))
    facts = facts_from_source("primekg", primekg(tmp_path), Names.from_vocabulary(words))
    assert set(zip(facts.head, facts.relation, facts.tail, strict=True)) == {
        ("d", "may_treat", "h"),
        ("d", "causes", "b"),
    }


def test_files_that_are_something_else(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no drug_names\.tsv"):
        facts_from_source("sider", tmp_path)
    with pytest.raises(CogstageError, match="no column ChemicalName"):
        facts_from_source("ctd", put(tmp_path / "x.csv", "a,b"))
    bad = BadRows(skip=True)
    broken = put(tmp_path / "kg.csv", *primekg(tmp_path).read_text().splitlines()[:2], "short,row")
    assert len(facts_from_source("primekg", broken, bad=bad)) == 1
    assert bad.count == 1


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    primekg(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        run(["facts", "import", "primekg", "kg.csv", "--out", "facts"])
    assert ended.value.code == 0
    assert "2 facts are in facts" in capsys.readouterr().out
    assert Facts.load("facts").relations == {"causes": 1, "may_treat": 1}


def test_every_source_has_a_reader_and_a_licence() -> None:
    assert READERS.keys() == LICENCES.keys()
    assert our_type("DiseaseOrPhenotypicFeature") == "disorder"
    assert our_type("effect/phenotype") == "symptom"
    assert our_type("something else") == ""
