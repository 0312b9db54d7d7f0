"""The command line as a user meets it: help is quick, errors are one line with the right exit code."""

import subprocess
import sys
from pathlib import Path

import pytest


def cogstage(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from cogstage.cli.main import run; run()", *arguments], capture_output=True, text=True
    )


def test_help_needs_no_heavy_library() -> None:
    code = (
        "import sys, contextlib, io\n"
        "from cogstage.cli.main import run\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): run(['--help'])\n"
        "print([m for m in ('torch','numba','scipy','sklearn','matplotlib','pyarrow','fastapi') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"]])
def test_wrong_use_is_one_line_and_exit_code_2(arguments: list[str]) -> None:
    done = cogstage(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("cogstage: ")


def test_a_name_that_no_file_can_have_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "edges.tsv").write_text("source\ttarget\tcount\na\tb\t5\n")
    done = cogstage("graph", "import", "edges", str(tmp_path / "edges.tsv"), "--out", str(tmp_path / ("x" * 300)))
    assert done.returncode in (1, 2)
    assert "name too long" in done.stderr
    assert "unexpected" not in done.stderr


def test_debug_shows_the_traceback() -> None:
    done = cogstage("nonsense", "--debug")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_version_is_that_of_the_package() -> None:
    from cogstage.artefact import software_version

    assert cogstage("--version").stdout.strip() == f"cogstage {software_version()}"


def test_a_terminated_command_leaves_nothing(tmp_path: Path) -> None:
    """SIGTERM clears away what is half-written, as Ctrl-C does."""
    code = (
        "import time, cogstage.cli.main as m\n"
        "from cogstage.artefact import new_folder\n"
        "@m.app.command('linger')\n"
        "def linger(out: str) -> None:\n"
        "    with new_folder(out, 'graph', {}) as folder:\n"
        "        print('begun', flush=True); time.sleep(60)\n"
        "m.run()"
    )
    command = [sys.executable, "-c", code, "linger", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "begun"
    assert list(tmp_path.iterdir())
    process.terminate()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.strip() == "cogstage: stopped; no partial output was left"
    assert not list(tmp_path.iterdir())
