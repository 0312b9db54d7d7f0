"""Import the counts of Columbia Open Health Data (COHD, doi:10.1038/sdata.2018.273)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.importers import arrow_table, import_edges, inputs
from cogstage.input_files import Paths
from cogstage.progress import SILENT, Progress
from cogstage.tables import BadRows, expand

PAIRS = {"source": "concept_id_1", "target": "concept_id_2", "count": "concept_count"}
SUPPRESSED_BELOW = (
    11  # COHD leaves out concepts and pairs of 10 patients or fewer, and draws counts from Poisson(count)
)


def import_cohd(
    pairs: Paths,
    singles: Paths | None = None,
    concepts: Path | str | None = None,
    dataset: int | None = None,
    bad: BadRows | None = None,
    progress: Progress = SILENT,
) -> Graph:
    """A graph of OMOP concepts from the tables of COHD.

    ``pairs`` has concept_id_1, concept_id_2 and concept_count, ``singles`` concept_id and concept_count; of tables with
    several data sets (dataset_id), one must be chosen. ``concepts`` is CONCEPT.csv of the OMOP vocabularies, with the
    names. What COHD did for privacy is recorded: rare counts are absent, the others were randomised.
    """
    rows = _of_dataset(expand(pairs), tuple(PAIRS.values()), dataset)
    ids = pc.unique(pa.chunked_array([*rows.column("concept_id_1").chunks, *rows.column("concept_id_2").chunks]))
    terms = {"term": ids}
    if concepts is not None:
        progress.start("Reading names")
        names = _columns(Path(concepts), ("concept_id", "concept_name", "domain_id"))
        at = pc.index_in(ids, names.column("concept_id").combine_chunks())
        terms["name"] = names.column("concept_name").take(at)
        terms["type"] = pc.utf8_lower(names.column("domain_id")).take(at)
        progress.done(f"{len(ids) - at.null_count:,} of {len(ids):,} concepts")
    if singles is not None:
        counted = _of_dataset(expand(singles), ("concept_id", "concept_count"), dataset)
        at = pc.index_in(ids, counted.column("concept_id").combine_chunks())
        terms["count"] = counted.column("concept_count").take(at)
    graph = import_edges(rows, pa.table(terms), bad, progress, PAIRS)
    files = [*expand(pairs), *(expand(singles) if singles is not None else ())]
    made_with = {
        "how": "import cohd",
        "unit": "patient",
        "suppress_below": SUPPRESSED_BELOW,
        "perturbed": "Poisson",
        "dataset": dataset,
        "inputs": inputs(files),
        "skipped": graph.made_with["skipped"],
    }
    return Graph(graph.vocabulary, graph.source, graph.target, graph.count, made_with)


def _of_dataset(files: list[Path], columns: tuple[str, ...], dataset: int | None) -> pa.Table:
    """The rows of one data set, from one or several files."""
    table = pa.concat_tables([_columns(file, columns, "dataset_id") for file in files])
    there = pc.unique(table.column("dataset_id")).drop_null().to_pylist()
    if dataset is not None and there:
        if str(dataset) not in there:
            raise UsageError(f"{files[0]} has no data set {dataset}; choose one of {', '.join(sorted(there))}")
        table = table.filter(pc.equal(table.column("dataset_id"), str(dataset)))
    elif len(there) > 1:
        raise UsageError(f"{files[0]} has the data sets {', '.join(sorted(there))}; choose one with `cohd_dataset`")
    return table.select(columns)


def _columns(path: Path, required: tuple[str, ...], optional: str | None = None) -> pa.Table:
    """Columns of a table as text; the optional one is empty if the table does not have it."""
    try:
        table = arrow_table(path, {})
    except (pa.ArrowInvalid, OSError, EOFError, UnicodeDecodeError) as error:
        raise CogstageError(f"{path} cannot be read: {error}") from error
    names = [] if table is None else table.column_names
    missing = [name for name in required if name not in names]
    if table is None or missing:
        raise CogstageError(f"{path}: no column {', '.join(missing)}; the columns are {', '.join(names) or 'none'}")
    columns = {name: table.column(name).cast(pa.string()) for name in required}
    if optional is not None:
        there = table.column(optional).cast(pa.string()) if optional in names else pa.nulls(len(table), pa.string())
        columns[optional] = there
    return pa.table(columns)
