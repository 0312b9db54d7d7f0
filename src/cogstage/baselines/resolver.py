"""From a name to a method: ``"line+ntn"``, ``"line+ntn+fresh"``, ``"degree"``, ``"complex"``, ``"svd+rotate"``.

A file in ``encoders/`` or ``scorers/`` is a component of the file's name: it holds one class with that ``name``, its
``title``, its options with their defaults (dataclass fields) and ``quick``, the options that tests run it with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cogstage import components
from cogstage.baselines.contract import Encoder, Method, Scorer
from cogstage.baselines.floor import FLOOR_METHODS
from cogstage.baselines.vectors import VectorStore
from cogstage.components import component_names
from cogstage.errors import UsageError

_HERE = "cogstage.baselines"


ENCODERS = component_names(f"{_HERE}.encoders")
SCORERS = component_names(f"{_HERE}.scorers")
FLOOR = {method.name: method for method in FLOOR_METHODS}
REFERENCES = {"complex": "ComplEx", "rotate": "RotatE", "tucker": "TuckER"}
FRESH = "+fresh"

PAPER = (
    "svd+distmult", "svd+rescal", "svd+ntn",
    "deepwalk+distmult", "deepwalk+rescal", "deepwalk+ntn",
    "line+distmult", "line+rescal", "line+ntn",
    "repel+distmult", "repel+rescal", "repel+ntn",
)  # fmt: skip
"""The twelve baselines of the paper, whatever else is added."""
PAPER_FRESH = tuple(name + FRESH for name in PAPER)
MODERN = ("complex", "rotate", "tucker", "svd+complex", "svd+rotate", "svd+tucker")


def resolve(
    name: str,
    encoder: Mapping[str, Any] | None = None,
    scorer: Mapping[str, Any] | None = None,
    store: VectorStore | None = None,
) -> Method:
    """The method of this name, not yet fitted.

    ``encoder`` and ``scorer`` are options of its two parts (fields of their dataclasses); ``store`` keeps vectors.
    """
    first, second, fresh = _parts(name)
    if name in FLOOR:
        _no_options(name, encoder, scorer)
        method: Method = FLOOR[name]()
        return method
    if second in REFERENCES and not fresh:
        from cogstage.baselines.pykeen_reference import PykeenReference

        if not first:
            _no_options(name, encoder)
        chosen = resolve_encoder(first, encoder) if first else None
        return PykeenReference(second, _options(second, scorer), chosen, store)
    from cogstage.baselines.encoded import EncodedMethod
    from cogstage.baselines.fresh import FreshMethod

    kind = FreshMethod if fresh else EncodedMethod
    return kind(resolve_encoder(first, encoder), resolve_scorer(second, scorer), store)


def title(name: str) -> str:
    """How a method is called in a table: "REPEL-D + RESCAL"."""
    first, second, fresh = _parts(name)
    if name in FLOOR:
        return FLOOR[name].title
    last = REFERENCES[second] if second in REFERENCES else component("scorers", second).title
    parts = [component("encoders", first).title] if first else []
    return " + ".join([*parts, last]) + (", fresh negatives" if fresh else "")


def encoder_of(name: str) -> str | None:
    """The encoder whose vectors a method reads, if any."""
    return _parts(name)[0] or None


def _parts(name: str) -> tuple[str, str, bool]:
    """Encoder ("" without one), scorer or reference, and whether it is trained with fresh negatives."""
    plain = name.removesuffix(FRESH)
    first, plus, second = plain.partition("+")
    if name in FLOOR:
        return "", name, False
    if not plus and first in REFERENCES and plain == name:
        return "", first, False
    if first in ENCODERS and (second in SCORERS or (second in REFERENCES and plain == name)):
        return first, second, plain != name
    raise UsageError(
        f"unknown method: {name}; choose one of {', '.join((*FLOOR, *REFERENCES))}, or encoder+scorer "
        f"with the encoders {', '.join(ENCODERS)} and the scorers {', '.join((*SCORERS, *REFERENCES))}, "
        f"optionally followed by {FRESH}"
    )


def resolve_encoder(name: str, options: Mapping[str, Any] | None = None) -> Encoder:
    """The encoder of this name."""
    encoder: Encoder = _build("encoders", name, options)
    return encoder


def resolve_scorer(name: str, options: Mapping[str, Any] | None = None) -> Scorer:
    """The scorer of this name, not yet fitted."""
    scorer: Scorer = _build("scorers", name, options)
    return scorer


def component(kind: str, name: str) -> Any:
    """The class of an encoder (``kind`` "encoders") or a scorer ("scorers")."""
    return components.component(f"{_HERE}.{kind}", name, kind[:-1])


def _build(kind: str, name: str, options: Mapping[str, Any] | None) -> Any:
    try:
        return component(kind, name)(**(options or {}))
    except TypeError as error:
        raise UsageError(f"{kind[:-1]} {name}: {error}") from None


def _options(name: str, options: Mapping[str, Any] | None) -> Any:
    from cogstage.baselines.pykeen_reference import ReferenceOptions

    try:
        return ReferenceOptions(**(options or {}))
    except TypeError as error:
        raise UsageError(f"{name}: {error}") from None


def _no_options(name: str, *given: Mapping[str, Any] | None) -> None:
    if any(given):
        raise UsageError(f"{name} takes no options")
