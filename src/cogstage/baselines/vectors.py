"""Vectors cached on disk, so that each graph is encoded once for all scorers and relations."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

import numpy as np

from cogstage.artefact import new_file, to_json, write_text
from cogstage.baselines.contract import Encoder
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import FittingView
from cogstage.progress import SILENT, Progress


class VectorStore:
    """A folder of ``<encoder>-<seed>-<key>.npy``; the key changes with options, graph and (REPEL) training facts."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def path(self, encoder: Encoder, graph: Graph, view: FittingView, seed: int) -> Path:
        """The path of these vectors."""
        digest = hashlib.sha256(f"{encoder!r} {graph.hash}".encode())
        if encoder.needs_facts:
            facts = view.train_facts()
            for array in (facts.head, facts.relation, facts.tail):
                digest.update(np.ascontiguousarray(array).tobytes())
        return self.folder / f"{encoder.name}-{seed}-{digest.hexdigest()[:12]}.npy"

    def get(
        self, encoder: Encoder, graph: Graph, view: FittingView, seed: int, progress: Progress = SILENT
    ) -> np.ndarray:
        """Return the vectors; encode them if they are not cached."""
        path = self.path(encoder, graph, view, seed)
        if path.exists():
            result: np.ndarray = np.load(path, allow_pickle=False)
            return result
        begun, worked = time.perf_counter(), time.process_time()
        vectors = encoder.encode(graph, view, seed, progress)
        cost = {"seconds": time.perf_counter() - begun, "cpu_seconds": time.process_time() - worked}
        write_text(path.with_suffix(".json"), to_json({"encoder": repr(encoder), "seed": seed, **cost}))
        with new_file(path) as temporary, temporary.open("wb") as handle:
            np.save(handle, vectors)
        return vectors

    def cost(self, path: Path) -> tuple[float, float]:
        """Wall-clock and CPU seconds that the encoding took."""
        about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        return float(about["seconds"]), float(about.get("cpu_seconds", about["seconds"]))
