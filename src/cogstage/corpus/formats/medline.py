"""PubMed/MEDLINE XML: title and abstract as text, MeSH headings as codes."""

from __future__ import annotations

import calendar
import datetime
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import numpy as np

from cogstage.corpus.mesh import SUPPLEMENTARY, mesh_types
from cogstage.corpus.readers import XML, Reader, ReaderOption, Sample, truth
from cogstage.corpus.records import NO_PATIENT, Document
from cogstage.corpus.xml_stream import Element, child, children, stream_elements, text_of
from cogstage.input_files import Meter, open_bytes
from cogstage.tables import BadRows

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_TAGS = ("MedlineCitation", "PubmedArticle", "PubmedBookArticle", "DeleteCitation")
_CITATION = re.compile(rb'<MedlineCitation\b[^>]*>\s*<PMID(?:\s+Version="(\d+)")?[^>]*>\s*(\d{1,18})\s*<')
_CHUNK, _LONGEST_START = 1 << 20, 1 << 12  # bytes read at a time; of the start of a citation up to its PMID
_YEAR = re.compile(r"\b(1[89]\d\d|20\d\d)\b")


class MedlineReader(Reader):
    """A citation is a document: title and abstract sections a line each, MeSH descriptors as ``codes``.

    Of the versions of a citation in all files, the newest counts, and of the same version the one in the last file by
    name; deleted citations (DeleteCitation) do not count.

    ``qualifiers`` adds ``D003920/Q000188`` for every descriptor with its qualifiers; ``major`` keeps major topics only.
    ``chemicals`` adds the substances of the ChemicalList, ``supplementary`` the supplementary concepts of diseases,
    protocols and organisms. ``mesh`` is MeSH's ``desc2026.xml`` or ``mtrees2026.bin``, from which descriptors have
    their types (drug, disorder); without it, their type is "mesh".
    """

    format = "medline"
    title = "PubMed/MEDLINE XML"
    contents = NO_PATIENT
    suffixes = XML
    options: ClassVar = {
        "qualifiers": ReaderOption("true adds headings with their qualifiers", truth),
        "major": ReaderOption("true reads only major topics", truth),
        "mesh": ReaderOption("MeSH file with the types of descriptors: desc2026.xml or mtrees2026.bin"),
        "chemicals": ReaderOption("true adds the substances of ChemicalList", truth),
        "supplementary": ReaderOption("true adds supplementary concepts (diseases, protocols, organisms)", truth),
    }

    @classmethod
    def recognises(cls, sample: Sample) -> int:
        marks = ("<PubmedArticle", "<MedlineCitation", "Pubmed")
        return 2 * int(sample.suffix in XML and any(mark in sample.beginning for mark in marks))

    def __init__(
        self,
        files: Sequence[Path],
        bad: BadRows,
        qualifiers: bool = False,
        major: bool = False,
        chemicals: bool = False,
        supplementary: bool = False,
        mesh: str | Path | None = None,
        ids_across_files: bool = False,
    ) -> None:
        super().__init__(files, bad, ids_across_files)
        self.qualifiers = qualifiers
        self.major = major
        self.chemicals = chemicals
        self.supplementary = supplementary
        self._types = None if mesh is None else mesh_types(Path(mesh), bad)
        self._index: _Citations | None = None

    def parts(self) -> list[list[Path]]:
        """Single files, unless a citation is in several of them."""
        self._index = self._index or _Citations(self.files)
        return [[path] for path in self.files] if self._index.apart else [list(self.files)]

    def _read(self, path: Path) -> Iterator[Document]:
        self._index = self._index or _Citations(self.files)
        valid = self._index.in_file(path)
        number = 0
        for citation in stream_elements(path, _TAGS, self.bad, self.meter):
            if citation.tag != "MedlineCitation":
                continue
            number += 1
            element = child(citation, "PMID")
            pmid = text_of(element)
            where = f"{path}, citation {number}"
            if element is None or not pmid:
                self.bad.report(f"{where}, element PMID: no value")
                continue
            if not valid(pmid, element.get("Version")):
                self.bad.notice("citations that are deleted, or replaced by a newer version, not counted")
                continue
            article = child(citation, "Article")
            parts = [text_of(child(article, "ArticleTitle"))]
            parts += [text_of(section) for section in children(child(article, "Abstract"), "AbstractText")]
            yield Document(
                pmid,
                "\n".join(part for part in parts if part),
                date=publication_date(citation),
                codes=self._headings(citation),
                where=where,
            )

    def _headings(self, citation: Element) -> tuple[str, ...]:
        codes: list[str] = []
        for heading in children(child(citation, "MeshHeadingList"), "MeshHeading"):
            descriptor = child(heading, "DescriptorName")
            if descriptor is None or not (code := descriptor.get("UI")):
                continue
            qualifiers = list(children(heading, "QualifierName")) if self.qualifiers or self.major else []
            if self.major and not any(e.get("MajorTopicYN") == "Y" for e in (descriptor, *qualifiers)):
                continue
            name = text_of(descriptor)
            type = self._type(code, name, "mesh")
            self.code_names.add(code, name, type, "", vocabulary=True)
            codes.append(code)
            for qualifier in qualifiers if self.qualifiers else ():
                if ui := qualifier.get("UI"):
                    full = f"{name}/{text_of(qualifier)}"
                    self.code_names.add(f"{code}/{ui}", full, type, "", vocabulary=True)
                    codes.append(f"{code}/{ui}")
        more = ["ChemicalList/Chemical/NameOfSubstance"] if self.chemicals else []
        more += ["SupplMeshList/SupplMeshName"] if self.supplementary else []
        for element in (element for path in more for element in citation.iterfind(path)):
            if code := element.get("UI"):
                name = text_of(element)
                listed = SUPPLEMENTARY.get(element.get("Type") or "", "mesh")
                own = "drug" if element.tag == "NameOfSubstance" else listed
                self.code_names.add(code, name, self._type(code, name, own), "", vocabulary=True)
                codes.append(code)
        return tuple(dict.fromkeys(codes))

    def _type(self, code: str, name: str, default: str) -> str:
        """The type of a descriptor from the tree, by identifier or name; the default without a tree."""
        if self._types is None:
            return "mesh"
        return self._types.get(code) or self._types.get(name) or ("" if default == "mesh" else default)


