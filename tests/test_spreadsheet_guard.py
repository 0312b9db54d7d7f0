"""No file that a spreadsheet opens holds a cell that it would run: every writer of CSV and TSV, with hostile names."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from sample_predictions import prediction

from cogstage.knowledge.facts import Facts, Statement
from cogstage.rationale.corrections import Correction, Corrections
from cogstage.rationale.exports import rows_of, table
from cogstage.reporting import Table, csv_text

HOSTILE = ("=1+1", "+cmd|x", "-2+3", "@SUM(A1)")


def cells(text: str, delimiter: str = "\t") -> list[str]:
    return [cell for row in csv.reader(text.splitlines(), delimiter=delimiter) for cell in row]


def runs(cell: str) -> bool:
    """Whether a spreadsheet takes the cell for a formula; a plain number with a sign is none."""
    try:
        float(cell.replace(",", ""))
    except ValueError:
        return cell.startswith(("=", "+", "-", "@"))
    return False


@pytest.mark.parametrize("name", HOSTILE)
def test_no_writer_writes_a_formula(name: str, tmp_path: Path) -> None:
    made = prediction()
    hostile = replace(made, head=replace(made.head, key=name, name=name))
    facts = Facts.from_statements([Statement("a", "may_treat", "b", "source")])
    replace(facts, unmatched=((name, 3, name),)).save(tmp_path / "facts")
    Corrections((Correction("a", "may_treat", "b", "right", name, "", name),)).write(tmp_path / "corrections.tsv")
    written = [
        cells(csv_text(("a", name), [(name, -1.5)]), ","),
        cells(Table("caption", ("a", name), ((name, "-0.5"),)).csv(), ","),
        cells(table(rows_of([hostile]))),
        cells((tmp_path / "facts" / "unmatched.tsv").read_text()),
        cells((tmp_path / "corrections.tsv").read_text()),
    ]
    for found in written:
        assert f"'{name}" in found
        assert not [cell for cell in found if runs(cell)]
