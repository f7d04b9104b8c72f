"""Strongly contracted second-order perturbation theory on a CASCI or CASSCF (SC-NEVPT2).

    mc = pyscf.mcscf.CASSCF(mf, 8, 8)
    mc.fcisolver = outcore.chem.ci.FCISolver(mf.mol, memory="2GB")
    mc.kernel()
    correlation = outcore.chem.nevpt2.NEVPT2(mc, memory="2GB").kernel()

Angeli, Cimiraglia, Evangelisti, Leininger, Malrieu, J. Chem. Phys. 114, 10252 (2001); Angeli, Cimiraglia,
Malrieu, J. Chem. Phys. 117, 9138 (2002). Perturbers with one outer orbital are vectors here (see `perturbers`),
in place of contractions of a four-particle density: a resolution of the identity in determinants of the active
space.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base import html, keywords
from outcore.chem.ci import densities as ci_densities
from outcore.chem.ci import three_particle
from outcore.chem.ci.fci_solver import CIVector
from outcore.chem.doubts import tell as tell_doubts
from outcore.chem.logs import INFO, NOTE
from outcore.chem.method import Method
from outcore.chem.nevpt2 import active, classes, orbitals
from outcore.chem.nevpt2.classes import NAMES, ClassSums
from outcore.chem.nevpt2.integrals import OuterIntegrals
from outcore.chem.nevpt2.orbitals import refused
from outcore.chem.nevpt2.perturbers import Perturbers
from outcore.chem.nevpt2.settings import Settings
from outcore.chem.ri import given as given_integrals
from outcore.chem.ri.fitting import SCREENING, DensityFitting
from outcore.chem.ri.plan import check_storage
from outcore.chem.ri.rows import ExactRows, FittedRows, GivenRows, Rows
from outcore.job.resources import parse_bytes

if TYPE_CHECKING:
    from outcore.chem.ci.passes import Place
    from outcore.chem.frozen import Asked
    from outcore.chem.nevpt2.active import Matrix, Particles
    from outcore.chem.ri.auxiliary import Purpose
    from outcore.chem.ri.cholesky import Cholesky

_NEAR = 0.0  # Hartree: a perturber that is no higher than the state


class NEVPT2(Method):
    """SC-NEVPT2 of one root of a CASCI or CASSCF object of PySCF whose states `outcore.chem.ci.FCISolver` has
    found: on the processes, in the scratch directory and with the threads of that.

    Integrals are those of the mean field: fitted with its auxiliary functions, or exact, which are made by a
    Cholesky decomposition of all of them.

    Args:
        mc: the object, after its `kernel`. Core and virtual orbitals are made canonical here, for the root.
        root: of several states, from 0.
        frozen: number of lowest core orbitals that are not correlated, or "auto" for the cores of the atoms.
        frozen_virtual: number of the highest virtual orbitals that are not correlated.
        auxbasis: auxiliary functions of the integrals with outer orbitals, as `auxiliary.build` takes them; default
            those of the mean field, or exact integrals if it has none.
        memory: of all processes together; default that of the solver.
        screening: of fitted integrals.
        storage: "auto": integrals of core and virtual orbitals stay in memory if they fit; "disk".
        force: take states that have not converged.
        source: vectors of exact integrals of this molecule that are there already, right within
            `outcore.chem.ri.cholesky.EXACT`.

    After `kernel`: `e_corr` (Hartree), `e_tot`, `e_classes` (of each class of perturbers, by its outer orbitals:
    "ijrs", "ijr", "rsi", "ij", "rs", "ir", "i", "r"; i and j are core orbitals, r and s virtual ones). What makes
    a result doubtful is in `warnings`; `kernel` gives it to `on_warning(line)`, or without one to Python's
    warnings, as `outcore.chem.doubts.DoubtfulResult`. `verbose` and `stdout` are those of `mc` at first. Making
    it and `kernel` are collective. Raises OutcoreError, the same on all processes.
    """

    title = orbitals.TITLE
    fixed = ("screening",)
    settings: Settings

    @keywords.checked()
    def __init__(
        self,
        mc: Any,
        root: int = 0,
        *,
        frozen: Asked = None,
        frozen_virtual: Asked = None,
        auxbasis: Any = None,
        memory: int | str | None = None,
        screening: float | None = None,
        storage: str = "auto",
        force: bool = False,
        source: Cholesky | None = None,
    ) -> None:
        self._source = source
        self.mol, self.root, self._mc, self._auxbasis = mc.mol, root, mc, auxbasis
        self._storage, self._frozen = check_storage(storage), (frozen, frozen_virtual)
        self.state: CIVector = orbitals.state_of(mc, root)
        solver = mc.fcisolver
        budget = solver.memory_bytes if memory is None else parse_bytes(memory)
        settings = Settings(SCREENING if screening is None else screening)
        self._open(
            settings,
            memory=budget,
            scratch=None,
            threads=solver.threads,
            comm=self.state.ci.world,
            told_by=mc,
        )
        self.e_cas = orbitals.energy_of(mc, root)
        if not (getattr(mc, "converged", True) and self.state.ci.converged) and not force:
            raise refused("the CASCI or CASSCF has not converged; force=True takes it as it is")
        self._given = None
        if self._fitting is None:
            # Orbitals may be of Kohn-Sham: the integrals of the active space are those of Hartree-Fock.
            mf = mc._scf.to_hf() if hasattr(mc._scf, "xc") else mc._scf
            self._given = given_integrals.of_rank_0(self.world, mf)
        if self._given is not None and not (auxbasis is None and screening is None):
            raise refused(
                f"{given_integrals.UNFITTED}: {'auxbasis' if screening is None else 'screening'} has no effect"
            )
        if screening is not None and self._fitting is None and auxbasis is None:
            raise refused("integrals are exact: screening has no effect")
        self.e_classes: dict[str, float] = {}
        self.integral_title = ""
        self._least = np.inf
        self._done = False
        self._opened()

    @property
    def _fitting(self) -> Any:
        """The density fitting of the mean field, or None."""
        return getattr(self._mc, "with_df", None) or getattr(self._mc._scf, "with_df", None)

    @property
    def _is_fixed(self) -> bool:
        return self._done

    # ---- results ----

    @property
    def e_corr(self) -> float:
        """The correlation energy beyond the active space (Hartree); 0 before `kernel`."""
        return sum(self.e_classes.values())

    @property
    def e_tot(self) -> float:
        return self.e_cas + self.e_corr

    @property
    def converged(self) -> bool:
        """Of the states: the perturbation theory has nothing to converge."""
        return bool(self.state.ci.converged)

    @property
    def warnings(self) -> list[str]:
        """What makes the result doubtful, a line each."""
        if self._least > _NEAR:
            return []
        return [
            f"a perturber lies {-self._least:.6f} Eh below the state: it is no perturbation, and belongs into the "
            "active space"
        ]

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("CAS energy", f"{self.e_cas:.10f} Eh")]
        if not self._done:
            return html.facts("SC-NEVPT2", [*rows, ("state", "not run")])
        rows += [(f"perturbers {name}", f"{energy:.10f} Eh") for name, energy in self.e_classes.items()]
        rows += [("correlation energy", f"{self.e_corr:.10f} Eh"), ("NEVPT2 energy", f"{self.e_tot:.10f} Eh")]
        return html.facts("SC-NEVPT2", [*rows, *(("warning", each) for each in self.warnings)])

    # ---- energies ----

    def kernel(self) -> float:
        """The correlation energy (Hartree). Collective."""
        return self.column(())[0]

    def column(self, others: Sequence[CIVector]) -> tuple[float, Matrix]:
        """The correlation energy (Hartree), and what the perturbers of the state add to its coupling with each of
        `others`: orthogonal states of its space and orbitals. See `quasi`. Collective."""
        found = orbitals.of(self.world, self._mc, self.state, self.e_cas, *self._frozen)
        core, _, virtual = found.counts
        sums = ClassSums.none(len(others))
        if core or virtual:
            electrons, holes = self._active(found)
            between = [self._between(each) for each in others]
            integrals = self._integrals(found, len(others))
            try:
                sums = classes.energies(
                    self.world,
                    found,
                    integrals,
                    electrons,
                    holes,
                    between,
                    self.threads,
                    self.progress("perturbers with several outer orbitals"),
                )
                of_core, of_virtual = _one_outer(integrals)
            finally:
                integrals.close()
            del integrals, between
            places = [each.place for each in others]
            self._add(sums, "i", found, electrons, of_core, places)
            self._add(sums, "r", found, electrons, of_virtual, places)
        self.e_classes = dict(zip(NAMES, map(float, sums.energies), strict=True))
        self._least, self._done = sums.least, True
        for name, energy in self.e_classes.items():
            self.log(INFO, "NEVPT2: perturbers %-4s E = %.15g", name, energy)
        self.log(NOTE, "E(SC-NEVPT2) = %.15g  E_corr = %.15g", self.e_tot, self.e_corr)
        tell_doubts(self.world, self.warnings, self.on_warning)
        return self.e_corr, sums.couplings.sum(axis=1)

    def _active(self, found: orbitals.CasOrbitals) -> tuple[Particles, Particles]:
        """Of electrons and of holes."""
        state = self.state
        densities = state.ci.densities(state.root)
        slabs = three_particle.slabs(
            state.place, state.ci.hamiltonian, memory_bytes=self.memory_bytes, threads=self.threads
        )
        tell, count = self.progress("three-particle density"), len(found.h) * (len(found.h) + 1) // 2

        def told() -> Iterator[tuple[int, int, Matrix]]:
            for number, slab in enumerate(slabs, 1):
                yield slab
                tell(number / count)

        return active.of(found.h, found.g, densities.one, densities.two, told())

    def _between(self, other: CIVector) -> active.Between:
        """What couples the state with another one."""
        state = self.state
        found = ci_densities.compute(state.ci.solved, state.place, other.place, threads=self.threads)
        return active.Between.of(found.one, found.two)

    def _integrals(self, found: orbitals.CasOrbitals, others: int) -> OuterIntegrals:
        rows = self._rows()
        self.integral_title = f"{rows.count} {rows.kind} ({rows.title})"
        return OuterIntegrals(
            self.world,
            rows,
            found,
            self._free(),
            self.threads,
            self._storage,
            self.progress("three-index integrals"),
            others,
        )

    def _rows(self) -> Rows:
        if self._given is not None:
            return GivenRows(self.world, self.mol, self._given, self._free().bytes // 2)
        fitting = self._fitting
        if fitting is None and self._auxbasis is None:
            return ExactRows(self.world, self.mol, self._free().bytes // 2, self._source)
        functions = self._auxbasis
        purpose: Purpose = "mp2"
        if functions is None:
            functions, purpose = _auxiliary_of(fitting), "jk"
        return FittedRows(self.world, self.mol, functions, self.threads, self.settings.screening, purpose)

    def _add(
        self,
        sums: ClassSums,
        name: str,
        found: orbitals.CasOrbitals,
        electrons: Particles,
        g: Any,
        others: Sequence[Place],
    ) -> None:
        """Perturbers with one core ("i") or one virtual orbital ("r"); g[x, a, b, c] = (xa|bc). Collective."""
        outer, energies = (
            (found.core, -found.core_energies) if name == "i" else (found.virtual, found.virtual_energies)
        )
        if not len(energies):
            return
        fields = outer.T @ found.core_field @ found.active
        perturbers = Perturbers(
            self.state.place,
            found.h,
            found.g,
            electrons.energy,
            occupied=name == "i",
            memory_bytes=self.memory_bytes,
            threads=self.threads,
        )
        tell = self.progress(f"perturbers with one {'core' if name == 'i' else 'virtual'} orbital")
        moments = np.empty((2 + len(others), len(energies)))
        for x in range(len(energies)):
            moments[:, x] = perturbers.moments(fields[x], g[x], others)
            tell((x + 1) / len(energies))
        perturbers.close()
        norm, energy, *overlaps = moments
        sums.add(name, norm, energy, energies, overlaps=overlaps)


def _auxiliary_of(fitting: Any) -> Any:
    """The auxiliary functions of a density fitting, as `auxiliary.build` takes them."""
    if isinstance(fitting, DensityFitting):
        return fitting.given_auxbasis
    return fitting.auxbasis if fitting.auxmol is None else fitting.auxmol._basis


def _one_outer(integrals: OuterIntegrals) -> tuple[Any, Any]:
    """(xa|bc) of core and of virtual orbitals x."""
    count = integrals.counts[1]
    inside, outside = integrals.active[:, :, :count], integrals.active[:, :, count:]
    of_virtual = integrals.product(outside, inside).transpose(1, 0, 2, 3)
    return integrals.product(integrals.core_active, inside), np.ascontiguousarray(of_virtual)
