"""The harness of QCEngine, against the reference values of QCEngine's own standard suite."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import qcengine
from pyscf import gto, scf
from qcelemental.models import v2
from qcengine.programs.tests.standard_suite_ref import answer_hash, std_molecules, std_suite

import outcore.interfaces.qcengine  # noqa: F401

CONVENTIONAL, FITTED = ("pk", "conv"), ("df", "df")
ENERGY, GRADIENT = 1e-8, 1e-8
TASK = {"ncores": 1, "memory": 1, "retries": 0}


def compute(name, method, driver, raise_error=True, basis="cc-pvdz", **keywords):
    text = std_molecules[name if name == "bh3p" else f"{name}-xyz"]
    model = v2.AtomicInput(
        molecule=v2.Molecule.from_data(text),
        specification={"driver": driver, "model": {"method": method, "basis": basis}, "keywords": keywords},
    )
    return qcengine.compute(model, "outcore", task_config=TASK, raise_error=raise_error)


@pytest.mark.parametrize(
    ("name", "reference", "method", "title", "integrals", "driver", "keywords"),
    [
        ("hf", "rhf", "hf", "HF", CONVENTIONAL, "gradient", {}),
        pytest.param("bh3p", "uhf", "hf", "HF", CONVENTIONAL, "gradient", {}, marks=pytest.mark.long),
        pytest.param(
            "bh3p", "rohf", "hf", "HF", CONVENTIONAL, "gradient", {"rohf": True}, marks=pytest.mark.long
        ),
        ("hf", "rhf", "ri-hf", "HF", FITTED, "gradient", {}),
        pytest.param("bh3p", "uhf", "ri-hf", "HF", FITTED, "gradient", {}, marks=pytest.mark.long),
        pytest.param(
            "bh3p", "rohf", "ri-hf", "HF", FITTED, "gradient", {"rohf": True}, marks=pytest.mark.long
        ),
        pytest.param("hf", "rhf", "mp2", "MP2", FITTED, "gradient", {}, marks=pytest.mark.long),
        ("hf", "rhf", "mp2", "MP2", FITTED, "gradient", {"frozen": "auto"}),
        pytest.param(
            "bh3p", "uhf", "mp2", "MP2", FITTED, "gradient", {"frozen": "auto"}, marks=pytest.mark.long
        ),
        ("hf", "rhf", "ccsd", "CCSD", FITTED, "gradient", {}),
        ("hf", "rhf", "ccsd(t)", "CCSD(T)", FITTED, "energy", {"frozen": "auto"}),
        pytest.param(
            "bh3p", "uhf", "ccsd", "CCSD", FITTED, "energy", {"frozen": "auto"}, marks=pytest.mark.long
        ),
        ("bh3p", "uhf", "ccsd(t)", "CCSD(T)", CONVENTIONAL, "energy", {"integrals": "conventional"}),
        pytest.param(
            "bh3p",
            "rohf",
            "ccsd",
            "CCSD",
            CONVENTIONAL,
            "energy",
            {"rohf": True, "integrals": "conventional"},
            marks=pytest.mark.long,
        ),
        ("hf", "rhf", "ccd", "CCD", FITTED, "energy", {}),
        ("hf", "rhf", "lccd", "LCCD", FITTED, "energy", {}),
    ],
)
def test_values_are_those_of_the_standard_suite(name, reference, method, title, integrals, driver, keywords):
    found = compute(name, method, driver, **keywords)
    meta = {"system": name, "basis": "cc-pvdz", "reference": reference}
    values = std_suite[
        answer_hash(
            **meta,
            fcae="fc" if "frozen" in keywords else "ae",
            scf_type=integrals[0],
            corl_type=integrals[1],
            sdsc="sc" if reference == "rohf" else "sd",
        )
    ]
    assert found.properties.scf_total_energy == pytest.approx(values["HF TOTAL ENERGY"], abs=ENERGY)
    assert found.properties.return_energy == pytest.approx(values[f"{title} TOTAL ENERGY"], abs=ENERGY)
    if driver == "gradient":
        np.testing.assert_allclose(found.return_result, values[f"{title} TOTAL GRADIENT"], atol=GRADIENT)
    assert found.provenance.creator == "Outcore"


@pytest.mark.parametrize(
    ("method", "driver", "keywords", "error", "said"),
    [
        ("b3lyp", "energy", {}, "input_error", "method 'b3lyp'"),
        ("fci", "gradient", {}, "input_error", "fci has no gradient"),
        ("mp2", "energy", {"frozne": 1}, "input_error", "no option 'frozne'"),
        ("hf", "energy", {"memory": "50MB"}, "resource_error", "least"),
        (
            "hf",
            "energy",
            {"max_cycle": 1, "conv_tol": 1e-12, "second_order": False},
            "convergence_error",
            "SCF",
        ),
    ],
)
def test_errors_are_of_the_kinds_of_qcengine(method, driver, keywords, error, said):
    found = compute("hf", method, driver, raise_error=False, basis="sto-3g", **keywords)
    assert not found.success
    assert found.error.error_type == error
    assert said in found.error.error_message


@pytest.mark.parametrize(
    ("basis", "said"), [(None, "model.basis is missing"), ("no-such-set", "no-such-set")]
)
def test_a_missing_or_unknown_basis_is_an_input_error(basis, said, monkeypatch):
    monkeypatch.setattr("outcore.chem.search.SCFSearch.run", lambda *_, **__: pytest.fail("an SCF has begun"))
    found = compute("hf", "hf", "energy", raise_error=False, basis=basis)
    assert (found.success, found.error.error_type) == (False, "input_error")
    assert said in found.error.error_message


@pytest.mark.parametrize(
    ("program", "keywords"),
    [("geometric", {"convergence_set": "GAU_TIGHT"}), ("optking", {"g_convergence": "gau_tight"})],
)
def test_a_geometry_is_found_through_the_harness(program, keywords, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the programs leave files
    pytest.importorskip(program, reason=f"{program} is not installed")  # optking is no package of PyPI
    model = v2.OptimizationInput(
        initial_molecule=v2.Molecule(symbols=["H", "H"], geometry=[0, 0, 0, 0, 0, 1.5]),
        specification={
            "program": program,
            "keywords": keywords,
            "specification": {
                "program": "outcore",
                "driver": "gradient",
                "model": {"method": "hf", "basis": "sto-3g"},
                "keywords": {"storage": "direct"},
            },
        },
    )
    found = qcengine.compute(model, program, task_config=TASK, raise_error=True)
    length = np.linalg.norm(np.subtract(*found.final_molecule.geometry))
    mol = gto.M(atom=[["H", (0, 0, 0)], ["H", (0, 0, length)]], unit="bohr", basis="sto-3g", verbose=0)
    mf = scf.RHF(mol).run(conv_tol=1e-12)
    assert found.properties.return_energy == pytest.approx(mf.e_tot, abs=1e-8)
    assert abs(mf.nuc_grad_method().kernel()).max() < 2e-5


def test_interactions_of_fragments_are_those_with_ghosts_of_the_others():
    given = {
        "schema_name": "qcschema_many_body_input",
        "schema_version": 2,
        "molecule": {
            "symbols": ["H", "F", "He"],
            "geometry": [0, 0, 0, 0, 0, 1.75, 0, 0, -4.0],
            "fragments": [[0, 1], [2]],
        },
        "specification": {
            "driver": "energy",
            "keywords": {"bsse_type": ["cp"], "max_nbody": 2},
            "specification": {
                "(auto)": {
                    "program": "outcore",
                    "driver": "energy",
                    "model": {"method": "hf", "basis": "6-31g"},
                }
            },
        },
    }
    found = qcengine.compute(given, "qcmanybody", task_config=TASK, raise_error=True)

    def energy(*ghosts):
        names = [
            f"ghost-{name}" if number in ghosts else name for number, name in enumerate(("H", "F", "He"))
        ]
        atoms = list(zip(names, [(0, 0, 0), (0, 0, 1.75), (0, 0, -4.0)], strict=True))
        return scf.RHF(gto.M(atom=atoms, unit="bohr", basis="6-31g", verbose=0)).run(conv_tol=1e-12).e_tot

    assert found.return_result == pytest.approx(energy() - energy(2) - energy(0, 1), abs=1e-9)


PATCHES = Path(__file__).resolve().parents[3] / "packaging" / "qcengine"
PATCHED = """
import json, qcengine
model = {"molecule": {"symbols": ["H", "H"], "geometry": [0, 0, 0, 0, 0, 1.4]}, "driver": "energy",
         "model": {"method": "hf", "basis": "sto-3g"}, "keywords": {"storage": "direct", "threads": 1}}
