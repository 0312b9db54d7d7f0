"""Whether a mention is asserted, or negated, about the family, hypothetical or historical: cues and their scopes.

After ConText: a cue opens a scope forwards or backwards within its sentence; a terminator, or the cue's reach, closes
it. The cues are data (``context_rules.tsv``); the longest cue wins, so that "no increase in" hides "no".
"""

from __future__ import annotations

import enum
import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path

from cogstage.corpus.tokens import casefold_tokens
from cogstage.errors import CogstageError, UsageError


class Context(enum.IntFlag):
    """Why a mention is not counted; 0 for a plain mention."""

    NEGATED = 1
    FAMILY = 2
    HYPOTHETICAL = 4
    HISTORICAL = 8


ANY = int(Context.NEGATED | Context.FAMILY | Context.HYPOTHETICAL | Context.HISTORICAL)
DIRECTIONS = ("forward", "backward", "both", "stop", "nothing")
COLUMNS = ("cue", "category", "direction", "reach")
LANGUAGES = ("en", "de", "es", "fr", "it")
WHOLE_SENTENCE = 1 << 30


@dataclass(frozen=True, slots=True)
class CueEffect:
    """What a cue does: opens a scope (``forward``, ``backward``) for some flags, or ends theirs (``stop``)."""

    flags: int
    forward: bool
    backward: bool
    stop: bool
    reach: int  # tokens


@dataclass(frozen=True, slots=True)
class Cue:
    """A cue found in a text: its place in tokens and its effects (none for a phrase that only looks like a cue)."""

    start: int
    end: int
    effects: tuple[CueEffect, ...]
    capitals: bool = False  # it reads as an abbreviation too (NO: nitric oxide, or "NO FEVER") and stays a cue


