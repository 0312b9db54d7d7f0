"""UMLS: every relation of the paper's table in its direction, and the traps that MRREL and MRCONSO hold."""

from pathlib import Path

import pytest
from knowledge_files import graph_of, mrconso, mrrel, mrsty, write_umls

from cogstage.errors import CogstageError, UsageError
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.matching import Names
from cogstage.knowledge.umls import facts_from_umls
from cogstage.progress import Silent
from cogstage.tables import BadRows

ASPIRIN, PAIN, FEVER, FLU = "C0004057", "C0030193", "C0015967", "C0021400"
CONSO = [
    mrconso(ASPIRIN, "Aspirin", preferred=True),
    mrconso(ASPIRIN, "Acetylsalicylic acid"),
    mrconso(PAIN, "Pain", preferred=True),
    mrconso(FEVER, "Fever", preferred=True),
    mrconso(FLU, "Influenza", preferred=True),
]


def triples(facts: Facts) -> set[tuple[str, str, str]]:
    return set(zip(facts.head, facts.relation, facts.tail, strict=True))


# Each line: what MRREL's row says in words, "subject RELA object", and the fact that follows. The row itself has the
# subject in CUI2 and the object in CUI1.
@pytest.mark.parametrize(
    ("subject", "rela", "inverse", "object_", "fact"),
    [
        (ASPIRIN, "may_treat", "may_be_treated_by", PAIN, (ASPIRIN, "may_treat", PAIN)),
        (ASPIRIN, "may_prevent", "may_be_prevented_by", PAIN, (ASPIRIN, "may_prevent", PAIN)),
        (
            PAIN,
            "has_contraindicated_drug",
            "contraindicated_with_disease",
            ASPIRIN,
            (ASPIRIN, "contraindicates", PAIN),
        ),
        (FLU, "cause_of", "due_to", FEVER, (FLU, "causes", FEVER)),
        (ASPIRIN, "induces", "induced_by", PAIN, (ASPIRIN, "causes", PAIN)),
        (FLU, "causative_agent_of", "has_causative_agent", FEVER, (FLU, "causes", FEVER)),
        (FLU, "disease_has_finding", "is_finding_of_disease", FEVER, (FEVER, "symptom_of", FLU)),
        (FLU, "disease_may_have_finding", "may_be_finding_of_disease", FEVER, (FEVER, "symptom_of", FLU)),
        (FLU, "has_associated_finding", "associated_finding_of", FEVER, (FEVER, "symptom_of", FLU)),
        (FLU, "has_manifestation", "manifestation_of", FEVER, (FEVER, "symptom_of", FLU)),
        (FEVER, "associated_condition_of", "has_associated_condition", FLU, (FEVER, "symptom_of", FLU)),
        (FEVER, "defining_characteristic_of", "has_defining_characteristic", FLU, (FEVER, "symptom_of", FLU)),
    ],
)
def test_each_relation_of_the_paper_in_both_of_its_directions(
    tmp_path: Path, subject: str, rela: str, inverse: str, object_: str, fact: tuple[str, str, str]
) -> None:
    forward = write_umls(tmp_path / "forward", [mrrel(object_, rela, subject)], CONSO)
    backward = write_umls(tmp_path / "backward", [mrrel(subject, inverse, object_)], CONSO)
    both = write_umls(tmp_path / "both", [mrrel(object_, rela, subject), mrrel(subject, inverse, object_)], CONSO)
    for folder in (forward, backward, both):
        assert triples(facts_from_umls(folder)) == {fact}


def test_other_rows_are_passed_over_and_counted(tmp_path: Path) -> None:
    rows = [
        mrrel(PAIN, "may_treat", ASPIRIN),
        mrrel(PAIN, "may_treat", ASPIRIN, sab="NDFRT"),  # the same from another source
        mrrel(FEVER, "may_treat", ASPIRIN, suppress="O"),
        mrrel(FEVER, "may_treat", ASPIRIN, suppress="E"),
        mrrel(FLU, "may_treat", ASPIRIN, suppress="Y"),
        mrrel(ASPIRIN, "may_treat", ASPIRIN),  # to itself
        mrrel(FLU, "isa", FEVER),
        mrrel(FLU, "", FEVER, rel="PAR"),
        mrrel("C0000001", "may_treat", ASPIRIN),  # only a French name
        mrrel("C0000002", "may_treat", ASPIRIN),  # only a suppressed name
    ]
    conso = [*CONSO, mrconso("C0000001", "Douleur", lat="FRE"), mrconso("C0000002", "Old", suppress="O")]
    folder = write_umls(tmp_path / "meta", rows, conso)
    heard = []

    class Heard(Silent):
        def done(self, note: str = "") -> None:
            heard.append(note)

    facts = facts_from_umls(folder, progress=Heard())
    assert heard[0] == "10 rows, 8 of them with a mapped relation"  # as in the summary
    assert triples(facts) == {(ASPIRIN, "may_treat", PAIN)}
    assert facts.source == ("MED-RT;NDFRT",)
    assert facts.made_with["MRREL"] == {
        "rows": 10,
        "with a mapped relation": 8,
        "suppressed": 3,
        "without a name in the language": 2,
    }
    assert facts.made_with["rows"] == {"read": 3, "self": 1, "duplicate": 1}
    assert facts_from_umls(folder, sources=["NDFRT"]).source == ("NDFRT",)
    assert ("C0004057", "may_treat", FEVER) in triples(facts_from_umls(folder, keep_suppressed=True))
    assert triples(facts_from_umls(folder, language="FRE")) == set()  # aspirin has no French name


