"""Runs of `outcore casscf`."""

from __future__ import annotations

import json

import pytest

from outcore.cli import main as cli


@pytest.fixture
def run(tmp_path):
    """Runs the command for the text of a geometry; returns its results."""

    def of(text, *arguments):
        geometry, results = tmp_path / "molecule.xyz", tmp_path / "results.json"
        geometry.write_text(text)
        threads = [] if "--threads" in arguments else ["--threads", "1"]
        common = ["--basis", "sto-3g", *threads, "--json", str(results)]
        assert cli.run(["casscf", str(geometry), *common, *arguments]) == 0
        return json.loads(results.read_text())

    return of
