"""Sample the cases of a study from prediction sources."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from cogstage.choices import JudgedBy, PlantedBias, ProtocolName, check_choice
from cogstage.errors import UsageError
from cogstage.relations import inverse, is_inverse
from cogstage.study.protocol import (
    OUTCOMES,
    RationaleSet,
    ShownRationale,
    Study,
    StudyCase,
    check_source_names,
)
from cogstage.study.sources import ExplainedPair, Pair, Source, WeightedTriple

TITLES = {
    "sets": "Which reasons help you judge a prediction?",
    "crossover": "Do a model's reasons help you judge its predictions?",
}
CELLS = 4  # a crossover holds as many right as wrong predictions, and as many that say yes as say no


@dataclass(frozen=True)
class StudyOptions:
    """Options for sampling the cases of a study."""

    title: str = ""  # shown to the reviewers; empty: that of the protocol
    protocol: ProtocolName = (
        "sets"  # "sets" compares the reasons of sources, "crossover" judging with and without reasons
    )
    evidence_arm: bool = False  # crossover: a third arm shows the reasons without the prediction
    planted_bias: PlantedBias = "none"  # crossover: whether all wrong predictions say yes (overcalls) or no
    pairs_per_reviewer: int = 20  # crossover: pairs that each reviewer judges, half of them wrongly predicted
    cases: int = 30  # sets: correctly predicted positives, as in the paper
    false_positives: int = 0  # pairs predicted positive that are negatives
    false_negatives: int = 0  # pairs predicted negative that are positives
    repeats: int = 0  # cases shown twice, for self-consistency
    without_rationales: int = 0  # further cases that each reviewer judges from the prediction alone
    per_set: int = 5  # reasons per set
    relation: str | None = None  # only pairs of this relation; None: all
    judged_by: JudgedBy = "all"  # whose predictions make a case correct: all sources, or the first as in the paper
    match_known_facts: bool = False  # all sets of a case have the same number of known facts
    threshold: float = 0.5  # a probability of at least this is a positive prediction
    seed: int = 0
    consent: str = ""  # text that reviewers agree to before they begin
    contact: str = ""  # contact for questions


def draw_study(sources: Sequence[Source], labels: Mapping[Pair, int], options: StudyOptions) -> Study:
    """Sample the cases; raise with the available numbers if there are not enough."""
    _check(options)
    check_source_names([source.name for source in sources], options.protocol)
    known: dict[Pair, int] = {}
    for source in sources:
        known.update(source.labels)
    known.update(labels)
    facts = known_facts(sources)
    by_outcome, same_sets = _sort_pairs(sources, known, options, facts)
    rng = random.Random(options.seed)
    drawn: list[tuple[Pair, str]] = []
    for outcome, number in _wanted(options).items():
        there = by_outcome[outcome]
        if len(there) < number:
            raise UsageError(
                f"the study needs {number} {outcome.replace('_', ' ')}s of {_judges(options)}, but the sources "
                f"share only {len(there)} labelled ones with reasons{_left_out(same_sets)}; use fewer cases or more "
                "predictions"
            )
        drawn += [(pair, outcome) for pair in rng.sample(there, number)]
    rng.shuffle(drawn)
    cases = [
        _case(f"c{n:03}", pair, outcome, sources, known[pair], options, facts)
        for n, (pair, outcome) in enumerate(drawn, 1)
    ]
    repeated = rng.sample(cases, options.repeats)
    cases += [replace(case, key=f"{case.key}r", repeat_of=case.key) for case in repeated]
    return Study(
        id=uuid.uuid4().hex,  # two studies from one seed may share a database
        title=options.title or TITLES[options.protocol],
        seed=options.seed,
        sources=tuple(source.name for source in sources),
        per_set=options.per_set,
        without_rationales=options.pairs_per_reviewer // (3 if options.evidence_arm else 2)
        if options.protocol == "crossover"
        else options.without_rationales,
        cases=tuple(cases),
        protocol=options.protocol,
        consent=options.consent.strip(),
        contact=" ".join(options.contact.split()),
        same_sets_left_out=same_sets,
        evidence_arm=options.evidence_arm,
        planted_bias=options.planted_bias,
    )


def _wanted(options: StudyOptions) -> dict[str, int]:
    if options.protocol == "crossover":
        cell = options.pairs_per_reviewer // CELLS
        overcalls = {"none": cell, "overcalls": 2 * cell, "undercalls": 0}[options.planted_bias]
        wrong = {"false_positive": overcalls, "false_negative": 2 * cell - overcalls}
        return {outcome: wrong.get(outcome, cell) for outcome in OUTCOMES}
    return {
        "true_positive": options.cases + options.without_rationales,
        "false_positive": options.false_positives,
        "false_negative": options.false_negatives,
    }


def _check(options: StudyOptions) -> None:
    check_choice("protocol", options.protocol, ProtocolName)
    check_choice("judged_by", options.judged_by, JudgedBy)
    check_choice("planted_bias", options.planted_bias, PlantedBias)
    if options.protocol != "crossover" and (options.evidence_arm or options.planted_bias != "none"):
        raise UsageError("`evidence_arm` and `planted_bias` are for the protocol crossover only")
    if options.protocol == "crossover":
        cells = 3 * CELLS if options.evidence_arm else CELLS
        if options.pairs_per_reviewer < 2 * CELLS or options.pairs_per_reviewer % cells:
            raise UsageError(
                f"`pairs_per_reviewer` must be a multiple of {cells}, 8 or more, not {options.pairs_per_reviewer}"
            )
        if options.repeats or options.without_rationales or options.false_positives or options.false_negatives:
            raise UsageError(
                "a crossover study samples its own cases: `repeats`, `without_rationales`, `false_positives` and "
                "`false_negatives` are for the protocol sets only"
            )
    total = options.cases + options.false_positives + options.false_negatives + options.without_rationales
    if options.cases + options.false_positives + options.false_negatives < 1:
        raise UsageError("a study needs at least one case with rationales")
    if min(options.cases, options.false_positives, options.false_negatives, options.without_rationales) < 0:
        raise UsageError("a number of cases cannot be negative")
    if not 0 <= options.repeats <= total - options.without_rationales:
        raise UsageError(f"`repeats` is {options.repeats}; it must be between 0 and the cases with rationales")
    if not 1 <= options.per_set <= 20:
        raise UsageError(f"`per_set` is {options.per_set}; a set can have 1 to 20 reasons")
    if not 0 < options.threshold < 1:
        raise UsageError(f"`threshold` is {options.threshold}; it must be between 0 and 1")


def _judges(options: StudyOptions) -> str:
    return "all sources" if options.judged_by == "all" else "the first source"


def _left_out(same_sets: int) -> str:
    return f" ({same_sets} more have two sets with the same reasons)" if same_sets else ""


def _sort_pairs(
    sources: Sequence[Source], known: Mapping[Pair, int], options: StudyOptions, facts: Set[Pair]
) -> tuple[dict[str, list[Pair]], int]:
    """Pairs that every source explains, by outcome, in a stable order, and how many had two sets that are the same.

    Mixed outcomes are left out, and so are cases with two sets that are the same: nobody can prefer one of them.
    """
    same_sets = 0
    by_outcome: dict[str, list[Pair]] = {outcome: [] for outcome in OUTCOMES}
    shared = set.intersection(*(set(source.predictions) for source in sources))
    labelled = sorted(pair for pair in shared if pair in known and options.relation in (None, pair[1]))
    if not labelled:
        raise UsageError(
            "the sources share no labelled pair; check that they predict the same pairs, and give a `dataset` or a "
            "label field in the records"
        )
    judges = sources if options.judged_by == "all" else sources[:1]
    for pair in labelled:
        judged = [source.predictions[pair] for source in judges]
        positive = {entry.probability >= options.threshold and not entry.contradicted for entry in judged}
        sets = _sets(pair, sources, positive == {True}, options, facts) if len(positive) == 1 else ()
        if not sets:
            continue
        if len({frozenset(one.rationales) for one in sets}) < len(sets):
            same_sets += 1
            continue
        right = positive == {bool(known[pair])}
        outcome = f"{'true' if right else 'false'}_{'positive' if positive == {True} else 'negative'}"
        by_outcome[outcome].append(pair)
    return by_outcome, same_sets


def _case(
    key: str,
    pair: Pair,
    outcome: str,
    sources: Sequence[Source],
    label: int,
    options: StudyOptions,
    facts: Set[Pair],
) -> StudyCase:
    sets = _sets(pair, sources, outcome.endswith("positive"), options, facts)
    head = _name(pair[0], [source.predictions[pair].head for source in sources])
    tail = _name(pair[2], [source.predictions[pair].tail for source in sources])
    return StudyCase(key, head, pair[1], tail, label, outcome, sets)


def _name(key: str, names: Sequence[str]) -> str:
    """A term as the first source that has more than its key calls it."""
    return next((name for name in names if name != key), key)


def _sets(
    pair: Pair, sources: Sequence[Source], predicted: bool, options: StudyOptions, facts: Set[Pair]
) -> tuple[RationaleSet, ...]:
    """The strongest reasons of every source, the side that agrees with the prediction first; none if one has none.

    All sets of a case have the same length and the same number of reasons on each side: otherwise the number of
    reasons would reveal the source. With ``match_known_facts`` the same holds for known facts.
    """
    everything = [_forwards(source.predictions[pair]) for source in sources]
    other = min(sum(triple.against == predicted for triple in best[: options.per_set]) for best in everything)
    sides = []
    for against, most in ((not predicted, options.per_set - other), (predicted, other)):
        of_side = [[triple for triple in triples if triple.against == against] for triples in everything]
        length = min(most, *(len(triples) for triples in of_side))
        if options.match_known_facts:
            sides.append(_matched(of_side, length, facts))
        else:
            sides.append([triples[:length] for triples in of_side])
    if not any(triples for side in sides for triples in side):
        return ()
    return tuple(
        RationaleSet(source.name, (*agree, *differ)) for source, agree, differ in zip(sources, *sides, strict=True)
    )


def _matched(of_side: Sequence[Sequence[ShownRationale]], length: int, facts: Set[Pair]) -> list[list[ShownRationale]]:
    """The strongest reasons of each source, at most ``length``, with the same number of known facts."""
    known = [[triple_of(shown) in facts for shown in triples] for triples in of_side]
    n_known = min(sum(flags[:length]) for flags in known)
    n_new = min(length - n_known, *(len(flags) - sum(flags) for flags in known))
    chosen = []
    for triples, flags in zip(of_side, known, strict=True):
        left = {True: n_known, False: n_new}
        kept = []
        for shown, flag in zip(triples, flags, strict=True):
            if left[flag]:
                left[flag] -= 1
                kept.append(shown)
        chosen.append(kept)
    return chosen


def known_facts(sources: Sequence[Source]) -> frozenset[Pair]:
    """The reasons that a source states to be known facts, by name and in forward direction."""
    return frozenset(
        _forward(reason)
        for source in sources
        for explained in source.predictions.values()
        for reason in explained.reasons
        if reason.known
    )


def triple_of(shown: ShownRationale) -> Pair:
    """Head, relation and tail of a reason as it is shown."""
    return shown.head, shown.relation, shown.tail


def decided_by_known_facts(study: Study, facts: Set[Pair]) -> int:
    """In how many cases looking the reasons up in the known facts tells the sets apart.

    Counted are the cases in which one source has the most known facts alone, for the source for which this is most
    common: guessing this source for such sets is right that often.
    """
    most = Counter[str]()
    for case in study.cases:
        numbers = {one.source: sum(triple_of(shown) in facts for shown in one.rationales) for one in case.sets}
        first = [source for source, number in numbers.items() if number == max(numbers.values())]
        if case.repeat_of is None and len(first) == 1 < len(case.sets):
            most[first[0]] += 1
    return max(most.values(), default=0)


def _forwards(explained: ExplainedPair) -> tuple[ShownRationale, ...]:
    """The reasons in forward direction, strongest first: inverse relations would reveal the source.

    Two reasons that state the same in both directions count once.
    """
    best = sorted(explained.reasons, key=lambda reason: -abs(reason.weight))
    shown: dict[tuple[str, str, str], ShownRationale] = {}
    for reason in best:
        triple = _forward(reason)
        shown.setdefault(triple, ShownRationale(*triple, against=reason.weight < 0, unlikely=reason.unlikely))
    return tuple(shown.values())


def _forward(reason: WeightedTriple) -> Pair:
    if is_inverse(reason.relation):
        return reason.tail, inverse(reason.relation), reason.head
    return reason.head, reason.relation, reason.tail
