"""What the system does not allow a process: large files, address space, memory, open modes."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from small_model import save_small_data, small_data

from cogstage.artefact import new_file, new_folder
from cogstage.cli.main import LEAST_ADDRESS_SPACE
from cogstage.graph.cooccurrence import Graph

PROGRAM = [sys.executable, "-c", "from cogstage.cli.main import run; run()"]


def limited(words: list[str], prepare: Callable[[], None]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *words], preexec_fn=prepare, capture_output=True, text=True, timeout=300)


def errors(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if line.startswith("cogstage: ")]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("limits")
    notes = [{"doc_id": str(n), "text": f"aspirin {n} for fever and gout"} for n in range(500)]
    (folder / "notes.jsonl").write_text("\n".join(map(json.dumps, notes)))
    (folder / "lexicon.tsv").write_text("term\naspirin\nfever\ngout\n")
    small_data()[0].save(folder / "graph")
    save_small_data(folder / "data")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "explain {model} C004 C007 --relation causes --out {out}.html",
        "explain {model} C004 C007 --relation causes --out {out}.parquet",
        "graph build {inputs}/notes.jsonl --lexicon {inputs}/lexicon.tsv --min-count 1 --out {out}",
        "demo --out {out}",
        "train --graph {inputs}/graph --dataset {inputs}/data --relation causes --set dimension=8 --out {out}",
    ],
    ids=["page", "table", "graph", "demo", "train"],
)
def test_a_limit_on_the_size_of_files_is_one_line(
    command: str, inputs: Path, small_model_folder: Path, tmp_path: Path
) -> None:
    words = command.format(model=small_model_folder, inputs=inputs, out=tmp_path / "out").split()
    done = limited(words, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
    assert done.returncode == 1, done.stderr
    (message,) = errors(done)
    assert "a limit on the size of files" in message
    assert "unexpected" not in message
    if "train" in words:  # what it leaves does not stand in the way of the next run
        assert limited(words, lambda: None).returncode == 0


def test_too_little_address_space_is_one_line(small_model_folder: Path) -> None:
    space = LEAST_ADDRESS_SPACE - 1
    words = ["explain", str(small_model_folder), "C004", "C007"]
    done = limited(words, lambda: resource.setrlimit(resource.RLIMIT_AS, (space, space)))
    assert (done.returncode, errors(done)) == (
        1,
        [
            "cogstage: the address space is limited to 1000 MB; raise the limit (ulimit -v, container), "
            "close other programs, or use a smaller input"
        ],
    )


@pytest.fixture
def memory_group() -> Iterator[Path]:
    """A control group with 120 MB of memory."""
    version_1 = Path("/sys/fs/cgroup/memory")
    group = (version_1 if version_1.is_dir() else Path("/sys/fs/cgroup")) / f"cogstage-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if version_1.is_dir() else "memory.max")).write_text("120000000")
        for swap in ("memory.memsw.limit_in_bytes", "memory.swap.max"):
            if (group / swap).exists():
                (group / swap).write_text("120000000" if "memsw" in swap else "0")
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        yield group
    finally:
        group.rmdir()


@pytest.mark.slow
def test_a_command_killed_for_its_memory_leaves_nothing_half_written(memory_group: Path, tmp_path: Path) -> None:
    rows = "".join(f"a{n % 3000}\tb{n // 300}\t{n % 7 + 1}\n" for n in range(900_000))
    (tmp_path / "edges.tsv").write_text("source\ttarget\tcount\n" + rows)
    words = ["graph", "import", "edges", str(tmp_path / "edges.tsv"), "--out", str(tmp_path / "out")]
    done = limited(words, lambda: (memory_group / "cgroup.procs").write_text(str(os.getpid())))  # type: ignore[arg-type,return-value]
    if done.returncode == 0:
        pytest.skip("the limit of the control group is not enforced here")
    assert done.returncode in (-signal.SIGKILL, 1), done.stderr
    assert not (tmp_path / "out").exists()
    assert limited(words, lambda: None).returncode == 0
    assert Graph.load(tmp_path / "out").n_edges == 900_000


@pytest.mark.parametrize(("umask", "file", "folder"), [(0o077, 0o600, 0o700), (0o027, 0o640, 0o750), (0, 0o644, 0o755)])
def test_files_and_folders_follow_the_umask(tmp_path: Path, umask: int, file: int, folder: int) -> None:
    before = os.umask(umask)
    try:
        with new_file(tmp_path / "file") as temporary:
            temporary.write_text("x")
        with new_file(tmp_path / "replaced") as temporary:  # by a library that makes its own
            temporary.unlink()
            temporary.write_text("x")
        with new_file(tmp_path / "private", 0o600) as temporary:
            temporary.write_text("x")
        with new_folder(tmp_path / "folder", "graph", {}) as inside:
            (inside / "x").write_text("x")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"file": file, "replaced": file, "private": 0o600, "folder": folder}
    assert (tmp_path / "folder" / "x").stat().st_mode & 0o777 == 0o666 & ~umask
