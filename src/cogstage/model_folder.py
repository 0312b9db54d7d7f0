"""The model folder: weights, configuration, vocabulary, evidence and figures, in open formats."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from cogstage.artefact import is_artefact, new_folder, read_folder, software_version, to_json, write_text
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.disproportionality import Margins, Population
from cogstage.graph.kept_examples import Examples
from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.pair_order import PairOrder
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.dataset import read_triples
from cogstage.locks import lock_folder
from cogstage.model.config import Config
from cogstage.model.network import Network, network_shapes
from cogstage.options import Options
from cogstage.provenance import counts_of, privacy_text
from cogstage.rationale.explain import Explainer
from cogstage.rationale.predictor import DefaultPredictor, Predictor
from cogstage.rationale.record import Provenance
from cogstage.relations import RelationIndex
from cogstage.reporting.release import TEST_FIGURES, release_markdown
from cogstage.training.calibration import Calibration
from cogstage.triples import TripleIndex, Triples, usual_types

VOCABULARY = "vocabulary.parquet"
ORDER = "order.safetensors"  # where the graph has order in time
EXAMPLES = "examples.arrow"  # of counted pairs, where the graph keeps any
CHECKPOINT = "checkpoint"  # of a training that is not finished
MODEL_VERSION = 7  # 6: one score per relation
DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "BOOL": "?"}  # of safetensors
FILES = (
    "model.safetensors",
    "config.json",
    VOCABULARY,
    "metrics.json",
    "evidence.safetensors",
    "facts_train.parquet",
)


@dataclass(frozen=True)
class Fitted:
    """All fitted state, as stored on disk."""

    preset: str
    seed: int
    config: Options
    relations: tuple[str, ...]  # of the data set
    targets: tuple[int, ...]  # those that are predicted
    network: Network | Any  # or the networks of the published model by target, an nn.ModuleDict
    calibration: dict[str, Calibration]
    metrics: dict[str, Any]
    vocabulary: Vocabulary
    facts: Triples  # training facts
    counts: PairCounts
    graph_hash: str
    privacy: str  # privacy protection of the counts
    order: PairOrder | None = None  # None for a graph without order in time
    population: Population | None = None  # None for a graph without totals
    examples: Examples | None = None  # documents and sentences of counted pairs, where the graph keeps them

    @property
    def graph(self) -> Graph:
        """The graph whose counts are kept."""
        return self.counts.graph(self.vocabulary)

    def predictor(self) -> Predictor:
        """Return the predictor of the preset: default or published model."""
        types, relations = self.vocabulary.type, len(self.relations)
        if isinstance(self.network, Network):
            return DefaultPredictor.create(self.network, self.counts, self.facts, types, relations, self.order)
        from cogstage.rationale.paper_predictor import PaperPredictor

        return PaperPredictor.create(self.network, self.facts, len(types), relations)

    def explainer(self, facts: TripleIndex) -> Explainer:
        """Turns reasons into records; ``facts`` are the training facts."""
        types, world = self.vocabulary.type, str(self.config.to_dict()["world"])
        return Explainer(
            self.vocabulary,
            RelationIndex(self.relations),
            self.counts,
            facts,
            usual_types(types, self.facts, len(self.relations)),
            Provenance(self.weights_hash(), self.graph_hash, software_version(), world, self.privacy),
            self.order,
            Margins.from_counts(self.population, self.vocabulary.count, self.counts, self.privacy),
            examples=self.examples,
        )

    def on_graph(self, graph: Graph) -> Fitted:
        """The same stages 2 and 3 with the terms and counts of another graph."""
        from cogstage.training.transfer import matching_nodes, move_facts, move_network

        if not isinstance(self.network, Network):
            raise UsageError(
                "only the default model can be applied to another graph; train the published model on that graph"
            )
        match = matching_nodes(self.vocabulary, graph.vocabulary)
        facts = move_facts(self.facts, match, len(self.vocabulary))
        sources = {**self.metrics.get("sources", {}), **counts_of(graph.made_with)}
        return replace(
            self,
            network=move_network(self.network, (self.graph, self.facts), (graph, facts), match),
            facts=facts,
            metrics={**self.metrics, "sources": sources},
            **graph_fields(graph),
        )

    def weights_hash(self) -> str:
        """SHA-256 of the weights, which identifies the model in records."""
        digest = hashlib.sha256()
        for name, value in sorted(self._arrays().items()):
            digest.update(name.encode())
            digest.update(value.data)
        return digest.hexdigest()

    def _arrays(self) -> dict[str, np.ndarray]:
        if isinstance(self.network, Network):
            return {name: np.ascontiguousarray(value) for name, value in self.network.arrays().items()}
        return {name: value.detach().contiguous().numpy() for name, value in self.network.named_parameters()}

    def save(self, path: Path) -> None:
        """Write the folder; a checkpoint within it goes when the finished model takes its place."""
        aside = _aside(path)
        if _only_checkpoint(path):  # a training that was under way here and is now finished
            shutil.rmtree(aside, ignore_errors=True)
            os.replace(path / CHECKPOINT, aside)
        try:
            self._write(path)
        except BaseException:
            _put_back(path)
            raise
        shutil.rmtree(aside, ignore_errors=True)

    def _write(self, path: Path) -> None:
        about = {"seed": self.seed, "preset": self.preset, "privacy": self.privacy, "graph": self.graph_hash}
        with new_folder(path, "model", about, release_markdown) as folder:
            save_file(self._arrays(), folder / FILES[0])
            config = {
                "model_version": MODEL_VERSION,
                "config": self.config.to_dict(),
                "relations": list(self.relations),
                "targets": [self.relations[target] for target in self.targets],
                "calibration": {name: entry.to_dict() for name, entry in self.calibration.items()},
                "preset": self.preset,
                "seed": self.seed,
                "graph_hash": self.graph_hash,
                "privacy": self.privacy,
                "vocabulary_hash": self.vocabulary.hash,
                "population": None if self.population is None else asdict(self.population),
            }
            write_text(folder / "config.json", to_json(config))
            write_text(folder / "metrics.json", to_json(self.metrics))
            self.vocabulary.write(folder, VOCABULARY)
            save_file(self.counts.arrays(), folder / "evidence.safetensors")
            if self.order is not None:
                save_file(self.order.arrays(), folder / ORDER)
            if self.examples is not None:
                self.examples.write(folder / EXAMPLES)
            names = pa.array([self.relations[number] for number in self.facts.relation.tolist()], pa.string())
            table = pa.table({"head_id": self.facts.head, "relation": names, "tail_id": self.facts.tail})
            pq.write_table(table, folder / "facts_train.parquet", compression="zstd")

    @classmethod
    def load(cls, path: Path) -> Fitted:
        """Read the folder, checked; weights and evidence are mapped from the files, so processes share them."""
        if (path / CHECKPOINT).is_dir() and not (path / "model.safetensors").exists():
            raise UsageError(
                f"{path} contains an unfinished training run; continue it with `resume` and the same options"
            )
        return read_folder(path, "model", FILES, cls._read)

    @classmethod
    def _read(cls, path: Path, meta: Mapping[str, Any]) -> Fitted:
        """Read the files of a folder whose ``meta.json`` was checked."""
        try:
            info = json.loads((path / "config.json").read_text(encoding="utf-8"))
            if info.get("model_version") != MODEL_VERSION:
                raise CogstageError(f"{path} was trained by an older version of the model; train the model again")
            vocabulary = Vocabulary.read(path, VOCABULARY)
            if vocabulary.hash != info["vocabulary_hash"]:
                raise CogstageError(f"{path}: the vocabulary does not belong to the model; train the model again")
            relations = tuple(info["relations"])
            targets = tuple(relations.index(name) for name in info["targets"])
            facts = read_triples(path / "facts_train.parquet", relations)
            order = mapped_arrays(path / ORDER) if (path / ORDER).exists() else None
            config, network = _network(info, path / FILES[0], len(vocabulary), targets, facts)
            return cls(
                info["preset"],
                info["seed"],
                config,
                relations,
                targets,
                network,
                {name: Calibration(**entry) for name, entry in info["calibration"].items()},
                _metrics(path),
                vocabulary,
                facts,
                PairCounts.from_arrays(mapped_arrays(path / "evidence.safetensors")),
                info["graph_hash"],
                info["privacy"],
                None if order is None else PairOrder.from_arrays(order),
                None if info.get("population") is None else Population(**info["population"]),
                Examples.load(path / EXAMPLES, len(vocabulary)) if (path / EXAMPLES).exists() else None,
            )
        except (SafetensorError, pa.ArrowInvalid, OSError, KeyError, TypeError, ValueError, IndexError) as error:
            raise CogstageError(f"{path} is damaged ({error}); train the model again") from error


def graph_fields(graph: Graph) -> dict[str, Any]:
    """The fields of :class:`Fitted` that a graph gives."""
    return {
        "vocabulary": graph.vocabulary,
        "counts": PairCounts.from_graph(graph),
        "graph_hash": graph.hash,
        "privacy": privacy_text(graph.made_with),
        "order": PairOrder.from_graph(graph),
        "population": Population.from_meta(graph.made_with),
        "examples": graph.examples,
    }


def _metrics(path: Path) -> dict[str, Any]:
    """Figures of training, and under "test" those that an evaluation has added since."""
    metrics: dict[str, Any] = json.loads((path / "metrics.json").read_text(encoding="utf-8"))
    if (path / TEST_FIGURES).exists():
        metrics["test"] = json.loads((path / TEST_FIGURES).read_text(encoding="utf-8"))
    return metrics


def _network(
    info: Mapping[str, Any], file: Path, terms: int, targets: Sequence[int], facts: Triples
) -> tuple[Options, Any]:
    """The configuration and the network."""
    arrays, relations = mapped_arrays(file), len(info["relations"])
    if info["preset"] != "paper":
        config = Config.from_dict(info["config"])
        _check_shapes(config, arrays, terms, relations, len(targets), file)
        return config, Network.from_arrays(config, targets, arrays)
    from cogstage.training.paper_folder import paper_networks

    return paper_networks(info["config"], arrays, terms, relations, targets, facts, str(file))


def _check_shapes(
    config: Config, arrays: Mapping[str, np.ndarray], terms: int, relations: int, targets: int, file: Path
) -> None:
    shapes = network_shapes(config, terms, relations, targets)
    if {name: value.shape for name, value in arrays.items()} != shapes:
        raise CogstageError(f"{file}: the weights do not fit the configuration; train again")


def mapped_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file, mapped into memory, so that processes share them."""
    with safe_open(path, "numpy"):
        pass  # the library checks the header
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    data = np.memmap(path, np.uint8, "r", offset=8 + size) if path.stat().st_size > 8 + size else np.empty(0, np.uint8)
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        arrays[name] = data[begin:end].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays


