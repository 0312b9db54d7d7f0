"""Find the terms of a lexicon in text, token by token, leftmost-longest, except mentions that the context excludes.

Every known token has a private character (see lexicon.py), so a text becomes a short string in which one automaton
finds the terms and another the context cues: a match can begin and end only at a token's edge.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, groupby, pairwise
from typing import Any

import numpy as np

from cogstage.corpus.context import ANY, Context, ContextRules, Cue, default_rules, flags_of
from cogstage.corpus.lexicon import BREAK, UNKNOWN, Lexicon, character, compile_patterns
from cogstage.corpus.tokens import TOKEN, casefold_token, normalise, sentence_breaks
from cogstage.numbering import within_groups

Match = tuple[int, int, int]  # first token, token behind the last, pattern
_MOST_REMEMBERED = 1 << 18  # words whose characters are cached
_LONGEST_REMEMBERED = 32
_PIECE = 1 << 16  # tokens of a long text that are searched at a time


@dataclass(frozen=True, slots=True)
class Mention:
    """A term found in a text: ``text[start:end]``, in which sentence, and what its context says (0: nothing)."""

    start: int
    end: int
    term_id: int
    concept: str
    sentence: int
    context: int = 0

    @property
    def negated(self) -> bool:
        """Negated: the text denies it."""
        return bool(self.context & Context.NEGATED)

    @property
    def family(self) -> bool:
        """About a relative of the patient."""
        return bool(self.context & Context.FAMILY)

    @property
    def hypothetical(self) -> bool:
        """A possibility, a condition or a question."""
        return bool(self.context & Context.HYPOTHETICAL)

    @property
    def historical(self) -> bool:
        """In the past, such as a medical history."""
        return bool(self.context & Context.HISTORICAL)


class WordCharacters(dict[str, str]):
    """A word between spaces -> the private characters of its tokens; remembered when first seen, up to a limit."""

    def __init__(self, casefolded: dict[str, str]) -> None:
        super().__init__()
        self.casefolded = casefolded

    def __missing__(self, word: str) -> str:
        known = self.casefolded  # an abbreviation in capitals is a token of its own
        tokens = TOKEN.findall(word)
        characters = "".join([known.get(token) or known.get(casefold_token(token), UNKNOWN) for token in tokens])
        if len(self) < _MOST_REMEMBERED and len(word) <= _LONGEST_REMEMBERED:
            self[word] = characters
        return characters


class Annotator:
    """Annotates texts with the terms of a lexicon.

    With ``context`` mentions carry flags, and the batch calls leave out those with a flag in ``leave_out`` (default:
    negated, family, hypothetical and historical ones all go); without it every mention counts.
    """

    def __init__(
        self, lexicon: Lexicon, context: bool = True, leave_out: int = ANY, rules: ContextRules | None = None
    ) -> None:
        self.lexicon = lexicon
        self.context = context
        self.leave_out = int(leave_out)
        self.rules = rules if context else None
        casefolded = {token: character(number) for number, token in enumerate(lexicon.tokens)}
        self._cues: Any = None
        if context and rules is None:
            self.rules, self._cues = default_rules(), _default_cues()
        elif self.rules is not None:
            for token in self.rules.tokens:
                casefolded.setdefault(token, character(len(casefolded)))
            self._cues = compile_patterns(["".join(casefolded[t] for t in phrase) for phrase in self.rules.phrases])
        self._left_out: Counter[int] = Counter()
        self._characters = WordCharacters(casefolded)
        self._small = str.maketrans(
            {casefolded[token]: casefolded[small] for token, small in lexicon.any_case.items() if small in casefolded}
        )

    def __reduce__(self) -> tuple[Any, ...]:
        rules = None if self.rules is default_rules() else self.rules
        return Annotator, (self.lexicon, self.context, self.leave_out, rules)

    @cached_property
    def _pattern_terms(self) -> list[int]:
        found: list[int] = self.lexicon.pattern_terms.tolist()
        return found

    def _encode(self, text: str) -> tuple[str, list[int]]:
        """A normalised text in private characters, and the places where its second and later sentences begin."""
        characters = self._characters.__getitem__
        begun, length = 0, 0
        starts: list[int] = []
        parts: list[str] = []
        for end, line_end in sentence_breaks(text):
            part = "".join(map(characters, text[begun:end].split()))
            begun = end
            if part:
                if line_end:
                    part += BREAK  # no term reaches over it
                parts.append(part)
                length += len(part)
                starts.append(length)
        parts.append("".join(map(characters, text[begun:].split())))
        return "".join(parts), starts

    @cached_property
    def _longest(self) -> int:
        """At least the number of tokens of the longest pattern; a hyphen may stand between any two words."""
        return 2 * max((len(TOKEN.findall(term)) for term in self.lexicon.terms), default=0) + 1

    def _matches(
        self, encoded: str, starts: list[int]
    ) -> Iterator[tuple[list[tuple[int, int, int]], list[int] | None]]:
        """The matches in a text (start, end, pattern) and their context flags, if there are any.

        A long text comes in pieces of whole sentences, with the same matches as if it were searched at once: each
        search looks ahead by the longest term, and begins where the last match ended.
        """
        long = len(encoded) > _PIECE
        begin = done = 0
        while begin < len(encoded):
            following = bisect_left(starts, begin + _PIECE) if long else len(starts)
            end = starts[following] if following < len(starts) else len(encoded)
            if long:
                found = self.lexicon.automaton.find(encoded[done : end + self._longest])
                found = [(s + done, e + done, pattern) for s, e, pattern in found if s + done < end]
            else:
                found = self.lexicon.automaton.find(encoded)
            if found:
                yield found, self._flags(encoded, starts, found, begin, end) if self.context else None
            begin, done = end, max(end, found[-1][1] if found else 0)

    def _flags(self, encoded: str, starts: list[int], found: list[Match], begin: int, end: int) -> list[int] | None:
        """The context of each match in the sentences from ``begin`` to ``end``; None if there is no cue."""
        assert self.rules is not None
        piece = encoded[begin:end]
        small = piece.translate(self._small) if self._small else piece
        cues = self._cues.find(small)
        if not cues:
            return None
        flags: list[int] = []
        by_sentence: dict[int, list[Cue]] = {}
        for first, last, phrase in cues:
            cue = Cue(first + begin, last + begin, self.rules.effects[phrase], piece[first:last] != small[first:last])
            by_sentence.setdefault(bisect_right(starts, cue.start), []).append(cue)
        for number, group in groupby(found, key=lambda match: bisect_right(starts, match[0])):
            mentions = [(first, last) for first, last, _ in group]
            here = by_sentence.get(number)
            if here is None:
                flags.extend([0] * len(mentions))
                continue
            first = starts[number - 1] if number else 0
            last = starts[number] if number < len(starts) else len(encoded)
            flags.extend(flags_of(mentions, here, first, last))
        return flags

    def annotate(self, text: str) -> list[Mention]:
        """All mentions in a text, in order, with their context flags; none is left out."""
        normalised = normalise(text)
        encoded, starts = self._encode(normalised)
        pieces = [(found, flags or [0] * len(found)) for found, flags in self._matches(encoded, starts)]
        if not pieces:
            return []
        spans = _token_spans(normalised)
        offsets = None if normalised == text else _original_offsets(text)
        mentions = []
        flagged = chain.from_iterable(zip(found, flags, strict=True) for found, flags in pieces)
        for (first, last, pattern), flag in flagged:
            start, end = spans[first][0], spans[last - 1][1]
            if offsets is not None:
                start, end = offsets[start][0], offsets[end - 1][1]
            term = self._pattern_terms[pattern]
            concept = self.lexicon.concepts[int(self.lexicon.first_concept[term])]
            mentions.append(Mention(start, end, term, concept, bisect_right(starts, first), int(flag)))
        return mentions

    def sentences(self, text: str) -> list[str]:
        """The sentences of a text, as the counting by sentence sees them."""
        normalised = normalise(text)
        edges = [0, *(end for end, _ in sentence_breaks(normalised)), len(normalised)]
        cut = [normalised[a:b].strip() for a, b in pairwise(edges)]
        return [sentence for sentence in cut if TOKEN.search(sentence)]

    def term_rows(self, texts: Sequence[str], sentences: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which term stands in which sentence of which text, one row per mention that counts, in order.

        Returns ``text_index``, ``sentence`` (from 0 within its text; all 0 unless ``sentences``) and ``term_id``, all
        int32.
        """
        text_index, sentence, patterns = array("i"), array("i"), array("i")
        for number, text in enumerate(texts):
            encoded, starts = self._encode(normalise(text))
            for found, flags in self._matches(encoded, starts):
                if flags is not None:
                    leave_out = self.leave_out
                    self._left_out.update([flag for flag in flags if flag & leave_out])
                    found = [match for match, flag in zip(found, flags, strict=True) if not flag & leave_out]
                text_index.extend([number] * len(found))
                if sentences and starts:
                    sentence.extend([bisect_right(starts, match[0]) for match in found])
                else:
                    sentence.extend([0] * len(found))
                patterns.extend([match[2] for match in found])
        terms = self.lexicon.pattern_terms[np.array(patterns, np.int64)]
        return np.array(text_index, np.int32), np.array(sentence, np.int32), terms.astype(np.int32)

    def take_left_out(self) -> tuple[int, ...]:
        """Return the number of mentions left out since the last call, by category of :class:`Context`.

        A mention that is negated and hypothetical counts for both.
        """
        counts = tuple(sum(n for flag, n in self._left_out.items() if flag & category) for category in Context)
        self._left_out.clear()
        return counts

    def concept_rows(self, texts: Sequence[str], sentences: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As :meth:`term_rows`, with concept numbers; a term of several concepts gives a row for each."""
        text_index, sentence, terms = self.term_rows(texts, sentences)
        lexicon = self.lexicon
        if not lexicon.ambiguous:
            return text_index, sentence, lexicon.first_concept[terms]
        n_concepts = np.diff(lexicon.concept_starts)[terms]
        first = np.repeat(lexicon.concept_starts[terms], n_concepts)
        concepts = lexicon.term_concepts[first + within_groups(n_concepts)]
        return np.repeat(text_index, n_concepts), np.repeat(sentence, n_concepts), concepts


@cache
def _default_cues() -> Any:
    """The matcher of the built-in rules, whose words have the same characters in every lexicon."""
    rules = default_rules()
    characters = {token: character(number) for number, token in enumerate(rules.tokens)}
    return compile_patterns(["".join(characters[token] for token in phrase) for phrase in rules.phrases])


def _token_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each private character's token in a normalised text; a line end between sentences has none."""
    spans: list[tuple[int, int]] = []
    begun = 0
    for end, line_end in [*sentence_breaks(text), (len(text), False)]:
        before = len(spans)
        spans.extend(token.span() for token in TOKEN.finditer(text, begun, end))
        if line_end and len(spans) > before:
            spans.append((end, end))
        begun = end
    return spans


def _original_offsets(text: str) -> list[tuple[int, int]]:
    """For each character of the normalised text, the stretch of the original that it came from.

    White space separates what normalisation can join, so a stretch is at most a word.
    """
    offsets: list[tuple[int, int]] = []
    for piece in re.finditer(r"\S+|\s+", text):
        changed = normalise(piece[0])
        if len(changed) == len(piece[0]):
            offsets.extend((position, position + 1) for position in range(piece.start(), piece.end()))
        else:
            offsets.extend([piece.span()] * len(changed))
    return offsets
