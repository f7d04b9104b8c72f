"""One process drives PySCF's iterations, the others answer its requests: no decision is taken twice, and rounding
cannot make processes part ways."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from pyscf import lib
from pyscf.scf import ghf, hf, hf_symm, uhf_symm

from outcore.base import html
from outcore.chem import mean_field, symmetry
from outcore.chem.reference import mark_canonical

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.method import Means
    from outcore.job.world import World

# Results of an SCF that rank 0 sends to the other processes.
RESULTS = ("converged", "e_tot", "mo_energy", "mo_coeff", "mo_occ", "cycles", "scf_summary")
_OF_SMEARING = ("e_free", "e_zero", "entropy")

_OF_ONE_PROCESS = ("chkfile", "_chkfile", "callback", "stdout")  # files and functions: no copy has them


class RootDriven:
    """Mixin before a PySCF mean-field class. A subclass has the processes (`world`), makes the integrals
    (`prepare`, collective), and does its part of each request that rank 0 broadcasts while it iterates (`answer`,
    collective; a request is never None). Rank 0 may be busy for long between two requests, so the others wait
    asleep.

    Copies: `copy` and objects that PySCF makes of this one (`as_scanner`, `to_uhf`, ..) share the stored integrals.
    `copy.deepcopy` shares nothing but the processes. Pickle leaves the processes out: a loaded object works with
    those of the job that loads it."""

    _running = False  # inside `kernel`, which calls `scf`
    _min_gap = math.inf  # Hartree, of the cycles, between an empty and an occupied orbital

    if TYPE_CHECKING:

        @property
        def world(self) -> World: ...
        def prepare(self) -> None: ...
        def answer(self, request: Any) -> None: ...
        def means(self) -> Means: ...
        def unshare(self, other: Any) -> None:
            """Gives this object, a deep copy of `other`, its own copy of all that copies share, but for the
            processes."""

        def fit_hessian(self, solver: Any, auxbasis: Any, with_df: Any, only_dfj: bool) -> Any:
            """A second-order solver of this object whose Hessian is fitted by `with_df`, or by a new fitting with
            `auxbasis`."""

        def after_fitting(self) -> None:
            """Called when `undo_df` returns to this object."""

    def scf(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the SCF and returns the energy (Hartree). Collective. `kernel` is the same."""
        return self._run(super().scf, args, kwargs)  # type: ignore[misc]

    def kernel(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the SCF and returns the energy (Hartree). Collective."""
        return self._run(super().kernel, args, kwargs)  # type: ignore[misc]

    def iterating(self) -> AbstractContextManager[Any]:
        """The context in which the iterations run."""
        return nullcontext()

    def get_occ(self, mo_energy: Any = None, mo_coeff: Any = None) -> Any:
        """As PySCF's."""
        occupied = super().get_occ(mo_energy, mo_coeff)  # type: ignore[misc]
        if self._running and mo_energy is not None:
            self._min_gap = min(self._min_gap, mean_field.gap(mo_energy, occupied))
        return occupied

    def eig(self, h: Any, s: Any, *args: Any, **kwargs: Any) -> Any:
        """As PySCF's, but for linear molecules with shells that are filled in part: see `symmetry.own_branches`."""
        with symmetry.own_branches(self.mol, partial(symmetry.focks_differ, np.asarray(h))):  # type: ignore[attr-defined]
            return super().eig(h, s, *args, **kwargs)  # type: ignore[misc]

    def _repr_html_(self) -> str:
        title = type(self).__name__
        if self.mo_coeff is None:  # type: ignore[attr-defined]
            return html.facts(title, [("state", "not run")])
        rows: list[tuple[str, object]] = [
            ("energy", f"{self.e_tot:.10f} Eh"),  # type: ignore[attr-defined]
            ("converged", "yes" if self.converged else "no"),  # type: ignore[attr-defined]
            ("cycles", self.cycles),  # type: ignore[attr-defined]
            ("functions", self.mol.nao),  # type: ignore[attr-defined]
            ("electrons", self.mol.nelectron),  # type: ignore[attr-defined]
        ]
        return html.facts(title, rows)

    @property
    def nearly_degenerate(self) -> bool:
        """Whether occupied and empty orbitals were nearly degenerate in a cycle, so that the least noise may have
        chosen the state that was found. Of rank 0."""
        return self._min_gap < mean_field.NEAR

    def _run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if self._running:
            return function(*args, **kwargs)
        with self.world.together("SCF"):
            mean_field.check_before(self)
        self.prepare()
        self._running, self._min_gap = True, math.inf
        try:
            with self.iterating():
                self._lead(lambda: function(*args, **kwargs))
        finally:
            del self._running
        self._share()
        mean_field.check_after(self)
        if self.nearly_degenerate:
            lib.logger.warn(
                self,
                "orbitals of the cycles were nearly degenerate, and the least noise may have chosen the state: "
                "stability() says whether it is a minimum of the energy",
            )
        shifted = getattr(self, "level_shift", 0) or not getattr(self, "conv_check", True)
        if self.converged and not shifted:  # type: ignore[attr-defined]
            mark_canonical(self)
        return self.e_tot  # type: ignore[attr-defined]

    def at_root(self, function: Callable[[], Any]) -> Any:
        """Calls `function` at rank 0 and returns its result at all processes. Meanwhile all processes compute the J
        and K that it needs. Collective."""
        self.prepare()
        with self.iterating():
            return self.world.broadcast(self._lead(function))

    def _lead(self, function: Callable[[], Any]) -> Any:
        """Rank 0 calls `function` and returns its result; the others answer its requests."""
        if self.world.size == 1:
            return function()
        failure: Exception | None = None
        value = nothing = None
        if self.world.rank == 0:
            try:
                value = function()
            except Exception as error:
                if getattr(error, "collective", False):
                    raise
                failure = error
            self.world.broadcast(None)
        else:
            while (request := self.world.broadcast(nothing)) is not None:
                self.answer(request)
        with self.world.together("SCF"):
            if failure is not None:
                raise failure
        return value

    def _share(self) -> None:
        """Copies the results of rank 0 to all processes."""
        if self.world.size == 1:
            return
        found = {name: getattr(self, name, None) for name in RESULTS}
        found |= {name: vars(self)[name] for name in _OF_SMEARING if name in vars(self)}
        for name, value in self.world.broadcast(found).items():
            setattr(self, name, value)

    # ---- objects that PySCF makes of this one ----

    def newton(self) -> Any:
        """PySCF's second-order solver, driven by rank 0 as well."""
        second = super().newton()  # type: ignore[misc]
        if isinstance(second, DrivenSolver):
            return second
        return lib.set_class(second, (DrivenSolver, second.__class__))

    def to_gpu(self) -> Any:
        """Refused: integrals out of core are not on a GPU."""
        raise mean_field.refused(
            f"{type(self).__name__} has its integrals out of core, which no GPU reads: convert an object of PySCF"
        )

    # ---- copies ----

    def __reduce_ex__(self, protocol: Any) -> Any:
        return mean_field.remake, (mean_field.describe(type(self)),), self.__getstate__()

    def __getstate__(self) -> Any:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {key: value for key, value in state.items() if key not in (*_OF_ONE_PROCESS, "_running")}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        vars(self)["_opt"] = {None: None}  # as a new object has it

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        new = mean_field.remake(mean_field.describe(type(self)))
        memo[id(self)] = new
        for key, value in self.__getstate__().items():
            setattr(new, key, copy.deepcopy(value, memo))
        for key in _OF_ONE_PROCESS:
            vars(new)[key] = self.stdout if key == "stdout" else None  # type: ignore[attr-defined]
        new._opt, new._eri = {None: None}, vars(self).get("_eri")
        new.unshare(self)
        return new


def own_gradients(mf: Any) -> Any:
    """Gradients of a RootDriven object in its memory and on its processes; None for Kohn-Sham and generalized
    orbitals: PySCF computes their gradients."""
    if isinstance(mf, hf.KohnShamDFT | ghf.GHF):
        return None
    return import_module("outcore.chem.gradients.objects").Gradients(mf)


class DrivenSolver:
    """Mixin before a second-order solver whose mean field is RootDriven: its `kernel` comes before PySCF's."""

    __name_mixin__ = "Driven"

    def kernel(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the solver and returns the energy (Hartree). Collective."""
        return self._run(super().kernel, args, kwargs)  # type: ignore[attr-defined, misc]

    def update_rotate_matrix(self, dx: Any, mo_occ: Any, u0: Any = 1, mo_coeff: Any = None) -> Any:
        """As PySCF's, with the exception that `RootDriven.eig` makes."""

        def differ(mol: Mole) -> bool:
            get_orbsym = (hf_symm if np.ndim(mo_occ) == 1 else uhf_symm).get_orbsym
            return symmetry.occupations_differ(np.asarray(get_orbsym(mol, mo_coeff)), mo_occ, mol)

        with symmetry.own_branches(self._scf.mol, differ):  # type: ignore[attr-defined]
            return super().update_rotate_matrix(dx, mo_occ, u0, mo_coeff)  # type: ignore[misc]

    def density_fit(self, auxbasis: Any = None, with_df: Any = None, only_dfj: bool = False) -> Any:
        """Fits the orbital Hessian alone, as PySCF does, out of core: energies stay those of the mean field."""
        return self._scf.fit_hessian(self, auxbasis, with_df, only_dfj)  # type: ignore[attr-defined]

    approx_hessian = density_fit
