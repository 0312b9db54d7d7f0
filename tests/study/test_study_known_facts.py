"""Known facts among the reasons: how often they tell the sets apart, and sets that are matched on them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_material import write_sources

from cogstage.cli.main import run
from cogstage.errors import UsageError
from cogstage.study.draw import StudyOptions, decided_by_known_facts, draw_study, known_facts, triple_of
from cogstage.study.protocol import Study
from cogstage.study.sources import ExplainedPair, Pair, Source, WeightedTriple, read_reasons


def source(name: str, flags: dict[Pair, list[tuple[bool, bool]]]) -> Source:
    """Reasons of a source, each given as (known, against), strongest first."""
    predictions = {
        pair: ExplainedPair(
            pair[0],
            pair[1],
            pair[2],
            0.9,
            tuple(
                WeightedTriple(f"{name} {pair[0]} {n}", "may_treat", "x", (-1 if against else 1) / (n + 1), known=known)
                for n, (known, against) in enumerate(reasons)
            ),
        )
        for pair, reasons in flags.items()
    }
    return Source(name, predictions, dict.fromkeys(predictions, 1))


def pairs(number: int) -> list[Pair]:
    return [(f"h{n}", "may_treat", f"t{n}") for n in range(number)]


def options(cases: int, matched: bool) -> StudyOptions:
    return StudyOptions(cases=cases, per_set=4, match_known_facts=matched)


def guessed(study: Study, facts: frozenset[Pair]) -> int:
    """The best of all rules "the set with the most known facts is that of S", tried one by one."""
    hits = []
    for guess in study.sources:
        hits.append(0)
        for case in study.cases:
            numbers = sorted(
                ((sum(triple_of(shown) in facts for shown in one.rationales), one.source) for one in case.sets),
                reverse=True,
            )
            if numbers[0][0] > numbers[1][0] and numbers[0][1] == guess:
                hits[-1] += 1
    return max(hits)


REASONS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=7)


@settings(deadline=None)
@given(st.lists(st.tuples(REASONS, REASONS), min_size=1, max_size=6), st.booleans())
def test_matched_sets_have_as_many_known_facts(drawn: list[tuple[list, list]], matched: bool) -> None:
    given_pairs = pairs(len(drawn))
    sources = [
        source(name, {pair: both[number] for pair, both in zip(given_pairs, drawn, strict=True)})
        for number, name in enumerate(("a", "b"))
    ]
    facts = known_facts(sources)
    for cases in range(len(drawn), 0, -1):
        try:
            study = draw_study(sources, {}, options(cases, matched))
        except UsageError:
            continue
        break
    else:
        return
    assert decided_by_known_facts(study, facts) == guessed(study, facts)
    for case in study.cases:
        described = [
            sorted((triple_of(shown) in facts, shown.against) for shown in one.rationales) for one in case.sets
        ]
        assert len({len(one) for one in described}) == 1
        assert 1 <= len(described[0]) <= 4
        assert len({tuple(sorted(against for _, against in one)) for one in described}) == 1
        if matched:
            assert described[0] == described[1]
    if matched:
        assert decided_by_known_facts(study, facts) == 0


def test_the_strongest_reasons_of_each_kind_are_shown() -> None:
    (pair,) = pairs(1)
    sources = [
        source("a", {pair: [(True, False), (False, False), (True, False), (False, False)]}),
        source("b", {pair: [(False, False), (False, False), (False, False), (True, False)]}),
    ]
    study = draw_study(sources, {}, options(1, True))
    shown = {one.source: [entry.head.split()[-1] for entry in one.rationales] for one in study.cases[0].sets}
    assert shown == {"a": ["0", "1", "3"], "b": ["0", "1", "3"]}
    assert decided_by_known_facts(study, known_facts(sources)) == 0
    study = draw_study(sources, {}, options(1, False))
    assert decided_by_known_facts(study, known_facts(sources)) == 1


def test_a_baseline_of_known_facts_gives_itself_away() -> None:
    """As the issue of blinding was measured: one source states known facts alone."""
    every = itertools.cycle([[(False, False)] * 4, [(True, False)] + [(False, False)] * 3, [(True, False)] * 4])
    sources = [
        source("graph", {pair: [(True, False)] * 4 for pair in pairs(30)}),
        source("model", {pair: next(every) for pair in pairs(30)}),
    ]
    study = draw_study(sources, {}, options(30, False))
    assert decided_by_known_facts(study, known_facts(sources)) == 20
    study = draw_study(sources, {}, options(20, True))
    assert decided_by_known_facts(study, known_facts(sources)) == 0


def test_a_table_says_which_reasons_are_known(tmp_path: Path) -> None:
    file = tmp_path / "reasons.tsv"
    header = "head\trelation\ttail\treason_head\treason_relation\treason_tail\treason_status\n"
    rows = "a\tcauses\tb\tc\tcauses_inverse\td\tknown fact\na\tcauses\tb\te\tcauses\tf\tassumed\n"
    file.write_text(header + rows)
    assert known_facts([read_reasons("x", file)]) == {("d", "causes", "c")}


def test_creating_a_study_says_how_many_cases_known_facts_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sources(tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "closed.jsonl").read_text().splitlines()]
    for line in lines:
        for reason in line["reasons_for"][:2]:
            reason["known_fact"] = True
    (tmp_path / "closed.jsonl").write_text("\n".join(map(json.dumps, lines)))
    words = ["study", "create", "-s", f"open={tmp_path / 'open.jsonl'}", "-s", f"closed={tmp_path / 'closed.jsonl'}"]
    for more, said, decided in (
        ([], "Known facts tell the sets of 30 of 30 cases apart; --match-known-facts prevents it.", 30),
        (["--match-known-facts"], "Known facts tell the sets of 0 of 30 cases apart.", 0),
    ):
        out = tmp_path / f"study{decided}"
        with pytest.raises(SystemExit) as ended:
            run([*words, *more, "--out", str(out)])
        assert not ended.value.code
        assert said in capsys.readouterr().err
        assert json.loads((out / "meta.json").read_text())["made_with"]["decided_by_known_facts"] == decided