@dataclass(frozen=True)
class ContextRules:
    """The cues as token sequences, and the effects of each."""

    phrases: tuple[tuple[str, ...], ...]
    effects: tuple[tuple[CueEffect, ...], ...]

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The different tokens of the cues, sorted."""
        return tuple(sorted({token for phrase in self.phrases for token in phrase}))

    @classmethod
    def read(cls, path: Path | str | None = None) -> ContextRules:
        """Rules from a table ``cue, category, direction, reach``; the ones that come with cogstage if none is named.

        A cue may hold alternatives in brackets, ``in (his|her) (mother|father)``; an empty one makes a word optional.
        A line ``$name``, tab, ``a|b|c`` names alternatives for ``($name)`` in the cues below it.
        """
        if path is None:
            text, where = files("cogstage.corpus").joinpath("context_rules.tsv").read_text(encoding="utf-8"), "rules"
        else:
            where = str(path)
            try:
                text = Path(path).read_text(encoding="utf-8-sig")
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"{path} cannot be read: {error}") from None
        found: dict[tuple[str, ...], list[CueEffect]] = {}
        header: list[str] | None = None
        named: dict[str, str] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            cells = [cell.strip() for cell in line.split("\t")]
            if line.startswith("$"):
                named[cells[0]] = cells[-1]
                continue
            if header is None:
                header = cells
                if tuple(header) != COLUMNS:
                    raise CogstageError(f"{where}:{number}: the columns must be {', '.join(COLUMNS)}")
                continue
            cells += [""] * (len(COLUMNS) - len(cells))
            effect = _effect(cells, f"{where}:{number}")
            for name, meaning in named.items():
                cells[0] = cells[0].replace(name, meaning)
            for cue in _alternatives(cells[0]):
                kept = found.setdefault(casefold_tokens(cue), [])
                if effect is not None:
                    kept.append(effect)
        return cls(tuple(found), tuple(tuple(effects) for effects in found.values()))


@cache
def default_rules() -> ContextRules:
    """The English rules that come with cogstage."""
    return ContextRules.read()


def rules_named(name: str | None) -> ContextRules | None:
    """The rules of one of :data:`LANGUAGES`, or of a file; None for the default."""
    if name is None or name == "en":
        return None
    if name in LANGUAGES:
        return ContextRules.read(str(files("cogstage.corpus").joinpath(f"context_rules_{name}.tsv")))
    if not Path(name).exists():
        raise UsageError(f"`context_rules` {name} is neither a file nor one of the languages {', '.join(LANGUAGES)}")
    return ContextRules.read(name)


def _effect(cells: Sequence[str], where: str) -> CueEffect | None:
    _, categories, direction, reach = cells[:4]
    if direction not in DIRECTIONS:
        raise CogstageError(f"{where}, column direction: {direction!r} must be one of {', '.join(DIRECTIONS)}")
    if reach and not reach.isdigit():
        raise CogstageError(f"{where}, column reach: {reach!r} is not a number of tokens")
    if direction == "nothing":
        return None
    flags = 0
    for name in categories.split(","):
        if name == "all":
            flags = ANY
        elif name.upper() in Context.__members__:
            flags |= Context[name.upper()]
        else:
            raise CogstageError(f"{where}, column category: unknown category {name!r}")
    return CueEffect(
        flags=int(flags),  # operations on enum members are slow
        forward=direction in ("forward", "both"),
        backward=direction in ("backward", "both"),
        stop=direction == "stop",
        reach=int(reach) if reach else WHOLE_SENTENCE,
    )


def _alternatives(cue: str) -> Iterator[str]:
    parts = re.split(r"\(([^()]*)\)", cue)
    choices = [part.split("|") if position % 2 else [part] for position, part in enumerate(parts)]
    for chosen in itertools.product(*choices):
        yield "".join(chosen)


def flags_of(mentions: Sequence[tuple[int, int]], cues: Sequence[Cue], start: int, end: int) -> list[int]:
    """The flags of each mention of one sentence (tokens ``start`` to ``end``); all places are in tokens.

    Mentions and cues come in order, and neither overlap their like. A cue inside a mention ("absence seizure") does
    not apply to it. A sentence may be a whole list without a full stop, so nothing here looks at every mention, or
    every other cue, for each cue.
    """
    if not mentions:
        return []
    firsts, lasts = zip(*mentions, strict=True)
    cues = [cue for cue in cues if cue.capitals or not _inside(cue, firsts, lasts)]
    flags = [0] * len(mentions)
    scopes = [*_forward(cues, end), *_backward(cues, start)]
    if len(scopes) > 1:
        scopes.sort()
    done: dict[int, int] = {}  # flags -> mentions before this one have them already, or not from a scope still to come
    for begin, limit, flag in scopes:
        first, last = bisect_left(firsts, begin), bisect_right(lasts, limit)
        for position in range(max(first, done.get(flag, 0)), last):
            flags[position] |= flag
        done[flag] = max(last, done.get(flag, 0))
    return flags


def _inside(cue: Cue, firsts: Sequence[int], lasts: Sequence[int]) -> bool:
    """Whether a cue is part of a mention."""
    position = bisect_right(firsts, cue.start) - 1
    return position >= 0 and cue.end <= lasts[position]


def _forward(cues: Sequence[Cue], end: int) -> Iterator[tuple[int, int, int]]:
    """Begin, end and flags of the scopes that cues open to the right, up to the next cue that ends them."""
    stops: dict[int, int] = {}  # by flags, where the next such cue begins
    for cue in reversed(cues):
        for effect in cue.effects:
            if effect.forward:
                limit = min(end, cue.end + effect.reach)
                for flags, position in stops.items():
                    if flags & effect.flags and position < limit:
                        limit = position
                yield cue.end, limit, effect.flags
        for effect in cue.effects:
            if effect.stop:
                stops[effect.flags] = cue.start


def _backward(cues: Sequence[Cue], start: int) -> Iterator[tuple[int, int, int]]:
    """The same to the left."""
    stops: dict[int, int] = {}  # by flags, where the last such cue ended
    for cue in cues:
        for effect in cue.effects:
            if effect.backward:
                limit = max(start, cue.start - effect.reach)
                for flags, position in stops.items():
                    if flags & effect.flags and position > limit:
                        limit = position
                yield limit, cue.start, effect.flags
        for effect in cue.effects:
            if effect.stop:
                stops[effect.flags] = cue.end
