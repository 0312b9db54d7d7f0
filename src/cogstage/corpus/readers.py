"""Readers turn files of one format into a stream of documents; ``open_reader`` finds the right one."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cogstage.corpus.records import Document
from cogstage.errors import CogstageError, UsageError
from cogstage.tables import FORMATS, BadRows, Meter, bare_suffix, column_names, expand, open_bytes

KNOWN_FORMATS = ("table", "medline", "pubtator", "bioc", "omop", "fhir", "mimic")
_SNIFFED = 4096


class Reader(ABC):
    """A stream of documents from files in a stable order; one document is held at a time.

    ``names`` collects what the source calls its codes, ``code -> (name, type)``, as they are met. ``files`` can be read
    one by one with :meth:`read_file`, so that a run can go on where it stopped.
    """

    def __init__(self, files: Sequence[Path], bad: BadRows) -> None:
        self.files = tuple(files)
        self.bad = bad
        self.meter = Meter()
        self._names: dict[str, tuple[str, str]] = {}

    @property
    def names(self) -> dict[str, tuple[str, str]]:
        """Names and types of the codes met so far."""
        return self._names

    def names_of(self, codes: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Names and types of these codes, as far as the source tells them."""
        names = self.names
        return {code: names[code] for code in codes if code in names}

    @property
    def bytes_total(self) -> int:
        """Size of all files together."""
        return sum(path.stat().st_size for path in self.files)

    def position(self) -> int:
        """Bytes read so far, of :attr:`bytes_total`."""
        return self.meter.position

    def __iter__(self) -> Iterator[Document]:
        for path in self.files:
            yield from self.read_file(path)

    def read_file(self, path: Path) -> Iterator[Document]:
        """The documents of one of :attr:`files`; a file that is cut short or damaged is an error in one line."""
        try:
            yield from self._read(path)
        except (OSError, EOFError) as error:
            raise CogstageError(f"{path} is damaged or cut short: {error}") from error

    @abstractmethod
    def _read(self, path: Path) -> Iterator[Document]:
        """The documents of one file."""

    def _name(self, code: str, name: str | None, type: str | None) -> None:
        """Remember what a code is called; the first name stays."""
        if name and code not in self._names:
            self._names[code] = (name, type or "")


def open_reader(
    paths: str | Path | Sequence[str | Path],
    format: str = "auto",
    bad: BadRows | None = None,
    **options: Any,
) -> Reader:
    """The reader for files, globs or a folder; ``format`` is recognised from the first file if not given.

    ``options`` are those of the format's reader (see its class).
    """
    from cogstage.corpus.bioc import BiocReader
    from cogstage.corpus.fhir import FhirReader
    from cogstage.corpus.medline import MedlineReader
    from cogstage.corpus.omop import OmopReader
    from cogstage.corpus.pubtator import PubtatorReader
    from cogstage.corpus.table_reader import MimicReader, TableReader

    readers: dict[str, Any] = {
        "table": TableReader,
        "medline": MedlineReader,
        "pubtator": PubtatorReader,
        "bioc": BiocReader,
        "omop": OmopReader,
        "fhir": FhirReader,
        "mimic": MimicReader,
    }
    files = expand(paths)
    if format == "auto":
        format = recognise(files[0])
    if format not in readers:
        raise UsageError(f"unknown format {format}; known are {', '.join(KNOWN_FORMATS)}")
    if format != "omop":
        files = [file for path in files for file in _files_in(path)]
    try:
        reader: Reader = readers[format](files, bad if bad is not None else BadRows(), **options)
    except TypeError as error:
        raise UsageError(f"the {format} reader cannot be opened that way: {error}") from None
    return reader


def _files_in(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith((".", "_")))
    if not found:
        raise UsageError(f"{path} holds no files")
    return found


def recognise(path: Path) -> str:
    """The format of a file or folder, by its name and how it begins."""
    from cogstage.corpus.omop import is_omop_folder

    if path.is_dir():
        return "omop" if is_omop_folder(path) else recognise(_files_in(path)[0])
    suffix = bare_suffix(path)
    if suffix in (".xml", ".nxml"):
        return _recognise_xml(path)
    if suffix == ".json" or FORMATS.get(suffix) == "json":
        return _recognise_json(path)
    if suffix in FORMATS:
        columns = set(column_names(path))
        return "mimic" if {"subject_id", "text"} <= columns else "table"
    if suffix in (".pubtator", ".txt"):
        return "pubtator"
    raise UsageError(f"{path}: cannot tell its format from its name; say --format {'|'.join(KNOWN_FORMATS)}")


def _beginning(path: Path) -> bytes:
    try:
        with open_bytes(path) as handle:
            return handle.read(_SNIFFED)
    except OSError as error:
        raise CogstageError(f"{path} is damaged or cut short: {error}") from error


def _recognise_xml(path: Path) -> str:
    text = _beginning(path).decode("utf-8", "replace")
    if "<collection" in text or "BioC" in text:
        return "bioc"
    if "<PubmedArticle" in text or "<MedlineCitation" in text or "Pubmed" in text:
        return "medline"
    raise UsageError(f"{path}: neither PubMed nor BioC XML; say --format if it is one of them")


def _recognise_json(path: Path) -> str:
    text = _beginning(path).decode("utf-8", "replace")
    if '"resourceType"' in text:
        return "fhir"
    if '"documents"' in text or '"passages"' in text:
        return "bioc"
    first = text.split("\n", 1)[0]
    try:
        columns = {str(key).lower() for key in json.loads(first)} if first.startswith("{") else set()
    except ValueError:
        columns = set()
    return "mimic" if {"subject_id", "text"} <= columns else "table"
