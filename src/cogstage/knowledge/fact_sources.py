"""Facts from public knowledge bases by name: annotated corpora, CTD, SIDER, MED-RT, PrimeKG and Hetionet.

``source_relations.tsv`` maps their relations to ours and says which types each relation joins.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cogstage.choices import Ambiguity, FactSource
from cogstage.corpus.formats.annotated import identifiers
from cogstage.corpus.streams import find_file
from cogstage.corpus.xml_stream import child, stream_elements, text_of
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.vocabulary import Vocabulary
from cogstage.input_files import Meter, Paths, bare_suffix, lines_of, open_text
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.matching import Names
from cogstage.knowledge.relation_map import HERE, Rule
from cogstage.knowledge.table import FactRow, facts_from_rows
from cogstage.tables import BadRows, expand, read_rows

LICENCES: dict[FactSource, str] = {
    "annotated": "annotated corpus: see the terms of its publisher",
    "ctd": "CTD: see https://ctdbase.org/about/legal.jsp; cite CTD",
    "sider": "SIDER: CC BY-NC-SA 4.0; its terms are those of MedDRA, which needs a licence of its own",
    "medrt": "MED-RT: US Department of Veterans Affairs; users must adhere to the UMLS licence",
    "primekg": "PrimeKG: the terms of its Dataverse record and of its sources, such as DrugBank",
    "hetionet": "Hetionet: CC0 1.0, with the terms of its sources",
}
_TYPE_WORDS = {
    "chemical": "drug", "compound": "drug", "drug": "drug", "disease": "disorder", "disorder": "disorder",
    "side effect": "symptom", "symptom": "symptom", "phenotype": "symptom", "gene": "gene", "protein": "gene",
    "variant": "gene", "procedure": "procedure", "exposure": "phenomenon", "anatomy": "anatomy",
    "species": "organism",
}  # fmt: skip


@dataclass(frozen=True)
class Entity:
    """An end of a statement: its codes and names, the best first, and our type ("" if unknown)."""

    names: tuple[str, ...]
    type: str = ""


Statement = tuple[Entity, str, Entity]  # head, their relation, tail


def our_type(theirs: str) -> str:
    """Our type for what a source calls it (``DiseaseOrPhenotypicFeature``, ``effect/phenotype``)."""
    words = theirs.lower().replace("_", " ")
    return next((ours for word, ours in _TYPE_WORDS.items() if word in words), "")


def facts_from_source(
    source: FactSource,
    paths: Paths,
    names: Names | None = None,
    ambiguity: Ambiguity = "first",
    bad: BadRows | None = None,
) -> Facts:
    """Read facts from a public knowledge base, as it can be downloaded.

    Statements between types that their relation does not join are left out and counted, and so are relations that are
    not mapped. Ends are matched by code, then by name and type.

    Parameters
    ----------
    source
        "annotated" (relations in PubTator and BioC XML), "ctd" (CTD_chemicals_diseases), "sider" (a folder with
        meddra_all_se, meddra_all_indications and drug_names), "medrt" (Core_MEDRT XML), "primekg" (kg.csv) or
        "hetionet" (a folder with the tables of nodes and edges).
    paths
        The files or the folder.
    names, ambiguity, bad
        As for :func:`cogstage.knowledge.table.facts_from_table`.

    Returns
    -------
    Facts
        ``made_with`` has the licence and the counts.
    """
    bad = bad if bad is not None else BadRows()
    rules, counts = _rules(source), Counter[str]()

    def rows() -> Iterator[FactRow]:
        for path in expand(paths):
            for head, relation, tail in READERS[source](path, bad):
                counts["statements"] += 1
                rule = rules.get(relation.lower())
                if rule is None:
                    counts["of relations that are not mapped"] += 1
                    continue
                if rule.swap:
                    head, tail = tail, head
                if not _fits(rule, head, tail) and _fits(rule, tail, head):
                    head, tail = tail, head
                if not _fits(rule, head, tail):
                    counts["between types that the relation does not join"] += 1
                    continue
                yield FactRow(head.names, rule.relation, tail.names, source, None, head.type, tail.type)

    made_with = {"from": source, "licences": [LICENCES[source]]}
    facts = facts_from_rows(rows(), names, ambiguity, bad, made_with)
    return replace(facts, made_with={**facts.made_with, source: dict(counts)})


def facts_of_vocabulary(facts: Facts, vocabulary: Vocabulary, names: Names, ambiguity: Ambiguity = "first") -> Facts:
    """Facts between the nodes of one vocabulary, matched to another by code, then by name, synonym and type."""
    synonyms: dict[int, list[str]] = {}
    for synonym, node in vocabulary.synonyms:
        synonyms.setdefault(node, []).append(synonym)

    def end(concept: str) -> Entity:
        node = vocabulary.index.get(concept)
        if node is None:
            return Entity((concept,))
        name = vocabulary.name[node]
        return Entity((concept, name, *synonyms.get(node, ()), name), vocabulary.type[node])  # shown by the last

    def rows() -> Iterator[FactRow]:
        for at, (head, tail) in enumerate(zip(facts.head, facts.tail, strict=True)):
            ends = end(head), end(tail)
            types = ends[0].type, ends[1].type
            relation, source, year = facts.relation[at], facts.source[at], facts.year[at]
            yield FactRow(ends[0].names, relation, ends[1].names, source, year, *types)

    made_with = {key: value for key, value in facts.made_with.items() if key in ("embedded", "licences")}
    return facts_from_rows(rows(), names, ambiguity, BadRows(), {"from": "embedded facts", **made_with})


def _rules(source: str) -> dict[str, Rule]:
    def types(value: object) -> frozenset[str]:
        return frozenset(str(value).split(","))

    rows = read_rows(HERE / "source_relations.tsv", ["base", "source", "relation", "swap", "head_types", "tail_types"])
    return {
        str(row["source"]).lower(): Rule(
            str(row["relation"]), row["swap"] == "yes", types(row["head_types"]), types(row["tail_types"])
        )
        for row in rows
        if row["base"] == source
    }


def _fits(rule: Rule, head: Entity, tail: Entity) -> bool:
    """Whether both ends have types that the relation joins, or unknown ones."""
    return head.type in {"", *rule.head_types} and tail.type in {"", *rule.tail_types}


def _coded(code: str, name: str, type: str) -> Entity:
    """An end with a code such as ``MESH:D003920``, which graphs may write without its system."""
    bare = code.rpartition(":")[2]
    return Entity(tuple(dict.fromkeys(each for each in (code, bare, name) if each and not each.isdecimal())), type)


# Readers, one for each source


def _ctd(path: Path, bad: BadRows) -> Iterator[Statement]:
    """``# Fields:`` and the header are comments; rows without direct evidence are inferred and not read."""
    with open_text(path) as handle:
        header: list[str] | None = None
        for number, line in lines_of(handle, path, bad):
            cells = next(csv.reader([line.lstrip("# ") if line.startswith("#") else line]), [])
            if line.startswith("#"):
                header = cells if "ChemicalName" in cells else header
                continue
            if header is None:
                if "ChemicalName" not in cells:
                    raise CogstageError(f"{path}:{number}: no column ChemicalName; give CTD_chemicals_diseases.csv")
                header = cells
                continue
            if len(cells) != len(header):
                bad.report(f"{path}:{number}: {len(cells)} columns where the header has {len(header)}")
                continue
            row = dict(zip(header, cells, strict=True))
            if row["DirectEvidence"]:
                chemical = "MESH:" + row["ChemicalID"].removeprefix("MESH:")
                disease = _coded(row["DiseaseID"], row["DiseaseName"], "disorder")
                for relation in row["DirectEvidence"].split("|"):
                    yield _coded(chemical, row["ChemicalName"], "drug"), relation, disease


