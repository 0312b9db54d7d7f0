"""The documentation: generated pages are current, the site builds without warnings, the tutorial runs."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
QUICK = "dimension=16 tower=16 associations=6 folds=0 recognition_passes=2 decision_epochs=1 decision_steps=0"


@pytest.mark.parametrize(("page", "maker"), [("cli.md", "cli_page"), ("python.md", "python_page")])
def test_reference_is_current(page: str, maker: str) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "reference_pages.py"))
    written = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert script[maker]() == written, "run python scripts/reference_pages.py"


def test_site_builds_without_warnings_or_foreign_files(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    for page in (tmp_path / "site").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe)[^>]*\bsrc=[\"']?([^\"' >]+)", text)
        loaded += re.findall(r"<link[^>]*\brel=[\"']?(?:stylesheet|preconnect|icon)[^>]*", text)
        assert not [entry for entry in loaded if "//" in entry], f"{page.name} loads from elsewhere"


def run_page(page: str, folder: Path, swap: tuple[str, str] = ("\0", "")) -> str:
    """Run the bash blocks of a page in ``folder`` as one script, with training cut short; what was printed."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").replace(*swap)
    script = "\n".join(re.findall(r"```bash\n(.*?)```", text, flags=re.S))
    settings = " ".join(f"--set {setting}" for setting in QUICK.split())
    script, trained = re.subn(r"^cogstage train (?=--graph)", f"cogstage train {settings} ", script, flags=re.M)
    assert trained == script.count("cogstage train ") - script.count("cogstage train --options")
    python = f'"{sys.executable}"'
    prelude = f"""set -e
python() {{ {python} "$@"; }}
cogstage() {{ {python} -c "from cogstage.cli.main import run; run()" "$@"; }}
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(["bash", "-c", prelude + script], cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_tutorial_commands_run(tmp_path: Path) -> None:
    out = run_page("tutorial.md", tmp_path)
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(small-graph: .*?)```", page, flags=re.S)
    assert all(line in out for line in shown.splitlines() if line != "...")  # as the page says
    assert (tmp_path / "why.svg").read_text(encoding="utf-8").startswith(("<svg", "<?xml"))
    assert (tmp_path / "evaluation" / "report.html").exists()


@pytest.mark.slow
def test_omop_tutorial_runs(tmp_path: Path) -> None:
    out = run_page("tutorial_omop.md", tmp_path)
    assert "graph: 120 nodes" in out  # 60 drugs and 60 disorders
    assert "counts below 11 suppressed" in out
    assert "drug A1 may treat disorder A2" in out
    edges = pq.read_table(tmp_path / "graph" / "edges.parquet").column("count").to_pylist()
    assert min(edges) >= 11
    stated = sum(1 for _ in (tmp_path / "omop" / "CONCEPT_RELATIONSHIP.csv").open()) - 1
    assert pq.read_metadata(tmp_path / "facts" / "facts.parquet").num_rows == stated
    page = (tmp_path / "model.html").read_text(encoding="utf-8")
    assert "simulated vocabulary, no licence needed" in page


@pytest.mark.slow
def test_study_tutorial_runs(tmp_path: Path) -> None:
    out = run_page("tutorial_study.md", tmp_path)
    assert out.count("https://study.example.org/") >= 2  # a link for each reviewer
    results = json.loads((tmp_path / "rehearsal-report" / "results.json").read_text(encoding="utf-8"))
    assert "Rehearsal 1" not in json.dumps(results)  # pseudonyms unless asked
    assert (tmp_path / "report" / "report.html").exists()
    assert {"model", "neighbours"} <= set(re.findall(r"\w+", json.dumps(results)))


def test_notebook_is_committed_with_its_outputs() -> None:
    cells = json.loads((ROOT / "docs" / "tutorial.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code)
    outputs = [output for cell in code for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    pictures = ["".join(output["data"]["image/svg+xml"]) for output in outputs if "image/svg+xml" in str(output)]
    assert any("Angina Pectoris" in picture for picture in pictures)
    assert (ROOT / "docs" / "tutorial.ipynb").stat().st_size < 100_000


@pytest.mark.slow
def test_notebook_runs(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(ROOT / "docs" / "tutorial.ipynb", as_version=4)
    kinds = [sorted(output.get("data", {})) for cell in notebook.cells for output in cell.get("outputs", ())]
    quick = ", ".join(QUICK.split())
    trained = [cell for cell in notebook.cells if "cs.CogStage(" in cell.source]
    assert len(trained) == 1
    trained[0]["source"] = trained[0].source.replace("seed=0)", f"seed=0, {quick})", 1)
    run = runpy.run_path(str(ROOT / "scripts" / "run_notebook.py"))["execute"]
    done = run(notebook, tmp_path)
    assert [sorted(output.get("data", {})) for cell in done.cells for output in cell.get("outputs", ())] == kinds
    text = "".join(output.get("text", "") for cell in done.cells for output in cell.get("outputs", ()))
    (changed, recorded) = re.findall(r"log-odds ([-+.\d]+), recorded ([-+.\d]+)", text)[0]
    assert changed == recorded


RESULTS = sorted((ROOT / "docs" / "results").glob("*.md"))


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.stem)
def test_results_pages_have_one_form(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    parts = ("**Question.**", "**Command.**", "\n|---|", "**What it shows.**", "**Limits.**")
    places = [text.replace("| --- |", "|---|").find(part) for part in parts]
    assert -1 not in places, f"missing: {[part for part, at in zip(parts, places, strict=True) if at < 0]}"
    assert places == sorted(places)
    for name in re.findall(r"figures/\w+\.json", text):
        assert (page.parent / name).exists(), f"{page.name} names {name}"


def test_data_sheet_is_current() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "release_pages.py"))
    written = (ROOT / "docs" / "data_sheet.md").read_text(encoding="utf-8")
    assert script["data_sheet"]() == written, "run python scripts/release_pages.py"


def test_model_card_agrees_with_the_front_page() -> None:
    card = (ROOT / "docs" / "model_card.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| [\d,]+ \|(?: [\d.]+ \|){3} ([\d.]+) \|$", card, flags=re.M)
    shown = re.findall(r"\*\*([\d.]+)\*\*", re.findall(r"^\| cogstage \|.*$", readme, flags=re.M)[0])
    assert [auroc for _, auroc in rows] == shown[:-1]  # the last is the mean
    kinds = re.findall(r"\d+ of \d+", re.findall(r"^\| all \|.*$", card, flags=re.M)[0])[:3]
    assert re.findall(r"^\| (?:true|false)[^|]*\|[^|]*\| (\d+ of \d+) \|$", readme, flags=re.M) == kinds
    for heading in ("Intended use", "Data", "Figures", "Limits", "Reproduce"):
        assert f"\n## {heading}\n" in card