def test_facts_outside_the_lexicon_are_left_out_and_counted(tmp_path: Path) -> None:
    folder = write_umls(tmp_path, [mrrel(PAIN, "may_treat", ASPIRIN), mrrel(FEVER, "may_treat", ASPIRIN)], CONSO)
    facts = facts_from_umls(folder, names=Names.from_pairs([("aspirin", "a"), ("pain", "p")]))
    assert triples(facts) == {(ASPIRIN, "may_treat", PAIN)}
    assert facts.made_with["MRREL"]["not in the lexicon or graph"] == 1
    assert [row[:2] for row in facts.unmatched] == [("Fever", 1)]


def test_compressed_files_say_the_same(tmp_path: Path) -> None:
    rows = [mrrel(PAIN, "may_treat", ASPIRIN), mrrel(FLU, "induces", ASPIRIN)]
    plain = facts_from_umls(write_umls(tmp_path / "plain", rows, CONSO))
    packed = facts_from_umls(write_umls(tmp_path / "packed", rows, CONSO, end=".gz"))
    assert triples(plain) == triples(packed)
    assert len(plain) == 2


def test_types_turn_a_fact_that_stands_the_wrong_way_round(tmp_path: Path) -> None:
    rows = [
        mrrel(ASPIRIN, "may_treat", PAIN),  # reads "pain may treat aspirin"
        mrrel(FLU, "may_treat", ASPIRIN),
        mrrel(FEVER, "may_treat", FLU),  # no drug in it: left as it stands, and counted
    ]
    types = [mrsty(ASPIRIN, "T109"), mrsty(PAIN, "T184"), mrsty(FLU, "T047"), mrsty(FEVER, "T033")]
    facts = facts_from_umls(write_umls(tmp_path / "meta", rows, CONSO, types))
    assert triples(facts) == {
        (ASPIRIN, "may_treat", PAIN),
        (ASPIRIN, "may_treat", FLU),
        (FLU, "may_treat", FEVER),
    }
    assert facts.made_with["swapped by their types"] == {"may_treat": 1}
    assert facts.made_with["heads and tails of other types"] == {"may_treat": 1}


def test_users_bring_their_own_relation_map(tmp_path: Path) -> None:
    folder = write_umls(tmp_path / "meta", [mrrel(PAIN, "ISA", FEVER), mrrel(PAIN, "may_treat", ASPIRIN)], CONSO)
    own = tmp_path / "own.tsv"
    own.write_text("source\trelation\tswap\nisa\tkind_of\tno\n")
    assert triples(facts_from_umls(folder, relation_map=own)) == {(FEVER, "kind_of", PAIN)}
    own.write_text("source\trelation\tswap\nisa\tkind_of\tperhaps\n")
    with pytest.raises(CogstageError, match=r"own\.tsv:2, column swap: perhaps is neither yes nor no"):
        facts_from_umls(folder, relation_map=own)
    own.write_text("source\trelation\tswap\nisa\tkind_of\tno\nIsa\tother\tno\n")
    with pytest.raises(CogstageError, match="mapped twice"):
        facts_from_umls(folder, relation_map=own)


def test_missing_files_are_all_named(tmp_path: Path) -> None:
    folder = write_umls(tmp_path / "meta", [mrrel(PAIN, "may_treat", ASPIRIN)], CONSO)
    (folder / "MRSTY.RRF").unlink()
    (folder / "MRCONSO.RRF").unlink()
    with pytest.raises(UsageError, match=r"has no MRSTY\.RRF, MRCONSO\.RRF"):
        facts_from_umls(folder)
    with pytest.raises(UsageError, match="is not a folder"):
        facts_from_umls(tmp_path / "nowhere")


