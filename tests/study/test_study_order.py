"""What a reviewer cannot work out: the order of sets, and which source a set came from by its length."""

import json
import random
import string
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from study_material import SECRET, crossover_study, small_study
from study_stores import PASSWORD

from cogstage.errors import UsageError
from cogstage.study import schema
from cogstage.study.draw import StudyOptions, draw_study
from cogstage.study.folder import OpenStudy, create_folder, open_folder
from cogstage.study.placement import place_cases
from cogstage.study.protocol import Study
from cogstage.study.report import write_report
from cogstage.study.sources import ExplainedPair, Source, WeightedTriple

Make = Callable[[Study], OpenStudy]


def orders_from_seed(study: Study, seed: int, number: int) -> list[tuple[str, ...]]:
    """The attack that worked: the orders that follow from a seed and a reviewer's number alone."""
    rng = random.Random(f"{seed}:{number}")
    cases = [case.key for case in study.cases]
    rng.shuffle(cases)
    rng.shuffle(cases)
    rng.shuffle(cases)
    orders = []
    for _ in cases:
        order = list(study.sources)
        rng.shuffle(order)
        orders.append(tuple(order))
    return orders


def test_the_seed_does_not_give_the_order_away(make_study: Make) -> None:
    """Two databases with the very same study and seed hand out different orders, and no seed gives either."""
    study = small_study(cases=30)
    seen = []
    for opened in (make_study(study), make_study(Study(**{**study.__dict__, "id": "another"}))):
        person = opened.access.invite("Dr A").reviewer
        seen.append([placed.set_order for placed in opened.answers.placements(person.id)])
    assert seen[0] != seen[1]
    assert place_cases(study, 1, "") != place_cases(study, 1, str(study.seed))
    for guess in range(200):
        assert orders_from_seed(study, guess, 1) not in seen


def test_the_secret_never_leaves_the_database(make_study: Make, tmp_path: Path) -> None:
    opened = make_study(small_study())
    person = opened.access.invite("Dr A").reviewer
    with opened.database.reading() as connection:
        secret = connection.scalar(select(schema.study.c.order_secret).where(schema.study.c.id == opened.study.id))
    assert len(secret) == 64
    assert set(secret) <= set(string.hexdigits)
    assert tuple(opened.answers.placements(person.id)) == place_cases(opened.study, 1, secret)
    write_report(opened, tmp_path / "report", draws=10)
    written = [path for path in tmp_path.rglob("*") if path.is_file() and "sqlite" not in path.name]
    assert len(written) > 8
    assert not any(secret.encode() in path.read_bytes() for path in written)
    assert secret not in opened.answers.new_visit(person.id, "c001")


names = st.sampled_from(["fever", "aspirin", "stroke", "insulin", "pain", "cough"])
reasons = st.lists(
    st.builds(
        WeightedTriple, names, st.sampled_from(["may_treat", "causes", "causes_inverse"]), names, st.floats(-2, 2)
    ),
    max_size=8,
)


def _shown(some: list[WeightedTriple]) -> dict[frozenset[str], bool]:
    """Whether each statement speaks against, by what it says; the strongest counts where one is said twice."""
    found: dict[frozenset[str], bool] = {}
    for reason in sorted(some, key=lambda r: -abs(r.weight)):
        ends = (reason.tail, reason.head) if reason.relation.endswith("_inverse") else (reason.head, reason.tail)
        said = frozenset({f"0{ends[0]}", f"1{ends[1]}", reason.relation.removesuffix("_inverse")})
        found.setdefault(said, reason.weight < 0)
    return found


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(reasons, reasons), min_size=1, max_size=6), st.integers(1, 6), st.booleans())
def test_sets_of_a_case_have_the_same_shape(
    pairs: list[tuple[list[WeightedTriple], list[WeightedTriple]]], per_set: int, positive: bool
) -> None:
    """As many reasons, as many of them against: a source that has fewer is not known by it."""
    sources = [
        Source(
            name,
            {
                (f"h{n}", "may_treat", f"t{n}"): ExplainedPair(
                    f"h{n}", "may_treat", f"t{n}", 0.9 if positive else 0.1, tuple(both[side])
                )
                for n, both in enumerate(pairs)
            },
            {},
        )
        for side, name in enumerate(("one", "two"))
    ]
    labels = dict.fromkeys(sources[0].predictions, 1)
    wanted = {"cases": 1} if positive else {"cases": 0, "false_negatives": 1}
    options = StudyOptions(per_set=per_set, **wanted)  # type: ignore[arg-type]
    both_sides = [set(_shown(one).values()) & set(_shown(two).values()) for one, two in pairs]
    if not any(both_sides):
        with pytest.raises(UsageError, match="share only 0"):
            draw_study(sources, labels, options)
        return
    if not any((not positive) in sides for sides in both_sides):
        return  # they share only what contradicts the prediction, which may lie below the cut
    try:
        (case,) = draw_study(sources, labels, options).cases
    except UsageError as error:
        if "the same reasons" in str(error):  # of the sets as they were cut
            return
        raise
    first, second = (entry.rationales for entry in case.sets)
    assert set(first) != set(second)
    assert 1 <= len(first) == len(second) <= per_set
    assert [r.against for r in first] == [r.against for r in second]
    assert len(set(first)) == len(first)
    assert not any(r.relation.endswith("_inverse") for r in first + second)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 8), st.integers(1, 12), st.text(min_size=1, max_size=8))
