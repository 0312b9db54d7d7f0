"""Build the wheel and the source distribution, the same bytes each time: python scripts/build_dist.py dist"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff")
EPOCH = 315_532_800  # 1980, the first time that a wheel can hold
BUILD = "from setuptools import build_meta as b; import sys; print(getattr(b, 'build_' + sys.argv[1])(sys.argv[2]))"


def build(out: Path) -> list[Path]:
    """Write both files to ``out``; return their paths."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "cogstage", Path(folder) / "made"
        made.mkdir()
        shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for name in FILES:
            shutil.copyfile(ROOT / name, source / name)
        for path in [source, *source.rglob("*")]:  # whatever the umask of the machine is
            path.chmod(0o755 if path.is_dir() else 0o644)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH), "PYTHONHASHSEED": "0"}
        for kind in ("wheel", "sdist"):
            command = [sys.executable, "-c", BUILD, kind, str(made)]
            subprocess.run(command, cwd=source, env=environment, check=True, stdout=subprocess.DEVNULL, umask=0o022)
            shutil.rmtree(source / "build", ignore_errors=True)
        (wheel,), (archive,) = made.glob("*.whl"), made.glob("*.tar.gz")
        shutil.copyfile(wheel, out / wheel.name)
        repack(archive, out / archive.name)
    return [out / wheel.name, out / archive.name]


def repack(archive: Path, target: Path) -> None:
    """The same files in the order of their names, without times and owners."""
    with (
        tarfile.open(archive) as source,
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=EPOCH) as packed,
        tarfile.open(fileobj=packed, mode="w") as result,
    ):
        for member in sorted(source.getmembers(), key=lambda entry: entry.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = EPOCH, 0, 0, "", ""
            member.pax_headers = {}
            member.mode = 0o755 if member.isdir() else 0o644
            result.addfile(member, source.extractfile(member) if member.isfile() else None)


if __name__ == "__main__":
    for path in build(Path(sys.argv[1] if len(sys.argv) > 1 else "dist")):
        print(path)
