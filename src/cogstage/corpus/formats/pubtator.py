"""PubTator files: title, abstract, and annotations whose concept identifiers become codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cogstage.corpus.annotations import identifiers
from cogstage.corpus.readers import Reader, Sample
from cogstage.corpus.records import Document
from cogstage.input_files import is_clean, lines_of, open_text

_TITLE = re.compile(r"\s*[^|\s]{1,40}\|t\|")
_PASSAGE = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)


@dataclass
class _Citation:
    """Passages and annotations of the document that is being read."""

    doc_id: str
    where: str
    passages: list[str] = field(default_factory=list)
    codes: dict[str, None] = field(default_factory=dict)
    titled: bool = False

    def document(self) -> Document:
        text = "\n".join(passage for passage in self.passages if passage)
        return Document(self.doc_id, text, codes=tuple(self.codes), where=self.where)


class PubtatorReader(Reader):
    """Lines ``id|t|title``, ``id|a|abstract``, annotations ``id start end mention type concept`` with tabs between."""

    format = "pubtator"
    title = "PubTator"
    suffixes = (".pubtator", ".txt")

    @classmethod
    def recognises(cls, sample: Sample) -> int:
        """By its name, or a text that begins with a title line."""
        return 2 * int(sample.suffix == ".pubtator" or _TITLE.match(sample.beginning) is not None)

    def _read(self, path: Path) -> Iterator[Document]:
        citation: _Citation | None = None
        with open_text(path, self.meter) as handle:
            for number, line in lines_of(handle, path, self.bad):
                line = line.rstrip("\r\n")
                if not line.strip():
                    continue
                where = f"{path}:{number}"
                if not is_clean(line):
                    self.bad.report(f"{where}: not UTF-8 text; convert the file to UTF-8")
                    continue
                passage = _PASSAGE.fullmatch(line)
                if passage is not None:
                    doc_id, title = passage[1], passage[2] == "t"
                    if citation is None or doc_id != citation.doc_id or (title and citation.titled):
                        if citation is not None:
                            yield citation.document()
                        citation = _Citation(doc_id, where)
                    citation.titled = citation.titled or title
                    citation.passages.append(passage[3])
                    continue
                cells = line.split("\t")
                if citation is None or cells[0] != citation.doc_id or len(cells) < 4:
                    known = citation.doc_id if citation is not None else ""
                    self.bad.report(f"{where}, column 1: neither a passage nor an annotation of {known!r}")
                elif len(cells) >= 5 and cells[1].isdecimal() and cells[2].isdecimal():  # else a relation: not read
                    self._annotation(cells, citation)
        if citation is not None:
            yield citation.document()

    def _annotation(self, cells: list[str], citation: _Citation) -> None:
        _, _, _, mention, kind, value, parts = (*cells, "", "")[:7]
        codes = identifiers(value, kind, parts)
        # a mention of several concepts names none of them, unless it says which part is which
        mentions = parts.split("|") if parts and parts.count("|") + 1 == len(codes) else [mention] * (len(codes) == 1)
        for code in codes:
            citation.codes[code] = None
        for code, name in zip(codes, mentions, strict=False):
            self.code_names.add(code, name, kind, citation.doc_id)