def test_a_crossover_is_balanced(quarters: int, couple: int, secret: str) -> None:
    """Of every two reviewers each pair is judged both ways; each arm holds half of the right and wrong predictions."""
    study = crossover_study(4 * quarters)
    one, two = (place_cases(study, number, secret) for number in (2 * couple - 1, 2 * couple))
    assert {p.case_key for p in one} == {case.key for case in study.cases}
    arms = [{p.case_key: p.bare for p in placed} for placed in (one, two)]
    assert all(arms[0][key] != arms[1][key] for key in arms[0])
    for placed in (one, two):
        periods = [placed[: len(placed) // 2], placed[len(placed) // 2 :]]
        assert [len({p.bare for p in period}) for period in periods] == [1, 1]
        for period in periods:
            assert len(period) == 2 * quarters
            assert sum(study.case(p.case_key).correct for p in period) == quarters
    assert one[0].bare != two[0].bare  # they take the periods in opposite order


def test_a_crossover_says_yes_as_often_rightly_as_wrongly() -> None:
    study = crossover_study(20)
    assert Counter(case.outcome for case in study.cases) == dict.fromkeys(
        ("true_positive", "false_positive", "false_negative", "true_negative"), 5
    )
    for case in study.cases:
        first, *rest = case.sets[0].rationales
        assert first.against != case.predicted  # what agrees with the prediction stands first
        assert rest
    begins = Counter(place_cases(study, number, SECRET)[0].bare for number in range(1, 41))
    assert begins == {True: 20, False: 20}


def test_a_study_of_the_first_version_opens(database_url: str | None, tmp_path: Path) -> None:
    """A folder and a database as version 0001 wrote them: upgraded, its answers and orders stand, and it goes on."""
    from alembic import command

    from cogstage.study.database import migration_settings

    folder = tmp_path / "study"
    create_folder(folder, small_study(), PASSWORD, {}, database_url)
    record = json.loads((folder / "study.json").read_text())
    assert not {"protocol", "consent", "contact"} & record.keys()  # the file is what the first version wrote
    assert all(
        set(t) == {"head", "relation", "tail"} for c in record["cases"] for s in c["sets"] for t in s["rationales"]
    )
    opened = open_folder(folder, database_url)
    person = opened.access.invite("Dr A").reviewer
    opened.answers.save(person.id, "c001", {"score:open:0": "2"})
    before = opened.answers.placements(person.id)
    with opened.database.writing() as connection:
        settings_of = migration_settings()
        settings_of.attributes["connection"] = connection
        command.downgrade(settings_of, "0001")
    opened.close()
    with pytest.raises(Exception, match="study upgrade"):
        open_folder(folder, database_url)
    opened = open_folder(folder, database_url, upgrade=True)
    assert opened.answers.placements(person.id) == before
    assert opened.answers.of_case(person.id, "c001") == {"score:open:0": "2"}
    assert opened.administrators.is_password(PASSWORD)
    assert opened.administrators.names == ["administrator"]
    assert opened.access.invite("Dr B").reviewer.number == 2
    assert opened.access.reviewer(person.id).consented_at is None
    opened.close()
