"""What a build reads: the options that fit its documents, the lexicon, and how its files are recognised again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cogstage.artefact import file_hash
from cogstage.corpus.lexicon import Lexicon
from cogstage.corpus.readers import open_reader
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.examples import PATIENTS
from cogstage.graph.options import BuildOptions
from cogstage.input_files import Paths
from cogstage.progress import Progress
from cogstage.tables import BadRows, expand


def resolve_options(options: BuildOptions, documents: Paths) -> BuildOptions:
    """The options with the unit and the treatment of copied notes that fit the first document.

    Coded records of patients are counted in windows; copies are looked for in notes of patients.
    """
    if options.unit != "auto" and options.copies != "auto" and not options.keep_examples:
        return options
    reader = open_reader(documents, options.format, bad=BadRows(skip=True), **options.reader)
    try:
        first = next(iter(reader), None)
    except CogstageError:  # the build itself says what is wrong
        first = None
    of_patient = first is not None and first.patient_id is not None
    if options.keep_examples and of_patient and not options.examples_of_patients:
        raise UsageError(PATIENTS)
    coded = first is not None and of_patient and not first.text and bool(first.codes)
    unit, copies = options.unit, options.copies
    if unit == "auto":
        unit = "patient-window" if coded or options.per == "patient" else "document"
    if copies == "auto":
        copies = "drop" if of_patient and not coded else "keep"
    return replace(options, unit=unit, copies=copies)


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
