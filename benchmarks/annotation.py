"""Annotation against spaCy's PhraseMatcher: the same texts, the same terms, the same tokens, and the same matches.

Both sides go from text to leftmost-longest matches, on one core, and warm up on a few of the texts first. spaCy's own
tokenizer is set to cut tokens as cogstage does (runs of word characters, single symbols), case folded through LOWER;
texts are given with single spaces, since spaCy makes tokens of line ends. What spaCy spends on matching alone, its
documents made beforehand, is a row of its own. Context rules and short notes are measured beside it. Seconds are those
of the processor, so that other work on the machine does not count.
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


def ours(literature: str, every: int) -> dict[str, Any]:
    """Text to matches with cogstage."""
    from cogstage.corpus.annotate import Annotator
    from cogstage.corpus.lexicon import Entry, Lexicon

    texts = texts_of(literature, every)
    begun = time.process_time()
    lexicon = Lexicon.build(Entry(term) for term in terms_of(literature))
    building = time.process_time() - begun
    annotator = Annotator(lexicon, context=False)
    annotator.term_rows(texts[:: max(1, len(texts) // 500)], sentences=False)
    begun = time.process_time()
    rows = annotator.term_rows(texts, sentences=False)
    seconds = time.process_time() - begun
    found = [(number, m.start, m.end) for number, text in enumerate(texts) for m in annotator.annotate(text)]
    assert len(found) == len(rows[0])
    characters = sum(map(len, texts))
    return {
        "seconds": seconds,
        "building": building,
        "mb": characters / 1e6,
        "matches": len(found),
        "print": fingerprint(found),
    }


def spacy_side(literature: str, every: int) -> dict[str, Any]:
    """Text to matches with spaCy: its tokenizer, its PhraseMatcher, then the leftmost and longest of the matches."""
    import spacy
    from spacy.matcher import PhraseMatcher
    from spacy.tokenizer import Tokenizer

    texts = texts_of(literature, every)
    vocab = spacy.blank("en").vocab
    symbol = re.compile(r"[^\w\s]")
    tokenizer = Tokenizer(
        vocab,
        prefix_search=re.compile(r"^[^\w\s]").search,
        suffix_search=re.compile(r"[^\w\s]$").search,
        infix_finditer=symbol.finditer,
    )
    begun = time.process_time()
    matcher = PhraseMatcher(vocab, attr="LOWER")
    matcher.add("term", [tokenizer(term) for term in terms_of(literature)])
    building = time.process_time() - begun
    for text in texts[:: max(1, len(texts) // 500)]:
        matcher(tokenizer(text))
    begun = time.process_time()
    documents = [tokenizer(text) for text in texts]
    tokenizing = time.process_time() - begun
    begun = time.process_time()
    raw = [matcher(document) for document in documents]
    matching = time.process_time() - begun
    begun = time.process_time()
    chosen = [leftmost_longest(matches) for matches in raw]
    choosing = time.process_time() - begun
    found = [
        (number, documents[number][start].idx, documents[number][end - 1].idx + len(documents[number][end - 1]))
        for number, spans in enumerate(chosen)
        for start, end in spans
    ]
    return {
        "seconds": tokenizing + matching + choosing,
        "tokenizing": tokenizing,
        "matching": matching,
        "choosing": choosing,
        "building": building,
        "matches": len(found),
        "print": fingerprint(found),
    }


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
    size = {"literature": options.literature, "every": 50 if options.quick else 10}
    first = run_side("benchmarks.annotation:ours", size)
    other = run_side("benchmarks.annotation:spacy_side", size)
    plain = run_side("benchmarks.annotation:context_side", {**size, "context": False})
    aware = run_side("benchmarks.annotation:context_side", {**size, "context": True})
    mb = first["result"]["mb"]
    rows: list[dict[str, Any]] = [
        row("cogstage, text to matches", first, mb, first["seconds"]),
        row("spaCy, text to matches", other, mb, first["seconds"]),
    ]
    for part in ("tokenizing", "matching", "choosing"):
        seconds = other["result"][part]
        rows.append({"side": f"  of that {part}", "seconds": seconds, "times cogstage": seconds / first["seconds"]})
    for name, side in (("short notes, no context", plain), ("short notes, with context", aware)):
        result = side["result"]
        rows.append(
            {
                "side": f"cogstage, {name}",
                "seconds": side["seconds"],
                "MB/s": result["mb"] / side["seconds"],
                "peak_mb": side["peak_mb"],
                "found": result["rows"],
                "notes/s": result["notes"] / side["seconds"],
            }
        )
    notes = {
        "texts": f"{mb:.1f} MB, every {size['every']}th document",
        "same matches": first["result"]["print"] == other["result"]["print"],
        "spaCy takes": f"{other['seconds'] / first['seconds']:.1f} times as long",
        "compiling the lexicon": " and ".join(f"{side['result']['building']:.1f} s" for side in (first, other)),
    }
    report("annotation", rows, options.out, notes)


def row(name: str, side: dict[str, Any], mb: float, reference: float) -> dict[str, Any]:
    """A line of the table."""
    return {
        "side": name,
        "seconds": side["seconds"],
        "MB/s": mb / side["seconds"],
        "times cogstage": side["seconds"] / reference,
        "peak_mb": side["peak_mb"],
        "found": side["result"]["matches"],
    }


if __name__ == "__main__":
    main(sys.argv[1:])
