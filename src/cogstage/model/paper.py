"""The published model (Wang et al., ACL 2020), in plain PyTorch, with each equation next to its code.

Eq. n is the number in the paper.
V terms; n relations k = 0..n-1, their inverses n..2n-1, K = 2n of both, and NA = K. A batch asks about B pairs (h, t)
for one target relation r. Shapes are given in brackets; P is the number of assumptions of a pair.
``fast/paper_network.py`` computes the same functions faster; the tests compare the two, and both with plain loops.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cogstage.errors import UsageError
from cogstage.model.config import WORLDS
from cogstage.options import Options, option

NEVER = -1e30  # a finite stand-in for -∞: an empty softmax stays finite and is then set to 0


@dataclass(frozen=True)
class PaperConfig(Options):
    """Options of the published model and its training."""

    world: str = option("open", "open: assumptions are recognised triples; closed: training facts")
    dimension: int = option(128, "d, width of the vectors of terms and relations")
    associations: int = option(32, "N_c, terms recalled for each end of a pair")
    assumptions: int = option(100, "closed world: number of training facts per pair")
    recall_loss: str = option("sum", "L_n over a batch of terms: sum, as published, or mean")
    recall_batch: int = option(0, "terms per batch of L_n; 0 makes an epoch one pass over the graph")
    recognition_batch: int = option(0, "facts per batch of L_r; 0 makes an epoch one pass over the facts")
    negatives: int = option(100, "corrupted heads, and as many corrupted tails, for each triple of L_r")
    na_pairs: int = option(1, "NA pairs for each fact of L_r: training negatives and random pairs, half and half")
    pair_batch: int = option(128, "pairs per batch of L_p")
    learning_rate: float = option(1e-3, "learning rate of Adam")
    clip: float = option(5.0, "largest norm of a gradient")
    epochs: int = option(300, "passes over the training pairs, at most")
    minimum_epochs: int = option(100, "epochs before training may stop early")
    patience: int = option(10, "epochs without a better dev AUROC before training stops")

    def __post_init__(self) -> None:
        self.check_choice("world", WORLDS)
        self.check_choice("recall_loss", ("sum", "mean"))
        self.check_ranges("dimension associations assumptions negatives na_pairs pair_batch epochs patience")
        for name in ("learning_rate", "clip"):
            if getattr(self, name) == 0:
                raise UsageError(f"option {name}=0: must be above 0")


@dataclass(frozen=True)
class Assumptions:
    """The assumptions of each pair and the decision that they make: logit = b_r + Σ_p attention·value."""

    left: Tensor  # (B, P) i, recalled for the head
    right: Tensor  # (B, P) j, recalled for the tail
    relation_probability: Tensor  # (B, P, K) p(k|i,j)
    attention: Tensor  # (B, P) p_ij, sums to 1 where there is an assumption
    value: Tensor  # (B, P) W_r·e_ij
    logit: Tensor  # (B,)


class PaperNetwork(nn.Module):
    """The three stages for one target relation; ``facts`` (F, 3) are the training facts."""

    def __init__(self, config: PaperConfig, terms: int, relations: int, target: int, facts: Tensor) -> None:
        super().__init__()
        self.config, self.na, self.target = config, 2 * relations, target
        self.inverse = target + relations
        d = config.dimension
        # The starts are those of the published code.
        self.term = nn.Parameter(torch.empty(terms, d).uniform_(-0.5 / d, 0.5 / d))  # υ (V, d)
        self.context = nn.Parameter(torch.empty(terms, d).uniform_(-(d**-0.5), d**-0.5))  # υ' (V, d)
        self.relation = nn.Parameter(nn.init.xavier_uniform_(torch.empty(self.na + 1, d)))  # ξ (K+1, d)
        # The closed world ranks facts by recall as pre-trained, so stages 2 and 3 move υ + δ instead of υ.
        self.offset = nn.Parameter(torch.zeros(terms, d)) if config.world == "closed" else None  # δ (V, d)
        self.pair = nn.Linear(3 * d, d)  # W_p, b_p
        self.attention = nn.Linear(d, d)  # W_a, b_a
        self.v = nn.Linear(d, 1, bias=False)
        self.decision = nn.Linear(d, 1)  # W_r, b_r
        turned = facts[:, [2, 1, 0]] + torch.tensor([0, relations, 0])
        self.facts: Tensor  # (2F, 3) with inverses, in order
        self.candidates: Tensor  # (C,) terms of the training facts: what may be recalled
        self.register_buffer("facts", torch.unique(torch.cat([facts, turned]), dim=0), persistent=False)
        self.register_buffer("candidates", torch.unique(facts[:, [0, 2]]), persistent=False)

    # Stage 1, recall: p(j|i) = softmax over V of υ'_j·υ_i

    def recall_loss(self, nodes: Tensor, targets: Tensor) -> Tensor:
        """Eq. 3: L_n = -Σ_i Σ_j p̂(j|i) log p(j|i) for nodes i (n,) and sparse rows p̂ = PPMI / Σ PPMI (n, V), Eq. 2."""
        return -(targets.to_dense() * F.log_softmax(self.term[nodes] @ self.context.T, dim=1)).sum()

    @torch.no_grad()
    def recalled(self, nodes: Tensor) -> Tensor:
        """Eq. 1: p(j|i) of candidates j, softmax over V: (n,) -> (n, C)."""
        return F.softmax(self.term[nodes] @ self.context.T, dim=1)[:, self.candidates]

    def associations(self, nodes: Tensor) -> Tensor:
        """A(i), the N_c candidates of highest p(j|i), best first: (n,) -> (n, N)."""
        count = min(self.config.associations, len(self.candidates))
        return self.candidates[self.recalled(nodes).topk(count, dim=1).indices]

    # Stage 2, recognition: s_k(i,j) = -‖υ_i + ξ_k - υ_j‖₁

    def vectors(self, nodes: Tensor) -> Tensor:
        """υ as stages 2 and 3 see it: (...) -> (..., d)."""
        return self.term[nodes] if self.offset is None else self.term.detach()[nodes] + self.offset[nodes]

    def scores(self, i: Tensor, j: Tensor) -> Tensor:
        """Eq. 4: s_k(i,j) of every relation, inverse and NA: (...), (...) -> (..., K+1)."""
        return -(self.vectors(i)[..., None, :] + self.relation - self.vectors(j)[..., None, :]).abs().sum(-1)

    def recognition_loss(self, triples: Tensor, heads: Tensor, tails: Tensor, allowed: Tensor) -> Tensor:
        """Eq. 12, 13: L_r = -Σ (log p(t|h,r) + log p(h|t,r)), each against its corrupted triples.

        Triples (b, 3), corrupted heads and tails (b, n); ``allowed`` (2, b, n), tails first, is False where a corrupted
        triple is a training fact after all.
        """
        h, r, t = self.vectors(triples[:, 0]), self.relation[triples[:, 1]], self.vectors(triples[:, 2])
        true = -(h + r - t).abs().sum(-1, keepdim=True)  # (b, 1)
        for_tail = -((h + r)[:, None] - self.vectors(tails)).abs().sum(-1)  # (b, n)
        for_head = -(self.vectors(heads) + (r - t)[:, None]).abs().sum(-1)
        loss = self.term.new_zeros(())
        for false, proper in zip((for_tail, for_head), allowed, strict=True):
            loss = loss - F.log_softmax(torch.cat([true, false.masked_fill(~proper, NEVER)], 1), dim=1)[:, 0].sum()
        return loss

    def relation_loss(self, i: Tensor, j: Tensor, relation: Tensor) -> Tensor:
        """The part of L_r that teaches NA its level: -Σ log softmax over all k and NA of s; each (m,)."""
        return F.cross_entropy(self.scores(i, j), relation, reduction="sum")

    def relation_probabilities(self, i: Tensor, j: Tensor, masked: Tensor) -> Tensor:
        """Eq. 5: p(k|i,j) = softmax over the k with s_k > s_NA; 0 for others and where ``masked``. (B, P, K)."""
        s = self.scores(i, j)
        beats = (s[..., :-1] > s[..., -1:]) & ~masked
        return F.softmax(s[..., :-1].masked_fill(~beats, NEVER), dim=-1) * beats

    def masked(self, i: Tensor, j: Tensor, head: Tensor, tail: Tensor) -> Tensor:
        """The target must not be its own reason: True at (h, r, t) and (t, r⁻¹, h). (B, P) -> (B, P, K)."""
        h, t, k = head[:, None, None], tail[:, None, None], torch.arange(self.na, device=head.device)
        i, j = i[:, :, None], j[:, :, None]
        return ((i == h) & (j == t) & (k == self.target)) | ((i == t) & (j == h) & (k == self.inverse))

    # Stage 3, decision

    def decide(self, i: Tensor, j: Tensor, p: Tensor, valid: Tensor | None = None) -> Assumptions:
        """The decision that rests on assumptions (B, P) with p(k|i,j) (B, P, K); ``valid`` (B, P) are those there."""
        a = p @ self.relation[:-1]  # Eq. 6: a_ij = Σ_k p(k|i,j)·ξ_k (B, P, d)
        # Eq. 7: e_ij = tanh([υ_i; υ_j; a_ij]·W_p + b_p)
        e = self.pair(torch.cat([self.vectors(i), self.vectors(j), a], -1)).tanh()
        g = self.v(self.attention(e).tanh())[..., 0]  # Eq. 8: vᵀ·tanh(W_a·e_ij + b_a) (B, P)
        p_ij = self.weights(g, valid)
        value = (e @ self.decision.weight.T)[..., 0]
        # Eq. 10, 11: W_r·r + b_r with r = Σ p_ij·e_ij; σ is the caller's
        logit = (p_ij * value).sum(1) + self.decision.bias
        return Assumptions(i, j, p, p_ij, value, logit)

    @staticmethod
    def weights(g: Tensor, valid: Tensor | None) -> Tensor:
        """Eq. 9: p_ij = softmax of g over a pair's assumptions: (B, P) -> (B, P)."""
        return g.softmax(1) if valid is None else g.masked_fill(~valid, NEVER).softmax(1) * valid

    def forward(self, head: Tensor, tail: Tensor) -> Assumptions:
        """Recall, recognise and decide for pairs (B,), (B,)."""
        if self.config.world == "closed":
            return self.closed_world(head, tail)
        heads, tails = self.associations(head), self.associations(tail)  # (B, N)
        i, j = heads.repeat_interleave(tails.shape[1], dim=1), tails.repeat(1, heads.shape[1])  # (B, N·N)
        return self.decide(i, j, self.relation_probabilities(i, j, self.masked(i, j, head, tail)))

    def closed_world(self, head: Tensor, tail: Tensor) -> Assumptions:
        """Assumptions are the training facts (a, k, b) of highest p(a|h)·p(b|t), without the target; p(k|a,b) = 1."""
        a, k, b = self.facts.T
        at_a, at_b = (torch.searchsorted(self.candidates, x) for x in (a.contiguous(), b.contiguous()))
        rank = self.recalled(head).log()[:, at_a] + self.recalled(tail).log()[:, at_b]  # (B, 2F)
        h, t = head[:, None], tail[:, None]
        own = ((a == h) & (b == t) & (k == self.target)) | ((a == t) & (b == h) & (k == self.inverse))
        best = rank.clamp(min=NEVER).masked_fill(own, -torch.inf).topk(min(self.config.assumptions, len(a)), dim=1)
        valid = best.values > -torch.inf
        p = F.one_hot(k[best.indices], self.na) * valid[..., None]
        return self.decide(a[best.indices], b[best.indices], p.to(self.term.dtype), valid)