class _Citations:
    """Which citations of several files count: their numbers, versions and files, 20 bytes each.

    A search for PMIDs in the bytes of the files, ten times as fast as parsing them.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = {path: number for number, path in enumerate(sorted(files, key=lambda path: (path.name, path)))}
        columns = array("q"), array("q"), array("q")  # PMID, version, file
        deleted: dict[tuple[int, int], int] = {}  # PMID and version (0 for all) -> last file that deletes it
        for path, number in self._files.items():
            for gone, given, citation in _pmids(path):
                if gone:
                    deleted[citation, given] = number
                else:
                    for column, value in zip(columns, (citation, given or 1, number), strict=True):
                        column.append(value)
        pmid, version, file = (np.array(column, np.int64) for column in columns)
        lasting = np.ones(len(pmid), bool)
        if deleted:
            for at in np.flatnonzero(np.isin(pmid, [one for one, _ in deleted])).tolist():
                last = max(deleted.get((int(pmid[at]), which), -1) for which in (0, int(version[at])))
                lasting[at] = file[at] > last
        order = np.lexsort((file, version, pmid, lasting))
        order = order[np.searchsorted(lasting[order], True) :]
        newest = order[np.append(pmid[order][1:] != pmid[order][:-1], True)[: len(order)]]
        self._pmid, self._version, self._file = pmid[newest], version[newest], file[newest]
        once, times = np.unique(np.stack([pmid, version, file], 1), axis=0, return_counts=True)
        self._repeated = {tuple(row): int(n) for row, n in zip(once[times > 1].tolist(), times[times > 1], strict=True)}
        self.apart = not deleted and len(np.unique(once[:, 0])) == len(np.unique(once[:, [0, 2]], axis=0))

    def in_file(self, path: Path) -> Callable[[str, str | None], bool]:
        """Whether a citation of this file, given by PMID and version, counts; asked for each in order."""
        number, seen = self._files[path], Counter[tuple[int, int, int]]()

        def valid(pmid: str, version: str | None) -> bool:
            if not pmid.isdecimal() or len(pmid) > 18:
                return True
            key = (int(pmid), int(version) if version and version.isdecimal() else 1, number)
            at = int(np.searchsorted(self._pmid, key[0]))
            there = at < len(self._pmid) and (self._pmid[at], self._version[at], self._file[at]) == key
            if there and key in self._repeated:  # the last of them counts
                seen[key] += 1
                return seen[key] == self._repeated[key]
            return there

        return valid


def _pmids(path: Path) -> Iterator[tuple[bool, int, int]]:
    """The citations of a file and those that it deletes: whether it is deleted, version (0 if not given) and PMID."""
    deletes = False
    with open_bytes(path) as handle, suppress(OSError, EOFError):  # said when the file is read
        held = b""
        while chunk := handle.read(_CHUNK):
            held, end, at = held + chunk, 0, -1
            while (at := held.find(b"<MedlineCitation", at + 1)) >= 0:
                if found := _CITATION.match(held, at):
                    yield False, int(found[1] or 0), int(found[2])
                    end = found.end()
            deletes = deletes or b"<DeleteCitation" in held
            held = held[max(end, len(held) - _LONGEST_START) :]
        for element in stream_elements(path, _TAGS, BadRows(skip=True), Meter()) if deletes else ():
            for pmid in children(element, "PMID") if element.tag == "DeleteCitation" else ():
                if (number := text_of(pmid)).isdecimal():
                    yield True, int(pmid.get("Version") or 0), int(number)


def publication_date(citation: Element) -> datetime.date | None:
    """The day (or the first day of the month or year) of publication; None if no year can be read."""
    date = child(citation, "Article", "Journal", "JournalIssue", "PubDate")
    if date is None or not (year := _YEAR.search(text_of(date))):
        return None
    month = text_of(child(date, "Month"))
    day = text_of(child(date, "Day"))
    try:
        number = int(month) if month.isdecimal() else _MONTHS.get(month[:3].lower(), 1)
        return datetime.date(int(year[0]), number, int(day) if day.isdecimal() else 1)
    except ValueError:
        return datetime.date(int(year[0]), 1, 1)
