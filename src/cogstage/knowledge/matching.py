"""Names matched to concepts: the names of a lexicon or graph against those of a knowledge base."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cogstage.artefact import is_artefact
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.vocabulary import Vocabulary, fold
from cogstage.tables import BadRows, read_rows

RULES = ("first", "all", "skip")


@dataclass(frozen=True)
class Names:
    """The concepts that facts are wanted for, and the folded names of each.

    A concept is what a lexicon or graph calls so; a term without one is its own concept.
    """

    concepts_of: Mapping[str, tuple[str, ...]]  # folded name -> concepts, in the order they were met
    concepts: frozenset[str]

    @classmethod
    def of(cls, named: Iterable[tuple[str, str]]) -> Names:
        """From pairs (name, concept)."""
        concepts_of: dict[str, dict[str, None]] = {}
        concepts: set[str] = set()
        for name, concept in named:
            concepts.add(concept)
            concepts_of.setdefault(fold(name), {})[concept] = None
        return cls({name: tuple(found) for name, found in concepts_of.items()}, frozenset(concepts))

    @classmethod
    def of_graph(cls, path: Path | str) -> Names:
        """The names of a graph's nodes: keys, readable names and synonyms."""
        path = Path(path)
        if not is_artefact(path, "graph"):
            raise UsageError(f"{path} is not a graph made by cogstage")
        try:
            return cls.of(_named(Vocabulary.read(path)))
        except (OSError, KeyError, ValueError) as error:  # pyarrow's errors are among these
            raise CogstageError(f"{path} is damaged ({error}); build the graph again") from error

    @classmethod
    def of_lexicon(cls, path: Path | str, bad: BadRows | None = None) -> Names:
        """The names of a lexicon table: term, and where there are any concept and name."""

        def named() -> Iterator[tuple[str, str]]:
            for row in read_rows(path, ["term"], ["concept", "name"], bad):
                concept = str(row["concept"] or row["term"])
                yield str(row["term"]), concept
                if row["name"]:
                    yield str(row["name"]), concept

        return cls.of(named())


def _named(vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    concept = [c or t for c, t in zip(vocabulary.concept, vocabulary.term, strict=True)]
    for names in (vocabulary.term, vocabulary.name):
        yield from ((name, own) for name, own in zip(names, concept, strict=True) if name)
    yield from ((synonym, concept[node]) for synonym, node in vocabulary.synonyms)


def check_rule(rule: str) -> None:
    """Raise unless the ambiguity rule is known."""
    if rule not in RULES:
        raise UsageError(f"unknown rule for ambiguous names: {rule}; there are {', '.join(RULES)}")


@dataclass
class Matcher:
    """Gathers which concepts of a knowledge base the wanted concepts may stand for, and decides by the rule.

    Ambiguous is a wanted concept whose names lead to several concepts of the knowledge base. ``first`` takes the one
    that most of its names lead to, then the one whose preferred name it is, then the lowest identifier. ``all`` makes
    these concepts one. ``skip`` leaves it out.
    """

    names: Names
    rule: str = "first"
    _votes: dict[str, Counter[str]] = field(default_factory=dict)
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        check_rule(self.rule)

    def offer(self, name: str, concept: str, preferred: bool = False) -> None:
        """The knowledge base calls ``concept`` by this name."""
        folded = fold(name)
        wanted = self.names.concepts_of.get(folded)
        if wanted is None:
            return
        first_time = (folded, concept) not in self._seen
        self._seen.add((folded, concept))
        for own in wanted:
            # Whole votes for names; a half at most for being preferred, however many sources say so.
            votes = self._votes.setdefault(own, Counter())
            votes[concept] += 2 * first_time
            if preferred and votes[concept] % 2 == 0:
                votes[concept] += 1

    def decide(
        self, identifiers: frozenset[str] = frozenset()
    ) -> tuple[dict[str, str], dict[str, str], dict[str, int]]:
        """Which concept each wanted one stands for, the new name of concepts that were made one, and the counts.

        A wanted concept that is itself among ``identifiers`` (those of the knowledge base) stands for itself.
        """
        counts = {"matched by identifier": 0, "matched by name": 0, "ambiguous": 0, "without a match": 0}
        matched: dict[str, str] = {}
        together: dict[str, str] = {}
        for own in sorted(self.names.concepts):
            votes = self._votes.get(own, Counter())
            if own in identifiers:
                counts["matched by identifier"] += 1
                matched[own] = own
                continue
            if not votes:
                counts["without a match"] += 1
                continue
            ranked = sorted(votes, key=lambda concept: (-votes[concept], concept))
            counts["ambiguous"] += len(ranked) > 1
            if len(ranked) > 1 and self.rule == "skip":
                continue
            counts["matched by name"] += 1
            matched[own] = ranked[0]
            if self.rule == "all":
                for other in ranked[1:]:
                    _join(together, ranked[0], other)
        merged = {concept: _root(together, concept) for concept in together}
        return {own: merged.get(concept, concept) for own, concept in matched.items()}, merged, counts


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
