"""Execute docs/tutorial.ipynb and write it back with its outputs: python scripts/run_notebook.py"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[1] / "docs" / "tutorial.ipynb"


def execute(notebook: Any, folder: Path) -> Any:
    """Run every cell in order, in ``folder``; raises at the first error."""
    NotebookClient(notebook, timeout=1200, resources={"metadata": {"path": str(folder)}}).execute()
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:02d}"
        cell.metadata.pop("execution", None)  # times of execution
        if "outputs" in cell:  # progress, which has times
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def main() -> None:
    """Execute the notebook and write it."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(execute(notebook, Path(folder)), NOTEBOOK)


if __name__ == "__main__":
    main()
