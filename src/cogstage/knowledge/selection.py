"""Select the facts of a data set: by relation, not held out, and dated if the split is by time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cogstage.artefact import safe_name
from cogstage.choices import NegativeKind, SplitKind, check_choice
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.hold_out import HoldOut, hold_out_report, taken_out
from cogstage.knowledge.located import Concepts, LocatedFacts
from cogstage.knowledge.time_split import dated_facts
from cogstage.numbering import new_numbers
from cogstage.progress import Progress

FEW = 1_000  # number of facts below which results are unreliable; the paper used no smaller relation


@dataclass(frozen=True)
class DatasetOptions:
    """How a data set is built."""

    negatives: NegativeKind = "degree"  # which negatives occur in pairs/
    split: SplitKind = "random"
    seed: int = 0
    minimum: int = 100  # relations with fewer facts in the graph are left out
    cap: int | None = None  # most facts per relation, drawn at random
    relations: tuple[str, ...] | None = None  # only these; None takes all that the facts hold
    before: int | None = None  # with a split by time: train and dev are facts stated before this year, test later ones

    def check(self) -> None:
        """Raise if an option is invalid."""
        check_choice("negatives", self.negatives, NegativeKind)
        check_choice("split", self.split, SplitKind)
        if self.minimum < 1:
            raise UsageError(f"`minimum` must be at least 1, not {self.minimum}")
        if self.cap is not None and self.cap < self.minimum:
            raise UsageError(f"`cap` ({self.cap}) must be at least `minimum` ({self.minimum})")
        if self.seed < 0:
            raise UsageError(f"`seed` must be at least 0, not {self.seed}")
        if (self.split == "time") != (self.before is not None):
            raise UsageError("`split` time requires `before`, and `before` requires `split` time")


@dataclass(frozen=True)
class Selection:
    """The facts to split, the pairs of concepts that may not be negatives, and what was left out."""

    facts: LocatedFacts
    known: np.ndarray  # sorted numbers of unordered pairs of concepts
    left_out: dict[str, Any]
    held_out: dict[str, Any] = field(default_factory=dict)
    dated: dict[str, int] = field(default_factory=dict)


def select_facts(
    facts: LocatedFacts,
    concepts: Concepts,
    vocabulary: Vocabulary,
    matched: Mapping[str, str],
    options: DatasetOptions,
    hold_out: HoldOut | None,
    progress: Progress,
) -> Selection:
    """Leave out what is held out, what has no year where years are needed, and relations with too few facts."""
    known = np.unique(facts.pair)
    held: dict[str, Any] = {}
    dated: dict[str, int] = {}
    if hold_out is not None:
        pairs, missing = hold_out.numbers(vocabulary, concepts, matched)
        known = np.union1d(known, pairs)
        mask, taken = taken_out(facts, pairs)
        facts, held = facts.take(~mask), hold_out_report(hold_out, pairs, missing, taken)
        of_each = ", ".join(f"{name} {count:,}" for name, count in taken.items()) or "none"
        progress.say(f"held out: {len(pairs):,} pairs of concepts; facts removed: {of_each}")
    if options.before is not None:
        mask, dated = dated_facts(facts, options.before)
        facts = facts.take(mask)
        progress.say("facts " + ", ".join(f"{what}: {count:,}" for what, count in dated.items()))
    chosen, left_out = _choose(facts, options, progress)
    return Selection(chosen, known, left_out, held, dated)


def _choose(facts: LocatedFacts, options: DatasetOptions, progress: Progress) -> tuple[LocatedFacts, dict[str, Any]]:
    """The facts of the relations that have enough, at most ``cap`` of each; and what was left out."""
    wanted = options.relations or facts.relations
    unknown = [name for name in wanted if name not in facts.relations]
    if unknown:
        raise UsageError(f"no facts of {', '.join(unknown)}; the relations are {', '.join(facts.relations)}")
    for name in wanted:
        safe_name(name, "facts")  # it becomes the name of a folder
    size = np.bincount(facts.relation, minlength=len(facts.relations))
    few: dict[str, int] = {}
    keep = []
    for index, name in enumerate(facts.relations):
        if name not in wanted:
            continue
        if size[index] < options.minimum:
            few[name] = int(size[index])
            progress.say(
                f"warning: {name} is left out: {size[index]:,} facts in the graph, {options.minimum:,} are needed "
                "(minimum)"
            )
            continue
        keep.append(index)
        if size[index] < FEW:
            progress.say(f"warning: {name} has only {size[index]:,} facts in the graph; its figures will be uncertain")
    if not keep:
        found = ", ".join(f"{name} {count:,}" for name, count in few.items())
        raise CogstageError(
            f"no relation has {options.minimum:,} facts with both ends in the graph ({found}); lower `minimum`, or "
            "use a graph with more terms"
        )
    mask = np.isin(facts.relation, keep)
    capped: dict[str, int] = {}
    if options.cap is not None:
        rng = np.random.default_rng([options.seed, 2])
        for index in keep:
            rows = np.flatnonzero(facts.relation == index)
            if len(rows) > options.cap:
                order = np.unique(facts.pair[rows], return_inverse=True)[1].ravel()
                rank = rng.permutation(int(order.max()) + 1)[order]  # whole pairs of concepts go or stay
                mask[rows[np.argsort(rank, kind="stable")[options.cap :]]] = False
                capped[facts.relations[index]] = len(rows) - options.cap
    chosen = facts.take(mask)
    renumber = new_numbers(np.array(keep, np.int64), len(facts.relations)).astype(np.int16)
    names = tuple(facts.relations[index] for index in keep)
    chosen = LocatedFacts(names, chosen.head, renumber[chosen.relation], chosen.tail, chosen.pair, chosen.year)
    return chosen, {"relations with too few facts": few, "facts above the cap": capped}
