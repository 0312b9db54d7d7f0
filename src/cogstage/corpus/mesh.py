"""MeSH descriptors and supplementary concepts: names, entry terms, and types from the tree (``mesh_types.tsv``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from cogstage.corpus.readers import XML
from cogstage.corpus.xml_stream import Element, child, children, stream_elements, text_of
from cogstage.errors import CogstageError, UsageError
from cogstage.input_files import Meter, bare_suffix, files_in, lines_of, open_text
from cogstage.tables import BadRows

_RECORDS = {"DescriptorRecord": "Descriptor", "SupplementalRecord": "SupplementalRecord"}
_CLASSES = {"1": "drug", "2": "procedure", "3": "disorder", "4": "organism"}  # SCRClass of supplementary records
SUPPLEMENTARY = {"Disease": "disorder", "Protocol": "procedure", "Organism": "organism", "Anatomy": "anatomy"}


@dataclass(frozen=True)
class MeshRecord:
    """A descriptor or supplementary concept; ``terms`` are all its names but permuted ones ("Pain, Abdominal")."""

    identifier: str
    name: str
    type: str
    terms: tuple[str, ...]


def type_of_trees(numbers: Iterable[str]) -> str:
    """The type of the most specific rule that applies to one of these tree numbers; "" if none does."""
    numbers = list(numbers)
    fitting = [
        (len(tree), -rank, type)
        for rank, (tree, type) in enumerate(_rules().items())
        if any(number == tree or number.startswith(tree if len(tree) == 1 else f"{tree}.") for number in numbers)
    ]
    return max(fitting)[2] if fitting else ""


@cache
def _rules() -> dict[str, str]:
    text = files("cogstage.corpus").joinpath("mesh_types.tsv").read_text(encoding="utf-8")
    return dict(line.split("\t", 1) for line in text.splitlines()[1:])


def read_mesh(path: Path, bad: BadRows | None = None) -> Iterator[MeshRecord]:
    """The records of MeSH XML files (``desc2026.xml``, ``supp2026.xml``), or of all of them in a folder."""
    bad = bad if bad is not None else BadRows()
    for file in files_in(path):
        if bare_suffix(file) not in XML:
            continue
        for element in stream_elements(file, tuple(_RECORDS), bad, Meter()):
            record = _record(element)
            if record is None:
                bad.report(f"{file}: a {element.tag} without identifier or name")
            else:
                yield record


def _record(element: Element) -> MeshRecord | None:
    kind = _RECORDS[element.tag]
    identifier, name = text_of(child(element, f"{kind}UI")), text_of(child(element, f"{kind}Name", "String"))
    if not identifier or not name:
        return None
    terms = [name]
    for concept in children(child(element, "ConceptList"), "Concept"):
        for term in children(child(concept, "TermList"), "Term"):
            if term.get("IsPermutedTermYN") != "Y":
                terms.append(text_of(child(term, "String")))
    if kind == "Descriptor":
        type = type_of_trees(map(text_of, children(child(element, "TreeNumberList"), "TreeNumber")))
    else:
        type = _CLASSES.get(element.get("SCRClass") or "", "")
    return MeshRecord(identifier, name, type, tuple(dict.fromkeys(filter(None, terms))))


def mesh_types(path: Path, bad: BadRows | None = None) -> dict[str, str]:
    """The type of each descriptor, by identifier (MeSH XML) or by name (the tree file ``mtrees2026.bin``)."""
    if not path.exists():
        raise UsageError(f"{path} does not exist; give MeSH's desc2026.xml or mtrees2026.bin")
    if bare_suffix(path) == ".bin":
        types = _types_of_tree_file(path, bad if bad is not None else BadRows())
    else:
        types = {record.identifier: record.type for record in read_mesh(path, bad) if record.type}
    if not types:
        raise CogstageError(f"{path} contains no MeSH descriptors; give desc2026.xml or mtrees2026.bin")
    return types


def _types_of_tree_file(path: Path, bad: BadRows) -> dict[str, str]:
    """Lines ``Body Regions;A01``."""
    trees: dict[str, list[str]] = {}
    with open_text(path) as handle:
        for _, line in lines_of(handle, path, bad):
            name, mark, number = line.strip().rpartition(";")
            if mark:
                trees.setdefault(name, []).append(number)
    return {name: type for name, numbers in trees.items() if (type := type_of_trees(numbers))}
