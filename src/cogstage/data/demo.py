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

from cogstage.artefact import REPORT, new_folder, read_meta, write_text
from cogstage.data import embedded
from cogstage.data.embedded import TextbookPair
from cogstage.evaluation.cases import Case
from cogstage.evaluation.hit_rate import hit_rates
from cogstage.evaluation.metrics import score
from cogstage.evaluation.model_figures import keep_test_figures, reliability_of
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.dataset import Dataset
from cogstage.knowledge.facts import Facts
from cogstage.progress import SILENT, Progress
from cogstage.reporting import Table
from cogstage.reporting.release import release_markdown

if TYPE_CHECKING:
    from cogstage.estimator import CogStage
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.vocabulary import Vocabulary

OURS = "cogstage"
HELD_OUT = "held_out"
BASELINES = ("always-positive", "degree", "ppmi", "svd+distmult")

Scores = dict[str, dict[str, np.ndarray]]
"""Method, relation and the probabilities of the relation's test pairs."""


# On this small set fewer passes give the same dev figures (AUROC 0.848 and 0.847, two seeds) in half the time.
QUICKER = {"recall_passes": 3, "decision_steps": 150}


@dataclass(frozen=True)
class DemoOptions:
    """How the demo is run."""

    seed: int = 0
    training: Mapping[str, Any] = field(default_factory=dict)  # changes to the model's default options


@dataclass(frozen=True)
class TextbookAnswer:
    """A textbook pair with the prediction of the model."""

    pair: TextbookPair
    probability: float

    @property
    def right(self) -> bool:
        """Whether the decision at 0.5 agrees with the textbook."""
        return (self.probability >= 0.5) == self.pair.label


@dataclass(frozen=True)
class DemoResult:
    """Figures, answers and cases of a run of the demo."""

    tables: tuple[Table, ...]
    figures: dict[str, dict[str, dict[str, float]]]  # method -> relation -> metric -> value on the test pairs
    answers: tuple[TextbookAnswer, ...]
    cases: tuple[Case, ...]
    seconds: float

    @property
    def right(self) -> int:
        """How many textbook pairs are answered right."""
        return sum(answer.right for answer in self.answers)


def run_demo(out: Path, options: DemoOptions | None = None, progress: Progress = SILENT) -> DemoResult:
    """Write the folder ``out``: graph, facts, dataset, model, predictions.jsonl and report.html.

    One model learns all five relations; the textbook pairs are held out of all of them. The folder is written
    atomically: if the run stops early, an existing folder stays unchanged.
    """
    from cogstage.data.demo_report import demo_report, test_tables, textbook_table
    from cogstage.estimator import CogStage

    options = options or DemoOptions()
    begun = time.monotonic()
    graph, facts, pairs = embedded.graph(), embedded.facts(), embedded.textbook()
    with new_folder(out, "demo", {"seed": options.seed}) as folder:
        for source, kind in ((embedded.GRAPH, "graph"), (embedded.FACTS, "facts")):
            shutil.copytree(source, folder / kind)
            write_text(folder / kind / REPORT, release_markdown(folder / kind, read_meta(folder / kind, kind)))
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
        scores = _scores(graph, data, model, options.seed, progress)
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
        tables = (*test_tables(figures, data), textbook_table(answers))
        demo_report(graph, data, model, scores, tables, answers, cases).write(folder / "report.html")
        progress.done()
    return DemoResult(tables, figures, answers, tuple(cases), time.monotonic() - begun)


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


def _scores(graph: Graph, data: Dataset, model: CogStage, seed: int, progress: Progress) -> Scores:
    """Probabilities of the test pairs; what is fitted sees no test pair."""
    from cogstage.baselines.resolver import resolve
    from cogstage.baselines.vectors import VectorStore

    view = data.for_fitting()
    tests = {relation: data.pairs(relation, "test") for relation in model.relations}
    found: Scores = {}
    progress.start("Evaluating the model and the baselines", len(BASELINES) + 1)
    with tempfile.TemporaryDirectory() as folder:  # one encoding serves all relations
        for name in BASELINES:
            progress.advance(note=name)
            found[name] = {}
            for relation, test in tests.items():
                fitted = resolve(name, store=VectorStore(folder)).fit(graph, view, relation, seed)
                found[name][relation] = fitted.scores(test.head, test.tail)
    found[OURS] = {name: model.probabilities(test.head, test.tail, name) for name, test in tests.items()}
    progress.advance(note=OURS)
    progress.done()
    return found


def ask(model: CogStage, pairs: Sequence[TextbookPair]) -> tuple[TextbookAnswer, ...]:
    """Predict each textbook pair whose relation the model has."""
    find = model.vocabulary.find
    answers: dict[int, TextbookAnswer] = {}
    for relation in model.relations:
        rows = [row for row, pair in enumerate(pairs) if pair.relation == relation]
        head, tail = ([find(getattr(pairs[row], end)) for row in rows] for end in ("head", "tail"))
        for row, probability in zip(rows, model.probabilities(head, tail, relation).tolist(), strict=True):
            answers[row] = TextbookAnswer(pairs[row], probability)
    return tuple(answers[row] for row in sorted(answers))


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
    """The true textbook pair with the lowest probability and the false one with the highest, if they are wrong."""
    wrong = [answer for answer in answers if not answer.right]
    cases = []
    for label in (True, False):
        candidates = [answer for answer in wrong if answer.pair.label is label]
        if candidates:
            cases.append(_case(model, max(candidates, key=lambda answer: abs(answer.probability - 0.5)).pair))
    return cases


def _case(model: CogStage, pair: TextbookPair) -> Case:
    return Case(model.predict(pair.head, pair.tail, pair.relation), pair.label)
