"""What tests of several packages share."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from cogstage.estimator import CogStage

# No test measures time: on a busy machine a deadline fails at random. "unshrunk" is for those who only need to know
# whether a test fails (scripts/mutants.py).
UNTIMED = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("untimed", UNTIMED)
hypothesis.settings.register_profile("unshrunk", UNTIMED, phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "untimed"))

REAL_SERVICES = (  # files whose tests start servers, browsers, clusters or many processes
    "test_engine_spark",
    "test_hospital_runs",
    "test_harness",
    "test_growth",
    "test_attacks",
    "test_connections",
    "_browser",
    "_crash",
    "_offline",
    "test_embedded_build",
    "test_demo",
    "test_compare.py",
    "test_reader_memory",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that need real services, so that ``make test-fast`` can leave them out."""
    for item in items:
        name = item.nodeid
        if (
            "postgres" in name
            or "chromium" in getattr(item, "fixturenames", ())
            or any(s in name for s in REAL_SERVICES)
        ):
            item.add_marker(pytest.mark.service)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what collecting made, a million objects that stay, out of every later search for unreachable ones.

    Training searches at each of its phases to give memory back, which would take longer than the training of a test.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


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
