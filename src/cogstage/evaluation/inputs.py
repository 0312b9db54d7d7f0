"""A data set frozen into one file, so that all cells of a comparison use the same pairs."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np

from cogstage.errors import CogstageError
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
    with path.open("wb") as handle:
        np.savez_compressed(handle, about=np.array(json.dumps(about)), **_arrays(data))  # type: ignore[arg-type]


def load_dataset(path: Path) -> Dataset:
    """Read a data set that :func:`save_dataset` wrote."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            about = json.loads(str(arrays["about"]))
            pairs = {
                (relation, split): Pairs(*(arrays[f"{split}/{relation}/{part}"] for part in ("head", "tail", "label")))
                for relation in about["relations"]
                for split in SPLITS
            }
            facts = {
                split: Triples(*(arrays[f"{split}/facts/{part}"] for part in ("head", "relation", "tail")))
                for split in SPLITS
            }
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise CogstageError(f"{path} is damaged ({error}); start the comparison in a new folder") from error
    return Dataset(tuple(about["relations"]), about["vocabulary_hash"], about["n_nodes"], {}, {}, pairs, facts)


def _arrays(data: Dataset) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for split in SPLITS:
        facts = data.facts(split)
        arrays |= {f"{split}/facts/{part}": getattr(facts, part) for part in ("head", "relation", "tail")}
        for relation in data.relations:
            pairs = data.pairs(relation, split)
            arrays |= {f"{split}/{relation}/{part}": getattr(pairs, part) for part in ("head", "tail", "label")}
    return arrays
