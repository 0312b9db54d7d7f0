"""Literature with annotations, PubTator and BioC: passages as text, the identifiers of the annotations as codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cogstage.corpus.readers import XML, Reader, Sample
from cogstage.corpus.records import NO_PATIENT, Document
from cogstage.corpus.xml_stream import stream_elements, text_of
from cogstage.input_files import bare_suffix, is_clean, lines_of, open_text
from cogstage.json_stream import BrokenJson, JsonScanner

_TITLE = re.compile(r"\s*[^|\s]{1,40}\|t\|")
_PASSAGE = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)
_IDENTIFIERS = ("identifier", "mesh", "concept_id", "cui", "omim", "ncbi gene", "ncbi_gene", "geneid", "id")

_NOTHING = {"", "-", "-1", "none", "null", "nan"}
# Types whose mentions may stand for several concepts ("3630;3643"). Identifiers of variants ("c|SUB|G|181|A") and of
# types that are not known here are whole, whatever marks they hold.
_LISTED = ("gene", "protein", "disease", "disorder", "phenotyp", "chemical", "drug", "species", "taxon", "cellline")
_WHOLE = ("mutation", "variant", "variation", "snp", "acidchange", "allele")
_NAMESPACES = {"gene": "gene", "protein": "gene", "species": "species", "taxon": "species", "organism": "species"}


def identifiers(value: str, type: str, parts: str = "", composite: bool = False) -> list[str]:
    """The identifiers in ``value`` of an annotation of ``type``, each once, in order.

    ``;`` and ``,`` separate them where the type says that several may be meant. ``|`` does only in a ``composite``
    mention, or in one that lists its ``parts`` with the same mark ("D014786|D006311", "visual|auditory impairment").
    A bare number is an identifier of its type only (``gene:9685``, ``species:9685``).
    """
    kind = "".join(filter(str.isalnum, type.lower()))
    pieces = [value]
    if any(word in kind for word in _LISTED) and not any(word in kind for word in _WHOLE):
        pieces = re.split("[;,]", value)
    if composite or kind == "compositemention" or (parts and parts.count("|") == value.count("|")):
        pieces = [each for piece in pieces for each in piece.split("|")]
    namespace = next((space for word, space in _NAMESPACES.items() if word in kind), kind)
    codes = (piece.strip() for piece in pieces)
    return list(
        dict.fromkeys(
            f"{namespace}:{code}" if code.isdecimal() and namespace else code
            for code in codes
            if code.lower() not in _NOTHING
        )
    )


class BiocReader(Reader):
    """A BioC document: its passages a line each, the identifiers of its annotations as ``codes``."""

    format = "bioc"
    title = "BioC XML or JSON"
    contents = NO_PATIENT
    suffixes = (*XML, ".json", ".jsonl", ".ndjson")

    @classmethod
    def recognises(cls, sample: Sample) -> int:
        """XML or JSON with documents of passages."""
        if sample.suffix in XML:
            marks: tuple[str, ...] = ("<collection", "BioC")
        else:
            marks = ('"documents"', '"passages"') if sample.suffix in cls.suffixes else ()
        return 2 * int(any(mark in sample.beginning for mark in marks) and '"resourceType"' not in sample.beginning)

    def _read(self, path: Path) -> Iterator[Document]:
        return self._read_xml(path) if bare_suffix(path) in XML else self._read_json(path)

    def _read_xml(self, path: Path) -> Iterator[Document]:
        for number, element in enumerate(stream_elements(path, ("document",), self.bad, self.meter), start=1):
            where = f"{path}, document {number}"
            passages = [text_of(passage.find("text")) for passage in element.iter("passage")]
            passages += [text_of(sentence.find("text")) for sentence in element.iterfind("passage/sentence")]
            doc_id = text_of(element.find("id"))
            codes: list[str] = []
            for annotation in element.iter("annotation"):
                infons = {infon.get("key", ""): text_of(infon) for infon in annotation.iterfind("infon")}
                codes.extend(self._codes(infons, text_of(annotation.find("text")), doc_id))
            yield from self._document(doc_id, passages, codes, where)

    def _read_json(self, path: Path) -> Iterator[Document]:
        with open_text(path, self.meter) as handle:
            try:
                for line, item in self._items(path, handle):
                    yield from self._from_json(item, f"{path}:{line}")
            except BrokenJson as error:
                self.bad.report(str(error))

    def _items(self, path: Path, handle: Any) -> Iterator[tuple[int, Any]]:
        """Documents of a collection, or of lines that hold one document or collection each."""
        if bare_suffix(path) == ".json":
            yield from JsonScanner(handle, path).items("documents")
            return
        for number, line in lines_of(handle, path, self.bad):
            if not line.strip():
                continue
            try:
                item = json.loads(line)
            except (ValueError, RecursionError) as error:
                self.bad.report(f"{path}:{number}, column {getattr(error, 'colno', 1)}: not JSON ({error})")
                continue
            collected = item.get("documents") if isinstance(item, dict) else None
            yield from ((number, document) for document in (collected if isinstance(collected, list) else [item]))

    def _from_json(self, item: Any, where: str) -> Iterator[Document]:
        if not isinstance(item, dict) or not isinstance(item.get("passages"), list):
            self.bad.report(f"{where}, column passages: not a BioC document")
            return
        doc_id = str(item.get("id") or "")
        passages: list[str] = []
        codes: list[str] = []
        try:
            for passage in item["passages"]:
                for part in (passage, *(passage.get("sentences") or ())):
                    passages.append(str(part.get("text") or ""))
                    for annotation in part.get("annotations") or ():
                        infons = {str(key): str(value) for key, value in (annotation.get("infons") or {}).items()}
                        codes.extend(self._codes(infons, str(annotation.get("text") or ""), doc_id))
        except (AttributeError, TypeError):
            self.bad.report(f"{where}: not a BioC document (a passage, sentence or annotation is not an object)")
            return
        yield from self._document(doc_id, passages, codes, where)

    def _codes(self, infons: Mapping[str, str], mention: str, doc_id: str) -> list[str]:
        named = {key.lower(): value for key, value in infons.items()}
        value = next((named[key] for key in _IDENTIFIERS if named.get(key)), "")
        kind = named.get("type", "")
        composite = "composite" in named.get("compositerole", "").lower()
        codes = identifiers(value, kind, composite=composite)
        for code in codes:  # a mention of several concepts names one only if nothing else does
            self.code_names.add(code, mention, kind, doc_id, weak=len(codes) > 1)
        return codes

    def _document(self, doc_id: str, passages: Iterable[str], codes: list[str], where: str) -> Iterator[Document]:
        if not doc_id:
            self.bad.report(f"{where}, column id: no value")
            return
        text = "\n".join(passage for passage in passages if passage)
        yield Document(doc_id, text, codes=tuple(dict.fromkeys(codes)), where=where)


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
    contents = NO_PATIENT
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
        citation.codes.update(dict.fromkeys(codes))
        apart = parts.split("|") if parts and parts.count("|") + 1 == len(codes) else []
        for code, name in zip(codes, apart or [mention] * len(codes), strict=True):
            # a mention of several concepts that does not say which part is which names one only if nothing else does
            self.code_names.add(code, name, kind, citation.doc_id, weak=len(codes) > 1 and not apart)
