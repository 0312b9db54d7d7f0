"""From documents to the About page and the evidence of a reason, through the command line."""

from __future__ import annotations

import html
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
import web_browser
from fastapi.testclient import TestClient
from small_model import QUICK
from typer.testing import CliRunner

from cogstage.cli.main import app
from cogstage.estimator import CogStage
from cogstage.knowledge.dataset import Dataset
from cogstage.rationale.record import Prediction
from cogstage.rationale.text import prediction_text
from cogstage.web.explorer_app import create_explorer_app
from cogstage.web.service import Service

pytestmark = pytest.mark.slow  # every command from documents to an evaluated model
TOPICS, EACH, DOCUMENTS = 5, 8, 900


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents, graph with examples, facts with a licence, data set, model, test figures."""
    folder = tmp_path_factory.mktemp("pipeline")
    generator = random.Random(0)
    names = [f"{kind}{topic}x{n}" for topic in range(TOPICS) for kind in ("drug", "disease") for n in range(EACH)]
    lexicon = "".join(f"{name}\t{name.upper()}\t{name}\t{name.rstrip('0123456789x')}\n" for name in names)
    (folder / "lexicon.tsv").write_text("term\tconcept\tname\ttype\n" + lexicon, encoding="utf-8")
    with (folder / "abstracts.pubtator").open("w", encoding="utf-8") as handle:
        for number in range(DOCUMENTS):
            topic = generator.randrange(TOPICS)
            drug, disease = (f"{kind}{topic}x{generator.randrange(EACH)}" for kind in ("drug", "disease"))
            other = generator.choice(names)
            handle.write(f"{1000 + number}|t|We gave {drug} for {disease}.\n{1000 + number}|a|Also {other}.\n\n")
    rows = [
        f"DRUG{topic}X{i}\tmay_treat\tDISEASE{topic}X{j}\ttextbook {'AB'[i % 2]}\n"
        for topic in range(TOPICS)
        for i in range(EACH)
        for j in range(EACH)
    ]
    (folder / "facts.tsv").write_text("head\trelation\ttail\tsource\n" + "".join(rows), encoding="utf-8")
    run(
        *("graph", "build", folder / "abstracts.pubtator", "--lexicon", folder / "lexicon.tsv", "--content", "text"),
        *("--keep-examples", "2", "--corpus", "made-up abstracts", "--licence", "CC0", "--out", folder / "graph"),
    )
    run("facts", "table", folder / "facts.tsv", "--licence", "CC BY 4.0", "--out", folder / "facts")
    given = ("--graph", folder / "graph", "--facts", folder / "facts", "--out", folder / "data")
    run("dataset", "build", *given)
    settings = [part for name, value in QUICK.items() for part in ("--set", f"{name}={value}")]
    given = ("--graph", folder / "graph", "--dataset", folder / "data", "--out", folder / "model")
    run("train", *given, *settings)
    return folder


@pytest.fixture(scope="module")
def evaluated(pipeline: Path) -> dict[str, dict[str, dict[str, float]]]:
    output = run("evaluate", pipeline / "model", "--dataset", pipeline / "data", "--keep", "--json")
    found: dict[str, dict[str, dict[str, float]]] = json.loads(output[output.index("{") :])["relations"]
    return found


@pytest.fixture(scope="module")
def service(pipeline: Path, evaluated: object) -> Service:
    return Service.load(pipeline / "model")


@pytest.fixture(scope="module")
def client(service: Service) -> TestClient:
    return TestClient(create_explorer_app(service))


def plain(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_about_says_what_was_counted_and_who_states_the_facts(client: TestClient) -> None:
    text = plain(client.get("/about").text)
    for words in ("Corpus made-up abstracts", f"Documents {DOCUMENTS}", "2 documents per pair"):
        assert words in text
    assert "textbook A 160" in text
    assert "textbook B 160" in text
    assert "Sources and licences CC0 CC BY 4.0" in text


def test_about_shows_the_figures_and_the_curve_of_the_test_pairs(
    client: TestClient, pipeline: Path, evaluated: dict[str, dict[str, dict[str, float]]]
) -> None:
    page = client.get("/about").text
    assert "Measured on test pairs" in plain(page)
    figures = evaluated["may_treat"]["metrics"]
    for name in ("f1", "auroc", "brier"):
        value = figures[name]["value"]  # type: ignore[index]
        assert f">{value:.3f}<" in page
    data, model = Dataset.load(pipeline / "data"), CogStage.load(pipeline / "model")
    pairs = data.pairs("may_treat", "test")
    p = model.probabilities(pairs.head, pairs.tail, "may_treat")
    bins = model.metrics["test"]["reliability"]["may_treat"]
    assert sum(entry["pairs"] for entry in bins) == len(pairs)
    edges = np.linspace(0, 1, 11)
    for entry in bins:  # counted again, in the plainest way
        low = edges[np.searchsorted(edges, entry["predicted"], "right") - 1]
        inside = (p >= low) & (p < low + 0.1) | ((low > 0.89) & (p == 1))
        assert entry["pairs"] == inside.sum()
        assert entry["true"] == pytest.approx(pairs.label[inside].mean())
    assert page.count("<circle") == len(bins)


def test_a_model_without_test_figures_shows_those_of_dev(small_model_folder: Path, pipeline: Path) -> None:
    page = TestClient(create_explorer_app(Service.load(small_model_folder))).get("/about").text
    assert "Measured on the dev pairs" in plain(page)
    dev = CogStage.load(pipeline / "model").metrics["reliability"]["may_treat"]
    assert sum(entry["pairs"] for entry in dev) == len(Dataset.load(pipeline / "data").pairs("may_treat", "dev"))


def with_examples(service: Service) -> Prediction:
    for head in range(40):
        for tail in range(40):
            keys = f"DRUG{head // 8}X{head % 8}", f"DISEASE{tail // 8}X{tail % 8}"
            found = service.explain(*keys, "may_treat", 10)
            if any(reason.examples for reason in found.reasons):
                return found
    raise AssertionError("no reason has an example")


def test_the_evidence_of_a_reason_shows_its_documents(service: Service, client: TestClient, pipeline: Path) -> None:
    documents = (pipeline / "abstracts.pubtator").read_text(encoding="utf-8")
    record = with_examples(service)
    asked = {"head": record.head.key, "tail": record.tail.key, "relation": "may_treat"}
    page = client.get("/pair", params=asked).text
    answer = client.get("/api/v1/explain", params={**asked, "k": 10}).json()
    assert Prediction.from_dict(answer) == record
    told = prediction_text(record)
    seen = 0
    for reason in record.reasons:
        assert bool(reason.examples) == bool(reason.count)
        assert len(reason.examples) == min(2, reason.count or 0)
        for example in reason.examples:
            seen += 1
            for sentence in example.sentences:
                assert any(f"{example.document}|{part}|{sentence}" in documents for part in "ta")
                assert html.escape(sentence) in page
                assert sentence in told
            assert all(any(name in s for s in example.sentences) for name in (reason.head.name, reason.tail.name))
            assert f'href="https://pubmed.ncbi.nlm.nih.gov/{example.document}/"' in page
    assert seen


def test_agents_see_the_documents_and_hidden_counts_hide_them(service: Service, pipeline: Path) -> None:
    pytest.importorskip("mcp")
    import asyncio

    from cogstage.mcp.server import create_server

    record = with_examples(service)
    reason = next(reason for reason in record.reasons if reason.examples)
    asked = {"one": reason.head.key, "other": reason.tail.key}
    content = asyncio.run(create_server(service).call_tool("evidence", asked))
    assert reason.examples[0].document in str(content)
    hidden = Service.load(pipeline / "model", hide_counts=True)
    again = hidden.explain(record.head.key, record.tail.key, "may_treat", 10)
    assert not any(reason.examples for reason in again.reasons)
    assert hidden.examples_of(*(hidden.find(asked[name]) for name in ("one", "other"))) == []
    text = plain(TestClient(create_explorer_app(hidden)).get("/about").text)
    assert "made-up abstracts" not in text
    assert "made-up abstracts" not in json.dumps(hidden.about())


def test_figures_are_kept_of_the_model_itself_alone(pipeline: Path, tmp_path: Path) -> None:
    (tmp_path / "corrections.tsv").write_text("head\trelation\ttail\tverdict\n", encoding="utf-8")
    given = ["evaluate", str(pipeline / "model"), "--dataset", str(pipeline / "data"), "--keep"]
    for more in (["--on", "dev"], ["--corrections", str(tmp_path / "corrections.tsv")]):
        result = CliRunner().invoke(app, [*given, *more])
        assert result.exit_code != 0
        assert "--keep" in str(result.exception)


def test_a_reader_opens_the_sentences_and_the_curve(
    service: Service, pipeline: Path, tmp_path: Path, chromium: None
) -> None:
    record = with_examples(service)
    number, reason = next(
        (n, r) for n, r in enumerate(record.reasons_for + record.reasons_against, start=1) if r.examples
    )
    server = web_browser.Server("serve", str(pipeline / "model"))
    server.start("/api/v1/health")
    try:
        with web_browser.browser(tmp_path / "profile") as driver:
            driver.get(f"{server.url}/pair?head={record.head.key}&tail={record.tail.key}&relation=may_treat")
            row = driver.find_element("id", f"reason-{number}")
            row.find_element("css selector", "summary").click()
            quotes = row.find_elements("css selector", ".examples q")
            assert all(quote.is_displayed() for quote in quotes)
            shown = [quote.text.strip('“”"') for quote in quotes]
            assert shown == [sentence for example in reason.examples for sentence in example.sentences]
            driver.get(f"{server.url}/about")
            assert driver.find_elements("css selector", ".curve circle")
            assert "CC BY 4.0" in driver.find_element("tag name", "main").text
    finally:
        server.stop()
