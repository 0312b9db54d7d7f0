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
    one_stratum = np.stack([np.asarray(x, np.float64) for x in (both, first, second)])[:, None]
    return stratified(one_stratum[0], one_stratum[1], one_stratum[2], np.array([float(total)]))


def expected_counts(first: np.ndarray, second: np.ndarray, total: np.ndarray) -> np.ndarray:
    """How many units would have both terms if they were independent in every stratum: (K, M), (K,) -> (M,)."""
    result: np.ndarray = (first * second / total[:, None]).sum(0)
    return result


def stratified(both: np.ndarray, first: np.ndarray, second: np.ndarray, total: np.ndarray) -> np.ndarray:
    """:func:`disproportionality` over K strata: (K, M) counts and (K,) totals -> (M, 3, 3).

    Mantel-Haenszel estimates of both ratios, with the variances of Robins, Breslow and Greenland (1986) and of
    Greenland and Robins (1985); of one stratum, they are the plain ratios. The expected counts of IC are summed.
    """
    from scipy.special import gammaincinv

    cells = np.stack([both, first - both, second - both, total[:, None] - first - second + both], 2)
    sound = (both.sum(0) > 0) & (cells >= 0).all((0, 2))
    cells = np.where(sound[:, None], cells, 1.0)
    size = cells.sum(2, keepdims=True)
    expected = ((cells[..., 0] + cells[..., 1]) * (cells[..., 0] + cells[..., 2]) / size[..., 0]).sum(0)
    seen = cells[..., 0].sum(0)
    ic = np.log2(np.stack([seen + 0.5, *(gammaincinv(seen + 0.5, p) for p in (0.025, 0.975))], 1))
    ic = ic - np.log2(expected + 0.5)[:, None]
    along, across = (cells[..., i] * cells[..., j] for i, j in ((0, 3), (1, 2)))
    empty = (along.sum(0) == 0) | (across.sum(0) == 0)
    cells = cells + 0.5 * empty[:, None]
    ratios = [np.exp(np.stack([x, x - Z * s, x + Z * s], 1)) for x, s in (_odds_ratio(cells), _risk_ratio(cells))]
    result: np.ndarray = np.where(sound[:, None, None], np.stack([*ratios, ic], 1), np.nan)
    return result


def _odds_ratio(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logarithm of the pooled odds ratio and its standard error, from cells (K, M, 4)."""
    a, b, c, d = np.moveaxis(cells, 2, 0)
    n = a + b + c + d
    r, s, p, q = a * d / n, b * c / n, (a + d) / n, (b + c) / n
    rs, ss = r.sum(0), s.sum(0)
    variance = (p * r).sum(0) / (2 * rs**2) + (p * s + q * r).sum(0) / (2 * rs * ss) + (q * s).sum(0) / (2 * ss**2)
    return np.log(rs / ss), np.sqrt(variance)


def _risk_ratio(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logarithm of the pooled risk ratio and its standard error."""
    a, b, c, d = np.moveaxis(cells, 2, 0)
    n = a + b + c + d
    r, s = (a * (c + d) / n).sum(0), (c * (a + b) / n).sum(0)
    variance = (((a + c) * (a + b) * (c + d) - a * c * n) / n**2).sum(0) / (r * s)
    return np.log(r / s), np.sqrt(variance)
