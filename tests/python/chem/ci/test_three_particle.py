"""Three-particle densities, against PySCF's of the same state."""

from __future__ import annotations

import numpy as np
import pytest

from outcore.base.errors import OutcoreError

pyscf = pytest.importorskip("pyscf")

from pyscf import fci, mcscf  # noqa: E402

from outcore.chem.ci import FCISolver  # noqa: E402


@pytest.fixture
def solver():
    made = []

    def make(mf, **given):
        made.append(FCISolver(mf.mol, comm=None, threads=1, **given))
        return made[-1]

    yield make
    for each in made:
        each.close()
        each.world.close()


@pytest.mark.parametrize(
    ("electrons", "spin", "irrep"),
    [((2, 2), 0, "A1"), ((2, 2), 2, "B1"), ((3, 1), 2, "B1"), ((2, 1), 1, "B1"), ((1, 0), 1, "B1")],
)
def test_densities_are_those_of_pyscf(solver, electrons, spin, irrep):
    """With symmetry; for folded singlets and triplets, and for one electron."""
    total, orbitals = sum(electrons), 4 if sum(electrons) > 1 else 3
    atom = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"
    mol = pyscf.M(atom=atom, basis="sto-3g", symmetry=True, charge=total % 2, spin=total % 2, verbose=0)
    mf = mol.ROHF().run()
    theirs, ours = (mcscf.CASCI(mf, orbitals, electrons) for _ in range(2))
    ours.fcisolver, theirs.fcisolver = solver(mf), fci.direct_spin1_symm.FCI(mol)
    ours.fcisolver.spin = spin
    if spin != electrons[0] - electrons[1]:
        theirs.fcisolver = fci.addons.fix_spin_(theirs.fcisolver, ss=spin / 2 * (spin / 2 + 1))
    for each in (ours, theirs):
        each.verbose, each.fcisolver.conv_tol, each.fcisolver.wfnsym = 0, 1e-13, irrep
        each.kernel()
    vector = np.asarray(theirs.ci)
    expected = fci.rdm.make_dm123("FCI3pdm_kern_sf", vector, vector, orbitals, electrons)
    found = ours.fcisolver.make_rdm123(ours.ci, orbitals, electrons)
    for one, wanted in zip(found, fci.rdm.reorder_dm123(*expected), strict=True):
        assert one == pytest.approx(wanted, abs=1e-5)


def test_what_does_not_fit_is_refused(solver):
    mol = pyscf.M(atom="Be", basis="6-31g", verbose=0)
    mc = mcscf.CASCI(mol.RHF().run(), 8, 2)
    mc.verbose, mc.fcisolver = 0, solver(mc._scf)
    mc.kernel()
    mc.ci.ci.memory_bytes = 1 << 20
    with pytest.raises(OutcoreError, match=r"that of 8 orbitals needs 4\.\d+ MB more in each process"):
        mc.fcisolver.make_rdm3(mc.ci, 8, 2)
