"""Compiled lexicons on disk, found by the content of its files and how they were read; never half written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.artefact import file_hash, new_folder, read_meta, software_version
from cogstage.errors import CogstageError
from cogstage.tables import BadRows

if TYPE_CHECKING:
    from cogstage.corpus.lexicon import Lexicon

KIND = "compiled lexicon"
MOST_KEPT = 16  # least recently used first
_ARRAYS = ("concept_starts", "term_concepts", "pattern_terms")
_FILES = ("terms.parquet", "concepts.parquet", "tokens.parquet", *(f"{name}.npy" for name in _ARRAYS), "automaton.bin")


def cache_folder() -> Path:
    """``$COGSTAGE_CACHE``, else ``cogstage`` in the user's cache folder."""
    if named := os.environ.get("COGSTAGE_CACHE"):
        return Path(named) / "lexicons"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cogstage" / "lexicons"


def entry_path(cache: Path | str | bool, files: Sequence[Path], options: list[Any]) -> Path | None:
    """Where the compiled form of these files read with these options is kept; None if it is kept nowhere."""
    if cache is False:
        return None
    contents = [[path.name, file_hash(path)] for path in files]
    software = [software_version(), version("daachorse"), _code_hash()]
    key = hashlib.sha256(json.dumps([contents, options, software], ensure_ascii=False).encode()).hexdigest()
    return (cache_folder() if cache is True else Path(cache)) / key[:32]


def save(lexicon: Lexicon, where: Path, bad: BadRows) -> None:
    """Cache a compiled lexicon; ignore errors if the cache cannot be written."""
    automaton: bytes = lexicon.automaton.serialize()
    made_with = {"counted": bad.to_dict(), "automaton": hashlib.sha256(automaton).hexdigest()}
    try:
        with new_folder(where, KIND, made_with) as folder:
            pq.write_table(pa.table({"term": lexicon.terms}), folder / "terms.parquet")
            concepts = {"concept": lexicon.concepts, "name": lexicon.concept_names, "type": lexicon.concept_types}
            pq.write_table(pa.table(concepts), folder / "concepts.parquet")
            pq.write_table(pa.table({"token": lexicon.tokens}), folder / "tokens.parquet")
            for name in _ARRAYS:
                np.save(folder / f"{name}.npy", getattr(lexicon, name), allow_pickle=False)
            (folder / "automaton.bin").write_bytes(automaton)
        _forget_old(where.parent)
    except (OSError, CogstageError, pa.ArrowException, UnicodeEncodeError):
        return


def load(where: Path, bad: BadRows) -> Lexicon | None:
    """The compiled lexicon kept there, or None if there is none that can be used.

    Rows that were skipped when it was compiled are counted again; if skipping is not allowed, the cache is not used.
    """
    import daachorse

    from cogstage.corpus.lexicon import Lexicon

    try:
        made_with = read_meta(where, KIND, _FILES)["made_with"]
        counted = BadRows(**made_with["counted"])
        if counted.count and not bad.skip:
            return None
        automaton = (where / "automaton.bin").read_bytes()
        if hashlib.sha256(automaton).hexdigest() != made_with["automaton"]:
            return None
        concepts = pq.read_table(where / "concepts.parquet").to_pydict()
        arrays = {name: np.load(where / f"{name}.npy", allow_pickle=False) for name in _ARRAYS}
        lexicon = Lexicon(
            terms=tuple(pq.read_table(where / "terms.parquet").column("term").to_pylist()),
            concepts=tuple(concepts["concept"]),
            concept_names=tuple(concepts["name"]),
            concept_types=tuple(concepts["type"]),
            tokens=tuple(pq.read_table(where / "tokens.parquet").column("token").to_pylist()),
            automaton=daachorse.CharwiseDoubleArrayAhoCorasick.deserialize(automaton),
            **arrays,
        )
        os.utime(where)
    except (OSError, CogstageError, pa.ArrowException, ValueError, KeyError, TypeError):
        return None
    bad.add(counted)
    return lexicon


def _code_hash() -> str:
    """A hash of the code that compiles lexicons, so that a cache of older code is not used."""
    here = Path(__file__).parent
    names = ("tokens.py", "variants.py", "lexicon.py", "lexicon_cache.py", "context_rules.tsv")
    return hashlib.sha256(b"".join((here / name).read_bytes() for name in names)).hexdigest()


def _forget_old(folder: Path) -> None:
    kept = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: -path.stat().st_mtime)
    for path in kept[MOST_KEPT:]:
        shutil.rmtree(path, ignore_errors=True)
