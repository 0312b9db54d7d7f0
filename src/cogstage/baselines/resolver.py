"""From a name to a method: ``"line+ntn"``, ``"degree"``, ``"complex"``, ``"svd+rotate"``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from cogstage.baselines.contract import Encoder, Method, Scorer
from cogstage.baselines.vectors import VectorStore
from cogstage.errors import UsageError

_HERE = "cogstage.baselines"
ENCODERS = {
    "svd": f"{_HERE}.encoders.svd:SvdEncoder",
    "deepwalk": f"{_HERE}.encoders.deepwalk:DeepWalkEncoder",
    "line": f"{_HERE}.encoders.line:LineEncoder",
    "repel": f"{_HERE}.encoders.repel:RepelEncoder",
}
SCORERS = {
    "distmult": f"{_HERE}.scorers.distmult:DistMultScorer",
    "rescal": f"{_HERE}.scorers.rescal:RescalScorer",
    "ntn": f"{_HERE}.scorers.ntn:NtnScorer",
}
FLOOR = {
    "always-positive": f"{_HERE}.floor:AlwaysPositive",
    "degree": f"{_HERE}.floor:Degree",
    "ppmi": f"{_HERE}.floor:Ppmi",
}
REFERENCES = ("complex", "rotate", "tucker")

PAPER = tuple(f"{encoder}+{scorer}" for encoder in ENCODERS for scorer in SCORERS)
MODERN = (*REFERENCES, *(f"svd+{reference}" for reference in REFERENCES))
BASELINES = (*FLOOR, *PAPER, *MODERN)


def resolve(
    name: str,
    encoder: Mapping[str, Any] | None = None,
    scorer: Mapping[str, Any] | None = None,
    store: VectorStore | None = None,
) -> Method:
    """The method of this name, not yet fitted.

    ``encoder`` and ``scorer`` are options of its two parts (fields of their dataclasses); ``store`` keeps vectors.
    """
    first, _, second = name.partition("+")
    if name in FLOOR:
        _no_options(name, encoder, scorer)
        method: Method = _load(FLOOR[name])()
        return method
    if name in REFERENCES:
        _no_options(name, encoder, None)
        reference: Method = _load(f"{_HERE}.pykeen_reference:PykeenReference")(name, _options(name, scorer))
        return reference
    if first in ENCODERS and second in REFERENCES:
        made: Method = _load(f"{_HERE}.pykeen_reference:PykeenReference")(
            second, _options(second, scorer), resolve_encoder(first, encoder), store
        )
        return made
    if first in ENCODERS and second in SCORERS:
        encoded: Method = _load(f"{_HERE}.encoded:EncodedMethod")(
            resolve_encoder(first, encoder), resolve_scorer(second, scorer), store
        )
        return encoded
    raise UsageError(
        f"unknown method: {name}; known are {', '.join((*FLOOR, *REFERENCES))} and encoder+scorer "
        f"with {', '.join(ENCODERS)} and {', '.join((*SCORERS, *REFERENCES))}"
    )


def resolve_encoder(name: str, options: Mapping[str, Any] | None = None) -> Encoder:
    """The encoder of this name."""
    encoder: Encoder = _build(name, ENCODERS, "encoder", options)
    return encoder


def resolve_scorer(name: str, options: Mapping[str, Any] | None = None) -> Scorer:
    """The scorer of this name, not yet fitted."""
    scorer: Scorer = _build(name, SCORERS, "scorer", options)
    return scorer


def _build(name: str, homes: Mapping[str, str], kind: str, options: Mapping[str, Any] | None) -> Any:
    if name not in homes:
        raise UsageError(f"unknown {kind}: {name}; known are {', '.join(homes)}")
    try:
        return _load(homes[name])(**(options or {}))
    except TypeError as error:
        raise UsageError(f"{kind} {name}: {error}") from None


def _options(name: str, options: Mapping[str, Any] | None) -> Any:
    try:
        return _load(f"{_HERE}.pykeen_reference:ReferenceOptions")(**(options or {}))
    except TypeError as error:
        raise UsageError(f"{name}: {error}") from None


def _no_options(name: str, *given: Mapping[str, Any] | None) -> None:
    if any(given):
        raise UsageError(f"{name} has no such options")


def _load(home: str) -> Callable[..., Any]:
    module, _, attribute = home.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), attribute)
    return found
