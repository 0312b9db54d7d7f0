"""What each part of the default model gives: dev AUROC of the decision with the part taken out.

    python -m benchmarks ablation --graph GRAPH --dataset DATASET --seeds 5

Parts of stage 3 are exchanged on the same stages 1 and 2. For parts of stages 1 and 2 the model is trained again.
Dev facts stand against three kinds of pairs: the data set's own negatives, its hard negatives (which all co-occur) and
dev facts of other relations with fitting types. Figures are macro averages over relations; no test pair is read. The
figures of a seed are kept in ``--folder`` when it is done, and are not computed again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cogstage.training.staged import PairInputs, StagedTraining
from sklearn.metrics import roc_auc_score
from torch import Tensor

from benchmarks.harness import parser, report
from benchmarks.studies import study_folder
from cogstage.evaluation.populations import Populations, populations
from cogstage.model.config import Config
from cogstage.model.decision import Decision, WeighedReasons
from cogstage.model.network import PreparedRecognition
from cogstage.model.recognition import features
from cogstage.training.fitting import one_thread, prepare
from cogstage.training.sampling import PairBatch

Figures = dict[str, float]  # a row of the table, of one seed
MEASURED = 500  # dev pairs per relation whose reasons are counted
RETRAINED: dict[str, dict[str, Any]] = {
    "no facts of other relations as negatives (other_facts=0)": {"other_facts": 0.0},
    "three times as many (other_facts=0.3)": {"other_facts": 0.3},
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


def _contrasts(graph: Any, data: Any) -> dict[str, PairBatch]:
    """Dev facts against hard negatives, and against facts of other relations."""
    found = populations(graph, data, "dev")
    kinds = {"against other relations": "other", "against hard negatives": "hard"}
    return {title: _batch(np.concatenate(_rows(found, kind), axis=1)) for title, kind in kinds.items()}


def _rows(found: Populations, kind: str) -> list[np.ndarray]:
    """Head, tail, relation and label of the pairs of each relation (4, n)."""
    rows = []
    for number, name in enumerate(found.relations):
        head, tail, label = found.pairs(kind, name)
        rows.append(np.stack([head, tail, np.full_like(head, number), label]))
    return rows


def _batch(rows: np.ndarray) -> PairBatch:
    head, tail, target, label = rows.astype(np.int64)
    return PairBatch(head, tail, target, label.astype(np.float32), np.full_like(head, -1), np.arange(len(head)))


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

    def forward(self, likeness: Tensor, lifted: Tensor, known: Tensor, pair: Tensor, q: int) -> WeighedReasons:
        """As if all were equally like."""
        return super().forward(torch.zeros_like(likeness), lifted, known, pair, q)


class NoPpmi(Decision):
    """How often the pair itself occurs together does not count."""

    def forward(self, likeness: Tensor, lifted: Tensor, known: Tensor, pair: Tensor, q: int) -> WeighedReasons:
        """As if no pair occurred together."""
        return super().forward(likeness, lifted, known, pair * torch.tensor([0.0, 1.0]), q)


class NoSimilarity(Decision):
    """Whether the two terms of the pair occur beside the same terms does not count."""

    def forward(self, likeness: Tensor, lifted: Tensor, known: Tensor, pair: Tensor, q: int) -> WeighedReasons:
        """As if no terms were alike."""
        return super().forward(likeness, lifted, known, pair * torch.tensor([1.0, 0.0]), q)


class NoPair(Decision):
    """The counts of the pair itself do not count: reasons alone."""

    def forward(self, likeness: Tensor, lifted: Tensor, known: Tensor, pair: Tensor, q: int) -> WeighedReasons:
        """As if nothing were known of the pair itself."""
        return super().forward(likeness, lifted, known, torch.zeros_like(pair), q)


def _one_seed(
    graph: Any, view: Any, contrasts: dict[str, PairBatch], seed: int, base: dict[str, Any], again: bool
) -> Iterator[tuple[str, Figures]]:
    config = Config(**base)
    with one_thread():
        training = _first_stages(graph, view, config, seed)
        seen = {kind: training.look_at(pairs) for kind, pairs in contrasts.items()}

        def row(config: Config, kind: type[Decision] = Decision) -> Figures:
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
        with _without_lift(training):
            seen = {kind: training.look_at(pairs) for kind, pairs in contrasts.items()}
            yield "no lift: a triple counts by its score", row(config)
        for name, changes in RETRAINED.items() if again else ():
            changed = config.replace(**changes)
            training = _first_stages(graph, view, changed, seed)
            seen = {kind: training.look_at(pairs) for kind, pairs in contrasts.items()}
            yield name, _stage_3(training, changed, contrasts, seen, seed)


@contextmanager
def _without_lift(training: StagedTraining) -> Iterator[None]:
    """Nothing is usual for a term: ŝ = s."""
    network = training.network
    ready = network.ready

    def without(*given: Any) -> PreparedRecognition:
        prepared = ready(*given)
        return replace(prepared, views=replace(prepared.views, usual=torch.zeros_like(prepared.views.usual)))

    network.ready = without  # type: ignore[method-assign]
    training._forget()
    yield
    del network.ready
    training._forget()


def _first_stages(graph: Any, view: Any, config: Config, seed: int) -> StagedTraining:
    training = prepare(graph, view, range(len(view.relations)), config, seed)
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)  # dropout
    for number in range(training.rounds):
        if not training.is_epoch(number):
            training.run_round(number, rng)
    return training


def _stage_3(
    training: StagedTraining,
    config: Config,
    contrasts: dict[str, PairBatch],
    seen: dict[str, PairInputs],
    seed: int,
    kind: type[Decision] = Decision,
) -> Figures:
    """AUROCs and the effective number of reasons of a fresh stage 3."""
    network = training.network
    network.decision = kind(config, training.targets, network.relations, network.decision.opposite)
    rng = np.random.default_rng([seed, 3])
    torch.manual_seed(seed)
    for number in range(training.rounds):
        if training.is_epoch(number):
            training.run_round(number, rng)
    found = [training.dev_logits(target) for target in training.targets]
    figures = {"AUROC": float(np.mean([roc_auc_score(label, logit) for logit, label in found]))}
    with torch.no_grad():
        for name, pairs in contrasts.items():
            figures[name] = _macro(
                pairs, lambda rows, target, name=name: training.logits_of(seen[name], rows, target).numpy()
            )
    counts = [_effective(training, target) for target in training.targets]
    return {**figures, "effective reasons": float(np.mean(counts))}


def _macro(pairs: PairBatch, score: Callable[[np.ndarray, int], np.ndarray]) -> float:
    """Mean AUROC over relations; ``score`` is given rows of the pairs and their relation."""
    found = []
    for target in np.unique(pairs.target).tolist():
        rows = np.flatnonzero(pairs.target == target)
        found.append(roc_auc_score(pairs.label[rows], score(rows, target)))
    return float(np.mean(found))


@torch.no_grad()
def _effective(training: StagedTraining, target: int) -> float:
    """exp of the entropy of the shares of a decision, mean over dev pairs whose logit is above 0."""
    network, dev = training.network, training.sampler.dev
    some = np.flatnonzero(dev.target == target)[:MEASURED]
    head, tail = (torch.from_numpy(end[some]) for end in (dev.head, dev.tail))
    ready = network.ready(torch.from_numpy(training.sampler.candidates), training.knowledge.facts)
    weighed = network(head, tail, target, ready, training.knowledge).weighed
    n, c = network.decision.reasons, weighed.contribution
    parts = [c.gather(1, at[:, :n]) for at in (weighed.strongest_for, weighed.strongest_against)]
    shares = torch.cat([parts[0].clamp(min=0), -parts[1].clamp(max=0)], 1)[weighed.logit > 0]
    shares = shares / shares.sum(1, keepdim=True).clamp(min=1e-12)
    return float((-(shares * shares.clamp(min=1e-12).log()).sum(1)).exp().mean())


@torch.no_grad()
def _recognition(training: StagedTraining, contrasts: dict[str, PairBatch]) -> Figures:
    network = training.network
    head, tail = network.recognition.all_towers(network.recall.term)
    views, figures = network.recognition.views(network.recognition.mix(head), tail, training.knowledge.facts), {}
    for name, pairs in {"AUROC": training.sampler.dev, **contrasts}.items():

        def score(rows: np.ndarray, target: int, pairs: PairBatch = pairs) -> np.ndarray:
            head, tail = pairs.head[rows], pairs.tail[rows]
            ends = torch.from_numpy(head), torch.from_numpy(tail)
            scores = network.recognition.scores(views, *ends, *features(training.knowledge, head, tail))
            return scores[:, target].numpy()

        figures[name] = _macro(pairs, score)
    return {**figures, "effective reasons": float("nan")}


if __name__ == "__main__":
    main()
