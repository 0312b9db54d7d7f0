"""What a trained model answers: predictions, rankings, and the same questions with corrections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cogstage.fitted_state import FittedState, Terms
from cogstage.progress import SILENT, Progress
from cogstage.rationale.corrections import Corrections, marked_triples, numbered
from cogstage.rationale.discover import discover
from cogstage.rationale.explain import Revise
from cogstage.rationale.filters import Filter
from cogstage.rationale.pairs_table import predict_pairs
from cogstage.rationale.predictions import Predictions
from cogstage.rationale.record import Prediction, ProfileEntry, Triple
from cogstage.rationale.verdict import Profiles
from cogstage.training.calibration import sigmoid

if TYPE_CHECKING:
    from typing_extensions import Self

BATCH = 512  # pairs predicted together


class TrainedModel(FittedState):
    """The part of :class:`cogstage.CogStage` that answers questions."""

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

    def profiles(self, head: Terms, tail: Terms, base_rate: float = 0.5) -> Profiles:
        """Judge all relations of many pairs, without reasons.

        Parameters
        ----------
        head, tail
            Terms, one of each per pair: names, synonyms, keys or node ids.
        base_rate
            Share of true pairs that the probabilities assume.

        Returns
        -------
        Profiles
            Arrays of log-odds and verdicts, (number of pairs, number of relations).
        """
        heads, tails = self._nodes(head, tail)
        parts = [self.predictor.profile_logits(self.predictor.view(h, t)) for h, t in _batches(heads, tails)]
        return self._profiles(heads, tails, parts, base_rate)

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
        head: Terms,
        tail: Terms,
        relation: str | None = None,
        k: int | None = None,
        choose: Filter | None = None,
    ) -> Predictions:
        """Predict many pairs, with reasons.

        Parameters
        ----------
        head, tail
            Terms, one of each per pair: names, synonyms, keys or node ids.
        relation
            One of :attr:`relations`; by default the one with the strongest verdict on each pair.
        k
            Largest number of reasons per prediction; all by default. The sum of the others is in ``rest``.
        choose
            Filter for the reasons.

        Returns
        -------
        Predictions
            A list with one record per pair; ``to_frame()`` makes it a table.

        Examples
        --------
        >>> model = cs.CogStage.load("model")
        >>> model.predict_batch(["Drug number 4"], ["Disorder number 5"], "may_treat").to_frame().shape[0]
        1
        """
        heads, tails = self._nodes(head, tail)
        if relation is None:
            return Predictions(
                predict_pairs(self, [(h, t, None) for h, t in zip(heads, tails, strict=True)], k, choose)
            )
        self.check_relation(relation)
        found = [p for h, t in _batches(heads, tails) for p in self._predict(h, t, relation, reasons=k != 0)]
        if choose:
            found = [choose.apply(prediction) for prediction in found]
        return Predictions(found if k is None else [prediction.top(k) for prediction in found])

    def discover(
        self,
        head: str | int | None = None,
        relation: str | None = None,
        *,
        tail: str | int | None = None,
        top: int = 20,
        new_only: bool = False,
        with_facts: bool = False,
        drop_contradicted: bool = False,
        k: int | None = 0,
        choose: Filter | None = None,
        base_rate: float = 0.5,
        progress: Progress = SILENT,
    ) -> Predictions:
        """Rank the most probable tails of a head, or heads of a tail.

        Parameters
        ----------
        head, tail
            The given term; give exactly one of the two.
        relation
            The relation to rank by; by default all that fit the type of the given term, one list after the other.
        top
            Number of candidates to return, for each relation.
        new_only
            Whether to leave out known facts.
        with_facts
            Whether to rank only terms with training facts of the relation, not all terms of a type that fits.
        drop_contradicted
            Whether to leave out candidates for which an opposite relation is known or more likely. By default they
            are marked and ranked below the others.
        k, choose
            Number of reasons per prediction (None for all), and a filter for them.
        base_rate
            Share of true pairs that the probabilities assume. The order does not depend on it.
        progress
            Receiver of progress reports.

        Returns
        -------
        Predictions
            One prediction per candidate with its rank: most probable first, contradicted ones last.

        Examples
        --------
        >>> model = cs.CogStage.load("model")
        >>> candidates = model.discover("Drug number 4", "may_treat", top=3, new_only=True)
        >>> [candidate.rank for candidate in candidates], any(candidate.known_fact for candidate in candidates)
        ([1, 2, 3], False)
        """
        given = {"head": head, "tail": tail}
        nodes = {side: None if term is None else int(self._ids([term])[0]) for side, term in given.items()}
        how = (top, new_only, with_facts, drop_contradicted, k, choose, base_rate, progress)
        return Predictions(discover(self, relation, nodes["head"], nodes["tail"], *how))

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

    def probabilities(self, head: Terms, tail: Terms, relation: str) -> np.ndarray:
        """Predict calibrated probabilities without reasons; faster than :meth:`predict_batch`.

        Parameters
        ----------
        head, tail
            Terms, one of each per pair: names, synonyms, keys or node ids.
        relation
            One of :attr:`relations`.

        Returns
        -------
        numpy.ndarray
            float64 (n,), for a base rate of 0.5.
        """
        return sigmoid(self.logits(head, tail, relation))

    def logits(self, head: Terms, tail: Terms, relation: str) -> np.ndarray:
        """Predict calibrated log-odds without reasons.

        Parameters
        ----------
        head, tail
            Terms, one of each per pair: names, synonyms, keys or node ids.
        relation
            One of :attr:`relations`.

        Returns
        -------
        numpy.ndarray
            float64 (n,), the log-odds of :meth:`probabilities`.
        """
        heads, tails = self._nodes(head, tail)
        target = self._number(relation)
        parts = [self.predictor.logits(h, t, target) for h, t in _batches(heads, tails)]
        return self.calibration[relation].logits(np.concatenate(parts)) if parts else np.empty(0)

    def recognised(self, head: Terms, tail: Terms, relation: str) -> np.ndarray:
        """Score the pairs themselves with the recognition stage, without reasons and calibration.

        Parameters
        ----------
        head, tail
            Terms, one of each per pair: names, synonyms, keys or node ids.
        relation
            One of :attr:`relations`.

        Returns
        -------
        numpy.ndarray
            float64 (n,). A pair with a score above 0 is recognised.
        """
        heads, tails = self._nodes(head, tail)
        return self.predictor.recognised(heads, tails, self._number(relation))

    def corrected(self, corrections: Corrections) -> Self:
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

    def with_verdicts(self, verdicts: Mapping[Triple, bool]) -> Self:
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
        copy = self.__copy__()
        copy._verdicts = {**self._verdicts, **verdicts}
        numbers = numbered(copy._verdicts, self.vocabulary, self.all_relations)
        right, wrong = marked_triples(numbers, len(self.all_relations), len(self.vocabulary))
        explainer = replace(self.explainer, right=right, wrong=wrong)
        copy.__dict__.update(facts=self.facts, explainer=explainer, predictor=self.predictor.revised(numbers))
        return copy


def _batches(heads: np.ndarray, tails: np.ndarray) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    return ((heads[at : at + BATCH], tails[at : at + BATCH]) for at in range(0, len(heads), BATCH))
