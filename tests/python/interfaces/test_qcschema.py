"""`outcore run` of an AtomicInput: the same numbers as PySCF and as the commands, in the version of the input."""

import json
import subprocess
import sys

import numpy as np
import pytest
from pyscf import gto, scf
from qcelemental.models import v1, v2

from outcore.base.errors import NotConverged, OutcoreError
from outcore.cli import main as cli
from outcore.interfaces import job

WATER = {"symbols": ["O", "H", "H"], "geometry": [0, 0, 0.22, 0, 1.43, -0.89, 0, -1.43, -0.89]}
H2 = {"symbols": ["H", "H"], "geometry": [0, 0, 0, 0, 0, 1.4]}


def first(method, driver="energy", molecule=WATER, basis="sto-3g", **keywords):
    return {
        "schema_name": "qcschema_input",
        "schema_version": 1,
        "molecule": molecule,
        "driver": driver,
        "model": {"method": method, "basis": basis},
        "keywords": {"threads": 1} | keywords,
    }


def second(method, driver="energy", molecule=WATER, basis="sto-3g", program="", **keywords):
    specification = {
        "program": program,
        "driver": driver,
        "model": {"method": method, "basis": basis},
        "keywords": {"threads": 1} | keywords,
    }
    return {
        "schema_version": 2,
        "molecule": v2.Molecule(**molecule).model_dump(),
        "specification": specification,
    }


def answered(tmp_path, given, *more):
    path, answer = tmp_path / "input.json", tmp_path / "answer.json"
    path.write_text(json.dumps(given, default=np.ndarray.tolist))
    status = cli.run(["run", str(path), "--json", str(answer), *more])
    return status, json.loads(answer.read_text())


def refused(tmp_path, given, error=OutcoreError):
    """The answer to bad input, a FailedOperation, and the error."""
    path, answer = tmp_path / "input.json", tmp_path / "answer.json"
    path.write_text(json.dumps(given, default=np.ndarray.tolist))
    with pytest.raises(error):
        cli.run(["run", str(path), "--json", str(answer)])
    return json.loads(answer.read_text())


def pyscf_water():
    places = np.reshape(WATER["geometry"], (3, 3))
    return gto.M(atom=list(zip("OHH", places, strict=True)), unit="bohr", basis="sto-3g", verbose=0)


def test_the_first_version_is_answered_in_the_first_version(tmp_path):
    status, found = answered(tmp_path, first("hf", "gradient", storage="direct"))
    assert status == 0
    result = v1.AtomicResult(**found)
    mf = scf.RHF(pyscf_water()).run(conv_tol=1e-12)
    assert result.properties.scf_total_energy == pytest.approx(mf.e_tot, abs=1e-8)
    assert result.properties.return_energy == result.properties.scf_total_energy
    np.testing.assert_allclose(result.return_result, mf.nuc_grad_method().kernel(), atol=1e-7)
    np.testing.assert_allclose(
        result.properties.scf_dipole_moment, mf.dip_moment(unit="AU", verbose=0), atol=1e-6
    )
    assert (result.properties.calcinfo_nbasis, result.properties.calcinfo_nalpha) == (7, 5)
    assert (result.provenance.creator, result.provenance.routine) == ("Outcore", "outcore scf")
    assert "SCF" in result.stdout


def test_the_second_version_is_answered_in_the_second_version(tmp_path):
    _, found = answered(tmp_path, second("ccsd(t)", basis="6-31g", molecule=H2))
    result = v2.AtomicResult(**found)
    _, plain = answered(tmp_path, second("fci", basis="6-31g", molecule=H2))
    # Two electrons: CCSD is full CI but for the fitting, and (T) is 0.
    assert result.return_result == pytest.approx(plain["return_result"], abs=1e-4)
    properties = result.properties
    assert properties.ccsd_prt_pr_total_energy == result.return_result
    assert properties.ccsd_prt_pr_correlation_energy == pytest.approx(
        result.return_result - properties.scf_total_energy, abs=1e-12
    )
    assert result.extras["outcore"]["ccsd_energy_hartree"] == properties.ccsd_total_energy


