"""Plain links out: a term to its source vocabulary by the form of its key, a triple to a search of the literature."""

from __future__ import annotations

import re
from urllib.parse import quote, urlencode

from cogstage.rationale.record import Term

# Keys by their form, with the name and the address of where they come from. A prefix ("MESH:", "CUI:") is optional
# except where the bare form would fit several vocabularies.
SOURCES: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(r"(?:mesh:)?([DC]\d{6,9})", re.I), "MeSH", "https://meshb.nlm.nih.gov/record/ui?ui={}"),
    (re.compile(r"(?:umls:|cui:)?(C\d{7})", re.I), "UMLS", "https://uts.nlm.nih.gov/uts/umls/concept/{}"),
    (
        re.compile(r"(?:snomed|snomedct|sctid):(\d{6,18})", re.I),
        "SNOMED CT",
        "https://browser.ihtsdotools.org/?perspective=full&conceptId1={}",
    ),
    (re.compile(r"(?:omop|athena):(\d+)", re.I), "OMOP", "https://athena.ohdsi.org/search-terms/terms/{}"),
    (
        re.compile(r"(?:rxnorm|rxcui):(\d+)", re.I),
        "RxNorm",
        "https://mor.nlm.nih.gov/RxNav/search?searchBy=RXCUI&searchTerm={}",
    ),
    (re.compile(r"(?:doid):(\d+)", re.I), "Disease Ontology", "https://disease-ontology.org/?id=DOID:{}"),
    (re.compile(r"(?:hp|hpo):(\d{7})", re.I), "HPO", "https://hpo.jax.org/browse/term/HP:{}"),
)
PUBMED_FORMATS = ("medline", "pubtator")  # their documents are known by PMID


def source_of(key: str) -> tuple[str, str] | None:
    """Name and address of the vocabulary entry behind a key; None where the key's form tells nothing.

    A key of C and seven digits is UMLS: MeSH's supplementary records have six or nine.
    """
    for pattern, name, address in sorted(SOURCES, key=lambda source: source[1] != "UMLS"):
        if match := pattern.fullmatch(key.strip()):
            return name, address.format(quote(match[1].upper(), safe=""))
    return None


def document_link(document: str, form: str) -> str | None:
    """The address of a counted document; None unless its format says that identifiers are those of PubMed."""
    known = form in PUBMED_FORMATS and re.fullmatch(r"\d{1,9}", document)
    return f"https://pubmed.ncbi.nlm.nih.gov/{document}/" if known else None


# Searches elsewhere, by the type of the term: (types, name, address)
SEARCHES = (
    (("drug", "chemical"), "PubChem", "https://pubchem.ncbi.nlm.nih.gov/#query={}"),
    (("drug",), "DailyMed", "https://dailymed.nlm.nih.gov/dailymed/search.cfm?query={}"),
    (("drug",), "ClinicalTrials.gov", "https://clinicaltrials.gov/search?intr={}"),
    (("disorder", "symptom", "condition"), "ClinicalTrials.gov", "https://clinicaltrials.gov/search?cond={}"),
    (("drug", "disorder", "symptom"), "Open Targets", "https://platform.opentargets.org/search?q={}"),
)


def searches(term: Term) -> list[tuple[str, str]]:
    """Name and address of searches for a term in other databases; plain links, of which nothing is loaded."""
    return [
        (name, address.format(quote(term.name, safe=""))) for types, name, address in SEARCHES if term.type in types
    ]


FACT_SOURCES = {
    "NDF-RT": "https://bioportal.bioontology.org/ontologies/NDFRT",
    "BC5CDR": "https://doi.org/10.1093/database/baw068",
    "Rotmensch 2017": "https://doi.org/10.1038/s41598-017-05778-z",
}
MESH_RECORDS = re.compile(r"MeSH (\d{4})(?:-(\d{4}))?")


def fact_link(source: str, head: Term, tail: Term) -> str | None:
    """Where a source of a fact can be read: its publication, or a search for the records that state the fact."""
    if years := MESH_RECORDS.fullmatch(source):
        first, last = years[1], years[2] or years[1]
        query = f'"{head.name}"[Mesh] AND "{tail.name}"[Mesh] AND {first}:{last}[dp]'
        return "https://pubmed.ncbi.nlm.nih.gov/?" + urlencode({"term": query})
    if source == "drug labels":
        return dict(searches(head)).get("DailyMed")
    return FACT_SOURCES.get(source)


def trials(head: Term, tail: Term) -> str | None:
    """A search for trials of a drug in a disorder; None for other pairs."""
    drug, disorder = (head, tail) if head.type == "drug" else (tail, head)
    if drug.type != "drug" or disorder.type not in ("disorder", "symptom", "condition"):
        return None
    return "https://clinicaltrials.gov/search?" + urlencode({"cond": disorder.name, "intr": drug.name})


def literature(*terms: Term) -> str:
    """A PubMed search for articles that name all terms."""
    query = " AND ".join(f'"{term.name}"' for term in terms)
    return "https://pubmed.ncbi.nlm.nih.gov/?" + urlencode({"term": query})
