"""Mean-field methods with density fitting on disk resident arrays.

    mf = outcore.chem.ri.RHF(mol, memory="2GB", scratch="/scratch/me")
    energy = mf.kernel()
    mf = outcore.chem.ri.density_fit(pyscf.dft.RKS(mol, xc="b3lyp"), memory="2GB")

They are PySCF's objects with a `with_df` of ours. On several processes every process makes the same object and
calls the same methods; rank 0 drives the iterations, and all end with the same orbitals.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, Self

from pyscf import lib
from pyscf.df import df_jk
from pyscf.scf import dhf, hf, rohf, uhf

from outcore.chem.driver import RootDriven
from outcore.chem.ri.fitting import DensityFitting
from outcore.chem.ri.team import blas_of_one_thread
from outcore.errors import OutcoreError

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.world import World


class OutOfCoreFitting(RootDriven):
    """What `density_fit` puts before a mean-field class. `close`, or leaving a `with` block, drops integrals."""

    with_df: DensityFitting

    @property
    def world(self) -> World:
        return self.with_df.world

    def scf(self, dm0: Any = None, **kwargs: Any) -> Any:
        """As RootDriven's. What PySCF does between two J and K is little, and threads of BLAS look for more work
        for a while before they sleep: they would take more from the next J and K than they give."""
        self.prepare()  # this gains by them
        with blas_of_one_thread():
            return super().scf(dm0, **kwargs)

    kernel = scf

    def prepare(self) -> None:
        self.with_df.integrals()

    def answer(self, request: Any) -> None:
        self.with_df.answer(*request)

    def close(self) -> None:
        """Drops the integrals and their file. Collective."""
        self.with_df.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def density_fit(mf: Any, auxbasis: Any = None, **settings: Any) -> Any:
    """A PySCF mean-field object (restricted, unrestricted, Kohn-Sham) whose J and K are fitted out of core: a new
    object that shares what the given one knows. `settings` are those of DensityFitting: `memory`, `scratch`,
    `threads`, `threshold`, `comm`.

    Range-separated hybrids get integrals of both operators, each with half of the memory. Raises OutcoreError
    (ENOTSUP) for relativistic four-component and periodic methods.
    """
    # In its variables: an object that is asked for what it has not loads all of PySCF.
    if not isinstance(mf, hf.SCF) or isinstance(mf, dhf.DHF) or "cell" in vars(mf):
        raise OutcoreError(
            errno.ENOTSUP,
            "fit densities out of core",
            detail=f"{type(mf).__name__} is no molecular mean-field method of one or two components",
        )
    operators = 1
    if isinstance(mf, hf.KohnShamDFT):
        omega, _, _ = mf._numint.rsh_and_hybrid_coeff(mf.xc, spin=mf.mol.spin)
        operators = 2 if omega else 1
    spins = 1 if isinstance(mf, hf.RHF) and not isinstance(mf, rohf.ROHF) else 2
    fitting = DensityFitting(mf.mol, auxbasis, operators=operators, spins=spins, **settings)
    fitted = df_jk.density_fit(mf, with_df=fitting)
    return lib.set_class(fitted, (OutOfCoreFitting, fitted.__class__))


def RHF(mol: Mole, auxbasis: Any = None, **settings: Any) -> Any:
    """Restricted Hartree-Fock with density fitting; see `density_fit`."""
    return density_fit(hf.RHF(mol), auxbasis, **settings)


def UHF(mol: Mole, auxbasis: Any = None, **settings: Any) -> Any:
    """Unrestricted Hartree-Fock with density fitting; see `density_fit`."""
    return density_fit(uhf.UHF(mol), auxbasis, **settings)
