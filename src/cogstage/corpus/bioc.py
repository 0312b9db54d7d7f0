"""BioC collections in XML or JSON: passages as text, annotations as codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cogstage.corpus.json_stream import BrokenJson, JsonScanner
from cogstage.corpus.readers import Reader
from cogstage.corpus.records import Document
from cogstage.corpus.xml_stream import stream_elements, text_of
from cogstage.tables import BadRows, bare_suffix, is_clean, open_text

_IDENTIFIERS = ("identifier", "mesh", "concept_id", "cui", "omim", "ncbi gene", "ncbi_gene", "geneid", "id")
_SEVERAL = re.compile(r"[|;,]")


class BiocReader(Reader):
    """A BioC document: its passages a line each, the identifiers of its annotations as ``codes``."""

    def __init__(self, files: Sequence[Path], bad: BadRows) -> None:
        super().__init__(files, bad)

    def _read(self, path: Path) -> Iterator[Document]:
        return self._read_xml(path) if bare_suffix(path) in (".xml", ".nxml") else self._read_json(path)

    def _read_xml(self, path: Path) -> Iterator[Document]:
        for number, element in enumerate(stream_elements(path, "document", self.bad, self.meter), start=1):
            where = f"{path}, document {number}"
            passages = [text_of(passage.find("text")) for passage in element.iter("passage")]
            passages += [text_of(sentence.find("text")) for sentence in element.iterfind("passage/sentence")]
            codes: list[str] = []
            for annotation in element.iter("annotation"):
                infons = {infon.get("key", ""): text_of(infon) for infon in annotation.iterfind("infon")}
                codes.extend(self._concepts(infons, text_of(annotation.find("text"))))
            yield from self._document(text_of(element.find("id")), passages, codes, where)

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
        for number, line in enumerate(handle, start=1):
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
        passages: list[str] = []
        codes: list[str] = []
        for passage in item["passages"]:
            parts = [passage, *passage.get("sentences", [])] if isinstance(passage, dict) else []
            for part in parts:
                passages.append(str(part.get("text") or ""))
                for annotation in part.get("annotations") or ():
                    infons = {str(key): str(value) for key, value in (annotation.get("infons") or {}).items()}
                    codes.extend(self._concepts(infons, str(annotation.get("text") or "")))
        yield from self._document(str(item.get("id") or ""), passages, codes, where)

    def _concepts(self, infons: Mapping[str, str], mention: str) -> list[str]:
        named = {key.lower(): value for key, value in infons.items()}
        value = next((named[key] for key in _IDENTIFIERS if named.get(key)), "")
        codes = [code.strip() for code in _SEVERAL.split(value) if code.strip() not in ("", "-", "-1")]
        for code in codes:
            self._name(code, mention, named.get("type"))
        return codes

    def _document(self, doc_id: str, passages: Iterable[str], codes: list[str], where: str) -> Iterator[Document]:
        text = "\n".join(passage for passage in passages if passage)
        if not doc_id:
            self.bad.report(f"{where}, column id: no value")
        elif not is_clean(text):
            self.bad.report(f"{where}: not UTF-8 text; convert the file to UTF-8")
        else:
            yield Document(doc_id, text, codes=tuple(dict.fromkeys(codes)), where=where)
