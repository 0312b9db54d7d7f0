"""PubTator files: title, abstract, and annotations whose concept identifiers become codes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from cogstage.corpus.readers import Reader
from cogstage.corpus.records import Document
from cogstage.tables import BadRows, is_clean, open_text

_PASSAGE = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)
_SEVERAL = re.compile(r"[|;,]")


class PubtatorReader(Reader):
    """Lines ``id|t|title``, ``id|a|abstract``, annotations ``id start end mention type concept`` with tabs between."""

    def __init__(self, files: Sequence[Path], bad: BadRows) -> None:
        super().__init__(files, bad)

    def _read(self, path: Path) -> Iterator[Document]:
        doc_id, begun, passages, codes = "", 0, [], []  # type: tuple[str, int, list[str], list[str]]
        with open_text(path, self.meter) as handle:
            for number, line in enumerate(handle, start=1):
                line = line.rstrip("\r\n")
                if not line.strip():
                    continue
                if not is_clean(line):
                    self.bad.report(f"{path}:{number}: not UTF-8 text; convert the file to UTF-8")
                    continue
                passage = _PASSAGE.fullmatch(line)
                identifier = passage[1] if passage else line.split("\t", 1)[0]
                if passage is not None and identifier != doc_id:
                    if doc_id:
                        yield _document(doc_id, passages, codes, f"{path}:{begun}")
                    doc_id, begun, passages, codes = identifier, number, [], []
                if passage is not None:
                    passages.append(passage[3])
                    continue
                cells = line.split("\t")
                if identifier != doc_id or len(cells) < 4:
                    self.bad.report(f"{path}:{number}, column 1: neither a passage nor an annotation of {doc_id!r}")
                elif len(cells) >= 5 and cells[1].isdigit() and cells[2].isdigit():  # else a relation: passed over
                    codes.extend(self._concepts(cells))
        if doc_id:
            yield _document(doc_id, passages, codes, f"{path}:{begun}")

    def _concepts(self, cells: list[str]) -> list[str]:
        found = [code.strip() for code in _SEVERAL.split(cells[5])] if len(cells) > 5 else []
        found = [code for code in found if code and code not in ("-", "-1")]
        for code in found:
            self._name(code, cells[3], cells[4])
        return found


def _document(doc_id: str, passages: list[str], codes: list[str], where: str) -> Document:
    text = "\n".join(passage for passage in passages if passage)
    return Document(doc_id, text, codes=tuple(dict.fromkeys(codes)), where=where)
