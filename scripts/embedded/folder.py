"""Writing the embedded folder, byte for byte the same from the same content, and comparing two of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.artefact import META, file_hash, to_json, write_meta, write_text
from cogstage.errors import CogstageError

from .counting import Kept
from .facts import Collected
from .mesh import Mesh

EDITION = "2"  # of the embedded data set; rises when its content changes
MOST_BYTES = 4_000_000
SOURCES = "SOURCES.txt"
FILES = (
    "graph/terms.parquet",
    "graph/edges.parquet",
    "graph/synonyms.parquet",
    "graph/meta.json",
    "facts/facts.parquet",
    "facts/meta.json",
    SOURCES,
)
_BY_DICTIONARY = ("type", "relation", "source")


def write_graph(out: Path, kept: Kept, mesh: Mesh, names: Mapping[str, str], made_with: Mapping[str, Any]) -> None:
    """The graph folder; ``then`` columns hold the counts of the older records alone."""
    keys = [key for key, _, _ in kept.terms]
    concepts = [mesh.concept(key) for key in keys]
    write_table(
        out / "graph" / "terms.parquet",
        {
            "id": pa.array(range(len(keys)), pa.int32()),
            "term": pa.array(keys, pa.string()),
            "concept": pa.array(keys, pa.string()),
            "name": pa.array([names[key] for key in keys], pa.string()),
            "type": pa.array([concept.type if concept else "" for concept in concepts], pa.string()),
            "count": pa.array([number for _, number, _ in kept.terms], pa.int64()),
            "then": pa.array([number for _, _, number in kept.terms], pa.int64()),
        },
    )
    source, target, number, then = zip(*kept.edges, strict=True) if kept.edges else ((), (), (), ())
    write_table(
        out / "graph" / "edges.parquet",
        {
            "source": pa.array(source, pa.int32()),
            "target": pa.array(target, pa.int32()),
            "count": pa.array(number, pa.int64()),
            "then": pa.array(then, pa.int64()),
        },
    )
    synonyms = [(node, name) for node, key in enumerate(keys) for name in mesh.synonyms(key)]
    write_table(
        out / "graph" / "synonyms.parquet",
        {
            "id": pa.array([node for node, _ in synonyms], pa.int32()),
            "synonym": pa.array([name for _, name in synonyms], pa.string()),
        },
    )
    counts = {"nodes": len(keys), "edges": len(kept.edges), "synonyms": len(synonyms)}
    _write_meta(out / "graph", "graph", {**made_with, **counts})


def write_facts(out: Path, collected: Collected, made_with: Mapping[str, Any]) -> None:
    """The facts folder, with one column more than others: ``records``, how many records state a fact."""
    triples = sorted(collected.sources)
    write_table(
        out / "facts" / "facts.parquet",
        {
            "head": pa.array([head for _, head, _ in triples], pa.string()),
            "relation": pa.array([relation for relation, _, _ in triples], pa.string()),
            "tail": pa.array([tail for _, _, tail in triples], pa.string()),
            "source": pa.array([";".join(sorted(collected.sources[triple])) for triple in triples], pa.string()),
            "records": pa.array([collected.records[triple] for triple in triples], pa.int32()),
        },
    )
    relations = dict(sorted(Counter(relation for relation, _, _ in triples).items()))
    rows = {source: dict(sorted(counts.items())) for source, counts in sorted(collected.rows.items())}
    _write_meta(out / "facts", "facts", {**made_with, "facts": len(triples), "relations": relations, "rows": rows})


def write_summary(out: Path, inputs: Mapping[str, str], sources: Sequence[Mapping[str, Any]]) -> int:
    """The licences, and the hashes of inputs and files; returns the size of all files in bytes."""
    write_text(out / SOURCES, sources_text(sources))
    size = sum((out / name).stat().st_size for name in FILES)
    if size > MOST_BYTES:
        raise CogstageError(f"the files take {size:,} bytes, more than {MOST_BYTES:,}; raise min_count in the rules")
    summary = {
        "kind": "embedded",
        "edition": EDITION,
        "pyarrow": pa.__version__,
        "bytes": size,
        "inputs": dict(sorted(inputs.items())),
        "sha256": {name: file_hash(out / name) for name in FILES},
    }
    write_text(out / META, to_json(summary))
    return size


def sources_text(sources: Sequence[Mapping[str, Any]]) -> str:
    """Licences and attributions, one paragraph per source."""
    lines = ["Sources of the embedded data set, with their terms. Only counts, names and facts derived from them are"]
    lines += ["shipped: no title, no abstract, no sentence, no record number.", ""]
    for source in sources:
        lines += [source["name"], f"  used for: {source['use']}", f"  terms: {source['terms']}"]
        lines += [f"  cite: {source['cite']}"] if "cite" in source else []
        lines.append("")
    return "\n".join(lines)


def write_table(path: Path, columns: Mapping[str, pa.Array]) -> None:
    """One row group, numbers as differences, text by dictionary or by shared beginnings; nothing that names a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    encodings = {
        name: "DELTA_BINARY_PACKED" if pa.types.is_integer(array.type) else "DELTA_BYTE_ARRAY"
        for name, array in columns.items()
        if name not in _BY_DICTIONARY or pa.types.is_integer(array.type)
    }
    pq.write_table(
        pa.table(dict(columns)),
        path,
        version="2.6",
        compression="zstd",
        compression_level=19,
        use_dictionary=[name for name in columns if name not in encodings],
        column_encoding=encodings,
        row_group_size=1 << 24,
        write_statistics=False,
        store_schema=False,
    )


def _write_meta(folder: Path, kind: str, made_with: Mapping[str, Any]) -> None:
    write_meta(folder, kind, made_with, version=f"embedded {EDITION}")


def check(shipped: Path, rebuilt: Path) -> list[str]:
    """What differs between the shipped files, their hashes and a rebuild; empty if nothing does."""
    try:
        sums = json.loads((shipped / META).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return [f"{META}: {error}"]
    same_writer = sums.get("pyarrow") == pa.__version__
    wrong = []
    for name in (META, *FILES) if same_writer else FILES:
        ours, theirs = shipped / name, rebuilt / name
        if not ours.exists():
            wrong.append(f"{name}: missing")
        elif name != META and file_hash(ours) != sums["sha256"].get(name):
            wrong.append(f"{name}: not the hash that {META} gives")
        elif same_writer or not name.endswith(".parquet"):
            if ours.read_bytes() != theirs.read_bytes():
                wrong.append(f"{name}: other bytes than the rebuild")
        elif not pq.read_table(ours).equals(pq.read_table(theirs)):
            wrong.append(f"{name}: other content than the rebuild")
    return wrong
