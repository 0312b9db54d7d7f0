"""BioC collections in XML or JSON: passages as text, annotations as codes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cogstage.corpus.annotations import identifiers
from cogstage.corpus.readers import XML, Reader, Sample
from cogstage.corpus.records import Document
from cogstage.corpus.xml_stream import stream_elements, text_of
from cogstage.input_files import bare_suffix, lines_of, open_text
from cogstage.json_stream import BrokenJson, JsonScanner

_IDENTIFIERS = ("identifier", "mesh", "concept_id", "cui", "omim", "ncbi gene", "ncbi_gene", "geneid", "id")


class BiocReader(Reader):
    """A BioC document: its passages a line each, the identifiers of its annotations as ``codes``."""

    format = "bioc"
    title = "BioC XML or JSON"
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
        for number, element in enumerate(stream_elements(path, "document", self.bad, self.meter), start=1):
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
        if len(codes) == 1:  # a mention of several concepts names none of them
            self.code_names.add(codes[0], mention, kind, doc_id)
        return codes

    def _document(self, doc_id: str, passages: Iterable[str], codes: list[str], where: str) -> Iterator[Document]:
        if not doc_id:
            self.bad.report(f"{where}, column id: no value")
            return
        text = "\n".join(passage for passage in passages if passage)
        yield Document(doc_id, text, codes=tuple(dict.fromkeys(codes)), where=where)
