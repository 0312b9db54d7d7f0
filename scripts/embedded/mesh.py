"""MeSH as a lexicon: concepts with names and types, which concept a name means, and the terms searched in text."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from cogstage.corpus.annotate import Annotator
from cogstage.corpus.lexicon import Entry, Lexicon
from cogstage.corpus.tokens import casefold_tokens
from cogstage.corpus.variants import variants_of
from cogstage.errors import CogstageError

# British spellings in the fact tables, American ones in MeSH
SPELLINGS = (
    (re.compile(r"oedema", re.I), "edema"),
    (re.compile(r"oestr", re.I), "estr"),
    (re.compile(r"oesoph", re.I), "esoph"),
    (re.compile(r"(?<=[rn])hoea", re.I), "hea"),
    (re.compile(r"(?<=[chklnr])aem", re.I), "em"),
    (re.compile(r"sulph", re.I), "sulf"),
    (re.compile(r"tumour", re.I), "tumor"),
    (re.compile(r"goitre", re.I), "goiter"),
    (re.compile(r"aluminium", re.I), "aluminum"),
    (re.compile(r"\s*\((?:disorder|finding)\)|,? nos$", re.I), ""),
)


SALTS = frozenset(
    [
        "acetate",
        "besylate",
        "bromide",
        "calcium",
        "citrate",
        "dipotassium",
        "disodium",
        "fumarate",
        "furoate",
        "hydrobromide",
        "hydrochloride",
        "maleate",
        "mesylate",
        "phosphate",
        "potassium",
        "sodium",
        "succinate",
        "sulfate",
        "tartrate",
        "xinafoate",
    ]
)
SHORTEST_BASE = 6  # letters of a drug's name without its salt
LONGEST_SYNONYM = 50  # characters; longer ones are systematic names that nobody types


@dataclass(frozen=True)
class Concept:
    """A MeSH descriptor (D...) or supplementary concept (C...)."""

    key: str
    name: str
    entries: tuple[str, ...]
    type: str


@dataclass(frozen=True)
class OtherName:
    """A row of the own list of names: what a fact table or a person says, and the MeSH name it stands for.

    ``use``: ``text`` names are searched in text and kept as synonyms, ``name`` ones kept as synonyms only, and
    ``broader`` ones (the concept is wider than the name) only serve to read facts.
    """

    name: str
    mesh: str
    use: str


def type_of(tree_numbers: Iterable[str], types: Iterable[Sequence[str]]) -> str:
    """The type of a descriptor: of the first rule that any of its tree numbers falls under; empty without one.

    A rule of one letter names a category, a longer one a branch (C23.888 itself and all below it).
    """
    numbers = list(tree_numbers)
    for prefix, name in types:
        for number in numbers:
            if number == prefix or number.startswith(prefix if len(prefix) == 1 else prefix + "."):
                return name
    return ""


def read_descriptors(stream: IO[bytes], types: Iterable[Sequence[str]]) -> dict[str, Concept]:
    """Descriptors by id, from the table id, name, entry terms, tree numbers."""
    types = list(types)
    rows = [(key, name, _parts(entries), _parts(trees)) for key, name, entries, trees in _lines(stream)]
    taken = {casefold_tokens(text) for _, name, entries, _ in rows for text in (name, *entries)}
    found = {}
    for key, name, entries, trees in rows:
        further = tuple(text for text in common_names(name) if casefold_tokens(text) not in taken)
        found[key] = Concept(key, name, (*entries, *further), type_of(trees, types))
    return found


def common_names(label: str) -> tuple[str, ...]:
    """How texts name a descriptor whose label is formal: a cancer for Neoplasms, a drug without its salt."""
    words = label.split(" ")
    if words[-1] == "Neoplasms" and len(words) > 1 and "," not in label:
        return tuple(" ".join((*words[:-1], last)) for last in ("Cancer", "Tumor"))
    if len(words) == 2 and words[1].lower() in SALTS and len(words[0]) >= SHORTEST_BASE:
        return (words[0],)
    return ()


def read_supplementary(stream: IO[bytes], descriptors: Mapping[str, Concept]) -> dict[str, Concept]:
    """Supplementary concepts by id; each has the type of the first descriptor that it is mapped to."""
    found = {}
    for key, name, entries, mapped in _lines(stream):
        types = [descriptors[d].type for d in mapped.replace("*", "").split(",") if d in descriptors]
        found[key] = Concept(key, name, _parts(entries), types[0] if types else "")
    return found


def _lines(stream: IO[bytes]) -> Iterator[list[str]]:
    for line in io.TextIOWrapper(stream, encoding="utf-8"):
        yield line.rstrip("\n").split("\t")[:4]


def _parts(joined: str) -> tuple[str, ...]:
    return tuple(part for part in joined.split("|") if part)


@dataclass
class Mesh:
    """All concepts, and which of them a name means."""

    descriptors: Mapping[str, Concept]
    supplementary: Mapping[str, Concept]
    others: Sequence[OtherName] = ()
    used: dict[str, Concept] = field(default_factory=dict)  # supplementary concepts that a fact named

    def __post_init__(self) -> None:
        self._labels = {casefold_tokens(concept.name): concept.key for concept in self.descriptors.values()}
        self._entries = _by_name(self.descriptors.values(), entries_only=True)
        self._supplementary = _by_name(self.supplementary.values())
        self._others: dict[tuple[str, ...], str] = {}
        for row in self.others:
            key = self._known(casefold_tokens(row.mesh))
            if key is None:
                raise CogstageError(f"the list of names says {row.name} is {row.mesh}, which MeSH does not know")
            self._others[casefold_tokens(row.name)] = key
        self._people_say: defaultdict[str, list[str]] = defaultdict(list)
        for name, key in self.other_names(["text", "name"]):
            self._people_say[key].append(name)

    def _known(self, tokens: tuple[str, ...]) -> str | None:
        if tokens in self._labels:
            return self._labels[tokens]
        for table in (self._entries, self._supplementary):
            keys = table.get(tokens, ())
            if keys:
                return keys[0] if len(keys) == 1 else None
        return None

    def find(self, name: str) -> str | None:
        """The concept a name of a fact table means: own list, label, entry term, then other spellings of it."""
        spelled = name
        for pattern, american in SPELLINGS:
            spelled = pattern.sub(american, spelled)
        for text in dict.fromkeys((name, spelled)):
            tokens = casefold_tokens(text)
            for form in dict.fromkeys((tokens, *variants_of(tokens))) if tokens else ():
                key = self._others.get(form) or self._known(form)
                if key is not None:
                    if key in self.supplementary:
                        self.used[key] = self.supplementary[key]
                    return key
        return None

    def concept(self, key: str) -> Concept | None:
        """A descriptor, or a supplementary concept that a fact named."""
        return self.descriptors.get(key) or self.used.get(key)

    def other_names(self, uses: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Names of the own list with one of the uses, and their concepts."""
        uses = set(uses)
        for row in self.others:
            if row.use in uses:
                yield row.name, self._others[casefold_tokens(row.name)]

    def annotator(self, text_rules: Mapping[str, Any]) -> Annotator:
        """Finds concepts in text: by names that are not inverted, not too short, and mean one concept only.

        A single word needs three letters as a label and five as an entry term: shorter ones are mostly abbreviations
        with other meanings. An entry term that is the label of another concept means that one.
        """
        types, stopped = set(text_rules["types"]), set(text_rules["stop"])
        entries: dict[tuple[tuple[str, ...], str], Entry] = {}
        for concept in (*self.descriptors.values(), *self.used.values()):
            if concept.type not in types or concept.name in stopped:
                continue
            for number, name in enumerate((concept.name, *concept.entries)):
                tokens = casefold_tokens(name)
                short = len(tokens) == 1 and len(name) < (5 if number else 3)
                if "," in name or short or name in stopped or self._labels.get(tokens, concept.key) != concept.key:
                    continue
                entries.setdefault((tokens, concept.key), Entry(name, concept.key, concept.name, concept.type))
        for name, key in self.other_names(["text"]):
            found = self.concept(key)
            if found is not None:
                entries.setdefault((casefold_tokens(name), key), Entry(name, key, found.name, found.type))
        return Annotator(Lexicon.build(entries.values(), ambiguity="skip", variants=True), context=False)

    def synonyms(self, key: str) -> list[str]:
        """Further names of a concept that people use: not inverted, and no plural or singular of another kept one."""
        concept = self.concept(key)
        if concept is None:
            return []
        seen = set(variants_of(casefold_tokens(concept.name)))
        kept = []
        for name in (*self._people_say.get(key, ()), *concept.entries):
            tokens = casefold_tokens(name)
            long = len(name) > LONGEST_SYNONYM
            if not tokens or long or ", " in name or tokens in seen or self._labels.get(tokens, key) != key:
                continue
            seen.update(variants_of(tokens))
            seen.add(tokens)
            kept.append(name)
        return kept


def _by_name(concepts: Iterable[Concept], entries_only: bool = False) -> dict[tuple[str, ...], list[str]]:
    found: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for concept in concepts:
        names = concept.entries if entries_only else (concept.name, *concept.entries)
        for tokens in {casefold_tokens(name) for name in names}:
            found[tokens].append(concept.key)
    return dict(found)
