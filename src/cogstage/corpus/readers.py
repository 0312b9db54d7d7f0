"""Readers turn files of one format into a stream of documents; ``open_reader`` finds the right one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, ClassVar

from cogstage.components import load_plugin, plugins
from cogstage.corpus import formats
from cogstage.corpus.cohort import Cohort, Person
from cogstage.corpus.names import CodeNames
from cogstage.corpus.records import Document, as_patient
from cogstage.errors import CogstageError, UsageError
from cogstage.input_files import (
    Meter,
    Paths,
    bare_suffix,
    expand,
    file_on_disk,
    file_size,
    files_in,
    is_archive,
    is_clean,
    open_bytes,
    refuse_utf_16,
)
from cogstage.tables import FORMATS, BadRows, column_names

WITHOUT_PATIENT = "records without a patient, each counted as a separate unit"
XML = (".xml", ".nxml")
_SNIFFED = 4096


class SeenIds:
    """Identifiers seen so far, as 64-bit hashes in an open table: at most 27 bytes for each."""

    def __init__(self) -> None:
        self._table = array("q", bytes(8 << 10))
        self._count = 0

    def add(self, identifier: str) -> bool:
        """Add an identifier; return whether it is new."""
        key = hash(identifier) or 1  # 0 marks a free slot
        if not self._put(self._table, key):
            return False
        self._count += 1
        if self._count * 5 > len(self._table) * 3:
            larger = array("q", bytes(16 * len(self._table)))
            for held in self._table:
                if held:
                    self._put(larger, held)
            self._table = larger
        return True

    @staticmethod
    def _put(table: array[int], key: int) -> bool:
        mask = len(table) - 1
        slot = key & mask
        while held := table[slot]:
            if held == key:
                return False
            slot = (slot + 1) & mask
        table[slot] = key
        return True


@dataclass(frozen=True, slots=True)
class ReaderOption:
    """An option of one reader, as the command line gives it: what it means and how its text is read."""

    help: str
    parse: Callable[[str], Any] = str


class Sample:
    """A file or folder whose format is to be recognised: its name, how it begins, its columns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_folder = path.is_dir() or is_archive(path)
        self.suffix = "" if self.is_folder else bare_suffix(path)

    @cached_property
    def beginning(self) -> str:
        """The first characters of the file, unpacked."""
        if self.is_folder:
            return ""
        try:
            with open_bytes(self.path) as handle:
                refuse_utf_16(handle, self.path) if self.suffix not in XML else None
                return handle.read(_SNIFFED).decode("utf-8", "replace")
        except OSError as error:
            raise CogstageError(f"{self.path} is damaged or truncated: {error}") from error

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns of a table in lower case; none for what is no table."""
        if self.is_folder or self.suffix not in FORMATS:
            return frozenset()
        return frozenset(column_names(self.path))


READERS: dict[str, type[Reader]] = {}  # by the name of their format


class Reader(ABC):
    """A stream of documents from files in a stable order; one document is held at a time.

    ``code_names`` collects what the source calls its codes as they are seen. ``files`` can be read one by one with
    :meth:`read_file`, so that a run can go on where it stopped.

    A document's identifier is unique within its file, or with ``ids_across_files`` within all files; a document that
    repeats one is a bad row.

    A subclass with a ``format`` is known to :func:`open_reader` and to the command line by that name.
    """

    format: ClassVar[str] = ""
    title: ClassVar[str] = ""  # what it reads, in a clause
    suffixes: ClassVar[tuple[str, ...]] = ()  # of the files that it takes from a folder; none: all
    takes_folder: ClassVar[bool] = False  # whether a folder goes to it whole
    options: ClassVar[Mapping[str, ReaderOption]] = {}  # its own keyword arguments
    contents: ClassVar[str] = ""  # the kind of all documents of this format, if there is one (Document.kind)

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if cls.format:
            READERS[cls.format] = cls

    @classmethod
    def recognises(cls, sample: Sample) -> int:
        """Whether this is the format of a file or folder: 0 no, 1 possibly, 2 yes."""
        return 0

    def __init__(self, files: Sequence[Path], bad: BadRows, ids_across_files: bool = False) -> None:
        self.files = tuple(files)
        self.bad = bad
        self.ids_across_files = ids_across_files
        self.cohort: Cohort | None = None  # records that count; set by open_reader
        self.meter = Meter()
        self.code_names = CodeNames()
        self._seen = SeenIds()

    @property
    def names(self) -> Mapping[str, tuple[str, str]]:
        """Name and type of the codes seen so far: ``code -> (most common name, type)``."""
        return self.names_of(self.code_names.codes())

    def names_of(self, codes: Iterable[str]) -> Mapping[str, tuple[str, str]]:
        """Name and type of these codes, where the source has them."""
        return self.all_names_of(codes).best(codes)

    def all_names_of(self, codes: Iterable[str]) -> CodeNames:
        """Every name of these codes, with how often it was used and by how many patients."""
        return self.code_names.only(codes)

    @property
    def files_on_disk(self) -> list[Path]:
        """The files on disk; a file inside an archive is represented by the archive."""
        return list(dict.fromkeys(file_on_disk(path) for path in self.files))

    @property
    def bytes_total(self) -> int:
        """Size of all files together."""
        return sum(file_size(path) for path in self.files)

    def position(self) -> int:
        """Bytes read so far, of :attr:`bytes_total`."""
        return self.meter.position

    def __iter__(self) -> Iterator[Document]:
        for path in self.files:
            yield from self.read_file(path)

    def read_file(self, path: Path) -> Iterator[Document]:
        """The documents of one of :attr:`files`; a file that is cut short or damaged is an error in one line."""
        scope = "" if self.ids_across_files else self.scope_of(path)
        if not self.ids_across_files:
            self._seen = SeenIds()
        try:
            for document in self._read(path):
                if not _all_clean(document):
                    self.bad.report(f"{document.where}: not UTF-8 text; convert the file to UTF-8")
                elif not document.rows and not self._seen.add(document.doc_id):
                    among = "the files" if self.ids_across_files else "the file"
                    self.bad.report(f"{document.where}: document {document.doc_id[:80]!r} is already in {among}")
                elif self.cohort is None or self.cohort.has(document, lambda: self._people, self.bad):
                    document.scope = scope
                    yield document
        except (OSError, EOFError) as error:
            raise CogstageError(f"{path} is damaged or truncated: {error}") from error

    def people(self) -> Mapping[str, Person]:
        """Sex and age of the patients, where the source has them."""
        return {}

    @cached_property
    def _people(self) -> Mapping[str, Person]:
        return self.people()

    def parts(self) -> list[list[Path]]:
        """The files in groups that can be read independently, by different machines."""
        return [list(self.files)] if self.ids_across_files else [[path] for path in self.files]

    def scope_of(self, path: Path) -> str:
        """Within what identifiers are unique: the file."""
        return str(path)

    @abstractmethod
    def _read(self, path: Path) -> Iterator[Document]:
        """The documents of one file."""

    def _patient(self, value: Any) -> str | None:
        """The patient of a record in a source that has patients; None, and counted, where the record has none."""
        patient = as_patient(value)
        if patient is None:
            self.bad.notice(WITHOUT_PATIENT)
        return patient


def _all_clean(document: Document) -> bool:
    """Whether nothing that becomes part of a graph holds bytes that were not UTF-8 (or half a character)."""
    return (
        is_clean(document.text)
        and is_clean(document.doc_id)
        and is_clean(document.patient_id or "")
        and is_clean(document.visit_id or "")
        and all(is_clean(code) for code in document.codes)
    )


COMMON_OPTIONS = {
    "ids_across_files": ReaderOption(
        "true if equal identifiers in different files mean the same document", lambda text: truth(text)
    ),
    "since": ReaderOption("first day of the records, such as 2015 or 2015-06-30"),
    "ages": ReaderOption("ages of the patients in years, such as 18-65, 65- or -17"),
    "sex": ReaderOption("sex of the patients: female or male"),
    "patients": ReaderOption("table of the patients (patient_id, optionally birth_date or birth_year, and sex)"),
}
_COHORT = ("since", "ages", "sex", "patients")


def readers() -> Mapping[str, type[Reader]]:
    """All readers by format name: those of ``cogstage.corpus.formats``, and plugins."""
    for module in sorted(iter_modules(formats.__path__), key=lambda module: module.name):
        import_module(f"{formats.__name__}.{module.name}")
    for name, entry in plugins("cogstage.readers").items():
        if name not in READERS:
            kind = load_plugin(entry)
            if not (isinstance(kind, type) and issubclass(kind, Reader) and kind.format == name):
                raise CogstageError(f"the plugin {entry.value} is not a reader whose format is {name}")
    return READERS


def open_reader(
    paths: Paths,
    format: str = "auto",
    bad: BadRows | None = None,
    **options: Any,
) -> Reader:
    """The reader for files, globs, folders or archives; ``format`` is recognised from the first one if not given.

    ``options`` are those of the format's reader (see its class).
    """
    known, bad = readers(), bad if bad is not None else BadRows()
    given = expand(paths)
    if format == "auto":
        format = recognise(given[0])
    if format not in known:
        raise UsageError(f"unknown format {format}; choose one of {', '.join(sorted(known))}")
    kind = known[format]
    files = given if kind.takes_folder else [file for path in given for file in _files_for(kind, path, bad)]
    allowed = {**COMMON_OPTIONS, **kind.options}
    for name in options:
        if name not in allowed:
            has = f"it has {', '.join(sorted(allowed))}"
            raise UsageError(f"the {format} reader has no option {name}; {has}")
    reader = kind(files, bad, **{name: value for name, value in options.items() if name not in _COHORT})
    reader.cohort = Cohort.parse(**{name: options.get(name) for name in _COHORT})
    return reader


def _files_for(kind: type[Reader], path: Path, bad: BadRows) -> list[Path]:
    """The files of a folder or archive that the reader takes; the others are counted."""
    files = files_in(path)
    if len(files) == 1 or not kind.suffixes:
        return files
    taken = [file for file in files if bare_suffix(file) in kind.suffixes]
    if len(taken) < len(files):
        bad.notice(f"files in {path} that are not in the format {kind.format}, not read", len(files) - len(taken))
    return taken or files


def reader_options(settings: Iterable[str], format: str = "auto") -> dict[str, Any]:
    """Options of readers from ``name=value`` settings as the command line gives them."""
    known = readers()
    if format != "auto" and format not in known:
        raise UsageError(f"unknown format {format}; choose one of {', '.join(sorted(known))}")
    chosen = [known[format]] if format != "auto" else list(known.values())
    allowed = dict(COMMON_OPTIONS)
    for kind in chosen:
        allowed.update(kind.options)
    options: dict[str, Any] = {}
    for setting in settings:
        name, mark, value = setting.partition("=")
        name = name.strip().replace("-", "_")
        if name not in allowed or not mark:
            raise UsageError(
                f"{setting!r} is not a reader option (name=value); choose one of {', '.join(sorted(allowed))}"
            )
        options[name] = allowed[name].parse(value.strip())
    return options


def truth(text: str) -> bool:
    """Parse ``true`` or ``false``."""
    if text.lower() not in ("true", "false", "yes", "no", "1", "0"):
        raise UsageError(f"{text!r} is neither true nor false")
    return text.lower() in ("true", "yes", "1")


def recognise(path: Path) -> str:
    """The format of a file or folder, by its name and how it begins."""
    sample = Sample(path)
    known = readers()
    sure = {name: kind.recognises(sample) for name, kind in known.items()}
    best = max(sure, key=lambda name: sure[name])
    if sure[best] > 0:
        return best
    if sample.is_folder:
        return recognise(files_in(path)[0])
    raise UsageError(f"{path}: format not recognised; set `format` to one of {', '.join(sorted(known))}")
