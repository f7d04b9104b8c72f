"""One process drives PySCF's iterations, the others answer its requests: no decision is taken twice, and rounding
cannot make processes part ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outcore.chem.reference import mark_canonical

if TYPE_CHECKING:
    from outcore.world import World

# What an SCF leaves behind at rank 0 and hands to the other processes.
RESULTS = ("converged", "e_tot", "mo_energy", "mo_coeff", "mo_occ", "cycles", "scf_summary")


class RootDriven:
    """Mixin before a PySCF mean-field class. Subclasses say which processes (`world`), make what is needed
    (`prepare`, collective), and do their part of what rank 0 has broadcast while it iterates (`answer`, collective;
    a request is never None). Rank 0 may be busy for long
    between two requests, so the others wait asleep."""

    driving = False  # rank 0 iterates: what needs the others must be broadcast to them first

    if TYPE_CHECKING:

        @property
        def world(self) -> World: ...
        def prepare(self) -> None: ...
        def answer(self, request: Any) -> None: ...

    def scf(self, dm0: Any = None, **kwargs: Any) -> Any:
        """Runs the SCF and returns the energy (Hartree). Collective. `kernel` is the same."""
        self.prepare()
        if self.world.size == 1:
            super().scf(dm0, **kwargs)  # type: ignore[misc]
        elif self.world.rank == 0:
            self._drive(dm0, kwargs)
        else:
            self._follow()
        shifted = getattr(self, "level_shift", 0) or not getattr(self, "conv_check", True)
        if self.converged and not shifted:  # type: ignore[attr-defined]
            mark_canonical(self)
        return self.e_tot  # type: ignore[attr-defined]

    kernel = scf

    def _drive(self, dm0: Any, kwargs: dict[str, Any]) -> None:
        failure: Exception | None = None
        self.driving = True
        try:
            super().scf(dm0, **kwargs)  # type: ignore[misc]
        except Exception as error:
            if getattr(error, "collective", False):
                raise
            failure = error
        finally:
            self.driving = False
        self.world.broadcast(None)
        with self.world.together("SCF"):
            if failure is not None:
                raise failure
        self.world.broadcast({name: getattr(self, name, None) for name in RESULTS})

    def _follow(self) -> None:
        nothing: Any = None
        while (request := self.world.broadcast(nothing)) is not None:
            self.answer(request)
        with self.world.together("SCF"):
            pass
        for name, value in self.world.broadcast(nothing).items():
            setattr(self, name, value)
