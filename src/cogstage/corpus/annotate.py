"""Find the terms of a lexicon in text, token by token, leftmost-longest, except mentions that the context excludes.

Every known token has a private character (see lexicon.py), so a text becomes a short string in which one automaton
finds the terms and another the context cues: a match can begin and end only at a token's edge.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from cogstage.corpus.context import ANY, Context, ContextRules, Cue, default_rules, flags_of
from cogstage.corpus.lexicon import BREAK, UNKNOWN, Lexicon, character, compile_patterns
from cogstage.corpus.tokens import TOKEN, casefold_token, normalise, sentence_breaks
from cogstage.numbering import within_groups

if TYPE_CHECKING:
    from cogstage.corpus.encoding_kernel import TokenTable

_MOST_REMEMBERED = 1 << 18  # words whose characters are cached
_LONGEST_REMEMBERED = 32
_BATCH = 1 << 21  # characters per search if sentences do not matter


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

    def _flags(self, encoded: str, starts: list[int], found: list[tuple[int, int, int]]) -> list[int] | None:
        """The context of each match; None if no cue occurs in the text."""
        assert self.rules is not None
        small = encoded.translate(self._small) if self._small else encoded
        cues = self._cues.find(small)
        if not cues:
            return None
        flags: list[int] = []
        by_sentence = {
            number: list(group) for number, group in groupby(cues, key=lambda cue: bisect_right(starts, cue[0]))
        }
        for number, group in groupby(found, key=lambda match: bisect_right(starts, match[0])):
            mentions = [(start, end) for start, end, _ in group]
            here = by_sentence.get(number)
            if here is None:
                flags.extend([0] * len(mentions))
                continue
            start = starts[number - 1] if number else 0
            end = starts[number] if number < len(starts) else len(encoded)
            placed = [Cue(s, e, self.rules.effects[which], encoded[s:e] != small[s:e]) for s, e, which in here]
            flags.extend(flags_of(mentions, placed, start, end))
        return flags

    def annotate(self, text: str) -> list[Mention]:
        """All mentions in a text, in order, with their context flags; none is left out."""
        normalised = normalise(text)
        encoded, starts = self._encode(normalised)
        found = self.lexicon.automaton.find(encoded)
        if not found:
            return []
        flags = (self._flags(encoded, starts, found) if self.context else None) or [0] * len(found)
        spans = _token_spans(normalised)
        offsets = None if normalised == text else _original_offsets(text)
        mentions = []
        for (first, last, pattern), flag in zip(found, flags, strict=True):
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

        Returns ``text_index``, ``sentence`` (from 0 within its text) and ``term_id``, all int32. Where neither
        sentences (then all numbered 0) nor context are asked for, a compiled pass does it several times as fast.
        """
        if not sentences and not self.context:
            return self._document_rows(texts)
        text_index: list[int] = []
        sentence: list[int] = []
        patterns: list[int] = []
        find = self.lexicon.automaton.find
        for number, text in enumerate(texts):
            encoded, starts = self._encode(normalise(text))
            found = find(encoded)
            if not found:
                continue
            if self.context:
                flags = self._flags(encoded, starts, found)
                if flags is not None:
                    leave_out = self.leave_out
                    self._left_out.update([flag for flag in flags if flag & leave_out])
                    found = [match for match, flag in zip(found, flags, strict=True) if not flag & leave_out]
            text_index.extend([number] * len(found))
            if starts:
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

    def _document_rows(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows of texts whose sentences do not matter, many texts in one search."""
        texts = [normalise(text) for text in texts]
        plain = [number for number, text in enumerate(texts) if text.isascii()]
        rest = [number for number, text in enumerate(texts) if not text.isascii()]
        numbers, patterns = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for chosen in chain(_batches(texts, plain), _batches(texts, rest)):
            starts = np.zeros(len(chosen) + 1, np.int64)
            np.cumsum([len(texts[number]) for number in chosen], out=starts[1:])
            codes, begins = self._table.encode("".join([texts[number] for number in chosen]), starts)
            found = self.lexicon.automaton.find(codes.tobytes().decode("utf-32-le"))
            flat = np.fromiter(chain.from_iterable(found), np.int64, 3 * len(found))
            numbers.append(np.array(chosen)[np.searchsorted(begins, flat[::3], "right") - 1])
            patterns.append(flat[2::3])
        text_index = np.concatenate(numbers)
        order = np.argsort(text_index, kind="stable")
        terms = self.lexicon.pattern_terms[np.concatenate(patterns)[order]]
        return text_index[order].astype(np.int32), np.zeros(len(order), np.int32), terms.astype(np.int32)

    @cached_property
    def _table(self) -> TokenTable:
        from cogstage.corpus.encoding_kernel import TokenTable

        return TokenTable(self._characters.casefolded)

    def concept_rows(self, texts: Sequence[str], sentences: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As :meth:`term_rows`, with concept numbers; a term of several concepts gives a row for each."""
        text_index, sentence, terms = self.term_rows(texts, sentences)
        lexicon = self.lexicon
        if not lexicon.ambiguous:
            return text_index, sentence, lexicon.first_concept[terms]
        many = np.diff(lexicon.concept_starts)[terms]
        first = np.repeat(lexicon.concept_starts[terms], many)
        concepts = lexicon.term_concepts[first + within_groups(many)]
        return np.repeat(text_index, many), np.repeat(sentence, many), concepts


def _batches(texts: Sequence[str], chosen: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of texts in batches of a few megabytes."""
    batch: list[int] = []
    size = 0
    for number in chosen:
        batch.append(number)
        size += len(texts[number])
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


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
