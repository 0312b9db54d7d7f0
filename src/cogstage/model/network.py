"""The three stages wired together: what is seen of a pair, once, and the decision for each relation.

The target pair is never an assumption: in every reason one end of the question is another term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cogstage.model.config import Config
from cogstage.model.decision import DecisionWeights, PairView
from cogstage.model.recall import Associations, similarity
from cogstage.model.recognition import Knowledge, Recognition, RecognitionWeights, inputs


@dataclass(frozen=True)
class Network:
    """What the default model learned, as arrays; ``targets`` are the relations with a decision, as numbers."""

    config: Config
    term: np.ndarray  # υ (V, d)
    fact: np.ndarray  # ρ (V, d)
    recognition: RecognitionWeights
    decisions: Mapping[int, DecisionWeights]  # by target

    @property
    def targets(self) -> tuple[int, ...]:
        """The relations with a decision."""
        return tuple(self.decisions)

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by name; those of the decisions are stacked by target."""
        stages: dict[str, np.ndarray] = {"recall.term": self.term, "recall.fact": self.fact}
        for entry in fields(RecognitionWeights):
            stages[f"recognition.{entry.name}"] = getattr(self.recognition, entry.name)
        for entry in fields(DecisionWeights):
            stages[f"decision.{entry.name}"] = np.stack([getattr(one, entry.name) for one in self.decisions.values()])
        return stages

    @classmethod
    def from_arrays(cls, config: Config, targets: Sequence[int], arrays: Mapping[str, np.ndarray]) -> Network:
        """What :meth:`arrays` gave, without a copy."""

        def part(kind: Any, prefix: str, row: Any = ...) -> Any:
            return kind(**{entry.name: arrays[f"{prefix}.{entry.name}"][row] for entry in fields(kind)})

        return cls(
            config,
            arrays["recall.term"],
            arrays["recall.fact"],
            part(RecognitionWeights, "recognition"),
            {target: part(DecisionWeights, "decision", row) for row, target in enumerate(targets)},
        )


def network_shapes(config: Config, terms: int, relations: int, targets: int) -> dict[str, tuple[int, ...]]:
    """The shape of every array of :meth:`Network.arrays`."""
    d, w, r, q = config.dimension, config.tower, relations, targets
    shapes: dict[str, tuple[int, ...]] = {"recall.term": (terms, d), "recall.fact": (terms, d)}
    shapes |= {"recognition.offset": (terms, 2 * d)}
    shapes |= {f"recognition.w_{end}": (2 * d, w) for end in ("head", "tail")}
    shapes |= {f"recognition.b_{end}": (w,) for end in ("head", "tail")}
    shapes |= {f"recognition.{name}": (r, w, w) for name in ("related", "contrast")}
    shapes |= {f"recognition.{name}": (r,) for name in ("related_bias", "contrast_bias", "ppmi", "order")}
    shapes |= {f"decision.{name}": (q, 2) for name in ("sharpness", "scale", "pair")}
    return shapes | {"decision.value": (q, 2 * r), "decision.fact": (q, 2 * r), "decision.bias": (q,)}


class PreparedNetwork:
    """A network with the towers and associations of its terms, ready to be asked.

    ``hidden`` is the fold of facts that are not known, for cross-fitting.
    """

    def __init__(
        self,
        config: Config,
        term: np.ndarray,
        fact: np.ndarray,
        weights: RecognitionWeights,
        candidates: np.ndarray,
        knowledge: Knowledge,
        hidden: int | None = None,
    ) -> None:
        self._config, self._term, self._knowledge = config, term, knowledge
        self.recognition = Recognition(weights, inputs(term, fact), config.margin, knowledge.facts, hidden)
        self.of_head = Associations(self.recognition.head, candidates, config.associations)
        self.of_tail = Associations(self.recognition.tail, candidates, config.associations)

    def view(self, head: np.ndarray, tail: np.ndarray, knowledge: Knowledge | None = None) -> PairView:
        """What is seen of pairs (B,), (B,), whichever relation is asked; ``knowledge`` may hold corrections."""
        knowledge = knowledge or self._knowledge
        like_tail, tail_similarity = self.of_tail.nearest(tail)  # j (B, N), ℓ(t,j)
        like_head, head_similarity = self.of_head.nearest(head)  # i (B, N), ℓ(h,i)
        recognition, relations = self.recognition, self.recognition.relations
        kinds = []
        for node, other, turned in ((head, like_tail, False), (tail, like_head, True)):
            score, known = recognition.recognise(node, other, knowledge)
            lifted = recognition.lift(node, other, score)
            # (i, k, t) is (t, k⁻¹, i)
            kinds.append([np.roll(values, relations, 2) if turned else values for values in (score, lifted, known)])
        score, lifted, known = (np.stack(values, 1) for values in zip(*kinds, strict=True))
        pair = np.stack([knowledge.counts.ppmi(head, tail), similarity(self._term, head, tail)], 1)
        return PairView(
            head,
            tail,
            np.stack([like_tail, like_head], 1),
            np.stack([tail_similarity, head_similarity], 1),
            score,
            lifted,
            known,
            pair.astype(score.dtype),
        )

    def warm(self, nodes: np.ndarray) -> None:
        """Compute the associations of these terms in advance."""
        self.of_head.nearest(nodes)
        self.of_tail.nearest(nodes)
