"""Writes a planted graph and data set as folders, for tests that go through the command line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.artefact import new_folder, to_json, write_text
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import SPLITS, Dataset


def save_dataset(dataset: Dataset, path: Path) -> None:
    """The data set folder, as much of it as loading needs."""
    with new_folder(path, "dataset", {}) as folder:
        write_text(folder / "manifest.json", to_json(dict(dataset.manifest)))
        write_text(folder / "leakage.json", to_json({}))
        for split in SPLITS:
            facts = dataset.facts(split)
            names = [dataset.relations[number] for number in facts.relation.tolist()]
            table = pa.table({"head_id": facts.head, "relation": names, "tail_id": facts.tail})
            pq.write_table(table, folder / f"facts_{split}.parquet")
            for relation in dataset.relations:
                pairs = dataset.pairs(relation, split)
                (folder / "pairs" / relation).mkdir(parents=True, exist_ok=True)
                table = pa.table({"head_id": pairs.head, "tail_id": pairs.tail, "label": pairs.label})
                pq.write_table(table, folder / "pairs" / relation / f"{split}.parquet")


def save_both(graph: Graph, dataset: Dataset, folder: Path) -> tuple[Path, Path]:
    """Graph and data set folders under ``folder``."""
    graph.save(folder / "graph")
    save_dataset(dataset, folder / "data")
    return folder / "graph", folder / "data"
