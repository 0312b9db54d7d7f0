"""The core runs where ``fcntl``, ``resource`` and ``os.fork`` are missing, as on Windows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import multiprocessing, os, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("fork", "forkpty", "sched_getaffinity", "killpg", "setsid", "getuid"):
    if hasattr(os, name):
        delattr(os, name)
multiprocessing.get_all_start_methods = lambda: ["spawn"]
import cogstage as cs
from pathlib import Path
Path("notes.tsv").write_text("doc_id\\ttext\\n1\\tAspirin helps headache.\\n2\\tAspirin, headache and fever\\n")
Path("terms.tsv").write_text("term\\ttype\\naspirin\\tdrug\\nheadache\\tsymptom\\nfever\\tsymptom\\n")
graph = cs.build_graph("notes.tsv", "built", "terms.tsv", workers=4)
assert (graph.n_nodes, graph.n_edges) == (3, 3), graph
graph, data = cs.Graph.load(sys.argv[1]), cs.Dataset.load(sys.argv[2])
model = cs.CogStage("may_treat", dimension=8, tower=8, associations=4, recognition_passes=1, decision_steps=0, folds=0)
model.fit(graph, data).save("model")
loaded = cs.CogStage.load("model")
assert loaded.predict("Drug number 4", "Disorder number 5").statement
assert loaded.discover("Drug number 4", "may_treat", top=2)
from cogstage.cli.main import app
from cogstage.evaluation.comparison_process import peak_mb
from cogstage.web.connections import ConnectionLimits
from cogstage.web.explorer_app import create_explorer_app
from cogstage.web.service import Service
assert peak_mb() != peak_mb() and ConnectionLimits().affordable() == ConnectionLimits().most
create_explorer_app(Service(loaded))
from cogstage.errors import UsageError
from cogstage.web import workers
from cogstage.web.serving import Address
try:
    workers.serve(lambda: None, Address("127.0.0.1", 0), workers=2)
except UsageError as error:
    assert "operating system with fork" in str(error)
print("done")
"""


@pytest.mark.slow
def test_the_core_needs_nothing_of_unix(tmp_path: Path, small_model_folder: Path) -> None:
    from small_model import save_small_data, small_data

    small_data()[0].save(tmp_path / "graph")
    save_small_data(tmp_path / "data")
    command = [sys.executable, "-c", CODE, str(tmp_path / "graph"), str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "done\n", done.stderr
