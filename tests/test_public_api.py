"""What users import: every name is there, documented, and quick to reach."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import cogstage


@pytest.mark.parametrize("name", cogstage.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(cogstage, name)
    assert inspect.isclass(value) or callable(value)
    assert len((value.__doc__ or "").split()) > 4


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
