"""The full pipeline on the embedded data set: data set, training, evaluation, reasons and one HTML report."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cogstage.artefact import new_folder, read_meta, write_meta
from cogstage.data import embedded
from cogstage.data.embedded import TextbookPair
from cogstage.evaluation.cases import Case
from cogstage.evaluation.hit_rate import hit_rates
from cogstage.evaluation.metrics import score
from cogstage.evaluation.model_figures import keep_test_figures, reliability_of
from cogstage.evaluation.population_figures import population_figures, populations_table, which_table
from cogstage.evaluation.populations import (
    PopulationLogits,
    Populations,
    join_logits,
    model_verdicts,
    populations,
    score_populations,
)
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.dataset import Dataset
from cogstage.knowledge.facts import Facts
from cogstage.progress import SILENT, Progress
from cogstage.rationale.verdict import Verdict
from cogstage.reporting import Table
from cogstage.reporting.release import release_markdown
from cogstage.statistics import log_odds

if TYPE_CHECKING:
    from cogstage.baselines.contract import Method
    from cogstage.estimator import CogStage
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.vocabulary import Vocabulary

OURS = "cogstage"
HELD_OUT = "held_out"
BASELINES = ("always-positive", "degree", "ppmi", "svd+distmult")

Scores = dict[str, dict[str, np.ndarray]]
"""Method, relation and the probabilities of the relation's test pairs."""


# On this small set fewer passes give the same dev figures (AUROC 0.848 and 0.847, two seeds) in half the time.
QUICKER = {"decision_steps": 150}


@dataclass(frozen=True)
class DemoOptions:
    """How the demo is run."""

    seed: int = 0
    training: Mapping[str, Any] = field(default_factory=dict)  # changes to the model's default options


@dataclass(frozen=True)
class TextbookAnswer:
    """A textbook pair with the prediction of the model and its verdict, given all relations of the pair."""

    pair: TextbookPair
    probability: float
    verdict: Verdict

    @property
    def right(self) -> bool:
        """Whether a true pair is called likely, and a false one is not."""
        return (self.verdict in (Verdict.LIKELY, Verdict.KNOWN_FACT)) == self.pair.label


@dataclass(frozen=True)
class DemoResult:
    """Figures, answers and cases of a run of the demo."""

    tables: tuple[Table, ...]
    figures: dict[str, dict[str, dict[str, float]]]  # method -> relation -> metric -> value on the test pairs
    answers: tuple[TextbookAnswer, ...]
    cases: tuple[Case, ...]
    seconds: float
    populations: dict[str, dict[str, Any]] = field(default_factory=dict)  # method -> figures on the test pairs

    @property
    def right(self) -> int:
        """How many textbook pairs are answered right."""
        return sum(answer.right for answer in self.answers)

    @property
    def right_by_kind(self) -> dict[str, dict[str, int]]:
        """How many textbook pairs of each kind there are, and how many are answered right."""
        return right_by_kind(self.answers)


def run_demo(out: Path, options: DemoOptions | None = None, progress: Progress = SILENT) -> DemoResult:
    """Write the folder ``out``: graph, facts, dataset, model, predictions.jsonl and report.html.

    One model learns all five relations; the textbook pairs are held out of all of them. The folder is written
    atomically: if the run stops early, an existing folder stays unchanged.
    """
    from cogstage.data.demo_report import demo_report, metric_tables, textbook_table
    from cogstage.estimator import CogStage

    options = options or DemoOptions()
    begun = time.monotonic()
    graph, facts, pairs = embedded.graph(), embedded.facts(), embedded.textbook()
    with new_folder(out, "demo", {"seed": options.seed}) as folder:
        for source, kind in ((embedded.GRAPH, "graph"), (embedded.FACTS, "facts")):
            shutil.copytree(source, folder / kind)
            write_meta(folder / kind, kind, read_meta(folder / kind, kind)["made_with"], release_markdown)
        learned = hold_out(facts, pairs, graph.vocabulary)
        data = build_dataset(
            graph,
            learned,
            folder / "dataset",
            seed=options.seed,
            relations=tuple(facts.relations),
            progress=progress,
        )
        settings = {**QUICKER, **options.training}
        model = CogStage("all", seed=options.seed, **settings).fit(graph, data, progress=progress)
        model.metrics["hit_rate"] = hit_rates(model, data.for_fitting(), model.relations, most=15)
        model.metrics["reliability"] = reliability_of(model, data, model.relations, "dev")
        model.save(folder / "model")
        pairs_of_test = populations(graph, data, "test")
        scores, logits = _scores(graph, data, model, pairs_of_test, options.seed, progress)
        related = {name: population_figures(pairs_of_test, values) for name, values in logits.items()}
        figures = {
            name: {relation: score(data.pairs(relation, "test").label, p) for relation, p in by_relation.items()}
            for name, by_relation in scores.items()
        }
        keep_test_figures(folder / "model", model, data, figures[OURS])
        progress.start("Answering textbook questions and writing the report")
        answers = ask(model, pairs)
        cases = [*choose_cases(model, graph, pairs), *surest_mistakes(model, answers)]
        lines = "".join(case.prediction.to_json() + "\n" for case in cases)
        (folder / "predictions.jsonl").write_text(lines, encoding="utf-8")
        tables = (*metric_tables(figures, data), *demo_populations(related), textbook_table(answers))
        demo_report(graph, data, model, scores, tables, answers, cases, related[OURS]).write(folder / "report.html")
        progress.done()
    return DemoResult(tables, figures, answers, tuple(cases), time.monotonic() - begun, related)


