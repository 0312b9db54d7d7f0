"""Names matched to concepts: the names of a lexicon or graph against those of a knowledge base."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cogstage.artefact import is_artefact
from cogstage.choices import Ambiguity
from cogstage.corpus.tokens import casefold_text
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.nearest import NearNames
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.names import NameStep, code_key, forms, similarity, system_code, types_agree, without_salt
from cogstage.tables import BadRows, read_rows

NEAREST = 3  # nodes that unmatched.tsv names as near
_DRUGS = frozenset({"drug", "chemical", "agent"})
LOOKED_UP = 500  # of the most common unmatched names, for which near nodes are looked up


@dataclass(frozen=True)
class Names:
    """The concepts that facts are wanted for, and the names and types of each.

    Concepts are those of a lexicon or graph; a term without a concept is its own concept.
    """

    named: Mapping[str, tuple[str, ...]]  # casefolded name -> concepts, in the order they were met
    concepts: frozenset[str]
    types: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_pairs(cls, named: Iterable[tuple[str, str]], types: Mapping[str, str] | None = None) -> Names:
        """Create names from pairs (name, concept)."""
        concepts_of: dict[str, dict[str, None]] = {}
        concepts: set[str] = set()
        for name, concept in named:
            concepts.add(concept)
            concepts_of.setdefault(casefold_text(name), {})[concept] = None
        return cls({name: tuple(found) for name, found in concepts_of.items()}, frozenset(concepts), types or {})

    @classmethod
    def from_graph(cls, path: Path | str) -> Names:
        """The names of a graph's nodes: keys, readable names and synonyms."""
        path = Path(path)
        if not is_artefact(path, "graph"):
            raise UsageError(f"{path} is not a graph made by cogstage")
        try:
            vocabulary = Vocabulary.read(path)
        except (OSError, KeyError, ValueError) as error:  # pyarrow's errors are among these
            raise CogstageError(f"{path} is damaged ({error}); build the graph again") from error
        return cls.from_vocabulary(vocabulary)

    @classmethod
    def from_vocabulary(cls, vocabulary: Vocabulary) -> Names:
        """Collect the names and synonyms of the nodes of a graph."""
        concepts = [c or t for c, t in zip(vocabulary.concept, vocabulary.term, strict=True)]
        return cls.from_pairs(_named(vocabulary, concepts), dict(zip(concepts, vocabulary.type, strict=True)))

    @classmethod
    def from_lexicon(cls, path: Path | str, bad: BadRows | None = None) -> Names:
        """The names of a lexicon table: term, and if there are any, concept, name and type."""
        types: dict[str, str] = {}

        def named() -> Iterator[tuple[str, str]]:
            for row in read_rows(path, ["term"], ["concept", "name", "type"], bad):
                concept = str(row["concept"] or row["term"])
                if row["type"]:
                    types[concept] = str(row["type"])
                yield str(row["term"]), concept
                if row["name"]:
                    yield str(row["name"]), concept

        names = cls.from_pairs(named())
        return cls(names.named, names.concepts, types)

    @cached_property
    def _by_form(self) -> dict[tuple[int, str], list[str]]:
        """Names by every form of theirs, with the step of the form."""
        found: dict[tuple[int, str], list[str]] = {}
        for name in self.named:
            for step, form in enumerate(forms(name)):
                if form:
                    found.setdefault((step, form), []).append(name)
        return found

    @cached_property
    def by_code(self) -> dict[str, str]:
        """The concept of each code, for concepts that are written as a code of a known system."""
        return {key: concept for concept in sorted(self.concepts, reverse=True) if (key := code_key(concept))}

    def find(self, name: str, loosely: bool = True) -> tuple[tuple[str, ...], NameStep | None]:
        """The concepts that a name stands for, and the first step at which it agrees with theirs.

        Where several agree at that step, the one that is written most like it comes first. Not ``loosely`` tries the
        first step alone, which is ten times as fast.
        """
        same = self.named.get(casefold_text(name))
        if same is not None or not loosely:
            return (same, NameStep.CASE) if same else ((), None)
        for number, (step, form) in enumerate(zip(NameStep, forms(name), strict=True)):
            found = self._by_form.get((number, form)) if form else None
            if found:
                if len(found) > 1:
                    found = sorted(found, key=lambda other: similarity(other, casefold_text(name)), reverse=True)
                return tuple(dict.fromkeys(concept for other in found for concept in self.named[other])), step
        return (), None

    def find_drug(self, name: str) -> tuple[str, ...]:
        """The concepts that a name stands for; if there are none, those that differ from it by a salt or ester."""
        return self.find(name)[0] or self._without_salt.get(without_salt(name), ())

    @cached_property
    def _without_salt(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, dict[str, None]] = {}
        for name, concepts in self.named.items():
            drugs = self.allowed(concepts, _DRUGS)
            if drugs and (form := without_salt(name)):
                found.setdefault(form, {}).update(dict.fromkeys(drugs))
        return {form: tuple(concepts) for form, concepts in found.items()}

    def allowed(self, concepts: Iterable[str], types: frozenset[str]) -> tuple[str, ...]:
        """Those of the concepts whose type agrees with one of ``types``."""
        return tuple(concept for concept in concepts if types_agree(self.types.get(concept, ""), types))

    @cached_property
    def _near(self) -> NearNames:
        return NearNames(list(self.named))

    def nearest(self, name: str) -> str:
        """The nearest nodes of a name that matches none, each with its similarity: ``aspirin (0.86); ...``."""
        text = casefold_text(name)[:200]
        near = self._near.nearest(text, NEAREST)
        return "; ".join(f"{found} ({difflib.SequenceMatcher(None, found, text).ratio():.2f})" for found in near)


