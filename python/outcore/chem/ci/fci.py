"""Full CI of a mean-field object, or with the integrals of a file.

with outcore.chem.ci.FCI(mf, frozen="auto", memory="1GB") as ci:
    energy = ci.kernel()
    print(ci.dipole(), ci.natural_orbitals().occupations)
"""

from __future__ import annotations

import copy
import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from outcore.base import html, keywords
from outcore.base.errors import OutcoreError
from outcore.chem import frozen as frozen_orbitals
from outcore.chem import shown
from outcore.chem.active import Asked
from outcore.chem.ci import (
    analysis,
    densities,
    fcidump,
    orbitals,
    plan,
    rounding,
    selected,
    solver,
    target,
    three_particle,
    trexio_states,
)
from outcore.chem.ci.analysis import Determinant, NaturalOrbitals
from outcore.chem.ci.densities import Densities
from outcore.chem.ci.determinants import listed, mask
from outcore.chem.ci.hamiltonian import Hamiltonian, Matrix
from outcore.chem.ci.orbitals import ActiveSpace
from outcore.chem.ci.passes import Place
from outcore.chem.ci.settings import Settings
from outcore.chem.ci.space import Space
from outcore.chem.ci.target import Target
from outcore.chem.ci.tiles import VectorTiling
from outcore.chem.formats import densities as densities_files
from outcore.chem.logs import INFO, NOTE
from outcore.chem.method import Among, Method
from outcore.chem.ri.given import is_of_functions
from outcore.job.processes import JOB
from outcore.job.world import World

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from outcore.chem.ci.estimate import Forecast
    from outcore.chem.ci.solver import Solved

_GUESS_MATRICES = 4  # matrices over the small space that exist together
_TRANSFORM_BYTES = 1 << 30  # memory for the transformation of integrals, unless a budget says less


