"""Facts from tables: other column names, names matched to a lexicon, bad rows."""

from pathlib import Path

import pytest

from cogstage.errors import CogstageError
from cogstage.knowledge.matching import Names
from cogstage.knowledge.table import facts_from_table
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
