"""XML as a stream of elements, one at a time; documents that declare entities are refused before they are read."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from cogstage.errors import CogstageError
from cogstage.input_files import Meter, open_bytes
from cogstage.tables import BadRows

_CHUNK = 1 << 16
_LONGEST_PROLOG = 1 << 20


class _RootReached(Exception):
    """Raised to stop parsing after the XML prolog."""


def refuse_entities(path: Path) -> None:
    """Raise if the document's prolog declares entities ("billion laughs" and external files come in that way)."""

    def declared(name: str, *_: object) -> None:
        raise CogstageError(
            f"{path}:{parser.CurrentLineNumber}: declares the entity {name!r}; XML with entity declarations is refused"
        )

    def root(*_: object) -> None:
        raise _RootReached

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = declared
    parser.StartElementHandler = root
    seen = 0
    with open_bytes(path) as handle:
        try:
            while chunk := handle.read(_CHUNK):
                parser.Parse(chunk, False)
                seen += len(chunk)
                if seen > _LONGEST_PROLOG:
                    raise CogstageError(f"{path}: no XML element in its first {_LONGEST_PROLOG:,} bytes")
        except (_RootReached, expat.ExpatError):  # what is broken is reported by the reading itself
            return


def stream_elements(path: Path, tag: str, bad: BadRows, meter: Meter) -> Iterator[ET.Element]:
    """The elements named ``tag`` one after the other; each is emptied before the next is read.

    Broken XML is reported with line and column; with leave to skip, the rest of that file is passed over.
    """
    refuse_entities(path)
    with open_bytes(path, meter) as handle:
        try:
            events = iter(ET.iterparse(handle, events=("start", "end")))
            _, root = next(events)
            inside = int(root.tag == tag)
            for event, element in events:
                if element.tag == tag:
                    if event == "start":
                        inside += 1
                        continue
                    inside -= 1
                    yield element
                    element.clear()
                if event == "end" and not inside:
                    root.clear()  # drops the children that were read, however deep the root keeps them
        except ET.ParseError as error:
            line, column = error.position
            bad.report(f"{path}:{line}, column {column + 1}: broken XML ({expat.ErrorString(error.code)})")
        except StopIteration:
            bad.report(f"{path}: the file is empty")


def text_of(element: ET.Element | None) -> str:
    """All text in an element, inner markup taken away, single spaces."""
    return "" if element is None else " ".join("".join(element.itertext()).split())
