"""Results as data of cclib: its writers accept them, and units are right."""

import json

import numpy as np
import pytest
from cclib.io import ccread, ccwrite
from cclib.parser.utils import convertor

from outcore.base.errors import OutcoreError
from outcore.cli import main as cli
from outcore.interfaces.cclib import read

WATER = "3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n"
ENERGIES = {"scf": None, "rimp2": "mpenergies", "ccsd": "ccenergies", "fci": "ccenergies"}
KEYS = {"rimp2": "total_hartree", "ccsd": "ccsd_energy_hartree", "fci": "energies_hartree"}


def run(tmp_path, command, *more):
    (tmp_path / "a.xyz").write_text(WATER)
    given = ["--basis", "sto-3g", "--threads", "1", "--quiet", "--json", str(tmp_path / "r.json")]
    assert cli.run([command, str(tmp_path / "a.xyz"), *given, *more]) == 0
    return json.loads((tmp_path / "r.json").read_text())


@pytest.mark.parametrize("command", ENERGIES)
def test_energies_are_in_electron_volts(command, tmp_path):
    found = run(tmp_path, command)
    data = read(tmp_path / "r.json")
    scf = found.get("scf_energy_hartree", found.get("energy_hartree"))
    assert data.scfenergies[0] == pytest.approx(convertor(scf, "hartree", "eV"))
    if ENERGIES[command] is not None:
        wanted = np.ravel(found[KEYS[command]])[0]
        assert np.ravel(getattr(data, ENERGIES[command]))[0] == pytest.approx(
            convertor(wanted, "hartree", "eV")
        )
    assert (list(data.atomnos), data.charge, data.mult, data.nbasis) == ([8, 1, 1], 0, 1, 7)


def test_excited_states_are_in_wavenumbers_with_their_strengths(tmp_path):
    found = run(tmp_path, "eom", "--states", "1", "--properties", "--frozen", "3", "--auxbasis", "cc-pvdz-ri")
    data = read(tmp_path / "r.json")
    for state, energy, strength in zip(found["states"], data.etenergies, data.etoscs, strict=True):
        assert energy == pytest.approx(state["energy_hartree"] * 219474.63, rel=1e-7)
        assert strength == state["oscillator_strength"]


def test_cclib_writes_and_reads_its_own_json_of_it(tmp_path):
    found = run(tmp_path, "ri-scf", "--gradient", "--dipole")
    data = read(tmp_path / "r.json")
    np.testing.assert_allclose(data.grads[0], found["gradient_hartree_per_bohr"])
    np.testing.assert_allclose(data.moments[1], found["dipole_debye"])
    np.testing.assert_allclose(data.atomcharges["mulliken"], found["mulliken_charges"])
    ccwrite(data, "cjson", str(tmp_path / "r.cjson"))
    again = ccread(str(tmp_path / "r.cjson"), cjson=True)
    assert list(again["atomnos"]) == [8, 1, 1]
    assert (again["charge"], again["mult"], again["nbasis"]) == (0, 1, 7)
    np.testing.assert_allclose(again["scfenergies"][-1], data.scfenergies[-1])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Expecting"),
        ("[]", "its schema is not"),
        ('{"schema": "outcore-results-1"}', "no results of a molecule"),
    ],
)
def test_what_are_no_results_is_refused(text, said, tmp_path):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(OutcoreError, match=said):
        read(tmp_path / "r.json")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(OutcoreError, match=r"none\.json: No such file"):
        read(tmp_path / "none.json")
