"""PubMed/MEDLINE XML: title and abstract as text, MeSH headings as codes."""

from __future__ import annotations

import calendar
import datetime
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from cogstage.corpus.readers import XML, Reader, ReaderOption, Sample, truth
from cogstage.corpus.records import Document
from cogstage.corpus.xml_stream import stream_elements, text_of
from cogstage.tables import BadRows

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_YEAR = re.compile(r"\b(1[89]\d\d|20\d\d)\b")


class MedlineReader(Reader):
    """A citation is a document: title and abstract sections a line each, MeSH descriptors as ``codes``.

    ``qualifiers`` adds ``D003920/Q000188`` for every descriptor with its qualifiers; ``major`` keeps major topics only.
    ``chemicals`` adds the substances of the ChemicalList, ``supplementary`` the supplementary concepts of diseases,
    protocols and organisms.
    """

    format = "medline"
    title = "PubMed/MEDLINE XML"
    suffixes = XML
    options: ClassVar = {
        "qualifiers": ReaderOption("true adds headings with their qualifiers", truth),
        "major": ReaderOption("true reads only major topics", truth),
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
        ids_across_files: bool = False,
    ) -> None:
        super().__init__(files, bad, ids_across_files)
        self.qualifiers = qualifiers
        self.major = major
        self.chemicals = chemicals
        self.supplementary = supplementary

    def _read(self, path: Path) -> Iterator[Document]:
        for number, citation in enumerate(stream_elements(path, "MedlineCitation", self.bad, self.meter), start=1):
            pmid = text_of(citation.find("PMID"))
            where = f"{path}, citation {number}"
            if not pmid:
                self.bad.report(f"{where}, element PMID: no value")
                continue
            article = citation.find("Article")
            parts = []
            if article is not None:
                parts = [text_of(article.find("ArticleTitle"))]
                parts += [text_of(section) for section in article.iterfind("Abstract/AbstractText")]
            yield Document(
                pmid,
                "\n".join(part for part in parts if part),
                date=publication_date(citation),
                codes=self._headings(citation),
                where=where,
            )

    def _headings(self, citation: ET.Element) -> tuple[str, ...]:
        codes: list[str] = []
        for heading in citation.iterfind("MeshHeadingList/MeshHeading"):
            descriptor = heading.find("DescriptorName")
            if descriptor is None or not (code := descriptor.get("UI")):
                continue
            qualifiers = heading.findall("QualifierName")
            if self.major and not any(e.get("MajorTopicYN") == "Y" for e in (descriptor, *qualifiers)):
                continue
            name = text_of(descriptor)
            self.code_names.add(code, name, "mesh", "", vocabulary=True)
            codes.append(code)
            for qualifier in qualifiers if self.qualifiers else ():
                if ui := qualifier.get("UI"):
                    full = f"{name}/{text_of(qualifier)}"
                    self.code_names.add(f"{code}/{ui}", full, "mesh", "", vocabulary=True)
                    codes.append(f"{code}/{ui}")
        more = ["ChemicalList/Chemical/NameOfSubstance"] if self.chemicals else []
        more += ["SupplMeshList/SupplMeshName"] if self.supplementary else []
        for element in (element for path in more for element in citation.iterfind(path)):
            if code := element.get("UI"):
                self.code_names.add(code, text_of(element), "mesh", "", vocabulary=True)
                codes.append(code)
        return tuple(dict.fromkeys(codes))


def publication_date(citation: ET.Element) -> datetime.date | None:
    """The day (or the first day of the month or year) of publication; None if no year can be read."""
    date = citation.find("Article/Journal/JournalIssue/PubDate")
    if date is None or not (year := _YEAR.search(text_of(date))):
        return None
    month = text_of(date.find("Month"))
    day = text_of(date.find("Day"))
    try:
        number = int(month) if month.isdecimal() else _MONTHS.get(month[:3].lower(), 1)
        return datetime.date(int(year[0]), number, int(day) if day.isdecimal() else 1)
    except ValueError:
        return datetime.date(int(year[0]), 1, 1)
