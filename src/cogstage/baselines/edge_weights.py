"""Edge weights for the encoders that sample edges."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse as sp

from cogstage.graph.cooccurrence import Graph

EdgeWeight = Literal["count", "ppmi"]


def edge_matrix(graph: Graph, weight: EdgeWeight) -> sp.csr_matrix:
    """The symmetric edge weights, (V, V) CSR float64: counts, or PPMI (edges without any are left out)."""
    matrix = graph.ppmi() if weight == "ppmi" else graph.matrix
    return sp.csr_matrix(matrix, dtype=np.float64)