class FCI(Method):
    """A CI with all determinants of some orbitals, on one or several processes. Each process makes the same object
    and calls the same methods, which are collective.

    Args:
        mf: a converged RHF, ROHF or UHF object of PySCF or of Outcore, with exact or density-fitted integrals.
        frozen: number of lowest orbitals that stay doubly occupied, "auto" for the cores of the atoms, or a list of
            orbitals that are not correlated, from 0; it may have virtual ones. As in PySCF.
        frozen_virtual: number of highest virtual orbitals that are not correlated, or a list.
        active: number of correlated orbitals above the frozen ones, a list of their numbers, or a dict with a
            number for each irrep, such as {"A1": 3, "B1": 1}; default all, at most 64. Occupied orbitals that a
            list or dict leaves out stay doubly occupied.
        group: abelian point group, such as "D2h"; default that of the molecule, if it was built with symmetry, else
            none.
        irrep: of the states, by its name; default that of the determinant of `mf`.
        spin: 2S of the states; default that of the molecule. With orbitals of UHF it is the number of unpaired
            electrons, and states may have any spin.
        roots: number of states.
        folded: False: vectors are never folded, and have 2S unpaired electrons.
        memory, scratch, threads, comm: as for DensityFitting.
        integrals: False: no integrals are computed; the object serves `forecast` alone.
        settings: see `outcore.chem.ci.settings.Settings`; and `checkpoint`, a directory in which states are
            kept, and looked for first.

    After `kernel`: `e_tot` (Hartree; an array for several roots), `converged`. Roots are numbered from 0. Results
    refer to the active orbitals, in the order of their energies, or of the file. `notes`: lines that say how
    orbitals and integrals were made symmetric, and which values a file left out.
    `verbose` and `stdout` are at first those of `mf`; see `outcore.chem.logs.tell`.
    Raises OutcoreError, the same on all processes.
    """

    title = "full CI"
    settings: Settings
    orbitals: ActiveSpace | None

    @keywords.checked(Settings, Among)
    def __init__(
        self,
        mf: Any,
        *,
        frozen: frozen_orbitals.Asked = None,
        frozen_virtual: frozen_orbitals.Asked = None,
        active: Asked = None,
        group: str | None = None,
        irrep: str | int | None = None,
        spin: int | None = None,
        roots: int = 1,
        folded: bool | None = None,
        memory: int | str | None = None,
        scratch: str | None = None,
        threads: int | None = None,
        comm: Intracomm | World | None = JOB,
        integrals: bool = True,
        **settings: Any,
    ) -> None:
        self._set_up(memory, scratch, threads, comm, settings, mf)
        free = self._free()
        found = orbitals.of(
            mf,
            self.world,
            frozen=frozen,
            frozen_virtual=frozen_virtual,
            active=active,
            group=group,
            max_memory_bytes=max(0, min(free.bytes // 2, _TRANSFORM_BYTES)),
            scratch=str(self.world.scratch),
            integrals=integrals,
        )
        number = found.reference_irrep if irrep is None else found.irrep(irrep)
        self.notes += found.notes
        self._choose(found.hamiltonian, found.electrons, number, spin, roots, folded)
        self.orbitals = found
        self._opened()

    @classmethod
    @keywords.checked(Settings, Among)
    def from_fcidump(
        cls,
        path: str | os.PathLike[str],
        *,
        irrep: str | int | None = None,
        spin: int | None = None,
        roots: int = 1,
        folded: bool | None = None,
        memory: int | str | None = None,
        scratch: str | None = None,
        threads: int | None = None,
        comm: Intracomm | World | None = JOB,
        **settings: Any,
    ) -> Self:
        """A CI with the integrals of a file. irrep: a number as in ORBSYM; default ISYM. spin: default MS2. `notes`
        list values that the file leaves out, and differences that were averaged away."""
        self = cls.__new__(cls)
        self._set_up(memory, scratch, threads, comm, settings)
        found: Any = None
        with self.world.together("read FCIDUMP", str(path)):
            if self.world.rank == 0:
                found = fcidump.read(Path(path))
        dump: fcidump.Dump = self.world.broadcast(found)
        self.notes += dump.notes
        number = dump.irrep if irrep is None else dump.hamiltonian.irrep(irrep)
        self._choose(dump.hamiltonian, dump.electrons, number, spin, roots, folded)
        self._opened()
        return self

    @classmethod
    @keywords.checked(Settings, Among)
    def from_hamiltonian(
        cls,
        hamiltonian: Hamiltonian,
        electrons: tuple[int, int],
        *,
        irrep: int = 0,
        spin: int | None = None,
        roots: int = 1,
        folded: bool | None = None,
        fixed: bool = False,
        memory: int | str | None = None,
        scratch: str | None = None,
        threads: int | None = None,
        comm: Intracomm | World | None = JOB,
        **settings: Any,
    ) -> Self:
        """A CI with integrals in memory. irrep: its number in the Hamiltonian. fixed: vectors have exactly these
        electrons of each spin."""
        self = cls.__new__(cls)
        self._set_up(memory, scratch, threads, comm, settings)
        self._choose(hamiltonian, electrons, irrep, spin, roots, folded, fixed=fixed)
        self._opened()
        return self

    def _set_up(
        self,
        memory: int | str | None,
        scratch: str | None,
        threads: int | None,
        comm: Any,
        settings: dict[str, Any],
        mf: Any = None,
    ) -> None:
        checkpoint = settings.pop("checkpoint", None)
        means: Any = {"memory": memory, "scratch": scratch, "threads": threads, "comm": comm}
        self._open(Settings(**settings), **means, checkpoint=checkpoint, told_by=mf)
        self.orbitals = None
        self.notes: tuple[str, ...] = ()
        self._solved: Solved | None = None
        self._densities: dict[tuple[int, int], Densities] = {}

    def _choose(
        self,
        hamiltonian: Hamiltonian,
        electrons: tuple[int, int],
        irrep: int,
        spin: int | None,
        roots: int,
        folded: bool | None,
        *,
        fixed: bool = False,
    ) -> None:
        self.hamiltonian = hamiltonian
        self.notes += hamiltonian.notes
        self.target: Target = target.of(
            hamiltonian, electrons, irrep=irrep, spin=spin, roots=roots, folded=folded, fixed=fixed
        )
        wanted = self.target
        self.space = Space(hamiltonian, *wanted.electrons, wanted.irrep, wanted.parity)
        if roots > self.space.determinants:
            raise OutcoreError(
                errno.EINVAL,
                f"find {roots} roots",
                detail=f"there are {self.space.determinants} determinants",
            )

    def with_states(
        self,
        *,
        irrep: str | int | None = None,
        spin: int | None = None,
        roots: int = 1,
        folded: bool | None = None,
    ) -> Self:
        """A new object for other states with the same orbitals and integrals, in the same world; arguments as for
        the class. It has the same checkpoint: set another before its `kernel`, which refuses kept states of
        another irrep or spin. Raises OutcoreError (EINVAL)."""
        found = copy.copy(self)
        found._owns_world, found._solved, found._densities = False, None, {}
        of = found.hamiltonian if found.orbitals is None else found.orbitals
        number = found.target.irrep if irrep is None else of.irrep(irrep)
        found._choose(found.hamiltonian, found.target.electrons, number, spin, roots, folded)
        found.notes = self.notes
        return found

    def forecast(self) -> Forecast:
        """The forecast of the search: determinants, bytes in memory and on disk, bytes moved, seconds."""
        from outcore.chem.ci import estimate

        return estimate.forecast(
            self.world,
            self.space,
            self.hamiltonian,
            roots=self.target.roots,
            options=self._options(),
            memory_bytes=self.memory_bytes,
            kept=self.checkpoint is not None,
        )

    def largest_file(self) -> int:
        """Bytes of the largest file of each process, by the plan. Collective."""
        chosen = solver.plan(
            self.world,
            self.space,
            self._options(),
            roots=self.target.roots,
            memory_bytes=self.memory_bytes,
            kept=self.checkpoint is not None,
        )
        return chosen.largest_file

    def least_bytes(self) -> int:
        """The least memory of the search in each process, with its integrals (bytes)."""
        needed = plan.least_bytes(
            self.space,
            VectorTiling(self.space),
            self._options(),
            roots=self.target.roots,
            processes=self.world.size,
            states_on_disk=self.checkpoint is not None,
        )
        size = min(self.settings.guess_size, self.space.determinants)
        n, unrestricted = self.hamiltonian.orbitals, self.hamiltonian.unrestricted
        guess = _GUESS_MATRICES * 8 * size**2
        if self.settings.guess_selection == "weights":
            guess += selected.work_bytes(n, self.target.electrons, size, self.target.roots)
        return orbitals.integral_bytes(n, unrestricted=unrestricted) + needed + guess

    def _options(self) -> solver.SearchOptions:
        settings, bound = self.settings, self.settings.error_bound
        return solver.SearchOptions(
            tolerance=settings.residual if bound == 0 else rounding.tolerance(bound, self.target.roots),
            max_iterations=settings.max_cycle,
            vectors=settings.vectors,
            precision=settings.precision,
            threads=self.threads,
            error_bound=bound,
        )

    # ---- energies ----

    def kernel(self, start: Sequence[Place] | None = None) -> Any:
        """Runs the search and returns the energy (Hartree), an array for several roots. `converged` says whether
        all roots have converged.

        start: states of the same space from which the search begins, as many as roots: `solved.roots` of this or
            another object."""
        settings, wanted = self.settings, self.target
        if settings.any_integrals and self.checkpoint is None:
            raise self._refused("any_integrals has no effect without a checkpoint")
        if start is None:
            self._drop()
        found = solver.solve(
            self.world,
            self.space,
            self.hamiltonian,
            roots=wanted.roots,
            spin=wanted.spin,
            options=self._options(),
            memory_bytes=self.memory_bytes,
            guess_size=settings.guess_size,
            guess_selection=settings.guess_selection,
            spin_shift=0.0 if wanted.spin is None else settings.spin_shift,
            ordered=settings.ordered,
            checkpoint=self.checkpoint,
            any_integrals=settings.any_integrals,
            on_iteration=self._told,
            start=start,
        )
        self._drop()
        self._solved = found
        for root, energy in enumerate(self.e_states, 1):
            self.log(
                NOTE,
                "E(full CI) = %.15g  root %d%s",
                energy,
                root,
                "" if found.converged else ", not converged",
            )
        return self.e_tot

    def _told(self, iteration: Any, states: Any) -> None:
        for root, energy in enumerate(iteration.energies + self.hamiltonian.core_energy):
            self.log(
                INFO,
                "cycle = %d  root %d  E = %.15g  |r| = %.6g",
                *(iteration.number, root + 1, energy, iteration.residuals[root]),
            )
        if self.on_iteration is not None:
            self.on_iteration(iteration, states)

    @property
    def solved(self) -> Solved:
        """The result of the search. Raises OutcoreError before `kernel`."""
        if self._solved is None:
            raise OutcoreError(errno.EINVAL, "full CI", detail="there are no states; run kernel() first")
        return self._solved

    def _repr_html_(self) -> str:
        if self._solved is None:
            return html.facts("Full CI", [("state", "not run")])
        count = len(self._solved.iterations)
        return shown.roots("Full CI", self.e_states, converged=self.converged, iterations=count)

    @property
    def e_states(self) -> Matrix:
        """Energies of all roots (Hartree)."""
        energies: Matrix = self.solved.energies
        return energies

    @property
    def e_tot(self) -> Any:
        """The energy (Hartree), an array for several roots."""
        energies = self.e_states
        return float(energies[0]) if len(energies) == 1 else energies

    @property
    def converged(self) -> bool:
        """Whether all roots have converged."""
        return bool(self.solved.converged)

    # ---- states ----

    def densities(self, root: int = 0, other: int | None = None) -> Densities:
        """Density matrices of a root, or between <root| and |other>, over sorted orbitals (see `hamiltonian`)."""
        pair = self._root(root), self._root(root if other is None else other)
        if pair not in self._densities:
            self._densities[pair] = densities.compute(self.solved, *pair, threads=self.threads)
        return self._densities[pair]

    def make_rdm1s(self, root: int = 0) -> tuple[Matrix, Matrix]:
        """D[p, q] = <p+ q> of spin alpha and of spin beta, over active orbitals."""
        found = self._callers(root)
        return found.alpha, found.beta

    def make_rdm1(self, root: int = 0) -> Matrix:
        """D[p, q] = <p+ q> of both spins together, over active orbitals."""
        self._refuse_different("one-particle density of both spins")
        return self._callers(root).one

    def make_rdm12(self, root: int = 0) -> tuple[Matrix, Matrix]:
        """The density of `make_rdm1`, and D[p, q, r, s] = <p+ r+ s q>."""
        self._refuse_different("densities of both spins")
        found = self._callers(root)
        return found.one, found.two

    def make_rdm3(self, root: int = 0) -> Matrix:
        """D[p, q, r, s, t, u] = <p+ r+ t+ u s q> over active orbitals, whole at every process. `three_particle`
        gives slabs of it. Raises OutcoreError (ENOMEM)."""
        self._refuse_different("three-particle density of both spins")
        place = Place(self.solved.states, self._root(root))
        found = three_particle.whole(
            place, self.hamiltonian, memory_bytes=self.memory_bytes, threads=self.threads
        )
        positions = self.hamiltonian.positions
        return found[np.ix_(*[positions] * 6)]

    def trans_rdm1(self, bra: int, ket: int) -> Matrix:
        """D[p, q] = <bra| p+ q |ket> of both spins together."""
        self._refuse_different("transition density of both spins")
        return self._callers(bra, ket).one

    def _callers(self, root: int, other: int | None = None) -> Densities:
        return self.densities(root, other).reordered(self.hamiltonian.positions)

    def _refuse_different(self, what: str) -> None:
        if self.hamiltonian.unrestricted:
            raise OutcoreError(
                errno.ENOTSUP,
                what,
                detail="orbitals of spin alpha and beta differ; `densities` has each spin",
            )

    def spin_square(self, root: int = 0) -> float | None:
        """<S^2>; None if the orbitals differ in spin, and there is no molecule to compute their overlap."""
        found = self.densities(root)
        if not self.hamiltonian.unrestricted:
            return analysis.spin_square(self.target.electrons, found)
        if self.orbitals is None:
            return None
        return analysis.spin_square_of(self.orbitals, self.target.electrons, found)

    def natural_orbitals(self, root: int = 0) -> NaturalOrbitals:
        self._refuse_different("natural orbitals")
        return analysis.natural(self.densities(root).one, self.hamiltonian)

    def largest(self, root: int = 0, count: int = 10) -> list[Determinant]:
        """The determinants with the largest coefficients."""
        return analysis.largest(self.solved.states, self._root(root), self.hamiltonian, count)

    def weights(self, root: int = 0) -> Matrix:
        """Sums of squares of coefficients by excitations (0, 1, ..) from the largest determinant of the root."""
        first = self.largest(root, 1)[0]
        positions = self.hamiltonian.positions
        alpha, beta = (mask(positions[listed(string)]) for string in (first.alpha, first.beta))
        levels = analysis.weights(self.solved.states, self._root(root), (alpha, beta))
        return analysis.by_excitation(levels)

    def dipole(self, root: int = 0) -> Matrix:
        """The dipole moment in atomic units. That of a charged molecule refers to the origin."""
        found = self.densities(root)
        return analysis.dipole(self._molecule("dipole moment"), found.alpha, found.beta)

    def transition_dipole(self, bra: int, ket: int) -> Matrix:
        """The transition dipole in atomic units; its sign has no meaning."""
        found = self.densities(bra, ket)
        return analysis.transition_dipole(self._molecule("dipole moment"), found.alpha, found.beta)

    def label(self, root: int = 0) -> str:
        """The irrep of a root; for linear molecules a term such as Sigma_g+, if the active orbitals are complete
        shells."""
        name = self.hamiltonian.names[self.target.irrep]
        if self.orbitals is None or self.orbitals.group not in ("Dooh", "Coov"):
            return name
        found = self.densities(root)
        two = found.same_alpha, found.mixed, found.same_beta
        momentum = analysis.axial_momentum(self.orbitals, (found.alpha, found.beta), two)
        return analysis.linear_label(self.orbitals, self.target.irrep, momentum) or name

    def write_molden(self, path: str | os.PathLike[str], root: int = 0) -> None:
        """Writes natural orbitals with their occupations."""
        space, found = self._molecule("molden file"), self.natural_orbitals(root)
        with self.world.together("write molden file", str(path), root):
            if self.world.rank == 0:
                analysis.write_molden(Path(path), space, found)

    def write_density(self, path: str | os.PathLike[str], root: int = 0) -> None:
        """Writes one-particle densities, with those of frozen orbitals. The ending of the name chooses the format,
        see `formats.densities`. Collective."""
        space, found = self._molecule("write the density"), self.densities(root)
        with self.world.together("write the density", str(path), root):
            densities_files.check("write", Path(path))
            if self.world.rank == 0:
                both = analysis.densities_in_functions(space, found.alpha, found.beta)
                densities_files.write(Path(path), space.mol, both)

    def write_trexio(self, path: str | os.PathLike[str], root: int = 0) -> None:
        """Writes orbitals, integrals, densities and all determinants of a state as TREXIO: see
        `trexio_states.write`. Collective."""
        trexio_states.write(Path(path), self, root)

    def write_fcidump(self, path: str | os.PathLike[str]) -> None:
        """Writes the integrals; NELEC, MS2 and ISYM are those of the states."""
        (alpha, beta), spin = self.target.electrons, self.target.spin
        if alpha == beta and spin is not None:  # also for a folded triplet
            alpha, beta = alpha + spin // 2, beta - spin // 2
        with self.world.together("write FCIDUMP", str(path)):
            if self.world.rank == 0:
                fcidump.write(Path(path), self.hamiltonian, (alpha, beta), self.target.irrep)

    def _root(self, root: int) -> int:
        if not 0 <= root < self.target.roots:
            raise OutcoreError(
                errno.EINVAL, f"root {root}", detail=f"there are {self.target.roots}, counted from 0"
            )
        return root

    def _molecule(self, what: str) -> ActiveSpace:
        if self.orbitals is None:
            raise OutcoreError(
                errno.EINVAL, what, detail="the integrals are of a file, which has no molecule"
            )
        if not is_of_functions(self.orbitals.overlap, self.orbitals.mol):
            raise OutcoreError(errno.EINVAL, what, detail="the functions of a model lie nowhere in space")
        return self.orbitals

    # ---- life ----

    def _drop(self) -> None:
        self._densities.clear()
        if self._solved is not None:
            self._solved.close()
            self._solved = None

    def _give_back(self) -> None:
        self._drop()
