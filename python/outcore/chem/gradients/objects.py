"""Gradients of mean-field objects, by PySCF's names.

mf = outcore.chem.ri.RHF(mol, memory="2GB")
mf.kernel()
forces = -mf.nuc_grad_method().kernel()                 # Hartree/Bohr, [atom][x]
energy, gradient = mf.nuc_grad_method().as_scanner()(mol)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyscf import lib
from pyscf.grad import rhf

from outcore.chem.gradients import densities as densities_of
from outcore.chem.gradients.scf import gradient, refused, scf_reference

if TYPE_CHECKING:
    from outcore.chem.gradients.densities import Matrix
    from outcore.parallel.tasks import Progress


class Gradients(rhf.GradientsBase):  # type: ignore[misc]
    """Gradients of a converged RHF, UHF or ROHF object of `outcore.chem.hf` or `outcore.chem.ri`, in its memory and
    on its processes. `kernel` is collective, and runs the SCF if that has not been done.

    Derivatives of integrals are contracted as they are made: PySCF contracts those of exact integrals, with shells
    as tasks of all processes; those of fitted ones come in slabs of auxiliary functions.

    Raises OutcoreError, the same on all processes: EINVAL (no convergence, Kohn-Sham), ENOTSUP (smeared
    occupations, a Hamiltonian that is not the molecule's, functions that depend on each other), ENOMEM.
    """

    on_progress: Progress | None = None
    atmlst: Any
    de: Any
    _keys = {"on_progress"}  # noqa: RUF012  (PySCF's convention)

    def kernel(
        self, mo_energy: Any = None, mo_coeff: Any = None, mo_occ: Any = None, atmlst: Any = None
    ) -> Matrix:
        """The gradient [atom][x] (Hartree/Bohr); also sets `de`. atmlst: atoms; None: as before, all at first.
        Orbitals are those of the SCF: others are refused."""
        mf = self.base
        if not all(given is None for given in (mo_energy, mo_coeff, mo_occ)):
            raise refused("other orbitals than those of the SCF were given: they are not stationary")
        if mf.mo_coeff is None:
            mf.kernel()
        means = mf.means()
        found = densities_of.of_scf(scf_reference(means, mf))
        de = gradient(mf, means, found, self.on_progress).matrix
        self.atmlst = self.atmlst if atmlst is None else atmlst
        de = de if self.atmlst is None else de[list(self.atmlst)]
        self.de = de
        if means.world.rank == 0:
            self._finalize()
        return de

    grad = lib.alias(kernel, alias_name="grad")
