"""Multireference CI with single and double excitations, of a CASSCF object or with the integrals of a file.

with outcore.chem.mrci.MRCI(mc, memory="1GB") as ci:
    energy = ci.kernel()
    print(ci.corrections().davidson)
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from outcore import _core
from outcore.base import html, interrupts, keywords
from outcore.chem import shown
from outcore.chem.active import Asked as Active
from outcore.chem.formats import densities
from outcore.chem.frozen import Asked as Frozen
from outcore.chem.logs import INFO, NOTE
from outcore.chem.method import Method
from outcore.chem.mrci import (
    checks,
    configurations,
    density,
    integrals,
    orbitals,
    reference_states,
    references,
    size_consistency,
    solver,
    storage,
    tables,
    transform,
)
from outcore.chem.mrci import kept as kept_states
from outcore.chem.mrci.configurations import Configurations
from outcore.chem.mrci.density import Matrix, NaturalOrbitals
from outcore.chem.mrci.few_electrons import FewElectronOperator
from outcore.chem.mrci.kept import KeptStates
from outcore.chem.mrci.packed import PackedOperator, PackingReport
from outcore.chem.mrci.records import Functions, Records
from outcore.chem.mrci.reference_vectors import ReferenceVectors
from outcore.chem.mrci.settings import WORDS, Given, Settings
from outcore.chem.mrci.size_consistency import Corrections
from outcore.chem.mrci.spaces import Asked
from outcore.chem.mrci.vectors import VectorLayout
from outcore.job.processes import JOB
from outcore.job.resources import give_back_freed_memory

if TYPE_CHECKING:
    from outcore.arrays.disk_array import DiskArray
    from outcore.chem.mrci.orbitals import Correlated
    from outcore.chem.mrci.solver import Iteration

_FOLDED = (0, 2)  # 2S of states whose vectors have as many alpha as beta electrons


@dataclass(frozen=True)
class _Target:
    irrep: str | int | None = None
    spin: int | None = None
    roots: int = 1


class MRCI(Method):
    """A CI with all single and double excitations from a list of references, uncontracted, on one or several
    processes. Each process makes the same object and calls the same methods, which are collective.

    Args:
        mc: a CASCI or CASSCF object of PySCF that has run. It gives the orbitals, the active space and the
            reference vector.
        frozen, frozen_virtual: orbitals outside its active space that are not correlated: numbers of the lowest and
            of the highest ones, "auto" for the cores, or lists, from 0; as in PySCF.
        group: abelian point group; default that of the molecule, if it was built with symmetry, else none.
        given: see `Given` and `Settings`.

    After `kernel`: `e_tot`, `e_reference` (Hartree; arrays for several roots), `converged`.
    `verbose` and `stdout` are at first those of `mc`; see `outcore.chem.logs.tell`.
    Raises OutcoreError, the same on all processes.
    """

    title = "multireference CI"
    fixed = (
        *("references", "couplings", "functional", "spin_shift"),
        *("integrals", "tolerance", "auxbasis", "integral_memory"),
    )
    settings: Settings
    layout: VectorLayout

    @keywords.checked(Given)
    def __init__(
        self,
        mc: Any,
        *,
        frozen: Frozen = None,
        frozen_virtual: Frozen = None,
        group: str | None = None,
        **given: Unpack[Given],
    ) -> None:
        target = self._set_up(given, mc)
        asked = Asked(frozen, frozen_virtual)
        self._aim(orbitals.of_active_space(mc, self.world, asked, group=group), target)
        self._choose(mc._scf, _vectors(getattr(mc, "ci", None)))
        self._opened()

    @classmethod
    @keywords.checked(Given)
    def from_mean_field(
        cls,
        mf: Any,
        *,
        active: Active,
        inactive: Active = None,
        frozen: Frozen = None,
        frozen_virtual: Frozen = None,
        group: str | None = None,
        with_integrals: bool = True,
        **given: Unpack[Given],
    ) -> Self:
        """A CI of a converged RHF or ROHF object. Orbitals are numbers in the order of occupation and energy, or
        lists, from 0, or a dict with a number for each irrep, see `outcore.chem.mrci.spaces.Asked`.
        with_integrals: False: no integrals are computed, and the object only has the space; if references are
        chosen by weight, the largest possible space."""
        self = cls.__new__(cls)
        target = self._set_up(given, mf)
        asked = Asked(frozen, frozen_virtual, inactive, active)
        found = orbitals.of_mean_field(mf, self.world, asked, group=group)
        self._aim(found, target)
        self._choose(mf, with_integrals=with_integrals)
        self._opened()
        return self

    @classmethod
    @keywords.checked(Given)
    def from_fcidump(
        cls,
        path: str | os.PathLike[str],
        *,
        active: Active,
        inactive: Active = None,
        frozen: Frozen = None,
        frozen_virtual: Frozen = None,
        **given: Unpack[Given],
    ) -> Self:
        """A CI with the integrals of a file. If only numbers of orbitals are given, the file has frozen, inactive,
        active and external orbitals in this order, see `from_mean_field`. Its first orbitals count as occupied."""
        self = cls.__new__(cls)
        target = self._set_up(given)
        asked = Asked(frozen, frozen_virtual, inactive, active)
        found = orbitals.of_file(Path(path), self.world, asked)
        self._aim(found, target)
        chosen = self._references()
        self.records = self._reached(self._heaviest(chosen) if self._by_weight else chosen)
        self._opened()
        return self

    def _set_up(self, given: Given, told_by: Any = None) -> _Target:
        rest: dict[str, Any] = dict(given)
        means = {name: rest.pop(name, None) for name in ("memory", "scratch", "threads", "checkpoint")}
        comm, self._source = rest.pop("comm", JOB), rest.pop("source", None)
        target = _Target(**{name: rest.pop(name) for name in ("irrep", "spin", "roots") if name in rest})
        self._open(Settings(**rest), **means, comm=comm, told_by=told_by)
        self._found: solver.Found | None = None
        self._operator: solver.Operator | None = None
        self._kernel: _core.MRCIKernel | None = None
        self._tables: DiskArray | None = None  # tables that the kernel reads
        self.report: PackingReport | None = None  # about packed vectors
        self.went_on = False  # whether it continued from states of another run
        self.kept_iteration = 0  # iterations of that run and of those before it
        return target

    def _wanted(self) -> transform.Wanted:
        """Collective."""
        settings = self.settings
        return transform.Wanted(
            kind=settings.integrals,
            tolerance=settings.tolerance,
            auxbasis=settings.auxbasis,
            free=self._free(),
            threads=self.threads,
            tables_bytes=settings.integral_memory,
            source=self._source,
        )

    def _aim(self, found: Correlated, target: _Target) -> None:
        self.orbitals = found
        irrep, spin, self.roots = target.irrep, target.spin, target.roots
        total = sum(found.electrons)
        self.spin = abs(found.electrons[0] - found.electrons[1]) if spin is None else spin
        if self.spin < 0 or self.spin > total or (total - self.spin) % 2:
            raise self._refused(f"{total} electrons cannot have 2S = {self.spin}")
        if self.roots < 1:
            raise self._refused(f"{self.roots} roots")
        self.irrep = found.irrep if irrep is None else found.group.number_of(irrep)
        self._folded = self.spin in _FOLDED and total % 2 == 0
        self.electrons = (
            (total // 2, total // 2) if self._folded else ((total + self.spin) // 2, (total - self.spin) // 2)
        )

    @property
    def _by_weight(self) -> bool:
        return isinstance(self.settings.references, float)

    def _choose(self, mf: Any, vectors: list[Matrix] | None = None, *, with_integrals: bool = True) -> None:
        """Sets references, the space of their excitations, and integrals. Integrals are computed first if
        references depend on them. vectors: of a CASCI object, None without one."""
        chosen = self._references(vectors)
        later = self._by_weight and vectors is None
        if not later or not with_integrals:
            self.records = self._reached(chosen)
        if with_integrals:
            self.orbitals = transform.with_integrals(self.orbitals, mf, self.world, self._wanted())
        if later and with_integrals:
            self.records = self._reached(self._heaviest(chosen))

    def _reached(self, chosen: Configurations) -> Records:
        choice, folded = self.orbitals.choice, self._folded
        return Records(
            self.orbitals.orbitals,
            chosen,
            self.electrons,
            self.irrep,
            0 if not folded else 1 if self.spin == 0 else -1,
            choice.inactive if self.settings.couplings == "interacting" else None,
        )

    def _references(self, vectors: list[Matrix] | None = None) -> Configurations:
        """References as rank 0 chooses them. For a choice by weight without vectors these are all candidates of
        `_heaviest`. Collective."""
        chosen: Any = None
        with self.world.together("choose references", str(self.settings.references)):
            if self.world.rank == 0:
                chosen = self._listed(vectors)
                reference_states.check(self.orbitals, chosen, self.electrons, self.irrep)
        return self.world.broadcast(chosen)

    def _listed(self, vectors: list[Matrix] | None) -> Configurations:
        wanted, found = self.settings.references, self.orbitals
        if isinstance(wanted, float) and vectors is not None:
            if not vectors:
                raise self._refused(
                    "references are chosen by weight, but the CASCI object has no vectors that are arrays (ci); "
                    "run its kernel() first, or give references otherwise"
                )
            return references.by_weight(found, vectors, wanted)
        if isinstance(wanted, float) or wanted in WORDS:
            return references.of_space(found, self.irrep, symmetry=wanted != "all")
        return references.of_file(Path(wanted), found.choice, sum(found.electrons))

    def _heaviest(self, every: Configurations) -> Configurations:
        """References chosen by their weight in states of all candidates, as rank 0 finds them. Collective."""
        states = self._states_of(every)
        chosen: Any = None
        with self.world.together("choose references by weight"):
            if self.world.rank == 0:
                chosen = references.heaviest(
                    configurations.of_strings(states.alpha, states.beta),
                    states.vectors,
                    float(self.settings.references),  # type: ignore[arg-type]
                )
        return self.world.broadcast(chosen)

    def _states_of(self, chosen: Configurations) -> reference_states.ReferenceStates:
        """States in the space of the references alone, as rank 0 finds them. Collective."""
        found, free = None, self._free()
        with self.world.together("find states of references"):
            if self.world.rank == 0:
                found = reference_states.of(
                    self.orbitals, chosen, self.electrons, self.irrep, self.spin, self.roots, free
                )
        return self.world.broadcast(found)  # type: ignore[return-value]

    @property
    def functions(self) -> Functions:
        """Numbers of configuration state functions in the space."""
        return self.records.functions(self.spin)

    # ---- energies ----

    def kernel(self) -> Any:
        """Runs the search and returns the energy (Hartree), an array for several roots. Each root follows a state
        of the references, and roots are in the order of these states. `converged` says whether all have converged.

        Raises OutcoreError: ENOMEM, ENOSPC; NotConverged for a root of another spin, or with a small weight of the
        references.
        """
        self._drop()
        self._references_found = starts = self._states_of(self.records.references)
        self._origin = float(starts.energies[0])
        operator, options = self._make_operator()
        self._operator = operator
        kept = self._kept()
        mine = self.records.is_reference
        followed = ReferenceVectors(
            self.layout, starts.coefficients(self.records.alpha[mine], self.records.beta[mine])
        )
        shifts = starts.energies - self._origin if self.layout.penalty != 1 else np.zeros(self.roots)
        keep = None if kept is None else kept.keep
        search = solver.Search(self.world, self.layout, operator, options, followed, shifts, self._told, keep)
        try:
            states = self._starts(operator, followed)
            self.went_on = kept is not None and kept.find(states)
            self.kept_iteration = 0 if kept is None else kept.iteration
            self._found = search.run(states)
        finally:
            if kept is not None:
                kept.close()
        self.report = operator.report() if isinstance(operator, PackedOperator) else None
        checks.packing(self)
        checks.weights(self)
        checks.spins(self)
        for root, energy in enumerate(self.e_states, 1):
            note = ", not converged" if root - 1 in self._found.unconverged else ""
            self.log(NOTE, "E(%s) = %.15g  root %d%s", self._title, energy, root, note)
        return self.e_tot

    @property
    def _title(self) -> str:
        functional = self.settings.functional
        return "MRCI" if functional == "ci" else f"MR-{functional.upper()}"

    def _make_operator(self) -> tuple[solver.Operator, solver.SearchOptions]:
        settings = self.settings
        options = solver.SearchOptions(
            tolerance=settings.residual,
            max_iterations=settings.max_cycle,
            vectors=settings.vectors,
            threads=self.threads,
        )
        self.layout = VectorLayout(
            self.records, size_consistency.penalty(settings.functional, sum(self.electrons))
        )
        if sum(self.electrons) < 2:
            constant = self.orbitals.core_energy - self._origin
            return FewElectronOperator(self.world, self.layout, self.orbitals.one, constant), options
        wishes = storage.Wishes(
            roots=self.roots,
            error_bound=settings.error_bound,
            memory_bytes=self.memory_bytes,
            vector_memory=settings.vector_memory,
        )
        return storage.choose(self.world, self.layout, self._kernel or self._make_kernel(), options, wishes)

    def _make_kernel(self) -> _core.MRCIKernel:
        """Makes the kernel from the integrals. Those between external pairs are moved into it. Collective."""
        found = self.orbitals
        m = (self.electrons[0] - self.electrons[1]) / 2
        shift = self.settings.shift
        raised = shift * (self.spin / 2 * (self.spin / 2 + 1) - m * (m + 1))  # shift of a state of this spin
        kernel = _core.MRCIKernel(
            self.layout.space,
            found.one,
            found.two.rows,
            found.two.coulomb,
            found.two.exchange,
            shift,
            found.core_energy - self._origin - raised,
        )
        limit, external = self.settings.integral_memory, found.two.external
        room = self._free().bytes // 2 if limit is None else limit
        if 8 * kernel.external_size <= room:
            tables.in_memory(kernel, external, len(found.orbitals.external), self.threads)
        else:
            tables.check_disk(self.world, 8 * kernel.external_size)
            self._tables = tables.on_disk(
                self.world, kernel, external, len(found.orbitals.external), self.threads
            )
        self.orbitals = replace(found, two=replace(found.two, external=integrals.none().external))
        self._kernel = kernel
        give_back_freed_memory()
        return kernel

    def _kept(self) -> KeptStates | None:
        settings = self.settings
        if self.checkpoint is None:
            return None
        wanted = kept_states.problem(
            self.orbitals, self.records, self.roots, self.spin, settings.functional, settings.shift
        )
        return KeptStates(self.world, self.checkpoint, self.layout, wanted, self.roots)

    def _told(self, iteration: Iteration) -> None:
        for root, energy in enumerate(iteration.energies + self._origin):
            self.log(
                INFO,
                "cycle = %d  root %d  E = %.15g  |r| = %.6g",
                *(iteration.number, root + 1, energy, iteration.residuals[root]),
            )
        if self.on_iteration is not None:
            self.on_iteration(iteration)

    def _starts(self, operator: solver.Operator, followed: ReferenceVectors) -> list[Any]:
        """The states of the references as vectors of the whole space."""
        vectors = [operator.make() for _ in range(len(followed))]
        with self.world.together("write states of references"):
            for block in range(self.world.rank, len(self.layout.blocks), self.world.size):
                data = followed.block(block)
                if data is not None:
                    for vector, row in zip(vectors, data, strict=True):
                        vector.write(block, row)
        return vectors

    @property
    def found(self) -> solver.Found:
        """The result of the search. Raises OutcoreError before `kernel`."""
        if self._found is None:
            raise self._refused("there are no states; run kernel() first")
        return self._found

    def _repr_html_(self) -> str:
        if self._found is None:
            return html.facts("Multireference CI", [("state", "not run")])
        count = len(self._found.iterations)
        return shown.roots("Multireference CI", self.e_states, converged=self.converged, iterations=count)

    @property
    def e_states(self) -> Any:
        """Energies of all roots (Hartree)."""
        return self.found.iterations[-1].energies + self._origin

    @property
    def e_tot(self) -> Any:
        """The energy (Hartree), an array for several roots."""
        energies = self.e_states
        return float(energies[0]) if len(energies) == 1 else energies

    @property
    def e_reference(self) -> Any:
        """The energy in the space of the references alone (Hartree), an array for several roots. Raises
        OutcoreError before `kernel`."""
        _ = self.found
        energies = self._references_found.energies
        return float(energies[0]) if len(energies) == 1 else energies

    @property
    def converged(self) -> bool:
        """Whether all roots have converged."""
        return not self.found.unconverged

    def _norms(self, root: int) -> tuple[float, float]:
        """Sums of squares of the coefficients: of references, and of all determinants."""
        layout, inside = self.layout, self.records.is_reference
        state, sums = self.found.states[root], np.zeros(2)
        with self.world.together("read a state of a multireference CI"):
            for block in range(self.world.rank, len(layout.blocks), self.world.size):
                records = layout.records_of(block)
                squares = layout.weights(block) * state.read(block) ** 2
                of_references = np.repeat(inside[records], self.records.sizes[records])
                sums += squares[of_references].sum(), squares.sum()
        total = self.world.all_reduce(sums)
        return float(total[0]), float(total[1])

    def reference_weight(self, root: int = 0) -> float:
        """The weight of the references: sum of squares of their coefficients in the normalised state."""
        inside, all_of_them = self._norms(root)
        return inside / all_of_them

    def own_weight(self, root: int = 0) -> float:
        """Squared overlap of the root with the state of the references that it follows. Raises OutcoreError before
        `kernel`."""
        return float(self.found.likeness[root])

    def passed_over(self, root: int = 0) -> int:
        """The least number of states below the root that no root follows, because they are less like the
        references. Raises OutcoreError before `kernel`."""
        return int(self.found.passed[root])

    # ---- states ----

    def spin_square(self, root: int = 0) -> float:
        """<S^2> of a state. Collective. Raises OutcoreError before `kernel`."""
        state = self.found.states[root]
        assert self._operator is not None
        m = (self.electrons[0] - self.electrons[1]) / 2
        exchange = self._operator.exchange(state) if min(self.electrons) else 0.0
        return m * (m + 1) + self.electrons[1] - exchange / self._norms(root)[1]

    def _densities(self, root: int) -> tuple[Matrix, Matrix]:
        """Alpha and beta densities over the correlated orbitals, in the order of `orbitals`."""
        state, n = self.found.states[root], self.orbitals.count
        if isinstance(self._operator, FewElectronOperator):
            return self._operator.densities(state, n)
        alpha, beta = np.zeros((n, n)), np.zeros((n, n))
        assert self._operator is not None
        self._operator.add_density(state, alpha, beta)
        norm = self._norms(root)[1]
        return density.of_sums(alpha, beta, self.electrons, norm, folded=self.records.parity != 0)

    def make_rdm1(self, root: int = 0) -> Matrix:
        """D[p, q] = <p+ q> of both spins together, over the orbitals that are not frozen, in the caller's order.
        Collective."""
        alpha, beta = self.make_rdm1s(root)
        return alpha + beta

    def make_rdm1s(self, root: int = 0, *, ao_repr: bool = False) -> tuple[Matrix, Matrix]:
        """D[p, q] = <p+ q> of spin alpha and of spin beta, over the orbitals of `make_rdm1`; with ao_repr over
        basis functions, for all electrons. They are expectation values of the state, without response of orbitals.
        Collective. Raises OutcoreError; with ao_repr also if the integrals come from a file."""
        alpha, beta = self._densities(root)
        if ao_repr:
            return density.in_functions(self.orbitals, (alpha, beta))
        back = np.argsort(self.orbitals.permutation)
        return alpha[np.ix_(back, back)], beta[np.ix_(back, back)]

    def natural_orbitals(self, root: int = 0) -> NaturalOrbitals:
        """Natural orbitals of the correlated orbitals."""
        alpha, beta = self._densities(root)
        return density.natural(self.orbitals, alpha + beta)

    def write_density(self, path: str | os.PathLike[str], root: int = 0) -> None:
        """Writes one-particle densities, with those of frozen orbitals. The ending of the name chooses the format,
        see `formats.densities`. Collective. Raises OutcoreError, also if the integrals come from a file, without a
        molecule."""
        spins = self.make_rdm1s(root, ao_repr=True)
        with self.world.together("write the density", str(path), root):
            densities.check("write", Path(path))
            if self.world.rank == 0:
                densities.write(Path(path), self.orbitals.mol, spins)

    def corrections(self, root: int = 0) -> Corrections:
        """Corrections of a CI for its lack of size consistency."""
        if self.settings.functional != "ci":
            raise self._refused(f"{self.settings.functional.upper()} has no corrections")
        correlation = float(self.e_states[root] - self._references_found.energies[root])
        return size_consistency.corrections(correlation, self.reference_weight(root), sum(self.electrons))

    # ---- end ----

    def _drop(self) -> None:
        if self._found is not None:
            for each in (*self._found.states, *self._found.multiplied):
                each.close()
            self._found = None
        if isinstance(self._operator, PackedOperator):
            self._operator.close()
        self._operator = None

    @property
    def streamed_bytes(self) -> int:
        """Bytes of integrals between pairs of external orbitals that each product reads from disk; 0: they are in
        memory."""
        return 0 if self._tables is None else self._tables.nbytes

    @property
    def packing_error(self) -> float:
        """The largest rise of an energy of a root by packing (Hartree): sum (d - E) delta^2 over the errors delta
        of the elements, with the diagonal d of H."""
        return float(self.found.packing_errors.max())

    def _give_back(self) -> None:
        self._drop()
        self._kernel = None
        if self._tables is not None:
            self._tables.close()
            self._tables = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: object
    ) -> None:
        if interrupts.behind(error) is None:
            self.close()
        else:
            super().__exit__(kind, error, traceback)


def _vectors(given: Any) -> list[Matrix]:
    """The vectors of a CASCI object, of one state or of each; empty if one of them is no array."""
    several = list(given) if isinstance(given, list | tuple) else [given]
    return several if all(isinstance(each, np.ndarray) for each in several) else []
