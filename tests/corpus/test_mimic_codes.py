"""The coded tables of MIMIC-III and MIMIC-IV in their published columns, against counts with pandas."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from corpus_files import put

from cogstage.corpus.readers import open_reader, recognise
from cogstage.errors import UsageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions
from cogstage.tables import BadRows

DAY = pd.Timestamp("2150-01-01")


def events() -> pd.DataFrame:
    """Random admissions with codes; table, code, flag and the day of each event."""
    chance = np.random.default_rng(7)
    n = 400
    kinds = ["diagnosis", "procedure", "drug", "lab"]
    frame = pd.DataFrame({"table": chance.choice(kinds, n), "hadm_id": chance.integers(100, 140, n)})
    frame["code"], frame["version"] = chance.integers(0, 5, n), chance.choice([9, 10], n)
    frame["flag"] = chance.choice(["abnormal", ""], n)
    frame["subject_id"] = frame["hadm_id"] // 3
    frame["admitted"] = DAY + pd.to_timedelta((frame["hadm_id"] - 100) * 3, unit="D")
    frame["day"] = frame["admitted"] + pd.to_timedelta(chance.integers(0, 2, n), unit="D")
    return frame


def write_third(folder: Path, frame: pd.DataFrame) -> Path:
    """MIMIC-III: upper-case names, ICD-9 without a version, all tables in one folder."""
    folder.mkdir()
    parts = dict(list(frame.groupby("table")))

    def write(name: str, part: pd.DataFrame, **columns: object) -> None:
        table = pd.DataFrame({"ROW_ID": range(len(part)), "SUBJECT_ID": part["subject_id"], "HADM_ID": part["hadm_id"]})
        table.assign(**columns).to_csv(folder / name, index=False)

    codes = {kind: "0" + part["code"].astype(str) for kind, part in parts.items()}
    write("DIAGNOSES_ICD.csv.gz", parts["diagnosis"], ICD9_CODE=codes["diagnosis"])
    write("PROCEDURES_ICD.csv", parts["procedure"], ICD9_CODE=codes["procedure"])
    drugs = "Drug  " + parts["drug"]["code"].astype(str)
    write("PRESCRIPTIONS.csv", parts["drug"], STARTDATE=parts["drug"]["day"], DRUG=drugs)
    lab = parts["lab"]
    write("LABEVENTS.csv", lab, ITEMID=lab["code"] + 50000, CHARTTIME=lab["day"], FLAG=lab["flag"])
    admissions = frame.drop_duplicates("hadm_id")
    write("ADMISSIONS.csv", admissions, ADMITTIME=admissions["admitted"])
    put(folder / "D_ICD_DIAGNOSES.csv", "ROW_ID,ICD9_CODE,SHORT_TITLE,LONG_TITLE\n1,01,short,First disease\n")
    put(folder / "D_LABITEMS.csv", "ROW_ID,ITEMID,LABEL,FLUID,CATEGORY,LOINC_CODE\n1,50001,Glucose,Blood,Chemistry,\n")
    return folder


def write_fourth(folder: Path, frame: pd.DataFrame) -> Path:
    """MIMIC-IV: lower-case names, ICD-9 and ICD-10 side by side, tables in hosp/."""
    (folder / "hosp").mkdir(parents=True)
    parts = dict(list(frame.groupby("table")))

    def write(name: str, part: pd.DataFrame, **columns: object) -> None:
        table = part[["subject_id", "hadm_id"]].assign(**columns)
        table.to_csv(folder / "hosp" / name, index=False)

    for name, kind in (("diagnoses_icd", "diagnosis"), ("procedures_icd", "procedure")):
        part = parts[kind]
        more = {"chartdate": part["day"].dt.date} if kind == "procedure" else {}
        code = "0" + part["code"].astype(str)
        write(f"{name}.csv.gz", part, seq_num=1, icd_code=code, icd_version=part["version"], **more)
    drugs = "Drug  " + parts["drug"]["code"].astype(str)
    write("prescriptions.csv", parts["drug"], starttime=parts["drug"]["day"], drug=drugs)
    lab = parts["lab"]
    write("labevents.csv", lab, itemid=lab["code"] + 50000, charttime=lab["day"], flag=lab["flag"])
    admissions = frame.drop_duplicates("hadm_id")
    write("admissions.csv", admissions, admittime=admissions["admitted"])
    put(folder / "hosp/d_icd_diagnoses.csv", "icd_code,icd_version,long_title\n01,9,First disease\n01,10,Tenth\n")
    put(folder / "hosp/d_labitems.csv", "itemid,label,fluid,category\n50001,Glucose,Blood,Chemistry\n")
    put(folder / "icu/icustays.csv", "subject_id,hadm_id,stay_id\n1,1,1\n")
    return folder


def expected(frame: pd.DataFrame, release: int) -> pd.DataFrame:
    """Patient, visit, day and code of the rows that count."""
    frame = frame[(frame["table"] != "lab") | (frame["flag"] == "abnormal")].copy()
    ten = (frame["version"] == 10) & (release == 4)
    systems = {"diagnosis": ("icd9cm:0", "icd10cm:0"), "procedure": ("icd9proc:0", "icd10pcs:0")}
    named = []
    for kind, code, new in zip(frame["table"], frame["code"], ten, strict=True):
        other = f"drug:DRUG {code}" if kind == "drug" else f"lab:{50000 + code}"
        named.append(f"{systems[kind][new]}{code}" if kind in systems else other)
    frame["name"] = named
    undated = (frame["table"] == "diagnosis") | ((frame["table"] == "procedure") & (release == 3))
    frame["day"] = frame["day"].where(~undated, frame["admitted"])
    return frame


def pairs(frame: pd.DataFrame, unit: list[str]) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for _, group in frame.groupby(unit):
        for pair in combinations(sorted(set(group["name"])), 2):
            counts[pair] = counts.get(pair, 0) + 1
    return counts


def edges(folder: Path) -> dict[tuple[str, str], int]:
    graph = Graph.load(folder)
    term, ends = graph.vocabulary.term, zip(graph.source.tolist(), graph.target.tolist(), strict=True)
    return {(term[a], term[b]): n for (a, b), n in zip(ends, graph.count.tolist(), strict=True)}


@pytest.mark.parametrize(("release", "write"), [(3, write_third), (4, write_fourth)])
def test_one_folder_and_one_command(tmp_path: Path, release: int, write: object) -> None:
    frame = events()
    folder = write(tmp_path / "mimic", frame)  # type: ignore[operator]
    assert recognise(folder) == "mimic-codes"
    rows = expected(frame, release)
    build_graph(folder, tmp_path / "visits", options=BuildOptions(unit="visit"))
    assert edges(tmp_path / "visits") == pairs(rows, ["hadm_id"])
    build_graph(folder, tmp_path / "documents", options=BuildOptions(unit="document"))
    assert edges(tmp_path / "documents") == pairs(rows, ["hadm_id"])
    build_graph(folder, tmp_path / "days")
    assert edges(tmp_path / "days") == pairs(rows, ["subject_id", "day"])
    words = Graph.load(tmp_path / "visits").vocabulary
    named = dict(zip(words.term, zip(words.name, words.type, strict=True), strict=True))
    assert named["icd9cm:01"] == ("First disease", "disorder")
    assert named["lab:50001"] == ("Glucose", "finding")
    assert named["drug:DRUG 1"] == ("Drug 1", "drug")
    assert release == 3 or named["icd10cm:01"] == ("Tenth", "disorder")


def test_tables_can_be_chosen(tmp_path: Path) -> None:
    folder = write_third(tmp_path / "mimic", events())
    chosen = open_reader(folder, tables=["prescriptions"], bad=BadRows())
    assert {code.split(":")[0] for document in chosen for code in document.codes} == {"drug"}
    with pytest.raises(UsageError, match="unknown MIMIC table noteevents"):
        open_reader(folder, tables=["noteevents"])
