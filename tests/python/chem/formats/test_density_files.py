"""Densities of methods on a grid, and in TREXIO files."""

import numpy as np
import pytest
import trexio
from pyscf import fci, gto, scf

from outcore.base.errors import OutcoreError
from outcore.cli import main as cli

WATER = "3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n"


def run(command, tmp_path, *more):
    (tmp_path / "a.xyz").write_text(WATER)
    given = ["--basis", "sto-3g", "--threads", "1", "--quiet"]
    assert cli.run([command, str(tmp_path / "a.xyz"), *given, *more]) == 0


def test_a_cube_holds_all_electrons_but_what_the_grid_misses(tmp_path):
    path = tmp_path / "a.cube"
    run("ri-scf", tmp_path, "--density", str(path))
    lines = path.read_text().splitlines()
    axes = np.array([line.split() for line in lines[3:6]], float)
    values = np.concatenate([np.array(line.split(), float) for line in lines[9:]])
    assert len(values) == np.prod(axes[:, 0])
    # The cusp of oxygen is narrower than a cell: its two core electrons come out roughly.
    assert values.sum() * abs(np.linalg.det(axes[:, 1:])) == pytest.approx(10, abs=0.3)


@pytest.mark.parametrize("command", ["scf", "rimp2", pytest.param("ccsd", marks=pytest.mark.long)])
def test_densities_of_a_file_are_those_of_the_method(command, tmp_path):
    path, results = tmp_path / "a.h5", tmp_path / "r.npz"
    run(command, tmp_path, "--density", str(path))
    run(command, tmp_path, "--density", str(results))
    with trexio.File(str(path), "r", trexio.TREXIO_HDF5) as file:
        c, rdm, up = (
            getattr(trexio, f"read_{each}")(file) for each in ("mo_coefficient", "rdm_1e", "rdm_1e_up")
        )
    total = c.T @ rdm @ c
    wanted = np.load(results)["total"]
    places = [0, 1, 4, 2, 3, 5, 6]  # z, x, y of p functions
    np.testing.assert_allclose(total, wanted[np.ix_(places, places)], atol=1e-8)
    np.testing.assert_allclose(2 * up, rdm, atol=1e-10)


def read(path):
    """Total and alpha density over functions, in the order of PySCF."""
    with trexio.File(str(path), "r", trexio.TREXIO_AUTO) as file:
        c, total, alpha = (
            getattr(trexio, f"read_{each}")(file) for each in ("mo_coefficient", "rdm_1e", "rdm_1e_up")
        )
    back = np.argsort([0, 1, 4, 2, 3, 5, 6])
    return tuple((c.T @ each @ c)[np.ix_(back, back)] for each in (total, alpha))


@pytest.mark.parametrize("name", [pytest.param("a.h5", marks=pytest.mark.long), "a.trexio"])
def test_the_density_of_a_multireference_ci_is_that_of_full_ci(name, tmp_path):
    """All orbitals except a frozen one are active."""
    tight = ["--residual", "1e-7", "--frozen", "1"]
    run("fci", tmp_path, *tight, "--density", str(tmp_path / "full.npz"))
    run("mrci", tmp_path, *tight, "--cas", "8,6", "--density", str(tmp_path / name))
    total, alpha = read(tmp_path / name)
    np.testing.assert_allclose(total, np.load(tmp_path / "full.npz")["total"], atol=2e-6)
    np.testing.assert_allclose(2 * alpha, total, atol=1e-10)


def test_an_open_multireference_ci_has_a_spin_density(tmp_path):
    (tmp_path / "a.xyz").write_text("2\n\nO 0 0 0.1\nH 0.2 0 1.05\n")
    given = ["--basis", "sto-3g", "--threads", "1", "--quiet", "--frozen", "2"]
    for command, name, more in (("fci", "full.npz", ()), ("mrci", "a.npz", ("--cas", "5,4"))):
        files = ["--density", str(tmp_path / name), "--residual", "1e-7", *more]
        assert cli.run([command, str(tmp_path / "a.xyz"), *given, *files]) == 0
    found, wanted = np.load(tmp_path / "a.npz"), np.load(tmp_path / "full.npz")
    assert abs(wanted["spin"]).max() > 0.5
    np.testing.assert_allclose(found["spin"], wanted["spin"], atol=2e-6)


def test_a_density_is_that_of_the_root_that_is_asked_for(tmp_path):
    (tmp_path / "a.xyz").write_text("2\n\nH 0 0 0\nH 0 0 1.2\n")
    for command, more in (("fci", ()), ("mrci", ("--cas", "2,2"))):
        given = ["--basis", "6-31g", "--threads", "1", "--quiet", "--roots", "2", "--residual", "1e-8", *more]
        files = ["--density", str(tmp_path / f"{command}.npz"), "--density-of", "2"]
        assert cli.run([command, str(tmp_path / "a.xyz"), *given, *files]) == 0
    mol = gto.M(atom="H 0 0 0; H 0 0 1.2", basis="6-31g", symmetry="D2h", verbose=0)
    mf = scf.RHF(mol).run(conv_tol=1e-12)
    solver = fci.FCI(mf)
    solver.wfnsym, solver.nroots = "Ag", 2
    _, vectors = solver.kernel(tol=1e-12)
    wanted = mf.mo_coeff @ solver.make_rdm1(vectors[1], mol.nao, 2) @ mf.mo_coeff.T
    for command in ("fci", "mrci"):
        np.testing.assert_allclose(np.load(tmp_path / f"{command}.npz")["total"], wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("command", "more", "said"),
    [
        ("fci", ["--density-of", "2"], "without --density or --molden or --trexio"),
        ("mrci", ["--cas", "2,2", "--density-of", "2"], "--density-of has no effect without --density"),
        ("fci", ["--density-of", "3", "--roots", "2", "--trexio", "a.h5"], "--density-of 3.*from 1 to 2"),
        ("mrci", ["--cas", "2,2", "--density-of", "0", "--density", "a.h5"], "--density-of 0.*from 1 to 1"),
    ],
)
def test_a_root_that_is_not_there_is_refused(command, more, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutcoreError, match=said):
        run(command, tmp_path, *more)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--density", "a.txt"], r"its name must end in \.molden"),
        (["--density", "a.h5", "--estimate"], "--density has no effect with --estimate"),
        (["--density", "no/a.h5"], "write the density"),
    ],
)
def test_what_cannot_be_written_is_refused_before_an_scf(more, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("outcore.chem.run.MoleculeRun.converge", lambda *_: pytest.fail("an SCF has begun"))
    with pytest.raises(OutcoreError, match=said):
        run("mrci", tmp_path, "--cas", "2,2", *more)
