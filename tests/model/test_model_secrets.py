"""One patient's words never reach a model folder that was trained on a suppressed or private graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from planted_secrets import SECRET, folder_holds
from training_settings import QUICK

from cogstage.estimator import CogStage
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions, PrivacyOptions
from cogstage.knowledge.dataset import SPLITS, Dataset, Pairs
from cogstage.triples import Triples

CODES = 12


def records(folder: Path) -> Path:
    """Twelve codes of 400 patients each; one patient says the secret in every field."""
    rows = [f"{SECRET},2020-01-01,K{code},{SECRET} {code},type {SECRET}" for code in range(CODES)]
    rows.append(f"{SECRET},2020-01-01,{SECRET}-code,only {SECRET},x")
    for patient in range(400):
        rows += [f"p{patient},2020-01-01,K{code},finding {code},disorder" for code in range(CODES)]
    path = folder / "records.csv"
    path.write_text("patient_id,date,code,name,type\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def facts_of(graph: Graph) -> Dataset:
    """A data set over the graph's nodes: even nodes treat odd ones of the same half."""
    nodes = graph.n_nodes
    every = np.array([(h, t) for h in range(0, nodes, 2) for t in range(1, nodes, 2)], np.int32)
    label = ((every[:, 0] < nodes / 2) == (every[:, 1] < nodes / 2)).astype(np.int8)
    pairs, facts = {}, {}
    for number, split in enumerate(SPLITS):
        mine = np.arange(len(every)) % 3 == number
        pairs["may_treat", split] = Pairs(every[mine, 0], every[mine, 1], label[mine])
        held = every[mine][label[mine] == 1]
        facts[split] = Triples(held[:, 0], np.zeros(len(held), np.int16), held[:, 1])
    return Dataset(("may_treat",), graph.vocabulary.hash, nodes, {"relations": ["may_treat"]}, {}, pairs, facts)


@pytest.mark.parametrize(
    ("kind", "said"), [("suppressed", "counts below 11 suppressed"), ("private", "differentially private")]
)
def test_no_word_of_one_patient_reaches_a_model_folder(tmp_path: Path, kind: str, said: str) -> None:
    private = PrivacyOptions(8.0, 0.01, 70)
    options = BuildOptions(private=private) if kind == "private" else BuildOptions(suppress_below=11)
    build_graph(records(tmp_path), tmp_path / "graph", options=options)
    graph = Graph.load(tmp_path / "graph")
    assert graph.n_nodes == CODES
    model = CogStage("may_treat", **{**QUICK, "folds": 0}).fit(graph, facts_of(graph))
    model.save(tmp_path / "model")
    assert folder_holds(tmp_path / "model", SECRET) == []
    assert CogStage.load(tmp_path / "model").privacy.startswith(said)
    assert model.predict(0, 1).provenance.privacy.startswith(said)
