"""What each part of the default model gives: dev AUROC of the decision with the part taken out.

    python -m benchmarks ablation --graph GRAPH --dataset DATASET --seeds 5

Parts of stage 3 are exchanged on the same stages 1 and 2. For parts of stages 1 and 2 the model is trained again.
Dev facts stand against three kinds of pairs: the data set's own negatives, its hard negatives (which all co-occur) and
dev facts of other relations with fitting types. Figures are macro averages over relations; no test pair is read. The
figures of a seed are kept in ``--folder`` when it is done, and are not computed again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from benchmarks.harness import parser, report
from benchmarks.studies import study_folder
from cogstage.evaluation.populations import populations
from cogstage.model.config import Config
from cogstage.model.decision import decide
from cogstage.model.network import PreparedNetwork
from cogstage.model.recognition import Recognition
from cogstage.relations import RelationIndex
from cogstage.training.decision import DecisionModule
from cogstage.training.default import DefaultTraining, Sight, sight
from cogstage.training.fitting import one_thread
from cogstage.training.sampling import PairBatch

Figures = dict[str, float]  # a row of the table, of one seed
Contrasts = dict[str, dict[int, PairBatch]]  # pairs by kind of negative and target
MEASURED = 500  # dev pairs per relation whose reasons are counted
RETRAINED: dict[str, dict[str, Any]] = {
    "no facts of other relations as negatives (other_facts=0)": {"other_facts": 0.0},
    "twice as many (other_facts=0.3)": {"other_facts": 0.3},
    "no co-occurring pairs as negatives (co_occurring=0)": {"co_occurring": 0.0},
    "no contrast with other relations (margin=20)": {"margin": 20.0},
    "no training facts in stage 1 (fact_weight=0)": {"fact_weight": 0.0},
    "no cross-fitting (folds=0)": {"folds": 0},
}


def main(argv: list[str] | None = None) -> None:
    """Print a row per part."""
    options = parser(__doc__)
    options.add_argument("--graph", type=Path, help="Graph folder; planted data by default.")
    options.add_argument("--dataset", type=Path, help="Data set folder.")
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--stage-3-only", action="store_true", help="Leave out the rows that train again.")
    options.add_argument("--folder", help="Folder of finished seeds (default: below --out).")
    asked = options.parse_args(argv)
    graph, data, base = _inputs(asked)
    contrasts = _contrasts(graph, data)
    rows: dict[str, list[Figures]] = {}
    with study_folder(asked, "ablation") as folder:
        for seed in range(1 if asked.quick else asked.seeds):
            kept = folder / f"{'stage-3' if asked.stage_3_only else 'all'}-{seed}.json"
            if not kept.exists():
                found = _one_seed(graph, data.for_fitting(), contrasts, seed, base, not asked.stage_3_only)
                kept.write_text(json.dumps(dict(_printed(seed, found)), indent=2), encoding="utf-8")
            for name, figures in json.loads(kept.read_text(encoding="utf-8")).items():
                rows.setdefault(name, []).append(figures)
    default = np.array([figures["AUROC"] for figures in rows["the default model"]])
    table = []
    for name, seeds in rows.items():
        difference = np.array([figures["AUROC"] for figures in seeds]) - default
        mean = {column: float(np.mean([figures[column] for figures in seeds])) for column in seeds[0]}
        spread = {"difference": float(difference.mean()), "sd of the difference": float(difference.std())}
        table.append({"row": name, "seeds": len(seeds), **mean, **spread})
    report("ablation", table, asked.out, {"options": base, "nodes": graph.n_nodes})


def _printed(seed: int, found: Iterator[tuple[str, Figures]]) -> Iterator[tuple[str, Figures]]:
    for name, figures in found:
        print(seed, name, figures, flush=True)
        yield name, figures


def _contrasts(graph: Any, data: Any) -> Contrasts:
    """Dev facts against hard negatives, and against facts of other relations."""
    dev = populations(graph, data, "dev")
    kinds = {"against other relations": "other", "against hard negatives": "hard"}
    return {
        title: {number: _batch(*dev.pairs(kind, name)) for number, name in enumerate(dev.relations)}
        for title, kind in kinds.items()
    }


def _batch(head: np.ndarray, tail: np.ndarray, label: np.ndarray) -> PairBatch:
    pairs = np.stack([head, tail]).astype(np.int64)
    return PairBatch(*pairs, label.astype(np.float32), np.full(len(label), -1))


def _inputs(asked: Any) -> tuple[Any, Any, dict[str, Any]]:
    if asked.graph is not None:
        from cogstage.graph.cooccurrence import Graph
        from cogstage.knowledge.dataset import Dataset

        return Graph.load(asked.graph), Dataset.load(asked.dataset), {}
    from benchmarks.planted import Plan, planted

    return *planted(Plan(facts=300)), {"dimension": 16, "tower": 16, "associations": 8}


class FreeSigns(DecisionModule):
    """Any triple may count for or against."""

    def keep_signs(self) -> None:
        """Nothing is put back."""


class OwnRelation(DecisionModule):
    """Triples of other relations than the question's have no value."""

    @torch.no_grad()
    def keep_signs(self) -> None:
        """Put the values of other relations back to 0."""
        super().keep_signs()
        self.value.mul_(self._own)
        self.fact.mul_(self._own)


class EqualWeights(DecisionModule):
    """Every association weighs the same, however similar it is."""

    @torch.no_grad()
    def keep_signs(self) -> None:
        """Put the sharpness back to almost nothing."""
        super().keep_signs()
        self.sharpness.fill_(-20.0)


