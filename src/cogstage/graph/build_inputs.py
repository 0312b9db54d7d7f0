"""What a build reads: the options that fit its documents, the lexicon, and how its files are recognised again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.artefact import file_hash
from cogstage.corpus.lexicon import Lexicon
from cogstage.corpus.readers import open_reader
from cogstage.corpus.records import CODED_RECORD, NO_PATIENT, PATIENT_NOTE
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.examples import PATIENTS
from cogstage.graph.options import BuildOptions
from cogstage.graph.units import InputSummary
from cogstage.input_files import Paths
from cogstage.progress import Progress
from cogstage.tables import BadRows, expand

COMMON_SHOWN = 10  # common words that are named
SAMPLED, SAMPLED_FILES = 20_000, 200  # documents and files from which the options "auto" are decided


def resolve_options(options: BuildOptions, documents: Paths) -> BuildOptions:
    """The options with the unit and the treatment of copied notes that fit a sample of the documents."""
    return decide(options, sample_documents(options, documents))[0]


def sample_documents(options: BuildOptions, documents: Paths) -> InputSummary:
    """The kinds of up to 20,000 documents, taken from all files; none where no decision depends on them."""
    summary = InputSummary()
    if options.unit != "auto" and options.copies != "auto" and not options.keep_examples:
        return summary
    reader = open_reader(documents, options.format, bad=BadRows(skip=True), **options.reader)
    if reader.contents:
        summary.kinds[reader.contents] = 1
        return summary
    files = [reader.files[at] for at in np.unique(np.linspace(0, len(reader.files) - 1, SAMPLED_FILES).astype(int))]
    for path in files:
        with suppress(CogstageError):  # the build itself says what is wrong
            for document in islice(reader.read_file(path), -(-SAMPLED // len(files))):
                summary.add(document)
    return summary


def decide(options: BuildOptions, summary: InputSummary) -> tuple[BuildOptions, dict[str, str]]:
    """Replace "auto" by what fits these documents; the second result says why, by option.

    Coded records of patients are counted in windows if they are more than half of the documents. Copies are removed if
    there are notes of patients.
    """
    unit, copies, reasons = options.unit, options.copies, {}
    coded, notes, total = (*map(summary.kinds.get, (CODED_RECORD, PATIENT_NOTE), (0, 0)), sum(summary.kinds.values()))
    if unit == "auto" and options.per == "patient":
        unit, reasons["unit"] = "patient-window", "`per` patient requires it"
    elif unit == "auto":
        unit = "patient-window" if 2 * coded > total else "document"
        reasons["unit"] = f"{coded:,} of {total:,} documents are {CODED_RECORD}"
        if len(summary.kinds) == 1:
            reasons["unit"] = f"all documents are {next(iter(summary.kinds)).removeprefix('documents ')}"
    if copies == "auto":
        copies = "drop" if notes else "keep"
        reasons["copies"] = f"there are {'' if notes else 'no '}{PATIENT_NOTE}"
    if options.keep_examples and not options.examples_of_patients and set(summary.kinds) - {NO_PATIENT}:
        raise UsageError(PATIENTS)
    return replace(options, unit=unit, copies=copies), reasons


def notice_contradicting(unit: str, summary: InputSummary, bad: BadRows) -> None:
    """Report the documents that do not fit the unit that was chosen for the majority."""
    unlike = NO_PATIENT if unit == "patient-window" else CODED_RECORD
    if len(summary.kinds) > 1 and unlike in summary.kinds:
        first = summary.examples[unlike]
        bad.notice(f"{unlike}, unlike the documents that decided `unit` {unit} (first: {first})", summary.kinds[unlike])


def open_lexicon(
    lexicon: Paths | Lexicon | None,
    options: BuildOptions,
    stop_list: str | Path | Iterable[str],
    bad: BadRows,
    progress: Progress,
) -> Lexicon | None:
    """The lexicon, read if it is given as tables; None where codes are counted."""
    if lexicon is None and stop_list:
        raise UsageError("`stop_list` removes terms from a lexicon and requires `lexicon`")
    if lexicon is None or isinstance(lexicon, Lexicon):
        return lexicon
    progress.start("Reading the lexicon")
    words = Lexicon.read(lexicon, options.ambiguity, stop_list, options.variants, bad, any_case=options.any_case)
    progress.done(f"{len(words):,} terms of {len(words.concepts):,} concepts")
    return words


def lexicon_stamp(lexicon: Paths | Lexicon | None) -> Any:
    """What identifies a lexicon: its files, or its terms if it is given as an object."""
    if isinstance(lexicon, Lexicon):
        return hashlib.sha256("\n".join(lexicon.terms + lexicon.concepts).encode()).hexdigest()
    return None if lexicon is None else file_stamps(expand(lexicon))


def file_stamps(files: Sequence[Path]) -> list[list[Any]]:
    """Name, size and time of files: enough to see that they are those of the interrupted build."""
    return [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path in _all_files(files)]


def input_hashes(files: Sequence[Path], options: BuildOptions) -> list[dict[str, str]] | None:
    """Hashes of the input files; their names only where nothing is suppressed, for a name may name a patient."""
    if options.private is not None:
        return None
    hashes = file_hashes(files)
    return hashes if options.suppress_below == 0 else [{"sha256": each["sha256"]} for each in hashes]


def file_hashes(files: Sequence[Path]) -> list[dict[str, str]]:
    """Names and SHA-256 of files, and of all files in folders."""
    return [{"file": path.name, "sha256": file_hash(path)} for path in _all_files(files)]


def _all_files(files: Sequence[Path]) -> list[Path]:
    inside = (path for file in files for path in ([file] if file.is_file() else sorted(file.rglob("*"))))
    return [path for path in inside if path.is_file()]
