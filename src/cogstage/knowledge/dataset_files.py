"""The files of a data set: facts and labelled pairs as Parquet, and how many there are of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.choices import NegativeKind
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.dataset import SPLITS
from cogstage.knowledge.located import LocatedFacts
from cogstage.knowledge.negatives import DrawnNegatives


def count_facts(facts: LocatedFacts, side: np.ndarray, drawn: DrawnNegatives) -> dict[str, dict[str, int]]:
    """Facts by relation and split, as Table 1 of the paper has them, with the negatives next to them and a total."""
    rows: dict[str, dict[str, int]] = {}
    for index, relation in enumerate(facts.relations):
        sizes = np.bincount(side[(facts.relation == index) & (side >= 0)], minlength=3).tolist()
        rows[relation] = dict(zip(SPLITS, sizes, strict=True))
        rows[relation].update({f"{name} negatives": len(drawn.ends[relation, name][0]) for name in SPLITS})
    rows["total"] = {column: sum(row[column] for row in rows.values()) for column in next(iter(rows.values()))}
    return rows


def write_tables(
    folder: Path,
    vocabulary: Vocabulary,
    facts: LocatedFacts,
    side: np.ndarray,
    drawn: Mapping[NegativeKind, DrawnNegatives],
    shown: NegativeKind,
) -> None:
    """Write the facts of each split, the negatives of each mode, and the pairs with those of the mode ``shown``."""
    terms = pa.array(vocabulary.term, pa.string())
    relations = pa.array(facts.relations, pa.string())
    for split, name in enumerate(SPLITS):
        here = side == split
        head, tail = facts.head[here], facts.tail[here]
        columns = {
            "head": terms.take(pa.array(head)),
            "relation": relations.take(pa.array(facts.relation[here])),
            "tail": terms.take(pa.array(tail)),
            "head_id": pa.array(head, pa.int32()),
            "tail_id": pa.array(tail, pa.int32()),
        }
        pq.write_table(pa.table(columns), folder / f"facts_{name}.parquet", compression="zstd")
        for index, relation in enumerate(facts.relations):
            chosen = here & (facts.relation == index)
            held = facts.head[chosen], facts.tail[chosen]
            for mode, negatives in drawn.items():
                not_held = negatives.ends[relation, name]
                path = folder / "negatives" / mode / relation / f"{name}.parquet"
                _write_pairs(path, terms, *not_held, np.zeros(len(not_held[0]), np.int8))
                if mode is shown:
                    label = np.repeat(np.array([1, 0], np.int8), [len(held[0]), len(not_held[0])])
                    ends = [np.concatenate(both) for both in zip(held, not_held, strict=True)]
                    _write_pairs(folder / "pairs" / relation / f"{name}.parquet", terms, ends[0], ends[1], label)


def _write_pairs(path: Path, terms: pa.Array, head: np.ndarray, tail: np.ndarray, label: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    order = np.lexsort((tail, head))  # the order of the rows must not reveal the label
    head, tail, label = head[order], tail[order], label[order]
    columns = {
        "head": terms.take(pa.array(head)),
        "tail": terms.take(pa.array(tail)),
        "label": pa.array(label, pa.int8()),
        "head_id": pa.array(head, pa.int32()),
        "tail_id": pa.array(tail, pa.int32()),
    }
    pq.write_table(pa.table(columns), path, compression="zstd")
