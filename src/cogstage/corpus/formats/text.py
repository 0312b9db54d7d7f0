"""Plain text files: each is a document, known by its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cogstage.corpus.readers import Reader, Sample
from cogstage.corpus.records import NO_PATIENT, Document
from cogstage.input_files import LONGEST_LINE, open_text


class TextReader(Reader):
    """A folder or archive of ``.txt`` files; a document's identifier is the file's name without its ending."""

    format = "text"
    title = "plain text files, one document per file"
    contents = NO_PATIENT
    suffixes = (".txt", ".text")

    @classmethod
    def recognises(cls, sample: Sample) -> int:
        return int(sample.suffix in cls.suffixes)

    def _read(self, path: Path) -> Iterator[Document]:
        with open_text(path, self.meter) as handle:
            text = handle.read(LONGEST_LINE + 1)
        if len(text) > LONGEST_LINE:
            self.bad.report(f"{path}: text longer than the limit of {LONGEST_LINE:,} characters")
        elif not text.strip():
            self.bad.notice("files without text")
        else:
            yield Document(path.name.split(".")[0], text, where=str(path))
