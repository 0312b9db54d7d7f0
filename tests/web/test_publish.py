"""A model as one HTML file: the browser's own script agrees with the model, and asks nothing of anybody."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import web_browser
from hypothesis import given
from hypothesis import strategies as st

from cogstage.cli.main import run
from cogstage.errors import UsageError
from cogstage.estimator import CogStage
from cogstage.rationale.verdict import WORDS
from cogstage.web.publish import _deltas, _variable_length, publish, published_page


@pytest.fixture(scope="module")
def model(small_model_folder: Path) -> CogStage:
    return CogStage.load(small_model_folder)


@pytest.fixture(scope="module")
def page(model: CogStage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("published") / "page.html"
    assert publish(model, out, "A <title> & more") == out.stat().st_size
    return out


@pytest.fixture(scope="module")
def driver(page: Path, tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    if reason := web_browser.reason_to_skip():
        pytest.skip(reason)
    from selenium.webdriver.support.ui import WebDriverWait

    with web_browser.browser(tmp_path_factory.mktemp("profile")) as opened:
        opened.get(page.as_uri())
        WebDriverWait(opened, 20).until(lambda d: d.execute_script("return document.body.dataset.ready"))
        yield opened


ASKED = """return arguments[0].map(([h, t]) => {
  const answer = ask(h, t, new Map(arguments[1]), arguments[2]);
  const shares = (e) => e.decision.reasons.map((r) => r.share);
  return answer.entries.map((e) => [e.q, e.logit, e.verdict, statement(answer, e), shares(e)]);
});"""


def read_variable_length(content: bytes) -> list[int]:
    """One number at a time, as the format says."""
    values, value, shift = [], 0, 0
    for byte in content:
        value |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            values.append(value)
            value = shift = 0
    return values


@given(st.lists(st.integers(0, 2**40), max_size=30))
def test_numbers_of_variable_length_are_read_as_they_were_written(values: list[int]) -> None:
    assert read_variable_length(_variable_length(np.array(values, np.int64))) == values


@given(st.lists(st.sets(st.integers(0, 300), max_size=6), min_size=1, max_size=8))
def test_columns_are_stored_as_differences_within_a_row(rows: list[set[int]]) -> None:
    start = np.cumsum([0, *map(len, rows)])
    other = np.array([column for row in rows for column in sorted(row)], np.int64)
    differences = iter(read_variable_length(_deltas(start, other)))
    for row in rows:
        column, columns = 0, []
        for _ in row:
            column += next(differences)
            columns.append(column)
        assert columns == sorted(row)


def test_the_file_asks_nothing_of_anybody(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.findall(r"(?:src|href)=|url\(|@import|https?://(?!www\.w3\.org)", text[: text.index('id="header"')])
    assert "A &lt;title&gt; &amp; more" in text
    script = text[text.rindex("<script>") :]
    assert not re.findall(r"fetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(", script)


@pytest.mark.slow
def test_log_odds_verdicts_and_sentences_are_those_of_the_model(driver, model: CogStage) -> None:  # type: ignore[no-untyped-def]
    pairs = np.random.default_rng(0).integers(0, len(model.vocabulary), (1100, 2))
    facts = model.fitted.facts
    pairs = np.concatenate([np.stack([facts.head, facts.tail], 1)[:200], pairs[pairs[:, 0] != pairs[:, 1]]])
    for rate in (0.5, 0.02):
        profiles = model.profiles(pairs[:, 0], pairs[:, 1], rate)
        answers = driver.execute_script(ASKED, pairs.tolist(), [], rate)
        for row, entries in enumerate(answers):
            for relation, logit, verdict, _, _ in entries:
                assert logit == pytest.approx(profiles.logit[row, relation], abs=1e-3)
                if abs(profiles.logit[row]).min() > 0.01:
                    assert verdict == WORDS[profiles.code[row, relation]]
    for (head, tail), entries in list(zip(pairs.tolist(), answers, strict=True))[:60]:
        for relation, _, verdict, sentence, shares in entries:
            record = model.predict(head, tail, model.relations[relation]).with_base_rate(0.02)
            assert sorted(shares) == pytest.approx(sorted(reason.share for reason in record.reasons), abs=1e-3)
            if verdict == "does not apply":
                assert record.statement.startswith(sentence.removesuffix("."))
            elif abs(record.logit) > 0.01:
                assert re.sub(r"0\.\d\d", "", sentence) == re.sub(r"0\.\d\d", "", record.statement)


@pytest.mark.slow
def test_what_if_answers_are_those_of_the_model(driver, model: CogStage) -> None:  # type: ignore[no-untyped-def]
    driver.execute_script(
        "document.getElementById('head').value = 'remedy 4'; document.getElementById('tail').value = 'C007';"
    )
    driver.execute_script("document.getElementById('ask').requestSubmit()")
    record = model.predict("C004", "C007")
    assert driver.find_element("id", "statement").text == record.statement
    assert "“remedy 4” was read as" in driver.find_element("id", "read-as").text
    reason = record.reasons_for[0]
    button = driver.find_elements("css selector", "#sum .acts button")[0]
    assert reason.head.name in button.get_attribute("aria-label")
    button.click()
    changed = record.without(reason.triple)
    shown = driver.find_element("id", "change").text
    assert shown.startswith("Before: ")
    logits = [float(value) for value in re.findall(r"(-?\d+\.\d{3})", shown)]
    assert logits == pytest.approx([record.logit, changed.logit], abs=2e-3)
    driver.find_element("id", "undo-all").click()
    assert driver.find_element("id", "statement").text == record.statement
    driver.execute_script(
        "const r = document.getElementById('rate'); r.value = 2; r.dispatchEvent(new Event('input'));"
    )
    assert "1 in 100 are true" in driver.find_element("id", "rate-words").text
    assert driver.find_element("id", "statement").text == record.with_base_rate(0.01).statement


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 768, 390])
def test_the_page_is_as_wide_as_the_screen(driver, width: int) -> None:  # type: ignore[no-untyped-def]
    driver.execute_script("document.getElementById('tail').value = 'C007';")
    driver.execute_script("document.getElementById('head').value = 'C004';")
    driver.execute_script("document.getElementById('ask').requestSubmit()")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_an_unknown_term_is_answered_with_suggestions_and_nothing_is_logged(driver) -> None:  # type: ignore[no-untyped-def]
    driver.execute_script(
        "document.getElementById('head').value = 'number'; document.getElementById('tail').value = 'C007';"
    )
    driver.execute_script("document.getElementById('ask').requestSubmit()")
    assert driver.find_element("id", "message").text.startswith("Unknown term: number. Did you mean ")
    assert driver.get_log("browser") == []
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_the_command_writes_the_file(
    small_model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "one.html"
    with pytest.raises(SystemExit) as ended:
        run(["publish", str(small_model_folder), "--out", str(out), "--title", "Ours"])
    assert not ended.value.code
    assert "<title>Ours</title>" in out.read_text(encoding="utf-8")
    assert "wrote" in capsys.readouterr().err


def test_a_published_model_cannot_be_the_published_one(model: CogStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(model.__dict__, "predictor", object())
    with pytest.raises(UsageError, match="only the default model"):
        published_page(model, "")