def _named(vocabulary: Vocabulary, concepts: list[str]) -> Iterator[tuple[str, str]]:
    for names in (vocabulary.term, vocabulary.name):
        yield from ((name, own) for name, own in zip(names, concepts, strict=True) if name)
    yield from ((synonym, concepts[node]) for synonym, node in vocabulary.synonyms)


def how(step: NameStep) -> str:
    """The kind of match, for the counts."""
    return "by name" if step is NameStep.CASE else f"by name, over {step.value}"


def unmatched_rows(counts: Mapping[str, int], names: Names | None) -> tuple[tuple[str, int, str], ...]:
    """Rows (name, how often, nearest nodes) of what matched nothing, the most common first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        (name, count, names.nearest(name) if names is not None and row < LOOKED_UP else "")
        for row, (name, count) in enumerate(ordered)
    )


@dataclass
class Matcher:
    """Matches the wanted concepts to concepts of a knowledge base.

    A code that both sides have decides alone. Otherwise names vote, within types that agree; a name that agrees
    only after a later :class:`NameStep` counts where none agrees earlier. A concept is ambiguous if its names lead to
    several concepts of the knowledge base. ``first`` takes the one that most of its names lead to, then the one whose
    preferred name it is, then the lowest identifier. ``all`` makes these concepts one. ``skip`` leaves it out.
    """

    names: Names
    rule: Ambiguity = "first"
    _votes: dict[str, dict[NameStep, Counter[str]]] = field(default_factory=dict)
    _by_code: dict[str, Counter[str]] = field(default_factory=dict)
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def offer(self, name: str, concept: str, preferred: bool = False, loosely: bool = True) -> None:
        """The knowledge base calls ``concept`` by this name."""
        wanted, step = self.names.find(name, loosely)
        if step is None:
            return
        casefolded = casefold_text(name)
        first_time = (casefolded, concept) not in self._seen
        self._seen.add((casefolded, concept))
        for own in wanted:
            # Whole votes for names; a half at most for being preferred, however many sources say so.
            votes = self._votes.setdefault(own, {}).setdefault(step, Counter())
            votes[concept] += 2 * first_time
            if preferred and votes[concept] % 2 == 0:
                votes[concept] += 1

    def offer_code(self, system: str, code: str, concept: str) -> None:
        """The knowledge base gives ``concept`` this code in a source vocabulary."""
        own = self.names.by_code.get(system_code(system, code))
        if own is not None:
            self._by_code.setdefault(own, Counter())[concept] += 1

    @property
    def voted(self) -> set[str]:
        """The concepts of the knowledge base that names lead to."""
        return {concept for steps in self._votes.values() for votes in steps.values() for concept in votes}

    def decide(
        self, identifiers: frozenset[str] = frozenset(), types: Mapping[str, frozenset[str]] | None = None
    ) -> MatchResult:
        """Which concept each wanted one stands for.

        A wanted concept that is itself among ``identifiers`` (those of the knowledge base) stands for itself.
        ``types`` are those of the knowledge base's concepts.
        """
        result = MatchResult()
        together: dict[str, str] = {}
        for own in sorted(self.names.concepts):
            if own in identifiers:
                result.count("matched by identifier")
                result.concept[own] = own
                continue
            if own in self._by_code:
                result.count("matched by source code")
                codes = self._by_code[own]
                result.concept[own] = min(codes, key=lambda concept: (-codes[concept], concept))
                continue
            step, ranked = self._ranked(own, types or {}, result)
            if step is None:
                result.count("without a match")
                continue
            if len(ranked) > 1:
                result.count("ambiguous")
                result.ambiguous[own] = tuple(ranked)
                if self.rule == "skip":
                    continue
            result.count("matched " + how(step))
            result.concept[own] = ranked[0]
            if self.rule == "all":
                for other in ranked[1:]:
                    _join(together, ranked[0], other)
        result.merged = {concept: _root(together, concept) for concept in together}
        result.concept = {own: result.merged.get(concept, concept) for own, concept in result.concept.items()}
        return result

    def _ranked(
        self, own: str, types: Mapping[str, frozenset[str]], result: MatchResult
    ) -> tuple[NameStep | None, list[str]]:
        """The concepts that the names of ``own`` lead to at the first step that leads anywhere, best first."""
        for step in NameStep:
            votes = self._votes.get(own, {}).get(step)
            if votes is None:
                continue
            fitting = [c for c in votes if types_agree(self.names.types.get(own, ""), types.get(c, frozenset()))]
            if fitting:
                return step, sorted(fitting, key=lambda concept: (-votes[concept], concept))
            result.count("names of another type, not matched")
        return None, []


@dataclass
class MatchResult:
    """Matches, ambiguous names and counts of :meth:`Matcher.decide`."""

    concept: dict[str, str] = field(default_factory=dict)  # of the knowledge base, for each wanted one
    merged: dict[str, str] = field(default_factory=dict)  # new names of concepts that were made one
    ambiguous: dict[str, tuple[str, ...]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def report(self) -> dict[str, object]:
        """For ``made_with``: the counts, and the first ambiguous names with what they may stand for."""
        first = [f"{own}: {', '.join(found[:5])}" for own, found in sorted(self.ambiguous.items())[:20]]
        return {"names": self.counts, **({"ambiguous names": first} if first else {})}


def _root(together: dict[str, str], concept: str) -> str:
    while together.get(concept, concept) != concept:
        concept = together[concept]
    return concept


def _join(together: dict[str, str], first: str, second: str) -> None:
    """Make two concepts one, under the lower identifier."""
    low, high = sorted((_root(together, first), _root(together, second)))
    together[high] = low
    together.setdefault(low, low)
    for concept in (first, second):
        together.setdefault(concept, low)
