"""Point groups of molecules, and the axes of their irreps."""

from __future__ import annotations

import re

import numpy as np
import pytest

from outcore.chem.symmetry import group_line, with_symmetry

pyscf = pytest.importorskip("pyscf")

# Two coordinates of ethylene in its plane, the first along the bond of the carbon atoms.
ETHYLENE = np.array(
    [[0.667, 0], [-0.667, 0], [1.237, 0.922], [1.237, -0.922], [-1.237, 0.922], [-1.237, -0.922]]
)
X, Y, Z = np.eye(3).tolist()


def ethylene(*axes):
    atoms = list(zip("CCHHHH", ETHYLENE @ np.array(axes), strict=True))
    return with_symmetry(pyscf.M(atom=atoms, basis="sto-3g", verbose=0), "auto")


@pytest.mark.parametrize(
    ("axes", "told"),
    [
        ((Z, Y), ""),
        ((X, Y), "; axes x, y, z of its irreps are z, y, x of the geometry"),
        ((Y, Z), "; axes x, y, z of its irreps are x, z, y of the geometry"),
    ],
)
def test_axes_of_irreps_are_told_if_they_are_others(axes, told):
    assert group_line(ethylene(*axes)) == f"point group D2h{told}"


def test_axes_between_those_of_the_geometry_are_told_by_their_components():
    found = re.findall(r"\(([^)]*)\)", group_line(ethylene([0.6, 0.8, 0], Z)))
    expected = [[0.8, 0.6, 0], [0, 0, 1], [0.6, 0.8, 0]]
    assert [[abs(float(each)) for each in axis.split(",")] for axis in found] == expected


def test_functions_along_the_told_axis_have_its_irrep():
    mol = ethylene(X, Y)
    assert "x, y, z of its irreps are z, y, x" in group_line(mol)
    pi, labels = mol.symm_orb[mol.irrep_name.index("B3u")], mol.ao_labels(fmt=None)
    assert {labels[row][2:] for row in np.flatnonzero(abs(pi).max(1) > 1e-9)} == {("2p", "z")}
