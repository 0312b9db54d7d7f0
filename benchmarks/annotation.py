"""Annotation against spaCy's PhraseMatcher: the same texts, the same terms, the same tokens, and the same matches.

Both sides go from text to leftmost-longest matches on one core, each in a process of its own. Besides, they take turns
in one process, slice by slice, each slice new to both, so that other work on the machine falls on both alike. spaCy's
own tokenizer is set to cut tokens as cogstage does (runs of word characters, single symbols), casefolded through
LOWER; texts are given with single spaces, since spaCy makes tokens of line ends. Context rules and short notes are
measured beside it.
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

from benchmarks.harness import (
    add_ratios,
    installed,
    measured,
    need,
    need_literature,
    parser,
    report,
    run_side,
    side_row,
)

Match = tuple[int, int, int]  # text, start and end in characters
SLICES = 8


def texts_of(literature: str, every: int) -> list[str]:
    """Every n-th text of the literature set, in ASCII (both sides fold the rest differently), single spaces."""
    texts = []
    with gzip.open(Path(literature) / "documents.jsonl.gz", "rt", encoding="utf-8") as handle:
        for number, line in enumerate(handle):
            if number % every == 0:
                text = json.loads(line)["text"].encode("ascii", "replace").decode()
                texts.append(" ".join(text.split()))
    return texts


def terms_of(literature: str, every: int) -> list[str]:
    """Every so-manieth term of the lexicon that is ASCII."""
    lines = (Path(literature) / "lexicon.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [term for term in (line.split("\t", 1)[0] for line in lines) if term.isascii()][::every]


def fingerprint(matches: list[Match]) -> str:
    """The same for the same matches."""
    return hashlib.sha256(json.dumps(matches).encode()).hexdigest()[:16]


class Cogstage:
    """Text to matches with cogstage."""

    def __init__(self, terms: list[str]) -> None:
        from cogstage.corpus.annotate import Annotator
        from cogstage.corpus.lexicon import Entry, Lexicon

        self.annotator = Annotator(Lexicon.build(map(Entry, terms)), context=False)
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


def spacy_tokenizer() -> Any:
    """spaCy's tokenizer, set to cut as cogstage does."""
    import spacy
    from spacy.tokenizer import Tokenizer

    return Tokenizer(
        spacy.blank("en").vocab,
        prefix_search=re.compile(r"^[^\w\s]").search,
        suffix_search=re.compile(r"[^\w\s]$").search,
        infix_finditer=re.compile(r"[^\w\s]").finditer,
    )


class Spacy:
    """Text to matches with spaCy: its tokenizer, its PhraseMatcher, then the leftmost and longest of the matches."""

    def __init__(self, terms: list[str]) -> None:
        from spacy.matcher import PhraseMatcher

        self.tokenizer = spacy_tokenizer()
        self.matcher = PhraseMatcher(self.tokenizer.vocab, attr="LOWER")
        self.matcher.add("term", [self.tokenizer(term) for term in terms])
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


def in_turns(literature: str, every: int, terms_every: int) -> dict[str, Any]:
    """Both sides on the same slices, each going first every other time; processor seconds."""
    terms = terms_of(literature, terms_every)
    sides = {name: side(terms) for name, side in SIDES.items()}
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


def alone(side: str, literature: str, every: int, terms_every: int) -> dict[str, Any]:
    """One side by itself."""
    found = SIDES[side](terms_of(literature, terms_every))
    texts = texts_of(literature, every)
    with measured() as took:
        for number in range(SLICES):
            found.run(texts[number::SLICES])
    return {**took, "mb": sum(map(len, texts)) / 1e6}


def leftmost_longest(matches: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Of overlapping matches the leftmost, of those the longest, and on from its end."""
    chosen: list[tuple[int, int]] = []
    free = 0
    for start, end in sorted(((start, end) for _, start, end in matches), key=lambda span: (span[0], -span[1])):
        if start >= free:
            chosen.append((start, end))
            free = end
    return chosen


def short_notes(literature: str, every: int, terms_every: int, context: bool) -> dict[str, Any]:
    """Short notes on one core: the sentences of the texts taken three at a time."""
    from cogstage.corpus.annotate import Annotator
    from cogstage.corpus.lexicon import Entry, Lexicon

    annotator = Annotator(Lexicon.build(map(Entry, terms_of(literature, terms_every))), context=context)
    notes = []
    for text in texts_of(literature, every):
        sentences = annotator.sentences(text)
        notes += [" ".join(sentences[place : place + 3]) for place in range(0, len(sentences), 3)]
    with measured() as took:
        rows = annotator.term_rows(notes)
    return {**took, "notes": len(notes), "mb": sum(map(len, notes)) / 1e6, "rows": len(rows[0])}


def main(argv: list[str] | None = None) -> None:
    """Run all sides and print the table."""
    options = parser(__doc__).parse_args(argv)
    need_literature(options.data)
    need(installed("spacy"), "needs spaCy: pip install 'cogstage[bench]'")
    every, terms_every = (50, 8) if options.quick else (5, 1)
    size = {"literature": options.data, "every": every, "terms_every": terms_every}
    turns = run_side("benchmarks.annotation:in_turns", size)["result"]
    rows: list[dict[str, Any]] = []
    for name in SIDES:
        side = run_side("benchmarks.annotation:alone", {**size, "side": name})
        rate = side["result"]["mb"] / side["cpu_seconds"]
        more = {"MB per CPU second": rate, "found": turns["found"], "CPU s in turns": turns["totals"][name]["seconds"]}
        rows.append(side_row(f"{name}, text to matches", side, **more))
    add_ratios(rows, rows[1])
    for name, context in (("no context", False), ("with context", True)):
        side = run_side("benchmarks.annotation:short_notes", {**size, "context": context})
        result = side["result"]
        more = {"MB per CPU second": result["mb"] / side["cpu_seconds"], "found": result["rows"]}
        more["notes a CPU second"] = result["notes"] / side["cpu_seconds"]
        rows.append(side_row(f"cogstage, short notes, {name}", side, **more))
    theirs, ratios = turns["totals"]["spaCy"], turns["ratios"]
    steps = ", ".join(f"{step} {theirs[step]:.2f}" for step in ("tokenizing", "matching", "choosing"))
    whole = theirs["seconds"] / turns["totals"]["cogstage"]["seconds"]
    notes = {
        "texts": f"{turns['mb']:.1f} MB, every {every}th document, {SLICES} slices",
        "terms": len(terms_of(options.data, terms_every)),
        "same matches": turns["same"],
        "in turns spaCy takes": f"{whole:.1f} times as long (slices {ratios[0]:.1f} to {ratios[-1]:.1f})",
        "of spaCy's seconds": steps,
    }
    report("annotation", rows, options.out, notes)


if __name__ == "__main__":
    main(sys.argv[1:])
