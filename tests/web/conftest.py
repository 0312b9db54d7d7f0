"""What the tests of the pages share: stores, a browser, servers in processes of their own."""

from __future__ import annotations

import pytest
import web_browser
from study_stores import database_url, make_study, postgres_server

__all__ = ["chromium", "database_url", "make_study", "postgres_server"]


@pytest.fixture
def chromium() -> None:
    """Skips with the reason where no browser can be started; start one with ``web_browser.browser(...)``."""
    if reason := web_browser.reason_to_skip():
        pytest.skip(reason)
