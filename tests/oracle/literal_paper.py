"""The published equations written down as they stand: loops over pairs, relations and coordinates, no tricks.

Slow and in float64. Works on a dictionary of parameters named as in ``PaperNetwork``, so that gradients can be
compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

Parameters = dict[str, Tensor]
Triple = tuple[int, int, int]


@dataclass
class Decided:
    """One target: the pairs (i, j) in order with p(k|i,j), attention and value, and the logit."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    probability: list[list[Tensor]] = field(default_factory=list)
    attention: list[Tensor] = field(default_factory=list)
    value: list[Tensor] = field(default_factory=list)
    logit: Tensor = field(default_factory=lambda: torch.zeros(()))


def recall_probability(w: Parameters, i: int) -> list[Tensor]:
    """p(j|i) for every j of V."""
    term, context = w["term"], w["context"]
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
    loss = torch.zeros((), dtype=w["term"].dtype)
    for i in nodes:
        total = float(ppmi[i].sum())
        if total == 0:
            continue
        p = recall_probability(w, i)
        for j in range(len(p)):
            loss = loss - float(ppmi[i, j]) / total * p[j].log()
    return loss


def associations(w: Parameters, i: int, candidates: list[int], count: int) -> list[int]:
    """The best candidates of p(·|i), best first."""
    p = recall_probability(w, i)
    return sorted(candidates, key=lambda j: -p[j].item())[:count]


def l1(a: Tensor, r: Tensor, b: Tensor) -> Tensor:
    """‖a + r - b‖₁."""
    total = torch.zeros((), dtype=a.dtype)
    for x in range(len(a)):
        total = total + (a[x] + r[x] - b[x]).abs()
    return total


def vector(w: Parameters, node: int) -> Tensor:
    """υ, or in the closed world υ + δ with υ held still."""
    return w["term"][node].detach() + w["offset"][node] if "offset" in w else w["term"][node]


def scores(w: Parameters, i: int, j: int) -> list[Tensor]:
    """s_k(i,j) for every relation, inverse and NA."""
    return [-l1(vector(w, i), w["relation"][k], vector(w, j)) for k in range(len(w["relation"]))]


def recognised(s: list[Tensor], masked: set[int]) -> list[Tensor]:
    """p(k|i,j): softmax over the k that beat NA and are not masked."""
    chosen = [k for k in range(len(s) - 1) if s[k].item() > s[-1].item() and k not in masked]
    p = [torch.zeros((), dtype=s[-1].dtype) for _ in s[:-1]]
    total = sum(s[k].exp() for k in chosen)
    for k in chosen:
        p[k] = s[k].exp() / total
    return p


def masked_relations(target: Triple, i: int, j: int, relations: int) -> set[int]:
    """The relations that (i, j) must not show: the target's and, turned round, its inverse."""
    h, r, t = target
    return ({r} if (i, j) == (h, t) else set()) | ({r + relations} if (i, j) == (t, h) else set())


def decide(w: Parameters, target: Triple, heads: list[int], tails: list[int], relations: int) -> Decided:
    """Stages 2 and 3 in the open world."""
    made, vectors = Decided(), []
    for i in heads:
        for j in tails:
            p = recognised(scores(w, i, j), masked_relations(target, i, j, relations))
            made.pairs.append((i, j))
            made.probability.append(p)
            vectors.append(assumption(w, i, j, p))
    return weigh(w, made, vectors)


def decide_on_facts(w: Parameters, facts: list[Triple], target: Triple, count: int, relations: int) -> Decided:
    """The closed world: facts and their inverses ranked by p(a|h)·p(b|t), the target and its inverse left out."""
    h, r, t = target
    both = sorted({*facts, *((b, k + relations, a) for a, k, b in facts)})
    p_h, p_t = recall_probability(w, h), recall_probability(w, t)
    usable = [fact for fact in both if fact not in ((h, r, t), (t, r + relations, h))]
    usable.sort(key=lambda fact: -(p_h[fact[0]] * p_t[fact[2]]).item())
    made, vectors = Decided(), []
    one = torch.ones((), dtype=w["term"].dtype)
    for a, k, b in usable[:count]:
        p = [one if x == k else 0 * one for x in range(2 * relations)]
        made.pairs.append((a, b))
        made.probability.append(p)
        vectors.append(assumption(w, a, b, p))
    return weigh(w, made, vectors)


def assumption(w: Parameters, i: int, j: int, p: list[Tensor]) -> Tensor:
    """e_ij = tanh(W_p·[υ_i; υ_j; Σ_k p(k|i,j)·ξ_k] + b_p)."""
    a = torch.zeros_like(w["relation"][0])
    for k in range(len(p)):
        a = a + p[k] * w["relation"][k]
    return (w["pair.weight"] @ torch.cat([vector(w, i), vector(w, j), a]) + w["pair.bias"]).tanh()


def weigh(w: Parameters, made: Decided, vectors: list[Tensor]) -> Decided:
    """Stage 3 over the vectors e of a target's assumptions."""
    power = []
    for e in vectors:
        hidden = (w["attention.weight"] @ e + w["attention.bias"]).tanh()
        power.append((w["v.weight"][0] @ hidden).exp())
    total, r = sum(power), torch.zeros_like(vectors[0])
    for e, strength in zip(vectors, power, strict=True):
        made.attention.append(strength / total)
        made.value.append(w["decision.weight"][0] @ e)
        r = r + strength / total * e
    made.logit = w["decision.weight"][0] @ r + w["decision.bias"][0]
    return made


def recognition_loss(w: Parameters, triples: list[Triple], heads: list[list[int]], tails: list[list[int]]) -> Tensor:
    """L_r summed: -log p(t|h,r) - log p(h|t,r), against the given corrupted heads and tails."""

    def power(h: int, r: int, t: int) -> Tensor:
        return (-l1(vector(w, h), w["relation"][r], vector(w, t))).exp()

    loss = torch.zeros((), dtype=w["term"].dtype)
    for (h, r, t), wrong_heads, wrong_tails in zip(triples, heads, tails, strict=True):
        true = power(h, r, t)
        loss = loss - (true / (true + sum(power(h, r, x) for x in wrong_tails))).log()
        loss = loss - (true / (true + sum(power(x, r, t) for x in wrong_heads))).log()
    return loss


def relation_loss(w: Parameters, pairs: list[tuple[int, int]], names: list[int]) -> Tensor:
    """-log of the softmax over all relations and NA, summed."""
    loss = torch.zeros((), dtype=w["term"].dtype)
    for (i, j), name in zip(pairs, names, strict=True):
        power = [s.exp() for s in scores(w, i, j)]
        loss = loss - (power[name] / sum(power)).log()
    return loss
