"""Names that people write differently lead to the same node, and names of something else do not."""

from pathlib import Path

import numpy as np
import pytest
from knowledge_files import mrconso, mrrel, mrsty, write_umls

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.matching import Names
from cogstage.knowledge.names import NameStep, code_key, forms, system_code, without_salt
from cogstage.knowledge.table import facts_from_table
from cogstage.knowledge.umls import facts_from_umls

NODES = [
    "myocardial infarction",
    "beta-blocker",
    "acute kidney injury",
    "anti-inflammatory agent",
    "hypertension",
    "gastric ulcer",
    "respiratory tract infection",
    "non-small cell lung carcinoma",
    "ventricular tachycardia",
    "drug-induced liver injury",
    "seizure",
    "headache",
    "cardiac arrhythmia",
    "nephrotic syndrome",
    "optic neuritis",
    "peripheral neuropathy",
    "muscle cramp",
    "pulmonary embolism",
    "renal abscess",
    "thyroid biopsy",
    "viral hepatitis",
    "skin rash",
    "breast neoplasm",
    "liver disease",
    "1,2-dichloroethane",
    "5-fluorouracil",
    "bone fracture",
    "tic disorder",
    "vitamin b12 deficiency",
    "brain metastasis",
]
AMERICAN = {
    "anemia": "anaemia",
    "esophageal stricture": "oesophageal stricture",
    "brain tumor": "brain tumour",
    "hemorrhage": "haemorrhage",
    "diarrhea": "diarrhoea",
    "edema": "oedema",
    "leukemia": "leukaemia",
    "sulfasalazine": "sulphasalazine",
    "ischemia": "ischaemia",
    "fetal death": "foetal death",
    "fiber deficiency": "fibre deficiency",
    "estrogen": "oestrogen",
    "dyspnea": "dyspnoea",
    "cyanosis with hypovolemia": "cyanosis with hypovolaemia",
}
IRREGULAR = {
    "renal abscess": "renal abscesses",
    "thyroid biopsy": "thyroid biopsies",
    "brain metastasis": "brain metastases",
}


def misspelled(kind: str) -> dict[str, str]:
    """Node -> how somebody else writes it."""
    if kind == "spelling":
        return AMERICAN
    if kind == "case":
        return {name: f"  {name.upper().replace(' ', '  ')} " for name in NODES}
    if kind == "hyphens":
        return {name: name.replace("-", " ").replace(" ", "-") for name in NODES} | {"beta-blocker": "beta blocker"}
    if kind == "suffix":
        return {
            name: f"{name.capitalize()} ({tag})"
            for name, tag in zip(NODES, ["disorder", "substance"] * 15, strict=True)
        }
    if kind == "plural":
        return {name: IRREGULAR.get(name, name if name[0].isdigit() else f"{name}s") for name in NODES}
    several = [name for name in NODES if " " in name and not any(c.isdigit() for c in name)]
    return {name: f"{name.split(' ')[-1]}, {' '.join(name.split(' ')[:-1])}" for name in several}


@pytest.mark.parametrize("kind", ["case", "hyphens", "suffix", "spelling", "plural", "order"])
def test_nine_in_ten_names_are_matched_however_they_are_written(kind: str) -> None:
    names = Names.from_pairs((name, name) for name in (*NODES, *AMERICAN))
    written = misspelled(kind)
    assert len(written) >= 14
    found = {name: names.find(other)[0] for name, other in written.items()}
    wrong = {written[name]: concepts for name, concepts in found.items() if concepts != (name,)}
    assert len(wrong) <= 0.1 * len(written), wrong


@pytest.mark.slow
def test_names_of_the_embedded_graph_are_placed_however_they_are_written() -> None:
    """The benchmark's messy table, with every twentieth name: its ways of writing know nothing of the rules."""
    from benchmarks.name_matching import KINDS, measure

    from cogstage.data.embedded import graph

    names = Names.from_vocabulary(graph().vocabulary)
    *kinds, absent = measure(sorted(names.named)[::20], names)[0]
    assert [row["kind"] for row in kinds] == list(KINDS)
    for row in kinds:
        assert row["names"] >= 20
        assert row["right (%)"] >= 90, row
        assert row["wrong (%)"] <= 1, row
    assert absent["wrong (%)"] <= 5  # synonyms that the graph has as nodes of their own


def test_each_kind_is_counted(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text(
        "head\trelation\ttail\n"
        "BETA  blocker\tmay_treat\tHypertensions\n"
        "beta-blocker\tmay_treat\tArrhythmia, cardiac\n"
        "Sulphasalazine (substance)\tcauses\tanaemia\n"
        "mesh:D009270\tcauses\theadache\n"
        "MESH:D009270\tcauses\tnobody knows\n"
        "beta-blocker\tcauses\tnobody knows\n"
        "beta-blocker\tcauses\thedache\n"
    )
    names = Names.from_pairs([*((name, name) for name in (*NODES, *AMERICAN)), ("naloxone", "MESH:D009270")])
    facts = facts_from_table(tmp_path / "facts.tsv", names)
    assert facts.made_with["names"] == {
        "used unchanged": 3,
        "matched by source code": 1,
        "matched by name, over hyphens and punctuation": 1,
        "matched by name, over plurals": 1,
        "matched by name, over word order": 1,
        "matched by name, over British or American spelling": 2,
        "unknown to the lexicon or graph": 2,
    }
    assert [row[:2] for row in facts.unmatched] == [("nobody knows", 2), ("hedache", 1)]
    assert facts.unmatched[1][2].startswith("headache (0.93)")
    facts.save(tmp_path / "facts")
    lines = (tmp_path / "facts/unmatched.tsv").read_text().splitlines()
    assert lines[0] == "name\tcount\tnearest"
    assert lines[2].startswith("hedache\t1\theadache (0.93)")
    assert Facts.load(tmp_path / "facts").tail == facts.tail


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,2-dichloroethane", "12-dichloroethane"),
        ("2-amino-3-chlorophenol", "3-amino-2-chlorophenol"),
        ("hypertension", "hypotension"),
        ("factor 2 deficiency type 1", "factor 1 deficiency type 2"),
        ("ammonia", "ammonium"),
        ("aids", "aid"),
    ],
)
def test_names_of_something_else_stay_apart(one: str, other: str) -> None:
    same = [step for step, a, b in zip(NameStep, forms(one), forms(other), strict=True) if a == b]
    assert same == ([NameStep.PLURAL, NameStep.ORDER] if one == "aids" else [])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("diabetes mellitus, type 2", "type-2 diabetes mellitus"),
        ("deficiency, factor VIII", "Factor VIII deficiency"),
        ("vitamin B12 deficiency", "deficiency of vitamin B12"),
        ("kidney calculi", "calculus, kidney"),
    ],
)
def test_numbers_stay_with_their_word(one: str, other: str) -> None:
    assert forms(one)[-1] == forms(other)[-1]


