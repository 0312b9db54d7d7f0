"""The tables of Columbia Open Health Data as a graph."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cogstage.cli.main import app
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cohd import import_cohd
from cogstage.graph.cooccurrence import Graph
from cogstage.provenance import privacy_text


def tables(folder: Path, datasets: tuple[int, ...] = (1, 2)) -> tuple[Path, Path, Path]:
    """Random pairs and single counts of 30 concepts per data set, and CONCEPT.csv as Athena writes it."""
    draw = np.random.default_rng(7)
    pairs, singles, concepts = folder / "pairs.tsv.gz", folder / "singles.tsv", folder / "CONCEPT.csv"
    with gzip.open(pairs, "wt") as two, singles.open("w") as one:
        two.write("dataset_id\tconcept_id_1\tconcept_id_2\tconcept_count\tconcept_frequency\n")
        one.write("dataset_id\tconcept_id\tconcept_count\tconcept_frequency\n")
        for dataset in datasets:
            for low in range(30):
                one.write(f"{dataset}\t{1000 + low}\t{draw.integers(2000, 3000)}\t0.1\n")
                for high in range(low + 1, 30):
                    if draw.random() < 0.3:
                        two.write(f"{dataset}\t{1000 + low}\t{1000 + high}\t{draw.integers(11, 999)}\t0.01\n")
    lines = ["concept_id\tconcept_name\tdomain_id\tvocabulary_id"]
    lines += [f'{1000 + n}\tName of "{n}\t{"Drug" if n % 2 else "Condition"}\tSNOMED' for n in range(29)]
    concepts.write_text("\n".join(lines) + "\n")
    return pairs, singles, concepts


def test_counts_are_those_of_the_chosen_data_set(tmp_path: Path) -> None:
    pairs, singles, concepts = tables(tmp_path)
    graph = import_cohd(pairs, singles, concepts, dataset=2)
    with gzip.open(pairs, "rt") as handle:
        rows = [row for row in csv.DictReader(handle, delimiter="\t") if row["dataset_id"] == "2"]
    expected = {(row["concept_id_1"], row["concept_id_2"]): int(row["concept_count"]) for row in rows}
    term = graph.vocabulary.term
    counted = {(term[s], term[t]): c for s, t, c in zip(graph.source, graph.target, graph.count, strict=True)}
    assert counted == expected
    with singles.open() as handle:
        ones = {
            r["concept_id"]: int(r["concept_count"])
            for r in csv.DictReader(handle, delimiter="\t")
            if r["dataset_id"] == "2"
        }
    assert dict(zip(term, graph.vocabulary.count.tolist(), strict=True)) == {key: ones[key] for key in term}
    node = graph.vocabulary.find('name of "3')
    assert (term[node], graph.vocabulary.type[node]) == ("1003", "drug")
    assert graph.vocabulary.name[graph.vocabulary.index["1029"]] == "1029"  # CONCEPT does not have it


def test_what_was_done_for_privacy_is_recorded(tmp_path: Path) -> None:
    pairs, *_ = tables(tmp_path, (3,))
    graph = import_cohd(pairs)
    graph.save(tmp_path / "graph")
    made_with = Graph.load(tmp_path / "graph").made_with
    assert (made_with["suppress_below"], made_with["perturbed"]) == (11, "Poisson")
    assert privacy_text(made_with) == "counts below 11 suppressed"


def test_a_data_set_must_be_chosen(tmp_path: Path) -> None:
    pairs, *_ = tables(tmp_path)
    with pytest.raises(UsageError, match="has the data sets 1, 2; choose one"):
        import_cohd(pairs)
    with pytest.raises(UsageError, match="has no data set 9; choose one of 1, 2"):
        import_cohd(pairs, dataset=9)
    (tmp_path / "other.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(CogstageError, match=r"no column concept_id_1, concept_id_2, .*; the columns are a, b"):
        import_cohd(tmp_path / "other.tsv")


def test_the_command(tmp_path: Path) -> None:
    pairs, singles, concepts = map(str, tables(tmp_path))
    out = str(tmp_path / "graph")
    command = ["graph", "import", "cohd", pairs, "--singles", singles, "--concepts", concepts, "--cohd-dataset", "1"]
    done = CliRunner().invoke(app, [*command, "--out", out])
    assert done.exit_code == 0, done.output
    assert Graph.load(out).hash == import_cohd(pairs, singles, concepts, 1).hash
