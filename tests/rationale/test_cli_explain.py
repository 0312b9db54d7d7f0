"""``explain``, ``discover`` and ``cases`` as a user runs them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from cogstage.cli.main import run
from cogstage.estimator import CogStage
from cogstage.rationale.record import Prediction
from cogstage.relations import phrase


def cogstage(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        run(list(arguments))
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def test_explain_prints_all_relations_and_the_reasons_of_the_strongest_verdict(
    small_model_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = cogstage(capsys, "explain", str(small_model_folder), "REMEDY 4", "disorder number 7", "-k", "3")
    assert code == 0
    prediction = CogStage.load(small_model_folder).predict("C004", "C007")
    assert prediction.relation == prediction.profile[0].relation
    lines = out.splitlines()
    assert lines[0] == prediction.statement
    assert [line.split("  ")[2] for line in lines[2:4]] == [phrase(entry.relation) for entry in prediction.profile]
    assert all(f"{entry.probability:.3f}" in line for entry, line in zip(prediction.profile, lines[2:4], strict=True))
    assert out.count("sum (log-odds)") == 1
    assert "baseline" in out


def test_each_relation_is_evaluated_once(small_model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CogStage.load(small_model_folder)
    predictor = type(model.predictor)
    calls: list[str] = []
    for name in ("profile_logits", "reasons"):
        method = getattr(predictor, name)
        monkeypatch.setattr(predictor, name, lambda *given, n=name, m=method: calls.append(n) or m(*given))
    assert model.predict("C004", "C007").reasons
    assert calls == ["profile_logits", "reasons"]


def test_explain_json_is_the_record(small_model_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("explain", str(small_model_folder), "C004", "C007", "-r", "causes", "--json")
    code, out, _ = cogstage(capsys, *arguments)
    assert code == 0
    record = Prediction.from_json(out)
    assert (record.head.key, record.relation, record.tail.key) == ("C004", "causes", "C007")


def test_a_base_rate_judges_all_relations_anew(small_model_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("explain", str(small_model_folder), "C004", "C007", "--json")
    half = Prediction.from_json(cogstage(capsys, *asked)[1])
    rare = Prediction.from_json(cogstage(capsys, *asked, "--base-rate", "0.01")[1])
    shift = math.log(0.01 / 0.99)
    before = {entry.relation: entry.logit for entry in half.profile}
    assert {entry.relation: entry.logit for entry in rare.profile} == pytest.approx(
        {relation: logit + shift for relation, logit in before.items()}
    )
    assert rare == half.with_base_rate(0.01)


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
    code, out, _ = cogstage(capsys, "discover", str(small_model_folder), "C004", "--top", "4", "--json")
    assert code == 0
    assert [json.loads(line)["relation"] for line in out.splitlines()] == ["may_treat"] * 4 + ["causes"] * 4
    assert [json.loads(line)["rank"] for line in out.splitlines()] == [1, 2, 3, 4] * 2


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
    assert lines[0] == CogStage.load(small_model_folder).predict("C004", "C007", "causes").statement
