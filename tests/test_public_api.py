"""What users import: every name is there, documented, and quick to reach."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from small_model import save_small_data, small_data

import cogstage


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small graph and data set that the examples load."""
    folder = tmp_path_factory.mktemp("examples")
    small_data()[0].save(folder / "graph")
    save_small_data(folder / "data")
    return folder


@pytest.mark.parametrize("name", cogstage.__all__)
def test_the_example_of_every_public_name_runs(
    name: str, artefacts: Path, small_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for link, target in (("graph", artefacts / "graph"), ("data", artefacts / "data"), ("model", small_model_folder)):
        (tmp_path / link).symlink_to(target)
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(getattr(cogstage, name)) or ""
    example = doctest.DocTestParser().get_doctest(text, {"cs": cogstage, "Path": Path}, name, None, None)
    assert example.examples, f"{name} has no example"
    said: list[str] = []
    result = doctest.DocTestRunner().run(example, out=said.append)
    assert result.failed == 0, "".join(said)


@pytest.mark.parametrize("name", cogstage.__all__)
def test_every_public_name_documents_its_parameters(name: str) -> None:
    """Functions: every parameter and what they return. Classes that users build: every parameter."""
    value = getattr(cogstage, name)
    text = inspect.getdoc(value) or ""
    assert len(text.split("\n")[0].split()) > 3
    made_by_us = {"Prediction", "Reason", "FittingView"}  # fields are described where they stand
    if inspect.isclass(value) and (issubclass(value, Exception) or name in made_by_us):
        return
    described = re.search(r"Parameters\n-+\n(.*?)(?:\n\n[A-Z]\w+\n-+|$)", text, re.S)
    listed = set(re.findall(r"^(\w+(?:, \w+)*)$", described.group(1), re.M)) if described else set()
    names = {each for line in listed for each in line.split(", ")}
    taken = {p for p in inspect.signature(value).parameters if not p.startswith("_")}
    assert taken - names == set(), f"{name} does not describe {taken - names}"
    assert inspect.isclass(value) or not taken or "Returns\n-" in text


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cogstage.nothing  # noqa: B018


def test_importing_loads_nothing_heavy_and_tells_threads_to_sleep() -> None:
    code = (
        "import sys, os, cogstage; assert 'torch' not in sys.modules and 'numba' not in sys.modules;"
        " assert os.environ['OMP_WAIT_POLICY'] == 'PASSIVE'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_explaining_does_not_load_the_trainer() -> None:
    code = (
        "import sys; from cogstage.estimator import CogStage;"
        " assert 'cogstage.training.trainer' not in sys.modules and 'cogstage.training.fitting' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
