"""From which similarity on a note counts as a copy: eight shingles of ten in common."""

from __future__ import annotations

import random

import pytest
from test_near_duplicates import WORDS, jaccard

from cogstage.corpus.near_duplicates import Signatures
from cogstage.corpus.records import Document


def pair_of_notes(seed: int, similarity: float) -> list[Document]:
    """Two notes of one patient whose shingles have this Jaccard similarity; the second ends in other words."""
    rng = random.Random(seed)
    words = [f"{word}{n}" for n, word in enumerate(rng.choices(WORDS, k=300))]
    same = round(297 * 2 * similarity / (1 + similarity)) + 3
    notes = [" ".join(words), " ".join(words[:same] + [f"new{n}" for n in range(300 - same)])]
    assert jaccard(*notes) == pytest.approx(similarity, abs=0.01)
    return [Document(str(n), text, "p") for n, text in enumerate(notes)]


def test_a_note_is_a_copy_from_four_fifths_on() -> None:
    """The similarity is estimated by 128 numbers: standard deviation 0.04."""
    copies = {
        similarity: sum(len(Signatures.from_documents(pair_of_notes(seed, similarity)).copies()) for seed in range(60))
        for similarity in (0.7, 0.78, 0.82, 0.9)
    }
    assert copies[0.7] <= 6
    assert copies[0.78] < 30 < copies[0.82]
    assert copies[0.9] >= 54
