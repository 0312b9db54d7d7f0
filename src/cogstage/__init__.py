"""Predict medical relations from corpus-level co-occurrence counts, with rationales a physician can read.

The names below are the public API; each is imported when it is first used, so that ``import cogstage`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cogstage.artefact import software_version
    from cogstage.errors import CogstageError, LeakageError, UsageError
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.dataset import Dataset
    from cogstage.rationale.record import Prediction, Rationale

_HOMES = {
    "CogstageError": "cogstage.errors",
    "Dataset": "cogstage.knowledge.dataset",
    "Graph": "cogstage.graph.cooccurrence",
    "LeakageError": "cogstage.errors",
    "Prediction": "cogstage.rationale.record",
    "Rationale": "cogstage.rationale.record",
    "UsageError": "cogstage.errors",
    "software_version": "cogstage.artefact",
}

__all__ = [
    "CogstageError",
    "Dataset",
    "Graph",
    "LeakageError",
    "Prediction",
    "Rationale",
    "UsageError",
    "software_version",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cogstage' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
