"""The three stages wired together: from a question (h, r, t) to the reasons that decide it.

The target pair is never an assumption: in every reason one end of the question is another term.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from cogstage.model.config import Config
from cogstage.model.decision import Decision, WeighedReasons, lift
from cogstage.model.fast.associations import Associations
from cogstage.model.fast.memory import trim
from cogstage.model.recall import Recall
from cogstage.model.recognition import Knowledge, Recognition, Views, features
from cogstage.triples import TripleIndex

PER_TERM = ("recall.term", "recall.context", "recognition.offset", "recognition.fact_vectors")
"""The parameters that have a row per term; all others are the same whatever the vocabulary."""


@dataclass(frozen=True)
class PreparedRecognition:
    """One recognition, ready to be asked: its views of all terms and the associations by both towers."""

    recognition: Recognition
    views: Views
    like_head: Associations
    like_tail: Associations


@dataclass(frozen=True)
class Answer:
    """A batch of questions with all that their decisions rest on."""

    head: Tensor  # (B,)
    tail: Tensor  # (B,)
    association: Tensor  # (B, 2, N) terms like the tail, terms like the head
    likeness: Tensor  # (B, 2, N)
    score: Tensor  # (B, 2, N, K) s_k of (h, j) and of (i, t)
    lifted: Tensor  # (B, 2, N, K) ŝ_k
    known: Tensor  # (B, 2, N, K)
    pair: Tensor  # (B, 2) PPMI and cosine of head and tail
    weighed: WeighedReasons


class Network(nn.Module):
    """The stages; ``targets`` are the relations with a decision, as numbers among the R ``relations``.

    ``ordered``: recognition sees the order in time of two terms. ``folds`` are further recognitions that exist in
    training alone: each has not seen one part of the facts.
    """

    def __init__(
        self,
        config: Config,
        terms: int,
        relations: int,
        targets: Sequence[int],
        opposite: Tensor | None = None,
        ordered: bool = False,
    ) -> None:
        super().__init__()
        self.config, self.relations, self.ordered = config, relations, ordered
        self.recall = Recall(terms, config.dimension)
        self.recognition = Recognition(config, terms, relations, ordered)
        self.folds = nn.ModuleList()
        self.decision = Decision(config, targets, relations, opposite)

    def add_folds(self, count: int) -> None:
        """Make the recognitions for cross-fitting."""
        make = (Recognition(self.config, len(self.recall.term), self.relations, self.ordered) for _ in range(count))
        self.folds = nn.ModuleList(make)

    def ready(
        self,
        candidates: Tensor,
        facts: TripleIndex,
        fold: int | None = None,
        asked: Sequence[Tensor] | None = None,
    ) -> PreparedRecognition:
        """Views and associations as the vectors are now; ``fold`` is the part of the facts not seen.

        If the heads and tails that will be ``asked`` about are given, less is held at a time.
        """
        recognition = self.recognition if fold is None else cast(Recognition, self.folds[fold])
        head, tail = recognition.all_towers(self.recall.term)
        likest = []
        for number, tower in enumerate((head, tail)):
            likest.append(Associations(tower, candidates, self.config.associations))
            if asked is not None:
                likest[number].find(asked[number])
            trim()
        mixed = recognition.mix(head)
        del head  # large, and no longer needed
        return PreparedRecognition(recognition, recognition.views(mixed, tail, facts, fold), *likest)

    def forward(
        self,
        head: Tensor,
        tail: Tensor,
        target: int,
        ready: PreparedRecognition,
        knowledge: Knowledge,
        hidden: int | None = None,
    ) -> Answer:
        """Decide questions of one relation: (B,), (B,). Facts of the fold ``hidden`` are not known."""
        q = self.decision.targets.index(target)
        like_tail, likeness_tail = ready.like_tail.find(tail)  # j (B, N), ℓ(t,j)
        like_head, likeness_head = ready.like_head.find(head)  # i (B, N), ℓ(h,i)
        association = torch.stack([like_tail, like_head], 1)  # (B, 2, N)
        likeness = torch.stack([likeness_tail, likeness_head], 1)
        left = torch.stack([head[:, None].expand_as(like_tail), like_head], 1)  # h of (h, k, j), i of (i, k, t)
        right = torch.stack([like_tail, tail[:, None].expand_as(like_head)], 1)
        ends = left.flatten(), right.flatten()
        score, known = ready.recognition.recognise(ready.views, *ends, knowledge, hidden)
        shape = (*left.shape, -1)
        score, known = score.reshape(shape), known.reshape(shape)
        lifted = lift(score, ready.views.usual_of(left, right))
        ppmi, _ = features(knowledge, head.numpy(), tail.numpy())
        pair = torch.stack([ppmi.to(likeness.dtype), self.recall.similarity(head, tail)], 1)  # (B, 2)
        weighed = self.decision(likeness, lifted, known, pair, q)
        return Answer(head, tail, association, likeness, score, lifted, known, pair, weighed)
