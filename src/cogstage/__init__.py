"""Predict medical relations from corpus-level co-occurrence counts, with rationales a physician can read.

The names below are the public API; each is imported when it is first used, so that ``import cogstage`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cogstage.artefact import software_version
    from cogstage.errors import CogstageError, LeakageError, UsageError
    from cogstage.estimator import CogStage
    from cogstage.evaluation.compare import compare
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.importers import import_edges
    from cogstage.knowledge.build import build_dataset
    from cogstage.knowledge.dataset import Dataset
    from cogstage.knowledge.facts import Facts
    from cogstage.knowledge.table import facts_from_table
    from cogstage.rationale.record import Prediction, Reason

_HOMES = {
    "CogStage": "cogstage.estimator",
    "CogstageError": "cogstage.errors",
    "Dataset": "cogstage.knowledge.dataset",
    "Facts": "cogstage.knowledge.facts",
    "Graph": "cogstage.graph.cooccurrence",
    "LeakageError": "cogstage.errors",
    "Prediction": "cogstage.rationale.record",
    "Reason": "cogstage.rationale.record",
    "UsageError": "cogstage.errors",
    "build_dataset": "cogstage.knowledge.build",
    "compare": "cogstage.evaluation.compare",
    "facts_from_table": "cogstage.knowledge.table",
    "import_edges": "cogstage.graph.importers",
    "software_version": "cogstage.artefact",
}

__all__ = [
    "CogStage",
    "CogstageError",
    "Dataset",
    "Facts",
    "Graph",
    "LeakageError",
    "Prediction",
    "Reason",
    "UsageError",
    "build_dataset",
    "compare",
    "facts_from_table",
    "import_edges",
    "software_version",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cogstage' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
