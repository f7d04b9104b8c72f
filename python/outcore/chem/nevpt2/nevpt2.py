"""Strongly contracted second-order perturbation theory on a CASCI or CASSCF (SC-NEVPT2).

    mc = pyscf.mcscf.CASSCF(mf, 8, 8)
    mc.fcisolver = outcore.chem.ci.FCISolver(mf.mol, memory="2GB")
    mc.kernel()
    correlation = outcore.chem.nevpt2.NEVPT2(mc, memory="2GB").kernel()

Angeli, Cimiraglia, Evangelisti, Leininger, Malrieu, J. Chem. Phys. 114, 10252 (2001); Angeli, Cimiraglia,
Malrieu, J. Chem. Phys. 117, 9138 (2002). Perturbers with one outer orbital are vectors here (see `perturbers`).
This resolution of the identity in determinants replaces contractions of a four-particle density.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base import html, keywords
from outcore.chem import problem
from outcore.chem.ci import densities as ci_densities
from outcore.chem.ci import three_particle
from outcore.chem.ci.fci_solver import CIVector
from outcore.chem.ci.sigma import SigmaTraffic
from outcore.chem.doubts import tell as tell_doubts
from outcore.chem.logs import INFO, NOTE
from outcore.chem.method import Method
from outcore.chem.nevpt2 import active, classes, orbitals
from outcore.chem.nevpt2.classes import NAMES, ClassSums
from outcore.chem.nevpt2.integrals import OuterIntegrals
from outcore.chem.nevpt2.kept import KeptParts
from outcore.chem.nevpt2.orbitals import refused
from outcore.chem.nevpt2.perturbers import Perturbers
from outcore.chem.nevpt2.settings import Settings
from outcore.chem.ri import given as given_integrals
from outcore.chem.ri.fitting import SCREENING, DensityFitting
from outcore.chem.ri.plan import check_storage
from outcore.chem.ri.rows import ExactRows, FittedRows, GivenRows, Rows
from outcore.chem.ri.traffic import Traffic, TrafficWatch
from outcore.job.resources import parse_bytes
from outcore.keep.problem import Problem
from outcore.keep.stages import Stages

if TYPE_CHECKING:
    from outcore.chem.ci.passes import Place
    from outcore.chem.frozen import Asked
    from outcore.chem.nevpt2.active import Matrix, Particles
    from outcore.chem.ri.auxiliary import Purpose
    from outcore.chem.ri.cholesky import Cholesky

_FORMAT = 1  # of checkpoints
_NEAR = 0.0  # Hartree: a perturber must lie above the state by more than this


class NEVPT2(Method):
    """SC-NEVPT2 of one root of a CASCI or CASSCF object of PySCF whose states `outcore.chem.ci.FCISolver` has
    found. It uses the processes, the scratch directory and the threads of that solver.

    Integrals are those of the mean field: fitted with its auxiliary functions, or exact, by a Cholesky
    decomposition of all of them.

    Args:
        mc: the object, after its `kernel`. Core and virtual orbitals are made canonical here, for the root.
        root: number of the state, from 0.
        frozen: number of lowest core orbitals that are not correlated, or "auto" for the cores of the atoms.
        frozen_virtual: number of the highest virtual orbitals that are not correlated.
        auxbasis: auxiliary functions of the integrals with outer orbitals, as `auxiliary.build` takes them; default
            those of the mean field, or exact integrals if it has none.
        memory: of all processes together; default that of the solver.
        screening: of fitted integrals.
        storage: "auto": integrals of core and virtual orbitals stay in memory if they fit; "disk".
        checkpoint: directory in which finished densities and perturbers are kept, and looked for first. Those of
            other states are not used, nor those of the same states after a new search.
        force: accept states that have not converged.
        source: existing vectors of exact integrals of this molecule, accurate to `outcore.chem.ri.cholesky.EXACT`.

    After `kernel`: `e_corr` (Hartree), `e_tot`, `e_classes` (the energy of each class of perturbers, by its outer
    orbitals: "ijrs", "ijr", "rsi", "ij", "rs", "ir", "i", "r"; i and j are core orbitals, r and s virtual ones).
    `warnings` has the reasons to doubt a result; `kernel` passes them to `on_warning(line)`, or without it to
    Python's warnings, as `outcore.chem.doubts.DoubtfulResult`. `traffic` is the disk traffic of three-index
    integrals; `moved_by_products` that of products with vectors of perturbers, if these are on disk. `verbose` and
    `stdout` are at first those of `mc`.
    The constructor and `kernel` are collective. Raises OutcoreError, the same on all processes.
    """

    title = orbitals.TITLE
    fixed = ("screening", "checkpoint")
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
        checkpoint: str | Path | None = None,
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
            checkpoint=checkpoint,
            told_by=mc,
        )
        self.e_cas = orbitals.energy_of(mc, root)
        if not (getattr(mc, "converged", True) and self.state.ci.converged) and not force:
            raise refused("the CASCI or CASSCF has not converged; force=True accepts it")
        self._given = None
        if self._fitting is None:
            # Orbitals may come from Kohn-Sham: the integrals of the active space are those of Hartree-Fock.
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
        self.traffic, self.moved_by_products = Traffic(), SigmaTraffic()
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
        """Whether the states have converged: the perturbation theory itself does not iterate."""
        return bool(self.state.ci.converged)

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the result, one line each."""
        if self._least > _NEAR:
            return []
        return [
            f"a perturber lies {-self._least:.6f} Eh below the state: it is no perturbation, and belongs to the "
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
        """The correlation energy (Hartree), and the contributions of the perturbers of this state to its coupling
        with each of `others`. These are orthogonal states in the same space and orbitals. See `quasi`.
        Collective."""
        found = orbitals.of(self.world, self._mc, self.state, self.e_cas, *self._frozen)
        core, _, virtual = found.counts
        sums = ClassSums.none(len(others))
        self.traffic, self.moved_by_products = Traffic(), SigmaTraffic()
        if core or virtual:
            electrons, holes = self._active(found)
            between = [self._between(each) for each in others]
            rows = self._rows()
            kept = self._kept_perturbers(found, electrons, between, rows)
            watch = TrafficWatch()
            integrals = self._integrals(rows, found, len(others))
            try:
                known = kept.get("several", sums.numbers.shape)
                if known is None:
                    sums = self._several(kept, found, integrals, electrons, holes, between)
                else:
                    sums = ClassSums.of_numbers(known)
                of_core, of_virtual = _one_outer(integrals)
            finally:
                integrals.close()
            self.traffic = watch.traffic(self.world, integrals.least_moved(pairs=known is None))
            del integrals, between
            places = [each.place for each in others]
            self._add(sums, kept, "i", found, electrons, of_core, places)
            self._add(sums, kept, "r", found, electrons, of_virtual, places)
        self.e_classes = dict(zip(NAMES, map(float, sums.energies), strict=True))
        self._least, self._done = sums.least, True
        for name, energy in self.e_classes.items():
            self.log(INFO, "NEVPT2: perturbers %-4s E = %.15g", name, energy)
        self.log(NOTE, "E(SC-NEVPT2) = %.15g  E_corr = %.15g", self.e_tot, self.e_corr)
        tell_doubts(self.world, self.warnings, self.on_warning)
        return self.e_corr, sums.couplings.sum(axis=1)

    def _active(self, found: orbitals.CasOrbitals) -> tuple[Particles, Particles]:
        """The active parts for electrons and for holes."""
        state, n = self.state, len(found.h)
        densities = state.ci.densities(state.root)
        h, g, one, two = found.h, found.g, densities.one, densities.two
        kept = self._kept("densities", {}, {"h": h, "g": g, "one": one, "two": two})
        done = kept.get("slabs", (1,))
        begin = 0 if done is None else int(done[0])
        fields = [kept.get(name, (n,) * 4) for name in ("electrons", "holes")]
        electrons, holes = (np.empty((n,) * 4) if each is None else each for each in fields)
        slabs = three_particle.slabs(
            state.place,
            state.ci.hamiltonian,
            memory_bytes=self.memory_bytes,
            threads=self.threads,
            begin=begin,
        )
        tell, count = self.progress("three-particle density"), n * (n + 1) // 2

        def told() -> Iterator[tuple[int, int, Matrix]]:
            for number, slab in enumerate(slabs, begin + 1):
                yield slab
                parts = {"slabs": np.array([float(number)]), "electrons": electrons, "holes": holes}
                kept.put(parts, at_once=number == count)
                tell(number / count)

        return active.of(h, g, one, two, told(), (electrons, holes))

    def _kept(self, name: str, settings: dict[str, Any], same: dict[str, Matrix]) -> KeptParts:
        """Opens the finished parts of an earlier run. same: arrays that they depend on, in addition to settings.
        Collective."""
        path = None
        if self.checkpoint is not None:
            Stages(self.world, self.checkpoint)
            path = self.checkpoint / f"nevpt2.{name}.{self.root}"
        of_state = {
            **problem.molecule(self.mol),
            "root": self.root,
            "doubly occupied orbitals": int(self._mc.ncore),
            **settings,
        }
        kept = KeptParts(
            self.world, path, Problem(f"NEVPT2: {name}", _FORMAT, of_state, problem.ROUNDED), same
        )
        if kept:
            self.log(NOTE, "NEVPT2: continues with %s in %s", name, path)
        if kept.is_other:
            self.log(NOTE, "NEVPT2: %s in %s belong to other states, and are not used", name, path)
        return kept

    def _kept_perturbers(
        self,
        found: orbitals.CasOrbitals,
        electrons: Particles,
        between: Sequence[active.Between],
        rows: Rows,
    ) -> KeptParts:
        settings = {**rows.settings, "orbitals": list(found.counts), "states that couple": len(between)}
        same = {
            "h": found.h,
            "g": found.g,
            "one": electrons.one,
            "two": electrons.two,
            "core_energies": found.core_energies,
            "virtual_energies": found.virtual_energies,
        }
        for name, outer in (("core", found.core), ("virtual", found.virtual)):
            same[f"{name}_field"] = np.linalg.norm(outer.T @ found.core_field @ found.active, axis=1)
        for number, each in enumerate(between):
            same |= {f"one_{number}": each.one, f"two_{number}": each.two}
        return self._kept("perturbers", settings, same)

    def _several(
        self,
        kept: KeptParts,
        found: orbitals.CasOrbitals,
        integrals: OuterIntegrals,
        electrons: Particles,
        holes: Particles,
        between: Sequence[active.Between],
    ) -> ClassSums:
        """The sums over perturbers with several outer orbitals."""
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
        kept.put({"several": sums.numbers}, at_once=True)
        return sums

    def _between(self, other: CIVector) -> active.Between:
        """The transition densities between the state and another one."""
        state = self.state
        found = ci_densities.compute(state.ci.solved, state.place, other.place, threads=self.threads)
        return active.Between.of(found.one, found.two)

    def _integrals(self, rows: Rows, found: orbitals.CasOrbitals, others: int) -> OuterIntegrals:
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
        kept: KeptParts,
        name: str,
        found: orbitals.CasOrbitals,
        electrons: Particles,
        g: Any,
        others: Sequence[Place],
    ) -> None:
        """Adds perturbers with one core ("i") or one virtual orbital ("r"). g[x, a, b, c] = (xa|bc). Collective."""
        outer, energies = (
            (found.core, -found.core_energies) if name == "i" else (found.virtual, found.virtual_energies)
        )
        if not len(energies):
            return
        shape, key = (2 + len(others), len(energies)), f"one_{name}"
        before = kept.get(key, shape)
        moments = np.full(shape, np.nan) if before is None else before
        left = np.flatnonzero(np.isnan(moments[0]))
        if len(left):
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
            for number, x in enumerate(left, 1):
                moments[:, x] = perturbers.moments(fields[x], g[x], others)
                kept.put({key: moments}, at_once=number == len(left))
                tell(number / len(left))
            self.moved_by_products = SigmaTraffic.sum([self.moved_by_products, perturbers.moved()])
            perturbers.close()
        norm, energy, *overlaps = moments
        sums.add(name, norm, energy, energies, overlaps=overlaps)


def _auxiliary_of(fitting: Any) -> Any:
    """The auxiliary functions of a density fitting, as an argument of `auxiliary.build`."""
    if isinstance(fitting, DensityFitting):
        return fitting.given_auxbasis
    return fitting.auxbasis if fitting.auxmol is None else fitting.auxmol._basis


def _one_outer(integrals: OuterIntegrals) -> tuple[Any, Any]:
    """(xa|bc) for core and for virtual orbitals x."""
    count = integrals.counts[1]
    inside, outside = integrals.active[:, :, :count], integrals.active[:, :, count:]
    of_virtual = integrals.product(outside, inside).transpose(1, 0, 2, 3)
    return integrals.product(integrals.core_active, inside), np.ascontiguousarray(of_virtual)
