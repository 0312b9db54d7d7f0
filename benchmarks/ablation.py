"""What each part of the default model gives: dev AUROC of the decision with the part taken out.

    python -m benchmarks ablation --graph GRAPH --dataset DATASET --seeds 5

Parts of stage 3 are exchanged on the same stages 1 and 2. For parts of stages 1 and 2 the model is trained again.
Figures are macro averages over relations on dev pairs; no test pair is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from benchmarks.harness import parser, report
from cogstage.model.config import Config
from cogstage.model.decision import Decision, Weighed
from cogstage.training.fitting import few_threads, prepare
from cogstage.training.staged import StagedTraining

MEASURED = 500  # dev pairs per relation whose reasons are counted
RETRAINED: dict[str, dict[str, Any]] = {
    "no training facts in stage 1 (fact_weight=0)": {"fact_weight": 0.0},
    "no L_n: υ is the SVD of PPMI (recall_passes=0)": {"recall_passes": 0},
    "no cross-fitting (folds=0)": {"folds": 0},
}


def main(argv: list[str] | None = None) -> None:
    """Print a row per part."""
    options = parser(__doc__)
    options.add_argument("--graph", type=Path, help="Graph folder; planted data by default.")
    options.add_argument("--dataset", type=Path, help="Data set folder.")
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--stage-3-only", action="store_true", help="Leave out the rows that train again.")
    asked = options.parse_args(argv)
    graph, data, base = _inputs(asked)
    rows: dict[str, list[tuple[float, float]]] = {}
    for seed in range(1 if asked.quick else asked.seeds):
        for name, figures in _one_seed(graph, data.for_fitting(), seed, base, not asked.stage_3_only).items():
            rows.setdefault(name, []).append(figures)
    default = np.array(rows["the default model"])[:, 0]
    table = [
        {
            "row": name,
            "seeds": len(figures),
            "AUROC": float(np.mean([auroc for auroc, _ in figures])),
            "difference": float(np.mean([auroc for auroc, _ in figures] - default)),
            "sd of the difference": float(np.std([auroc for auroc, _ in figures] - default)),
            "effective reasons": float(np.mean([count for _, count in figures])),
        }
        for name, figures in rows.items()
    ]
    report("ablation", table, asked.out, {"options": base, "nodes": graph.n_nodes})


def _inputs(asked: Any) -> tuple[Any, Any, dict[str, Any]]:
    if asked.graph is not None:
        from cogstage.graph.cooccurrence import Graph
        from cogstage.knowledge.dataset import Dataset

        return Graph.load(asked.graph), Dataset.load(asked.dataset), {}
    from benchmarks.planted import Plan, planted

    return *planted(Plan(facts=300)), {"dimension": 16, "tower": 16, "associations": 8}


class FreeSigns(Decision):
    """Any triple may count for or against."""

    def keep_signs(self) -> None:
        """Nothing is put back."""


class OwnRelation(Decision):
    """Triples of other relations than the question's have no value."""

    @torch.no_grad()
    def keep_signs(self) -> None:
        """Put the values of other relations back to 0."""
        super().keep_signs()
        self.value.mul_(self.own)
        self.fact.mul_(self.own)


class EqualWeights(Decision):
    """Every association weighs the same, however like it is."""

    def forward(self, likeness: Tensor, score: Tensor, known: Tensor, pair: Tensor, q: int) -> Weighed:
        """As if all were equally like."""
        return super().forward(torch.zeros_like(likeness), score, known, pair, q)


class NoPpmi(Decision):
    """How often the pair itself occurs together does not count."""

    def forward(self, likeness: Tensor, score: Tensor, known: Tensor, pair: Tensor, q: int) -> Weighed:
        """As if no pair occurred together."""
        return super().forward(likeness, score, known, pair * torch.tensor([0.0, 1.0]), q)


class NoSimilarity(Decision):
    """Whether the two terms of the pair occur beside the same terms does not count."""

    def forward(self, likeness: Tensor, score: Tensor, known: Tensor, pair: Tensor, q: int) -> Weighed:
        """As if no terms were alike."""
        return super().forward(likeness, score, known, pair * torch.tensor([1.0, 0.0]), q)


