"""Mean-field methods with density fitting on disk resident arrays.

    mf = outcore.chem.ri.RHF(mol, memory="2GB", scratch="/scratch/me")
    energy = mf.kernel()
    mf = outcore.chem.ri.density_fit(pyscf.dft.RKS(mol, xc="b3lyp"), memory="2GB")

They are PySCF's objects with a `with_df` of Outcore. On several processes every process makes the same object and
calls the same methods; rank 0 drives the iterations, and all end with the same orbitals.
"""

from __future__ import annotations

import errno
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self

from pyscf import df, lib
from pyscf.df import df_jk
from pyscf.scf import dhf, hf, rohf

from outcore.base.errors import OutcoreError
from outcore.chem import mean_field
from outcore.chem.driver import RootDriven, own_gradients
from outcore.chem.method import Means
from outcore.chem.molecule import integrals_key
from outcore.chem.ri.fitting import DensityFitting
from outcore.job.world import shared
from outcore.parallel.team import blas_of_one_thread

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.job.world import World


class OutOfCoreFitting(RootDriven):
    """The mixin that `density_fit` puts before a mean-field class. `close`, or leaving a `with` block, drops
    integrals.

    A `with_df` that is None, or not a DensityFitting, is left to PySCF."""

    __name_mixin__ = "OutOfCore"

    mol: Mole
    with_df: Any

    @property
    def _fits(self) -> bool:
        return isinstance(self.with_df, DensityFitting)

    @property
    def world(self) -> World:
        if "_scf" in vars(self):  # a solver: its requests go to its mean field
            return self._scf.world  # type: ignore[attr-defined, no-any-return]
        if self._fits:
            return self.with_df.world  # type: ignore[no-any-return]
        below = getattr(super(), "world", None)
        return shared(None) if below is None else below

    def means(self) -> Means:
        """Resources of this object, for other steps that use the same."""
        return self.with_df.means()  # type: ignore[no-any-return]

    def iterating(self) -> AbstractContextManager[Any]:
        """A context with one thread of BLAS. PySCF does little work between two J and K, and threads of BLAS spin
        for a while before they sleep: they would slow down the next J and K by more than they gain."""
        return blas_of_one_thread()

    def prepare(self) -> None:
        if self._fits:
            if self.with_df.world is not self.world:
                self.with_df = self.with_df.another(self.with_df.auxbasis, self.world)
            self._agree()
            operators, spins = operators_and_spins(self)
            self.with_df.plan_for(operators, spins)
            self.with_df.integrals()
        if self._needs_exact and hasattr(super(), "prepare"):
            super().prepare()

    @property
    def _needs_exact(self) -> bool:
        """Whether J or K of the class below is needed: exchange is not fitted, or only the Hessian is."""
        return bool(vars(self).get("only_dfj")) or "_scf" in vars(self)

    def _agree(self) -> None:
        """Sets the molecule of the fitting to that of this object: objects that share the fitting may have
        others."""
        if self.with_df.mol is not self.mol and integrals_key(self.with_df.mol) != integrals_key(self.mol):
            self.with_df.reset(self.mol)

    def get_jk(
        self,
        mol: Mole | None = None,
        dm: Any = None,
        hermi: int = 1,
        with_j: bool = True,
        with_k: bool = True,
        omega: float | None = None,
    ) -> tuple[Any, Any]:
        """As PySCF's, but only for the object's own molecule: raises OutcoreError for another."""
        if self._fits:
            if mol is not None and mol is not self.mol and integrals_key(mol) != integrals_key(self.mol):
                raise OutcoreError(
                    errno.EINVAL,
                    "J and K",
                    detail="they are needed for another molecule than that of the fitted object: call reset(mol)",
                )
            self._agree()
        return super().get_jk(mol, dm, hermi, with_j, with_k, omega)  # type: ignore[misc,no-any-return]

    def answer(self, request: Any) -> None:
        """Passes a request to the fitting of this object, or of the object below a second-order solver, or to the
        class below."""
        if not isinstance(request, tuple):
            super().answer(request)
            return
        what, omega, auxbasis = request
        for each in (self, vars(self).get("_scf")):
            fitting = None if each is None else vars(each).get("with_df")
            if isinstance(fitting, DensityFitting) and fitting.title == auxbasis:
                fitting.answer(what, omega)
                return
        raise mean_field.refused(
            f"J and K were requested from a fitting that only the first process has: {auxbasis}"
        )

    # ---- objects that PySCF makes of this one ----

    def nuc_grad_method(self) -> Any:
        """Nuclear gradients, on the same processes; for Kohn-Sham and generalized orbitals those of PySCF."""
        return own_gradients(self) or super().nuc_grad_method()  # type: ignore[misc]

    Gradients = nuc_grad_method

    def density_fit(self, auxbasis: Any = None, with_df: Any = None, only_dfj: bool = False) -> Any:
        """The same object with another auxiliary basis; the settings stay."""
        with_df = self.with_df.another(auxbasis) if with_df is None and self._fits else with_df
        return fit(self, with_df, only_dfj=only_dfj)

    def fit_hessian(self, solver: Any, auxbasis: Any, with_df: Any, only_dfj: bool) -> Any:
        """A second-order solver of this object, with a fitted Hessian."""
        if with_df is None:
            with_df = self.with_df.another(auxbasis, self.world) if self._fits else df.DF(self.mol, auxbasis)
        return fit(solver, with_df, only_dfj=only_dfj)

    def undo_df(self) -> Any:
        """The object before density fitting. If that is one of PySCF, it leaves Outcore and warns of it."""
        inside = lib.view(self, lib.drop_class(self.__class__, OutOfCoreFitting))
        plain = type(inside).undo_df(inside)
        if isinstance(plain, RootDriven):
            plain.after_fitting()
        else:
            plain.direct_scf = True
            lib.logger.warn(self, "undo_df leaves Outcore: J and K are PySCF's own from here")
        return plain

    def to_ks(self, xc: str = "HF") -> Any:
        """As PySCF's, fitted out of core as well."""
        return self._refit(self.undo_quietly().to_ks(xc))

    def to_hf(self) -> Any:
        """As PySCF's, fitted out of core as well."""
        return self._refit(self.undo_quietly().to_hf())

    def undo_quietly(self) -> Any:
        """As `undo_df` without its warning, for an object that is fitted again."""
        with lib.temporary_env(self, verbose=0):
            plain = self.undo_df()
        plain.verbose = self.verbose  # type: ignore[attr-defined]
        return plain

    def _refit(self, made: Any) -> Any:
        return fit(made, self.with_df, only_dfj=self.only_dfj)  # type: ignore[attr-defined]

    # ---- life ----

    def close(self) -> None:
        """Drops the integrals and their file. Collective."""
        if self._fits:
            self.with_df.close()
        if hasattr(super(), "close"):
            super().close()  # type: ignore[misc]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def unshare(self, other: Any) -> None:
        if hasattr(super(), "unshare"):
            super().unshare(other)


