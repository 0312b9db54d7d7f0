"""The equations written down as they stand: loops over pairs, relations and coordinates, dense targets, no tricks.

Slow and in float64. Works on a dictionary of parameters named as in the network, so that gradients can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

Parameters = dict[str, Tensor]


@dataclass
class Decided:
    """One target: p(k|i,j), attention, value for each pair (i, j), in order, and the logit."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    probability: list[list[Tensor]] = field(default_factory=list)
    attention: list[Tensor] = field(default_factory=list)
    value: list[Tensor] = field(default_factory=list)
    logit: Tensor = field(default_factory=lambda: torch.zeros(()))

    def rationale_scores(self) -> list[list[Tensor]]:
        """p_ij · p(k|i,j)."""
        return [[a * p for p in row] for a, row in zip(self.attention, self.probability, strict=True)]


def recall_probability(w: Parameters, i: int) -> list[Tensor]:
    """p(j|i) for every j of V."""
    term, context = w["recall.term"], w["recall.context"]
    power = []
    for j in range(len(context)):
        dot = torch.zeros((), dtype=term.dtype)
        for x in range(term.shape[1]):
            dot = dot + context[j, x] * term[i, x]
        power.append(dot.exp())
    total = sum(power)
    return [value / total for value in power]


def recall_loss(w: Parameters, ppmi: Tensor, nodes: list[int]) -> Tensor:
    """L_n summed over nodes, against dense PPMI (V, V)."""
    loss = torch.zeros((), dtype=w["recall.term"].dtype)
    for i in nodes:
        total = float(ppmi[i].sum())
        if total == 0:
            continue
        p = recall_probability(w, i)
        for j in range(len(p)):
            loss = loss - float(ppmi[i, j]) / total * p[j].log()
    return loss


def associations(w: Parameters, i: int, candidates: list[int], count: int) -> list[tuple[int, float]]:
    """The best candidates of p(·|i) with their p, best first."""
    p = recall_probability(w, i)
    ranked = sorted(((p[j].item(), j) for j in candidates), key=lambda entry: -entry[0])
    return [(j, probability) for probability, j in ranked[:count]]


def l1(a: Tensor, r: Tensor, b: Tensor) -> Tensor:
    """‖a + r - b‖₁."""
    total = torch.zeros((), dtype=a.dtype)
    for x in range(len(a)):
        total = total + (a[x] + r[x] - b[x]).abs()
    return total


def transe_scores(w: Parameters, i: int, j: int) -> list[Tensor]:
    """s_k(i,j) for every relation, inverse and NA."""
    term, relation = w["recall.term"], w["recognition.relation"]
    return [-l1(term[i], relation[k], term[j]) for k in range(len(relation))]


def bilinear_scores(w: Parameters, i: int, j: int, scale: float) -> list[Tensor]:
    """s_k(i,j) of the bilinear recognition; inverses are read backwards, NA is 0."""

    def seen(node: int) -> Tensor:
        vector = w["recall.term"][node]
        return vector / vector.norm() * len(vector) ** 0.5 + w["recognition.offset"][node]

    def score(a: int, b: int, k: int) -> Tensor:
        head = (seen(a) @ w["recognition.w_head"] + w["recognition.b_head"]).tanh()
        tail = (seen(b) @ w["recognition.w_tail"] + w["recognition.b_tail"]).tanh()
        return scale * (head @ w["recognition.matrix"][k] @ tail) + w["recognition.bias"][k]

    count = len(w["recognition.bias"])
    there = [score(i, j, k) for k in range(count)]
    return [*there, *(score(j, i, k) for k in range(count)), torch.zeros((), dtype=there[0].dtype)]


def recognised(scores: list[Tensor], masked: set[int]) -> list[Tensor]:
    """p(k|i,j): softmax over the k that beat NA and are not masked."""
    na = scores[-1]
    chosen = [k for k in range(len(scores) - 1) if scores[k].item() > na.item() and k not in masked]
    p = [torch.zeros((), dtype=na.dtype) for _ in scores[:-1]]
    if chosen:
        top = max(scores[k].item() for k in chosen)
        total = sum((scores[k] - top).exp() for k in chosen)
        for k in chosen:
            p[k] = (scores[k] - top).exp() / total
    return p


