"""The relations' data file and its index."""

import re
from pathlib import Path

import numpy as np
import pytest

import cogstage.relations as relations
from cogstage.relations import NA, RELATIONS, RelationIndex, inverse, is_opposite, ordered, phrase, relation


def test_the_paper_s_five_read_both_ways() -> None:
    assert RELATIONS == ("may_treat", "may_prevent", "contraindicates", "causes", "symptom_of")
    assert phrase("causes") == "causes"
    assert phrase("causes_inverse") == "is caused by"
    assert [inverse(inverse(name)) for name in RELATIONS] == list(RELATIONS)


def test_every_row_of_the_file_is_whole() -> None:
    lines = (Path(relations.__file__).parent / "relations.tsv").read_text(encoding="utf-8").splitlines()
    assert len({len(line.split("\t")) for line in lines}) == 1
    known = [relation(name) for name in RELATIONS]
    assert len({one.colour for one in known}) == len({one.dash for one in known}) == len(known)
    assert all(re.fullmatch("#[0-9A-F]{6}", one.colour) for one in known)
    assert all(re.fullmatch("biolink:[a-z_]+", one.biolink) for one in known)
    assert all(len(one.dash) % 2 == 0 and one.phrase and one.inverse_phrase for one in known)


def test_an_unlisted_relation_gets_defaults() -> None:
    made_up = relation("interacts_with")
    assert phrase("interacts_with") == "interacts with"
    assert "interacts with" in phrase("interacts_with_inverse")
    assert (made_up.biolink, made_up.opposite) == ("biolink:related_to", ())
    assert made_up.colour not in {relation(name).colour for name in RELATIONS}


def test_treating_and_harming_are_opposites_in_both_directions() -> None:
    good, bad = ("may_treat", "may_prevent"), ("contraindicates", "causes")
    for one in RELATIONS:
        for other in RELATIONS:
            against = (one in good and other in bad) or (one in bad and other in good)
            assert is_opposite(one, other) == against
            assert is_opposite(inverse(one), inverse(other)) == against
            assert not is_opposite(one, inverse(other))


def test_the_index_numbers_relations_inverses_and_na() -> None:
    index = RelationIndex(("causes", "may_treat", "made_up"))
    assert index.all_names == (
        "causes",
        "may_treat",
        "made_up",
        "causes_inverse",
        "may_treat_inverse",
        "made_up_inverse",
        NA,
    )
    assert [index.number(name) for name in index.all_names] == list(range(7))
    assert index.inverse(np.arange(6)).tolist() == [3, 4, 5, 0, 1, 2]
    expected = np.zeros((6, 6), bool)
    for one, other in ((0, 1), (3, 4)):
        expected[one, other] = expected[other, one] = True
    np.testing.assert_array_equal(index.opposite, expected)
    with pytest.raises(KeyError):
        index.number("symptom_of")


def test_listed_relations_come_first() -> None:
    assert ordered(["zeta", "causes", "alpha", "may_treat"]) == ("may_treat", "causes", "alpha", "zeta")
