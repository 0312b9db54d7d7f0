"""Predict medical relations from corpus-level co-occurrence counts, with reasons that a physician can read.

``__all__`` lists the public API. Each name is imported on first use, so that ``import cogstage`` is fast.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cogstage.artefact import software_version
    from cogstage.data import embedded
    from cogstage.errors import CogstageError, LeakageError, UsageError
    from cogstage.estimator import CogStage
    from cogstage.evaluation.compare import compare
    from cogstage.evaluation.evaluate import evaluate
    from cogstage.graph.build import build_graph
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.importers import import_edges
    from cogstage.graph.options import BuildOptions, PrivacyOptions
    from cogstage.knowledge.build import build_dataset
    from cogstage.knowledge.dataset import Dataset, FittingView
    from cogstage.knowledge.facts import Facts
    from cogstage.knowledge.omop import facts_from_omop
    from cogstage.knowledge.table import facts_from_table
    from cogstage.knowledge.umls import facts_from_umls
    from cogstage.rationale.corrections import Corrections
    from cogstage.rationale.filters import Filter
    from cogstage.rationale.predictions import Predictions
    from cogstage.rationale.record import Prediction, Reason

# Waiting threads should sleep, not spin. OpenMP and OpenBLAS read these variables when torch and numpy are loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "0")
os.environ.setdefault("KMP_BLOCKTIME", "0")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # 2^4 cycles

_HOMES = {
    "BuildOptions": "cogstage.graph.options",
    "CogStage": "cogstage.estimator",
    "CogstageError": "cogstage.errors",
    "Corrections": "cogstage.rationale.corrections",
    "Dataset": "cogstage.knowledge.dataset",
    "Facts": "cogstage.knowledge.facts",
    "Filter": "cogstage.rationale.filters",
    "FittingView": "cogstage.knowledge.dataset",
    "Graph": "cogstage.graph.cooccurrence",
    "LeakageError": "cogstage.errors",
    "Prediction": "cogstage.rationale.record",
    "Predictions": "cogstage.rationale.predictions",
    "PrivacyOptions": "cogstage.graph.options",
    "Reason": "cogstage.rationale.record",
    "UsageError": "cogstage.errors",
    "build_dataset": "cogstage.knowledge.build",
    "build_graph": "cogstage.graph.build",
    "compare": "cogstage.evaluation.compare",
    "evaluate": "cogstage.evaluation.evaluate",
    "facts_from_omop": "cogstage.knowledge.omop",
    "facts_from_table": "cogstage.knowledge.table",
    "facts_from_umls": "cogstage.knowledge.umls",
    "import_edges": "cogstage.graph.importers",
    "software_version": "cogstage.artefact",
}

__all__ = [
    "BuildOptions",
    "CogStage",
    "CogstageError",
    "Corrections",
    "Dataset",
    "Facts",
    "Filter",
    "FittingView",
    "Graph",
    "LeakageError",
    "Prediction",
    "Predictions",
    "PrivacyOptions",
    "Reason",
    "UsageError",
    "build_dataset",
    "build_graph",
    "compare",
    "embedded",
    "evaluate",
    "facts_from_omop",
    "facts_from_table",
    "facts_from_umls",
    "import_edges",
    "software_version",
]


def __getattr__(name: str) -> Any:
    if name == "embedded":
        return import_module("cogstage.data.embedded")
    if name not in _HOMES:
        raise AttributeError(f"module 'cogstage' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
