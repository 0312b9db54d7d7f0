"""A federated round: its sites, the agreed vocabulary, and how a graph becomes a vector of numbers and back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.artefact import to_json, write_text
from cogstage.corpus.lexicon import Lexicon
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.federation.masking import new_key, public_key
from cogstage.graph.federation.messages import SECRET, Identity, canonical, read_json, read_message, write_message
from cogstage.graph.merge import SAME, TOTALS
from cogstage.graph.vocabulary import Vocabulary
from cogstage.input_files import Paths
from cogstage.tables import read_rows

ROUND, PRESENT = "round.json", "present.json"
COORDINATOR = "coordinator"
LEAST_SITES = 3  # of two, each knows the other's counts from the sum
MOST_TERMS = 20_000  # vectors have a number for every pair: 1.6 GB at this size
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}")


@dataclass(frozen=True)
class AgreedTerm:
    """An agreed node."""

    term: str
    concept: str
    name: str
    type: str
    synonyms: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, row: Any) -> AgreedTerm:
        """Read what ``astuple`` wrote."""
        term, concept, name, kind, synonyms = row
        return cls(str(term), str(concept), str(name), str(kind), tuple(map(str, synonyms)))


@dataclass(frozen=True)
class Round:
    """What all sites of a round agree on."""

    folder: Path
    id: str  # SHA-256 of the round's description: every message is bound to it
    sites: Mapping[str, str]  # name and public identity key
    coordinator: str  # public identity key
    seal_key: bytes  # public key under which shares are revealed to the coordinator
    threshold: int  # sites that must stay for a sum
    terms: tuple[AgreedTerm, ...]  # sorted

    @property
    def fingerprint(self) -> str:
        """A short form of ``id`` for comparison by telephone."""
        return "-".join(self.id[at : at + 4] for at in range(0, 24, 4))

    def number(self, site: str) -> int:
        """Number of a site's shares, 1 ... n."""
        return sorted(self.sites).index(site) + 1

    def file(self, step: str, site: str) -> Path:
        """The file of a step of a site."""
        return self.folder / f"{step}-{site}.json"

    def numbers_file(self, site: str) -> Path:
        """The masked numbers of a site."""
        return self.folder / f"masked-{site}.bin"

    def message(self, step: str, site: str) -> dict[str, Any] | None:
        """The checked message of a site; None if it has not come yet."""
        path = self.file(step, site)
        return read_message(path, self.sites[site], self.id, step, site) if path.exists() else None

    def messages(self, step: str) -> dict[str, dict[str, Any]]:
        """The checked messages that are there, by site."""
        every = {site: self.message(step, site) for site in sorted(self.sites)}
        return {site: message for site, message in every.items() if message is not None}

    def present(self) -> list[str] | None:
        """The sites whose numbers the coordinator has; None before it says so."""
        path = self.folder / PRESENT
        if not path.exists():
            return None
        sites = read_message(path, self.coordinator, self.id, "present", COORDINATOR).get("sites")
        if isinstance(sites, list) and sites == sorted(set(sites) & set(self.sites)) and len(sites) >= self.threshold:
            return list(sites)
        raise CogstageError(f"{path} does not name {self.threshold} or more sites of this round")

    @cached_property
    def node_of(self) -> dict[str, int]:
        """Number of each agreed term."""
        return {row.term: node for node, row in enumerate(self.terms)}

    def size(self, order: bool) -> int:
        """Length of the vectors: totals, terms, pairs, and with ``order`` three numbers of each pair."""
        n = len(self.terms)
        return len(TOTALS) + n + (4 if order else 1) * (n * (n - 1) // 2)


def start_round(
    folder: Path,
    identity: Identity,
    sites: Mapping[str, str],
    terms: Sequence[AgreedTerm],
    threshold: int | None = None,
) -> Round:
    """Describe a new round in ``folder``."""
    threshold = 2 * len(sites) // 3 + 1 if threshold is None else threshold
    if len(sites) < LEAST_SITES or not all(NAME.fullmatch(name) for name in sites) or COORDINATOR in sites:
        raise UsageError(f"a round needs {LEAST_SITES} or more `site` NAME=KEY, with plain names")
    keys = [*sites.values(), identity.public]
    if len(set(keys)) < len(keys) or not all(re.fullmatch(r"[0-9a-f]{64}", key) for key in keys):
        raise UsageError("every `site` needs a public key of its own: what `cogstage federate identity` prints")
    if not len(sites) < 2 * threshold <= 2 * len(sites):
        raise UsageError(f"`least_sites` must be more than half of the {len(sites)} sites")
    if (folder / ROUND).exists():
        raise UsageError(f"{folder / ROUND} exists; start a new round in another folder")
    rows = sorted(terms, key=lambda row: row.term)
    if not 2 <= len({row.term for row in rows}) == len(rows) <= MOST_TERMS:
        raise UsageError(f"the vocabulary has {len(rows):,} terms; it needs 2 to {MOST_TERMS:,}, each once")
    secret = new_key()
    body = {
        "sites": dict(sorted(sites.items())),
        "coordinator": identity.public,
        "seal_key": public_key(secret).hex(),
        "threshold": threshold,
        "terms": [astuple(row) for row in rows],
        "nonce": new_key().hex(),
    }
    state = state_file(identity, hashlib.sha256(canonical(body)).hexdigest())
    write_text(state, to_json({"seal_key": secret.hex()}), SECRET)
    write_message(folder / ROUND, identity, "", "round", COORDINATOR, body)
    return read_round(folder)


def read_round(folder: Path) -> Round:
    """Read a round; its signature is checked against the coordinator's key that it names."""
    path = folder / ROUND
    try:
        named = str(read_json(path)["body"]["coordinator"])
        body = read_message(path, named, None, "round", COORDINATOR)
        terms = tuple(map(AgreedTerm.from_json, body["terms"]))
        sites = {str(name): str(key) for name, key in body["sites"].items()}
        round_id = hashlib.sha256(canonical(body)).hexdigest()
        seal_key = bytes.fromhex(body["seal_key"])
        read = Round(folder, round_id, sites, named, seal_key, int(body["threshold"]), terms)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CogstageError(f"{path} is not a federated round; ask the coordinator for it") from None
    if not all(NAME.fullmatch(name) for name in sites) or not LEAST_SITES <= len(sites) < 2 * read.threshold:
        raise CogstageError(f"{path} describes no sound round; do not take part")
    return read


def terms_of(path: Path) -> list[AgreedTerm]:
    """The terms of a graph folder or a table (term, concept, name, type)."""
    if path.is_dir():
        words = Graph.load(path).vocabulary
        synonyms: dict[int, list[str]] = {}
        for text, node in words.synonyms:
            synonyms.setdefault(node, []).append(text)
        nodes = enumerate(zip(words.term, words.concept, words.name, words.type, strict=True))
        return [AgreedTerm(*row, tuple(sorted(synonyms.get(node, ())))) for node, row in nodes]
    terms = []
    for row in read_rows(path, ["term"], ["concept", "name", "type"]):
        term = str(row["term"])
        terms.append(AgreedTerm(term, str(row["concept"] or term), str(row["name"] or term), str(row["type"] or "")))
    return terms


def concepts_of(paths: Paths) -> list[AgreedTerm]:
    """The concepts of a lexicon; their terms are synonyms."""
    lexicon = Lexicon.read(paths)
    synonyms: dict[int, set[str]] = {}
    for term, text in enumerate(lexicon.terms):
        for concept in lexicon.term_concepts[lexicon.concept_starts[term] : lexicon.concept_starts[term + 1]].tolist():
            synonyms.setdefault(concept, set()).add(text)
    rows = zip(lexicon.concepts, lexicon.concept_names, lexicon.concept_types, strict=True)
    return [AgreedTerm(key, key, name, kind, tuple(sorted(synonyms[at]))) for at, (key, name, kind) in enumerate(rows)]


def state_file(identity: Identity, round_id: str) -> Path:
    """Where the secrets of a round are kept, beside the identity; for its owner alone."""
    return identity.path.with_name(f"{identity.path.name}.{round_id[:16]}.json")


def counted_as(graph: Graph, where: str = "the graph") -> dict[str, Any]:
    """How a graph was counted, which all sites of a round must agree on; raise unless its counts are exact."""
    made = graph.made_with
    if made.get("private") or made.get("suppress_below") or (made.get("min_count") or 1) > 1:
        raise UsageError(f"{where} has noisy counts or lacks some; build it without `private`, `suppress_below` and "
                         "`min_count`")  # fmt: skip
    if made.get("values") == "ppmi":
        raise UsageError(f"{where} has PPMI values instead of counts")
    return {option: made.get(option) or None for option in SAME}


def to_vector(graph: Graph, about: Round) -> tuple[np.ndarray, int]:
    """The numbers of a graph in the order of a round, uint64 (size,), and how many of its terms are not agreed."""
    order = graph.in_order is not None
    node = np.array([about.node_of.get(term, -1) for term in graph.vocabulary.term], np.int64)
    n, vector = len(about.terms), np.zeros(about.size(order), np.uint64)
    vector[: len(TOTALS)] = [graph.made_with.get(name) or 0 for name in TOTALS]
    known = node >= 0
    vector[len(TOTALS) + node[known]] = graph.vocabulary.count[known].astype(np.uint64)
    source, target = node[graph.source], node[graph.target]
    kept = (source >= 0) & (target >= 0)
    low, high = np.minimum(source, target)[kept], np.maximum(source, target)[kept]
    pair = low * n - low * (low + 1) // 2 + high - low - 1
    begin, n_pairs = len(TOTALS) + n, n * (n - 1) // 2
    vector[begin + pair] = graph.count[kept].astype(np.uint64)
    if graph.in_order is not None:
        cells = graph.in_order[kept].astype(np.uint64)
        turned = (source > target)[kept]
        cells[turned] = cells[turned][:, [1, 0, 2]]
        vector[begin + n_pairs :].reshape(-1, 3)[pair] = cells
    return vector, int((~known).sum())


def to_graph(vector: np.ndarray, about: Round, made_with: Mapping[str, Any]) -> Graph:
    """The graph of summed numbers; terms and pairs that no site has are left out."""
    n, begin = len(about.terms), len(TOTALS) + len(about.terms)
    n_pairs = n * (n - 1) // 2
    order = len(vector) > begin + n_pairs
    values = vector.astype(np.int64)
    if (values < 0).any():
        raise CogstageError("the sum is not a sum of counts; a site masked another vector, or a file is wrong")
    count = values[len(TOTALS) : begin]
    kept = np.flatnonzero(count > 0)
    node = np.full(n, -1, np.int32)
    node[kept] = np.arange(len(kept), dtype=np.int32)
    pair = np.flatnonzero(values[begin : begin + n_pairs] > 0)
    starts = np.arange(n) * n - np.arange(n) * (np.arange(n) + 1) // 2
    low = np.searchsorted(starts[:-1], pair, side="right") - 1
    high = pair - starts[low] + low + 1
    cells = values[begin + n_pairs :].reshape(-1, 3)[pair].astype(np.int32) if order else None
    rows = [about.terms[each] for each in kept]
    columns = [tuple(getattr(row, name) for row in rows) for name in ("term", "concept", "name", "type")]
    synonyms = tuple((text, at) for at, row in enumerate(rows) for text in row.synonyms)
    words = Vocabulary(columns[0], columns[1], columns[2], columns[3], count[kept], synonyms)
    totals = {name: int(values[at]) for at, name in enumerate(TOTALS) if values[at]}
    return Graph(words, node[low], node[high], values[begin + pair], {**made_with, **totals}, cells)
