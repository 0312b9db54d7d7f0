"""The literature graph from raw text in one command, with and without context, beside a plain program.

The plain program is what one would write with spaCy's PhraseMatcher and scipy's sparse product: one process, everything
in memory, no context. It cuts and folds words a little differently, so its nodes and edges are near, not equal.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.annotation import leftmost_longest, spacy_tokenizer
from benchmarks.harness import (
    add_ratios,
    installed,
    measured,
    need_literature,
    parser,
    report,
    run_side,
    side_row,
)


def one_command(documents: str, lexicon: str, arguments: list[str]) -> dict[str, Any]:
    """``cogstage graph build`` as a user would call it; time is that of the whole command."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "graph")
        command = [sys.executable, "-c", "from cogstage.cli.main import run; run()"]
        command += ["graph", "build", documents, "--lexicon", lexicon, "--out", out, "--json", *arguments]
        with measured() as took:
            done = subprocess.run(command, check=True, capture_output=True, text=True)
        built: dict[str, Any] = json.loads(done.stdout)
        return {**took, **built}


def plain_program(documents: str, lexicon: str, least: int = 5) -> dict[str, Any]:
    """spaCy finds, scipy counts, concepts in fewer than ``least`` documents are left out."""
    import numpy as np
    import scipy.sparse as sp
    from spacy.matcher import PhraseMatcher

    from cogstage.tables import open_bytes

    with measured() as took:
        tokenizer = spacy_tokenizer()
        matcher = PhraseMatcher(tokenizer.vocab, attr="LOWER")
        concept_of: dict[str, str] = {}
        for line in Path(lexicon).read_text(encoding="utf-8").splitlines()[1:]:
            term, concept = line.split("\t")[:2]
            concept_of.setdefault(term.lower(), concept)
        for term, concept in concept_of.items():
            matcher.add(concept, [tokenizer(term)])
        number: dict[int, int] = {}
        row, column, count = [], [], 0
        with open_bytes(Path(documents)) as lines:
            for line in lines:
                document = tokenizer(json.loads(line)["text"])
                found = {(start, end): match for match, start, end in matcher(document)}
                chosen = leftmost_longest([(match, *span) for span, match in found.items()])
                terms = {number.setdefault(found[span], len(number)) for span in chosen}
                row += [count] * len(terms)
                column += terms
                count += 1
        x = sp.csr_matrix((np.ones(len(row), np.int32), (row, column)), shape=(count, len(number)))
        x = x[:, np.flatnonzero(np.diff(x.tocsc().indptr) >= least)]
        edges = sp.triu(x.T @ x, 1).nnz
    return {**took, "documents": count, "nodes": x.shape[1], "edges": int(edges)}


def sample(documents: Path, folder: Path, count: int) -> Path:
    """The first documents alone."""
    from cogstage.tables import open_bytes

    path = folder / "documents.jsonl"
    with open_bytes(documents) as whole, path.open("wb") as part:
        for number, line in enumerate(whole):
            if number >= count:
                break
            part.write(line)
    return path


def smaller_lexicon(lexicon: Path, folder: Path, every: int) -> Path:
    """Every so-manieth term alone."""
    heading, *lines = lexicon.read_text(encoding="utf-8").splitlines(keepends=True)
    path = folder / "lexicon.tsv"
    path.write_text(heading + "".join(lines[::every]), encoding="utf-8")
    return path


def main(argv: list[str] | None = None) -> None:
    """Build the graph with context kept and left out, and under a low memory ceiling."""
    options = parser(__doc__).parse_args(argv)
    literature = need_literature(options.data)
    documents, lexicon = literature / "documents.jsonl.gz", literature / "lexicon.tsv"
    with tempfile.TemporaryDirectory() as folder:
        if options.quick:
            documents, lexicon = sample(documents, Path(folder), 8_000), smaller_lexicon(lexicon, Path(folder), 8)
        ways: dict[str, list[str]] = {
            "cogstage, context kept": ["--min-count", "5", "--keep-context"],
            "cogstage, context kept, 64 MB for counting": ["--min-count", "5", "--keep-context", "--memory", "64MB"],
            "cogstage, context left out": ["--min-count", "5"],
        }
        files = {"documents": str(documents), "lexicon": str(lexicon)}
        sides = {
            name: run_side("benchmarks.literature_graph:one_command", {**files, "arguments": arguments})
            for name, arguments in ways.items()
        }
        notes: dict[str, Any] = {"cores": "cogstage annotates in all of them, the plain program in one"}
        if installed("spacy"):
            sides["spaCy and scipy"] = run_side("benchmarks.literature_graph:plain_program", files)
        else:
            notes["reference"] = "the first row, since spaCy is not installed: pip install 'cogstage[bench]'"
    rows = [
        side_row(name, side, **{key: side["result"][key] for key in ("documents", "nodes", "edges")})
        for name, side in sides.items()
    ]
    add_ratios(rows, rows[-1] if "reference" not in notes else rows[0])
    report("literature_graph", rows, options.out, notes)


if __name__ == "__main__":
    main()
