"""``explain``, ``discover`` and ``cases`` as a user runs them."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from cogstage.cli.main import run
from cogstage.estimator import CogStage
from cogstage.rationale.record import Prediction


def cogstage(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        run(list(arguments))
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def test_explain_prints_a_table_for_every_relation(
    small_model_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = cogstage(capsys, "explain", str(small_model_folder), "REMEDY 4", "disorder number 7", "-k", "3")
    assert code == 0
    assert "Drug number 4 may treat Disorder number 7" in out
    assert "Drug number 4 causes Disorder number 7" in out
    assert out.count("sum (log-odds)") == 2
    assert "baseline" in out


def test_explain_json_is_the_record(small_model_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("explain", str(small_model_folder), "C004", "C007", "-r", "causes", "--json")
    code, out, _ = cogstage(capsys, *arguments)
    assert code == 0
    record = Prediction.from_json(out)
    assert (record.head.key, record.relation, record.tail.key) == ("C004", "causes", "C007")


def test_explain_names_a_likelier_opposite(
    small_model_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """may_treat and causes contradict each other; only a likely answer that another one outdoes is annotated."""
    made_up = {"may_treat": 2.0, "causes": 1.0}
    batch = CogStage.predict_batch

    def predict(self: CogStage, head: Any, tail: Any, relation: str, *others: Any) -> list[Prediction]:
        logit = made_up[relation]
        return [
            dataclasses.replace(p, logit=logit, probability=1 / (1 + math.exp(-logit)))
            for p in batch(self, head, tail, relation, *others)
        ]

    monkeypatch.setattr(CogStage, "predict_batch", predict)
    asked = ("explain", str(small_model_folder), "C004", "C007")
    note = "note: Drug number 4 may treat Disorder number 7 is more likely (0.881) and contradicts “causes”"
    for more in ((), ("-r", "causes"), ("-r", "causes", "--prose")):
        assert cogstage(capsys, *asked, *more)[2].splitlines() == [note]
    assert cogstage(capsys, *asked, "-r", "may_treat")[2] == ""
    assert cogstage(capsys, *asked, "-r", "causes", "--json")[2] == ""
    made_up["causes"] = -1.0
    assert cogstage(capsys, *asked, "-r", "causes")[2] == ""


@pytest.mark.parametrize("ending", ["svg", "png", "html", "tsv", "parquet", "jsonl", "graphml", "dot"])
def test_explain_writes_every_form(
    small_model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    target = tmp_path / f"out.{ending}"
    arguments = ("explain", str(small_model_folder), "C004", "C007", "-r", "causes", "--out", str(target))
    assert cogstage(capsys, *arguments)[0] == 0
    assert target.stat().st_size > 0


def test_pair_file_does_the_rest_and_names_bad_rows(
    small_model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("head\ttail\nC004\tC007\nnobody\tC007\nC004\tC004\nC010\tC133\nC004\n", encoding="utf-8")
    arguments = ("explain", str(small_model_folder), "--pairs", str(pairs), "-r", "may_treat", "--json")
    code, out, err = cogstage(capsys, *arguments)
    assert code == 1
    assert [json.loads(line)["head"]["key"] for line in out.splitlines()] == ["C004", "C010"]
    assert f"{pairs}:3: unknown term: nobody" in err
    assert f"{pairs}:4: head and tail are the same term" in err
    assert f"{pairs}:6: 1 columns" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("C004", "Disordr number 7"), "did you mean"),
        (("C004", "C004"), "same term"),
        (("C004",), "needs a head and a tail"),
        (("C004", "C007", "-r", "cures"), "does not know the relation cures"),
    ],
)
def test_wrong_use_is_one_line(
    small_model_folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    code, out, err = cogstage(capsys, "explain", str(small_model_folder), *arguments)
    assert code == 2
    assert out == ""
    assert words in err
    assert len(err.strip().splitlines()) == 1


def test_discover_ranks_and_explains(small_model_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ("discover", str(small_model_folder), "C004", "-r", "may_treat", "--top", "4")
    code, out, _ = cogstage(capsys, *base)
    assert code == 0
    assert "Drug number 4 may treat" in out
    code, out, _ = cogstage(capsys, *base, "--json", "--new-only")
    records = [Prediction.from_json(line) for line in out.splitlines()]
    assert len(records) == 4
    assert not any(record.known_fact for record in records)
    code, _, err = cogstage(capsys, "discover", str(small_model_folder), "C004")
    assert code == 2
    assert "--relation" in err


def test_what_if_on_the_command_line(small_model_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ("explain", str(small_model_folder), "C004", "C007", "-r", "causes", "--json")
    record = Prediction.from_json(cogstage(capsys, *base)[1])
    first = record.reasons[0]
    triple = f"{first.head.name} {first.relation} {first.tail.name}"
    without = Prediction.from_json(cogstage(capsys, *base, "--without", triple)[1])
    assert without.logit - record.logit == pytest.approx(first.effect, abs=1e-5)
    assumed = Prediction.from_json(cogstage(capsys, *base, "--assume", triple)[1])
    shown = {r.triple: r for r in assumed.reasons}
    assert first.triple not in shown or shown[first.triple].relation_probability == 1.0
    code, _, err = cogstage(capsys, *base, "--without", "nonsense")
    assert code == 2
    assert "is not a triple" in err


def test_prose_on_the_command_line(small_model_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = cogstage(capsys, "explain", str(small_model_folder), "C004", "C007", "-r", "causes", "--prose")
    assert code == 0
    lines = out.strip().splitlines()
    assert 2 <= len(lines) <= 5
    assert lines[0].startswith("It is ")
    assert "Drug number 4 causes Disorder number 7" in lines[0]
