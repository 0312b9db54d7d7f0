"""Statistics of drug safety from the counts of a graph: ROR, PRR and IC, each with a 95 % interval.

    a = units with both terms,  b = with the first alone,  c = with the second alone,  d = with neither;  n = a+b+c+d
    ROR = a·d / (b·c)                      interval  exp(ln ROR ± 1.96·√(1/a + 1/b + 1/c + 1/d))
    PRR = (a / (a+b)) / (c / (c+d))        interval  exp(ln PRR ± 1.96·√(1/a - 1/(a+b) + 1/c - 1/(c+d)))
    IC  = log2((a + ½) / (e + ½)),  e = (a+b)·(a+c) / n expected;  interval by a + ½ ~ Gamma (lower end: IC025)

Where b, c or d is 0, ROR and PRR are of the table with ½ added to each cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cogstage.graph.pair_counts import PairCounts

Z = 1.959963984540054  # of a 95 % interval
_PLURAL = {"patient": "patients", "document": "documents", "sentence": "sentences", "visit": "visits"}


@dataclass(frozen=True)
class Population:
    """How many units a graph counted, and what they are."""

    total: int
    unit: str  # "patients", "documents", "30d windows", ...

    @classmethod
    def from_meta(cls, made_with: Mapping[str, Any]) -> Population | None:
        """Read from the metadata of a graph; None if it has no totals (private, imported, PPMI values)."""
        if made_with.get("private") or made_with.get("values") == "ppmi":
            return None
        per = made_with.get("per")
        if per is None and "embedded" in made_with:  # it was counted by documents, without a build
            per, made_with = "document", {"units": made_with.get("documents")}
        total = made_with.get("groups" if per == "patient" else "units")
        if not total:
            return None
        unit = f"{made_with.get('window')} windows" if per == "bin" else _PLURAL.get(str(per), str(per))
        return cls(int(total), unit)


@dataclass(frozen=True)
class Margins:
    """How many units have each term, and how many there are; ``basis`` says what a unit is."""

    term: np.ndarray  # float64 (V,)
    total: float
    basis: str

    @classmethod
    def from_counts(
        cls, population: Population | None, term_count: np.ndarray, counts: PairCounts, privacy: str
    ) -> Margins | None:
        """The graph's own margins; without totals those of its pairs, each pair of terms counted once as a unit.

        None for a graph that holds PPMI values instead of counts.
        """
        note = "" if privacy == "none" else f"; {privacy}"
        if population is not None and population.total >= int(term_count.max(initial=0)):
            return cls(term_count.astype(np.float64), float(population.total), population.unit + note)
        if float(counts.scale[0]) > 0:
            return None
        root = np.exp(counts.log_total)  # n_i / √N, so that their sum is √N
        whole = float(root.sum())
        return cls(np.round(root * whole), round(whole * whole / 2), "pairs of terms" + note)


def disproportionality(both: np.ndarray, first: np.ndarray, second: np.ndarray, total: float) -> np.ndarray:
    """ROR, PRR and IC of pairs, each as value, lower and upper end: (M,) counts -> (M, 3, 3); NaN if both is 0.

    ``both`` units have the two terms, ``first`` and ``second`` have each, of ``total``.
    """
    from scipy.special import gammaincinv

    a, n1, n2 = (np.asarray(x, np.float64) for x in (both, first, second))
    cells = np.stack([a, n1 - a, n2 - a, total - n1 - n2 + a], 1)
    sound = (a > 0) & (cells >= 0).all(1)
    cells = np.where(sound[:, None], cells, 1.0)
    expected = (cells[:, 0] + cells[:, 1]) * (cells[:, 0] + cells[:, 2]) / cells.sum(1)
    ic = np.log2(np.stack([cells[:, 0] + 0.5, *(gammaincinv(cells[:, 0] + 0.5, p) for p in (0.025, 0.975))], 1))
    ic = ic - np.log2(expected + 0.5)[:, None]
    a, b, c, d = (cells + 0.5 * (cells == 0).any(1)[:, None]).T
    ror, prr = np.log(a * d / (b * c)), np.log(a / (a + b)) - np.log(c / (c + d))
    of_ror, of_prr = np.sqrt(1 / a + 1 / b + 1 / c + 1 / d), np.sqrt(1 / a - 1 / (a + b) + 1 / c - 1 / (c + d))
    ratios = [np.exp(np.stack([x, x - Z * s, x + Z * s], 1)) for x, s in ((ror, of_ror), (prr, of_prr))]
    result: np.ndarray = np.where(sound[:, None, None], np.stack([*ratios, ic], 1), np.nan)
    return result
