"""The methods a comparison knows by name: the baselines, and CogStage itself in its variants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cogstage.baselines import resolver
from cogstage.baselines.contract import ALL, Method
from cogstage.baselines.resolver import FLOOR, MODERN, PAPER, PAPER_FRESH, resolve
from cogstage.baselines.vectors import VectorStore
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import FittingView
from cogstage.progress import SILENT, Progress
from cogstage.rationale.corrections import Corrections
from cogstage.statistics import sigmoid
from cogstage.training.calibration import Calibration

if TYPE_CHECKING:
    from cogstage.estimator import CogStage


@dataclass(frozen=True)
class Variant:
    """How CogStage is set up for a row of the table."""

    title: str
    world: str = "open"
    preset: str = "default"
    joint: bool = False
    direct: bool = False
    """Stage 2 is asked about the pair itself: how well one predicts who need give no reason."""

    @property
    def options(self) -> dict[str, Any]:
        """Options of the model that differ from the preset's; where stage 3 is idle it is kept small."""
        idle = {"folds": 0, "associations": 1, "decision_epochs": 1, "decision_steps": 0} if self.direct else {}
        return {"world": self.world, **idle}


VARIANTS = {
    "cogstage": Variant("CogStage"),
    "cogstage-closed": Variant("CogStage, closed world", world="closed"),
    "cogstage-paper": Variant("CogStage, as published", preset="paper"),
    "cogstage-all": Variant("CogStage, one model for all", joint=True),
    "cogstage-all-closed": Variant("CogStage, one model for all, closed world", world="closed", joint=True),
    "recognition": Variant("CogStage's recognition alone, no reasons", joint=True, direct=True),
}
GROUPS = {
    "floor": tuple(FLOOR),
    "paper": PAPER,
    "fresh": PAPER_FRESH,
    "modern": MODERN,
    "cogstage-variants": ("cogstage", "cogstage-closed", "cogstage-paper"),
}
DEFAULT = ("floor", "paper", "fresh", "cogstage-variants")


class CogStageMethod:
    """CogStage with the interface of a baseline."""

    def __init__(self, name: str, corrections: Corrections | None = None) -> None:
        self._name, self._variant = name, VARIANTS[name]
        self._corrections = corrections if corrections is not None and len(corrections) else None
        self._model: CogStage | None = None
        self._direct: dict[str, Calibration] = {}  # of a direct one, by relation

    @property
    def name(self) -> str:
        """Name of the method in tables."""
        return self._name

    @property
    def joint(self) -> bool:
        """Whether one model serves every relation."""
        return self._variant.joint

    @property
    def settings(self) -> str:
        """Options that determine the result; a change makes old runs invalid."""
        from cogstage.model.presets import preset_config

        config = repr(preset_config(self._variant.preset).replace(**self._variant.options))
        return config if self._corrections is None else f"{config}, {self._corrections!r}"

    def fit(
        self, graph: Graph, view: FittingView, relation: str, seed: int = 0, progress: Progress = SILENT
    ) -> CogStageMethod:
        """Train on what may be fitted on."""
        from cogstage.estimator import CogStage

        variant, self._relation = self._variant, relation
        model = CogStage(relation=relation, preset=variant.preset, seed=seed, **variant.options)
        self._model = model.fit(graph, view, progress=progress)
        if variant.direct:
            for name in model.relations:
                dev = view.pairs(name, "dev")
                margin = model.recognised(dev.head, dev.tail, name)
                self._direct[name] = Calibration.fit(margin, dev.label)
        if self._corrections is not None:
            self._model = model.corrected(self._corrections)
        return self

    def scores(self, head: np.ndarray, tail: np.ndarray, relation: str | None = None) -> np.ndarray:
        """Return a calibrated probability for each pair, float64 (M,)."""
        if self._model is None:
            raise CogstageError(f"{self.name} is not fitted yet")
        relation = relation or self._relation
        if self._variant.direct:
            return sigmoid(self._direct[relation].logits(self._model.recognised(head, tail, relation)))
        return self._model.probabilities(head, tail, relation)


def find(name: str, store: VectorStore | None = None, corrections: Corrections | None = None) -> Method:
    """The method of this name, not yet fitted; ``corrections`` are for CogStage, whose reasons they are about."""
    if name in VARIANTS:
        return CogStageMethod(name, corrections)
    return resolve(name, store=store)


def expand(names: Iterable[str] | None) -> list[str]:
    """Names with groups (keys of :data:`GROUPS`) replaced by their members, each once and checked."""
    members: dict[str, None] = {}
    for name in DEFAULT if names is None else names:
        for member in GROUPS.get(name, (name,)):
            find(member)
            members[member] = None
    if not members:
        raise UsageError("no methods to compare")
    return list(members)


def is_baseline(name: str) -> bool:
    """Whether a row is a baseline."""
    return name not in VARIANTS


def title(name: str) -> str:
    """How a method is called in a table; a name that is not known (any more) is its own title."""
    if name in VARIANTS:
        return VARIANTS[name].title
    try:
        return resolver.title(name)
    except UsageError:
        return name


def encoder_of(name: str) -> str | None:
    """The encoder whose vectors a method reads, if any."""
    return None if name in VARIANTS else resolver.encoder_of(name)


__all__ = [
    "ALL",
    "DEFAULT",
    "GROUPS",
    "VARIANTS",
    "CogStageMethod",
    "encoder_of",
    "expand",
    "find",
    "is_baseline",
    "title",
]
