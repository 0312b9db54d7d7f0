"""Telling `causes` from `may_treat` with and without the order in time, on records whose answer is planted.

Drugs and events come in classes, and a class of drugs either treats or causes a class of events, as a coin decides. A
patient's episode holds some drugs and some events of two joined classes: the events come first where the drugs treat
them, and the drugs come first where they cause them, except in a share of episodes. Nothing else differs, so counts
alone cannot tell the two relations apart. The knowledge base knows nothing of the joined classes that are tested: they
are held out, pair by pair, and are found neither in facts nor in negatives.
"""

from __future__ import annotations

import csv
import tempfile
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import measured, parser, report, run_side, side_row

RELATIONS = ("may_treat", "causes")
FIRST_DAY = date(2015, 1, 1)


@dataclass(frozen=True)
class Plan:
    """The size of the hospital."""

    classes: int = 40  # of drugs, and as many of events
    members: int = 8  # of a class
    joined: int = 5  # classes of events that a class of drugs is joined with
    patients: int = 30_000
    untidy: float = 0.2  # share of episodes in the other order
    held_out: float = 0.2  # share of the joined classes that no fact names
    seed: int = 1  # the scale of the feature was chosen on hospitals of seed 0, so figures come from another


QUICK = Plan(classes=20, members=6, joined=4, patients=8_000)


@dataclass(frozen=True)
class Joined:
    """The joined classes: numbers of the drugs' and the events' class, whether it causes, whether it is tested."""

    drugs: np.ndarray
    events: np.ndarray
    causes: np.ndarray
    tested: np.ndarray

    @classmethod
    def of(cls, plan: Plan, rng: np.random.Generator) -> Joined:
        """Drawn at random."""
        events = np.concatenate([rng.choice(plan.classes, plan.joined, replace=False) for _ in range(plan.classes)])
        drugs = np.repeat(np.arange(plan.classes), plan.joined)
        return cls(drugs, events, rng.random(len(drugs)) < 0.5, rng.random(len(drugs)) < plan.held_out)


def write_hospital(plan: Plan, folder: Path) -> None:
    """Write ``records.csv``, ``facts.tsv`` (what is known) and ``tested.tsv`` (what is asked)."""
    rng = np.random.default_rng(plan.seed)
    joined = Joined.of(plan, rng)
    with (folder / "records.csv").open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["patient_id", "date", "code", "name", "type"])
        for patient in range(plan.patients):
            for day in rng.choice(3_000, 2, replace=False).tolist():
                at = int(rng.integers(len(joined.drugs)))
                drug_first = joined.causes[at] != (rng.random() < plan.untidy)
                later = [int(rng.integers(1, 45)), 0][:: 1 if drug_first else -1]  # days until event, until drug
                for kind, group, wait in (("event", joined.events, later[0]), ("drug", joined.drugs, later[1])):
                    seen = FIRST_DAY + timedelta(days=day + wait)
                    for member in rng.choice(plan.members, 3, replace=False).tolist():
                        code = _code(kind, int(group[at]), member)
                        writer.writerow([f"p{patient}", seen.isoformat(), code, code, kind])
    known, asked = ["head\trelation\ttail"], ["head\ttail\trelation"]
    for drugs, events, causes, tested in zip(joined.drugs, joined.events, joined.causes, joined.tested, strict=True):
        relation = RELATIONS[int(causes)]
        for one in range(plan.members):
            for other in range(plan.members):
                head, tail = _code("drug", int(drugs), one), _code("event", int(events), other)
                known.append(f"{head}\t{relation}\t{tail}")
                if tested:
                    asked.append(f"{head}\t{tail}\t{relation}")
    (folder / "facts.tsv").write_text("\n".join(known) + "\n", encoding="utf-8")
    (folder / "tested.tsv").write_text("\n".join(asked) + "\n", encoding="utf-8")


def _code(kind: str, group: int, member: int) -> str:
    return f"{kind} {group}-{member}"


def told_apart(plan: dict[str, Any], order: bool) -> dict[str, Any]:
    """Build the graph, the data set and the model; AUROC of `causes` against `may_treat` among the tested pairs."""
    from cogstage.estimator import CogStage
    from cogstage.graph.build import build_graph
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.options import BuildOptions
    from cogstage.knowledge.build import build_dataset
    from cogstage.knowledge.hold_out import HoldOut
    from cogstage.knowledge.table import facts_from_table
    from cogstage.statistics import auroc
    from cogstage.tables import read_rows

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_hospital(Plan(**plan), folder)
        options = BuildOptions(unit="patient-window", window=None, per="patient", order=order, lag=90)
        with measured() as building:
            build_graph(folder / "records.csv", folder / "graph", options=options)
        graph = Graph.load(folder / "graph")
        facts, held_out = facts_from_table(folder / "facts.tsv"), HoldOut.read(folder / "tested.tsv")
        dataset = build_dataset(graph, facts, folder / "dataset", hold_out=held_out)
        with measured() as took:
            model = CogStage().fit(graph, dataset)
        rows = list(read_rows(folder / "tested.tsv", ["head", "tail", "relation"]))
    index = graph.vocabulary.index
    head, tail = (np.array([index[str(row[end])] for row in rows]) for end in ("head", "tail"))
    causes = np.array([row["relation"] == "causes" for row in rows])
    logits = {name: model.logits(head, tail, name) for name in RELATIONS}
    alone = {name: model.recognised(head, tail, name) for name in RELATIONS}
    return {
        **took,
        "build_cpu": building["cpu_seconds"],
        "pairs": len(rows),
        "counted together": float((model.counts.counts(head, tail) > 0).mean()),
        "causes": auroc(causes, logits["causes"]),
        "may_treat": auroc(~causes, logits["may_treat"]),
        "both": auroc(causes, logits["causes"] - logits["may_treat"]),
        "recognition": auroc(causes, alone["causes"] - alone["may_treat"]),
        "dev": {name: model.metrics["dev"][name]["auroc"] for name in RELATIONS},
    }


def main(argv: list[str] | None = None) -> None:
    """Both sides, and the figures that the order in time is worth."""
    options = parser(__doc__).parse_args(argv)
    plan = asdict(QUICK if options.quick else Plan())
    rows = []
    for label, order in (("counts alone", False), ("counts and order", True)):
        side = run_side("benchmarks.order_in_time:told_apart", {"plan": plan, "order": order})
        found = side["result"]
        more = {
            "AUROC": found["both"],
            "AUROC by causes": found["causes"],
            "AUROC by may_treat": found["may_treat"],
            "AUROC recognition": found["recognition"],
            "build CPU s": found["build_cpu"],
            "pairs": found["pairs"],
        }
        rows.append(side_row(label, side, **more))
    report("order_in_time", rows, options.out, plan)


if __name__ == "__main__":
    main()
