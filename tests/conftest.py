"""What tests of several rooms share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cogstage.estimator import CogStage


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that all processes of this test run share."""
    base = tmp_path_factory.getbasetemp()
    return base if worker_id == "master" else base.parent


@pytest.fixture(scope="session")
def small_model_folder(shared_folder: Path) -> Path:
    """A small trained model on disk."""
    from small_model import small_model

    return small_model(shared_folder)


@pytest.fixture(scope="session")
def model(small_model_folder: Path) -> CogStage:
    """A small trained model."""
    from cogstage.estimator import CogStage

    return CogStage.load(small_model_folder)
