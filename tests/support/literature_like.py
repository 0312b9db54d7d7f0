"""A made-up folder in the form of the literature benchmark: documents of two sources with dates, facts with years."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from benchmarks.hospital import Hospital, Plan, write_hospital

PLAN = Plan(terms=240, groups=6, patients=150, notes=4, least=130, table=0.0, known=0.6, patients_a_file=75)
YEARS = range(2010, 2020)
SOURCES = ("first", "second")


def write_literature(folder: Path) -> Path:
    """Write ``literature``, ``dated`` and ``pharmacovigilance`` below ``folder``; gives the first."""
    write_hospital(PLAN, folder / "hospital")
    data = folder / "literature"
    data.mkdir()
    with gzip.open(data / "documents.jsonl.gz", "wt", encoding="utf-8") as out:
        for number, part in enumerate(sorted((folder / "hospital" / "notes").iterdir())):
            with gzip.open(part, "rt", encoding="utf-8") as notes:
                for line in notes:
                    note = {**json.loads(line), "source": SOURCES[number]}
                    del note["patient_id"]
                    out.write(json.dumps(note) + "\n")
    for name in ("lexicon.tsv", "facts.tsv"):
        (data / name).write_bytes((folder / "hospital" / name).read_bytes())
    heading, *facts = (data / "facts.tsv").read_text(encoding="utf-8").splitlines()
    causes = [line for line in facts if "\tcauses\t" in line]
    (folder / "dated").mkdir()
    rows = [f"{line}\t{YEARS[number % len(YEARS)]}" for number, line in enumerate(causes)]
    (folder / "dated" / "causes.tsv").write_text("\n".join([f"{heading}\tdate", *rows]) + "\n", encoding="utf-8")
    _write_references(folder / "pharmacovigilance", causes)
    return data


def _write_references(folder: Path, causes: list[str]) -> None:
    """Two reference sets of known pairs and of others, and outcomes that are one concept each."""
    hospital = Hospital(PLAN)
    name = dict(zip(hospital.concept, hospital.name, strict=True))
    pairs = [line.split("\t")[::2] for line in causes]
    tails = sorted({tail for _, tail in pairs})[:4]
    held = set(map(tuple, pairs))
    folder.mkdir()
    for file, heads in (("omop", sorted({h for h, _ in pairs})[::2]), ("euadr", sorted({h for h, _ in pairs})[1::2])):
        rows = [f"{name[head]}\tof {tail}\t{int((head, tail) in held)}" for head in heads for tail in tails]
        text = "\n".join(["drug\toutcome\tlabel", *rows, f"never heard of\tof {tails[0]}\t0"])
        (folder / f"{file}.tsv").write_text(text + "\n", encoding="utf-8")
    rows = [f"of {tail}\t{tail}" for tail in tails]
    (folder / "outcomes.tsv").write_text("\n".join(["outcome\tconcept", *rows]) + "\n", encoding="utf-8")
