"""The full pipeline on a made-up hospital of the paper's size: notes, graph, data set, model, evaluation, rationales.

Every stage is the public command, in a process of its own, measured from outside. A stage that is done is not done
again: the same command goes on where it was stopped. The hospital's rules are known, so both the answers and the
rationales can be checked.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import ROOT, parser, report
from benchmarks.hospital import PAPER, TABLE_1, Hospital, Plan, write_hospital
from benchmarks.hospital_page import page
from benchmarks.measured_command import disk_mb, run_measured

COGSTAGE = [sys.executable, "-c", "from cogstage.cli.main import run; run()"]
RELATION = "may_treat"
DATA_STAGES = 4  # up to the data set
MEMORY_LIMIT_MB = 16 * 1024
ASKED, EXAMPLES = 500, 5  # test pairs whose rationales are checked against the rules; those that are shown
# Shortened from 12 passes over the nodes, 12 over the facts and 4 epochs, which take some 25 minutes of an idle core.
TRAINING = {"recognition_passes": "2", "decision_epochs": "1"}
QUICK = Plan(terms=1_500, groups=12, patients=600, notes=5, table=0.05)
QUICK_TRAINING = {
    **{"recognition_passes": "6", "decision_epochs": "1"},
    **{"dimension": "32", "tower": "32", "associations": "8", "decision_steps": "0", "folds": "2"},
}


@dataclass(frozen=True)
class Stage:
    """A command, and what it leaves behind."""

    name: str
    out: str
    command: Callable[[Path], list[str]]


def stages(plan: Plan, training: Mapping[str, str]) -> list[Stage]:
    """The stages in order; each command is made when its turn comes, from the folder of the run."""
    settings = [word for option, value in training.items() for word in ("--set", f"{option}={value}")]

    def cogstage(line: str) -> Callable[[Path], list[str]]:
        return lambda folder: [*COGSTAGE, *[word.replace("@", f"{folder}/") for word in line.split()]]

    def generate(folder: Path) -> list[str]:
        return [
            sys.executable,
            "-m",
            "benchmarks.hospital_end_to_end",
            "generate",
            str(folder),
            json.dumps(asdict(plan)),
        ]

    def train(folder: Path) -> list[str]:
        begun = (folder / "model" / "checkpoint").exists()
        line = f"train --graph @graph --dataset @dataset --relation {RELATION} --out @model"
        return [*cogstage(line)(folder), *settings, *(["--resume"] if begun else [])]

    build = "graph build @hospital/notes --lexicon @hospital/lexicon.tsv --unit patient-window --window 1d --memory 4GB"
    return [
        Stage("generate the notes", "hospital", generate),
        Stage("graph build", "graph", cogstage(f"{build} --resume --out @graph")),
        Stage("facts table", "facts", cogstage("facts table @hospital/facts.tsv --out @facts")),
        Stage("dataset build", "dataset", cogstage("dataset build --graph @graph --facts @facts --out @dataset")),
        Stage("train", "model", train),
        Stage(
            "evaluate",
            "evaluation",
            cogstage(f"evaluate @model --dataset @dataset --relation {RELATION} --ranking-heads 0 --out @evaluation"),
        ),
        Stage(
            "explain",
            "explained.jsonl",
            cogstage(f"explain @model --pairs @asked.tsv --relation {RELATION} -k 5 --out @explained.jsonl"),
        ),
    ]


def run_stages(folder: Path, plan: Plan, training: Mapping[str, str], most: int | None = None) -> list[dict[str, Any]]:
    """Run what is not done yet, at most ``most`` stages; one row per stage. A folder of another plan is refused."""
    done = folder / "stages"
    done.mkdir(parents=True, exist_ok=True)
    wanted = {"plan": asdict(plan), "training": dict(training)}
    known = folder / "plan.json"
    if known.exists() and json.loads(known.read_text(encoding="utf-8")) != wanted:
        raise SystemExit(f"{folder} holds a run of another plan; give another --folder, or delete it")
    known.write_text(json.dumps(wanted, indent=2) + "\n", encoding="utf-8")
    rows = []
    for number, stage in enumerate(stages(plan, training)[:most]):
        record = done / f"{number}.json"
        if not record.exists():
            if stage.name == "explain":
                write_asked(folder)
            print(f"{stage.name} ...", flush=True)
            used = run_measured(stage.command(folder), done / f"{number}.log", cwd=ROOT)
            row = {"stage": stage.name, **used, "disk_mb": disk_mb(folder / stage.out)}
            record.write_text(json.dumps(row) + "\n", encoding="utf-8")
        rows.append(json.loads(record.read_text(encoding="utf-8")))
    return rows


def write_asked(folder: Path) -> None:
    """A table of test pairs, half of them facts, drawn by seed."""
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.dataset import Dataset

    term = Graph.load(folder / "graph").vocabulary.term
    test = Dataset.load(folder / "dataset").pairs(RELATION, "test")
    rng = np.random.default_rng(0)
    rows = ["head\ttail"]
    for label in (1, 0):
        held = np.flatnonzero(test.label == label)
        for row in rng.permutation(held)[: ASKED // 2].tolist():
            rows.append(f"{term[test.head[row]]}\t{term[test.tail[row]]}")
    (folder / "asked.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def data_notes(folder: Path) -> dict[str, Any]:
    """The size of the graph, and the facts of the data set by relation and split."""
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.dataset import SPLITS, Dataset

    graph, dataset = Graph.load(folder / "graph"), Dataset.load(folder / "dataset")
    return {
        "terms": graph.n_nodes,
        "edges": graph.n_edges,
        "edges counted once": float(np.mean(graph.count == 1)),
        "facts": {name: [int(dataset.pairs(name, split).label.sum()) for split in SPLITS] for name in TABLE_1},
    }


def against_the_truth(folder: Path, plan: Plan) -> dict[str, Any]:
    """What the stages found beside what was planted: test figures, the rules' own figures, and true rationales."""
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.dataset import Dataset
    from cogstage.training.measures import dev_measures

    hospital, graph, dataset = Hospital(plan), Graph.load(folder / "graph"), Dataset.load(folder / "dataset")
    number = np.array([int(concept[1:]) for concept in graph.vocabulary.term])  # of each node's term
    test = dataset.pairs(RELATION, "test")
    rule = hospital.follows(RELATION, number[test.head], number[test.tail])
    best = dev_measures(np.where(rule, 5.0, -5.0), test.label)
    measured = json.loads((folder / "evaluation" / "metrics.json").read_text(encoding="utf-8"))
    figures = {name: _figures(metrics) for name, metrics in measured["floor"][RELATION].items()}
    figures["cogstage"] = _figures(measured["relations"][RELATION]["metrics"])
    figures["the rules themselves"] = {"f1": best["f1"], "auroc": best["auroc"]}
    answered = [json.loads(line) for line in (folder / "explained.jsonl").read_text(encoding="utf-8").splitlines()]
    positive = [record for record in answered if record["probability"] >= 0.5]
    checked = [_check(hospital, record) for record in positive]
    facts = {(hospital.concept[head], hospital.concept[tail]) for head, tail in hospital.facts()[RELATION].tolist()}
    examples = zip(positive[:EXAMPLES], checked, strict=False)
    return {
        "test pairs": len(test),
        "figures": figures,
        "pairs explained": len(answered),
        "predicted positive": len(checked),
        "true rationales": float(np.mean([flag for flags in checked for flag in flags] or [0.0])),
        "with a true rationale": float(np.mean([any(flags) for flags in checked] or [0.0])),
        "examples": [_example(record, flags, facts) for record, flags in examples],
    }


