"""Artefact folders: whole or absent, locked while written, checked when read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_disk import small_disk

from cogstage import artefact
from cogstage.artefact import META, new_file, new_folder, read_meta, safe_name, to_json
from cogstage.errors import CogstageError, UsageError
from cogstage.locks import lock_folder

HOLD = """
import sys, os, time
from cogstage.artefact import new_folder
with new_folder(sys.argv[1], "graph", {}) as folder:
    child = os.fork() if sys.argv[2] == "fork" else 0
    if child == 0:  # of the two, the child speaks: by then it has let go of its parent's locks
        print("begun", flush=True)
    time.sleep(60)
    os._exit(0)
"""


def write(path: Path, text: str = "content") -> None:
    with new_folder(path, "graph", {"options": 1}) as folder:
        (folder / "data.txt").write_text(text, encoding="utf-8")
        (folder / "inside").mkdir()
        (folder / "inside" / "more.bin").write_bytes(bytes(range(256)))


def hold(path: Path, how: str = "plain") -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path), how], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def test_a_second_writer_stops_and_names_the_first(tmp_path: Path) -> None:
    process = hold(tmp_path / "g")
    try:
        with pytest.raises(UsageError, match=rf"process {process.pid} on .*-c"), lock_folder(tmp_path / "g"):
            pass
        with lock_folder(tmp_path / "other"):
            pass
    finally:
        process.kill()
        process.wait()
    write(tmp_path / "g")  # the holder is dead: its lock is taken over
    assert read_meta(tmp_path / "g", "graph")["made_with"] == {"options": 1}
    assert not (tmp_path / ".g.lock").exists()


def test_a_forked_child_does_not_keep_a_dead_parents_lock(tmp_path: Path) -> None:
    process = hold(tmp_path / "g", "fork")
    process.send_signal(signal.SIGKILL)
    os.waitpid(process.pid, 0)
    write(tmp_path / "g")


def test_many_processes_never_hold_a_lock_together(tmp_path: Path) -> None:
    """Each writes its number, waits, and reads it back; takers and leavers race for the lock file."""
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom cogstage.locks import lock_folder\n"
        "from cogstage.errors import UsageError\nfolder, me = Path(sys.argv[1]), sys.argv[2]\nheld = 0\n"
        "end = time.monotonic() + 30\n"
        "while held < 20 and time.monotonic() < end:\n"
        "    try:\n"
        "        with lock_folder(folder / 'g'):\n"
        "            (folder / 'owner').write_text(me)\n"
        "            time.sleep(0.002)\n"
        "            assert (folder / 'owner').read_text() == me\n"
        "            held += 1\n"
        "    except UsageError:\n        time.sleep(0.001)\n"
        "assert held\n"
    )
    racers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(n)]) for n in range(3)]
    assert [racer.wait() for racer in racers] == [0, 0, 0]


def test_a_lock_can_be_taken_again_by_its_own_thread(tmp_path: Path) -> None:
    with lock_folder(tmp_path / "g"):
        write(tmp_path / "g")
        assert (tmp_path / ".g.lock").exists()
    assert not (tmp_path / ".g.lock").exists()


@pytest.mark.parametrize("renames", [0, 1, 2, 3])
def test_a_kill_between_renames_recovers_on_the_next_load(tmp_path: Path, renames: int) -> None:
    """The process ends at once before its n-th rename of a folder, as by SIGKILL."""
    write(tmp_path / "g", "old")
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom cogstage.artefact import new_folder\n"
        "left, plain = int(sys.argv[2]), os.replace\n"
        "def replace(a, b):\n"
        "    global left\n"
        "    if Path(a).is_dir():\n"
        "        if left == 0: os._exit(9)\n"
        "        left -= 1\n"
        "    plain(a, b)\n"
        "os.replace = replace\n"
        "with new_folder(sys.argv[1], 'graph', {}) as folder:\n    (folder / 'data.txt').write_text('new')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "g"), str(renames)], check=False)
    assert done.returncode == (9 if renames < 3 else 0)
    read_meta(tmp_path / "g", "graph")
    assert (tmp_path / "g" / "data.txt").read_text(encoding="utf-8") == ("new" if renames >= 2 else "old")
    write(tmp_path / "g", "again")
    assert (tmp_path / "g" / "data.txt").read_text(encoding="utf-8") == "again"
    assert not [path for path in tmp_path.iterdir() if path.name in (".g.next", ".g.old")]


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "g")
    for path in sorted(file for file in (tmp_path / "g").rglob("*") if file.is_file()):
        sound = path.read_bytes()
        for place in range(len(sound)):
            path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
            with pytest.raises(CogstageError) as caught:
                read_meta(tmp_path / "g", "graph")
            assert "\n" not in str(caught.value)
        path.write_bytes(sound)
    assert read_meta(tmp_path / "g", "graph")
    (tmp_path / "g" / "data.txt").write_text("contenT", encoding="utf-8")
    assert read_meta(tmp_path / "g", "graph", verify=False)
    (tmp_path / "g" / "data.txt").unlink()
    with pytest.raises(CogstageError, match=r"data\.txt is damaged"):
        read_meta(tmp_path / "g", "graph")


def test_a_meta_that_points_outside_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "g")
    meta = json.loads((tmp_path / "g" / META).read_text(encoding="utf-8"))
    for name in ("../secret", "/etc/passwd", "inside/../../secret", ""):
        hostile = {**meta, "files": {name: {"bytes": 1, "xxh3": "0"}}}
        hostile["check"] = artefact.meta_hash(hostile)
        (tmp_path / "g" / META).write_text(to_json(hostile), encoding="utf-8")
        with pytest.raises(CogstageError, match="is not a valid file name"):
            read_meta(tmp_path / "g", "graph")


@given(st.text(max_size=30))
def test_a_safe_name_stays_in_its_folder(name: str) -> None:
    folder = Path("/some/folder")
    try:
        safe = safe_name(name, folder)
    except CogstageError:
        return
    assert "\0" not in safe
    assert Path(os.path.normpath(folder / safe)).parent == folder


def test_unsafe_names() -> None:
    for name in ("..", "a/b", "..\\x", "", None, 7, "x" * 300):
        with pytest.raises(CogstageError, match="is not a valid file name"):
            safe_name(name, "manifest.json")


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        check_full(disk)


def check_full(disk: Path) -> None:
    write(disk / "g")
    with (
        pytest.raises(CogstageError, match="no space left on the disk") as caught,
        new_folder(disk / "g", "graph", {}) as folder,
    ):
        (folder / "big").write_bytes(bytes(1 << 20))
    assert "\n" not in str(caught.value)
    full = pytest.raises(CogstageError, match="no space left on the disk")
    with full, new_file(disk / "a.npy") as temporary, temporary.open("wb") as handle:
        np.save(handle, np.zeros(1 << 17))
    assert read_meta(disk / "g", "graph")
    assert [path.name for path in disk.iterdir()] == ["g"]