def demo_populations(related: Mapping[str, Mapping[str, Any]]) -> list[Table]:
    """Populations and which relation, all methods side by side."""
    return [
        populations_table({name: row["average"] for name, row in related.items()}, "test"),
        which_table({name: row["which_relation"] for name, row in related.items()}, "test"),
    ]


def hold_out(facts: Facts, pairs: Iterable[TextbookPair], vocabulary: Vocabulary) -> Facts:
    """The facts without those between the two terms of a textbook pair, whatever their relation and direction.

    The pairs come back under the relation ``HELD_OUT``: a data set built without that relation does not learn from
    them, and does not draw them as negatives either.
    """
    ends = {(vocabulary.term[vocabulary.find(p.head)], vocabulary.term[vocabulary.find(p.tail)]) for p in pairs}
    rows = zip(facts.head, facts.relation, facts.tail, facts.source, strict=True)
    kept = [row for row in rows if (row[0], row[2]) not in ends and (row[2], row[0]) not in ends]
    kept += [(head, HELD_OUT, tail, "textbook") for head, tail in sorted(ends)]
    return Facts.from_statements(kept, facts.made_with, facts.matched)


def _scores(
    graph: Graph, data: Dataset, model: CogStage, related: Populations, seed: int, progress: Progress
) -> tuple[Scores, dict[str, PopulationLogits]]:
    """Probabilities of the test pairs and log-odds of the populations; what is fitted sees no test pair."""
    from cogstage.baselines.resolver import resolve
    from cogstage.baselines.vectors import VectorStore

    view = data.for_fitting()
    tests = {relation: data.pairs(relation, "test") for relation in model.relations}
    found: Scores = {}
    logits: dict[str, list[PopulationLogits]] = {}
    progress.start("Evaluating the model and the baselines", len(BASELINES) + 1)
    with tempfile.TemporaryDirectory() as folder:  # one encoding serves all relations
        for name in BASELINES:
            progress.advance(note=name)
            found[name], logits[name] = {}, []
            for relation, test in tests.items():
                fitted = resolve(name, store=VectorStore(folder)).fit(graph, view, relation, seed)
                found[name][relation] = fitted.scores(test.head, test.tail)

                def odds(head: np.ndarray, tail: np.ndarray, _: str, method: Method = fitted) -> np.ndarray:
                    return log_odds(method.scores(head, tail))

                logits[name].append(score_populations(odds, related, relation))
    found[OURS] = {name: model.probabilities(test.head, test.tail, name) for name, test in tests.items()}
    logits[OURS] = [score_populations(model.logits, related, relation) for relation in model.relations]
    progress.advance(note=OURS)
    progress.done()
    return found, {name: join_logits(parts) for name, parts in logits.items()}


def ask(model: CogStage, pairs: Sequence[TextbookPair]) -> tuple[TextbookAnswer, ...]:
    """Predict each textbook pair whose relation the model has, and judge it beside the pair's other relations."""
    asked = [pair for pair in pairs if pair.relation in model.relations]
    head, tail = (
        np.array([model.vocabulary.find(getattr(p, end)) for p in asked], np.int64) for end in ("head", "tail")
    )
    column = np.array([model.relations.index(pair.relation) for pair in asked], np.int64)
    code = model_verdicts(model, head, tail)[np.arange(len(asked)), column]
    probability = np.empty(len(asked))
    for number, relation in enumerate(model.relations):
        rows = column == number
        probability[rows] = model.probabilities(head[rows], tail[rows], relation)
    found = zip(asked, probability.tolist(), code.tolist(), strict=True)
    return tuple(TextbookAnswer(pair, value, Verdict(judged)) for pair, value, judged in found)


def right_by_kind(answers: Sequence[TextbookAnswer]) -> dict[str, dict[str, int]]:
    """How many textbook pairs of each kind there are, and how many are answered right."""
    groups = {kind: [answer for answer in answers if answer.pair.kind == kind] for kind in embedded.KINDS}
    return {kind: {"right": sum(a.right for a in group), "pairs": len(group)} for kind, group in groups.items()}


def choose_cases(model: CogStage, graph: Graph, pairs: Iterable[TextbookPair]) -> list[Case]:
    """For each relation, the true textbook pair whose rarer term is counted most often.

    The rule looks at the graph and not at the model, so it favours pairs that people know, right or wrong.
    """
    find, count = graph.vocabulary.find, graph.vocabulary.count
    cases = []
    for relation in model.relations:
        true = [pair for pair in pairs if pair.relation == relation and pair.label]
        if true:
            known = max(true, key=lambda pair: min(count[find(pair.head)], count[find(pair.tail)]))
            cases.append(_case(model, known))
    return cases


def surest_mistakes(model: CogStage, answers: Iterable[TextbookAnswer]) -> list[Case]:
    """The true textbook pair with the lowest probability and the false one with the highest that are wrong, if any.

    Only pairs are taken whose probability alone is on the wrong side: a case shows one relation, not the verdict.
    """
    wrong = [answer for answer in answers if (answer.probability >= 0.5) is not answer.pair.label]
    cases = []
    for label in (True, False):
        candidates = [answer for answer in wrong if answer.pair.label is label]
        if candidates:
            cases.append(_case(model, max(candidates, key=lambda answer: abs(answer.probability - 0.5)).pair))
    return cases


def _case(model: CogStage, pair: TextbookPair) -> Case:
    return Case(model.predict(pair.head, pair.tail, pair.relation), pair.label)