def masked_relations(h: int, r: int, t: int, i: int, j: int, relations: int) -> set[int]:
    """The relations that (i, j) must not show: the target and its inverse."""
    inverse = r + relations if r < relations else r - relations
    return ({r} if (i, j) == (h, t) else set()) | ({inverse} if (i, j) == (t, h) else set())


def decide(
    w: Parameters,
    h: int,
    r: int,
    t: int,
    heads: list[tuple[int, float]],
    tails: list[tuple[int, float]],
    relations: int,
    *,
    head_number: int = 0,
    clip: float | None = None,
    bilinear: float | None = None,
    known: dict[tuple[int, int], set[int]] | None = None,
    recall_features: bool = False,
    silent_unformed: bool = False,
    nearness: bool = False,
    hide_pair: bool = False,
    usual: Callable[[int, int, int], bool] = lambda i, k, j: True,
) -> Decided:
    """Stages 2 and 3 for the target (h, r, t); ``clip`` asks for margins, the rest are the options of their names."""
    q, made = head_number, Decided()
    vectors, kept, speaks = [], [], []
    for i, p_i in heads:
        for j, p_j in tails:
            masked = masked_relations(h, r, t, i, j, relations)
            scores = transe_scores(w, i, j) if bilinear is None else bilinear_scores(w, i, j, bilinear)
            facts = ({} if known is None else known).get((i, j), set()) - masked
            for k in facts:
                scores[k] = torch.maximum(scores[k], scores[-1] + clip)
            masked |= {k for k in range(2 * relations) if k not in facts and not usual(i, k, j)}
            p = recognised(scores, masked)
            a = torch.zeros(w["recognition.relation"].shape[1], dtype=scores[0].dtype)
            for k in range(2 * relations):
                a = a + p[k] * w["recognition.relation"][k]
            total = w["pair_vectors.bias"][q] + a @ w["pair_vectors.w_relation"][q]
            if "pair_vectors.w_head" in w:
                total = total + w["recall.term"][i] @ w["pair_vectors.w_head"][q]
                total = total + w["recall.term"][j] @ w["pair_vectors.w_tail"][q]
            if clip is not None:
                for k in range(2 * relations):
                    margin = torch.zeros((), dtype=a.dtype) if k in masked else (scores[k] - scores[-1]).clamp(0, clip)
                    total = total + margin * w["pair_vectors.w_margin"][q, k]
            for k in facts:
                total = total + w["pair_vectors.w_known"][q, k]
            if recall_features:
                own_h, own_t = i == h, j == t
                log_h = 0.0 if own_h else math.log(p_i / heads[0][1])
                log_t = 0.0 if own_t else math.log(p_j / tails[0][1])
                for x, feature in enumerate((log_h, log_t, float(own_h), float(own_t), float(own_h and own_t))):
                    total = total + feature * w["pair_vectors.w_recall"][q, x]
            if nearness:
                for x, (own, other) in enumerate(((h, i), (t, j))):
                    a_, b_ = w["recall.term"][own].detach(), w["recall.term"][other].detach()
                    total = total + (a_ @ b_) / (a_.norm() * b_.norm()) * w["pair_vectors.w_near"][q, x]
            made.pairs.append((i, j))
            made.probability.append(p)
            vectors.append(total.tanh())
            kept.append(not (hide_pair and (i, j) in ((h, t), (t, h))))
            speaks.append(not silent_unformed or any(x.item() > 0 for x in p))
    return _weigh(w, made, vectors, kept, q, speaks)


