"""Context rules on sentences whose answer is plain to a reader, and the mechanics of scopes on small rule tables."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from cogstage.corpus.annotate import Annotator
from cogstage.corpus.context import Context, ContextRules, Cue, CueEffect, flags_of
from cogstage.corpus.lexicon import Entry, Lexicon
from cogstage.errors import CogstageError, UsageError

CASES = Path(__file__).with_name("context_cases.tsv")
CATEGORIES = [flag.name.lower() for flag in Context]


def read_cases() -> list[tuple[str, list[tuple[int, int]], list[set[str]]]]:
    cases = []
    with CASES.open(encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE):
            text, spans = "", []
            for part in re.split(r"(\[[^]]+\])", row["sentence"]):
                inner = part[1:-1] if part.startswith("[") else part
                if part.startswith("["):
                    spans.append((len(text), len(text) + len(inner)))
                text += inner
            answers = [set(answer.split(",")) - {"plain"} for answer in row["answers"].split(";")]
            assert len(answers) == len(spans), row["sentence"]
            assert all(answer <= set(CATEGORIES) for answer in answers), row["sentence"]
            cases.append((text, spans, answers))
    return cases


def names(flags: int) -> set[str]:
    return {flag.name.lower() for flag in Context if flags & flag}


@pytest.fixture(scope="module")
def judged() -> list[tuple[str, str, set[str], set[str]]]:
    """Sentence, mention, right answer, given answer."""
    cases = read_cases()
    terms = {text[a:b].lower() for text, spans, _ in cases for a, b in spans}
    annotator = Annotator(Lexicon.build(Entry(term) for term in sorted(terms)))
    found = []
    for text, spans, answers in cases:
        given = {(m.start, m.end): names(m.context) for m in annotator.annotate(text)}
        for span, answer in zip(spans, answers, strict=True):
            assert span in given, (text, span, given)
            found.append((text, text[slice(*span)], answer, given[span]))
    return found


def test_there_are_enough_cases() -> None:
    assert len(read_cases()) >= 150


@pytest.mark.parametrize("category", CATEGORIES)
def test_precision_and_recall(judged: list[tuple[str, str, set[str], set[str]]], category: str) -> None:
    right = sum(category in answer and category in given for _, _, answer, given in judged)
    wanted = sum(category in answer for _, _, answer, _ in judged)
    said = sum(category in given for _, _, _, given in judged)
    precision, recall = right / said, right / wanted
    print(f"{category}: {wanted} mentions, precision {precision:.3f}, recall {recall:.3f}")
    for text, mention, answer, given in judged:
        if (category in answer) != (category in given):
            print(f"  {'missed' if category in answer else 'wrongly said'}: {mention} in {text!r}")
    assert wanted >= 20
    assert precision >= 0.9
    assert recall >= 0.9


def test_plain_mentions_stay_plain(judged: list[tuple[str, str, set[str], set[str]]]) -> None:
    plain = [given for _, _, answer, given in judged if not answer]
    assert sum(not given for given in plain) / len(plain) >= 0.9


def rules(tmp_path: Path, *lines: str) -> ContextRules:
    path = tmp_path / "rules.tsv"
    path.write_text("cue\tcategory\tdirection\treach\n" + "\n".join(lines) + "\n")
    return ContextRules.read(path)


def flags(text: str, chosen: ContextRules, *terms: str) -> list[int]:
    annotator = Annotator(Lexicon.build(Entry(term) for term in terms), rules=chosen)
    return [mention.context for mention in annotator.annotate(text)]


def test_reach_direction_and_stop(tmp_path: Path) -> None:
    chosen = rules(
        tmp_path, "no\tnegated\tforward\t3", "gone\tnegated\tbackward\t", "but\tall\tstop\t", "ma\tfamily\tboth\t"
    )
    assert flags("no a b c cold", chosen, "cold") == [0]  # beyond the reach
    assert flags("no a b cold", chosen, "cold") == [1]
    assert flags("cold no", chosen, "cold") == [0]
    assert flags("cold x gone", chosen, "cold") == [1]
    assert flags("cold but flu gone", chosen, "cold", "flu") == [0, 1]
    assert flags("no cold but flu", chosen, "cold", "flu") == [1, 0]
    assert flags("cold ma flu", chosen, "cold", "flu") == [2, 2]
    assert flags("no ma cold", chosen, "cold") == [3]


def test_scopes_end_with_the_sentence(tmp_path: Path) -> None:
    chosen = rules(tmp_path, "no\tnegated\tforward\t", "gone\tnegated\tbackward\t")
    assert flags("No cold. Has flu.", chosen, "cold", "flu") == [1, 0]
    assert flags("Cold here.\nAll gone.", chosen, "cold") == [0]
    assert flags("No cold\nFlu", chosen, "cold", "flu") == [1, 0]


def test_the_longest_cue_wins_and_cues_inside_a_mention_say_nothing(tmp_path: Path) -> None:
    chosen = rules(tmp_path, "no\tnegated\tforward\t", "no (big|) doubt\tnegated\tnothing\t")
    assert flags("no doubt cold", chosen, "cold") == [0]
    assert flags("no big doubt cold", chosen, "cold") == [0]
    assert flags("no sign cold", chosen, "cold") == [1]
    assert flags("the no reflow and flu", chosen, "no reflow", "flu") == [0, 0]


def test_counted_rows_leave_flagged_mentions_out() -> None:
    lexicon = Lexicon.build([Entry("fever"), Entry("cough")])
    text = "No fever. History of cough. Has fever."
    assert Annotator(lexicon).term_rows([text])[2].tolist() == [0]
    assert Annotator(lexicon, context=False).term_rows([text])[2].tolist() == [0, 1, 0]
    assert Annotator(lexicon, leave_out=Context.NEGATED).term_rows([text])[2].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("no\tnegative\tforward\t", "unknown category"),
        ("no\tnegated\tonwards\t", "column direction"),
        ("no\tnegated\tforward\tmany", "column reach"),
    ],
)
def test_a_broken_rule_names_line_and_column(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(CogstageError, match=rf"rules.tsv:2, .*{said}|rules.tsv:2, column category: {said}"):
        rules(tmp_path, line)


def test_missing_or_headless_rules(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        ContextRules.read(tmp_path / "none.tsv")
    (tmp_path / "bad.tsv").write_text("no\tnegated\n")
    with pytest.raises(CogstageError, match="columns must be"):
        ContextRules.read(tmp_path / "bad.tsv")


def spans_in_order(most: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Stretches of tokens that do not overlap."""
    edges = st.lists(st.integers(0, 60), max_size=2 * most, unique=True).map(sorted)
    return edges.map(lambda found: list(zip(found[::2], found[1::2], strict=False)))


