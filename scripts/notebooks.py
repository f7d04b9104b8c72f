"""Runs the notebooks of examples and writes their output into them: notebooks.py [NAME..]."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

DIRECTORY = Path(__file__).resolve().parents[1] / "examples" / "notebooks"


def run(path: Path, directory: str) -> nbformat.NotebookNode:
    """The notebook with the output of its cells, run in a directory. Raises CellExecutionError."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": directory}}
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources=resources, coalesce_streams=True
    )
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times, which differ from run to run
    return notebook


def main() -> None:
    names = sys.argv[1:] or [path.stem for path in sorted(DIRECTORY.glob("*.ipynb"))]
    for name in names:
        path = DIRECTORY / f"{name}.ipynb"
        with tempfile.TemporaryDirectory() as directory:
            nbformat.write(run(path, directory), path)
        print(path)


if __name__ == "__main__":
    main()
