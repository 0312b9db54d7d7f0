"""The default model written out with Python numbers and loops, straight from its equations. Slow on purpose."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

Matrix = Sequence[Sequence[float]]


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def norm(vector: Sequence[float]) -> float:
    return math.sqrt(dot(vector, vector))


def tower(
    term: Sequence[float], facts: Sequence[float], offset: Sequence[float], weight: Matrix, bias: Sequence[float]
) -> list[float]:
    """tanh(x·W + b) with x = [υ·√d/‖υ‖ ; ρ·√d/‖ρ‖] + δ; a vector of zeros has no direction."""
    d = len(term)
    both = [v * math.sqrt(d) / (norm(vector) or 1.0) for vector in (term, facts) for v in vector]
    x = [v + o for v, o in zip(both, offset, strict=True)]
    return [math.tanh(sum(x[i] * weight[i][j] for i in range(2 * d)) + bias[j]) for j in range(len(bias))]


def phi(r: float) -> float:
    return r if r > 0 else r / 4


def cut(r: float) -> float:
    return max(-6.0, min(6.0, r))


class Literal:
    """Parameters as nested lists, and every step of a prediction."""

    def __init__(
        self,
        parameters: Mapping[str, list],  # type: ignore[type-arg]
        margin: float,
        ppmi: Matrix,
        facts: set[tuple[int, int, int]],
        types: Sequence[str] | None,
        usual: set[tuple[int, str, str]],
        candidates: Sequence[int],
        associations: int,
        reasons: int,
        order: Mapping[tuple[int, int], tuple[int, int, int]],  # patients with i first, j first, both on one day
        wrong: set[tuple[int, int, int]] | None = None,
        sample: int = 128,
    ) -> None:
        self.sample, self.order, self.wrong = sample, order, wrong or set()
        self.p, self.margin, self.ppmi, self.facts = parameters, margin, ppmi, facts
        self.types, self.usual, self.candidates = types, usual, candidates
        self.associations, self.reasons = associations, reasons
        self.relations = len(parameters["recognition.related_bias"])
        ends = {}
        for end in ("head", "tail"):
            weight, bias = parameters[f"recognition.w_{end}"], parameters[f"recognition.b_{end}"]
            rows = zip(
                *(parameters[name] for name in ("recall.term", "recall.fact", "recognition.offset")), strict=True
            )
            ends[end] = [tower(*row, weight, bias) for row in rows]
        self.head, self.tail = ends["head"], ends["tail"]
        self.means: dict[tuple[int, int], float] = {}

    def bilinear(self, name: str, k: int, i: int, j: int) -> float:
        """c·aᵀ·M_k·z + b_k, or c·aᵀ·D_k·z + b'_k."""
        m, a, z = self.p[f"recognition.{name}"][k], self.head[i], self.tail[j]
        product = sum(a[x] * m[x][y] * z[y] for x in range(len(a)) for y in range(len(z)))
        return float(0.25 * math.sqrt(128 / len(a)) * product + self.p[f"recognition.{name}_bias"][k])

    def related(self, k: int, i: int, j: int) -> float:
        """s_k(i,j)."""
        counted = self.p["recognition.ppmi"][k] * self.ppmi[i][j]
        return self.bilinear("related", k, i, j) + counted + 50 * self.p["recognition.order"][k] * self.lean(i, j)

    def contrast(self, k: int, i: int, j: int) -> float:
        """d_k(i,j)."""
        return self.bilinear("contrast", k, i, j)

    def join(self, s: float, d: float) -> float:
        return -math.log(math.exp(-s) + math.exp(-(d + self.margin)))

    def score(self, k: int, i: int, j: int) -> float:
        """r_k(i,j) as trained."""
        if k >= self.relations:
            return self.score(k - self.relations, j, i)
        return self.join(self.related(k, i, j), self.contrast(k, i, j))

    def lean(self, i: int, j: int) -> float:
        """o(i,j)."""
        if (j, i) in self.order:
            return -self.lean(j, i)
        before, after, same = self.order.get((i, j), (0, 0, 0))
        return (before - after) / (before + after + same + 4)

    def forward(self, k: int, i: int, j: int) -> tuple[int, int, int]:
        return (i, k, j) if k < self.relations else (j, k - self.relations, i)

    def known(self, k: int, i: int, j: int) -> bool:
        triple = self.forward(k, i, j)
        return i != j and triple in self.facts and triple not in self.wrong

    def seen(self, k: int, i: int, j: int) -> float:
        """r_k(i,j) as a decision sees it."""
        if i == j or self.forward(k, i, j) in self.wrong:
            return 0.0
        if self.known(k, i, j):
            return 6.0
        if self.types is not None and (k, self.types[i], self.types[j]) not in self.usual:
            return 0.0
        return cut(self.score(k, i, j))

    def mean_score(self, k: int, i: int) -> float:
        """m_k(i)."""
        heads = [h for h, _, _ in self.facts_of(k)]
        return self.mean(k, i) - sum(self.mean(k, h) for h in heads) / len(heads) / 2 if heads else 0.0

    def facts_of(self, k: int) -> list[tuple[int, int, int]]:
        """Facts of a relation or an inverse, ordered by head and tail."""
        both = self.facts | {(t, r + self.relations, h) for h, r, t in self.facts}
        return sorted(fact for fact in both if fact[1] == k)

    def mean(self, k: int, i: int) -> float:
        """μ_k(i)."""
        if (k, i) not in self.means:
            facts, scores = self.facts_of(k), []
            for s in range(self.sample):
                j = facts[((2 * s + 1) * len(facts)) // (2 * self.sample)][2]
                first, r, second = self.forward(k, i, j)
                both = self.bilinear("related", r, first, second), self.bilinear("contrast", r, first, second)
                known = (first, r, second) in self.facts
                scores.append(phi(6.0 if known else cut(self.join(*both))))
            self.means[k, i] = sum(scores) / len(scores)
        return self.means[k, i]

    def lift(self, k: int, i: int, j: int) -> float:
        """r̂_k(i,j)."""
        r = self.seen(k, i, j)
        less = r - self.mean_score(k, i) - self.mean_score((k + self.relations) % (2 * self.relations), j)
        return less if r * less > 0 else 0.0

    def nearest(self, towers: Matrix, node: int) -> list[tuple[int, float]]:
        """The associations of a term with their similarity, nearest first."""
        width = range(len(towers[0]))
        mean = [sum(towers[c][x] for c in self.candidates) / len(self.candidates) for x in width]

        def centred(term: int) -> list[float]:
            return [towers[term][x] - mean[x] for x in width]

        def cosine(other: int) -> float:
            a, b = centred(node), centred(other)
            return dot(a, b) / (norm(a) * norm(b))

        others = [(c, cosine(c)) for c in self.candidates if c != node]
        return sorted(others, key=lambda entry: -entry[1])[: self.associations]

    def reasons_of(self, h: int, q: int, t: int) -> dict[tuple[int, int, int], float]:
        """c of every possible reason (i, k, j)."""
        reasons = {}
        for towers, own, kind in ((self.tail, t, 0), (self.head, h, 1)):
            nearest = self.nearest(towers, own)
            sigma = math.exp(self.p["decision.sharpness"][q][kind])
            total = sum(math.exp(sigma * similarity) for _, similarity in nearest)
            for other, similarity in nearest:
                weight = math.exp(self.p["decision.scale"][q][kind]) * math.exp(sigma * similarity) / total
                i, j = (h, other) if kind == 0 else (other, t)
                for k in range(2 * self.relations):
                    name = "decision.fact" if self.known(k, i, j) else "decision.value"
                    reasons[i, k, j] = weight * self.p[name][q][k] * phi(self.lift(k, i, j))
        return reasons

    def pair(self, h: int, q: int, t: int) -> tuple[float, float]:
        """η·PPMI(h,t) and ε·max(0, cos(υ_h, υ_t))."""
        together, beside = self.p["decision.pair"][q]
        one, other = self.p["recall.term"][h], self.p["recall.term"][t]
        cosine = dot(one, other) / ((norm(one) or 1.0) * (norm(other) or 1.0))
        return together * self.ppmi[h][t], beside * max(0.0, cosine)

    def logit(self, h: int, q: int, t: int) -> float:
        """b + e(h,t) + the n largest c > 0 + the n smallest c < 0."""
        c = list(self.reasons_of(h, q, t).values())
        best = sorted((value for value in c if value > 0), reverse=True)[: self.reasons]
        worst = sorted(value for value in c if value < 0)[: self.reasons]
        return float(self.p["decision.bias"][q] + sum(self.pair(h, q, t)) + sum(best) + sum(worst))