def _sider(folder: Path, bad: BadRows) -> Iterator[Statement]:
    """Tables without headers; of MedDRA's terms the preferred ones (PT)."""
    drugs = {row[0]: row[1] for row in _cells(_required(folder, "drug_names.tsv"), 2, bad)}

    def drug(identifier: str) -> Entity:
        return Entity((drugs.get(identifier, identifier),), "drug")

    for flat, _, _, kind, cui, name in _cells(_required(folder, "meddra_all_se.tsv"), 6, bad):
        if kind == "PT":
            yield drug(flat), "side effect", _coded(f"UMLS:{cui}", name, "")
    indications = find_file(folder, ["meddra_all_indications.tsv"])
    for flat, _, _, _, kind, cui, name in _cells(indications, 7, bad) if indications else ():
        if kind == "PT":
            yield drug(flat), "indication", _coded(f"UMLS:{cui}", name, "")


def _medrt(path: Path, bad: BadRows) -> Iterator[Statement]:
    """Associations from RxNorm ingredients to MeSH concepts, whose own types are not in the file."""
    for element in stream_elements(path, ("association",), bad, Meter()):
        ends = []
        for side, type in (("from", "drug"), ("to", "")):
            space, code, name = (text_of(child(element, f"{side}_{what}")) for what in ("namespace", "code", "name"))
            ends.append(_coded(f"{space}:{code}", name, type))
        if ends[0].names and ends[1].names:
            yield ends[0], text_of(child(element, "name")), ends[1]


def _primekg(path: Path, bad: BadRows) -> Iterator[Statement]:
    """Both directions of each statement are in the table; facts are a set."""
    columns = [f"{end}_{what}" for end in "xy" for what in ("id", "type", "name", "source")]
    for row in read_rows(path, ["relation", *columns], bad=bad):
        ends = [
            _coded(f"{row[f'{end}_source']}:{row[f'{end}_id']}", str(row[f"{end}_name"]), our_type(row[f"{end}_type"]))
            for end in "xy"
        ]
        if row["relation"] != "disease_phenotype_positive" or ends[0].type == "disorder":
            yield ends[0], str(row["relation"]), ends[1]


