"""The hit rate at a rank, against a count by hand and a plain one."""

import numpy as np
import pytest

from cogstage.evaluation.hit_rate import BANDS, hit_rate, rate_at


class Table:
    """A scorer that is a table."""

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = scores

    def probabilities(self, head: np.ndarray, tail: np.ndarray, relation: str) -> np.ndarray:
        return self.scores[head, tail]

    def ends(self, relation: str, side: str) -> np.ndarray:
        return np.arange(len(self.scores))


def test_by_hand() -> None:
    scores = np.zeros((4, 4))
    scores[0] = [0.0, 0.9, 0.8, 0.7]  # term 0: tail 1 is known from training, 2 is held out, 3 is nothing
    found = hit_rate(Table(scores), "r", (np.array([0]), np.array([2])), (np.array([0]), np.array([1])))
    assert found["head"] == [
        {"from": 1, "to": 1, "rate": 1.0, "of": 1.0},
        {"from": 2, "to": 3, "rate": 0.0, "of": 1.0},
    ]


@pytest.mark.parametrize("seed", range(5))
def test_against_a_plain_count(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = 60
    scores = rng.random((nodes, nodes))
    drawn = rng.permutation(nodes * nodes)[:240]
    pairs = np.array([(n // nodes, n % nodes) for n in drawn if n // nodes != n % nodes])
    held, train = pairs[:100], pairs[100:]
    found = hit_rate(Table(scores), "r", (held[:, 0], held[:, 1]), (train[:, 0], train[:, 1]))
    for side, flip in (("head", False), ("tail", True)):
        at = {band: [0, 0] for band in BANDS}
        facts = {(b, a) if flip else (a, b) for a, b in held.tolist()}
        known = {(b, a) if flip else (a, b) for a, b in train.tolist()}
        for given in sorted({a for a, _ in facts}):

            def score(other: int, given: int = given, flip: bool = flip) -> float:
                return scores[other, given] if flip else scores[given, other]

            others = [o for o in range(nodes) if o != given and (given, o) not in known]
            for rank, other in enumerate(sorted(others, key=lambda o: (-score(o), o)), start=1):
                for first, last in BANDS:
                    if first <= rank <= last:
                        at[first, last][0] += (given, other) in facts
                        at[first, last][1] += 1
        expected = [(f, t, hits / of, of) for (f, t), (hits, of) in at.items() if of]
        assert [(b["from"], b["to"], b["rate"], b["of"]) for b in found[side]] == expected


def test_the_band_of_a_rank() -> None:
    bands = [{"from": 1, "to": 1, "rate": 0.5, "of": 2}, {"from": 2, "to": 3, "rate": 0.1, "of": 4}]
    assert rate_at(bands, 3) == bands[1]
    assert rate_at(bands, 9) is None


def test_at_most_so_many_terms_are_asked() -> None:
    scores = np.random.default_rng(0).random((50, 50))
    heads = np.arange(40)
    found = hit_rate(Table(scores), "r", (heads, heads + 5), (heads[:0], heads[:0]), most=7)
    assert found["head"][0]["of"] == 7
