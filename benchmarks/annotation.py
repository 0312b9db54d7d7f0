"""Annotation against spaCy's PhraseMatcher: the same texts, the same terms, the same tokens, and the same matches.

Both sides go from text to leftmost-longest matches on one core. They take turns in one process, slice by slice,
each slice new to both, so that other work on the machine falls on both alike; every slice counts. spaCy's own tokenizer
is set to cut tokens as cogstage does (runs of word characters, single symbols), case folded through LOWER; texts are
given with single spaces, since spaCy makes tokens of line ends. Peak memory is measured with each side in a process of
its own. Context rules and short notes are measured beside it. Seconds are those of the processor.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import parser, report, run_side

Match = tuple[int, int, int]  # text, start and end in characters
SLICES = 8


def texts_of(literature: str, every: int) -> list[str]:
    """Every so-manieth text of the literature set, in ASCII (both sides fold the rest differently), single spaces."""
    texts = []
    with gzip.open(Path(literature) / "documents.jsonl.gz", "rt", encoding="utf-8") as handle:
        for number, line in enumerate(handle):
            if number % every == 0:
                text = json.loads(line)["text"].encode("ascii", "replace").decode()
                texts.append(" ".join(text.split()))
    return texts


def terms_of(literature: str) -> list[str]:
    """The terms of the lexicon that are ASCII."""
    lines = (Path(literature) / "lexicon.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [term for term in (line.split("\t", 1)[0] for line in lines) if term.isascii()]


def fingerprint(matches: list[Match]) -> str:
    """The same for the same matches."""
    return hashlib.sha256(json.dumps(matches).encode()).hexdigest()[:16]


class Cogstage:
    """Text to matches with cogstage."""

    def __init__(self, literature: str) -> None:
        from cogstage.corpus.annotate import Annotator
        from cogstage.corpus.lexicon import Entry, Lexicon

        self.annotator = Annotator(Lexicon.build(Entry(term) for term in terms_of(literature)), context=False)
        self.annotator.term_rows(["warm up"], sentences=False)

    def run(self, texts: list[str]) -> dict[str, float]:
        """Seconds to find all matches."""
        begun = time.process_time()
        self.rows = self.annotator.term_rows(texts, sentences=False)
        return {"seconds": time.process_time() - begun}

    def matches(self, texts: list[str]) -> list[Match]:
        """The matches of the last run, in characters."""
        found = [(number, m.start, m.end) for number, text in enumerate(texts) for m in self.annotator.annotate(text)]
        assert [number for number, _, _ in found] == self.rows[0].tolist()
        return found


class Spacy:
    """Text to matches with spaCy: its tokenizer, its PhraseMatcher, then the leftmost and longest of the matches."""

    def __init__(self, literature: str) -> None:
        import spacy
        from spacy.matcher import PhraseMatcher
        from spacy.tokenizer import Tokenizer

        vocab = spacy.blank("en").vocab
        self.tokenizer = Tokenizer(
            vocab,
            prefix_search=re.compile(r"^[^\w\s]").search,
            suffix_search=re.compile(r"[^\w\s]$").search,
            infix_finditer=re.compile(r"[^\w\s]").finditer,
        )
        self.matcher = PhraseMatcher(vocab, attr="LOWER")
        self.matcher.add("term", [self.tokenizer(term) for term in terms_of(literature)])
        self.matcher(self.tokenizer("warm up"))

    def run(self, texts: list[str]) -> dict[str, float]:
        """Seconds to find all matches, and what each step took."""
        begun = time.process_time()
        self.documents = [self.tokenizer(text) for text in texts]
        tokenized = time.process_time()
        raw = [self.matcher(document) for document in self.documents]
        matched = time.process_time()
        self.chosen = [leftmost_longest(matches) for matches in raw]
        ended = time.process_time()
        steps = {"tokenizing": tokenized - begun, "matching": matched - tokenized, "choosing": ended - matched}
        return {"seconds": ended - begun, **steps}

    def matches(self, texts: list[str]) -> list[Match]:
        """The matches of the last run, in characters."""
        return [
            (number, document[start].idx, document[end - 1].idx + len(document[end - 1]))
            for number, (document, spans) in enumerate(zip(self.documents, self.chosen, strict=True))
            for start, end in spans
        ]


SIDES = {"cogstage": Cogstage, "spaCy": Spacy}


def in_turns(literature: str, every: int) -> dict[str, Any]:
    """Both sides on the same slices, each going first every other time."""
    sides = {name: side(literature) for name, side in SIDES.items()}
    texts = texts_of(literature, every)
    totals: dict[str, dict[str, float]] = {name: {} for name in sides}
    ratios, found, same = [], 0, True
    for number in range(SLICES):
        slice_ = texts[number::SLICES]
        seconds, prints = {}, {}
        for name in sorted(sides, reverse=bool(number % 2)):
            took = sides[name].run(slice_)
            seconds[name] = took["seconds"]
            for step, value in took.items():
                totals[name][step] = totals[name].get(step, 0.0) + value
        for name, side in sides.items():
            matches = side.matches(slice_)
            prints[name] = fingerprint(matches)
        found += len(matches)
        same = same and prints["cogstage"] == prints["spaCy"]
        ratios.append(seconds["spaCy"] / seconds["cogstage"])
    return {"totals": totals, "ratios": sorted(ratios), "found": found, "same": same, "mb": sum(map(len, texts)) / 1e6}


def alone(side: str, literature: str, every: int) -> int:
    """One side by itself, for its memory."""
    found = SIDES[side](literature)
    texts = texts_of(literature, every)
    for number in range(SLICES):
        found.run(texts[number::SLICES])
    return len(texts)


def leftmost_longest(matches: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Of overlapping matches the leftmost, of those the longest, and on from its end."""
    chosen: list[tuple[int, int]] = []
    free = 0
    for start, end in sorted(((start, end) for _, start, end in matches), key=lambda span: (span[0], -span[1])):
        if start >= free:
            chosen.append((start, end))
            free = end
    return chosen


