"""Copied notes against the exact similarity of their shingles, and in whole builds."""

from __future__ import annotations

import datetime
import json
import random
import re
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.corpus.lexicon import Entry, Lexicon
from cogstage.corpus.near_duplicates import Signatures, document_key, signature, similarity
from cogstage.corpus.records import Document
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions
from cogstage.tables import BadRows

WORDS = [f"word{n}" for n in range(400)]


def shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {tuple(words[at : at + 4]) for at in range(len(words) - 3)} or {tuple(words)}


def jaccard(one: str, other: str) -> float:
    a, b = shingles(one), shingles(other)
    return len(a & b) / len(a | b)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 60), st.integers(40, 600))
def test_similarity_is_near_the_exact_one(seed: int, changes: int, length: int) -> None:
    """Five standard deviations of 128 draws, at most (bins that few shingles fill are fewer)."""
    rng = random.Random(seed)
    words = rng.choices(WORDS, k=length)
    other = list(words)
    for _ in range(changes):
        other[rng.randrange(length)] = rng.choice(WORDS)
    one, two = " ".join(words), " ".join(other)
    exact = jaccard(one, two)
    filled = int(((signature(one) != 0) | (signature(two) != 0)).sum())
    spread = (exact * (1 - exact) / filled) ** 0.5 + 0.5 / filled
    assert abs(similarity(signature(one), signature(two)) - exact) <= 5 * spread


def test_case_and_punctuation_do_not_matter() -> None:
    assert similarity(signature("Fever, cough; and RASH today"), signature("fever cough and rash\ntoday.")) == 1.0
    assert similarity(signature(""), signature("")) == 0.0
    assert similarity(signature("no fever"), signature("no fever")) == 1.0
    assert similarity(signature("no fever"), signature("fever no")) == 0.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_copies_are_those_of_a_search_by_hand(seed: int, n: int) -> None:
    """Notes are equal or unlike, so that the exact similarity and its estimate agree on all."""
    rng = random.Random(seed)
    bases = [" ".join(rng.choices(WORDS, k=60)) for _ in range(3)]
    notes = [
        Document(str(k), rng.choice(bases), f"p{rng.randrange(2)}", datetime.date(2020, 1, 1 + rng.randrange(9)))
        for k in range(n)
    ]
    expected = set()
    kept: list[Document] = []
    for note in sorted(notes, key=lambda note: (note.date, document_key(note))):
        if any(old.patient_id == note.patient_id and jaccard(old.text, note.text) >= 0.8 for old in kept):
            expected.add(document_key(note))
        else:
            kept.append(note)
    rng.shuffle(notes)
    parts = [Signatures.from_documents(notes[:2]), Signatures.from_documents(notes[2:])]
    found = Signatures.join(parts).copies()
    assert set(found.tolist()) == expected
    assert np.all(found[1:] > found[:-1])


def test_two_hundred_copies_count_as_one(tmp_path: Path) -> None:
    lexicon = Lexicon.build([Entry(word) for word in ("aspirin", "fever", "gout", "rash")])
    story = " ".join(random.Random(1).choices(WORDS, k=120))
    with (tmp_path / "notes.jsonl").open("w", encoding="utf-8") as handle:
        for number in range(203):
            text = f"Seen at {number} o'clock. Aspirin for fever. {story}"
            record = {"doc_id": str(number), "patient_id": "copied", "text": text}
            if number >= 200:
                record |= {"patient_id": f"p{number}", "text": text.replace("fever", "gout")}  # the same, of others
            handle.write(json.dumps(record) + "\n")
    bad = BadRows()
    build_graph(tmp_path / "notes.jsonl", tmp_path / "g", lexicon, bad=bad)
    graph = Graph.load(tmp_path / "g")
    counts = dict(zip(graph.vocabulary.term, graph.vocabulary.count.tolist(), strict=True))
    assert counts == {"aspirin": 4, "fever": 1, "gout": 3}
    assert bad.notices == {"notes that are nearly identical to an earlier note of the patient, not counted": 199}
    assert graph.made_with["copies"] == "drop"
    build_graph(tmp_path / "notes.jsonl", tmp_path / "kept", lexicon, BuildOptions(copies="keep"))
    assert Graph.load(tmp_path / "kept").vocabulary.count.max() == 203
