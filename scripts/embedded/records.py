"""MEDLINE records: headings with their qualifiers, listed chemicals, and the text that terms are searched in."""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

from cogstage.errors import CogstageError


@dataclass(frozen=True)
class Heading:
    """One MeSH heading of a record: the descriptor and its qualifiers."""

    descriptor: str
    name: str
    qualifiers: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """What is read of a MEDLINE record; the text is searched for terms and never stored."""

    pmid: str
    headings: tuple[Heading, ...]
    chemicals: tuple[str, ...] = ()
    text: str = ""


def read_records(stream: IO[bytes]) -> list[Record]:
    """The records of a MEDLINE XML stream; of several versions of a record, the last."""
    return list({record.pmid: record for record in _parse(stream)}.values())


def _parse(stream: IO[bytes]) -> Iterator[Record]:
    for _, element in ET.iterparse(stream):
        if element.tag == "MedlineCitation":
            yield Record(
                element.findtext("PMID", ""),
                tuple(_heading(node) for node in element.iterfind("MeshHeadingList/MeshHeading")),
                tuple(node.attrib["UI"] for node in element.iterfind("ChemicalList/Chemical/NameOfSubstance")),
                _text(element),
            )
        elif element.tag == "PubmedArticle":
            element.clear()


def _heading(node: ET.Element) -> Heading:
    descriptor = node.find("DescriptorName")
    if descriptor is None:
        raise CogstageError("a MeshHeading without a DescriptorName; is this MEDLINE XML?")
    qualifiers = tuple(qualifier.text or "" for qualifier in node.iterfind("QualifierName"))
    return Heading(descriptor.attrib["UI"], descriptor.text or "", qualifiers)


def _text(citation: ET.Element) -> str:
    """Title and abstract, one line per section, so that no term reaches over a section's end."""
    parts = [*citation.iterfind("Article/ArticleTitle"), *citation.iterfind("Article/Abstract/AbstractText")]
    return "\n".join("".join(part.itertext()) for part in parts)


def is_counted(record: Record, percent: int) -> bool:
    """Whether a record is counted for the graph; the others give facts, so the two never share a record.

    A record without headings can give no fact and is always counted.
    """
    if not record.headings:
        return True
    return int(hashlib.sha256(record.pmid.encode("ascii")).hexdigest()[:8], 16) % 100 < percent


def split(records: Iterable[Record], percent: int) -> tuple[list[Record], list[Record]]:
    """The counted records and those that give facts."""
    counted: list[Record] = []
    others: list[Record] = []
    for record in records:
        (counted if is_counted(record, percent) else others).append(record)
    return counted, others
