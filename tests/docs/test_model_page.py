"""docs/model.md gives the number: the page followed with numpy and a model folder, without any module of the model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file
from small_model import small_model

from cogstage.estimator import CogStage

QUESTIONS = 200
SINGLE = 2e-5  # the model computes in single precision, this page in double


def phi(r: np.ndarray) -> np.ndarray:
    return np.where(r > 0, r, r / 4)


def sigmoid(x: float) -> float:
    return 1 / (1 + np.exp(-x))


class Page:
    """The equations of docs/model.md."""

    def __init__(self, folder: Path) -> None:
        self.a = {name: value.astype(np.float64) for name, value in load_file(folder / "model.safetensors").items()}
        self.info = json.loads((folder / "config.json").read_text())
        self.options = self.info["config"]
        facts = pq.read_table(folder / "facts_train.parquet").to_pydict()
        self.relations = self.info["relations"]
        self.r = len(self.relations)
        numbers = [self.relations.index(name) for name in facts["relation"]]
        self.facts = set(zip(facts["head_id"], numbers, facts["tail_id"], strict=True))
        self.types = pq.read_table(folder / "vocabulary.parquet").to_pydict()["type"]
        self.ppmi = self._ppmi(load_file(folder / "evidence.safetensors"))
        self._towers()
        self.candidates = sorted({end for h, _, t in self.facts for end in (h, t)})
        self._allowed()
        self.mean = np.stack([self._mean_score(k) for k in range(2 * self.r)], 1)

    def _ppmi(self, evidence: dict[str, np.ndarray]) -> np.ndarray:
        """PPMI(i,j) = max(0, log(n_ij·N / (n_i·n_j)))."""
        start, size = evidence["start"], len(evidence["start"]) - 1
        n = np.zeros((size, size))
        for i in range(size):
            n[i, evidence["other"][start[i] : start[i + 1]]] = evidence["count"][start[i] : start[i + 1]]
        n += n.T
        total = n.sum(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.log(n * n.sum() / (total[:, None] * total))
        return np.where(n > 0, np.maximum(value, 0), 0)

    def _towers(self) -> None:
        a, d = self.a, self.options["dimension"]
        parts = []
        for vectors in (a["recall.term"], a["recall.fact"]):
            length = np.linalg.norm(vectors, axis=1, keepdims=True)
            parts.append(vectors * np.sqrt(d) / np.where(length > 0, length, 1))
        x = np.concatenate(parts, 1) + a["recognition.offset"]
        self.head = np.tanh(x @ a["recognition.w_head"] + a["recognition.b_head"])
        self.tail = np.tanh(x @ a["recognition.w_tail"] + a["recognition.b_tail"])
        self.c = 0.25 * np.sqrt(128 / self.options["tower"])

    def _allowed(self) -> None:
        """The types that at least 1 % of a relation's facts join."""
        self.allowed = set()
        for k in range(self.r):
            joined = [(self.types[h], self.types[t]) for h, r, t in self.facts if r == k]
            for pair in set(joined):
                if joined.count(pair) >= 0.01 * len(joined):
                    self.allowed |= {(k, *pair), (k + self.r, *pair[::-1])}

    def recognised(self, k: int, i: int, j: int, counts: bool = True) -> float:
        """r_k(i,j)."""
        if k >= self.r:
            return self.recognised(k - self.r, j, i, counts)
        s = (
            self.c * self.head[i] @ self.a["recognition.related"][k] @ self.tail[j]
            + self.a["recognition.related_bias"][k]
        )
        if counts:
            s += self.a["recognition.ppmi"][k] * self.ppmi[i, j]
        d = self.c * self.head[i] @ self.a["recognition.contrast"][k] @ self.tail[j]
        d += self.a["recognition.contrast_bias"][k]
        return float(-np.log(np.exp(-s) + np.exp(-(d + self.options["margin"]))))

    def known(self, k: int, i: int, j: int) -> bool:
        return ((i, k, j) if k < self.r else (j, k - self.r, i)) in self.facts

    def decided(self, k: int, i: int, j: int) -> float:
        """r_k(i,j) in the decision stage."""
        if i == j:
            return 0.0
        if self.known(k, i, j):
            return 6.0
        if (k, self.types[i], self.types[j]) not in self.allowed:
            return 0.0
        return float(np.clip(self.recognised(k, i, j), -6, 6))

    def _mean_score(self, k: int) -> np.ndarray:
        """m_k of every term."""
        facts = sorted((h, t) if k < self.r else (t, h) for h, r, t in self.facts if r == k % self.r)
        terms = range(len(self.head))
        if not facts:
            return np.zeros(len(self.head))
        sample = [facts[(2 * s + 1) * len(facts) // 256][1] for s in range(128)]
        score = np.array(
            [
                [6.0 if self.known(k, i, j) else np.clip(self.recognised(k, i, j, counts=False), -6, 6) for j in sample]
                for i in terms
            ]
        )
        mu = phi(score).mean(1)
        return mu - mu[[h for h, _ in facts]].mean() / 2

    def associations(self, tower: np.ndarray, term: int) -> list[tuple[int, float]]:
        centred = tower - tower[self.candidates].mean(0)
        others = [other for other in self.candidates if other != term]
        cosine = [
            centred[term] @ centred[o] / np.linalg.norm(centred[term]) / np.linalg.norm(centred[o]) for o in others
        ]
        order = np.argsort(-np.array(cosine), kind="stable")[: self.options["associations"]]
        return [(others[n], float(cosine[n])) for n in order]

    def answer(self, h: int, t: int, q: int) -> tuple[float, dict[tuple[int, int, int], float], float]:
        """Calibrated log-odds, share of every reason that counts, and what the pair itself adds."""
        a, target = self.a, self.info["targets"][q]
        reasons = {}
        for kind, (tower, term) in enumerate(((self.tail, t), (self.head, h))):
            found = self.associations(tower, term)
            power = np.exp(np.exp(a["decision.sharpness"][q, kind]) * np.array([cosine for _, cosine in found]))
            for (other, _), weight in zip(found, power / power.sum(), strict=True):
                i, j = (h, other) if kind == 0 else (other, t)
                for k in range(2 * self.r):
                    r = self.decided(k, i, j)
                    lifted = r - self.mean[i, k] - self.mean[j, (k + self.r) % (2 * self.r)]
                    if r * lifted <= 0:
                        continue
                    value = a["decision.fact" if self.known(k, i, j) else "decision.value"][q, k]
                    share = np.exp(a["decision.scale"][q, kind]) * weight * value * phi(np.array(lifted))
                    reasons[i, k, j] = float(share)
        n = self.options["reasons"]
        ranked = sorted(reasons.items(), key=lambda item: -item[1])
        kept = {triple: c for triple, c in ranked[:n] if c > 0} | {triple: c for triple, c in ranked[-n:] if c < 0}
        one, other = a["recall.term"][h], a["recall.term"][t]
        cosine = max(0.0, float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other))))
        eta, epsilon = a["decision.pair"][q]
        pair = eta * self.ppmi[h, t] + epsilon * cosine
        slope, shift = (self.info["calibration"][target][name] for name in ("slope", "shift"))
        logit = slope * (a["decision.bias"][q] + pair + sum(kept.values()) - shift)
        return float(logit), {triple: slope * c for triple, c in kept.items()}, float(slope * pair)


