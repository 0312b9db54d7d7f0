"""The networks of the published model from the arrays of a model folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from cogstage.model.fast.paper_network import FastPaperNetwork
from cogstage.model.paper import PaperConfig
from cogstage.training.checkpoint import load_weights
from cogstage.triples import Triples


def paper_networks(
    values: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    terms: int,
    relations: int,
    targets: Sequence[int],
    facts: Triples,
    where: str,
) -> tuple[PaperConfig, nn.ModuleDict]:
    """The configuration and a network per target with the weights of the folder ``where``."""
    config = PaperConfig.from_dict(values)
    triples = torch.from_numpy(np.stack([facts.head, facts.relation, facts.tail], 1).astype(np.int64))
    networks = nn.ModuleDict(
        {str(target): FastPaperNetwork(config, terms, relations, target, triples) for target in targets}
    )
    load_weights(networks, {name: torch.from_numpy(value.copy()) for name, value in arrays.items()}, where)
    return config, networks.eval()
