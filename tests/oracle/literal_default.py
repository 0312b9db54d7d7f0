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
    """tanh(x·W + b) with x = [υ·√d/‖υ‖ ; ρ·√d/‖ρ‖] + δ."""
    d = len(term)
    both = [v * math.sqrt(d) / norm(vector) for vector in (term, facts) for v in vector]
    x = [v + o for v, o in zip(both, offset, strict=True)]
    return [math.tanh(sum(x[i] * weight[i][j] for i in range(2 * d)) + bias[j]) for j in range(len(bias))]


def phi(s: float) -> float:
    return s if s > 0 else s / 4


class Literal:
    """Parameters as nested lists, and every step of a prediction."""

    def __init__(
        self,
        parameters: Mapping[str, list],  # type: ignore[type-arg]
        scale: float,
        ppmi: Matrix,
        facts: set[tuple[int, int, int]],
        types: Sequence[str] | None,
        usual: set[tuple[int, str, str]],
        candidates: Sequence[int],
        associations: int,
        reasons: int,
        order: Mapping[tuple[int, int], tuple[int, int, int]],  # patients with i first, j first, both on one day
        sample: int = 128,
    ) -> None:
        self.sample = sample
        self.order = order
        self.p, self.scale, self.ppmi, self.facts = parameters, scale, ppmi, facts
        self.types, self.usual, self.candidates = types, usual, candidates
        self.associations, self.reasons = associations, reasons
        self.relations = len(parameters["recognition.bias"])
        ends = {}
        for end in ("head", "tail"):
            weight, bias = parameters[f"recognition.w_{end}"], parameters[f"recognition.b_{end}"]
            names = ("recall.term", "recognition.fact_vectors", "recognition.offset")
            rows = zip(*(parameters[name] for name in names), strict=True)
            ends[end] = [tower(*row, weight, bias) for row in rows]
        self.head, self.tail = ends["head"], ends["tail"]

    def score(self, k: int, i: int, j: int) -> float:
        """s_k(i,j) as trained."""
        if k >= self.relations:
            return self.score(k - self.relations, j, i)
        plain = self.bilinear(k, i, j) + self.p["recognition.ppmi"][k] * self.ppmi[i][j]
        return plain + 50 * self.p["recognition.order"][k] * self.lean(i, j) if self.order else plain

    def lean(self, i: int, j: int) -> float:
        """o(i,j)."""
        if (j, i) in self.order:
            return -self.lean(j, i)
        before, after, same = self.order.get((i, j), (0, 0, 0))
        return (before - after) / (before + after + same + 4)

    def known(self, k: int, i: int, j: int) -> bool:
        forward = (i, k, j) if k < self.relations else (j, k - self.relations, i)
        return i != j and forward in self.facts

    def seen(self, k: int, i: int, j: int) -> float:
        """s_k(i,j) as a decision sees it."""
        if i == j:
            return 0.0
        if self.known(k, i, j):
            return 6.0
        if self.types is not None and (k, self.types[i], self.types[j]) not in self.usual:
            return 0.0
        return max(-6.0, min(6.0, self.score(k, i, j)))

    def usually(self, k: int, i: int) -> float:
        """m_k(i)."""
        heads = [h for h, r, _ in self.facts if r == k] + [t for _, r, t in self.facts if r + self.relations == k]
        return self.mean(k, i) - sum(self.mean(k, h) for h in heads) / len(heads) / 2 if heads else 0.0

    def mean(self, k: int, i: int) -> float:
        """μ_k(i): the mean of φ over the tails of k, without PPMI and order."""
        known = {(h, r, t) for h, r, t in self.facts} | {(t, r + self.relations, h) for h, r, t in self.facts}
        heads, tails = ([fact[end] for fact in known if fact[1] == k] for end in (0, 2))
        tails.sort(key=lambda j: sum(self.bilinear(k, head, j) for head in heads))
        sample = [tails[int((n + 0.5) * len(tails) / self.sample)] for n in range(self.sample)] if tails else []
        found = [6.0 if (i, k, j) in known else max(-6.0, min(6.0, self.bilinear(k, i, j))) for j in sample]
        return sum(phi(s) for s in found) / len(found) if found else 0.0

    def bilinear(self, k: int, i: int, j: int) -> float:
        """c·aᵀ·M_k·z + b_k."""
        if k >= self.relations:
            return self.bilinear(k - self.relations, j, i)
        m, a, z = self.p["recognition.matrix"][k], self.head[i], self.tail[j]
        product = sum(a[x] * m[x][y] * z[y] for x in range(len(a)) for y in range(len(z)))
        return float(self.scale * product + self.p["recognition.bias"][k])

    def lift(self, k: int, i: int, j: int) -> float:
        """ŝ_k(i,j)."""
        s = self.seen(k, i, j)
        less = s - self.usually(k, i) - self.usually((k + self.relations) % (2 * self.relations), j)
        return less if s * less > 0 else 0.0

    def likest(self, towers: Matrix, node: int) -> list[tuple[int, float]]:
        """The associations of a term with their likeness, likest first."""
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
        found = {}
        ends = ((self.tail, t, 0), (self.head, h, 1))
        for towers, own, kind in ends:
            likest = self.likest(towers, own)
            sigma = math.exp(self.p["decision.sharpness"][q][kind])
            total = sum(math.exp(sigma * likeness) for _, likeness in likest)
            for other, likeness in likest:
                weight = math.exp(self.p["decision.scale"][q][kind]) * math.exp(sigma * likeness) / total
                i, j = (h, other) if kind == 0 else (other, t)
                for k in range(2 * self.relations):
                    name = "decision.fact" if self.known(k, i, j) else "decision.value"
                    found[i, k, j] = weight * self.p[name][q][k] * phi(self.lift(k, i, j))
        return found

    def pair(self, h: int, q: int, t: int) -> float:
        """δ·PPMI(h,t) + ε·max(0, cos(υ_h, υ_t))."""
        together, beside = self.p["decision.pair"][q]
        one, other = self.p["recall.term"][h], self.p["recall.term"][t]
        return float(together * self.ppmi[h][t] + beside * max(0.0, dot(one, other) / (norm(one) * norm(other))))

    def logit(self, h: int, q: int, t: int, without: tuple[int, int, int] | None = None) -> float:
        """b + what the pair's own counts say + the n largest c > 0 + the n smallest c < 0."""
        c = [value for triple, value in self.reasons_of(h, q, t).items() if triple != without]
        best = sorted((value for value in c if value > 0), reverse=True)[: self.reasons]
        worst = sorted(value for value in c if value < 0)[: self.reasons]
        return float(self.p["decision.bias"][q] + self.pair(h, q, t) + sum(best) + sum(worst))