def context_side(literature: str, every: int, context: bool) -> dict[str, Any]:
    """Short notes a second on one core: the sentences of the texts taken three at a time."""
    from cogstage.corpus.annotate import Annotator
    from cogstage.corpus.lexicon import Entry, Lexicon

    annotator = Annotator(Lexicon.build(Entry(term) for term in terms_of(literature)), context=context)
    notes = []
    for text in texts_of(literature, every):
        sentences = annotator.sentences(text)
        notes += [" ".join(sentences[place : place + 3]) for place in range(0, len(sentences), 3)]
    begun = time.process_time()
    rows = annotator.term_rows(notes)
    seconds = time.process_time() - begun
    return {"seconds": seconds, "notes": len(notes), "mb": sum(map(len, notes)) / 1e6, "rows": len(rows[0])}


def main(argv: list[str]) -> None:
    """Run all sides and print the table."""
    options = parser(__doc__).parse_args(argv)
    size = {"literature": options.literature, "every": 50 if options.quick else 5}
    turns = run_side("benchmarks.annotation:in_turns", size)["result"]
    mb, reference = turns["mb"], turns["totals"]["cogstage"]["seconds"]
    rows: list[dict[str, Any]] = []
    for name, steps in turns["totals"].items():
        memory = run_side("benchmarks.annotation:alone", {**size, "side": name})["peak_mb"]
        for step, seconds in steps.items():
            whole = step == "seconds"
            rows.append(
                {
                    "side": f"{name}, text to matches" if whole else f"  of that {step}",
                    "seconds": seconds,
                    "MB/s": mb / seconds if whole else None,
                    "times cogstage": seconds / reference,
                    "peak_mb": memory if whole else None,
                    "found": turns["found"] if whole else None,
                }
            )
    for name, context in (("no context", False), ("with context", True)):
        side = run_side("benchmarks.annotation:context_side", {**size, "context": context})
        result = side["result"]
        rows.append(
            {
                "side": f"cogstage, short notes, {name}",
                "seconds": side["seconds"],
                "MB/s": result["mb"] / side["seconds"],
                "peak_mb": side["peak_mb"],
                "found": result["rows"],
                "notes/s": result["notes"] / side["seconds"],
            }
        )
    ratios = turns["ratios"]
    whole = turns["totals"]["spaCy"]["seconds"] / reference
    notes = {
        "texts": f"{mb:.1f} MB, every {size['every']}th document, {SLICES} slices",
        "same matches": turns["same"],
        "spaCy takes": f"{whole:.1f} times as long (slices {ratios[0]:.1f} to {ratios[-1]:.1f})",
    }
    report("annotation", rows, options.out, notes)


if __name__ == "__main__":
    main(sys.argv[1:])
