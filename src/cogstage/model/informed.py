"""Where stage 3 begins when recognition is there already: from what it would say without having learned anything.

    e_ij   = tanh([lead_ij, near_ij, ...]),  lead_ij = by how far the target's relation beats NA,
                                             near_ij = the cosines of i and j to the targets
    g_ij   ~ near_ij,   value_ij ~ lead_ij,  logit = Σ softmax(g)·value + b

So the first logit is the average lead of the target's relation among associations near the target. Training moves all
of it, and the other coordinates of e_ij begin without a say. A random start takes long to find this, and not every seed
does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from cogstage.model.cogstage import Network

LEAD, NEAR = 0, 1  # coordinates of e
LEAD_WEIGHT = 1.5  # of a lead of margin_clip
NEAR_WEIGHT = 0.5  # of a cosine
ATTENTION = 16.0  # v on near, before the temperature
VALUE, BIAS = 15.0, -1.5  # W_r on lead, b_r: near what they become


@torch.no_grad()
def begin_informed(network: Network) -> None:
    """Set the parameters of stage 3, where it is told margins and nearness and has no layer before its attention."""
    vectors, decision = network.pair_vectors, network.decision
    if vectors.w_margin is None or vectors.w_near is None or decision.w_attention is not None:
        return
    blocks = (vectors.w_head, vectors.w_tail, vectors.w_relation, vectors.w_margin, vectors.w_known, vectors.w_recall)
    for block in (*blocks, vectors.w_near):
        if block is not None:
            block[:, :, [LEAD, NEAR]] = 0.0
    for head, target in enumerate(network.targets):
        vectors.w_margin[head, target, LEAD] = LEAD_WEIGHT / vectors.clip
    vectors.w_near[:, :, NEAR] = NEAR_WEIGHT
    decision.v.zero_()
    decision.v[:, NEAR] = ATTENTION
    decision.w_relation.zero_()
    decision.w_relation[:, LEAD] = VALUE
    decision.bias.fill_(BIAS)