def test_a_row_with_too_few_columns_is_named_by_its_line(tmp_path: Path) -> None:
    rows = [mrrel(PAIN, "may_treat", ASPIRIN), "C1|A1|AUI|RO|C2|", mrrel(FLU, "may_treat", ASPIRIN)]
    folder = write_umls(tmp_path / "meta", rows, CONSO)
    with pytest.raises(CogstageError, match=r"MRREL\.RRF:2: 6 columns where 17 are expected"):
        facts_from_umls(folder)
    bad = BadRows(skip=True)
    facts = facts_from_umls(folder, bad=bad)
    assert len(facts) == 2
    assert bad.count == facts.made_with["bad rows"] == 1


def test_empty_and_broken_files_are_one_line(tmp_path: Path) -> None:
    folder = write_umls(tmp_path / "meta", [mrrel(PAIN, "may_treat", ASPIRIN)], CONSO, end=".gz")
    whole = (folder / "MRREL.RRF.gz").read_bytes()
    (folder / "MRREL.RRF.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CogstageError, match=r"MRREL\.RRF\.gz"):
        facts_from_umls(folder)
    (folder / "MRREL.RRF.gz").unlink()
    (folder / "MRREL.RRF").write_bytes(b"")
    with pytest.raises(CogstageError, match="the file is empty"):
        facts_from_umls(folder)
    (folder / "MRREL.RRF").write_bytes(mrrel(PAIN, "may_tr\xe9at", ASPIRIN).encode("latin-1") + b"\n")
    with pytest.raises(CogstageError, match="not UTF-8"):
        facts_from_umls(folder)


COLD_WEATHER, COMMON_COLD = "C0009264", "C0009443"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("first", {(ASPIRIN, "may_treat", COMMON_COLD)}),  # two of the node's names lead there
        ("skip", set()),
        ("all", {(ASPIRIN, "may_treat", COLD_WEATHER), (COLD_WEATHER, "causes", FEVER)}),  # made one
    ],
)
def test_ambiguous_names(tmp_path: Path, rule: str, expected: set[tuple[str, str, str]]) -> None:
    conso = [
        *CONSO,
        mrconso(COLD_WEATHER, "Cold", preferred=True),
        mrconso(COMMON_COLD, "COLD"),
        mrconso(COMMON_COLD, "Common  cold", preferred=True),
    ]
    rows = [mrrel(COMMON_COLD, "may_treat", ASPIRIN), mrrel(FEVER, "cause_of", COLD_WEATHER)]
    folder = write_umls(tmp_path / "meta", rows, conso)
    names = Names.from_pairs([("aspirin", "aspirin"), ("cold", "n1"), ("common cold", "n1"), ("fever", FEVER)])
    facts = facts_from_umls(folder, names=names, ambiguity=rule)
    assert triples(facts) == expected
    counts = facts.made_with["names"]
    assert counts["ambiguous"] == 1
    assert counts["matched by identifier"] == 1
    with pytest.raises(UsageError, match="`ambiguity` must be one of first, all, skip, not last"):
        facts_from_umls(folder, names=names, ambiguity="last")


def test_terms_without_concepts_are_matched_so_that_synonyms_stay_together(tmp_path: Path) -> None:
    conso = [mrconso(f"C{n:07}", f"drug {n}", preferred=True) for n in range(12)]
    conso += [mrconso(f"C{n:07}", f"trade {n}") for n in range(12)]
    conso += [mrconso(f"C{n:07}", f"disease {n}", preferred=True) for n in range(20, 32)]
    rows = [mrrel(f"C{20 + (n + k) % 12:07}", "may_treat", f"C{n:07}") for n in range(12) for k in range(4)]
    folder = write_umls(tmp_path / "meta", rows, conso)
    terms = [f"{kind} {n}" for n in range(12) for kind in ("Drug", "trade")] + [f"disease {n}" for n in range(20, 32)]
    graph = graph_of(terms)
    graph.save(tmp_path / "graph")
    facts = facts_from_umls(folder, names=Names.from_graph(tmp_path / "graph"))
    assert facts.matched["Drug 3"] == facts.matched["trade 3"] == "C0000003"
    data = build_dataset(graph, facts, tmp_path / "data", minimum=10)
    splits_of: dict[tuple[str, str], set[str]] = {}
    for split in ("train", "dev", "test"):
        found = data.facts(split)
        for h, t in zip(found.head.tolist(), found.tail.tolist(), strict=True):
            splits_of.setdefault((facts.matched[terms[h]], terms[t]), set()).add(split)
    assert sum(len(data.facts(split)) for split in ("train", "dev", "test")) == 12 * 4 * 2
    assert all(len(splits) == 1 for splits in splits_of.values())
