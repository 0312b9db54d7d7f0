"""Would another seed give the same reasons, and does the attention mean anything at all?

Stability is the mean Jaccard overlap of the top-K triples over pairs of models that differ in their seed, beside the
overlap of K triples drawn at random from what each recognised. The ablations replace the learned attention by a uniform
one, and shuffle the entries of every parameter of stages 2 and 3: if figures and reasons stayed the same, the attention
would be decoration.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import torch

from cogstage.errors import UsageError
from cogstage.evaluation.faithfulness import scores_of
from cogstage.evaluation.metrics import score as score_metrics
from cogstage.knowledge.dataset import Dataset, Pairs

if TYPE_CHECKING:
    from cogstage.model.cogstage import Assumptions, Network
    from cogstage.rationale.cogstage import CogStage

BATCH = 64


@dataclass(frozen=True)
class Stability:
    """Mean Jaccard@K over models and pairs, and what chance would give."""

    k: int
    pairs: int
    models: int
    jaccard: float
    chance: float


@torch.no_grad()
def stability(
    models: Sequence[CogStage], data: Dataset, relation: str, k: int = 5, pairs: int = 512, seed: int = 0
) -> Stability:
    """Overlap of the top ``k`` triples between models of different seeds, on test pairs drawn by ``seed``."""
    if len(models) < 2:
        raise UsageError("stability compares models of several seeds; give at least two")
    test = _sample(data, relation, pairs, seed)
    generator = np.random.default_rng(seed)
    tops, chances = [], []
    for model in models:
        top, chance = _triples(model, test, relation, k, generator)
        tops.append(top)
        chances.append(chance)
    return Stability(k, len(test), len(models), _overlap(tops), _overlap(chances))


def _sample(data: Dataset, relation: str, pairs: int, seed: int) -> Pairs:
    test = data.pairs(relation, "test")
    rows = np.sort(np.random.default_rng(seed).choice(len(test), min(pairs, len(test)), replace=False))
    return Pairs(test.head[rows], test.tail[rows], test.label[rows])


def _triples(
    model: CogStage, test: Pairs, relation: str, k: int, generator: np.random.Generator
) -> tuple[list[frozenset[int]], list[frozenset[int]]]:
    """For each pair the keys of its top ``k`` triples, and of ``k`` random ones among those it recognised."""
    top: list[frozenset[int]] = []
    chance: list[frozenset[int]] = []
    for start in range(0, len(test), BATCH):
        rows = slice(start, start + BATCH)
        assumptions = model.assumptions(test.head[rows], test.tail[rows], relation)
        probability = assumptions.relation_probability.flatten(1).numpy()
        score = (assumptions.attention[:, :, None] * assumptions.relation_probability).flatten(1).numpy()
        noise = np.where(probability > 0, generator.random(probability.shape), -1.0)
        keys = _keys(assumptions, len(model.vocabulary))
        for ranked, collected in ((score, top), (noise, chance)):
            best = np.argsort(-ranked, axis=1, kind="stable")[:, :k]
            held = np.take_along_axis(ranked, best, 1) > 0
            chosen = np.take_along_axis(keys, best, 1)
            collected += [frozenset(row[kept].tolist()) for row, kept in zip(chosen, held, strict=True)]
    return top, chance


def _keys(assumptions: Assumptions, nodes: int) -> np.ndarray:
    """A number for each triple (i, k, j) of a batch, (B, P·K), the same in every model of the vocabulary."""
    relations = assumptions.relation_probability.shape[2]
    pair = assumptions.pair_head.numpy().astype(np.int64) * nodes + assumptions.pair_tail.numpy()
    keys: np.ndarray = (pair[:, :, None] * relations + np.arange(relations)).reshape(len(pair), -1)
    return keys


def jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    """|A ∩ B| / |A ∪ B|; two empty sets agree."""
    return len(one & other) / len(one | other) if one | other else 1.0


def _overlap(sets: Sequence[Sequence[frozenset[int]]]) -> float:
    overlaps = [jaccard(a, b) for one, other in combinations(sets, 2) for a, b in zip(one, other, strict=True)]
    return float(np.mean(overlaps))


@dataclass(frozen=True)
class Ablation:
    """What a model scores with its attention as learned, made uniform, or with shuffled parameters."""

    name: str
    f1: float
    auroc: float
    comprehensiveness: float  # of the top 5, over the pairs that this variant predicts positive
    overlap: float  # Jaccard@5 of its top assumptions with those of the model as learned


@torch.no_grad()
def ablations(model: CogStage, data: Dataset, relation: str, pairs: int = 512, seed: int = 0) -> list[Ablation]:
    """The model as learned beside its two ablations, on the same test pairs."""
    test = _sample(data, relation, pairs, seed)
    network = model.network
    shuffled = _shuffled(network, seed)
    learned = _evaluate("as learned", network, model, test, relation, None, uniform=False)
    results = [learned[0]]
    results.append(_evaluate("uniform attention", network, model, test, relation, learned[1], uniform=True)[0])
    results.append(_evaluate("shuffled parameters", shuffled, model, test, relation, learned[1], uniform=False)[0])
    return results


def _shuffled(network: Network, seed: int) -> Network:
    """A copy whose parameters of stages 2 and 3 keep their values but not their places."""
    generator = torch.Generator().manual_seed(seed)
    other = copy.deepcopy(network)
    with torch.no_grad():
        for stage in (other.recognition, other.decision):
            for parameter in stage.parameters():
                flat = parameter.flatten()
                parameter.copy_(flat[torch.randperm(len(flat), generator=generator)].view_as(parameter))
    return other


def _evaluate(
    name: str,
    network: Network,
    model: CogStage,
    test: Pairs,
    relation: str,
    reference: list[frozenset[int]] | None,
    uniform: bool,
) -> tuple[Ablation, list[frozenset[int]]]:
    probabilities, falls, tops = [], [], []
    for start in range(0, len(test), BATCH):
        rows = slice(start, start + BATCH)
        assumptions = model.assumptions(test.head[rows], test.tail[rows], relation, network=network)
        if uniform:
            assumptions = _made_uniform(network, assumptions)
        best = (
            scores_of(assumptions)
            .masked_fill(~assumptions.formed, -1.0)
            .topk(min(5, assumptions.valid.shape[1]))
            .indices
        )
        keep = torch.ones_like(assumptions.valid).scatter(1, best, False)
        whole = assumptions.logit.sigmoid()
        without = network.decide(assumptions, keep).sigmoid()
        falls.append((whole - without)[whole >= 0.5].numpy())
        probabilities.append(whole.numpy())
        pair = assumptions.pair_head * len(model.vocabulary) + assumptions.pair_tail
        tops += [frozenset(row) for row in pair.gather(1, best).tolist()]
    probability, fall = np.concatenate(probabilities), np.concatenate(falls)
    figures = score_metrics(test.label, probability)
    overlap = (
        1.0 if reference is None else float(np.mean([jaccard(a, b) for a, b in zip(reference, tops, strict=True)]))
    )
    mean_fall = float(fall.mean()) if len(fall) else float("nan")
    return Ablation(name, figures["f1"], figures["auroc"], mean_fall, overlap), tops


def _made_uniform(network: Network, assumptions: Assumptions) -> Assumptions:
    gate = torch.zeros_like(assumptions.gate)
    attention = network.decision.weights(gate, assumptions.valid)
    logit = network.decision.logit(attention, assumptions.value, assumptions.head_number)
    return dataclasses.replace(assumptions, gate=gate, attention=attention, logit=logit)
