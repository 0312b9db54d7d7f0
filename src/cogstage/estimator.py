"""``CogStage``: fit, predict, save and load a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.errors import UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.dataset import Dataset, FittingView
from cogstage.model.presets import preset_config
from cogstage.model_folder import Fitted, graph_fields
from cogstage.progress import Progress, default_progress
from cogstage.rationale.corrections import Corrections, marked_triples, numbered
from cogstage.rationale.explain import Explainer, Revise
from cogstage.rationale.filters import Filter
from cogstage.rationale.predictor import Predictor
from cogstage.rationale.record import Prediction, ProfileEntry, Triple
from cogstage.rationale.verdict import Profiles
from cogstage.training.calibration import Calibration, sigmoid
from cogstage.triples import TripleIndex

BATCH = 512  # pairs predicted together


class CogStage:
    """A model that predicts relations between two terms, with reasons that add up to each prediction.

    Parameters
    ----------
    relation
        One relation, a list of relations, or "all" relations of the data set.
    preset
        "default", or "paper" for the published model.
    world
        "open": reasons are known facts and recognised triples; "closed": reasons are known facts only.
    seed
        Random seed.
    options
        Other options of the configuration, for example ``folds=5``. ``cogstage train --options`` lists them.

    Examples
    --------
    >>> graph, data = cs.Graph.load("graph"), cs.Dataset.load("data")
    >>> model = cs.CogStage("may_treat", dimension=8, recognition_passes=1, folds=0)
    >>> model.fit(graph, data).relations
    ('may_treat',)
    >>> 0 <= model.predict("Drug number 4", "Disorder number 5").probability <= 1
    True
    """

    def __init__(
        self,
        relation: str | Sequence[str] = "all",
        *,
        world: str = "open",
        preset: str = "default",
        seed: int = 0,
        **options: Any,
    ) -> None:
        self._asked, self.preset, self.seed = relation, preset, seed
        self.config = preset_config(preset).replace(world=world, **options)
        self._fitted: Fitted | None = None
        self._verdicts: dict[Triple, bool] = {}

    # Fitting

    def fit(
        self,
        graph: Graph,
        data: FittingView | Dataset,
        *,
        progress: Progress | None = None,
        checkpoint: Path | str | None = None,
        checkpoint_every: float = 30.0,
        resume: bool = False,
        time_limit: float | None = None,
        trace: Path | str | None = None,
        tensorboard: Path | str | None = None,
    ) -> CogStage:
        """Train the model.

        Parameters
        ----------
        graph
            The co-occurrence graph.
        data
            A data set built on the graph, or its fitting view. Only the fitting view is used.
        progress
            Receiver of progress reports; by default, they are shown in a terminal or notebook.
        checkpoint, checkpoint_every, resume
            Checkpoint folder, seconds between checkpoints, and whether to continue from the last one.
        time_limit
            Number of seconds after which training stops.
        trace, tensorboard
            File for the training history (one JSON line per round), and folder for TensorBoard event files.

        Returns
        -------
        CogStage
            The model itself. Under ``torchrun``, all processes train it together.
        """
        from cogstage.training.fitting import FitOptions, train

        view = data.for_fitting() if isinstance(data, Dataset) else data
        progress = default_progress() if progress is None else progress
        options = FitOptions(progress, checkpoint, checkpoint_every, resume, time_limit, trace, tensorboard)
        targets = self._targets(view)
        trained = train(graph, view, targets, self.config, self.seed, options)
        self._use(
            Fitted(
                preset=self.preset,
                seed=self.seed,
                config=self.config,
                relations=tuple(view.relations),
                targets=tuple(targets),
                network=trained.network,
                calibration=dict(trained.calibration),
                metrics={**trained.metrics, "sources": dict(view.sources)},
                facts=view.train_facts(),
                **graph_fields(graph),
            )
        )
        return self

    def _targets(self, view: FittingView) -> list[int]:
        asked = view.relations if self._asked == "all" else self._asked
        names = [asked] if isinstance(asked, str) else list(asked)
        for name in names:
            if name not in view.relations:
                raise UsageError(f"the data set has no relation {name}; it has {', '.join(view.relations)}")
        return [view.relations.index(name) for name in dict.fromkeys(names)]

    def _use(self, fitted: Fitted) -> None:
        self._fitted = fitted
        for name in ("predictor", "explainer", "facts"):
            self.__dict__.pop(name, None)

    # What was fitted

    @property
    def fitted(self) -> Fitted:
        """Everything that :meth:`fit` learned; a :class:`UsageError` before that."""
        if self._fitted is None:
            raise UsageError("the model is not fitted yet; call fit() or load()")
        return self._fitted

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that the model predicts."""
        return tuple(self.fitted.relations[target] for target in self.fitted.targets)

    @property
    def all_relations(self) -> tuple[str, ...]:
        """All relations of the data set, including those that the model only uses in reasons."""
        return self.fitted.relations

    @property
    def vocabulary(self) -> Vocabulary:
        """The terms of the graph."""
        return self.fitted.vocabulary

    @property
    def counts(self) -> PairCounts:
        """The co-occurrence counts that explanations cite."""
        return self.fitted.counts

    @property
    def graph(self) -> Graph:
        """The graph, rebuilt from the counts in the model."""
        return self.fitted.graph

    @property
    def metrics(self) -> dict[str, Any]:
        """Figures on dev pairs and the training history."""
        return self.fitted.metrics

    @property
    def calibration(self) -> dict[str, Calibration]:
        """Shift and slope of the log-odds, for each relation."""
        return self.fitted.calibration

    @cached_property
    def facts(self) -> TripleIndex:
        """Index of the training facts, for looking up whether a triple is known."""
        return TripleIndex(self.fitted.facts, len(self.all_relations), len(self.vocabulary))

    @cached_property
    def predictor(self) -> Predictor:
        """The network with corrections applied."""
        predictor = self.fitted.predictor()
        verdicts = self._verdicts
        return predictor.revised(numbered(verdicts, self.vocabulary, self.all_relations)) if verdicts else predictor

    @cached_property
    def explainer(self) -> Explainer:
        """Converts arrays of reasons into prediction records."""
        return self.fitted.explainer(self.facts)

    @property
    def privacy(self) -> str:
        """How the counts are protected: "none", suppressed, or differentially private."""
        return self.fitted.privacy

    # Predicting

    def predict(self, head: str | int, tail: str | int, relation: str | None = None) -> Prediction:
        """Predict one pair, with the reasons that add up to the probability.

        Parameters
        ----------
        head, tail
            Terms, as names, synonyms, keys or node ids.
        relation
            One of :attr:`relations`; by default the one with the strongest verdict (known facts first).

        Returns
        -------
        Prediction
            The probability and its reasons. Use :meth:`Prediction.without` and :meth:`Prediction.assuming` to
            change them.

        Raises
        ------
        UsageError
            If a term or the relation is unknown, or if head and tail are the same. For an unknown term, the message
            suggests similar names.
        """
        heads, tails = self._pair(head, tail)
        return self._predict(heads, tails, relation)[0]

    def relations_of(self, head: str | int, tail: str | int) -> tuple[ProfileEntry, ...]:
        """Return what is said of each relation between two terms: the profile of the pair.

        Parameters
        ----------
        head, tail
            Terms, as names, synonyms, keys or node ids.

        Returns
        -------
        tuple of ProfileEntry
            One entry per relation of the model, known facts and the likeliest first, at a base rate of 0.5.

        Examples
        --------
        >>> profile = cs.CogStage.load("model").relations_of("Drug number 4", "Disorder number 5")
        >>> sorted(entry.relation for entry in profile)
        ['causes', 'may_treat']
        """
        return self.profiles(*self._pair(head, tail)).entries()[0]

    def profiles(
        self, head: Sequence[int] | np.ndarray, tail: Sequence[int] | np.ndarray, base_rate: float = 0.5
    ) -> Profiles:
        """Judge all relations of many pairs, without reasons.

        Parameters
        ----------
        head, tail
            Node ids, one of each per pair.
        base_rate
            Share of true pairs that the probabilities assume.

        Returns
        -------
        Profiles
            Arrays of log-odds and verdicts, (number of pairs, number of relations).
        """
        heads, tails = self._nodes(head, tail)
        views = (
            self.predictor.view(heads[at : at + BATCH], tails[at : at + BATCH]) for at in range(0, len(heads), BATCH)
        )
        return self._profiles(heads, tails, map(self.predictor.profile_logits, views), base_rate)

    def _profiles(
        self, head: np.ndarray, tail: np.ndarray, parts: Iterable[np.ndarray], base_rate: float = 0.5
    ) -> Profiles:
        """The profiles of pairs whose uncalibrated logits (B, Q) come in parts."""
        logit = np.concatenate([np.empty((0, len(self.relations))), *parts])
        for column, name in enumerate(self.relations):
            logit[:, column] = self.calibration[name].logits(logit[:, column])
        return self.explainer.profiles(head, tail, self.relations, logit, base_rate)

    def predict_batch(
        self,
        head: Sequence[int] | np.ndarray,
        tail: Sequence[int] | np.ndarray,
        relation: str,
        k: int | None = None,
        choose: Filter | None = None,
    ) -> list[Prediction]:
        """Predict many pairs, with reasons.

        Parameters
        ----------
        head, tail
            Node ids, one of each per pair.
        relation
            One of :attr:`relations`.
        k
            Largest number of reasons per prediction; all by default. The sum of the others is in ``rest``.
        choose
            Filter for the reasons.

        Returns
        -------
        list of Prediction
            One record per pair.
        """
        self.check_relation(relation)
        heads, tails = self._nodes(head, tail)
        predictions: list[Prediction] = []
        for at in range(0, len(heads), BATCH):
            h, t = heads[at : at + BATCH], tails[at : at + BATCH]
            predictions += self._predict(h, t, relation, reasons=k != 0)
        if choose:
            predictions = [choose.apply(prediction) for prediction in predictions]
        return predictions if k is None else [prediction.top(k) for prediction in predictions]

    def _predict(
        self, head: np.ndarray, tail: np.ndarray, relation: str | None, reasons: bool = True
    ) -> list[Prediction]:
        """Records of one relation, by default the likeliest of the first pair; each pair is looked at once."""
        view = self.predictor.view(head, tail)
        profiles = self._profiles(head, tail, [self.predictor.profile_logits(view)])
        relation = relation or profiles.likeliest()[0]
        arrays = self.predictor.reasons(view, self._number(relation), self.calibration[relation])
        return self.explainer.records(head, tail, relation, arrays, profiles, self._revise(relation), reasons)

    def _revise(self, relation: str) -> Callable[[int, int], Revise]:
        """Predict the same pair again with more corrections, for what-if questions."""

        def of_pair(head: int, tail: int) -> Revise:
            return lambda verdicts: self.with_verdicts(verdicts).predict_batch([head], [tail], relation)[0]

        return of_pair

    def probabilities(
        self, head: Sequence[int] | np.ndarray, tail: Sequence[int] | np.ndarray, relation: str
    ) -> np.ndarray:
        """Predict calibrated probabilities without reasons; faster than :meth:`predict_batch`.

        Parameters
        ----------
        head, tail
            Node ids, one of each per pair.
        relation
            One of :attr:`relations`.

        Returns
        -------
        numpy.ndarray
            float64 (n,), for a base rate of 0.5.
        """
        return sigmoid(self.logits(head, tail, relation))

    def logits(self, head: Sequence[int] | np.ndarray, tail: Sequence[int] | np.ndarray, relation: str) -> np.ndarray:
        """Predict calibrated log-odds without reasons.

        Parameters
        ----------
        head, tail
            Node ids, one of each per pair.
        relation
            One of :attr:`relations`.

        Returns
        -------
        numpy.ndarray
            float64 (n,), the log-odds of :meth:`probabilities`.
        """
        heads, tails = self._nodes(head, tail)
        target = self._number(relation)
        parts = [
            self.predictor.logits(heads[at : at + BATCH], tails[at : at + BATCH], target)
            for at in range(0, len(heads), BATCH)
        ]
        return self.calibration[relation].logits(np.concatenate(parts)) if parts else np.empty(0)

    def recognised(
        self, head: Sequence[int] | np.ndarray, tail: Sequence[int] | np.ndarray, relation: str
    ) -> np.ndarray:
        """Score the pairs themselves with the recognition stage, without reasons and calibration.

        Parameters
        ----------
        head, tail
            Node ids, one of each per pair.
        relation
            One of :attr:`relations`.

        Returns
        -------
        numpy.ndarray
            float64 (n,). A pair with a score above 0 is recognised.
        """
        heads, tails = self._nodes(head, tail)
        return self.predictor.recognised(heads, tails, self._number(relation))

    # What if

    def corrected(self, corrections: Corrections) -> CogStage:
        """Return a copy with corrections: right triples count as known facts, and wrong ones are not recognised.

        Parameters
        ----------
        corrections
            Triples marked right or wrong.

        Returns
        -------
        CogStage
            A model that shares the fitted state. The network is not trained again.

        Raises
        ------
        UsageError
            If a term or relation of a correction is unknown.
        """
        if not len(corrections):
            return self
        return self.with_verdicts(corrections.verdicts(self.vocabulary, self.all_relations))

    def with_verdicts(self, verdicts: Mapping[Triple, bool]) -> CogStage:
        """Return a copy in which the given triples are marked right or wrong.

        Parameters
        ----------
        verdicts
            Maps triples (key of the head, relation, key of the tail) to True for right or False for wrong.

        Returns
        -------
        CogStage
            A model that shares the fitted state.
        """
        copy = CogStage(self._asked, preset=self.preset, seed=self.seed, **self.config.to_dict())
        copy._fitted, copy._verdicts = self._fitted, {**self._verdicts, **verdicts}
        numbers = numbered(copy._verdicts, self.vocabulary, self.all_relations)
        right, wrong = marked_triples(numbers, len(self.all_relations), len(self.vocabulary))
        copy.__dict__["facts"] = self.facts
        copy.__dict__["explainer"] = replace(self.explainer, right=right, wrong=wrong)
        copy.__dict__["predictor"] = self.predictor.revised(numbers)
        return copy

    def on_graph(self, graph: Graph) -> CogStage:
        """Return a copy that uses the terms and counts of another graph; recognition and decision stay as trained.

        Terms are matched by their keys. A term that was not in the training graph gets its vector from the terms it
        co-occurs with. Training facts between terms that are missing from the other graph are dropped.

        Parameters
        ----------
        graph
            The other graph; its terms must have the same kind of keys.

        Returns
        -------
        CogStage
            A model of the default preset for the terms of ``graph``.
        """
        copy = CogStage(self._asked, preset=self.preset, seed=self.seed, **self.config.to_dict())
        copy._use(self.fitted.on_graph(graph))
        return copy

    # Checks

    def check_relation(self, relation: str) -> None:
        """Raise a :class:`UsageError` unless the model predicts the relation.

        Parameters
        ----------
        relation
            Name of a relation.
        """
        if relation not in self.relations:
            raise UsageError(f"the model does not know the relation {relation}; it knows {', '.join(self.relations)}")

    def check_pair(self, head: int, tail: int) -> None:
        """Raise a :class:`UsageError` unless head and tail are two different nodes of the vocabulary.

        Parameters
        ----------
        head, tail
            Node ids.
        """
        for node in (head, tail):
            if not 0 <= node < len(self.vocabulary):
                raise UsageError(f"there is no node {node}; the vocabulary has {len(self.vocabulary):,} terms")
        if head == tail:
            raise UsageError(f"head and tail are the same term: {self.vocabulary.name[head]}")

    def ends(self, relation: str, side: str) -> np.ndarray:
        """Return all heads or all tails of the training facts of a relation.

        Parameters
        ----------
        relation
            One of :attr:`relations`.
        side
            "head" or "tail".

        Returns
        -------
        numpy.ndarray
            int64 (n,), sorted node ids.
        """
        facts = self.fitted.facts
        chosen = facts.relation == self._number(relation)
        return np.unique((facts.head if side == "head" else facts.tail)[chosen]).astype(np.int64)

    def _pair(self, head: str | int, tail: str | int) -> tuple[np.ndarray, np.ndarray]:
        """The node ids of one pair, each as an array of one."""
        ids = [self.vocabulary.find(term) if isinstance(term, str) else term for term in (head, tail)]
        self.check_pair(*ids)
        return np.array(ids[:1], np.int64), np.array(ids[1:], np.int64)

    def _number(self, relation: str) -> int:
        self.check_relation(relation)
        return self.all_relations.index(relation)

    def _nodes(self, head: Any, tail: Any) -> tuple[np.ndarray, np.ndarray]:
        heads, tails = np.asarray(head, np.int64), np.asarray(tail, np.int64)
        if heads.shape != tails.shape or heads.ndim != 1:
            raise UsageError("heads and tails must be two lists of the same length")
        for nodes in (heads, tails):
            if len(nodes) and not (nodes.min() >= 0 and nodes.max() < len(self.vocabulary)):
                raise UsageError(f"a node id is out of range; the vocabulary has {len(self.vocabulary):,} terms")
        return heads, tails

    # On disk

    def save(self, path: Path | str) -> None:
        """Write the model folder with a release report.

        Parameters
        ----------
        path
            Folder to write. An existing model is replaced; any other folder is refused.
        """
        self.__dict__.pop("predictor", None)  # it holds as much memory again; the next prediction makes it anew
        self.fitted.save(Path(path))

    @classmethod
    def load(cls, path: Path | str) -> CogStage:
        """Read a model folder and check its files against their hashes.

        Parameters
        ----------
        path
            Folder written by :meth:`save` or ``cogstage train``.

        Returns
        -------
        CogStage
            The trained model.

        Raises
        ------
        UsageError
            If ``path`` is not a finished model folder.
        CogstageError
            If a file is missing or damaged, or an older version wrote the folder.
        """
        fitted = Fitted.load(Path(path))
        names = [fitted.relations[target] for target in fitted.targets]
        model = cls(names, preset=fitted.preset, seed=fitted.seed, **fitted.config.to_dict())
        model._use(fitted)
        return model