def test_of_several_that_agree_the_one_written_most_alike_is_first() -> None:
    names = Names.from_pairs([("brain disease", "encephalopathy"), ("brain diseases", "brain diseases")])
    assert names.find("Diseases, Brain") == (("brain diseases", "encephalopathy"), NameStep.ORDER)
    assert names.find("Disease, Brain") == (("encephalopathy", "brain diseases"), NameStep.ORDER)


def test_codes_are_read_in_every_spelling() -> None:
    assert {code_key(text) for text in ("mesh:D003", "MESH:D003", "MSH|d003")} == {system_code("MSH", "D003")}
    assert code_key("http://snomed.info/sct|22298006") == system_code("SNOMEDCT_US", "22298006")
    assert code_key("http://snomed.info/sct|22298006") == system_code("SNOMED", "22298006")
    assert code_key("aspirin") is None
    assert code_key("note: aspirin") is None


def node_graph(tmp_path: Path, concepts: list[str], names: list[str], types: list[str]) -> Path:
    vocabulary = Vocabulary(
        tuple(concepts), tuple(concepts), tuple(names), tuple(types), np.full(len(names), 9, np.int64)
    )
    Graph(vocabulary, np.array([0], np.int32), np.array([1], np.int32), np.array([3], np.int64)).save(
        tmp_path / "graph"
    )
    return tmp_path / "graph"


def test_umls_goes_by_source_code_first_and_by_name_within_types(tmp_path: Path) -> None:
    """ "MS" is a gene in the graph: multiple sclerosis, which UMLS also calls MS, must not become it."""
    graph = node_graph(
        tmp_path,
        ["MESH:D007069", "gene:4438", "n3", "n4"],
        ["a name that UMLS does not have", "MS", "interferon beta", "cold"],
        ["disorder", "gene", "drug", ""],
    )
    folder = write_umls(
        tmp_path / "META",
        [mrrel("C0026769", "may_treat", "C0015980"), mrrel("C0020436", "may_treat", "C0015980")],
        [
            mrconso("C0026769", "Multiple Sclerosis", preferred=True),
            mrconso("C0026769", "MS"),
            mrconso("C0015980", "Interferon-beta", preferred=True),
            mrconso("C0020436", "Ifosfamide neuropathy", preferred=True).replace("|D1|Ifos", "|D007069|Ifos"),
            mrconso("C0009443", "Common cold").replace("Common cold", "cold"),
            mrconso("C0009264", "cold"),
        ],
        [mrsty("C0026769", "T047"), mrsty("C0015980", "T121"), mrsty("C0020436", "T047")],
    )
    facts = facts_from_umls(folder, names=Names.from_graph(graph))
    assert list(zip(facts.head, facts.relation, facts.tail, strict=True)) == [("C0015980", "may_treat", "C0020436")]
    assert facts.matched["MESH:D007069"] == "C0020436"
    assert "gene:4438" not in facts.matched
    assert facts.made_with["names"]["matched by source code"] == 1
    assert facts.made_with["names"]["names of another type, not matched"] == 1
    assert facts.made_with["ambiguous names"] == ["n4: C0009264, C0009443"]
    assert [row[:2] for row in facts.unmatched] == [("Multiple Sclerosis", 1)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mometasone", "mometasone furoate"),
        ("ferrous sulfate", "Ferrous Sulphate"),
        ("regular insulin, human", "Regular Insulin"),
        ("estrogens, conjugated (usp)", "conjugated estrogens"),
        ("chlorazepate", "dipotassium chlorazepate"),
    ],
)
def test_a_drug_is_the_same_whatever_its_salt(one: str, other: str) -> None:
    assert without_salt(one) == without_salt(other)


def test_a_name_of_salts_alone_keeps_them() -> None:
    assert len({without_salt(name) for name in ("sodium chloride", "potassium chloride", "sodium", "lithium")}) == 4


def test_a_drug_is_found_by_its_salt_where_its_name_is_not() -> None:
    names = Names.from_pairs(
        [("mometasone furoate", "m"), ("lithium", "l"), ("lithium carbonate", "lc"), ("calcium stones", "d")],
        {"m": "drug", "l": "drug", "lc": "chemical", "d": "disorder"},
    )
    assert names.find_drug("Mometasone") == ("m",)
    assert names.find_drug("lithium carbonate") == ("lc",)  # its own name comes first
    assert names.find_drug("lithium citrate") == ("l", "lc")
    assert names.find_drug("stones") == ()  # disorders have no salts
