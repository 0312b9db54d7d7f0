"""How the published model learns: losses and dev AUROC after each epoch, one relation after another, on one thread.

Nothing but dev is looked at, and training does not stop early within the epochs asked for.
"""

from __future__ import annotations

from typing import Any

from benchmarks.harness import ONE_THREAD, SkippedError, parser, report, run_side

MARK = 0.70  # the dev AUROC that each relation must pass


def train(
    graph: str,
    dataset: str,
    relation: str,
    epochs: int,
    mark: float,
    settings: dict[str, Any],
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Train until two epochs lie above ``mark`` or the epochs are used up; one line per epoch, printed as it comes.

    Without a graph the data are planted, to see that it runs.
    """
    import numpy as np
    import torch
    from sklearn.metrics import roc_auc_score

    from benchmarks.harness import cpu_seconds
    from benchmarks.planted import Plan, planted
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.dataset import Dataset
    from cogstage.model.paper import PaperConfig
    from cogstage.training.paper import PaperTraining

    counted, data = (Graph.load(graph), Dataset.load(dataset)) if graph else planted(Plan())
    torch.manual_seed(seed)
    training = PaperTraining(PaperConfig(**settings), counted.ppmi(), data.for_fitting(), relation)
    lines: list[dict[str, Any]] = []
    spent, above = 0.0, 0
    for number in range(training.pretraining + epochs):
        begun = cpu_seconds()
        losses = training.run_round(number, np.random.default_rng([seed, number]))
        if number < training.pretraining:
            continue
        logit, label = training.dev_scores()
        auroc, spent = float(roc_auc_score(label, logit)), spent + cpu_seconds() - begun
        epoch = number - training.pretraining + 1
        lines.append({"relation": relation, "epoch": epoch, **losses, "dev AUROC": auroc, "CPU seconds": spent})
        print(lines[-1], flush=True)
        above += auroc > mark
        if above == 2:
            break
    return lines


def main(argv: list[str] | None = None) -> None:
    """Print a line per relation: when its dev AUROC passed the mark, and the highest; then its curves."""
    options = parser(__doc__)
    options.add_argument("--graph", default="", help="folder of the graph")
    options.add_argument("--dataset", default="", help="folder of a data set built on it")
    options.add_argument("--relations", default="", help="separated by commas; all of the data set by default")
    options.add_argument("--epochs", type=int, default=100, help="largest number of epochs per relation")
    options.add_argument("--mark", type=float, default=1.0, help="stop after two epochs above this dev AUROC")
    chosen = options.parse_args(argv)
    settings: dict[str, Any] = {}
    if chosen.quick:
        chosen.graph = chosen.dataset = ""
        names, chosen.epochs = ["may_treat"], 2
        settings = {"dimension": 16, "associations": 6, "negatives": 10, "pair_batch": 64}
    elif not chosen.graph or not chosen.dataset:
        raise SkippedError("it needs --graph and --dataset, folders of a graph and of a data set built on it")
    else:
        from cogstage.knowledge.dataset import Dataset

        names = chosen.relations.split(",") if chosen.relations else list(Dataset.load(chosen.dataset).relations)
    rows, curves = [], []
    for relation in names:
        asked = {"graph": chosen.graph, "dataset": chosen.dataset, "relation": relation, "epochs": chosen.epochs}
        asked |= {"mark": chosen.mark, "settings": settings}
        lines = run_side("benchmarks.paper_course:train", asked, ONE_THREAD)["result"]
        curves += lines
        passed = next((line for line in lines if line["dev AUROC"] > MARK), None)
        rows.append(
            {
                "relation": relation,
                "epochs": len(lines),
                f"first above {MARK:.2f}": passed["epoch"] if passed else "never",
                "CPU seconds until then": passed["CPU seconds"] if passed else None,
                "highest dev AUROC": max(line["dev AUROC"] for line in lines),
                "CPU seconds": lines[-1]["CPU seconds"],
            }
        )
    report("paper_course", rows, chosen.out)
    report("paper_course_curves", curves, chosen.out)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