found = qcengine.compute(model, "outcore", raise_error=True, task_config={"ncores": 1, "memory": 1})
print(json.dumps([qcengine.__file__, found.provenance.version, found.return_result]))
"""


@pytest.fixture
def patched(tmp_path):
    """A copy of QCEngine with the harness, and the environment of a Python that imports it."""
    shutil.copytree(
        Path(qcengine.__file__).parent, tmp_path / "qcengine", ignore=shutil.ignore_patterns("__pycache__")
    )
    apply(tmp_path, "outcore.patch")
    return tmp_path, os.environ | {"PYTHONPATH": str(tmp_path)}


def apply(place, name):
    subprocess.run(["git", "apply", "--include=qcengine/*", PATCHES / name], cwd=place, check=True)


def test_a_qcengine_with_the_patch_knows_the_program_by_itself(patched):
    place, environment = patched
    said = subprocess.check_output([sys.executable, "-c", PATCHED], env=environment, text=True)
    file, version, energy = json.loads(said.splitlines()[-1])
    assert Path(file).parent == place / "qcengine"
    assert version.startswith("0.")
    mol = gto.M(atom="H 0 0 0; H 0 0 1.4", unit="bohr", basis="sto-3g", verbose=0)
    assert energy == pytest.approx(scf.RHF(mol).run(conv_tol=1e-11).e_tot, abs=1e-8)


@pytest.mark.long
@pytest.mark.skipif(
    not qcengine.__version__.startswith("0.52."), reason="the patch of the suite is for QCEngine 0.52"
)
def test_the_standard_suite_of_qcengine_passes(patched):
    """Its own tests with the entries of the patch: energies and gradients of Hartree-Fock, energies of CCSD and of
    CCSD(T), for RHF, UHF and ROHF, all electrons and frozen cores."""
    place, environment = patched
    apply(place, "suite.patch")
    suite = sorted((place / "qcengine" / "programs" / "tests").glob("test_standard_suite*.py"))
    chosen = ["-k", "outcore and as_v2 and not adz and not qz2p", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *chosen, *suite],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert re.search(r"\b14 passed", done.stdout), done.stdout[-500:]
