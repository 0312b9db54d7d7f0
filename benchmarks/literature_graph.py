"""The literature graph from raw text in one command: time, peak memory, nodes and edges, with and without context."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import parser, report, run_side

KNOWN = {"nodes": 11_333, "edges": 2_729_410}  # from a matcher over characters, which loses some short matches


def one_command(documents: str, lexicon: str, arguments: list[str]) -> dict[str, Any]:
    """``cogstage graph build`` as a user would call it; time is that of the whole command."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "graph")
        command = [sys.executable, "-c", "from cogstage.cli.main import run; run()"]
        command += ["graph", "build", documents, "--lexicon", lexicon, "--out", out, "--json", *arguments]
        begun = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - begun
        built: dict[str, Any] = json.loads(done.stdout)
        return {"seconds": seconds, **built}


def sample(documents: Path, folder: Path, count: int) -> Path:
    """The first documents alone."""
    from cogstage.tables import open_bytes

    path = folder / "documents.jsonl"
    with open_bytes(documents) as whole, path.open("wb") as part:
        for number, line in enumerate(whole):
            if number >= count:
                break
            part.write(line)
    return path


def main(argv: list[str] | None = None) -> None:
    """Build the graph with context kept and left out, and under a low memory ceiling."""
    options = parser(__doc__).parse_args(argv)
    literature = Path(options.literature)
    documents, lexicon = literature / "documents.jsonl.gz", literature / "lexicon.tsv"
    if not documents.exists():
        print(f"{literature} is not there; give its folder with --literature")
        return
    with tempfile.TemporaryDirectory() as folder:
        if options.quick:
            documents = sample(documents, Path(folder), 3_000)
        ways = {
            "context kept": ["--min-count", "5", "--keep-context"],
            "context kept, 64 MB for counting": ["--min-count", "5", "--keep-context", "--memory", "64MB"],
            "context left out": ["--min-count", "5"],
        }
        rows = []
        for name, arguments in ways.items():
            kwargs = {"documents": str(documents), "lexicon": str(lexicon), "arguments": arguments}
            side = run_side("benchmarks.literature_graph:one_command", kwargs)
            result = side["result"]
            row = {"build": name, "seconds": result["seconds"], "peak MB": side["peak_mb"]}
            rows.append({**row, **{key: result[key] for key in ("documents", "nodes", "edges")}})
    notes = (
        {} if options.quick else {f"{key} known from a matcher over characters": value for key, value in KNOWN.items()}
    )
    report("literature_graph", rows, options.out, notes)


if __name__ == "__main__":
    main()
