"""The file of results that every method writes, and the summary at the end of a run."""

import json
from pathlib import Path

import jsonschema
import pytest

from outcore.cli import main as cli
from outcore.cli.run import SCHEMA

FILE = Path(__file__).parents[3] / "docs" / "reference" / "results.schema.json"
OPTIONS = {
    "scf": ["--storage", "direct"],
    "rimp2": [],
    "ccsd": ["--triples"],
    "fci": ["--energy-only"],
    "mrci": ["--active", "2", "--inactive", "0"],
}
ENERGY = {
    "scf": ("SCF energy", "energy_hartree"),
    "rimp2": ("RI-MP2 energy", "total_hartree"),
    "ccsd": ("CCSD(T) energy", "ccsd_t_energy_hartree"),
    "fci": ("FCI energy of root 1", "energies_hartree"),
    "mrci": ("MRCI energy of root 1", "energies_hartree"),
}


@pytest.fixture(scope="module")
def schema():
    found = json.loads(FILE.read_text())
    jsonschema.Draft202012Validator.check_schema(found)
    assert found["properties"]["schema"]["const"] == SCHEMA
    return found


def run(name, tmp_path, *more):
    geometry, results = tmp_path / "h2.xyz", tmp_path / "results.json"
    geometry.write_text("2\n\nH 0 0 0\nH 0 0 0.74\n")
    given = ["--basis", "6-31g", "--threads", "1", "--quiet", "--json", str(results)]
    assert cli.run([name, str(geometry), *given, *OPTIONS[name], *more]) == 0
    return json.loads(results.read_text())


@pytest.mark.parametrize("name", OPTIONS)
def test_results_are_as_the_schema_says_and_the_summary_has_the_energy(name, schema, tmp_path, capsys):
    found = run(name, tmp_path)
    jsonschema.validate(found, schema)
    assert found["molecule"]["atoms"] == [["H", 0.0, 0.0, 0.0], ["H", 0.0, 0.0, 0.74]]
    assert found["method"].endswith("/6-31g")
    title, key = ENERGY[name]
    energy = found[key][0] if isinstance(found[key], list) else found[key]
    said = capsys.readouterr().out.splitlines()
    assert f"{title:<26}{energy:18.10f} Eh" in [line[:47].rstrip() for line in said]
    assert said[-1].startswith("run time ")


def test_an_estimate_says_of_what_it_is(schema, tmp_path):
    found = run("ccsd", tmp_path, "--estimate")
    jsonschema.validate(found, schema)
    assert "estimate" in found and "run_seconds" not in found
