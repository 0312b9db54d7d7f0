"""The model folder: weights, configuration, vocabulary, evidence and figures, in open formats."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from cogstage.artefact import is_artefact, new_folder, read_meta, software_version, to_json, write_text
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.vocabulary import Vocabulary
from cogstage.model.checkpoint import FILE as CHECKPOINT_FILE
from cogstage.model.checkpoint import put_weights
from cogstage.model.cogstage import Network
from cogstage.model.config import Config
from cogstage.rationale.cogstage import CogStage
from cogstage.rationale.evidence import Evidence
from cogstage.rationale.record import Provenance
from cogstage.triples import Triples

VOCABULARY = "vocabulary.parquet"
CHECKPOINT = "checkpoint"
FILES = (
    "model.safetensors",
    "config.json",
    VOCABULARY,
    "metrics.json",
    "evidence.safetensors",
    "facts_train.parquet",
)


def save(model: CogStage, path: Path) -> None:
    """Write the folder; a checkpoint within it goes when the finished model takes its place."""
    network = model.network
    aside = path.parent / f".{path.name}.{CHECKPOINT}"
    if _only_checkpoint(path):  # a training that was under way here and is now finished
        shutil.rmtree(aside, ignore_errors=True)
        os.replace(path / CHECKPOINT, aside)
    with new_folder(path, "model", {"seed": model.seed, "preset": model.preset}) as folder:
        save_file({name: value.detach().contiguous() for name, value in network.named_parameters()}, folder / FILES[0])
        config = {
            "config": model.config.to_dict(),
            "relations": list(model.all_relations),
            "targets": list(model.relations),
            "calibration": model.calibration,
            "preset": model.preset,
            "seed": model.seed,
            "graph_hash": model.graph_hash,
            "vocabulary_hash": model.vocabulary.hash,
        }
        write_text(folder / "config.json", to_json(config))
        write_text(folder / "metrics.json", to_json(model.metrics))
        model.vocabulary.write(folder, VOCABULARY)
        save_file(model.evidence.tensors(), folder / "evidence.safetensors")
        names = pa.array([model.all_relations[number] for number in model.facts.relation.tolist()], pa.string())
        table = pa.table({"head_id": model.facts.head, "relation": names, "tail_id": model.facts.tail})
        pq.write_table(table, folder / "facts_train.parquet", compression="zstd")
    shutil.rmtree(aside, ignore_errors=True)


def load(path: Path) -> CogStage:
    """Read the folder, checked; weights and evidence are mapped from the files, so processes share them."""
    if (path / CHECKPOINT / CHECKPOINT_FILE).exists() and not (path / "model.safetensors").exists():
        raise UsageError(f"{path} holds a training that has not finished; finish it with train --resume --out {path}")
    read_meta(path, "model", FILES)
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        metrics = json.loads((path / "metrics.json").read_text(encoding="utf-8"))
        vocabulary = Vocabulary.read(path, VOCABULARY)
        relations = tuple(config["relations"])
        if vocabulary.hash != config["vocabulary_hash"]:
            raise CogstageError(f"{path}: the vocabulary does not belong to the model; train the model again")
        facts = _read_facts(path / "facts_train.parquet", relations)
        weights = load_file(path / "model.safetensors")
        evidence = Evidence.of_tensors(load_file(path / "evidence.safetensors"), vocabulary, relations)
        model = CogStage(config["targets"], preset=config["preset"], seed=config["seed"])
        model.config = Config.from_dict(config["config"])
        network = Network(
            model.config, len(vocabulary), len(relations), [relations.index(t) for t in config["targets"]]
        )
        put_weights(network, weights, str(path / "model.safetensors"))
        model.calibration, model.metrics = config["calibration"], metrics
        model.relations, model.evidence, model.graph_hash = tuple(config["targets"]), evidence, config["graph_hash"]
    except (SafetensorError, pa.ArrowInvalid, OSError, KeyError, TypeError, ValueError, IndexError) as error:
        raise CogstageError(f"{path} is damaged ({error}); train the model again") from error
    model._take(network.eval(), vocabulary, relations, facts)
    return model


def provenance(model: CogStage) -> Provenance:
    """What a prediction of this model is marked with."""
    digest = hashlib.sha256()
    for name, value in sorted(model.network.named_parameters()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(value.detach().numpy()).tobytes())
    return Provenance(digest.hexdigest(), model.graph_hash, software_version(), model.config.world)


def check_place(path: Path) -> None:
    """Raise before a long training if a model could not be written to ``path`` in the end."""
    free = not path.exists() or (path.is_dir() and not any(path.iterdir()))
    if not (free or is_artefact(path, "model") or _only_checkpoint(path)):
        raise UsageError(f"{path} is there already and is not a model folder; choose another --out or remove it")
    made = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
        if made:
            path.rmdir()  # a training that cannot begin leaves nothing behind
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def _only_checkpoint(path: Path) -> bool:
    inside = [entry.name for entry in path.iterdir()] if path.is_dir() else []
    return inside == [CHECKPOINT] and is_artefact(path / CHECKPOINT, "checkpoint")


def _read_facts(path: Path, relations: tuple[str, ...]) -> Triples:
    table = pq.read_table(path, columns=["head_id", "relation", "tail_id"])
    index = {name: number for number, name in enumerate(relations)}
    relation: list[Any] = [index[name] for name in table.column("relation").to_pylist()]
    head, tail = (table.column(name).to_numpy().astype(np.int32) for name in ("head_id", "tail_id"))
    return Triples(head, np.array(relation, np.int16), tail)
