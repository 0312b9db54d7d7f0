"""Write locks/*.txt: the versions of constraints.txt with the SHA-256 of each file that the package index offers.

    .venv/bin/python scripts/lock.py

``make`` installs from these with ``pip install --require-hashes``. Each file but ``build.txt`` and ``core.txt`` holds
what its extras need beyond the core. Hashes of all platforms are kept, so that a lock made on one machine works on
another. torch is left out: its builds (processor, graphics card) come from different places with different hashes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from pip._internal.commands import create_command
from pip._internal.index.collector import parse_links
from pip._internal.models.link import Link
from pip._vendor.packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
EXTRAS = {
    "docs": "docs",
    "test": "spark,baselines,postgres,tensorboard,mcp,docs,test",
    "bench": "bench",
    "sbom": "sbom",
}
BUILD = ("pip", "setuptools")  # installed first: they build what has no wheel, and this package
OF_TORCH = re.compile(r"torch$|triton|nvidia-|cuda-")
OTHER_PLATFORMS = re.compile(
    r"-(pp\d+|graalpy\d+|cp2\d|cp3\d(?!-abi3)|cp3\d\dt)-|-cp3\d\dt-|musllinux|_(s390x|ppc64le|i686|armv7l|riscv64)\b|-win32"
)


def normal(name: str) -> str:
    """A package's name as the index spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    """Version by package, as constraints.txt says."""
    lines = (line.strip() for line in CONSTRAINTS.read_text().splitlines())
    return {normal(line.split("==")[0]): line.split("==")[1] for line in lines if line and not line.startswith("#")}


def needed(what: str) -> dict[str, str]:
    """What ``pip`` would install for this requirement here, torch and its libraries aside: marker by package."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--report", "-"]
    command += ["--constraint", str(CONSTRAINTS), what]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found = {}
    for entry in json.loads(done.stdout)["install"]:
        name = normal(entry["metadata"]["name"])
        if name != "cogstage" and not OF_TORCH.match(name):
            found[name] = marker(entry["metadata"].get("requires_python", ""))
    return found


def marker(requires_python: str) -> str:
    """A back port is not for later versions of Python: its upper bound as an environment marker."""
    bounds = [one for one in SpecifierSet(requires_python) if one.operator == "<" and not one.version.startswith("4")]
    return "".join(f' ; python_version < "{one.version}"' for one in bounds[:1])


def hashes(packages: dict[str, str]) -> dict[str, list[str]]:
    """SHA-256 of every file of each package's version, for CPython on the usual platforms."""
    command = create_command("download")
    options, _ = command.parse_args([])
    found: dict[str, list[str]] = {}
    with command.main_context():
        finder = command._build_package_finder(options, command._build_session(options))  # type: ignore[attr-defined]
        for name, version in sorted(packages.items()):
            links = [
                link
                for address in finder.search_scope.get_index_urls_locations(name)
                if (page := finder._link_collector.fetch_response(Link(address))) is not None
                for link in parse_links(page)
            ]
            fitting = [link for link in links if link.hash_name == "sha256" and fits(link.filename, version)]
            wheels = [link for link in fitting if link.is_wheel]
            found[name] = sorted({link.hash for link in wheels or fitting})  # nothing is built that need not be
            if not found[name]:
                raise SystemExit(f"the index offers no hash for {name} {version}")
    return found


def fits(file: str, version: str) -> bool:
    """Whether a file of the index is of this version, and for a platform that is meant."""
    stem = re.sub(r"\.(whl|tar\.gz|zip)$", "", file)
    if stem == file:
        return False
    wheel = file.endswith(".whl")
    of_version = stem.split("-")[1] == version if wheel else stem.rpartition("-")[2] == version
    return of_version and not (wheel and OTHER_PLATFORMS.search(file))


def main() -> None:
    pinned = pins()
    core = needed(".") | needed("torch==" + pinned["torch"])
    groups = {"build": dict.fromkeys(BUILD, ""), "core": core}
    for group, extras in EXTRAS.items():
        groups[group] = {name: mark for name, mark in needed(f".[{extras}]").items() if name not in core}
    wanted = set().union(*groups.values())
    if missing := wanted - pinned.keys():
        raise SystemExit(f"constraints.txt pins no version of {', '.join(sorted(missing))}")
    if unused := pinned.keys() - wanted - {"torch"}:
        raise SystemExit(f"constraints.txt pins what nothing needs: {', '.join(sorted(unused))}")
    known = hashes({name: pinned[name] for name in wanted})
    (ROOT / "locks").mkdir(exist_ok=True)
    for group, names in groups.items():
        lines = ["# Made by scripts/lock.py from constraints.txt; do not edit."]
        for name, mark in sorted(names.items()):
            entry = [f"{name}=={pinned[name]}{mark}", *(f"    --hash=sha256:{one}" for one in known[name])]
            lines.append(" \\\n".join(entry))
        (ROOT / "locks" / f"{group}.txt").write_text("\n".join(lines) + "\n")
        print(f"locks/{group}.txt: {len(names)} packages, {sum(len(known[name]) for name in names)} hashes")


if __name__ == "__main__":
    main()