class NoPpmi(DecisionModule):
    """How often the pair itself occurs together does not count."""

    weights_of_pair = (0.0, 1.0)

    @torch.no_grad()
    def keep_signs(self) -> None:
        """Put η, ε or both back to 0."""
        super().keep_signs()
        self.pair.mul_(torch.tensor(self.weights_of_pair))


class NoSimilarity(NoPpmi):
    """Whether the two terms of the pair occur beside the same terms does not count."""

    weights_of_pair = (1.0, 0.0)


class NoPair(NoPpmi):
    """The counts of the pair itself do not count: reasons alone."""

    weights_of_pair = (0.0, 0.0)


def _one_seed(
    graph: Any, view: Any, contrasts: Contrasts, seed: int, base: dict[str, Any], again: bool
) -> Iterator[tuple[str, Figures]]:
    config = Config(**base)
    with one_thread():
        training = _first_stages(graph, view, config, seed)
        seen = _see(training, contrasts)

        def row(config: Config, kind: type[DecisionModule] = DecisionModule) -> Figures:
            return _stage_3(training, config, contrasts, seen, seed, kind)

        yield "the default model", row(config)
        yield "recognition alone, no reasons", _recognition(training, contrasts)
        for count in (3, 5):
            yield f"{count} reasons for and {count} against", row(config.replace(reasons=count))
        yield "known facts only (closed world)", row(config.replace(world="closed"))
        yield "any sign for any relation", row(config, FreeSigns)
        yield "triples of the question's relation only", row(config, OwnRelation)
        yield "all associations weigh the same", row(config, EqualWeights)
        yield "no PPMI of the pair itself", row(config, NoPpmi)
        yield "no similarity of the pair itself", row(config, NoSimilarity)
        yield "neither: reasons alone", row(config, NoPair)
        for name, changes in RETRAINED.items() if again else ():
            changed = config.replace(**changes)
            training = _first_stages(graph, view, changed, seed)
            yield name, _stage_3(training, changed, contrasts, _see(training, contrasts), seed)
        with _without_lift():
            training = _first_stages(graph, view, config, seed)
            yield (
                "no lift: a triple counts by its score",
                _stage_3(training, config, contrasts, _see(training, contrasts), seed),
            )


@contextmanager
def _without_lift() -> Iterator[None]:
    """All mean scores are 0, so that r̂ = r."""
    mean_scores = Recognition._mean_scores
    Recognition._mean_scores = lambda self, facts: np.zeros_like(mean_scores(self, facts))  # type: ignore[method-assign]
    try:
        yield
    finally:
        Recognition._mean_scores = mean_scores  # type: ignore[method-assign]


def _first_stages(graph: Any, view: Any, config: Config, seed: int) -> DefaultTraining:
    training = DefaultTraining(graph, view, range(len(view.relations)), config, seed)
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)  # dropout
    for number in range(training.rounds):
        if not training.is_epoch(number):
            training.run_round(number, rng)
    return training


def _see(training: DefaultTraining, contrasts: Contrasts) -> dict[str, dict[int, Sight]]:
    prepared = training._prepared(-1)
    return {
        kind: {target: sight(prepared, pairs) for target, pairs in by_target.items()}
        for kind, by_target in contrasts.items()
    }


@torch.no_grad()
def _stage_3(
    training: DefaultTraining,
    config: Config,
    contrasts: Contrasts,
    seen: dict[str, dict[int, Sight]],
    seed: int,
    kind: type[DecisionModule] = DecisionModule,
) -> Figures:
    """AUROCs and the effective number of reasons of a fresh stage 3."""
    opposite = RelationIndex(training.relations).opposite
    modules = {target: kind(config, target, opposite[target]) for target in training.targets}
    training._decisions = modules
    rng = np.random.default_rng([seed, 3])
    with torch.enable_grad():
        for number in range(training.rounds):
            if training.is_epoch(number):
                training.run_round(number, rng)
    dev = [training.dev_logits(target) for target in training.targets]
    figures = {"AUROC": float(np.mean([roc_auc_score(label, logit) for logit, label in dev]))}
    for name, pairs in contrasts.items():
        scores = [
            roc_auc_score(pairs[target].label, module(*seen[name][target]).numpy())
            for target, module in modules.items()
        ]
        figures[name] = float(np.mean(scores))
    prepared = training._prepared(-1)
    counts = [_effective(prepared, module, training.sampler.dev[target]) for target, module in modules.items()]
    return {**figures, "effective reasons": float(np.mean(counts))}


def _effective(prepared: PreparedNetwork, module: DecisionModule, dev: PairBatch) -> float:
    """exp of the entropy of the shares of a decision, mean over dev pairs whose logit is above 0."""
    decision = decide(module.weights(), prepared.view(dev.head[:MEASURED], dev.tail[:MEASURED]), module.reasons)
    n, c = module.reasons, decision.contribution
    best, worst = (np.take_along_axis(c, at[:, :n], 1) for at in (decision.strongest_for, decision.strongest_against))
    shares = np.concatenate([best.clip(min=0), -worst.clip(max=0)], 1)[decision.logit > 0]
    shares = shares / shares.sum(1, keepdims=True).clip(min=1e-12)
    return float(np.exp(-(shares * np.log(shares.clip(min=1e-12))).sum(1)).mean())


def _recognition(training: DefaultTraining, contrasts: Contrasts) -> Figures:
    recognition, figures = training._prepared(-1).recognition, {}
    for name, by_target in {"AUROC": training.sampler.dev, **contrasts}.items():
        scores = [
            roc_auc_score(
                pairs.label, recognition.scores(pairs.head, pairs.tail[:, None], training.knowledge)[:, 0, target]
            )
            for target, pairs in by_target.items()
        ]
        figures[name] = float(np.mean(scores))
    return {**figures, "effective reasons": float("nan")}


if __name__ == "__main__":
    main()
