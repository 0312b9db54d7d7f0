"""Strong modern references from PyKEEN (the optional extra ``baselines``): ComplEx, RotatE, TuckER.

Each learns a knowledge graph embedding of all training facts and their inverses; with an encoder, its vectors are the
fixed features of the entities, read through a learned linear map. Scores become probabilities by the
calibration on dev pairs that CogStage has.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from cogstage.baselines.classifier import SCORE_BATCH, scaled
from cogstage.baselines.contract import ALL, Encoder
from cogstage.baselines.early_stopping import EarlyStopping
from cogstage.baselines.vectors import VectorStore
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import FittingView, Pairs
from cogstage.progress import SILENT, Progress
from cogstage.statistics import auroc, sigmoid
from cogstage.training.calibration import Calibration


@dataclass(frozen=True)
class ReferenceOptions:
    """How a PyKEEN model is trained."""

    dimension: int = 64
    """Dimension of the entities; ComplEx and RotatE have as many complex numbers."""
    epochs: int = 200
    """Most passes over the training facts."""
    every: int = 5
    """Passes between two looks at the dev pairs."""
    patience: int = 6
    """Looks without a better dev AUROC before it stops."""
    batch: int = 512
    """Facts in a step."""
    rate: float = 1e-2
    """Adam's step size."""
    weight_decay: float = 0.1
    """Decoupled weight decay (AdamW)."""
    negatives: int = 32
    """Corrupted facts for each fact (RotatE)."""
    candidates: int = 1024
    """Entities drawn for each step besides those of the batch, one of which is the answer (ComplEx, TuckER)."""
    margin: float = 4.0
    """RotatE's margin."""


QUICK: dict[str, dict[str, Any]] = {
    "complex": {"dimension": 8, "epochs": 60, "patience": 4, "negatives": 8, "rate": 0.02, "weight_decay": 0.3},
    "rotate": {"dimension": 8, "epochs": 60, "patience": 4, "negatives": 8, "rate": 0.02, "weight_decay": 0.3},
    "tucker": {"dimension": 24, "epochs": 40, "patience": 4, "rate": 0.02, "weight_decay": 0.3},
}
"""Options with which a test of each model is quick and still learns."""


class ComplexMap(nn.Module):
    """A linear map into complex numbers."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, 2 * outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., inputs) real -> (..., outputs) complex."""
        y = self.linear(x)
        return torch.view_as_complex(y.reshape(*y.shape[:-1], -1, 2).contiguous())


