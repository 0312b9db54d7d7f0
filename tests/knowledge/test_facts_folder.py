"""Facts: merged, sorted, saved and read back; a damaged folder is one line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogstage.errors import CogstageError, UsageError
from cogstage.knowledge.facts import Facts, counts_text

NAMES = st.sampled_from(["a", "b", "c", "é d"])


@given(st.lists(st.tuples(NAMES, st.sampled_from(["r", "q"]), NAMES, st.sampled_from(["", "x", "y;x"]))))
def test_facts_are_a_sorted_set_without_self_relations(rows: list[tuple[str, str, str, str]]) -> None:
    facts = Facts.from_statements(rows)
    triples = list(zip(facts.relation, facts.head, facts.tail, strict=True))
    assert triples == sorted({(r, h, t) for h, r, t, _ in rows if h != t})
    counts = facts.made_with["rows"]
    assert counts["read"] == len(rows)
    assert counts["self"] == sum(h == t for h, _, t, _ in rows)
    assert len(facts) == counts["read"] - counts["self"] - counts["duplicate"]
    for (r, h, t), source in zip(triples, facts.source, strict=True):
        said = {s for a, b, c, text in rows if (b, a, c) == (r, h, t) for s in text.split(";") if s}
        assert source == ";".join(sorted(said))


def test_saved_and_read_back(tmp_path: Path) -> None:
    facts = Facts.from_statements([("b", "r", "a", "x"), ("a", "r", "b", "")], {"from": "test"}, {"aspirin": "a"})
    facts.save(tmp_path / "facts")
    again = Facts.load(tmp_path / "facts")
    assert (again.head, again.relation, again.tail, again.source) == (
        facts.head,
        facts.relation,
        facts.tail,
        facts.source,
    )
    assert again.matched == {"aspirin": "a"}
    assert again.hash == facts.hash != Facts.from_statements([("a", "r", "b", "")]).hash
    assert again.relations == {"r": 2}
    facts.save(tmp_path / "twice")
    for name in ("facts.parquet", "matched.parquet", "meta.json"):
        assert (tmp_path / "facts" / name).read_bytes() == (tmp_path / "twice" / name).read_bytes()


def test_a_damaged_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        Facts.load(tmp_path / "nothing")
    Facts.from_statements([("a", "r", "b", "")]).save(tmp_path / "facts")
    (tmp_path / "facts" / "facts.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(CogstageError, match="damaged"):
        Facts.load(tmp_path / "facts")


def test_counts_leave_zeros_out() -> None:
    assert counts_text({"rows": {"read": 1200, "self": 0}, "bad rows": 2, "from": "UMLS"}) == [
        "rows: read 1,200",
        "bad rows: 2",
    ]
