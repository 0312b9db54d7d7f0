"""The leakage report: how well simple scores predict the labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from cogstage.choices import NegativeKind
from cogstage.corpus.tokens import casefold_text
from cogstage.knowledge.dataset import SPLITS
from cogstage.knowledge.edge_lookup import EdgeLookup
from cogstage.knowledge.located import Concepts, LocatedFacts
from cogstage.knowledge.negative_slots import Ends
from cogstage.knowledge.negatives import DrawnNegatives
from cogstage.statistics import auroc, logistic_weights

STEM = 5  # letters; words that begin alike count as one stem
SUSPICIOUS_OVERLAP = 0.10
SUSPICIOUS_DEGREE = 0.55  # AUROC of the training degrees in any split
SUSPICIOUS_FLOOR = 0.90  # AUROC of any simple score on test
PAPER_CO_OCCURRENCE = 0.114


FLOORS = "AUROC of simple scores (test)"
BY_SPLIT = "AUROC of the training degrees by split"


def leakage_report(
    names: Sequence[str],
    edges: EdgeLookup,
    facts: LocatedFacts,
    side: np.ndarray,
    negatives: Mapping[NegativeKind, DrawnNegatives],
    concepts: Concepts,
    mode: NegativeKind,
) -> dict[str, Any]:
    """All measures of the report; ``names`` are those of the nodes, ``negatives`` those of each mode.

    ``warnings`` are about the facts and the negatives of ``mode``.
    """
    drawn: dict[str, DrawnNegatives] = dict(negatives.items())
    report = {
        "overlap of relations": _overlap(facts),
        "pairs in several relations": _several(facts),
        "pairs of concepts across splits": _across(facts, side, drawn, concepts),
        "share of pairs that co-occur": _co_occurrence(edges, facts, side, drawn),
        **_floors(len(names), edges, facts, side, drawn),
        "names that share a word stem": _shared_stems(names, facts, side, drawn),
    }
    others = [line for kind in negatives if kind != mode for line in _negative_warnings(report, kind)]
    warnings = [*_fact_warnings(report), *_negative_warnings(report, mode)]
    return {**report, "warnings": warnings, "warnings about other negatives": others}


def _overlap(facts: LocatedFacts) -> list[dict[str, Any]]:
    """Jaccard overlap of each two relations, as they stand and with one swapped (pairs of nodes)."""
    nodes = int(max(facts.head.max(initial=0), facts.tail.max(initial=0))) + 1
    forward, backward = [], []
    for index in range(len(facts.relations)):
        head, tail = (ends[facts.relation == index].astype(np.int64) for ends in (facts.head, facts.tail))
        forward.append(np.unique(head * nodes + tail))
        backward.append(np.unique(tail * nodes + head))
    rows = []
    for first, second in combinations_with_replacement(range(len(facts.relations)), 2):
        same = len(np.intersect1d(forward[first], forward[second])) if first != second else 0
        turned = len(np.intersect1d(forward[first], backward[second]))
        total = len(forward[first]) + (len(forward[second]) if first != second else 0)
        union = len(forward[first]) if first == second else total - turned
        rows.append(
            {
                "relation": facts.relations[first],
                "other": facts.relations[second],
                "duplicate pairs": same,
                "duplicate jaccard": round(same / (total - same), 4) if total - same else 0.0,
                "inverse pairs": turned,
                "inverse jaccard": round(turned / union, 4) if union else 0.0,
            }
        )
    return rows


def _several(facts: LocatedFacts) -> dict[str, Any]:
    """Unordered pairs of concepts that hold more than one relation, and which."""
    pairs, row_pair = np.unique(facts.pair, return_inverse=True)
    holds = np.zeros((len(pairs), len(facts.relations)), bool)
    holds[row_pair.ravel(), facts.relation] = True
    several = holds[holds.sum(axis=1) > 1]
    names: Counter[str] = Counter(" + ".join(np.array(facts.relations)[row].tolist()) for row in several)
    return {
        "pairs": len(pairs),
        "in several": len(several),
        "share": round(len(several) / max(1, len(pairs)), 4),
        "combinations": dict(sorted(names.items(), key=lambda item: (-item[1], item[0]))),
    }


def _across(
    facts: LocatedFacts, side: np.ndarray, negatives: Mapping[str, DrawnNegatives], concepts: Concepts
) -> dict[str, int]:
    """How many unordered pairs of concepts occur in two splits, among the facts and among all pairs: must be 0."""
    positives = [np.unique(facts.pair[side == split]) for split in range(3)]
    result = {"facts": _in_two(positives)}
    for mode, drawn in negatives.items():
        everything = [
            np.unique(
                np.concatenate([positives[split], *(concepts.pair(*drawn.ends[r, name]) for r in facts.relations)])
            )
            for split, name in enumerate(SPLITS)
        ]
        result[f"facts and {mode} negatives"] = _in_two(everything)
    return result


def _in_two(groups: Sequence[np.ndarray]) -> int:
    _, times = np.unique(np.concatenate(groups), return_counts=True)
    return int(np.sum(times > 1))


def _positives(facts: LocatedFacts, side: np.ndarray, index: int, split: int | None = None) -> Ends:
    chosen = (facts.relation == index) & ((side >= 0) if split is None else (side == split))
    return facts.head[chosen], facts.tail[chosen]


def _all(drawn: DrawnNegatives, relation: str) -> Ends:
    heads, tails = zip(*(drawn.ends[relation, split] for split in SPLITS), strict=True)
    return np.concatenate(heads), np.concatenate(tails)


def _co_occurrence(
    edges: EdgeLookup, facts: LocatedFacts, side: np.ndarray, negatives: Mapping[str, DrawnNegatives]
) -> dict[str, dict[str, float]]:
    def share(*ends: Ends) -> float:
        values = np.concatenate([edges.counts(*one) for one in ends])
        return round(float(np.mean(values > 0)), 4) if len(values) else 0.0

    result = {}
    for index, relation in enumerate(facts.relations):
        result[relation] = {
            "facts": share(_positives(facts, side, index)),
            **{mode: share(_all(drawn, relation)) for mode, drawn in negatives.items()},
        }
    everything = [_positives(facts, side, index) for index in range(len(facts.relations))]
    result["all relations"] = {
        "facts": share(*everything),
        **{mode: share(*(_all(drawn, r) for r in facts.relations)) for mode, drawn in negatives.items()},
    }
    return result


def fact_counts(facts: Ends, nodes: int) -> Ends:
    """How many facts each node is the head of, and the tail of: (V,), (V,)."""
    return np.bincount(facts[0], minlength=nodes), np.bincount(facts[1], minlength=nodes)


def _floors(
    nodes: int, edges: EdgeLookup, facts: LocatedFacts, side: np.ndarray, negatives: Mapping[str, DrawnNegatives]
) -> dict[str, Any]:
    """AUROC of simple scores, by mode and relation: on test, and of the degrees in every split.

    A node's degree is its number of training facts of the relation, at its end.
    """
    on_test: dict[str, dict[str, dict[str, float | None]]] = {}
    by_split: dict[str, dict[str, dict[str, float | None]]] = {}
    for mode, drawn in negatives.items():
        on_test[mode], by_split[mode] = {}, {}
        for index, relation in enumerate(facts.relations):
            of_head, of_tail = fact_counts(_positives(facts, side, index, 0), nodes)
            features, labels, ends = [], [], []
            for split, name in enumerate(SPLITS):
                held, not_held = _positives(facts, side, index, split), drawn.ends[relation, name]
                head, tail = (np.concatenate(both) for both in zip(held, not_held, strict=True))
                first, second = np.log1p(of_head[head]), np.log1p(of_tail[tail])
                features.append(np.column_stack([first, second, first * second]))
                labels.append(np.repeat([1, 0], [len(held[0]), len(not_held[0])]))
                ends.append((head, tail))
            by_split[mode][relation] = {
                name: _rounded(auroc(label, feature[:, :2].sum(axis=1)))
                for name, label, feature in zip(SPLITS, labels, features, strict=True)
            }
            weights = logistic_weights(features[1], labels[1])
            scores = {
                "facts of the head": features[2][:, 0],
                "facts of the tail": features[2][:, 1],
                "degree": features[2][:, :2].sum(axis=1),
                "degree, weighed on dev": features[2] @ weights[1:],
                "ppmi": edges.ppmi(*ends[2]),
            }
            on_test[mode][relation] = {name: _rounded(auroc(labels[2], score)) for name, score in scores.items()}
    return {FLOORS: on_test, BY_SPLIT: by_split}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def stems(name: str) -> frozenset[str]:
    """The beginnings of the longer words of a name."""
    return frozenset(word[:STEM] for word in re.findall(r"[^\W\d_]+", casefold_text(name)) if len(word) >= STEM)


def _shared_stems(
    names: Sequence[str], facts: LocatedFacts, side: np.ndarray, negatives: Mapping[str, DrawnNegatives]
) -> dict[str, dict[str, Any]]:
    """The share of pairs whose head and tail share a word stem, with examples of the stems that do it most."""
    found: dict[int, frozenset[str]] = {}

    def common(ends: Ends) -> list[frozenset[str]]:
        for node in np.unique(np.concatenate(ends)).tolist():
            if node not in found:
                found[node] = stems(names[node])
        return [found[h] & found[t] for h, t in zip(ends[0].tolist(), ends[1].tolist(), strict=True)]

    def share(shared: list[frozenset[str]]) -> float:
        return round(sum(map(bool, shared)) / len(shared), 4) if shared else 0.0

    result: dict[str, dict[str, Any]] = {}
    for index, relation in enumerate(facts.relations):
        shared = common(_positives(facts, side, index))
        most = Counter(stem for stems_ in shared for stem in stems_)
        result[relation] = {
            "facts": share(shared),
            **{mode: share(common(_all(drawn, relation))) for mode, drawn in negatives.items()},
            "commonest": [stem for stem, _ in sorted(most.items(), key=lambda item: (-item[1], item[0]))[:5]],
        }
    return result


def _fact_warnings(report: Mapping[str, Any]) -> list[str]:
    lines = []
    for row in report["overlap of relations"]:
        for kind in ("duplicate", "inverse"):
            if row[f"{kind} jaccard"] >= SUSPICIOUS_OVERLAP:
                share = f"{row[f'{kind} jaccard']:.0%}"
                lines.append(f"{row['relation']} and {row['other']} share {share} of their pairs ({kind} relations)")
    for what, count in report["pairs of concepts across splits"].items():
        if count:
            lines.append(f"{count} pairs of concepts are in two splits ({what})")
    for relation, row in report["names that share a word stem"].items():
        if row["facts"] >= 0.05 and row["facts"] >= 2 * max(row.get("uniform", 0), row.get("degree", 0)):
            lines.append(f"{relation}: {row['facts']:.0%} of the facts join two names that share a word stem")
    return lines


def _negative_warnings(report: Mapping[str, Any], mode: NegativeKind) -> list[str]:
    lines = []
    for relation, splits in report[BY_SPLIT].get(mode, {}).items():
        off = [f"{value:.2f} in {name}" for name, value in splits.items() if _beats(value, SUSPICIOUS_DEGREE)]
        if off:
            lines.append(f"{relation}, {mode} negatives: the training degrees alone have AUROC {', '.join(off)}")
    for relation, scores in report[FLOORS].get(mode, {}).items():
        off = [f"{name} {value:.2f}" for name, value in scores.items() if _beats(value, SUSPICIOUS_FLOOR)]
        if off:
            lines.append(f"{relation}, {mode} negatives: simple scores have test AUROC {', '.join(off)}")
    return lines


def _beats(value: float | None, bar: float) -> bool:
    """Whether a score separates the labels, in either direction."""
    return value is not None and max(value, 1 - value) > bar
