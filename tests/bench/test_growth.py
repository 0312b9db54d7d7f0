"""Growth curves: exponents of known powers, plots that say them, and a run from end to end on tiny sizes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import growth
from benchmarks.growth.curve import Curve, Measured, exponent
from benchmarks.growth.plot import draw


def known(power: float, needed: float = 1.0, mb: float = 100.0) -> Measured:
    curve = Curve("Something, over size", "size", "m:f", "n", (1, 2), (1, 2), needed, "it must")
    points = [{"x": x, "time": 3.0 * x**power, "seconds": 1.0, "mb": mb * x} for x in (10, 100, 1_000)]
    return Measured(curve, points)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_is_that_power(power: float) -> None:
    assert exponent([10, 30, 900], [7 * x**power for x in (10, 30, 900)]) == pytest.approx(power, abs=1e-9)


def test_one_size_has_no_exponent() -> None:
    with pytest.raises(ValueError, match="two sizes"):
        exponent([5, 5], [1.0, 2.0])


def test_a_curve_that_grows_faster_than_it_must_is_named() -> None:
    assert known(1.1).as_needed
    assert not known(1.6).as_needed
    assert known(1.6, needed=2.0).as_needed


def test_too_little_memory_has_no_exponent() -> None:
    assert known(1.0).memory_exponent == pytest.approx(1.0)
    assert known(1.0, mb=0.001).memory_exponent is None


def test_the_plot_says_the_exponent_and_is_the_same_again() -> None:
    picture = draw(known(2.0))
    assert "exponent 2.00" in picture
    assert "Something, over size" in picture
    assert picture == draw(known(2.0))
    assert "too little to tell" in draw(known(1.0, mb=0.001))


def test_every_curve_has_a_name_of_its_own_and_several_sizes() -> None:
    files = [curve.file_name for curve in growth.ALL]
    assert len(set(files)) == len(files)
    assert all(len(curve.full) >= 4 and len(curve.quick) in (0, 2) for curve in growth.ALL)
    for subject in ("Annotation", "Counting", "SVD", "Training", "Discover", "Service"):
        assert any(curve.quick for curve in growth.ALL if curve.name.startswith(subject))


def test_a_run_writes_points_exponents_and_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curves = [replace(curve, quick_fixed={}) for curve in growth.ALL if curve.name == "Counting over rows"]
    curves = [replace(curve, quick=(2_000, 4_000)) for curve in curves]
    monkeypatch.setattr(growth, "ALL", tuple(curves))
    growth.main(["--quick", "--only", "Counting", "--out", str(tmp_path)])
    points = json.loads((tmp_path / "growth_points.json").read_text(encoding="utf-8"))["rows"]
    assert [point["size"] for point in points] == [2_000, 4_000]
    (summary,) = json.loads((tmp_path / "growth.json").read_text(encoding="utf-8"))["rows"]
    assert {"time exponent", "memory exponent", "needed", "verdict"} <= summary.keys()
    assert (tmp_path / "growth" / "counting_over_rows.svg").read_text(encoding="utf-8").startswith("<svg")


def test_an_unknown_curve_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no such curve"):
        growth.main(["--only", "nonsense", "--out", str(tmp_path)])