@pytest.mark.slow
@pytest.mark.parametrize("world", ["open", "closed"])
def test_the_page_gives_logit_shares_and_probability(world: str, shared_folder: Path) -> None:
    folder = small_model(shared_folder, world=world)
    model, page = CogStage.load(folder), Page(folder)
    rng = np.random.default_rng(0)
    assert model.relations == tuple(page.info["targets"])
    names = [*page.relations, *(f"{name}_inverse" for name in page.relations)]
    keys = model.vocabulary.term
    for _ in range(QUESTIONS // 2):
        h, t = rng.choice(len(keys), 2, replace=False).tolist()
        for q, relation in enumerate(model.relations):
            prediction = model.predict_batch([h], [t], relation)[0]
            logit, shares, pair = page.answer(h, t, q)
            assert prediction.logit == pytest.approx(logit, abs=SINGLE)
            assert prediction.pair_share == pytest.approx(pair, abs=SINGLE)
            assert prediction.probability == pytest.approx(sigmoid(logit), abs=SINGLE)
            printed = {reason.triple: reason.share for reason in prediction.reasons}
            expected = {(keys[i], names[k], keys[j]): share for (i, k, j), share in shares.items()}
            large = {triple for triple, share in expected.items() if abs(share) > 1e-4}
            assert large <= printed.keys()
            for triple, share in printed.items():
                assert share == pytest.approx(expected[triple], abs=SINGLE)
