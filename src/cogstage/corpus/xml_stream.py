"""XML as a stream of elements, one at a time, in bounded memory; entities are refused and nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lxml import etree

from cogstage.errors import CogstageError
from cogstage.input_files import Meter, open_bytes
from cogstage.tables import BadRows

Element = Any  # lxml has no types of its own


def stream_elements(path: Path, tags: tuple[str, ...], bad: BadRows, meter: Meter) -> Iterator[Element]:
    """The elements with these tags one after the other; each is emptied before the next is read.

    Broken XML is reported with line and column; with leave to skip, the rest of that file is passed over.
    """
    with open_bytes(path, meter) as handle:
        if not handle.peek(1):
            bad.report(f"{path}: the file is empty")
            return
        events = etree.iterparse(
            handle, ("end",), tag=tags, resolve_entities=False, no_network=True, load_dtd=False,
            huge_tree=False, remove_comments=True, remove_pis=True,
        )  # fmt: skip
        first = True
        try:
            for _, element in events:
                if first:
                    _refuse_entities(element, path)
                    first = False
                yield element
                element.clear()
                while element is not None:  # drop what was read before it, however deep
                    parent = element.getparent()
                    while parent is not None and element.getprevious() is not None:
                        del parent[0]
                    element = parent
            if events.root is not None:
                _refuse_entities(events.root, path)
        except etree.XMLSyntaxError as error:
            line, column = error.position
            bad.report(f"{path}:{line}, column {column}: broken XML ({error.msg})")


def _refuse_entities(element: Element, path: Path) -> None:
    """Raise if the document declares entities ("billion laughs" and external files come in that way)."""
    declared = element.getroottree().docinfo.internalDTD
    for entity in () if declared is None else declared.iterentities():
        raise CogstageError(
            f"{path}: declares the entity {entity.name!r}; XML with entity declarations is refused; remove them"
        )


def child(element: Element | None, *tags: str) -> Element | None:
    """The first child of the first tag, its first child of the second, and so on; several times as fast as find()."""
    for tag in tags:
        element = next(element.iterchildren(tag), None) if element is not None else None
    return element


def children(element: Element | None, tag: str) -> Iterator[Element]:
    """The children with this tag."""
    return iter(()) if element is None else element.iterchildren(tag)


def text_of(element: Element | None) -> str:
    """All text in an element, inner markup taken away, single spaces."""
    if element is None:
        return ""
    return " ".join(((element.text or "") if len(element) == 0 else "".join(element.itertext())).split())