def test_options_behind_the_file_win_and_the_answer_goes_to_standard_output(tmp_path, capsys):
    path = tmp_path / "input.json"
    path.write_text(json.dumps(first("mp2", molecule=H2, frozen_virtual="0")))
    assert cli.run(["run", str(path), "--frozen-virtual", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["properties"]["mp2_correlation_energy"] == 0
    assert cli.run(["run", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["mp2_correlation_energy"] < -1e-3


def test_properties_of_a_full_ci(tmp_path):
    _, found = answered(tmp_path, first("fci", "properties", roots=2, frozen=2))
    values = found["return_result"]
    assert values["energies"][0] == values["energy"] < values["energies"][1]
    assert abs(values["dipole_moment"][2]) > 0.1


def test_properties_of_mrci_are_those_of_full_ci(tmp_path):
    given = {"frozen": 2, "residual": 1e-7}
    _, full = answered(tmp_path, first("fci", "properties", **given))
    _, found = answered(tmp_path, first("mrci", "properties", cas="6,5", **given))
    wanted = full["return_result"]["dipole_moment"]
    assert abs(wanted[2]) > 0.1
    assert found["return_result"]["dipole_moment"] == pytest.approx(wanted, abs=1e-5)


def test_mrci_with_all_references_is_full_ci(tmp_path):
    _, full = answered(tmp_path, first("fci", molecule=H2, basis="6-31g"))
    _, found = answered(tmp_path, first("mrci", molecule=H2, basis="6-31g", cas="2,2"))
    assert found["return_result"] == pytest.approx(full["return_result"], abs=1e-8)


@pytest.mark.parametrize("method", ["casscf", "casci"])
def test_an_active_space_of_all_orbitals_is_full_ci(method, tmp_path):
    _, full = answered(tmp_path, first("fci", molecule=H2, basis="6-31g"))
    _, found = answered(tmp_path, first(method, molecule=H2, basis="6-31g", cas="2,4"))
    assert found["return_result"] == pytest.approx(full["return_result"], abs=1e-8)


def test_nevpt2_is_added_to_casscf(tmp_path):
    _, found = answered(tmp_path, first("nevpt2", molecule=H2, basis="6-31g", cas="2,2"))
    results = found["extras"]["outcore"]
    assert found["return_result"] == results["nevpt2_energies_hartree"][0] < results["energies_hartree"][0]
    assert found["extras"]["qcvars"]["NEVPT2 TOTAL ENERGY"] == found["return_result"]


def test_energies_and_gradient_have_the_names_of_qcengine_too(tmp_path):
    _, found = answered(tmp_path, second("mp2", "gradient", molecule=H2, basis="6-31g"))
    result = v2.AtomicResult(**found)
    properties, variables = result.properties, result.extras["qcvars"]
    assert variables["CURRENT ENERGY"] == variables["MP2 TOTAL ENERGY"] == result.properties.return_energy
    assert variables["SCF TOTAL ENERGY"] == properties.scf_total_energy
    assert variables["CURRENT CORRELATION ENERGY"] == pytest.approx(
        properties.mp2_correlation_energy, abs=1e-12
    )
    assert properties.mp2_correlation_energy == pytest.approx(
        properties.mp2_same_spin_correlation_energy + properties.mp2_opposite_spin_correlation_energy
    )
    np.testing.assert_array_equal(variables["MP2 TOTAL GRADIENT"], result.return_result)
    assert (properties.calcinfo_nbasis, properties.calcinfo_nmo) == (4, 4)


def test_charge_multiplicity_and_ghosts_are_the_molecules(tmp_path):
    molecule = {
        "symbols": ["He", "H", "H"],
        "geometry": [0, 0, 0, 0, 0, 1.5, 0, 0, 8.0],
        "molecular_charge": 1,
        "molecular_multiplicity": 2,
        "real": [False, True, True],
    }
    _, found = answered(tmp_path, first("hf", molecule=molecule))
    mol = gto.M(
        atom="ghost-He 0 0 0; H 0 0 1.5; H 0 0 8", unit="bohr", basis="sto-3g", charge=1, spin=1, verbose=0
    )
    assert found["return_result"] == pytest.approx(scf.UHF(mol).run(conv_tol=1e-11).e_tot, abs=1e-8)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (first("hf") | {"driver": "force"}, "no AtomicInput of version 1"),
        (first("hf") | {"keywrods": {}}, "no AtomicInput of version 1"),
        (second("hf") | {"driver": "energy"}, "no AtomicInput of version 2"),
        (second("hf", program="psi4"), "specification.program is psi4"),
        (first("b3lyp"), "method 'b3lyp'"),
        (first("hf", basis=""), "model.basis is missing"),
        (first("hf", "hessian"), "hf has no hessian"),
        (first("mrci", "gradient", cas="2,2"), "mrci has no gradient"),
        (first("hf", frozen=1), "'outcore scf' has no option 'frozen'"),
        (first("hf", charge=1), "'charge' is set by"),
        (first("hf", unit="angstrom"), "'unit' is set by"),
        (second("hf", units="angstrom"), "'outcore scf' has no option 'units'"),
        (second("hf", basis=None), "model.basis is missing"),
        (first("ccsd", triples=True), "'triples' is set by"),
        (first("hf", conv_tol={}), "conv_tol is neither text"),
        (first("hf", estimate=True), "'estimate' has no effect here"),
        (first("hf") | {"protocols": {"wavefunction": "all"}}, "orbitals are not returned"),
        (first("hf", molecule=WATER | {"molecular_charge": 0.5}), "whole number"),
    ],
)
def test_what_is_wrong_is_a_failed_operation_before_anything_is_computed(tmp_path, monkeypatch, given, said):
    def never(*_given):
        raise AssertionError("computed")

    monkeypatch.setattr(job, "compute", never)
    found = refused(tmp_path, given)
    assert found["success"] is False
    assert found["error"]["error_type"] == "input_error"
    assert said in found["error"]["error_message"]
    assert found["input_data"]["molecule"]["symbols"] == ["O", "H", "H"]


@pytest.mark.parametrize(
    ("given", "error", "kind", "said"),
    [
        (first("hf", basis="no-such-set"), OutcoreError, "input_error", "no-such-set"),
        (first("hf", max_cycle="many"), cli.UsageError, "input_error", "many"),
        (first("ccsd", iterations=1), NotConverged, "convergence_error", "--iterations"),
        (first("hf", memory="50MB"), OutcoreError, "resource_error", "50"),
    ],
)
def test_what_a_command_refuses_is_a_failed_operation(tmp_path, given, error, kind, said):
    found = refused(tmp_path, given, error)
    assert found["error"]["error_type"] == kind
    assert said in found["error"]["error_message"]


def test_without_qcelemental_the_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "qcelemental.models", None)
    path = tmp_path / "input.json"
    path.write_text(json.dumps(first("hf")))
    with pytest.raises(OutcoreError, match="pip install 'qcelemental"):
        cli.run(["run", str(path)])


def test_an_option_that_leaves_no_result_is_wrong_usage(tmp_path):
    path = tmp_path / "input.json"
    path.write_text(json.dumps(first("hf")))
    with pytest.raises(cli.UsageError, match="--estimate has no effect"):
        cli.run(["run", str(path), "--estimate"])


@pytest.mark.launcher
def test_two_processes_answer_once(tmp_path):
    path = tmp_path / "input.json"
    path.write_text(json.dumps(first("ri-hf", molecule=H2, ranks=2)))
    command = [sys.executable, "-m", "outcore", "run", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    found = json.loads(done.stdout)
    assert found["success"] and found["extras"]["outcore"]["processes"] == 2
    _, alone = answered(tmp_path, first("ri-hf", molecule=H2))
    assert found["return_result"] == pytest.approx(alone["return_result"], abs=1e-9)
