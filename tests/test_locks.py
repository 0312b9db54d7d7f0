"""Locks: what somebody plants under the lock's name is neither followed nor written to."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cogstage.errors import UsageError
from cogstage.locks import lock_folder


def test_a_planted_link_is_refused_and_its_target_unchanged(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    (tmp_path / ".g.lock").symlink_to(victim)
    with pytest.raises(UsageError, match=r"\.g\.lock is a symbolic link; remove it"), lock_folder(tmp_path / "g"):
        pass
    assert victim.read_text(encoding="utf-8") == "precious"
    assert (tmp_path / ".g.lock").is_symlink()


@pytest.mark.parametrize("name", [".g.lock", ".g.holder"])
def test_a_planted_hard_link_loses_its_name_only(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    os.link(victim, tmp_path / name)
    with lock_folder(tmp_path / "g"):
        assert victim.read_text(encoding="utf-8") == "precious"
    assert victim.read_text(encoding="utf-8") == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["victim"]


def test_a_planted_link_as_note_is_replaced(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    (tmp_path / ".g.holder").symlink_to(victim)
    with lock_folder(tmp_path / "g"):
        assert not (tmp_path / ".g.holder").is_symlink()
    assert victim.read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize("planted", ["fifo", "huge", "link", "folder", "control"])
def test_a_planted_note_neither_blocks_nor_speaks(tmp_path: Path, planted: str) -> None:
    note, failures = tmp_path / ".g.holder", []

    def second_writer() -> None:
        try:
            with lock_folder(tmp_path / "g"):
                failures.append("locked twice")
        except UsageError as error:
            failures.append(str(error))

    with lock_folder(tmp_path / "g"):
        note.unlink()
        if planted == "fifo":
            os.mkfifo(note)
        elif planted == "huge":
            note.write_text('{"pid": 1, "host": "h", "command": "' + "x" * 10_000_000 + '"}', encoding="utf-8")
        elif planted == "link":
            note.symlink_to("/etc/hostname")
        elif planted == "folder":
            note.mkdir()
        else:
            note.write_text('{"pid": 1, "host": "h", "command": "a\\u001b[31m\\nb"}', encoding="utf-8")
        thread = threading.Thread(target=second_writer)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
    who = "process 1 on h (a?[31m?b)" if planted == "control" else "another process"
    assert failures == [f"{tmp_path / 'g'} is being written by {who}; wait for it, or choose another folder"]


def test_locks_import_where_there_is_no_fcntl() -> None:
    code = "import sys; sys.modules['fcntl'] = None; import cogstage.artefact"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
