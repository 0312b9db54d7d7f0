"""Signals of drug safety from counts alone: what is counted together more than expected, for all pairs of a graph.

Beside ROR, PRR and IC (:mod:`cogstage.graph.disproportionality`), with E the expected count of a pair and N the counted
one, summed over strata where there are several:

    ln O/E = ln(N / E)
    χ²     = (N - E)² / Σ n1·(n - n1)·n2·(n - n2)/n³      Cochran's; of one stratum, Pearson's without correction
    EBGM   = exp(E[ln λ | N]),  EB05 and EB95: quantiles of λ given N

N is Poisson with mean λ·E, and λ has a mixture of two gamma distributions over all pairs (DuMouchel, 1999). Its five
parameters maximise the likelihood of the counts, given that each is at least 1: a graph has no pairs with count 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.disproportionality import Margins, Population, expected_counts, stratified
from cogstage.graph.pair_counts import PairCounts
from cogstage.provenance import privacy_text

START = (0.2, 0.1, 2.0, 4.0, 1 / 3)  # DuMouchel's; α1, β1, α2, β2, share of the first
MOST_POINTS = 20_000  # pairs are grouped before the prior is fitted
BISECTIONS = 60
LEAST, MOST = 1e-4, 1e4  # of the parameters α and β


@dataclass(frozen=True)
class Signals:
    """Statistics of pairs; arrays have one row per pair."""

    head: np.ndarray  # int64 (M,): node in ``terms``
    tail: np.ndarray
    count: np.ndarray  # float64 (M,)
    expected: np.ndarray  # float64 (M,)
    ratios: np.ndarray  # float64 (M, 3, 3): ROR, PRR, IC; value, lower and upper end
    chi_square: np.ndarray
    ebgm: np.ndarray  # float64 (M, 3): value, 5 % and 95 % quantile
    terms: tuple[str, ...]
    names: tuple[str, ...]
    basis: str  # what a count counts

    def rows(self, chosen: np.ndarray) -> list[dict[str, object]]:
        """Pairs as records, one column per number."""
        result = []
        for i in chosen.tolist():
            head, tail = int(self.head[i]), int(self.tail[i])
            row: dict[str, object] = {"head": self.terms[head], "head_name": self.names[head], "tail": self.terms[tail]}
            row |= {"tail_name": self.names[tail], "count": int(self.count[i]), "expected": float(self.expected[i])}
            row["ln_oe"] = float(np.log(self.count[i] / self.expected[i]))
            row["chi_square"] = float(self.chi_square[i])
            for name, values in zip(("ror", "prr", "ic"), self.ratios[i].tolist(), strict=True):
                row |= dict(zip((name, f"{name}025", f"{name}975"), values, strict=True))
            row |= dict(zip(("ebgm", "eb05", "eb95"), self.ebgm[i].tolist(), strict=True))
            result.append(row)
        return result

    def strongest(self) -> np.ndarray:
        """All pairs by EB05, highest first."""
        return np.argsort(-self.ebgm[:, 1], kind="stable")


def signals(graphs: Sequence[Graph], heads: Sequence[str], tails: Sequence[str] = (), min_cases: int = 1) -> Signals:
    """Statistics of all counted pairs of a head and a tail type; several graphs are strata of one population.

    Strata are, for example, graphs of women and men, of ages or of years. Tails are all other types by default.
    """
    terms = sorted({term for graph in graphs for term in graph.vocabulary.term})
    node = {term: number for number, term in enumerate(terms)}
    maps = [np.array([node[term] for term in graph.vocabulary.term], np.int64) for graph in graphs]
    names, kinds = list(terms), [""] * len(terms)
    for graph, to in zip(reversed(graphs), reversed(maps), strict=True):
        for at, new in enumerate(to.tolist()):
            names[new], kinds[new] = graph.vocabulary.name[at], graph.vocabulary.type[at]
    head, tail = _pairs(graphs, maps, np.array(kinds), heads, tails)
    margins = [_margins(graph) for graph in graphs]
    count, first, second = (np.zeros((len(graphs), len(head))) for _ in range(3))
    for stratum, (graph, to, margin) in enumerate(zip(graphs, maps, margins, strict=True)):
        back = np.full(len(terms), -1, np.int64)
        back[to] = np.arange(len(to))
        one, other = back[head], back[tail]
        known = (one >= 0) & (other >= 0)
        count[stratum, known] = PairCounts.from_graph(graph).counts(one[known], other[known])
        for values, end in ((first, one), (second, other)):
            values[stratum, end >= 0] = margin.term[end[end >= 0]]
    total = np.array([margin.total for margin in margins])
    expected, seen = expected_counts(first, second, total), count.sum(0)
    kept = seen >= min_cases
    prior = fit_prior(seen, expected)
    n = total[:, None]
    spread = (first * (n - first) * second * (n - second) / n**3).sum(0)
    chi_square = np.divide((seen - expected) ** 2, spread, out=np.zeros_like(seen), where=spread > 0)
    return Signals(
        head[kept],
        tail[kept],
        seen[kept],
        expected[kept],
        stratified(count[:, kept], first[:, kept], second[:, kept], total),
        chi_square[kept],
        shrunk(seen[kept], expected[kept], prior),
        tuple(terms),
        tuple(names),
        margins[0].basis,
    )


def _margins(graph: Graph) -> Margins:
    margins = Margins.from_counts(
        Population.from_meta(graph.made_with),
        graph.vocabulary.count,
        PairCounts.from_graph(graph),
        privacy_text(graph.made_with),
    )
    if margins is None:
        raise CogstageError("the graph has PPMI values instead of counts, from which no statistics can be computed")
    return margins


def _pairs(
    graphs: Sequence[Graph], maps: Sequence[np.ndarray], kinds: np.ndarray, heads: Sequence[str], tails: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """All counted pairs of a head type and a tail type, sorted."""
    is_head = np.isin(kinds, heads)
    is_tail = np.isin(kinds, tails) if tails else ~is_head
    present = ", ".join(sorted(set(kinds.tolist()) - {""})) or "none"
    for wanted, matches in (("heads", is_head), ("tails", is_tail)):
        if not matches.any():
            raise UsageError(f"no term has a type of `{wanted}`; the types of the graph are: {present}")
    source, target = (
        np.concatenate([to[end] for to, end in zip(maps, ends, strict=True)])
        for ends in ([graph.source for graph in graphs], [graph.target for graph in graphs])
    )
    ends = np.concatenate([source, target]), np.concatenate([target, source])
    kept = is_head[ends[0]] & is_tail[ends[1]]
    key = np.unique(ends[0][kept] << 32 | ends[1][kept])
    if len(key) == 0:
        raise CogstageError("no head and tail of these types were counted together")
    return key >> 32, key & 0xFFFFFFFF


def fit_prior(count: np.ndarray, expected: np.ndarray) -> tuple[float, ...]:
    """α1, β1, α2, β2 and the share of the first gamma distribution, by maximum likelihood of counts of at least 1."""
    from scipy.optimize import minimize

    n, e, weight = _grouped(count, expected)

    def loss(values: np.ndarray) -> float:
        log = log_likelihood(n, e, _parameters(values))
        return float(-(weight * log).sum() / weight.sum())

    start = np.array([*np.log(START[:4]), np.log(START[4] / (1 - START[4]))])
    bounds = [(np.log(LEAST), np.log(MOST))] * 4 + [(-12.0, 12.0)]
    return _parameters(minimize(loss, start, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500}).x)


def _parameters(values: np.ndarray) -> tuple[float, ...]:
    return (*np.exp(values[:4]).tolist(), float(1 / (1 + np.exp(-values[4]))))


def _grouped(count: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At most about ``MOST_POINTS`` points: neighbours with one count and similar expected counts become their mean."""
    by_both = np.lexsort((expected, count))
    size = max(1, len(count) // MOST_POINTS)
    n, e = count[by_both], expected[by_both]
    new_count = np.concatenate([[True], n[1:] != n[:-1]])
    run_start = np.maximum.accumulate(np.where(new_count, np.arange(len(n)), 0))
    starts = np.flatnonzero(new_count | ((np.arange(len(n)) - run_start) % size == 0))
    weight = np.diff(np.append(starts, len(n))).astype(np.float64)
    return n[starts], np.add.reduceat(e, starts) / weight, weight


def _log_negative_binomial(n: np.ndarray, e: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    """Log probability of ``n`` where N ~ Poisson(λ·e) and λ ~ Gamma(alpha, rate beta)."""
    from scipy.special import gammaln

    choose = gammaln(alpha + n) - gammaln(alpha) - gammaln(n + 1)
    result: np.ndarray = choose - alpha * np.log1p(e / beta) - n * np.log1p(beta / e)
    return result


def log_likelihood(n: np.ndarray, e: np.ndarray, prior: Sequence[float]) -> np.ndarray:
    """Log probability of each count, given that it is at least 1."""
    a1, b1, a2, b2, share = prior
    log_share = np.log(share), np.log1p(-share)
    whole = np.logaddexp(*(s + _log_negative_binomial(n, e, a, b)
                           for s, a, b in zip(log_share, (a1, a2), (b1, b2), strict=True)))  # fmt: skip
    never = share * np.exp(-a1 * np.log1p(e / b1)) + (1 - share) * np.exp(-a2 * np.log1p(e / b2))
    result: np.ndarray = whole - np.log1p(-np.minimum(never, 1 - 1e-15))
    return result


def shrunk(n: np.ndarray, e: np.ndarray, prior: Sequence[float]) -> np.ndarray:
    """EBGM, EB05 and EB95 of pairs, (M, 3)."""
    from scipy.special import digamma, expit, gammainc

    a1, b1, a2, b2, share = prior
    odds = _log_negative_binomial(n, e, a1, b1) - _log_negative_binomial(n, e, a2, b2)
    first = expit(odds + np.log(share) - np.log1p(-share))
    mean = first * (digamma(a1 + n) - np.log(b1 + e)) + (1 - first) * (digamma(a2 + n) - np.log(b2 + e))
    ends = []
    for level in (0.05, 0.95):
        low, high = np.full(len(n), -60.0), np.full(len(n), 60.0)  # of ln λ
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            scale = np.exp(middle)
            below = first * gammainc(a1 + n, (b1 + e) * scale) + (1 - first) * gammainc(a2 + n, (b2 + e) * scale)
            low, high = np.where(below < level, middle, low), np.where(below < level, high, middle)
        ends.append((low + high) / 2)
    result: np.ndarray = np.exp(np.stack([mean, *ends], 1))
    return result
