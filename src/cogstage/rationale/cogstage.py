"""``CogStage``: what users fit, ask, save and load."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cogstage.errors import UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.dataset import Dataset, FittingView
from cogstage.model.calibration import calibrate, fit_calibration, sigmoid
from cogstage.model.checkpoint import Checkpoint
from cogstage.model.cogstage import Assumptions, Network, World, assume
from cogstage.model.config import Config
from cogstage.model.config import preset as preset_config
from cogstage.model.distributed import join
from cogstage.model.known_facts import KnownFacts, UsualTypes
from cogstage.model.recall import RecallTargets, svd_start
from cogstage.model.training import Trainer, make_world
from cogstage.progress import SILENT, Progress
from cogstage.rationale.evidence import Evidence
from cogstage.rationale.explain import Explainer
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction
from cogstage.triples import Triples

BATCH = 256  # pairs predicted together
CHANCE = 0.55  # a dev AUROC below it says that nothing was learned


class CogStage:
    """Predicts relations between two terms and says which assumptions the prediction rests on.

    >>> model = CogStage(relation="may_treat").fit(graph, dataset)
    >>> model.predict("aspirin", "headache").rationales[:5]
    """

    def __init__(
        self,
        relation: str | Sequence[str] = "all",
        world: str = "open",
        preset: str = "default",
        seed: int = 0,
        **options: Any,
    ) -> None:
        """``relation`` is one, several or "all"; ``options`` are those of :class:`cogstage.model.config.Config`."""
        self._asked = relation
        self.preset, self.seed = preset, seed
        self.config = preset_config(preset).replace(world=world, **options)
        self.calibration: dict[str, dict[str, Any]] = {}  # by relation
        self.metrics: dict[str, Any] = {}
        self.relations: tuple[str, ...] = ()  # those with a decision head
        self._network: Network | None = None
        self._turn = threading.Lock()

    # Fitting

    def fit(
        self,
        graph: Graph,
        dataset: Dataset,
        *,
        progress: Progress = SILENT,
        checkpoint: Path | str | None = None,
        checkpoint_every: float = 30.0,
        resume: bool = False,
        time_limit: float | None = None,
        trace: Path | str | None = None,
        tensorboard: Path | str | None = None,
        device: str | None = None,
    ) -> CogStage:
        """Train on what ``dataset.for_fitting()`` shows; returns the model itself.

        ``checkpoint`` is a folder for the state of training, from which ``resume`` goes on; ``time_limit`` in seconds;
        ``trace`` a file of JSON lines; ``tensorboard`` a folder of event files. Under ``torchrun`` the processes
        train together. The GPU is used when there is one, unless ``device`` says otherwise.
        """
        from cogstage.rationale.trace import Recorder

        dataset.check_fits(graph.vocabulary)
        view = dataset.for_fitting()
        targets = self._targets(view)
        processes = join()
        recorder = Recorder(trace, tensorboard) if processes.first else Recorder(None, None)
        ppmi = graph.ppmi(self.config.ppmi_shift, self.config.ppmi_smoothing)
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            folds = self.config.folds if self.config.world == "open" else 0
            network = Network(self.config, graph.n_nodes, len(view.relations), targets, folds)
        state = Checkpoint(checkpoint, checkpoint_every) if checkpoint is not None else None
        goes_on = resume and state is not None and state.exists
        if self.config.warm_start == "svd" and not goes_on:  # weights that are about to be replaced need no start
            svd_start(network.recall, ppmi, self.seed)
        recall_targets = RecallTargets.of_ppmi(ppmi)
        del ppmi
        network.to(_device(device))
        _warn(graph, dataset, recall_targets, self.config, progress)
        trainer = Trainer(
            network,
            recall_targets,
            view,
            self.seed,
            types=graph.vocabulary.type,
            processes=processes,
            progress=progress,
            checkpoint=state,
            record=recorder,
            time_limit=time_limit,
        )
        course = trainer.run(resume)
        recorder.close()
        dev = trainer.measure()
        _warn_of_chance(dev, progress)
        self.calibration = {view.relations[t]: fit_calibration(*trainer.dev_logits(t)) for t in targets}
        self.metrics = {
            "dev": dev,
            "kept_epoch": course.kept_epoch,
            "epochs": course.epoch,
            "seconds": round(course.seconds, 1),
            "stopped": course.stopped,
            "history": course.history,
        }
        self.relations = tuple(view.relations[target] for target in targets)
        self._take(network.cpu().eval(), graph.vocabulary, view.relations, view.train_facts())
        self.evidence = Evidence.gather(graph, view.train_facts(), view.relations)
        self.graph_hash = graph.hash
        return self

    def _targets(self, view: FittingView) -> list[int]:
        asked = view.relations if self._asked == "all" else self._asked
        names = [asked] if isinstance(asked, str) else list(asked)
        for name in names:
            if name not in view.relations:
                raise UsageError(f"the data set has no relation {name}; it has {', '.join(view.relations)}")
        return [view.relations.index(name) for name in dict.fromkeys(names)]

    def _take(self, network: Network, vocabulary: Vocabulary, relations: Sequence[str], facts: Triples) -> None:
        """Take up a network that is ready to predict."""
        self._network, self.vocabulary, self.all_relations = network, vocabulary, tuple(relations)
        self.facts = facts
        terms = np.unique(np.concatenate([facts.head, facts.tail])).astype(np.int64)
        self.candidates = terms if self.config.candidates == "facts" else np.arange(len(vocabulary))
        if self.config.known_facts:
            network.known = KnownFacts(facts, len(relations), len(vocabulary))
        if self.config.typed_relations and any(vocabulary.type):
            network.types = UsualTypes(vocabulary.type, facts, len(relations))
        for name in ("world", "explainer"):
            self.__dict__.pop(name, None)

    # Predicting

    @property
    def network(self) -> Network:
        """The three stages."""
        if self._network is None:
            raise UsageError("the model is not fitted yet; call fit() or load()")
        return self._network

    @cached_property
    def world(self) -> World:
        """Where assumptions come from."""
        return self._world_of(self.network)

    def _world_of(self, network: Network) -> World:
        return make_world(network, self.facts, len(self.all_relations), torch.from_numpy(self.candidates))

    @cached_property
    def explainer(self) -> Explainer:
        """Turns assumptions into records."""
        from cogstage.rationale.storage import provenance

        return Explainer(self.vocabulary, self.all_relations, self.evidence, provenance(self))

    def probabilities(
        self,
        head: Sequence[int] | np.ndarray,
        tail: Sequence[int] | np.ndarray,
        relation: str,
        calibrated: bool = False,
    ) -> np.ndarray:
        """p(relation | head, tail) for pairs of node ids: raw ones, or calibrated on dev. float64 (n,)."""
        logit = self.logits(head, tail, relation)
        if calibrated and relation in self.calibration:
            return calibrate(logit, self.calibration[relation])
        return sigmoid(logit)

    def logits(self, head: Sequence[int] | np.ndarray, tail: Sequence[int] | np.ndarray, relation: str) -> np.ndarray:
        """Logits of pairs of node ids. float64 (n,)."""
        parts = [
            a.logit.numpy()
            for a in self._assume(self.network, self.world, *self._nodes(head, tail), self._number(relation), BATCH)
        ]
        return np.concatenate(parts).astype(np.float64) if parts else np.empty(0)

    @torch.inference_mode()
    def recognised(
        self, head: Sequence[int] | np.ndarray, tail: Sequence[int] | np.ndarray, relation: str
    ) -> np.ndarray:
        """What stage 2 makes of pairs of node ids themselves: the relation's score above NA. float64 (n,).

        No prediction uses it, as targets are masked; it is what predicting without reasons would rest on.
        """
        heads, tails = self._nodes(head, tail)
        nodes, place = torch.unique(torch.cat([heads, tails]), return_inverse=True)
        recognition = self.network.recognition
        views = recognition.views(recognition.terms(self.network.recall.term, nodes))
        scores = recognition.scores(views, place[: len(heads)], place[len(heads) :])  # type: ignore[arg-type]
        margin: np.ndarray = (scores[:, self._number(relation)] - scores[:, recognition.na]).double().numpy()
        return margin

    def assumptions(
        self,
        head: Sequence[int] | np.ndarray,
        tail: Sequence[int] | np.ndarray,
        relation: str,
        network: Network | None = None,
    ) -> Assumptions:
        """All assumptions behind each pair; for a few hundred pairs at a time. ``network`` may be a changed copy."""
        world = self.world if network is None or network is self.network else self._world_of(network)
        heads, tails = self._nodes(head, tail)
        whole = max(1, len(heads))
        return next(self._assume(network or self.network, world, heads, tails, self._number(relation), whole))

    def predict(self, head: str | int, tail: str | int, relation: str | None = None, k: int = 5) -> Prediction:
        """The probability that ``head`` holds ``relation`` to ``tail``, and the ``k`` strongest rationales.

        Terms are names, keys or node ids. Without a relation, and with several to choose from, the likeliest is given.
        """
        ids = [self.vocabulary.find(term) if isinstance(term, str) else term for term in (head, tail)]
        self.check_pair(*ids)
        names = self.relations if relation is None else (relation,)
        found = [self.predict_batch(ids[:1], ids[1:], name, k)[0] for name in names]
        return max(found, key=lambda prediction: prediction.probability)

    def predict_batch(
        self,
        head: Sequence[int] | np.ndarray,
        tail: Sequence[int] | np.ndarray,
        relation: str,
        k: int = 5,
        choose: Filter | None = None,
    ) -> list[Prediction]:
        """One record a pair of node ids, each with the ``k`` strongest rationales that pass ``choose``."""
        heads, tails = self._nodes(head, tail)
        found: list[Prediction] = []
        for part in self._assume(self.network, self.world, heads, tails, self._number(relation), BATCH):
            logit = part.logit.numpy().astype(np.float64)
            calibration = self.calibration.get(relation)
            calibrated = None if calibration is None else calibrate(logit, calibration)
            ids = (part.recalled.heads.target.numpy(), part.recalled.tails.target.numpy())
            found += self.explainer.records(*ids, relation, part, sigmoid(logit), calibrated, k, choose)
        return found

    def _assume(
        self, network: Network, world: World, head: torch.Tensor, tail: torch.Tensor, target: int, batch: int
    ) -> Iterator[Assumptions]:
        """Batch by batch, one at a time whoever asks: what was recalled is kept in tables that threads share."""
        batches = assume(network, world, head, tail, target, batch)
        while True:
            with self._turn:
                part = next(batches, None)
            if part is None:
                return
            yield part

    def check_relation(self, relation: str) -> None:
        """Raise unless the model was trained for the relation."""
        if relation not in self.relations:
            raise UsageError(f"the model does not know the relation {relation}; it knows {', '.join(self.relations)}")

    def check_pair(self, head: int, tail: int) -> None:
        """Raise unless head and tail are two different nodes of the vocabulary."""
        for node in (head, tail):
            if not 0 <= node < len(self.vocabulary):
                raise UsageError(f"there is no node {node}; the vocabulary has {len(self.vocabulary):,} terms")
        if head == tail:
            raise UsageError(f"head and tail are the same term: {self.vocabulary.name[head]}")

    def ends(self, relation: str, side: str) -> np.ndarray:
        """The terms that stand on one side ("head" or "tail") of a relation in some training fact, sorted."""
        chosen = self.facts.relation == self._number(relation)
        return np.unique((self.facts.head if side == "head" else self.facts.tail)[chosen]).astype(np.int64)

    def _number(self, relation: str) -> int:
        self.check_relation(relation)
        return self.all_relations.index(relation)

    def _nodes(self, head: Any, tail: Any) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.network is not None  # raises while there is none
        heads, tails = np.asarray(head, np.int64), np.asarray(tail, np.int64)
        if heads.shape != tails.shape or heads.ndim != 1:
            raise UsageError("heads and tails must be two lists of the same length")
        for nodes in (heads, tails):
            if len(nodes) and not (nodes.min() >= 0 and nodes.max() < len(self.vocabulary)):
                raise UsageError(f"a node id is out of range; the vocabulary has {len(self.vocabulary):,} terms")
        return torch.from_numpy(heads.copy()), torch.from_numpy(tails.copy())

    # On disk

    def save(self, path: Path | str) -> None:
        """Write the model folder: it appears whole or not at all."""
        from cogstage.rationale.storage import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: Path | str) -> CogStage:
        """Read a model folder; what is wrong with it is said in one line."""
        from cogstage.rationale.storage import load

        return load(Path(path))


def _device(name: str | None) -> torch.device:
    if name is not None:
        return torch.device(name)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _warn(graph: Graph, dataset: Dataset, targets: RecallTargets, config: Config, progress: Progress) -> None:
    """Say what is odd about the input but has a defined behaviour."""
    without = graph.n_nodes - len(targets.nodes)
    if without:
        progress.say(
            f"{without:,} of {graph.n_nodes:,} terms have no positive PPMI: nothing is learned of what they recall"
        )
    facts = dataset.for_fitting().train_facts()
    candidates = (
        len(np.unique(np.concatenate([facts.head, facts.tail]))) if config.candidates == "facts" else graph.n_nodes
    )
    if candidates < config.associations:
        progress.say(f"only {candidates} candidates for {config.associations} associations: all of them are recalled")


def _warn_of_chance(dev: Mapping[str, Mapping[str, float]], progress: Progress) -> None:
    """Say what was not learned: early stopping may end while a model still says yes to every pair."""
    for relation, figures in dev.items():
        if figures["auroc"] < CHANCE:
            progress.say(
                f"{relation} was not learned: dev AUROC {figures['auroc']:.2f} is chance;"
                " look at the data, or train for longer (options epochs and patience)"
            )