def _hetionet(folder: Path, bad: BadRows) -> Iterator[Statement]:
    nodes, edges = (_required(folder, f"hetionet-v1.0-{name}") for name in ("nodes.tsv", "edges.sif"))
    entities = {}
    for row in read_rows(nodes, ["id", "name", "kind"], bad=bad):
        kind, _, code = str(row["id"]).partition("::")
        system = code if ":" in code else f"{kind}:{code}"
        entities[str(row["id"])] = _coded(system, str(row["name"]), our_type(str(row["kind"])))
    for head, relation, tail in _cells(edges, 3, bad):
        if head in entities and tail in entities:
            yield entities[head], relation, entities[tail]
        elif head != "source":
            bad.report(f"{edges}: {head if tail in entities else tail} is not in {nodes.name}")


def _annotated(path: Path, bad: BadRows) -> Iterator[Statement]:
    if bare_suffix(path) in (".xml", ".bioc"):
        return _bioc(path, bad)
    return _pubtator(path, bad)


def _pubtator(path: Path, bad: BadRows) -> Iterator[Statement]:
    """Lines ``id relation concept concept`` below the annotations, which name and type the concepts."""
    entities: dict[str, Entity] = {}
    document = ""
    with open_text(path) as handle:
        for _, line in lines_of(handle, path, bad):
            cells = line.rstrip("\r\n").split("\t")
            if len(cells) < 4:
                continue
            if cells[0] != document:
                entities, document = {}, cells[0]
            if cells[1].isdecimal() and cells[2].isdecimal() and len(cells) >= 6:
                _note_entity(entities, cells[5], cells[4], cells[3])
            elif not cells[1].isdecimal():
                yield entities.get(cells[2], Entity((cells[2],))), cells[1], entities.get(cells[3], Entity((cells[3],)))


def _bioc(path: Path, bad: BadRows) -> Iterator[Statement]:
    """Relations whose infons name two concepts (entity1, entity2), or whose nodes refer to two annotations."""
    for element in stream_elements(path, ("document",), bad, Meter()):
        entities: dict[str, Entity] = {}
        of_annotation: dict[str, Entity] = {}
        for annotation in element.iter("annotation"):
            infons = {str(infon.get("key")).lower(): text_of(infon) for infon in annotation.iterfind("infon")}
            value = infons.get("identifier") or infons.get("mesh") or ""
            _note_entity(entities, value, infons.get("type", ""), text_of(annotation.find("text")))
            if value in entities:
                of_annotation[str(annotation.get("id"))] = entities[value]
        for relation in element.iter("relation"):
            infons = {str(infon.get("key")).lower(): text_of(infon) for infon in relation.iterfind("infon")}
            given = [infons.get(f"entity{n}") for n in (1, 2)]
            ends = [entities.get(code, Entity((code,))) for code in given if code]
            if len(ends) < 2:
                refers = [str(node.get("refid")) for node in relation.iterfind("node")]
                ends = [of_annotation[each] for each in refers if each in of_annotation]
            if len(ends) == 2:
                yield ends[0], infons.get("type") or infons.get("relation", ""), ends[1]


def _note_entity(entities: dict[str, Entity], value: str, type: str, mention: str) -> None:
    """What an annotation says of its identifiers, as a whole and one by one, as graphs write them."""
    for piece in (value, *re.split("[;,|]", value)):
        codes = identifiers(piece, type)
        if codes and piece not in entities:
            named = (*codes, *(code.partition(":")[2] for code in codes if code.upper().startswith(("MESH:", "OMIM:"))))
            entities[piece.strip()] = Entity((*named, mention), our_type(type))


def _cells(path: Path, width: int, bad: BadRows) -> Iterator[tuple[str, ...]]:
    """Rows of a table without a header, separated by tabs."""
    with open_text(path) as handle:
        for number, line in lines_of(handle, path, bad):
            cells = tuple(line.rstrip("\r\n").split("\t"))
            if len(cells) == width:
                yield cells
            elif line.strip():
                bad.report(f"{path}:{number}: {len(cells)} columns where {width} are expected")


def _required(folder: Path, name: str) -> Path:
    found = find_file(folder, [name]) if folder.is_dir() else None
    if found is None:
        raise UsageError(f"{folder} has no {name} (plain or .gz); give the folder of the download")
    return found


READERS: Mapping[str, Callable[[Path, BadRows], Iterable[Statement]]] = {
    "annotated": _annotated,
    "ctd": _ctd,
    "sider": _sider,
    "medrt": _medrt,
    "primekg": _primekg,
    "hetionet": _hetionet,
}
