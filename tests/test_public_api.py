"""What users import: every name is there, documented, and quick to reach."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from check_all import check_all
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


def test_every_public_name_documents_its_parameters() -> None:
    check_all(check_documented, ((name,) for name in cogstage.__all__))


def check_documented(name: str) -> None:
    """Functions: every parameter and what they return. Classes that users build: every parameter."""
    value = getattr(cogstage, name)
    text = inspect.getdoc(value) or ""
    assert len(text.split("\n")[0].split()) > 3
    if inspect.ismodule(value) or (inspect.isclass(value) and issubclass(value, Exception)):
        return
    taken = parameters(value)
    assert taken - described(text) == set(), f"{name} does not describe {taken - described(text)}"
    assert inspect.isclass(value) or not taken or "Returns\n-" in text


def parameters(function: Any) -> set[str]:
    return {p for p in inspect.signature(function).parameters if not p.startswith("_") and p not in ("self", "cls")}


def described(text: str) -> set[str]:
    """Names in the section Parameters or Attributes of a docstring."""
    found = re.search(r"(?:Parameters|Attributes)\n-+\n(.*?)(?:\n\n[A-Z]\w+\n-+|$)", text, re.S)
    listed = set(re.findall(r"^(\w+(?:, \w+)*)$", found.group(1), re.M)) if found else set()
    return {each for line in listed for each in line.split(", ")}


METHODS = [
    (f"{name}.{key}", getattr(value, "__func__", value))
    for name in cogstage.__all__
    if inspect.isclass(getattr(cogstage, name))
    for base in getattr(cogstage, name).__mro__
    if base.__module__.startswith("cogstage")
    for key, value in vars(base).items()
    if not key.startswith("_") and (inspect.isfunction(value) or isinstance(value, (classmethod, staticmethod)))
]


def test_every_public_method_documents_its_parameters() -> None:
    check_all(check_method, METHODS)


def check_method(name: str, method: Any) -> None:
    text = inspect.getdoc(method) or ""
    assert parameters(method) - described(text) == set(), f"{name}: {parameters(method) - described(text)}"
    returns = inspect.signature(method).return_annotation not in (None, "None")
    assert returns == ("Returns\n-" in text), f"{name} does not say what it returns"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cogstage.nothing  # noqa: B018


def test_importing_loads_nothing_heavy_and_tells_threads_to_sleep() -> None:
    code = (
        "import sys, os, cogstage; assert 'torch' not in sys.modules and 'numba' not in sys.modules;"
        " assert os.environ['OMP_WAIT_POLICY'] == 'PASSIVE' and os.environ['OPENBLAS_THREAD_TIMEOUT'] == '4'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_explaining_does_not_load_the_trainer() -> None:
    code = (
        "import sys; from cogstage.estimator import CogStage;"
        " assert 'cogstage.training.trainer' not in sys.modules and 'cogstage.training.fitting' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
