"""Tiny UMLS and OMOP releases in the published column layout, and graphs to lay facts on."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary


def write_lines(path: Path, lines: Sequence[str]) -> None:
    data = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def mrrel(cui1: str, rela: str, cui2: str, sab: str = "MED-RT", suppress: str = "N", rel: str = "RO") -> str:
    """CUI1|AUI1|STYPE1|REL|CUI2|AUI2|STYPE2|RELA|RUI|SRUI|SAB|SL|RG|DIR|SUPPRESS|CVF|"""
    return f"{cui1}|A1|AUI|{rel}|{cui2}|A2|AUI|{rela}|R1||{sab}|{sab}||Y|{suppress}||"


def mrconso(
    cui: str, text: str, lat: str = "ENG", suppress: str = "N", preferred: bool = False, sab: str = "MSH"
) -> str:
    """CUI|LAT|TS|LUI|STT|SUI|ISPREF|AUI|SAUI|SCUI|SDUI|SAB|TTY|CODE|STR|SRL|SUPPRESS|CVF|"""
    ts, stt, best = ("P", "PF", "Y") if preferred else ("S", "VO", "N")
    return f"{cui}|{lat}|{ts}|L1|{stt}|S1|{best}|A1||M1|D1|{sab}|PT|D1|{text}|0|{suppress}||"


def mrsty(cui: str, tui: str) -> str:
    """CUI|TUI|STN|STY|ATUI|CVF|"""
    return f"{cui}|{tui}|A1|Some Type|AT1||"


def write_umls(
    folder: Path,
    rel: Sequence[str],
    conso: Sequence[str],
    sty: Sequence[str] = ("C9999999|T047|B2|x|AT||",),
    end: str = "",
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("MRREL.RRF", rel), ("MRCONSO.RRF", conso), ("MRSTY.RRF", sty)):
        write_lines(folder / (name + end), lines)
    return folder


CONCEPT = (
    "concept_id\tconcept_name\tdomain_id\tvocabulary_id\tconcept_class_id\tstandard_concept\tconcept_code\t"
    "valid_start_date\tvalid_end_date\tinvalid_reason"
)
RELATIONSHIP = "concept_id_1\tconcept_id_2\trelationship_id\tvalid_start_date\tvalid_end_date\tinvalid_reason"
SYNONYM = "concept_id\tconcept_synonym_name\tlanguage_concept_id"


def concept(number: int, name: str, domain: str, vocabulary: str = "NDFRT", invalid: str = "") -> str:
    return f"{number}\t{name}\t{domain}\t{vocabulary}\tClass\tS\tN{number}\t19700101\t20991231\t{invalid}"


def relationship(first: int, name: str, second: int, invalid: str = "") -> str:
    return f"{first}\t{second}\t{name}\t19700101\t20991231\t{invalid}"


def synonym(number: int, name: str, language: int = 4180186) -> str:
    return f"{number}\t{name}\t{language}"


def write_omop(
    folder: Path, concepts: Sequence[str], relationships: Sequence[str], synonyms: Sequence[str] | None = ()
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / "CONCEPT.csv", [CONCEPT, *concepts])
    write_lines(folder / "CONCEPT_RELATIONSHIP.csv", [RELATIONSHIP, *relationships])
    if synonyms is not None:
        write_lines(folder / "CONCEPT_SYNONYM.csv", [SYNONYM, *synonyms])
    return folder


def graph_of(concepts: Sequence[str], seed: int = 0, density: float = 0.2, terms: Sequence[str] | None = None) -> Graph:
    """A graph of these nodes with random edges; ``terms`` are the keys where nodes are terms of concepts."""
    rng = np.random.default_rng(seed)
    source, target = np.triu_indices(len(concepts), 1)
    there = rng.random(len(source)) < density
    keys = tuple(terms or concepts)
    vocabulary = Vocabulary(keys, tuple(concepts), keys, ("",) * len(keys), np.full(len(keys), 10, np.int64))
    count = rng.integers(1, 9, int(there.sum())).astype(np.int64)
    return Graph(vocabulary, source[there].astype(np.int32), target[there].astype(np.int32), count)
