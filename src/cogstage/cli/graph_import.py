"""``cogstage graph import``."""

from __future__ import annotations

from pathlib import Path

from cogstage import choices
from cogstage.cli import options
from cogstage.cli.app import CommandGroup
from cogstage.cli.console import progress, save_graph, say_skipped
from cogstage.cli.options import argument, input_option

app = CommandGroup("Import existing co-occurrence counts.")
OUT = options.out("Output folder; an existing graph is replaced.")


@app.command("edges", epilog="Example: cogstage graph import edges pairs.tsv --terms terms.tsv --out graph")
def import_edges(
    edges: list[str] = argument(..., help="Tables with the columns source, target, count.", metavar="FILE"),
    out: Path = OUT,
    terms: list[str] | None = input_option(
        None,
        help="Table with the column term, and optionally concept, name, type, count; may be repeated.",
        metavar="TABLE",
    ),
    columns: str = input_option(
        "",
        metavar="COLUMN=NAME,...",
        help="Names of the columns in your tables, such as source=concept_id_1,target=concept_id_2,count=n.",
    ),
    skip: bool = options.SKIP_BAD,
    licence: list[str] = options.LICENCE,
    as_json: bool = options.as_json(),
) -> None:
    """Import a co-occurrence table."""
    from cogstage.corpus.formats.table import parse_columns
    from cogstage.graph.importers import import_edges as read
    from cogstage.tables import BadRows

    bad = BadRows(skip)
    save_graph(
        read(edges, terms or None, bad, progress(), parse_columns(columns) if columns else None), out, as_json, licence
    )
    say_skipped(bad)


@app.command(
    "cohd",
    epilog="Example: cogstage graph import cohd paired_concept_counts.tsv --singles single_concept_counts.tsv "
    "--concepts CONCEPT.csv --cohd-dataset 1 --out graph",
)
def import_cohd(
    pairs: list[str] = argument(
        ..., help="Tables with the columns concept_id_1, concept_id_2, concept_count.", metavar="FILE"
    ),
    out: Path = OUT,
    singles: list[str] | None = input_option(
        None, help="Table with the columns concept_id and concept_count; may be repeated.", metavar="TABLE"
    ),
    concepts: Path | None = input_option(
        None, help="CONCEPT.csv of the OMOP vocabularies, for names and types.", metavar="FILE"
    ),
    cohd_dataset: int | None = input_option(
        None, "--cohd-dataset", help="Number of the data set (dataset_id), if the tables have several.", metavar="N"
    ),
    skip: bool = options.SKIP_BAD,
    licence: list[str] = options.LICENCE,
    as_json: bool = options.as_json(),
) -> None:
    """Import the published counts of Columbia Open Health Data (COHD)."""
    from cogstage.graph.cohd import import_cohd as read
    from cogstage.tables import BadRows

    bad = BadRows(skip)
    save_graph(read(pairs, singles or None, concepts, cohd_dataset, bad, progress()), out, as_json, licence)
    say_skipped(bad)


@app.command(
    "finlayson", epilog="Example: cogstage graph import finlayson dryad --window 1d --min-count 100 --out graph"
)
def import_finlayson(
    folder: Path = argument(..., help="Folder with the unpacked files of doi:10.5061/dryad.jp917.", metavar="FOLDER"),
    out: Path = OUT,
    level: choices.Level = options.level("term"),
    per: choices.Per = options.PER,
    window: choices.Window = options.WINDOW,
    min_count: int = options.MIN_COUNT,
    licence: list[str] = options.LICENCE,
    as_json: bool = options.as_json(),
) -> None:
    """Import the published counts of 20 million clinical notes by Finlayson et al. (2014)."""
    from cogstage.graph.importers import import_finlayson as read
    from cogstage.graph.options import parse_window

    save_graph(read(folder, level, per, parse_window(window), min_count, progress()), out, as_json, licence)


@app.command(
    "xmedrela",
    epilog="Example: cogstage graph import xmedrela sub_neighbors_dict_ppmi_perBin_1.pkl "
    "--strings term_string_mapping.pkl --concepts term_concept_mapping.pkl --out graph",
)
def import_xmedrela(
    neighbours: Path = argument(
        ..., help="Pickle file that maps a term id to a list of (term id, weight).", metavar="FILE"
    ),
    out: Path = OUT,
    strings: Path | None = input_option(None, help="Pickle file that maps term ids to strings.", metavar="FILE"),
    concepts: Path | None = input_option(None, help="Pickle file that maps term ids to concepts.", metavar="FILE"),
    licence: list[str] = options.LICENCE,
    as_json: bool = options.as_json(),
) -> None:
    """Import the published pickle files of X-MedRELA, without executing any code in them."""
    from cogstage.graph.xmedrela import import_xmedrela as read

    save_graph(read(neighbours, strings, concepts), out, as_json, licence)
