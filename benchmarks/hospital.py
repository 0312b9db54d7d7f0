"""A made-up hospital whose right answer is known: notes, a lexicon, and the facts that a knowledge base has of it.

Drugs, disorders and findings belong to groups, and relations hold between groups: the drugs of one group treat the
disorders of two. Patients have disorders of two groups; their notes name these, drugs that treat and prevent them or
are to be avoided, findings, unrelated terms, and things that are denied or are a relative's. So relations can be told
from counts alone. The knowledge base knows the more frequent terms, and a few of its facts follow no rule.

How hard that is depends on the plan. In ``Plan()`` every note names drugs, disorders and findings together, and PPMI
alone finds most facts. In ``HARD`` most notes keep to one kind of term, so that terms of a fact are rarely counted
together; where a note names several kinds, half of its drugs are for the patient's other disorder, and findings are
symptoms of the disorder far more often than side effects of the drug.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.relations import inverse, is_inverse

KINDS = {"drug": (0.25, "ol"), "disorder": (0.3, "itis"), "finding": (0.3, "algia"), "other": (0.15, "scopy")}
# relation: kinds of head and tail, and how far along the ring of groups its tails lie. No two relations overlap.
RULES: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "may_treat": ("drug", "disorder", (0, 1)),
    "may_prevent": ("drug", "disorder", (2,)),
    "contraindicates": ("drug", "disorder", (3, 4)),
    "causes": ("drug", "finding", (0,)),
    "symptom_of": ("finding", "disorder", (0, 1)),
}
TABLE_1 = {"symptom_of": 20_414, "may_treat": 18_323, "contraindicates": 15_027, "may_prevent": 3_013, "causes": 2_048}
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
STEP = 104_729  # a prime, so that neighbours in number are no neighbours in name
FIRST_DAY, DAYS = date(2010, 1, 1), 3_650
# What a note says, and how many terms each sentence of a long note has. Denied and a relative's do not count.
SENTENCES = {
    "Problems:": 3,
    "Takes": 7,
    "Avoid": 2,
    "Reports": 6,
    "Side effects:": 1,
    "Done:": 1,
    "Also noted:": 2,
    "Denies": 2,
    "Mother had": 1,
}
KEPT_APART = ("Problems:", "Takes", "Reports")  # what a note that is not mixed names besides unrelated terms
ALWAYS = ("Also noted:", "Denies", "Mother had")
PREVENTIVE, STRAY = 0.2, 0.05  # shares: of the drugs taken that prevent; of what belongs to another of the groups


@dataclass(frozen=True)
class Plan:
    """The size of a hospital; the defaults are small enough for a test."""

    terms: int = 1_500
    groups: int = 12
    patients: int = 600
    notes: int = 5  # of each patient
    patients_a_file: int = 4_000
    table: float = 0.05  # how much of the facts of the paper's Table 1 the knowledge base has
    least: int = 120  # facts of a relation that the knowledge base has at least
    known: float = 0.25  # share of each group that the knowledge base knows: its most frequent terms
    exceptions: float = 0.05  # share of the facts that follow no rule, which nothing in the notes tells
    mixed: float = 1.0  # share of the notes that name all kinds of terms; the others have one of ``KEPT_APART``
    confounded: float = 0.0  # share of the drugs of a note that are for the patient's other group of disorders
    seed: int = 0


HARD = Plan(
    terms=3_000, groups=40, patients=2_000, notes=6, table=0.05, least=400, known=0.5, mixed=0.08, confounded=0.5
)
PAPER = Plan(terms=52_804, groups=400, patients=35_000, notes=6, table=1.0)


class Hospital:
    """The terms, the groups and the rules of a plan; the same plan gives the same hospital, note for note."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        shares = [0.0, *accumulate(share for share, _ in KINDS.values())]
        edges = [round(share * plan.terms) for share in shares]
        self._range = {kind: (edges[n], edges[n + 1]) for n, kind in enumerate(KINDS)}
        self.kind = [kind for kind, (begin, end) in self._range.items() for _ in range(begin, end)]
        self.name = [_name(number, KINDS[kind][1]) for number, kind in enumerate(self.kind)]
        self.concept = [f"H{number:07d}" for number in range(plan.terms)]
        first = np.array([self._range[kind][0] for kind in self.kind])
        self.group = (np.arange(plan.terms) - first) % plan.groups
        rng = np.random.default_rng([plan.seed, 0])
        joined = sorted({rule[:2] for rule in RULES.values()})
        self._ring = {kinds: rng.permutation(plan.groups) for kinds in joined}
        self._place = {kinds: np.argsort(ring) for kinds, ring in self._ring.items()}
        self._frequent = rng.permutation(plan.terms)  # unrelated terms, the most frequent first

    def follows(self, relation: str, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """Whether the groups of heads and tails (numbers of terms) are joined by a relation, kinds included."""
        *kinds, offsets = RULES[relation]
        begun = [np.array([self._range[kind]]) for kind in kinds]
        right = [(ids >= at[:, 0]) & (ids < at[:, 1]) for ids, at in zip((head, tail), begun, strict=True)]
        steps = (self._place[kinds[0], kinds[1]][self.group[tail]] - self.group[head]) % self.plan.groups
        return right[0] & right[1] & np.isin(steps, offsets)

    def holds(self, head: str, relation: str, tail: str) -> bool:
        """Whether a triple of concepts is true by the rules; ``relation`` may be an inverse."""
        if is_inverse(relation):
            head, relation, tail = tail, inverse(relation), head
        ends = (np.array([int(concept[1:])]) for concept in (head, tail))
        return bool(self.follows(relation, *ends)[0])

    def _tails(self, relation: str, group: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """For groups of heads, a group of tails each."""
        head, tail, offsets = RULES[relation]
        return self._ring[head, tail][(group + rng.choice(offsets, group.shape)) % self.plan.groups]

    def _heads(self, relation: str, group: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """For groups of tails, a group of heads each."""
        head, tail, offsets = RULES[relation]
        return (self._place[head, tail][group] - rng.choice(offsets, group.shape)) % self.plan.groups

    def _members(self, kind: str, group: np.ndarray, rng: np.random.Generator, share: float = 1.0) -> np.ndarray:
        """A term of each group, low numbers more often, from the first ``share`` of the group."""
        begin, end = self._range[kind]
        size = -((group - (end - begin)) // self.plan.groups)  # how many terms of the kind are in the group
        rank = (np.maximum(1, share * size) * rng.random(group.shape) ** 2).astype(np.int64)
        return begin + rank * self.plan.groups + group

    def facts(self) -> dict[str, np.ndarray]:
        """What the knowledge base holds: distinct rows (head, tail) of each relation, most of which follow its rule."""
        plan, found = self.plan, {}
        for number, (relation, (head_kind, tail_kind, _)) in enumerate(RULES.items()):
            rng = np.random.default_rng([plan.seed, 1, number])
            wanted = max(plan.least, round(plan.table * TABLE_1[relation]))
            rows = np.empty((0, 2), np.int64)
            while len(rows) < wanted:
                head_group = rng.integers(plan.groups, size=2 * wanted)
                stray = rng.random(2 * wanted) < plan.exceptions
                tail_group = self._tails(relation, head_group, rng)
                tail_group = np.where(stray, rng.integers(plan.groups, size=2 * wanted), tail_group)
                head = self._members(head_kind, head_group, rng, plan.known)
                tail = self._members(tail_kind, tail_group, rng, plan.known)
                rows = np.unique(np.concatenate([rows, np.stack([head, tail], 1)]), axis=0)
            found[relation] = rows[np.sort(rng.permutation(len(rows))[:wanted])]
        return found

    def notes(self, first: int, end: int) -> Iterator[dict[str, Any]]:
        """The notes of the patients numbered ``first`` to ``end``."""
        plan = self.plan
        rng = np.random.default_rng([plan.seed, 2, first])
        sections = self.mentions(first, end, rng)
        people = np.repeat(np.arange(first, end), plan.notes)
        length = rng.uniform(0.5, 1.0, len(people)).tolist()
        days = rng.integers(DAYS, size=len(people)).tolist()
        rows = {words: terms.tolist() for words, terms in sections.items()}
        spoken = self._spoken(len(people), rng)
        for number, (person, day) in enumerate(zip(people.tolist(), days, strict=True)):
            said = [
                self._sentence(words, terms[number], length[number])
                for words, terms in rows.items()
                if spoken[number] in (None, words) or words in ALWAYS
            ]
            yield {
                "doc_id": f"n{person}-{number % plan.notes}",
                "patient_id": f"p{person}",
                "date": (FIRST_DAY + timedelta(days=day)).isoformat(),
                "text": "Seen in clinic. " + " ".join(said),
            }

    def _spoken(self, count: int, rng: np.random.Generator) -> list[str | None]:
        """For each note the one kind of sentence that it has, or None for all of them."""
        if self.plan.mixed >= 1:
            return [None] * count
        kind = rng.integers(len(KEPT_APART), size=count).tolist()
        mixed = (rng.random(count) < self.plan.mixed).tolist()
        return [None if every else KEPT_APART[one] for every, one in zip(mixed, kind, strict=True)]

    def mentions(self, first: int, end: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """For each kind of sentence the terms of every note of these patients: (notes, terms per sentence)."""
        each, count = self.plan.notes, (end - first) * self.plan.notes
        groups = np.repeat(rng.integers(self.plan.groups, size=(end - first, 2)), each, axis=0)
        groups = rng.permuted(groups, axis=1)  # what a note is about comes first

        def about(words: str) -> np.ndarray:
            """The group that each term of a sentence has to do with."""
            stray = rng.random((count, SENTENCES[words])) < STRAY
            return np.where(stray, groups[:, 1:], groups[:, :1])

        takes = about("Takes")
        if self.plan.confounded:
            takes = np.where(rng.random(takes.shape) < self.plan.confounded, groups[:, 1:], takes)
        preventive = rng.random(takes.shape) < PREVENTIVE
        drugs = np.where(preventive, self._heads("may_prevent", takes, rng), self._heads("may_treat", takes, rng))
        noted = self._unrelated((count, SENTENCES["Also noted:"]), rng)
        number = first * each + np.arange(count)
        noted[:, 0] = np.where(number < self.plan.terms, number, noted[:, 0])  # so that no term is missed
        return {
            "Problems:": self._members("disorder", about("Problems:"), rng),
            "Takes": self._members("drug", drugs, rng),
            "Avoid": self._members("drug", self._heads("contraindicates", about("Avoid"), rng), rng),
            "Reports": self._members("finding", self._heads("symptom_of", about("Reports"), rng), rng),
            "Side effects:": self._members("finding", self._tails("causes", drugs[:, :1], rng), rng),
            "Done:": self._members("other", about("Done:"), rng),
            "Also noted:": noted,
            "Denies": self._unrelated((count, SENTENCES["Denies"]), rng),
            "Mother had": self._unrelated((count, SENTENCES["Mother had"]), rng),
        }

    def _unrelated(self, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
        return self._frequent[(self.plan.terms * rng.random(shape) ** 4).astype(np.int64)]

    def _sentence(self, words: str, terms: Sequence[int], length: float) -> str:
        said = terms[: max(1, round(length * len(terms)))]
        return f"{words} {', '.join([self.name[term] for term in said])}."


def write_hospital(plan: Plan, out: Path) -> dict[str, int]:
    """Write ``lexicon.tsv``, ``facts.tsv`` and ``notes/*.jsonl.gz`` below ``out``; gives how much there is of each."""
    hospital = Hospital(plan)
    (out / "notes").mkdir(parents=True, exist_ok=True)
    with (out / "lexicon.tsv").open("w", encoding="utf-8") as handle:
        handle.write("term\tconcept\tname\ttype\n")
        for name, concept, kind in zip(hospital.name, hospital.concept, hospital.kind, strict=True):
            handle.write(f"{name}\t{concept}\t{name}\t{kind}\n")
    known = 0
    with (out / "facts.tsv").open("w", encoding="utf-8") as handle:
        handle.write("head\trelation\ttail\n")
        for relation, rows in hospital.facts().items():
            known += len(rows)
            for head, tail in rows.tolist():
                handle.write(f"{hospital.concept[head]}\t{relation}\t{hospital.concept[tail]}\n")
    for number, first in enumerate(range(0, plan.patients, plan.patients_a_file)):
        notes = hospital.notes(first, min(first + plan.patients_a_file, plan.patients))
        with gzip.open(
            out / "notes" / f"part-{number:04d}.jsonl.gz", "wt", compresslevel=1, encoding="utf-8"
        ) as handle:
            while piece := list(islice(notes, 1_000)):
                handle.write("".join([json.dumps(note) + "\n" for note in piece]))
    return {"terms": plan.terms, "facts": known, "patients": plan.patients, "notes": plan.patients * plan.notes}


def _name(number: int, ending: str) -> str:
    """A made-up word for a term, no two alike."""
    length = 3 if number < len(SYLLABLES) ** 3 else 4
    left, word = number * STEP % len(SYLLABLES) ** length, ""
    for _ in range(length):
        left, place = divmod(left, len(SYLLABLES))
        word += SYLLABLES[place]
    return word + ending