class NoPair(Decision):
    """The counts of the pair itself do not count: reasons alone."""

    def forward(self, likeness: Tensor, score: Tensor, known: Tensor, pair: Tensor, q: int) -> Weighed:
        """As if nothing were known of the pair itself."""
        return super().forward(likeness, score, known, torch.zeros_like(pair), q)


def _one_seed(graph: Any, view: Any, seed: int, base: dict[str, Any], again: bool) -> dict[str, tuple[float, float]]:
    config = Config(**base)
    with few_threads():
        training = _first_stages(graph, view, config, seed)
        found = {"the default model": _stage_3(training, config, seed)}
        found["recognition alone, no reasons"] = _recognition(training, view), float("nan")
        for count in (3, 5):
            found[f"{count} reasons for and {count} against"] = _stage_3(training, config.replace(reasons=count), seed)
        found["known facts only (closed world)"] = _stage_3(training, config.replace(world="closed"), seed)
        found["any sign for any relation"] = _stage_3(training, config, seed, FreeSigns)
        found["triples of the question's relation only"] = _stage_3(training, config, seed, OwnRelation)
        found["all associations weigh the same"] = _stage_3(training, config, seed, EqualWeights)
        found["no PPMI of the pair itself"] = _stage_3(training, config, seed, NoPpmi)
        found["no similarity of the pair itself"] = _stage_3(training, config, seed, NoSimilarity)
        found["neither: reasons alone"] = _stage_3(training, config, seed, NoPair)
        for name, changes in RETRAINED.items() if again else ():
            changed = config.replace(**changes)
            training = _first_stages(graph, view, changed, seed)
            found[name] = _stage_3(training, changed, seed)
    return found


def _first_stages(graph: Any, view: Any, config: Config, seed: int) -> StagedTraining:
    training = prepare(graph, view, range(len(view.relations)), config, seed)
    rng = np.random.default_rng(seed)
    for number in range(training.rounds):
        if not training.is_epoch(number):
            training.run_round(number, rng)
    return training


def _stage_3(
    training: StagedTraining, config: Config, seed: int, kind: type[Decision] = Decision
) -> tuple[float, float]:
    """Dev AUROC and the effective number of reasons of a fresh stage 3."""
    network = training.network
    network.decision = kind(config, training.targets, network.relations, network.decision.opposite)
    rng = np.random.default_rng([seed, 3])
    for number in range(training.rounds):
        if training.is_epoch(number):
            training.run_round(number, rng)
    found = [training.dev_logits(target) for target in training.targets]
    counts = [_effective(training, target) for target in training.targets]
    return float(np.mean([roc_auc_score(label, logit) for logit, label in found])), float(np.mean(counts))


@torch.no_grad()
def _effective(training: StagedTraining, target: int) -> float:
    """exp of the entropy of the shares of a decision, mean over dev pairs whose logit is above 0."""
    network, dev = training.network, training.sampler.dev
    some = np.flatnonzero(dev.target == target)[:MEASURED]
    head, tail = (torch.from_numpy(end[some]) for end in (dev.head, dev.tail))
    ready = network.ready(torch.from_numpy(training.sampler.candidates))
    weighed = network(head, tail, target, ready, training.knowledge).weighed
    n, c = network.decision.reasons, weighed.contribution
    parts = [c.gather(1, at[:, :n]) for at in (weighed.strongest_for, weighed.strongest_against)]
    shares = torch.cat([parts[0].clamp(min=0), -parts[1].clamp(max=0)], 1)[weighed.logit > 0]
    shares = shares / shares.sum(1, keepdim=True).clamp(min=1e-12)
    return float((-(shares * shares.clamp(min=1e-12).log()).sum(1)).exp().mean())


@torch.no_grad()
def _recognition(training: StagedTraining, view: Any) -> float:
    network = training.network
    views, found = network.recognition.views(network.recall.term), []
    for target in training.targets:
        pairs = view.pairs(view.relations[target], "dev")
        head, tail = (torch.from_numpy(end.astype(np.int64)) for end in (pairs.head, pairs.tail))
        ppmi = torch.from_numpy(training.knowledge.counts.ppmi(pairs.head, pairs.tail))
        score = network.recognition.scores(views, head, tail, ppmi)[:, target]
        found.append(roc_auc_score(pairs.label, score.numpy()))
    return float(np.mean(found))


if __name__ == "__main__":
    main()
