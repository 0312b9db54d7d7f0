"""The table of corrections that pages append to: cost, limit, damage, many writers."""

from __future__ import annotations

import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from cogstage.errors import UsageError
from cogstage.estimator import CogStage
from cogstage.rationale.corrections import Correction, Corrections
from cogstage.web.corrections import CorrectedModel
from cogstage.web.explorer_app import create_explorer_app
from cogstage.web.service import Limits, Service

TRIPLE = ("C004", "may_treat", "C007")
HEADER = "head\trelation\ttail\tverdict\twho\twhen\twhy\n"


def full_table(model: CogStage, rows: int) -> Corrections:
    rng = random.Random(0)
    terms = model.vocabulary.term
    return Corrections(
        tuple(Correction(rng.choice(terms), "causes", rng.choice(terms), "wrong", "A") for _ in range(rows))
    )


def in_threads(work: list[tuple[CorrectedModel, int]]) -> None:
    def save_ten(job: tuple[CorrectedModel, int]) -> None:
        for _ in range(10):
            job[0].add([(TRIPLE, "wrong")], f"Dr {job[1]}", "")

    with ThreadPoolExecutor(len(work)) as threads:
        assert list(threads.map(save_ten, work)) == [None] * len(work)


def test_saving_costs_what_is_saved(model: CogStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """20 verdicts on top of 9,900 touch no more of the table than on top of 10."""
    parsed = []
    make = Correction.__post_init__
    monkeypatch.setattr(Correction, "__post_init__", lambda entry: (parsed.append(entry), make(entry))[1])
    for rows in (10, 9_900):
        path = tmp_path / f"{rows}.tsv"
        full_table(model, rows).write(path)
        corrected = CorrectedModel(model, path)
        assert len(corrected.entries) == rows
        before, inode = path.read_bytes(), path.stat().st_ino
        parsed.clear()
        corrected.add([(TRIPLE, "right")] * 20, "Dr B", "why")
        assert len(parsed) == 40  # the new ones, made and read back
        assert len(corrected.entries) == rows + 20
        assert path.read_bytes().startswith(before)  # appended to
        assert path.stat().st_ino == inode


def test_saving_leaves_the_event_loop_free(
    small_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service.load(small_model_folder, corrections=tmp_path / "corrections.tsv")
    threads = []
    add = service.corrected.add
    monkeypatch.setattr(
        service.corrected, "add", lambda *given: (threads.append(threading.current_thread()), add(*given))
    )
    app = create_explorer_app(service)
    loops = []

    @app.get("/loop")
    async def loop() -> None:
        loops.append(threading.current_thread())

    with TestClient(app, follow_redirects=False) as client:
        form = {"triple": "\t".join(TRIPLE), "verdict": "wrong", "who": "Dr A"}
        assert client.post("/corrections", data=form).status_code == 303
        client.get("/loop")
    assert threads[0] is not loops[0]


def test_a_full_table_can_only_be_withdrawn_from(small_model_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "corrections.tsv"
    service = Service.load(small_model_folder, Limits(corrections=2), corrections=path)
    client = TestClient(create_explorer_app(service), follow_redirects=False)
    form = {"triple": "\t".join(TRIPLE), "verdict": "wrong", "who": "Dr A"}
    assert [client.post("/corrections", data=form).status_code for _ in range(3)] == [303, 303, 422]
    withdrawal = {**form, "verdict": "withdrawn"}
    assert client.post("/corrections", data={**withdrawal, "triple": "C004\tcauses\tC009"}).status_code == 422
    assert [client.post("/corrections", data=withdrawal).status_code for _ in range(2)] == [303, 422]
    assert [entry.verdict for entry in Corrections.read(path).entries] == ["wrong", "wrong", "withdrawn"]
    assert service.model.corrected(Corrections()).predict(*TRIPLE[::2], "may_treat") == service.explain(
        "C004", "C007", "may_treat", 8
    )


def test_many_forms_at_once_are_refused_as_a_whole(small_model_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "corrections.tsv"
    client = TestClient(create_explorer_app(Service.load(small_model_folder, corrections=path)))
    form = {"triple": ["\t".join(TRIPLE)] * 21, "verdict": ["wrong"] * 21, "who": "Dr A"}
    assert client.post("/corrections", data=form).status_code == 422
    form = {"triple": ["\t".join(TRIPLE), "C004\tcures\tC007"], "verdict": ["wrong"] * 2, "who": "Dr A"}
    assert client.post("/corrections", data=form).status_code == 422
    assert not path.exists()


def test_writers_in_several_workers_lose_nothing(model: CogStage, tmp_path: Path) -> None:
    path = tmp_path / "corrections.tsv"
    in_threads([(CorrectedModel(model, path), number) for number in range(4)])
    entries = Corrections.read(path).entries
    assert sorted(entry.who for entry in entries) == sorted(f"Dr {n}" for n in range(4) for _ in range(10))
    watching = CorrectedModel(model, path)
    assert watching.entries == entries
    CorrectedModel(model, path).add([(TRIPLE, "right")], "Dr B", "")
    assert watching.entries == Corrections.read(path).entries
    assert len(watching.entries) == 41


@pytest.mark.parametrize(
    "text",
    [
        "head\trelation\ttail\tverdict\nC004\tmay_treat\tC007\tright\n",  # fewer columns
        HEADER + "C004\tmay_treat\tC007\tright\tDr A\t\t",  # no end of line
    ],
)
def test_a_table_written_by_hand_is_added_to(model: CogStage, tmp_path: Path, text: str) -> None:
    path = tmp_path / "corrections.tsv"
    path.write_text(text)
    corrected = CorrectedModel(model, path)
    assert len(corrected.entries) == 1
    corrected.add([(("C004", "causes", "C009"), "wrong")], "Dr B", "")
    assert [entry.verdict for entry in corrected.entries] == ["right", "wrong"]
    assert corrected.entries == Corrections.read(path).entries


def test_a_csv_table_is_read_and_not_added_to(model: CogStage, tmp_path: Path) -> None:
    path = tmp_path / "corrections.csv"
    path.write_text("head,relation,tail,verdict\nC004,may_treat,C007,right\n")
    corrected = CorrectedModel(model, path)
    with pytest.raises(UsageError, match=r"\.tsv"):
        corrected.add([(TRIPLE, "wrong")], "Dr B", "")
    assert len(corrected.entries) == 1


def test_a_row_being_written_is_read_when_it_is_whole(model: CogStage, tmp_path: Path) -> None:
    path = tmp_path / "corrections.tsv"
    path.write_text(HEADER)
    corrected = CorrectedModel(model, path)
    assert corrected.entries == ()
    with path.open("a") as table:
        table.write("C004\tmay_treat\tC0")
        table.flush()
        assert corrected.entries == ()
        table.write("07\twrong\tDr A\t\t\n")
        table.flush()
        os.utime(path, ns=(1, 1))
    assert [entry.tail for entry in corrected.entries] == ["C007"]
