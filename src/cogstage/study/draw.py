"""Drawing a study's cases from prediction sources, by seed."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cogstage.errors import UsageError
from cogstage.rationale.record import Prediction
from cogstage.relations import inverse
from cogstage.study.protocol import Case, RationaleSet, ShownRationale, Study, check_source_names
from cogstage.study.sources import Pair, Source


@dataclass(frozen=True)
class StudyOptions:
    """How the cases of a study are drawn."""

    title: str = "Which rationales help you trust a prediction?"  # shown to the reviewers
    cases: int = 30  # correctly predicted positives, as in the paper
    false_positives: int = 0  # pairs predicted positive that are negatives
    false_negatives: int = 0  # pairs predicted negative that are positives
    repeats: int = 0  # cases shown twice, for self-consistency
    without_rationales: int = 0  # further cases that each reviewer judges from the prediction alone
    per_set: int = 5  # rationales a set
    relation: str | None = None  # only pairs of this relation; None: all
    judged_by: str = (
        "all"  # whose predictions make a case correct or not: "all" sources, or the "first" as in the paper
    )
    threshold: float = 0.5  # a probability of at least this is a positive prediction
    seed: int = 0


def draw_study(sources: Sequence[Source], labels: Mapping[Pair, int], options: StudyOptions) -> Study:
    """Draw the cases; raises with the numbers there are if the sources do not hold enough."""
    check_source_names([source.name for source in sources])
    _check(options)
    known: dict[Pair, int] = {}
    for source in sources:
        known.update(source.labels)
    known.update(labels)
    by_outcome = _sort_pairs(sources, known, options)
    rng = random.Random(options.seed)
    wanted = {
        "true_positive": options.cases + options.without_rationales,
        "false_positive": options.false_positives,
        "false_negative": options.false_negatives,
    }
    drawn: list[tuple[Pair, str]] = []
    for outcome, number in wanted.items():
        there = by_outcome[outcome]
        if len(there) < number:
            raise UsageError(
                f"{number} cases wanted that are {outcome.replace('_', ' ')}s of {_judges(options)}, but the sources "
                f"share only {len(there)} labelled ones with rationales; ask for fewer or bring more predictions"
            )
        drawn += [(pair, outcome) for pair in rng.sample(there, number)]
    rng.shuffle(drawn)
    cases = [_case(f"c{n:03}", pair, outcome, sources, known, options) for n, (pair, outcome) in enumerate(drawn, 1)]
    repeated = rng.sample(cases, options.repeats)
    cases += [replace(case, key=f"{case.key}r", repeat_of=case.key) for case in repeated]
    return Study(
        id=uuid.uuid4().hex,  # two studies from one seed may share a database
        title=options.title,
        seed=options.seed,
        sources=tuple(source.name for source in sources),
        per_set=options.per_set,
        without_rationales=options.without_rationales,
        cases=tuple(cases),
    )


def _check(options: StudyOptions) -> None:
    total = options.cases + options.false_positives + options.false_negatives + options.without_rationales
    if options.cases + options.false_positives + options.false_negatives < 1:
        raise UsageError("a study needs at least one case with rationales")
    if min(options.cases, options.false_positives, options.false_negatives, options.without_rationales) < 0:
        raise UsageError("a number of cases cannot be negative")
    if not 0 <= options.repeats <= total - options.without_rationales:
        raise UsageError(f"--repeats is {options.repeats}; it must lie between 0 and the cases with rationales")
    if not 1 <= options.per_set <= 20:
        raise UsageError(f"--top is {options.per_set}; a set holds 1 to 20 rationales")
    if not 0 < options.threshold < 1:
        raise UsageError(f"--threshold is {options.threshold}; it must lie between 0 and 1")
    if options.judged_by not in ("all", "first"):
        raise UsageError(f"--judged-by is {options.judged_by}; it is all or first")


def _judges(options: StudyOptions) -> str:
    return "all sources" if options.judged_by == "all" else "the first source"


def _sort_pairs(sources: Sequence[Source], known: Mapping[Pair, int], options: StudyOptions) -> dict[str, list[Pair]]:
    """Pairs that every source explains, by outcome, in a stable order; mixed outcomes are left out."""
    found: dict[str, list[Pair]] = {"true_positive": [], "false_positive": [], "false_negative": []}
    shared = set.intersection(*(set(source.predictions) for source in sources))
    labelled = sorted(pair for pair in shared if pair in known and options.relation in (None, pair[1]))
    if not labelled:
        raise UsageError(
            "the sources share no labelled pair; check that they predict the same pairs, and give --dataset or a "
            "label field in the records"
        )
    judges = sources if options.judged_by == "all" else sources[:1]
    for pair in labelled:
        if not all(source.predictions[pair].rationales for source in sources):
            continue
        positive = {source.predictions[pair].probability >= options.threshold for source in judges}
        if positive == {True}:
            found["true_positive" if known[pair] else "false_positive"].append(pair)
        elif positive == {False} and known[pair]:
            found["false_negative"].append(pair)
    return found


def _case(
    key: str, pair: Pair, outcome: str, sources: Sequence[Source], known: Mapping[Pair, int], options: StudyOptions
) -> Case:
    target = sources[0].predictions[pair]
    sets = tuple(RationaleSet(s.name, _shown(s.predictions[pair], options.per_set)) for s in sources)
    return Case(key, target.head.name, target.relation, target.tail.name, known[pair], outcome, sets)


def _shown(prediction: Prediction, per_set: int) -> tuple[ShownRationale, ...]:
    """The best rationales, each said forwards: a source that also says "is treated by" would give itself away.

    Two rationales that say the same both ways count once.
    """
    best = sorted(prediction.rationales, key=lambda rationale: -rationale.score)
    shown = (_forwards(entry.head.name, entry.relation, entry.tail.name) for entry in best)
    return tuple(dict.fromkeys(shown))[:per_set]


def _forwards(head: str, relation: str, tail: str) -> ShownRationale:
    turned = inverse(relation)
    backwards = len(turned) < len(relation)  # only the name of an inverse gets shorter
    return ShownRationale(tail, turned, head) if backwards else ShownRationale(head, relation, tail)
