"""Cube files: values at the points of the grid are those of the functions."""

import numpy as np
import pytest
from ase.io.cube import read_cube
from pyscf import gto, scf

from outcore.base.errors import OutcoreError
from outcore.chem.formats import cube, orbitals
from outcore.cli import main as cli

OH = "2\nmultiplicity=2\nO 0 0 0\nH 0 0 0.97\n"


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """Few points, and few rows of them at a time."""
    monkeypatch.setattr(cube, "POINTS", 7)
    monkeypatch.setattr(cube, "_WORK_BYTES", 2000)


def oh(kind):
    mol = gto.M(atom="O 0.1 0 0; H 0 0.2 0.97", basis="6-31g", spin=1, verbose=0)
    return getattr(scf, kind)(mol).run()


def read(path):
    """Points, values [point][orbital], the second line, numbers of orbitals."""
    lines = path.read_text().splitlines()
    count, *origin = lines[2].split()
    axes = [line.split() for line in lines[3:6]]
    natoms, steps = abs(int(count)), np.array([row[1:] for row in axes], float)
    grid = np.indices([int(row[0]) for row in axes]).reshape(3, -1).T
    rest = lines[6 + natoms :]
    numbers = [int(each) for each in rest.pop(0).split()][1:] if int(count) < 0 else []
    values = np.array(" ".join(rest).split(), float).reshape(len(grid), -1)
    return np.array(origin, float) + grid @ steps, values, lines[1], numbers


def test_a_density_has_its_values_at_the_points_and_its_atoms(tmp_path):
    mf = oh("ROHF")
    total = mf.make_rdm1().sum(axis=0)
    cube.write_density(tmp_path / "a.cube", mf.mol, total)
    points, values, *_ = read(tmp_path / "a.cube")
    functions = mf.mol.eval_gto("GTOval", points)
    wanted = np.einsum("gp,pq,gq->g", functions, total, functions)
    np.testing.assert_allclose(values[:, 0], wanted, rtol=1e-4, atol=1e-9)
    with (tmp_path / "a.cube").open() as file:
        atoms = read_cube(file)["atoms"]
    assert list(atoms.numbers) == [8, 1]
    np.testing.assert_allclose(atoms.positions, mf.mol.atom_coords(unit="Angstrom"), atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "chosen", "title", "numbers"),
    [
        ("UHF", None, "alpha 5, alpha 6, beta 4, beta 5", [5, 6, 4, 5]),
        ("UHF", ((0,), (1, 2)), "alpha 1, beta 2, beta 3", [1, 2, 3]),
        ("ROHF", None, "5, 6", [5, 6]),
        ("ROHF", ((3,),), "4", [4]),
    ],
)
def test_orbitals_lie_side_by_side(kind, chosen, title, numbers, tmp_path):
    mf = oh(kind)
    orbitals.write(tmp_path / "a.cube", mf, chosen)
    points, values, told, found = read(tmp_path / "a.cube")
    assert told.startswith(f"{title}, counted") and found == numbers
    spins = mf.mo_coeff if kind == "UHF" else [mf.mo_coeff]
    of_spin = [0 if "alpha" in each or kind == "ROHF" else 1 for each in title.split(", ")]
    columns = np.column_stack([spins[s][:, n - 1] for s, n in zip(of_spin, numbers, strict=True)])
    wanted = mf.mol.eval_gto("GTOval", points) @ columns
    np.testing.assert_allclose(values, wanted, atol=1e-5)  # of coordinates with six digits


def test_the_charge_behind_a_potential_is_not_the_number_of_the_element(tmp_path):
    mol = gto.M(atom="I 0 0 0; H 0 0 1.6", basis="def2-svp", ecp={"I": "def2-svp"}, verbose=0)
    cube.write_density(tmp_path / "a.cube", mol, np.eye(mol.nao))
    rows = [line.split() for line in (tmp_path / "a.cube").read_text().splitlines()[6:8]]
    assert [(int(row[0]), float(row[1])) for row in rows] == [(53, 25.0), (1, 1.0)]


def run(tmp_path, *more):
    (tmp_path / "a.xyz").write_text(OH)
    given = ["--basis", "sto-3g", "--threads", "1", "--quiet", "--storage", "direct"]
    return cli.run(["scf", str(tmp_path / "a.xyz"), *given, *more])


@pytest.mark.parametrize(("asked", "numbers"), [("3,0", [4, 1, 4, 1]), ("4", [5, 5]), ("1-2/0", [2, 3, 1])])
def test_the_command_takes_a_list(asked, numbers, tmp_path):
    assert run(tmp_path, "--save-orbitals", str(tmp_path / "a.cube"), "--cube-orbitals", asked) == 0
    assert read(tmp_path / "a.cube")[3] == numbers


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--cube-orbitals", "1"], "--cube-orbitals has no effect without"),
        (["--cube-orbitals", "1", "--save-orbitals", "a.molden"], "--cube-orbitals has no effect without"),
        (["--cube-orbitals", "one", "--save-orbitals", "a.cube"], "a list of orbitals is needed"),
        (["--cube-orbitals", "6", "--save-orbitals", "a.cube"], "there is no orbital 6"),
        (["--cube-orbitals", "1/2", "--rohf", "--save-orbitals", "a.cube"], "both spins share"),
    ],
)
def test_orbitals_that_are_not_there_are_refused_before_an_scf(more, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("outcore.chem.search.SCFSearch.run", lambda *_, **__: pytest.fail("an SCF has begun"))
    with pytest.raises(OutcoreError, match=said):
        run(tmp_path, *more)
