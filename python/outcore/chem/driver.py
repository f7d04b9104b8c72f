"""One process drives PySCF's iterations, the others answer its requests: no decision is taken twice, and rounding
cannot make processes part ways."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from pyscf import lib

from outcore.chem import mean_field
from outcore.chem.reference import mark_canonical

if TYPE_CHECKING:
    from outcore.job.world import World

# What an SCF leaves behind at rank 0 and hands to the other processes.
RESULTS = ("converged", "e_tot", "mo_energy", "mo_coeff", "mo_occ", "cycles", "scf_summary")
_OF_SMEARING = ("e_free", "e_zero", "entropy")

_OF_ONE_PROCESS = ("chkfile", "_chkfile", "callback", "stdout")  # files and functions: no copy has them


class RootDriven:
    """Mixin before a PySCF mean-field class. Subclasses say which processes (`world`), make what is needed
    (`prepare`, collective), and do their part of what rank 0 has broadcast while it iterates (`answer`, collective;
    a request is never None). Rank 0 may be busy for long
    between two requests, so the others wait asleep.

    Copies: `copy` and what PySCF makes of an object (`as_scanner`, `to_uhf`, ..) share what is kept of integrals;
    `copy.deepcopy` shares nothing but the processes; pickle leaves the processes out, and an object that is
    loaded works with those of the job that loads it."""

    _running = False  # inside `kernel`, which calls `scf`

    if TYPE_CHECKING:

        @property
        def world(self) -> World: ...
        def prepare(self) -> None: ...
        def answer(self, request: Any) -> None: ...
        def unshare(self, other: Any) -> None:
            """Gives this object, a deep copy of `other`, its own of what copies share, but for the processes."""

        def fit_hessian(self, solver: Any, auxbasis: Any, with_df: Any, only_dfj: bool) -> Any:
            """A second-order solver of this object with a fitted Hessian: by `with_df`, or by one of `auxbasis`."""

        def after_fitting(self) -> None:
            """`undo_df` has come back to this object."""

    def scf(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the SCF and returns the energy (Hartree). Collective. `kernel` is the same."""
        return self._run(super().scf, args, kwargs)  # type: ignore[misc]

    def kernel(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the SCF and returns the energy (Hartree). Collective."""
        return self._run(super().kernel, args, kwargs)  # type: ignore[misc]

    def iterating(self) -> AbstractContextManager[Any]:
        """Around the iterations."""
        return nullcontext()

    def _run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if self._running:
            return function(*args, **kwargs)
        with self.world.together("SCF"):
            mean_field.check_before(self)
        self.prepare()
        self._running = True
        try:
            with self.iterating():
                if self.world.size == 1:
                    function(*args, **kwargs)
                elif self.world.rank == 0:
                    self._drive(function, args, kwargs)
                else:
                    self._follow()
        finally:
            del self._running
        mean_field.check_after(self)
        shifted = getattr(self, "level_shift", 0) or not getattr(self, "conv_check", True)
        if self.converged and not shifted:  # type: ignore[attr-defined]
            mark_canonical(self)
        return self.e_tot  # type: ignore[attr-defined]

    def _drive(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        failure: Exception | None = None
        try:
            function(*args, **kwargs)
        except Exception as error:
            if getattr(error, "collective", False):
                raise
            failure = error
        self.world.broadcast(None)
        with self.world.together("SCF"):
            if failure is not None:
                raise failure
        found = {name: getattr(self, name, None) for name in RESULTS}
        found |= {name: vars(self)[name] for name in _OF_SMEARING if name in vars(self)}
        self.world.broadcast(found)

    def _follow(self) -> None:
        nothing: Any = None
        while (request := self.world.broadcast(nothing)) is not None:
            self.answer(request)
        with self.world.together("SCF"):
            pass
        for name, value in self.world.broadcast(nothing).items():
            setattr(self, name, value)

    # ---- what PySCF makes of it ----

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


class DrivenSolver:
    """Mixin before a second-order solver whose mean field is RootDriven: its `kernel` comes before PySCF's."""

    __name_mixin__ = "Driven"

    def kernel(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the solver and returns the energy (Hartree). Collective."""
        return self._run(super().kernel, args, kwargs)  # type: ignore[attr-defined, misc]

    def density_fit(self, auxbasis: Any = None, with_df: Any = None, only_dfj: bool = False) -> Any:
        """Fits the orbital Hessian alone, as PySCF does, out of core: energies stay those of the mean field."""
        return self._scf.fit_hessian(self, auxbasis, with_df, only_dfj)  # type: ignore[attr-defined]

    approx_hessian = density_fit
