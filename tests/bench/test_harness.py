"""Benchmarks: each can be named, asked for a quick run, left out with a reason; sides run alone and become ratios."""

from __future__ import annotations

import importlib
import json
import os
import time
from pathlib import Path

import pytest
from benchmarks import __main__ as front
from benchmarks import counting, harness

NEED_LITERATURE = ("annotation", "literature_graph", "spark_graph")


def test_every_benchmark_takes_a_quick_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"annotation", "baselines", "counting", "growth", "model_step", "scorers", "service"} <= set(front.names())
    for name in front.names():
        with pytest.raises(SystemExit) as ended:
            importlib.import_module(f"benchmarks.{name}").main(["--help"])
        assert ended.value.code == 0
        assert "--quick" in capsys.readouterr().out, name


def test_what_is_no_benchmark_is_not_listed() -> None:
    assert not {"harness", "hospital", "studies", "__main__"} & set(front.names())


def test_an_unknown_name_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["nonsense"]) == front.WRONG_USE
    assert "counting" in capsys.readouterr().err


def test_all_of_them_end_with_what_became_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(front, "names", lambda: ["annotation"])
    assert front.main(["--quick", "all", "--data", str(tmp_path)]) == front.DONE  # left out is not failed
    assert "annotation              left out" in capfd.readouterr().out
    assert front.main(["all", "--no-such-option"]) == front.FAILED
    assert "annotation              FAILED" in capfd.readouterr().out


def test_only_quick_ones_share_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most = [], []

    def fake(name: str, arguments: list[str], environment: dict[str, str]) -> front.End:
        running.append(name)
        time.sleep(0.05)
        most.append((len(running), environment.get("OMP_NUM_THREADS")))
        running.remove(name)
        return front.End(front.DONE, name)

    monkeypatch.setattr(front, "_run", fake)
    monkeypatch.setattr(front, "names", lambda: list("abcdef"))
    for arguments, expected in ((["all"], (1, None)), (["all", "--quick"], (2, "1"))):
        most.clear()
        assert front.main(arguments) == front.DONE
        assert max(most) == expected


@pytest.mark.parametrize("name", NEED_LITERATURE)
def test_without_the_literature_set_it_is_left_out_with_a_reason(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert front.main([name, "--quick", "--data", str(tmp_path)]) == front.LEFT_OUT
    said = capsys.readouterr().out
    assert f"{name} is left out" in said
    assert str(tmp_path) in said
    assert "--data" in said


def test_a_side_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    side = harness.run_side("os:getpid")
    assert side["result"] != os.getpid()
    assert min(side["seconds"], side["cpu_seconds"], side["peak_mb"]) >= 0


def test_a_block_is_measured_without_its_set_up() -> None:
    held = bytearray(64 << 20)
    del held
    with harness.measured() as took:
        block = b"\1" * (32 << 20)
    assert len(block) == 32 << 20
    assert set(took) == {"seconds", "cpu_seconds", "work_mb"}
    assert 30 < took["work_mb"] < 60


def test_ratios_say_how_much_better_a_row_is() -> None:
    reference = {"seconds": 8.0, "CPU seconds": 4.0, "peak MB": 100.0, "work": 10}
    row = {"seconds": 2.0, "CPU seconds": 2.0, "peak MB": 50.0, "work": 20}
    harness.add_ratios([row], reference, work="work")
    assert (row["× faster"], row["× less CPU"], row["× less memory"]) == (8.0, 4.0, 2.0)


def test_counting_writes_sizes_machine_and_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(counting, "QUICK", {"n_rows": 2_000, "n_terms": 100, "n_units": 200})
    counting.main(["--quick", "--out", str(tmp_path)])
    assert "× less CPU" in capsys.readouterr().out
    written = json.loads((tmp_path / "counting.json").read_text(encoding="utf-8"))
    assert written["notes"]["n_rows"] == 2_000
    assert written["notes"]["equal pairs, totals and checksum"] is True
    assert {"cores", "memory_gb", "versions", "python"} <= written["machine"].keys()
    assert [row["side"] for row in written["rows"]] == ["scipy X.T @ X", "cogstage"]
    assert all({"seconds", "CPU seconds", "peak MB", "× faster"} <= row.keys() for row in written["rows"])


def test_a_report_counts_the_work_of_earlier_runs(tmp_path: Path) -> None:
    for worked in (0.0, 1e7):
        harness.report("some", [{"method": "a", "value": 1.0}], tmp_path, worked=worked)
        kept = json.loads((tmp_path / "some.json").read_text(encoding="utf-8"))
        assert (kept["cpu_seconds"] == 1e7) == bool(worked)