def operators_and_spins(mf: Any) -> tuple[int, int]:
    """Numbers of Coulomb operators, and of spin densities, that an SCF has at the same time."""
    operators = 1
    if isinstance(mf, hf.KohnShamDFT):
        omega, _, _ = mf._numint.rsh_and_hybrid_coeff(mf.xc, spin=mf.mol.spin)
        operators = 2 if omega else 1
    return operators, 1 if isinstance(mf, hf.RHF) and not isinstance(mf, rohf.ROHF) else 2


def fit(mf: Any, fitting: Any, *, only_dfj: bool = False) -> Any:
    """A mean-field object whose J and K, or only J, come from a DensityFitting."""
    fitted = df_jk.density_fit(mf, with_df=fitting, only_dfj=only_dfj)
    if isinstance(fitted, OutOfCoreFitting):
        return fitted
    return lib.set_class(fitted, (OutOfCoreFitting, fitted.__class__))


def density_fit(mf: Any, auxbasis: Any = None, **settings: Any) -> Any:
    """A PySCF mean-field object (restricted, unrestricted, Kohn-Sham) whose J and K are fitted out of core: a new
    object that shares the attributes of the given one. `settings` are those of DensityFitting: `memory`, `scratch`,
    `threads`, `screening`, `comm`.

    Range-separated hybrids get integrals of both operators, each with half of the memory. Raises OutcoreError
    (ENOTSUP) for relativistic four-component and periodic methods.
    """
    # Looked up in its variables: to ask an object for a missing attribute would load all of PySCF.
    if not isinstance(mf, hf.SCF) or isinstance(mf, dhf.DHF) or "cell" in vars(mf):
        raise OutcoreError(
            errno.ENOTSUP,
            "fit densities out of core",
            detail=f"{type(mf).__name__} is no molecular mean-field method of one or two components",
        )
    operators, spins = operators_and_spins(mf)
    return fit(mf, DensityFitting(mf.mol, auxbasis, operators=operators, spins=spins, **settings))


def RHF(mol: Mole, auxbasis: Any = None, **settings: Any) -> Any:
    """Restricted Hartree-Fock with density fitting, with unpaired electrons ROHF; see `density_fit`."""
    return density_fit(mean_field.make(mol, "RHF"), auxbasis, **settings)


def UHF(mol: Mole, auxbasis: Any = None, **settings: Any) -> Any:
    """Unrestricted Hartree-Fock with density fitting; see `density_fit`."""
    return density_fit(mean_field.make(mol, "UHF"), auxbasis, **settings)


def ROHF(mol: Mole, auxbasis: Any = None, **settings: Any) -> Any:
    """Restricted open-shell Hartree-Fock with density fitting; see `density_fit`."""
    return density_fit(mean_field.make(mol, "ROHF"), auxbasis, **settings)
