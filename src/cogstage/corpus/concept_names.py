"""Names of codes from the OMOP vocabulary tables CONCEPT and CONCEPT_SYNONYM."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cogstage.corpus.formats.omop import table_files
from cogstage.corpus.names import CodeNames
from cogstage.corpus.streams import table_batches
from cogstage.errors import UsageError
from cogstage.tables import BadRows

ENGLISH = "4180186"  # the concept of the English language
_COLUMNS = ("concept_id", "concept_name", "domain_id", "vocabulary_id", "concept_code")
_SAME_VOCABULARY = {"cpt": "cpt4", "icd9": "icd9cm"}  # prefix of a code -> vocabulary_id, without case and marks


def read_concept_names(folder: Path, codes: Iterable[str], bad: BadRows | None = None) -> CodeNames:
    """Names, domains and English synonyms of these codes.

    A code is a ``concept_id``, or a ``concept_code`` behind its vocabulary (``snomed:38341003``).
    """
    files = table_files(folder, "concept")
    if not files:
        raise UsageError(f"{folder} contains no table concept; download it with the vocabularies (Athena)")
    bad = bad if bad is not None else BadRows()
    wanted = {_key(code): code for code in codes}
    plain = pa.array(sorted({key[1] for key in wanted}), pa.string())
    names, code_of = CodeNames(), dict[str, list[str]]()
    for batch in table_batches(files, _COLUMNS[:2], bad, optional=_COLUMNS[2:]):
        some = pc.or_(*(pc.is_in(batch.column(column), value_set=plain) for column in ("concept_id", "concept_code")))
        for concept, name, domain, vocabulary, own in zip(*_lists(batch.filter(some)), strict=True):
            for key in (("", concept), (_vocabulary(vocabulary), own)):
                if (code := wanted.get(key)) is not None and name:
                    names.add(code, name, domain.lower(), "", vocabulary=True)
                    code_of.setdefault(concept, []).append(code)
    _add_synonyms(names, folder, code_of, bad)
    return names


def _add_synonyms(names: CodeNames, folder: Path, code_of: dict[str, list[str]], bad: BadRows) -> None:
    """Add the English names of CONCEPT_SYNONYM, behind the concepts' own names."""
    type_of = {code: type for code, (_, type) in names.best(names.codes()).items()}
    concepts = pa.array(sorted(code_of), pa.string())
    columns = ("concept_id", "concept_synonym_name")
    files = table_files(folder, "concept_synonym") if code_of else []
    for batch in table_batches(files, columns, bad, optional=("language_concept_id",)):
        language = batch.column("language_concept_id")
        english = pc.is_in(language, value_set=pa.array([ENGLISH, "", "0"]))
        some = pc.and_(english, pc.is_in(batch.column("concept_id"), value_set=concepts))
        for concept, name, _ in zip(*_lists(batch.filter(some)), strict=True):
            for code in code_of[concept]:
                names.add(code, name, type_of.get(code, ""), "", vocabulary=True, weak=True)


def _lists(batch: pa.RecordBatch) -> list[list[str]]:
    return [column.to_pylist() for column in batch.columns]


def _key(code: str) -> tuple[str, str]:
    """Vocabulary and code; a bare code is a concept_id."""
    system, mark, own = code.partition(":")
    return (_vocabulary(system), own) if mark else ("", code)


def _vocabulary(system: str) -> str:
    name = "".join(filter(str.isalnum, system.lower()))
    return _SAME_VOCABULARY.get(name, name)
