"""A data set and its populations frozen into files, so that all cells of a comparison use the same pairs."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.errors import CogstageError
from cogstage.evaluation.populations import KINDS, Populations, RelatedPairs
from cogstage.knowledge.dataset import SPLITS, Dataset, Pairs
from cogstage.triples import Triples


def dataset_hash(data: Dataset) -> str:
    """Identity of a data set's content: nodes, relations, pairs and facts."""
    digest = hashlib.sha256(data.vocabulary_hash.encode() + "\n".join(data.relations).encode())
    for name, array in _arrays(data).items():
        digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def save_dataset(data: Dataset, path: Path) -> None:
    """Write the data set's pairs and facts to ``path``."""
    about = {"relations": list(data.relations), "vocabulary_hash": data.vocabulary_hash, "n_nodes": data.n_nodes}
    _write(path, about, _arrays(data))


def load_dataset(path: Path) -> Dataset:
    """Read a data set that :func:`save_dataset` wrote."""
    with _read(path) as (about, arrays):
        pairs = {
            (relation, split): Pairs(*(arrays[f"{split}/{relation}/{part}"] for part in ("head", "tail", "label")))
            for relation in about["relations"]
            for split in SPLITS
        }
        facts = {
            split: Triples(*(arrays[f"{split}/facts/{part}"] for part in ("head", "relation", "tail")))
            for split in SPLITS
        }
    return Dataset(tuple(about["relations"]), about["vocabulary_hash"], about["n_nodes"], {}, {}, pairs, facts)


RELATED = ("head", "tail", "possible", "true", "known")


def save_populations(pairs: Populations, path: Path) -> None:
    """Write the populations of a split to ``path``."""
    arrays = {f"related/{part}": getattr(pairs.related, part) for part in RELATED}
    for relation in pairs.relations:
        groups = {"facts": pairs.facts[relation], **{kind: pairs.negatives[kind, relation] for kind in KINDS}}
        for name, ends in groups.items():
            arrays |= {f"{relation}/{name}/head": ends[0], f"{relation}/{name}/tail": ends[1]}
    about = {"relations": list(pairs.relations), "split": pairs.split}
    _write(path, about, arrays)


def load_populations(path: Path) -> Populations:
    """Read populations that :func:`save_populations` wrote."""
    with _read(path) as (about, arrays):
        relations = tuple(about["relations"])
        ends = {
            (name, relation): (arrays[f"{relation}/{name}/head"], arrays[f"{relation}/{name}/tail"])
            for relation in relations
            for name in ("facts", *KINDS)
        }
        related = RelatedPairs(*(arrays[f"related/{part}"] for part in RELATED))
    facts = {relation: ends.pop(("facts", relation)) for relation in relations}
    return Populations(about["split"], relations, facts, ends, related)


def _write(path: Path, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    with path.open("wb") as handle:
        np.savez_compressed(handle, about=np.array(json.dumps(about)), **arrays)  # type: ignore[arg-type]


@contextmanager
def _read(path: Path) -> Iterator[tuple[dict[str, Any], Mapping[str, np.ndarray]]]:
    """What :func:`_write` was given; anything odd about the file is one error."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            yield json.loads(str(arrays["about"])), arrays
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise CogstageError(f"{path} is damaged ({error}); start the comparison in a new folder") from error


def _arrays(data: Dataset) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for split in SPLITS:
        facts = data.facts(split)
        arrays |= {f"{split}/facts/{part}": getattr(facts, part) for part in ("head", "relation", "tail")}
        for relation in data.relations:
            pairs = data.pairs(relation, split)
            arrays |= {f"{split}/{relation}/{part}": getattr(pairs, part) for part in ("head", "tail", "label")}
    return arrays
