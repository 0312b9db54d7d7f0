"""Names of nodes: from the lexicon, from a vocabulary, or from records, unless a name could reveal a patient."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from cogstage.corpus.concept_names import read_concept_names
from cogstage.corpus.formats.omop import table_files
from cogstage.corpus.names import PATIENTS_COUNTED, CodeNames, NameCount
from cogstage.errors import UsageError
from cogstage.graph.options import BuildOptions
from cogstage.graph.units import Finder
from cogstage.graph.vocabulary import Vocabulary
from cogstage.input_files import is_archive
from cogstage.tables import BadRows

Names = Callable[[Iterable[str]], CodeNames]


def may_be_shown(name: NameCount, options: BuildOptions) -> bool:
    """Whether a name from the source may be included in the graph.

    A record's own words can be those of one patient. In a suppressed graph they must be shared by as many patients as
    a term must; in a private graph only names from a vocabulary are shown, since nothing else was noised.
    """
    if name.vocabulary:
        return True
    if options.bound is not None:
        return False
    return name.patients >= options.suppress_below <= PATIENTS_COUNTED


def check_vocabulary(folder: str | Path | None) -> None:
    """Raise if this is no folder with vocabulary tables."""
    if folder is not None and not (Path(folder).is_dir() or is_archive(Path(folder))):
        raise UsageError(f"{folder} is not a folder; `vocabulary` is an unpacked download (Athena) with CONCEPT.csv")
    if folder is not None and not table_files(Path(folder), "concept"):
        raise UsageError(f"{folder} contains no table CONCEPT; download it with the vocabularies (Athena)")


def with_vocabulary(names: Names | None, vocabulary: str | Path | None, bad: BadRows) -> Names:
    """The names of a source, and before them those of the vocabulary in a folder; codes that it lacks are counted."""

    def all_names(codes: Iterable[str]) -> CodeNames:
        codes = list(codes)
        own = CodeNames() if names is None else names(codes)
        if vocabulary is None:
            return own
        listed = read_concept_names(Path(vocabulary), codes, bad)
        missing = [code for code in codes if code not in listed]
        if missing:
            bad.notice(f"codes without a row in CONCEPT, such as {missing[0]}", len(missing))
        listed.merge(own)
        return listed

    return all_names


def name_nodes(
    terms: Sequence[str], counts: np.ndarray, finder: Finder, names: Names, rolled: Mapping[str, tuple[str, str]]
) -> Vocabulary:
    """The nodes with what the lexicon, the vocabulary they were rolled up through, and the source call them.

    The synonyms of a concept are its terms in the lexicon; those of a code are the other names it has.
    """
    lexicon, known, options = finder.lexicon, finder.known, finder.options
    concept, name, kind = list(terms), list(terms), [""] * len(terms)
    given = names([term for term in terms if term not in known])
    synonyms: list[tuple[str, int]] = []
    for node, term in enumerate(terms):
        number = known.get(term)
        if term in rolled:
            name[node], kind[node] = rolled[term]
            synonyms += [(use.name, node) for use in given.names_of(term) if use.vocabulary and use.name != name[node]]
        elif number is None or lexicon is None:
            shown = [use for use in given.names_of(term) if may_be_shown(use, options)]
            if shown:
                name[node], kind[node] = shown[0].name, shown[0].type
            others = dict.fromkeys(use.name for use in shown[1:])
            synonyms += [(other, node) for other in others if other not in (name[node], term)]
        elif options.level == "concept":
            name[node], kind[node] = lexicon.concept_names[number], lexicon.concept_types[number]
        else:
            meant = lexicon.first_concept[number]
            concept[node], kind[node] = lexicon.concepts[meant], lexicon.concept_types[meant]
    synonyms += _spellings(terms, finder)
    synonyms.sort(key=lambda pair: (pair[1], pair[0]))
    return Vocabulary(tuple(terms), tuple(concept), tuple(name), tuple(kind), counts.astype(np.int64), tuple(synonyms))


def _spellings(terms: Sequence[str], finder: Finder) -> list[tuple[str, int]]:
    """The lexicon's terms for the concepts that are nodes."""
    lexicon, known = finder.lexicon, finder.known
    if lexicon is None or finder.options.level != "concept":
        return []
    node_of = np.full(len(known), -1, np.int64)
    for node, term in enumerate(terms):
        if term in known:
            node_of[known[term]] = node
    nodes = node_of[lexicon.term_concepts]
    owner = np.repeat(np.arange(len(lexicon)), np.diff(lexicon.concept_starts))[nodes >= 0]
    return list(zip(map(lexicon.terms.__getitem__, owner.tolist()), nodes[nodes >= 0].tolist(), strict=True))
