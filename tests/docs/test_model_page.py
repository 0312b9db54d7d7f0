"""docs/model.md gives the number: both models from their folder with numpy alone, without any module of the model.

The models are asked in double precision, so that both sides round alike.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks.planted import Plan, planted
from safetensors.numpy import load_file
from small_model import small_model
from training_settings import PAPER

from cogstage.estimator import CogStage
from cogstage.model.network import Network

PAIRS = 100  # each asked for all relations
CLOSE = 1e-6
SMALLEST = 1e-4  # shares below it need not be shown
OPPOSITES = {("may_treat", "causes"), ("may_treat", "contraindicates"), ("may_prevent", "causes")} | {
    ("may_prevent", "contraindicates")
}


def phi(r: np.ndarray) -> np.ndarray:
    return np.where(r > 0, r, r / 4)


def sigmoid(x: float) -> float:
    return 1 / (1 + np.exp(-x))


class Folder:
    """What both models read: options, relations, facts and the types of terms."""

    def __init__(self, folder: Path) -> None:
        self.a = {name: value.astype(np.float64) for name, value in load_file(folder / "model.safetensors").items()}
        self.info = json.loads((folder / "config.json").read_text())
        self.options, self.relations = self.info["config"], self.info["relations"]
        self.r = len(self.relations)
        facts = pq.read_table(folder / "facts_train.parquet").to_pydict()
        numbers = [self.relations.index(name) for name in facts["relation"]]
        self.facts = set(zip(facts["head_id"], numbers, facts["tail_id"], strict=True))
        self.types = pq.read_table(folder / "vocabulary.parquet").to_pydict()["type"]
        self.candidates = sorted({end for h, _, t in self.facts for end in (h, t)})
        self.allowed = set()
        for k in range(self.r):
            ends = [(self.types[h], self.types[t]) for h, r, t in self.facts if r == k]
            for pair in set(ends):
                if ends.count(pair) >= 0.01 * len(ends):
                    self.allowed |= {(k, *pair), (k + self.r, *pair[::-1])}

    def calibrated(self, logit: float, target: str) -> float:
        slope, shift = (self.info["calibration"][target][name] for name in ("slope", "shift"))
        return float(slope * (logit - shift))

    def verdict(self, h: int, t: int, asked: str, logits: dict[str, float]) -> str:
        """The verdict on one relation of a pair, given the calibrated log-odds of all."""
        known = {name: (h, self.relations.index(name), t) in self.facts for name in logits}
        applies = {name: (self.relations.index(name), self.types[h], self.types[t]) in self.allowed for name in logits}
        strength = {name: np.inf if known[name] else logits[name] for name in logits if known[name] or applies[name]}
        words, called = dict.fromkeys(logits, "does not apply"), []
        for name in sorted(strength, key=lambda name: -strength[name]):
            if strength[name] < 0:
                words[name] = "unlikely"
            elif not known[name] and any({(name, other), (other, name)} & OPPOSITES for other in called):
                words[name] = "contradicted"
            else:
                words[name] = "known fact" if known[name] else "likely"
                called.append(name)
        return words[asked]


class Page(Folder):
    """The equations of the default model."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.ppmi = self._ppmi(load_file(folder / "evidence.safetensors"))
        self._towers()
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
        if not facts:
            return np.zeros(len(self.head))
        sample = [facts[(2 * s + 1) * len(facts) // 256][1] for s in range(128)]
        score = np.array(
            [
                [6.0 if self.known(k, i, j) else np.clip(self.recognised(k, i, j, counts=False), -6, 6) for j in sample]
                for i in range(len(self.head))
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
            associations = self.associations(tower, term)
            power = np.exp(np.exp(a["decision.sharpness"][q, kind]) * np.array([cosine for _, cosine in associations]))
            for (other, _), weight in zip(associations, power / power.sum(), strict=True):
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
        slope = self.info["calibration"][target]["slope"]
        logit = self.calibrated(float(a["decision.bias"][q]) + pair + sum(kept.values()), target)
        return logit, {triple: slope * c for triple, c in kept.items()}, float(slope * pair)


class PaperPage(Folder):
    """The equations of the published model."""

    def recalled(self, weights: dict[str, np.ndarray], term: int) -> np.ndarray:
        """p(j|term) of all terms."""
        power = np.exp(weights["context"] @ weights["term"][term])
        return power / power.sum()

    def answer(self, h: int, t: int, q: int) -> tuple[float, dict[tuple[int, int, int], float], float]:
        """Calibrated log-odds, and share of the ten triples of highest score."""
        target = self.info["targets"][q]
        number = self.relations.index(target)
        w = {name.split(".", 1)[1]: value for name, value in self.a.items() if name.startswith(f"{number}.")}
        vector = w["term"] + w.get("offset", 0)
        pairs = self._pairs(w, h, t, number)
        e, p = [], []
        for i, j, known in pairs:
            probability = self._probability(w, vector, h, t, i, j, number) if known is None else known
            a = probability @ w["relation"][:-1]
            e.append(np.tanh(w["pair.weight"] @ np.concatenate([vector[i], vector[j], a]) + w["pair.bias"]))
            p.append(probability)
        g = np.array([w["v.weight"][0] @ np.tanh(w["attention.weight"] @ x + w["attention.bias"]) for x in e])
        attention = np.exp(g) / np.exp(g).sum()
        value = np.array([w["decision.weight"][0] @ x for x in e])
        logit = self.calibrated(attention @ value + w["decision.bias"][0], target)
        score = {
            (i, k, j): attention[n] * p[n][k]
            for n, (i, j, _) in enumerate(pairs)
            for k in np.flatnonzero(p[n]).tolist()
        }
        place = {(i, k, j): n for n, (i, j, _) in enumerate(pairs) for k in np.flatnonzero(p[n]).tolist()}
        best = sorted(score, key=lambda triple: -score[triple])[:10]
        slope = self.info["calibration"][target]["slope"]
        return logit, {triple: slope * score[triple] * value[place[triple]] for triple in best}, 0.0

    def _pairs(self, w: dict[str, np.ndarray], h: int, t: int, number: int) -> list[tuple[int, int, np.ndarray | None]]:
        """The pairs (i, j), with p(k|i,j) where it is given."""
        p_h, p_t = self.recalled(w, h), self.recalled(w, t)
        if self.options["world"] == "open":
            count = self.options["associations"]
            ends = [sorted(self.candidates, key=lambda j, p=p: -p[j])[:count] for p in (p_h, p_t)]
            return [(i, j, None) for i in ends[0] for j in ends[1]]
        both = self.facts | {(b, k + self.r, a) for a, k, b in self.facts}
        usable = both - {(h, number, t), (t, number + self.r, h)}
        ranked = sorted(usable, key=lambda fact: -p_h[fact[0]] * p_t[fact[2]])[: self.options["assumptions"]]
        return [(a, b, np.eye(2 * self.r)[k]) for a, k, b in ranked]

    def _probability(
        self, w: dict[str, np.ndarray], vector: np.ndarray, h: int, t: int, i: int, j: int, number: int
    ) -> np.ndarray:
        """p(k|i,j) in the open world."""
        s = -np.abs(vector[i] + w["relation"] - vector[j]).sum(1)
        power = np.exp(s[:-1]) * (s[:-1] > s[-1])
        if (i, j) == (h, t):
            power[number] = 0.0
        if (i, j) == (t, h):
            power[number + self.r] = 0.0
        return power / max(power.sum(), 1e-300)


def in_double_precision(model: CogStage) -> CogStage:
    """The same model, which computes with float64."""
    network, fitted = model.fitted.network, model.fitted
    if isinstance(network, Network):
        arrays = {name: array.astype(np.float64) for name, array in network.arrays().items()}
        model._use(replace(fitted, network=Network.from_arrays(network.config, network.targets, arrays)))
    else:
        model._use(replace(fitted, network=network.double()))
    return model


def compare(model: CogStage, page: Page | PaperPage, pairs: int) -> None:
    """Log-odds, shares, the pair's own counts and the verdict of random pairs, for every relation."""
    assert model.relations == tuple(page.info["targets"])
    rng, names = np.random.default_rng(0), [*page.relations, *(f"{name}_inverse" for name in page.relations)]
    keys, verdicts = model.vocabulary.term, set()
    facts = sorted(page.facts)
    for number in range(pairs):
        h, t = rng.choice(len(keys), 2, replace=False).tolist()
        if number % 4 == 0:  # known facts are rare among random pairs
            h, _, t = facts[rng.integers(len(facts))]
        answers = {relation: page.answer(h, t, q) for q, relation in enumerate(model.relations)}
        logits = {relation: answer[0] for relation, answer in answers.items()}
        for relation, (logit, shares, pair) in answers.items():
            prediction = model.predict_batch([h], [t], relation)[0]
            assert prediction.logit == pytest.approx(logit, abs=CLOSE)
            assert prediction.pair_share == pytest.approx(pair, abs=CLOSE)
            assert prediction.probability == pytest.approx(sigmoid(logit), abs=CLOSE)
            assert prediction.verdict == page.verdict(h, t, relation, logits)
            verdicts.add(prediction.verdict)
            shown = {reason.triple: reason.share for reason in prediction.reasons}
            expected = {(keys[i], names[k], keys[j]): share for (i, k, j), share in shares.items()}
            assert {triple for triple, share in expected.items() if abs(share) > SMALLEST} <= shown.keys()
            for triple, share in shown.items():
                assert share == pytest.approx(expected[triple], abs=CLOSE)
    assert len(verdicts) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("world", ["open", "closed"])
def test_the_page_gives_the_default_model(world: str, shared_folder: Path) -> None:
    folder = small_model(shared_folder, world=world)
    compare(in_double_precision(CogStage.load(folder)), Page(folder), PAIRS)


@pytest.mark.slow
@pytest.mark.parametrize("world", ["open", "closed"])
def test_the_page_gives_the_published_model(world: str, tmp_path: Path) -> None:
    graph, data = planted(Plan(terms=150, edges=3_000, topics=3, facts=150, relations=3))  # a pair holds one relation
    options = {**PAPER, "epochs": 12, "learning_rate": 1e-2, "world": world, "assumptions": 20}
    CogStage("all", preset="paper", **options).fit(graph, data).save(tmp_path / "model")
    compare(in_double_precision(CogStage.load(tmp_path / "model")), PaperPage(tmp_path / "model"), PAIRS)