def _figures(metrics: Mapping[str, Any]) -> dict[str, float]:
    """F1 and AUROC of a row of an evaluation."""
    return {name: metrics[name]["value"] for name in ("f1", "auroc")}


def _check(hospital: Hospital, record: Mapping[str, Any]) -> list[bool]:
    """For each rationale of a prediction, whether the hospital's rules hold it."""
    triples = [(part["head"]["key"], part["relation"], part["tail"]["key"]) for part in _reasons(record)]
    return [hospital.holds(*triple) for triple in triples]


def _reasons(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The recognised triples that speak for a prediction."""
    return [reason for reason in record["reasons_for"] if reason["relation_probability"] >= 0.5]


def _example(record: Mapping[str, Any], flags: list[bool], facts: set[tuple[str, str]]) -> dict[str, Any]:
    """A prediction for people to read, and whether the pair is a fact."""

    def triple(part: Mapping[str, Any]) -> str:
        return f"{part['head']['name']} {part['relation']} {part['tail']['name']}"

    rationales = [(triple(part), flag) for part, flag in zip(_reasons(record), flags, strict=True)]
    held = "yes" if (record["head"]["key"], record["tail"]["key"]) in facts else "no"
    return {"pair": triple(record), "probability": record["probability"], "label": held, "rationales": rationales}


def main(argv: list[str]) -> None:
    """Run the stages, or go on with them; print the table and what was found."""
    options = parser(__doc__)
    options.add_argument("--folder", help="folder of the run; an unfinished run is continued (default: below --out)")
    options.add_argument("--data-only", action="store_true", help="stop after the data set is built")
    chosen = options.parse_args(argv)
    plan, training = (QUICK, QUICK_TRAINING) if chosen.quick else (PAPER, TRAINING)
    with tempfile.TemporaryDirectory() as fresh:  # a quick run must not find everything done
        default = fresh if chosen.quick else Path(chosen.out) / "hospital"
        run(Path(chosen.folder or default).resolve(), plan, training, chosen.out, chosen.data_only)


def run(folder: Path, plan: Plan, training: Mapping[str, str], out: str, data_only: bool = False) -> None:
    """Run the stages in a folder and report; more memory than the limit is an error."""
    rows = run_stages(folder, plan, training, DATA_STAGES if data_only else None)
    notes = data_notes(folder)
    if not data_only:
        notes |= {**against_the_truth(folder, plan), "training": dict(training)}
    report("hospital_end_to_end", rows, out, notes)
    if not data_only:
        path = Path(out) / "hospital_end_to_end.md"
        path.write_text(page(rows, notes), encoding="utf-8")
        print(f"and as a page to {path}")
    highest = max(row["peak_mb"] for row in rows)
    if highest > MEMORY_LIMIT_MB:
        raise SystemExit(f"a stage took {highest:,.0f} MB, more than the limit of {MEMORY_LIMIT_MB:,}")


def _generate(folder: str, plan: str) -> None:
    """The first stage; the folder appears whole or not at all."""
    unfinished = Path(folder) / "hospital.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    print(write_hospital(replace(Plan(), **json.loads(plan)), unfinished))
    unfinished.rename(Path(folder) / "hospital")


if __name__ == "__main__":
    if sys.argv[1:2] == ["generate"]:
        _generate(*sys.argv[2:4])
    else:
        main(sys.argv[1:])