def check_output(path: Path) -> None:
    """Raise before training if a model cannot be written to ``path``."""
    if _aside(path).is_dir():
        with suppress(UsageError), lock_folder(path):  # not while another process writes its model
            _put_back(path)
    free = not path.exists() or (path.is_dir() and not any(path.iterdir()))
    if not (free or is_artefact(path, "model") or _only_checkpoint(path)):
        raise UsageError(f"{path} exists and is not a model folder; choose another output folder or remove it")
    made = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
        if made:
            path.rmdir()  # a training run that cannot start leaves nothing behind
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def _aside(path: Path) -> Path:
    """The path of the checkpoint while the finished model is written."""
    return path.parent / f".{path.name}.{CHECKPOINT}"


def _put_back(path: Path) -> None:
    """Restore the checkpoint of a training run whose model could not be written."""
    aside, inside = _aside(path), any(path.iterdir()) if path.is_dir() else path.exists()
    if aside.is_dir() and not inside:
        path.mkdir(exist_ok=True)
        os.replace(aside, path / CHECKPOINT)


def _only_checkpoint(path: Path) -> bool:
    inside = [entry.name for entry in path.iterdir()] if path.is_dir() else []
    if inside != [CHECKPOINT]:
        return False
    parts = [path / CHECKPOINT, *(entry for entry in (path / CHECKPOINT).iterdir() if entry.is_dir())]
    return any(is_artefact(part, "checkpoint") for part in parts)
