"""Annotation over the text and over the lexicon, and what compiling a lexicon takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.annotation import terms_of, texts_of
from benchmarks.growth.curve import Curve, best_of

TASK = 2_000_000  # characters annotated together, as a build does


def annotate(literature: str, megabytes: int, terms: int) -> dict[str, Any]:
    """Find ``terms`` terms in so much text, a task at a time."""
    from cogstage.corpus.annotate import Annotator
    from cogstage.corpus.lexicon import Entry, Lexicon

    annotator = Annotator(Lexicon.build(map(Entry, lexicon_of(literature, terms))))
    annotator.term_rows(["warm up"])
    texts = texts_of(literature, 75_000_000 // (megabytes * 1_000_000) or 1)

    def one() -> None:
        for task in tasks(texts, megabytes * 1_000_000):
            annotator.term_rows(task)

    return best_of(one, 2)


def compile_lexicon(literature: str, terms: int) -> dict[str, Any]:
    """Terms to a lexicon that is ready to find them."""
    from cogstage.corpus.lexicon import Entry, Lexicon

    chosen = lexicon_of(literature, terms)
    Lexicon.build([Entry("warm up")])
    return best_of(lambda: Lexicon.build(map(Entry, chosen)), 2)


def one_sentence(terms_in_it: int) -> dict[str, Any]:
    """Notes that are one long list without a full stop, with a cue of context for every fourth term."""
    from cogstage.corpus.annotate import Annotator
    from cogstage.corpus.lexicon import Entry, Lexicon

    annotator = Annotator(Lexicon.build(map(Entry, ("aspirin", "headache", "fever", "cough"))))
    annotator.term_rows(["warm up"])
    text = " ".join(["no fever but aspirin for headache, cough"] * (terms_in_it // 4))
    return best_of(lambda: annotator.term_rows([text]), 3)


def lexicon_of(literature: str, count: int) -> list[str]:
    """That many different terms: those of the literature set in random order, then new ones joined of two of them."""
    rng = np.random.default_rng(0)
    real = terms_of(literature, 1)
    terms = dict.fromkeys(real[place] for place in rng.permutation(len(real)).tolist())
    while len(terms) < count:
        first, second = rng.integers(len(real), size=(2, count)).tolist()
        terms |= dict.fromkeys(f"{real[a]} {real[b]}" for a, b in zip(first, second, strict=True))
    return list(terms)[:count]


def tasks(texts: list[str], characters: int) -> Iterator[list[str]]:
    """The texts in tasks, from the beginning again where they do not suffice, until there are so many characters."""
    task, size, place = [], 0, 0
    while characters > 0:
        text = texts[place % len(texts)]
        task.append(text)
        size, characters, place = size + len(text), characters - len(text), place + 1
        if size >= TASK:
            yield task
            task, size = [], 0
    if task:
        yield task


CURVES = (
    Curve(
        "Annotation over megabytes",
        "MB of text",
        "benchmarks.growth.annotation:annotate",
        "megabytes",
        (1, 2, 4, 8, 16),
        (1, 2),
        1.0,
        "every character is read once",
        {"terms": 120_000},
        {"terms": 10_000},
        needs_literature=True,
    ),
    Curve(
        "Annotation over the lexicon",
        "terms of the lexicon",
        "benchmarks.growth.annotation:annotate",
        "terms",
        (1_000, 4_000, 16_000, 64_000, 256_000),
        (),
        0.0,
        "the automaton reads a text in one pass, whatever it looks for",
        {"megabytes": 4},
        needs_literature=True,
    ),
    Curve(
        "Annotation over the length of a sentence",
        "terms in one sentence",
        "benchmarks.growth.annotation:one_sentence",
        "terms_in_it",
        (2_000, 4_000, 8_000, 16_000, 32_000),
        (),
        1.0,
        "scopes of context cues are ranges of mentions",
    ),
    Curve(
        "Compiling a lexicon",
        "terms of the lexicon",
        "benchmarks.growth.annotation:compile_lexicon",
        "terms",
        (7_500, 15_000, 30_000, 60_000, 120_000),
        (),
        1.0,
        "every term is entered once",
        needs_literature=True,
    ),
)
