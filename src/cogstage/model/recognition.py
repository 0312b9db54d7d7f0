"""Stage 2, recognition: which relation, if any, holds between two recalled terms.

    s_k(i,j) = -‖υ_i + ξ_k - υ_j‖₁            for the relations, their inverses, and NA
    p(k|i,j) = softmax over the k with s_k > s_NA, 0 for the others
    a_ij     = Σ_k p(k|i,j)·ξ_k               the zero vector where no relation beats NA
    e_ij     = tanh([υ_i; υ_j; a_ij]·W_p + b_p)

W_p falls into three blocks: υ_i·W_head and υ_j·W_tail are taken once for each term, and
a_ij·W_relation = p·(ξ·W_relation). Relations are numbered k = 0..n-1, their inverses n..2n-1, NA = 2n; K = 2n.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cogstage.model.config import Config
from cogstage.model.kernels import l1_scores, l1_triples, pair_sum

NEVER = -1e30  # a finite stand-in for -∞: an empty softmax stays finite and is then set to 0
RECALL_FEATURES = 5  # log p of head and tail relative to the best, and whether they are the targets themselves
NEARNESS_FEATURES = 2  # cosines of head and tail to the targets


class Recognition(nn.Module):
    """Holds ξ, and where terms have vectors of their own in stages 2 and 3, their offsets δ from υ."""

    def __init__(self, config: Config, terms: int, relations: int) -> None:
        super().__init__()
        self.n_relations, self.config = relations, config
        scale = config.dimension**-0.5
        self.relation = nn.Parameter(torch.randn(2 * relations + 1, config.dimension) * scale)  # ξ (K+1, d), NA last
        self.offset = nn.Parameter(torch.zeros(terms, config.dimension)) if config.has_offset else None  # δ (V, d)

    @property
    def na(self) -> int:
        """Number of the relation NA, and how many relations there are with their inverses."""
        return 2 * self.n_relations

    def terms(self, recalled: Tensor, nodes: Tensor) -> Tensor:
        """Vectors of terms as stages 2 and 3 see them: υ, or υ + δ with υ left to stage 1. (V, d), (T,) -> (T, d)."""
        sparse = self.config.optimizer == "lazy_adam"
        if self.offset is not None:
            vectors = recalled.detach()[nodes] + F.embedding(nodes, self.offset, sparse=sparse)
        else:
            vectors = F.embedding(nodes, recalled, sparse=sparse)
        return F.dropout(vectors, self.config.term_dropout, self.training)

    def views(self, terms: Tensor) -> tuple[Tensor, ...]:
        """What the scores take once for each term: its vector."""
        return (terms,)

    def scores(self, views: tuple[Tensor, ...], left: Tensor, right: Tensor) -> Tensor:
        """s_k for pairs (left[m], right[m]) of rows of the terms (T, d): (M, K+1), NA last."""
        return l1_scores(views[0], self.relation, left, right)

    def triple_loss(self, terms: Tensor, triples: Tensor, heads: Tensor, tails: Tensor, allowed: Tensor) -> Tensor:
        """L_r summed over triples (b, 3): -log p(t|h,r) - log p(h|t,r), each against n corrupted ones.

        All are rows of ``terms`` (T, d); corrupted ``heads`` and ``tails`` are (b, n), and ``allowed`` (2, b, n) is
        False where one of them is a known fact after all.
        """
        batch, count = heads.shape
        head, relation, tail = triples.T
        same = [x[:, None].expand(batch, count) for x in (head, tail)]
        left = torch.cat([head[:, None], same[0], heads], 1)  # the triple, its corrupted tails, its corrupted heads
        name = relation[:, None].expand(left.shape)
        right = torch.cat([tail[:, None], tails, same[1]], 1)
        flat = (x.reshape(-1).contiguous() for x in (left, name, right))
        scores = l1_triples(terms, self.relation, *flat).reshape(batch, 1 + 2 * count)
        true, false = scores[:, :1], scores[:, 1:].reshape(batch, 2, count).transpose(0, 1)
        false = false.masked_fill(~allowed, NEVER)
        total = torch.cat([true.expand(2, batch, 1), false], 2).logsumexp(2)  # (2, b)
        return (total - true[:, 0]).sum()

    def relation_loss(self, terms: Tensor, left: Tensor, right: Tensor, relation: Tensor) -> Tensor:
        """-log softmax over all relations and NA of s, summed over pairs: what teaches NA its place."""
        return F.cross_entropy(self.scores((terms,), left, right), relation, reduction="sum")


def probabilities(scores: Tensor, masked: Tensor | None = None) -> Tensor:
    """p(k|i,j) from s (M, K+1) -> (M, K); where ``masked`` (M, K) says so the relation is not considered at all.

    No gradient flows through the comparison with NA.
    """
    relations = scores[:, :-1]
    beats = relations.detach() > scores[:, -1:].detach()
    if masked is not None:
        beats = beats & ~masked
    return F.softmax(relations.masked_fill(~beats, NEVER), dim=1) * beats


def with_known(scores: Tensor, known: Tensor, lead: float) -> Tensor:
    """Scores in which a known relation beats NA by at least ``lead``: (M, K+1), (M, K) -> (M, K+1)."""
    raised = torch.where(known, torch.maximum(scores[:, :-1], scores[:, -1:] + lead), scores[:, :-1])
    return torch.cat([raised, scores[:, -1:]], 1)


def margins(scores: Tensor, clip: float, masked: Tensor | None = None) -> Tensor:
    """By how far each relation beats NA, s_k - s_NA cut to [0, clip]: (M, K+1) -> (M, K); 0 for a masked relation."""
    found = (scores[:, :-1] - scores[:, -1:]).clamp(0.0, clip)
    return found if masked is None else found.masked_fill(masked, 0.0)


class PairVectors(nn.Module):
    """e_ij: holds W_p in blocks and b_p, a set for each target relation (Q of them)."""

    def __init__(self, config: Config, relations: int, heads: int) -> None:
        super().__init__()
        d, e = config.dimension, config.pair_dimension or config.dimension
        self.clip = config.margin_clip

        def block(rows: int, wanted: bool, scale: float) -> nn.Parameter | None:
            return nn.Parameter(torch.randn(heads, rows, e) * scale) if wanted else None

        self.w_head = block(d, config.term_vectors, d**-0.5)  # W_p, upper block (Q, d, e)
        self.w_tail = block(d, config.term_vectors, d**-0.5)  # W_p, middle block (Q, d, e)
        self.w_relation = nn.Parameter(torch.randn(heads, d, e) * d**-0.5)  # W_p, lower block (Q, d, e)
        self.w_margin = block(2 * relations, config.margins, 0.5 / config.margin_clip)  # (Q, K, e)
        self.w_known = block(2 * relations, config.known_facts, 0.1)  # (Q, K, e)
        self.w_recall = block(RECALL_FEATURES, config.recall_features, 0.1)  # (Q, 5, e)
        self.w_near = block(NEARNESS_FEATURES, config.nearness, 0.1)  # (Q, 2, e)
        self.bias = nn.Parameter(torch.zeros(heads, e))  # b_p (Q, e)

    def blocks(self, terms: Tensor | None, head: int) -> tuple[Tensor, Tensor] | None:
        """υ·W_head and υ·W_tail + b_p for each term: (T, e), (T, e)."""
        if terms is None or self.w_head is None or self.w_tail is None:
            return None
        return terms @ self.w_head[head], terms @ self.w_tail[head] + self.bias[head]

    def weights(self, relation: Tensor, head: int) -> Tensor:
        """What p, margins and recall features are multiplied by: (f, e); ``relation`` is ξ without NA (K, d)."""
        parts = [relation @ self.w_relation[head]]
        further = (self.w_margin, self.w_known, self.w_recall, self.w_near)
        parts += [block[head] for block in further if block is not None]
        return torch.cat(parts)

    def forward(
        self,
        blocks: tuple[Tensor, Tensor] | None,
        left: Tensor,
        right: Tensor,
        features: Tensor,
        weights: Tensor,
        head: int,
    ) -> Tensor:
        """e_ij of pairs: (M, e)."""
        if blocks is None:
            return torch.addmm(self.bias[head], features, weights).tanh()
        return pair_sum(*blocks, left, right, features, weights).tanh()
