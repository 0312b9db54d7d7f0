"""A model as one HTML file: pair page, term search and what-if questions, computed by the file's own script.

Vectors are stored as integers, facts and counts exactly. The script has the equations of :mod:`cogstage.model`.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import escape

from cogstage.artefact import write_text
from cogstage.errors import CogstageError, UsageError
from cogstage.estimator import CogStage
from cogstage.graph.term_search import other_names
from cogstage.model.recall import Associations, directions
from cogstage.model.recognition import CUT, tower_scale
from cogstage.rationale.predictor import DefaultPredictor
from cogstage.relations import RelationIndex, infinitive, phrase

TOWER_BITS, CONTEXT_BITS, FULL_BITS = 13, 10, 16  # of towers; of υ, whose share is small; of everything else
MOST_TERMS = 60_000  # a browser holds the vectors of all terms
TEMPLATES = Path(__file__).parent / "templates" / "published"


def publish(model: CogStage, out: Path, title: str = "") -> int:
    """Write a model as one HTML file, which makes no request; returns its size in bytes."""
    page = published_page(model, title or "Predicted medical relations")
    write_text(out, page)
    return len(page.encode())


def published_page(model: CogStage, title: str) -> str:
    """The HTML file."""
    predictor = model.predictor
    if not isinstance(predictor, DefaultPredictor):
        raise UsageError("only the default model can be published as one file, not the published (paper) model")
    if predictor.knowledge.order is not None:
        raise UsageError("a model that uses the order in time of a patient's records cannot be published as one file")
    if len(model.vocabulary) > MOST_TERMS:
        raise CogstageError(
            f"the model has {len(model.vocabulary):,} terms; one file holds at most {MOST_TERMS:,}. Use cogstage serve"
        )
    pack = _Pack()
    pack.add("text", json.dumps(_names(model), ensure_ascii=False).encode())
    header = {**_meaning(model), **_numbers(model, predictor, pack), "sections": pack.sections}
    compressed = zlib.compress(pack.bytes(), 9)
    parts = {
        "title": str(escape(title)),
        "style": (TEMPLATES / "page.css").read_text(encoding="utf-8"),
        "script": (TEMPLATES / "page.js").read_text(encoding="utf-8"),
        # "<" would end the script element or open a comment in it
        "header": json.dumps(header, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"),
        "data": base64.b64encode(compressed).decode(),
    }
    page = (TEMPLATES / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\[\[(\w+)\]\]", lambda part: parts[part[1]], page)


class _Pack:
    """Arrays one after the other, each with its name, place and kind."""

    def __init__(self) -> None:
        self.sections: dict[str, dict[str, Any]] = {}
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, name: str, content: bytes, **kind: Any) -> None:
        """Add bytes."""
        self.sections[name] = {"from": self._size, "length": len(content), **kind}
        self._parts.append(content)
        self._size += len(content)

    def quantised(self, name: str, values: np.ndarray, bits: int) -> np.ndarray:
        """Add numbers as integers, high bytes first as they compress better; returns what the script reads. float64."""
        largest = float(np.abs(values).max(initial=0)) or 1.0
        step = largest / (2 ** (bits - 1) - 1)
        whole = np.rint(values.astype(np.float64) / step).astype(np.int16)
        high, low = (whole >> 8).astype(np.int8).tobytes(), (whole & 255).astype(np.uint8).tobytes()
        self.add(name, high + low, step=step)
        read: np.ndarray = whole * step
        return read

    def bytes(self) -> bytes:
        """All arrays."""
        return b"".join(self._parts)


def _meaning(model: CogStage) -> dict[str, Any]:
    """Words: types, relations, calibration, provenance."""
    index, provenance = RelationIndex(model.all_relations), model.explainer.provenance
    names = index.all_names[:-1]
    return {
        "kinds": sorted(set(model.vocabulary.type)),
        "relations": [{"name": name, "phrase": phrase(name), "infinitive": infinitive(name)} for name in names],
        "opposite": index.opposite.astype(int).tolist(),
        "targets": [index.number(name) for name in model.relations],
        "calibration": [[model.calibration[n].slope, model.calibration[n].shift] for n in model.relations],
        "about": f"Model {provenance.model[:12]}, cogstage {provenance.version}, protection of counts:"
        f" {provenance.privacy}",
        "licences": [str(one) for one in model.metrics.get("sources", {}).get("licences", [])],
    }


def _names(model: CogStage) -> dict[str, Any]:
    """Keys and names of terms, and further names with the term they stand for: synonyms, and what people say."""
    vocabulary = model.vocabulary
    aliases = [(name, vocabulary.search.resolve(name)) for name in other_names()]
    further = [*vocabulary.synonyms, *((name, match.node) for name, match in aliases if match is not None)]
    return {"keys": vocabulary.term, "names": vocabulary.name, "synonyms": further}


def _numbers(model: CogStage, predictor: DefaultPredictor, pack: _Pack) -> dict[str, Any]:
    """The arrays of the model; returns its small numbers."""
    network, prepared, knowledge = predictor.network, predictor.prepared, predictor.knowledge
    recognition, weights = prepared.recognition, predictor.network.recognition
    towers = {
        end: pack.quantised(end, getattr(recognition, end), TOWER_BITS).astype(np.float32) for end in ("head", "tail")
    }
    pack.quantised("context", directions(network.term), CONTEXT_BITS)
    pack.quantised("mean", recognition.mean_score, FULL_BITS)
    for name in ("related", "contrast"):
        pack.quantised(name, getattr(weights, name), FULL_BITS)
    counts, facts = model.fitted.counts, knowledge.facts.triples()
    pack.add("start", counts.start.astype("<u4").tobytes())
    pack.add("other", _deltas(counts.start, counts.other))
    pack.add("count", _variable_length(counts.count.astype(np.int64)))
    pack.add("terms", model.vocabulary.count.astype("<u4").tobytes())
    pack.add("candidates", predictor.candidates.astype("<u4").tobytes())
    pack.add("facts", np.stack([facts.head, facts.relation, facts.tail], 1).astype("<u4").tobytes())
    kinds = {kind: number for number, kind in enumerate(sorted(set(model.vocabulary.type)))}
    pack.add("kind", np.array([kinds[kind] for kind in model.vocabulary.type], np.uint8).tobytes())
    small: dict[str, Any] = {
        "dimension": int(network.term.shape[1]),
        "width": int(recognition.head.shape[1]),
        "associations": network.config.associations,
        "reasons": network.config.reasons,
        "margin": recognition.margin,
        "cut": CUT,
        "scale": tower_scale(recognition.head.shape[1]),
        "ppmiScale": float(counts.scale[0]),
        "bias": [weights.related_bias.tolist(), weights.contrast_bias.tolist()],
        "ppmi": weights.ppmi.tolist(),
        "decisions": [
            {name: getattr(one, name).tolist() for name in ("sharpness", "scale", "value", "fact", "pair", "bias")}
            for one in network.decisions.values()
        ],
        "usual": _usual(predictor, kinds),
        "nearest": {},
    }
    for end, associations in (("head", prepared.of_head), ("tail", prepared.of_tail)):
        small["nearest"][end] = _differing(towers[end], predictor.candidates, associations, network.config.associations)
    return small


def _usual(predictor: DefaultPredictor, kinds: dict[str, int]) -> list[list[list[int]]] | None:
    """Which relations join the types of two terms; null for a graph without types."""
    types = predictor.knowledge.types
    if types is None:
        return None
    numbers = [int(types.kinds([kind])[0]) if kind else int(types.kinds([])[0]) for kind in kinds]
    usual: list[list[list[int]]] = types.usual[np.ix_(numbers, numbers)].astype(int).tolist()
    return usual


def _differing(
    tower: np.ndarray, candidates: np.ndarray, associations: Associations, count: int
) -> dict[int, list[int]]:
    """The associations of terms for which rounded towers give others."""
    nodes = np.arange(len(tower))
    exact = np.sort(associations.nearest(nodes)[0], 1)
    rounded = np.sort(Associations(tower.astype(np.float64), candidates, count).nearest(nodes)[0], 1)
    return {int(node): exact[node].tolist() for node in np.flatnonzero((exact != rounded).any(1))}


def _deltas(start: np.ndarray, other: np.ndarray) -> bytes:
    """The sorted columns of each row as differences."""
    difference = np.diff(other.astype(np.int64), prepend=0)
    first = start[:-1][np.diff(start) > 0]
    difference[first] = other[first]
    return _variable_length(difference)


def _variable_length(values: np.ndarray) -> bytes:
    """Numbers of at least 0, seven bits a byte, low bits first; the high bit says that more follow."""
    parts, left = [], values.astype(np.uint64)
    at = np.arange(len(values))
    places: list[np.ndarray] = []
    while len(left):
        more = left >= 128
        parts.append(((left & np.uint64(127)) | (more.astype(np.uint64) << np.uint64(7))).astype(np.uint8))
        places.append(at)
        left, at = left[more] >> np.uint64(7), at[more]
    if not parts:
        return b""
    depth = np.concatenate([np.full(len(part), level) for level, part in enumerate(parts)])
    order = np.lexsort((depth, np.concatenate(places)))
    return np.concatenate(parts)[order].tobytes()