def decide_on_facts(
    w: Parameters,
    facts: list[tuple[int, int, int]],
    h: int,
    r: int,
    t: int,
    count: int,
    relations: int,
    candidates: list[int],
) -> Decided:
    """The closed world: training facts and their inverses ranked by p(a|h)·p(b|t), the target and its inverse out."""
    inverse = r + relations if r < relations else r - relations
    both = sorted({*facts, *((b, k + relations, a) for a, k, b in facts)})
    p_h, p_t = recall_probability(w, h), recall_probability(w, t)
    usable = [f for f in both if f != (h, r, t) and f != (t, inverse, h)]
    usable.sort(key=lambda f: -(p_h[f[0]] * p_t[f[2]]).item())
    made, vectors = Decided(), []
    for a, k, b in usable[:count]:
        one = torch.ones((), dtype=w["recall.term"].dtype)
        seen_a, seen_b = (w["recall.term"][x].detach() + w["recognition.offset"][x] for x in (a, b))
        vector = torch.cat([seen_a, seen_b, w["recognition.relation"][k]])
        w_p = torch.cat([w[f"pair_vectors.{name}"][0] for name in ("w_head", "w_tail", "w_relation")])
        made.pairs.append((a, b))
        made.probability.append([one if x == k else 0 * one for x in range(2 * relations)])
        vectors.append((vector @ w_p + w["pair_vectors.bias"][0]).tanh())
    return _weigh(w, made, vectors, [True] * len(vectors), 0, [True] * len(vectors))


def _weigh(
    w: Parameters, made: Decided, vectors: list[Tensor], kept: list[bool], q: int, speaks: list[bool]
) -> Decided:
    gates = []
    for e in vectors:
        hidden = e
        if "decision.w_attention" in w:
            hidden = (e @ w["decision.w_attention"][q] + w["decision.b_attention"][q]).tanh()
        gate = (hidden * w["decision.v"][q]).sum()
        if "decision.sharpness" in w:
            gate = gate * w["decision.sharpness"][q].exp()
        gates.append(gate)
    total = sum(
        (g.exp() for g, keep in zip(gates, kept, strict=True) if keep), start=torch.zeros((), dtype=gates[0].dtype)
    )
    r = torch.zeros_like(vectors[0])
    for e, g, keep, says in zip(vectors, gates, kept, speaks, strict=True):
        weight = g.exp() / total if keep else torch.zeros_like(g)
        said = e if says else torch.zeros_like(e)
        r = r + weight * said
        made.attention.append(weight)
        made.value.append(w["decision.w_relation"][q] @ said)
    made.logit = w["decision.w_relation"][q] @ r + w["decision.bias"][q]
    return made


def triple_loss(
    w: Parameters, triples: list[tuple[int, int, int]], heads: list[list[int]], tails: list[list[int]]
) -> Tensor:
    """L_r summed: -log p(t|h,r) - log p(h|t,r), against the given corrupted heads and tails."""

    def score(h: int, r: int, t: int) -> Tensor:
        return -l1(w["recall.term"][h], w["recognition.relation"][r], w["recall.term"][t])

    loss = torch.zeros((), dtype=w["recall.term"].dtype)
    for (h, r, t), wrong_heads, wrong_tails in zip(triples, heads, tails, strict=True):
        true = score(h, r, t).exp()
        loss = loss - (true / (true + sum(score(h, r, x).exp() for x in wrong_tails))).log()
        loss = loss - (true / (true + sum(score(x, r, t).exp() for x in wrong_heads))).log()
    return loss


def relation_loss(w: Parameters, pairs: list[tuple[int, int]], names: list[int]) -> Tensor:
    """-log of the softmax over all relations and NA, summed."""
    loss = torch.zeros((), dtype=w["recall.term"].dtype)
    for (i, j), name in zip(pairs, names, strict=True):
        power = [s.exp() for s in transe_scores(w, i, j)]
        loss = loss - (power[name] / sum(power)).log()
    return loss


def logistic_loss(
    w: Parameters, triples: list[tuple[int, int, int]], label: list[float], weight: list[float], scale: float
) -> Tensor:
    """The bilinear L_r: weighted logistic losses, summed."""
    loss = torch.zeros((), dtype=w["recall.term"].dtype)
    for (h, r, t), y, share in zip(triples, label, weight, strict=True):
        p = 1 / (1 + (-bilinear_scores(w, h, t, scale)[r]).exp())
        loss = loss - share * (y * p.log() + (1 - y) * (1 - p).log())
    return loss
