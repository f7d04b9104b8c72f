"""Densities of methods on a grid, and in TREXIO files."""

import numpy as np
import pytest
import trexio

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


@pytest.mark.parametrize("command", ["scf", "rimp2", "ccsd"])
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
