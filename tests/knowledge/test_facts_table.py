"""Facts from tables: other column names, names matched to a lexicon, bad rows."""

import contextlib
from pathlib import Path

import numpy as np
import pytest

from cogstage.cli.main import run
from cogstage.errors import CogstageError
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.located import Concepts, locate
from cogstage.knowledge.matching import Names
from cogstage.knowledge.table import OTHER_TYPE, facts_from_table
from cogstage.tables import BadRows


def test_rows_and_other_column_names(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("Subject\tpredicate\tobject\tsources\naspirin\tmay_treat\tpain\tx;y\n")
    (tmp_path / "b.csv").write_text('head,relation,tail\n"pain, acute",symptom_of,flu\naspirin,may_treat,pain\n')
    facts = facts_from_table([tmp_path / "a.tsv", tmp_path / "b.csv"])
    assert list(zip(facts.head, facts.relation, facts.tail, facts.source, strict=True)) == [
        ("aspirin", "may_treat", "pain", "x;y"),
        ("pain, acute", "symptom_of", "flu", ""),
    ]


@pytest.mark.parametrize(("rule", "tails"), [("first", {"C1"}), ("all", {"C1", "C2"}), ("skip", set())])
def test_names_are_matched_by_folded_form(tmp_path: Path, rule: str, tails: set[str]) -> None:
    (tmp_path / "lexicon.tsv").write_text(
        "term\tconcept\tname\ncold\tC1\tCommon cold\nCold\tC2\tCold weather\naspirin\tC3\tAspirin\n"
    )
    (tmp_path / "facts.tsv").write_text("head\trelation\ttail\nASPIRIN\tr\t cold \nC3\tr\tnobody knows\n")
    facts = facts_from_table(tmp_path / "facts.tsv", Names.from_lexicon(tmp_path / "lexicon.tsv"), rule)
    assert set(facts.tail) - {"nobody knows"} == tails
    assert set(facts.head) == {"C3"}
    assert facts.made_with["names"] == {
        "ambiguous": 1,
        "matched by name": 1,
        "used unchanged": 1,
        "unknown to the lexicon or graph": 1,
    }


def test_a_bad_row_is_named_or_counted(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("head\trelation\ttail\na\tr\tb\nc\t\td\n")
    with pytest.raises(CogstageError, match=r"facts\.tsv:3, column relation: no value"):
        facts_from_table(path)
    bad = BadRows(skip=True)
    facts = facts_from_table(path, bad=bad)
    assert (len(facts), facts.made_with["bad rows"]) == (1, 1)
    path.write_text("head\trel\ttail\na\tr\tb\n")
    with pytest.raises(CogstageError, match="no column relation; the columns are head, rel, tail"):
        facts_from_table(path)


def faers_names() -> Names:
    """Nodes as the FAERS reader makes them with indications: a reaction and an indication may share a name."""
    types = {"drug:METFORMIN": "drug", "drug:PAIN": "drug", "pt:PAIN": "reaction", "indication:PAIN": "indication",
             "indication:GOUT": "indication", "pt:RASH": "reaction"}  # fmt: skip
    return Names.from_pairs(((key.partition(":")[2].title(), key) for key in types), types)


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        ("Metformin\tcauses\tPain\t\t", ("drug:METFORMIN", "causes", "pt:PAIN")),
        ("Metformin\tmay_treat\tPain\t\t", ("drug:METFORMIN", "may_treat", "indication:PAIN")),
        ("Pain\tmay_treat\tGout\t\t", ("drug:PAIN", "may_treat", "indication:GOUT")),
        ("Metformin\tmay_treat\tRash\t\t", ("drug:METFORMIN", "may_treat", "pt:RASH")),  # the only node of the name
        ("Metformin\tcauses\tGout\t\t", None),  # known as an indication only
        ("Metformin\trelated\tPain\t\t", None),  # ambiguous
        ("Metformin\trelated\tPain\t\tdrug", ("drug:METFORMIN", "related", "drug:PAIN")),
        ("Metformin\trelated\tPain\tdrug\treaction", ("drug:METFORMIN", "related", "pt:PAIN")),
    ],
)
def test_names_are_matched_together_with_their_types(
    tmp_path: Path, fact: str, expected: tuple[str, str, str] | None
) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text(f"head\trelation\ttail\thead_type\ttail_type\n{fact}\n")
    facts = facts_from_table(path, faers_names())
    assert list(zip(facts.head, facts.relation, facts.tail, strict=True)) == ([expected] if expected else [])
    if expected is None and "related" in fact:
        assert facts.made_with["names"]["ambiguous, of different types: left out"] == 1
        assert facts.made_with["ambiguous names"] == ["Pain: drug:PAIN, pt:PAIN, indication:PAIN"]
    elif expected is None:
        assert facts.made_with["names"][OTHER_TYPE] == 1
        assert [name for name, _, _ in facts.unmatched] == ["Gout"]


def test_facts_of_a_knowledge_base_are_placed_on_nodes_of_the_right_type() -> None:
    terms = ("drug:METFORMIN", "indication:PAIN", "pt:PAIN")
    words = Vocabulary(terms, terms, ("Metformin", "Pain", "Pain"), ("drug", "indication", "reaction"), np.ones(3, int))
    statements = [("M", "causes", "P", ""), ("M", "may_treat", "P", "")]
    matched = {"drug:METFORMIN": "M", "indication:PAIN": "P", "pt:PAIN": "P"}
    facts = Facts.from_statements(statements, matched=matched)
    located, _ = locate(facts, words, Concepts.from_vocabulary(words, matched))
    named = [(terms[h], located.relations[r], terms[t])
             for h, r, t in zip(located.head, located.relation, located.tail, strict=True)]  # fmt: skip
    assert sorted(named) == [
        ("drug:METFORMIN", "causes", "pt:PAIN"),
        ("drug:METFORMIN", "may_treat", "indication:PAIN"),
    ]


def test_facts_with_both_ends_in_the_graph_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line says how many of the facts a data set on this graph can use."""
    (tmp_path / "lexicon.csv").write_text("term,concept\naspirin,D1\nheadache,C1\nfever,C2\n")
    rows = ["head,relation,tail", "aspirin,may_treat,headache", "aspirin,may_treat,gout", "x,causes,y", "D1,causes,C2"]
    (tmp_path / "facts.csv").write_text("\n".join(rows))
    known = {"aspirin", "headache", "fever", "D1", "C1", "C2"}
    usable = sum({row.split(",")[0], row.split(",")[2]} <= known for row in rows[1:])
    words = ["facts", "table", "facts.csv", "--lexicon", "lexicon.csv", "--out", "facts"]
    with contextlib.chdir(tmp_path), pytest.raises(SystemExit):
        run(words)
    assert f"4 facts are in facts; {usable} have both ends in the lexicon or graph." in capsys.readouterr().out