EFFECTS = st.builds(
    CueEffect, st.integers(1, 15), st.booleans(), st.booleans(), st.booleans(), st.sampled_from([0, 1, 5, 1 << 30])
)


@hypothesis.given(spans_in_order(8), spans_in_order(8), st.lists(st.lists(EFFECTS, max_size=2), min_size=8, max_size=8))
def test_flags_are_those_of_the_rule_written_down_plainly(
    mentions: list[tuple[int, int]], places: list[tuple[int, int]], effects: list[list[CueEffect]]
) -> None:
    cues = [Cue(*place, tuple(found)) for place, found in zip(places, effects, strict=False)]
    assert flags_of(mentions, cues, 0, 61) == plain_flags(mentions, cues, 0, 61)


def plain_flags(mentions: list[tuple[int, int]], cues: list[Cue], start: int, end: int) -> list[int]:
    """Every mention against every cue."""
    cues = [cue for cue in cues if not any(s <= cue.start and cue.end <= e for s, e in mentions)]
    flags = [0] * len(mentions)
    for place, cue in enumerate(cues):
        for effect in cue.effects:
            behind = [c.start for c in cues[place + 1 :] if any(e.stop and e.flags & effect.flags for e in c.effects)]
            before = [c.end for c in cues[:place] if any(e.stop and e.flags & effect.flags for e in c.effects)]
            scopes = []
            if effect.forward:
                scopes.append((cue.end, min([end, cue.end + effect.reach, *behind])))
            if effect.backward:
                scopes.append((max([start, cue.start - effect.reach, *before]), cue.start))
            for first, last in scopes:
                for number, (s, e) in enumerate(mentions):
                    if s >= first and e <= last:
                        flags[number] |= effect.flags
    return flags
