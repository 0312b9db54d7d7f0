"""The page and the command of the review queue."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from small_model import small_model
from starlette.testclient import TestClient

from cogstage.cli.main import run
from cogstage.estimator import CogStage
from cogstage.rationale.corrections import Corrections
from cogstage.review.queue import AskedPair, review_queue
from cogstage.web.review_app import ReviewQueue, create_review_app

PAIRS: list[AskedPair] = [(0, 5, None), (2, 7, "may_treat")]
BASE = "http://127.0.0.1:8766"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.getbasetemp())


def hidden(page: str) -> dict[str, str]:
    return dict(re.findall(r'name="(head|relation|tail)" value="([^"]+)"', page))


def test_verdicts_of_the_page_are_corrections(folder: Path, tmp_path: Path) -> None:
    model, table = CogStage.load(folder), tmp_path / "corrections.tsv"
    expected = [entry.triple for entry in review_queue(model, PAIRS, top=5)]
    queue = ReviewQueue(model, PAIRS, table, top=5)
    browser = TestClient(create_review_app(queue), base_url=BASE, headers={"origin": BASE})
    for verdict, triple in zip(("right", "skip", "wrong"), expected, strict=False):
        fields = hidden(browser.get("/").text)
        assert tuple(fields.values()) == triple
        answer = browser.post("/", data={**fields, "verdict": verdict, "who": "Dr <A>", "why": "=known"})
        assert answer.status_code == 200
        assert "Dr &lt;A&gt;" in answer.text
    stored = Corrections.read(table).entries
    assert [((e.head, e.relation, e.tail), e.verdict) for e in stored] == [
        (expected[0], "right"),
        (expected[2], "wrong"),
    ]
    assert [entry.triple for entry in queue.open] == expected[3:]
    assert "2 verdicts are stored" in browser.get("/").text
    late = dict(zip(("head", "relation", "tail"), expected[0], strict=True))
    assert browser.post("/", data={**late, "verdict": "wrong", "who": "B"}).status_code == 200
    assert len(Corrections.read(table).entries) == 2  # a triple that has a verdict is no question any more
    assert browser.post("/", data={**hidden(browser.get("/").text), "verdict": "right"}).status_code == 400  # no name
    elsewhere = {"origin": "https://evil.example"}
    assert browser.post("/", data={**fields, "verdict": "wrong", "who": "E"}, headers=elsewhere).status_code == 403
    assert browser.get("/queue.tsv").text.splitlines()[1].split("\t")[:3] == list(expected[3])


def test_the_queue_is_made_again_after_twenty_verdicts(folder: Path, tmp_path: Path) -> None:
    model, table = CogStage.load(folder), tmp_path / "corrections.tsv"
    queue = ReviewQueue(model, PAIRS, table, top=25)
    first = [entry.triple for entry in queue.open]
    for triple in first[:19]:
        queue.answer(triple, "wrong", "A", "")
    assert [entry.triple for entry in queue.open] == first[19:]
    queue.answer(first[19], "right", "A", "")
    again = model.corrected(Corrections.read(table))
    assert queue.open == review_queue(again, PAIRS, top=25)


def test_the_command_prints_and_writes_the_queue(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs, table, out = (tmp_path / name for name in ("pairs.tsv", "corrections.tsv", "queue.tsv"))
    pairs.write_text("head\ttail\nC000\tC005\n")
    arguments = ["review", str(folder), "--pairs", str(pairs), "--top", "2", "-o", str(out)]
    with pytest.raises(SystemExit) as end:
        run([*arguments, "--json"])
    assert end.value.code == 0
    first, second = json.loads(capsys.readouterr().out)
    table.write_text(out.read_text().replace(f"{first['tail']['key']}\t\t", f"{first['tail']['key']}\twrong\t", 1))
    rows = table.read_text().splitlines()[:2]
    table.write_text("\n".join(rows) + "\n")
    with pytest.raises(SystemExit):
        run([*arguments, "--corrections", str(table), "--json"])
    again = json.loads(capsys.readouterr().out)
    ends = ("head", "relation", "tail")
    assert [again[0][end] for end in ends] == [second[end] for end in ends]
    with pytest.raises(SystemExit):
        run(arguments)
    assert first["tail"]["name"] in capsys.readouterr().out.splitlines()[3]
    for wrong in (["review", str(folder)], [*arguments, "--serve"]):
        with pytest.raises(SystemExit) as end:
            run(wrong)
        assert end.value.code == 2