class PykeenReference:
    """One embedding of all relations; ``joint``, so that one fit serves every relation."""

    joint = True

    def __init__(
        self,
        model: str,
        options: ReferenceOptions | None = None,
        encoder: Encoder | None = None,
        store: VectorStore | None = None,
    ) -> None:
        self.model, self.options, self.encoder, self.store = model, options or ReferenceOptions(), encoder, store

    @property
    def name(self) -> str:
        """``complex``, or ``svd+complex`` with fixed features."""
        return f"{self.encoder.name}+{self.model}" if self.encoder is not None else self.model

    @property
    def settings(self) -> str:
        """The options of the model and of its encoder, if any."""
        return f"{self.options!r} {self.encoder!r}"

    def fit(
        self, graph: Graph, view: FittingView, relation: str = ALL, seed: int = 0, progress: Progress = SILENT
    ) -> PykeenReference:
        """Train on the training facts of all relations; stop by the mean dev AUROC of ``relation`` (or of all)."""
        pykeen = _import_pykeen()
        self._relations = view.relations
        asked = view.relations if relation == ALL else (relation,)
        features = None
        if self.encoder is not None:
            get = self.store.get if self.store is not None else None
            raw = (get or (lambda e, *rest: e.encode(*rest)))(self.encoder, graph, view, seed, progress)
            features = torch.from_numpy(scaled(raw))
        facts = view.train_facts()
        triples = torch.from_numpy(np.stack([facts.head, facts.relation, facts.tail], axis=1).astype(np.int64))
        dev = {name: view.pairs(name, "dev") for name in asked}
        dev = {name: pairs if _both_classes(pairs) else view.pairs(name, "train") for name, pairs in dev.items()}
        with _quiet(), _seeded(seed):
            size = {"num_entities": graph.n_nodes, "num_relations": 2 * len(view.relations)}
            factory = pykeen["factory"](triples, **size)
            self._model = self._build(pykeen, factory, features)
            progress.start(self.name, self.options.epochs)
            self._train(triples, dev, progress)
            progress.done()
        self._scale = {name: Calibration.fit(self._raw(p.head, p.tail, name), p.label) for name, p in dev.items()}
        return self

    def scores(self, head: np.ndarray, tail: np.ndarray, relation: str | None = None) -> np.ndarray:
        """Probabilities (M,) of a relation that it was fitted on."""
        if relation is None and len(self._scale) == 1:
            relation = next(iter(self._scale))
        if relation not in self._scale:
            raise UsageError(f"{self.name} was fitted on {', '.join(self._scale)}; choose the relation to score")
        return sigmoid(self._scale[relation].logits(self._raw(head, tail, relation)))

    def _build(self, pykeen: dict[str, Any], factory: Any, features: torch.Tensor | None) -> Any:
        size, complex_numbers = self.options.dimension, self.model != "tucker"
        kind: dict[str, Any] = {"dtype": torch.cfloat} if complex_numbers else {}
        relation: dict[str, Any] = {"shape": size, **kind}
        if self.model == "rotate":
            relation |= {"initializer": "init_phases", "constrainer": "complex_normalize"}
        entity: dict[str, Any] = {"entity_representations_kwargs": {"shape": size, **kind}}
        if features is not None:
            base = pykeen["embedding"](
                max_id=len(features),
                shape=features.shape[1],
                initializer=pykeen["pretrained"](features),
                trainable=False,
            )
            change: nn.Module = (ComplexMap if complex_numbers else nn.Linear)(features.shape[1], size)
            entity = {"entity_representations": pykeen["transformed"](change, shape=(size,), base=base)}
        return pykeen["model"](
            triples_factory=factory,
            interaction=self.model,
            interaction_kwargs={"embedding_dim": size} if self.model == "tucker" else None,
            relation_representations_kwargs=relation,
            random_seed=int(torch.initial_seed()),
            **entity,
        )

    def _train(self, triples: torch.Tensor, dev: dict[str, Pairs], progress: Progress) -> None:
        """Both directions of every fact, as (h, r) -> t and (t, r⁻¹) -> h; stops by the dev pairs' mean AUROC."""
        options, n_relations = self.options, len(self._relations)
        turned = torch.stack([triples[:, 2], triples[:, 1] + n_relations, triples[:, 0]], dim=1)
        both = torch.cat([triples, turned])
        entities, answers = torch.unique(both[:, 2], return_inverse=True)
        trained = [p for p in self._model.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=options.rate, weight_decay=options.weight_decay)
        stopping = EarlyStopping(self._model, options.patience, least=1e-4)
        for done in range(1, options.epochs + 1):
            self._model.train()
            for rows in torch.split(torch.randperm(len(both)), options.batch):
                if len(rows) == 1 and len(both) > 1:
                    continue  # batch normalisation needs two
                loss = self._loss(both[rows], answers[rows], entities)
                optimizer.zero_grad(set_to_none=True)
                torch.autograd.backward(loss)
                optimizer.step()
                self._model.post_parameter_update()  # RotatE: relations stay rotations
            progress.advance(1, f"dev AUROC {max(stopping.best, 0.0):.3f}")
            if done % options.every:
                continue
            areas = [auroc(p.label, self._raw(p.head, p.tail, name)) for name, p in dev.items()]
            mean = float(np.mean([0.5 if area is None else area for area in areas]))
            if stopping.should_stop(mean):
                break
        stopping.restore()

    def _loss(self, facts: torch.Tensor, answers: torch.Tensor, entities: torch.Tensor) -> torch.Tensor:
        """Cross entropy over the batch's and other entities; RotatE: the self-adversarial loss of its paper."""
        if self.model != "rotate":
            drawn = torch.randperm(len(entities))[: self.options.candidates]
            chosen = torch.unique(torch.cat([answers, drawn]))
            scores = self._against(facts, entities[chosen])
            return nn.functional.cross_entropy(scores, torch.searchsorted(chosen, answers.contiguous()))
        options = self.options
        others = entities[torch.randint(len(entities), (len(facts), options.negatives))]
        corrupted = facts[:, None, :].repeat(1, options.negatives, 1)
        corrupted[:, :, 2] = others
        positive = self._model.score_hrt(facts).ravel()
        negative = self._model.score_hrt(corrupted.reshape(-1, 3)).view(len(facts), options.negatives)
        weight = torch.softmax(negative.detach(), dim=1)
        gain = nn.functional.logsigmoid(options.margin + positive)
        refusal = (weight * nn.functional.logsigmoid(-options.margin - negative)).sum(dim=1)
        return -(gain + refusal).mean() / 2

    def _against(self, facts: torch.Tensor, tails: torch.Tensor) -> torch.Tensor:
        """Scores (B, C) of each fact's head and relation with every one of the tails (ComplEx, TuckER).

        These scores are linear in the tail: those of the axes give all others by one product of matrices, where
        PyKEEN's ``score_t`` multiplies vectors element by element.
        """
        entity, relation = self._model.entity_representations[0], self._model.relation_representations[0]
        tail: torch.Tensor = entity(tails)
        axes = torch.eye(tail.shape[1], dtype=tail.dtype)
        if tail.is_complex():
            axes, tail = torch.cat([axes, 1j * axes]), torch.cat([tail.real, tail.imag], dim=1)
        scores: torch.Tensor = self._model.interaction(
            h=entity(facts[:, 0])[:, None], r=relation(facts[:, 1])[:, None], t=axes[None]
        )
        return scores @ tail.T

    def _raw(self, head: np.ndarray, tail: np.ndarray, relation: str) -> np.ndarray:
        """The model's own scores (M,)."""
        number = self._relations.index(relation)
        triples = np.stack([head, np.full(len(head), number), tail], axis=1).astype(np.int64)
        self._model.eval()
        with torch.inference_mode():
            parts = [
                self._model.score_hrt(part).ravel() for part in torch.split(torch.from_numpy(triples), SCORE_BATCH)
            ]
        return torch.cat(parts).double().numpy() if parts else np.empty(0)


def _import_pykeen() -> dict[str, Any]:
    try:
        with _quiet():
            from pykeen.models import ERModel
            from pykeen.nn.init import PretrainedInitializer
            from pykeen.nn.representation import Embedding, TransformedRepresentation
            from pykeen.triples import CoreTriplesFactory
    except ImportError:
        raise CogstageError("ComplEx, RotatE and TuckER need PyKEEN: pip install 'cogstage[baselines]'") from None
    return {
        "model": ERModel,
        "pretrained": PretrainedInitializer,
        "embedding": Embedding,
        "transformed": TransformedRepresentation,
        "factory": CoreTriplesFactory,
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyKEEN's log messages out of the terminal."""
    logger = logging.getLogger("pykeen")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global generators of torch and numpy, which PyKEEN uses, and restore them afterwards."""
    with torch.random.fork_rng(devices=[]):
        state = np.random.get_state()  # noqa: NPY002
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002


def _both_classes(pairs: Pairs) -> bool:
    return len(pairs) > 0 and pairs.label.min() != pairs.label.max()
