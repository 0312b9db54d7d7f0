"""What is shipped: the wheel and source archive are the same bytes each time, the image is small and without root."""

from __future__ import annotations

import inspect
import json
import os
import shlex
import shutil
import site
import subprocess
import sys
import tarfile
import time
import urllib.request
import zipfile
from pathlib import Path

import pytest
from load_script import load_script
from postgres_cluster import free_port

from cogstage.cli.serve import serve

ROOT = Path(__file__).resolve().parents[1]


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


@pytest.mark.slow
def test_two_builds_are_the_same_bytes(tmp_path: Path) -> None:
    build = load_script("scripts/build_dist.py").build
    first = build(tmp_path / "one")
    before = os.umask(0o077)
    try:
        second = build(tmp_path / "two")
    finally:
        os.umask(before)
    assert [path.name.split("-")[0] for path in first] == ["cogstage", "cogstage"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    with tarfile.open(first[1]) as archive, zipfile.ZipFile(first[0]) as wheel:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
        package = {f"src/{name}" for name in wheel.namelist() if name.startswith("cogstage/")}
    assert package <= names
    assert {"pyproject.toml", "README.md", "LICENSE"} <= names


def test_the_dockerfile_follows_the_rules() -> None:
    steps = instructions()
    last = steps[max(n for n, (word, _) in enumerate(steps) if word == "FROM") :]
    final = dict(last)
    assert all(":" in what and not what.endswith(":latest") for word, what in steps if word == "FROM")
    assert not {"ADD", "MAINTAINER"} & {word for word, _ in steps}
    user, _, group = final["USER"].partition(":")
    assert min(int(user), int(group)) > 0  # no root, by number, so that orchestrators can check it
    assert not any(word == "RUN" for word, _ in last)  # nothing of the build stays in the image
    assert final["VOLUME"] == "/model"
    assert all(what.startswith("/") for word, what in steps if word == "WORKDIR")
    assert json.loads(final["ENTRYPOINT"]) == ["cogstage"]
    assert json.loads(final["CMD"])[:2] == ["serve", "/model"]
    assert f":{final['EXPOSE']}/health/ready" in final["HEALTHCHECK"]
    for word, what in steps:
        assert "--require-hashes" in what or "pip install" not in what or what.endswith(" .")
        if word == "COPY" and not what.startswith("--from"):
            assert all((ROOT / name).exists() for name in what.split()[:-1])
    port = inspect.signature(serve).parameters["port"].default
    assert str(port.default) == final["EXPOSE"]


@pytest.mark.service
@pytest.mark.slow
def test_the_steps_of_the_dockerfile_give_a_server_that_is_healthy(tmp_path: Path, small_model_folder: Path) -> None:
    """In a virtual environment without network, which sees the requirements that are installed here."""
    context, home = tmp_path / "context", tmp_path / "cogstage"
    context.mkdir()
    for word, what in instructions():
        if word == "COPY" and not what.startswith("--from"):
            for name in what.split()[:-1]:
                copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
                copy(ROOT / name, context / name)
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PYTHONPATH": ""}
    for word, what in instructions():
        if word != "RUN":
            continue
        command = what.replace("/opt/cogstage", str(home)).replace(
            "python -m venv", f"{sys.executable} -m venv --without-pip"
        )
        done = subprocess.run(shlex.split(command), cwd=context, env=environment, capture_output=True, text=True)
        if "locks/" in command and done.returncode:
            pytest.skip(f"what is installed is not what the locks say: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
        if "-m venv" in command:
            (packages,) = home.glob("lib/python*/site-packages")
            (packages / "here.pth").write_text("\n".join(site.getsitepackages()))
    final, port = dict(instructions()), free_port()
    command = [home / "bin" / json.loads(final["ENTRYPOINT"])[0], *json.loads(final["CMD"]), "--port", str(port)]
    command = [str(small_model_folder) if word == "/model" else str(word) for word in command]
    server = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    try:
        check = json.loads(final["HEALTHCHECK"].partition("CMD ")[2].replace(final["EXPOSE"], str(port)))
        for _ in range(120):
            if subprocess.run([sys.executable, *check[1:]], capture_output=True).returncode == 0:
                break
            time.sleep(0.5)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=5) as answer:
            assert answer.status == 200
    finally:
        server.terminate()
        server.wait(30)
