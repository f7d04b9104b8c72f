"""A solver for PySCF's CASCI and CASSCF whose vectors may be larger than memory.

mc = pyscf.mcscf.CASSCF(mf, 16, 16)
mc.fcisolver = outcore.chem.ci.FCISolver(mf.mol, memory="2GB")
mc.kernel()
"""

from __future__ import annotations

import copy
import errno
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pyscf import ao2mo, lib, symm
from pyscf.fci import addons, direct_spin1

from outcore.base import keywords
from outcore.base.errors import OutcoreError
from outcore.chem.ci import analysis, hamiltonian, solver
from outcore.chem.ci import vector as vectors
from outcore.chem.ci.determinants import listed
from outcore.chem.ci.fci import FCI
from outcore.chem.ci.hamiltonian import Hamiltonian, Matrix
from outcore.chem.ci.kept_solves import KeptSolves
from outcore.chem.ci.passes import Place, dots
from outcore.chem.ci.rotation import rotated
from outcore.chem.ci.settings import Settings
from outcore.chem.ci.sigma import Sigma
from outcore.chem.method import Among, Means, directory_of
from outcore.chem.symmetry import ABELIAN, IRREPS
from outcore.job.processes import JOB
from outcore.keep import clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mpi4py.MPI import Intracomm

    from outcore.chem.ci.densities import Densities
    from outcore.chem.ci.vector import Vectors
    from outcore.job.world import World

_APPROXIMATE = 1e-3  # Hartree: norm of the residual between two orbital steps of a CASSCF, or less
_FEW = 8  # most iterations of such a solve
_SAME_SQUARE = 1e-6  # values of <S^2> that differ by less are equal


class CIVector:
    """A handle of a state of FCISolver. The vector stays where it is; the handle has no elements. The vector
    exists as long as its handle or that of another root does."""

    def __init__(self, ci: FCI, root: int) -> None:
        self._ci, self.root = ci, root

    @property
    def determinants(self) -> int:
        return self._ci.space.determinants

    @property
    def place(self) -> Place:
        """The vector."""
        return Place(self._ci.solved.states, self.root)

    def __getitem__(self, index: int) -> None:
        """Returns None: PySCF looks at the first element to tell lists of arrays from lists of other states."""
        if index != 0:
            raise IndexError(index)

    @property
    def size(self) -> int:
        """Refused, like all other uses of a state as an array."""
        raise self._no_array()

    def ravel(self, *_: Any, **__: Any) -> Any:
        raise self._no_array()

    def reshape(self, *_: Any, **__: Any) -> Any:
        raise self._no_array()

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise self._no_array()

    def _no_array(self) -> OutcoreError:
        detail = (
            "it is no array in memory, but mc.newton(), PySCF's NEVPT2 and others work on its elements; "
            "CASSCF's mc1step (the default) works without, and so does outcore.chem.nevpt2.NEVPT2"
        )
        return OutcoreError(errno.ENOTSUP, f"elements of {self}", detail=detail)

    def densities(self, other: CIVector | None = None) -> Densities:
        """Densities of the state, or between it (bra) and another, over PySCF's orbitals."""
        if other is not None and other._ci is not self._ci:
            raise OutcoreError(
                errno.ENOTSUP, "transition density", detail="the two states are of different calculations"
            )
        found = self._ci.densities(self.root, None if other is None else other.root)
        return found.reordered(self._ci.hamiltonian.positions)

    def dot(self, other: CIVector) -> float:
        """The overlap with another state of the same orbitals. Collective."""
        mine, theirs = self._ci.space, other._ci.space
        if mine.irreps != theirs.irreps or mine.folded != theirs.folded:
            raise OutcoreError(errno.ENOTSUP, "overlap of states", detail=f"of {mine} and of {theirs}")
        if (mine.electrons, mine.irrep, mine.parity) != (theirs.electrons, theirs.irrep, theirs.parity):
            return 0.0
        return float(dots(self._ci.world, [self.place], [other.place], self._ci.threads)[0, 0])

    @property
    def ci(self) -> FCI:
        """The object that has found the state."""
        return self._ci

    def __repr__(self) -> str:
        return f"<state {self.root} of {self.determinants} determinants>"


class FCISolver(lib.StreamObject):  # type: ignore[misc]
    """For `mc.fcisolver` of PySCF's CASCI, CASSCF and UCASCI, with one or several states.

    PySCF reads and sets attributes of a solver, and copies it, as it does with its own objects: so this is one of
    those, and no `Method`; it has the arguments of one.

    Args:
        mol: for the names of irreps, `verbose` and `stdout`.
        memory, scratch, threads, comm: as for FCI. On several processes each makes the same calls, and the
            integrals of the first count.
        settings: see `outcore.chem.ci.settings.Settings`, without `residual`, which follows from `conv_tol`, and
            `any_integrals`. `checkpoint`: a directory for the states of long solves: those expected to take longer
            than the time that a kill may lose. The first solve of another run of the same molecule begins with the
            states of the last solve.

    Attributes, as in PySCF's solvers: conv_tol (of the energy; residuals are converged to its square root),
    max_cycle, nroots, wfnsym (irrep of the states by name or number; for linear molecules the irrep of D2h or C2v
    that contains it; default that of the lowest orbitals), orbsym (irreps of orbitals; set by CASCI of molecules
    with symmetry), spin (2S of the states; default the number of unpaired electrons), converged. If set,
    `on_solve` is called with the FCI object of each solve before the solve begins, and `on_solved` after it has
    ended.
    `keeps_all`: states of short solves are kept as well, if there is a checkpoint. A state is a CIVector. Raises
    OutcoreError.
    """

    _keys = {  # noqa: RUF012  (PySCF's convention)
        *("mol", "conv_tol", "max_cycle", "nroots", "wfnsym", "orbsym", "spin", "converged", "settings"),
        *("memory_bytes", "threads", "world", "checkpoint", "eci", "norb", "nelec", "ci"),
        *("on_solve", "on_solved", "keeps_all"),
    }

    @property
    def checkpoint(self) -> Path | None:
        """The directory in which finished work is kept, that of the constructor; None: nothing is kept."""
        return self._checkpoint

    @keywords.checked(Settings, Among)
    def __init__(
        self,
        mol: Any = None,
        *,
        memory: int | str | None = None,
        scratch: str | None = None,
        threads: int | None = None,
        comm: Intracomm | World | None = JOB,
        **settings: Any,
    ) -> None:
        if "residual" in settings:
            raise OutcoreError(errno.EINVAL, "FCISolver", detail="residual has no effect; set conv_tol")
        if settings.get("error_bound"):
            detail = "an error bound says when energies are converged, which conv_tol does here"
            raise OutcoreError(errno.EINVAL, "FCISolver", detail=detail)
        if "any_integrals" in settings:
            detail = "any_integrals has no effect: integrals change from step to step"
            raise OutcoreError(errno.EINVAL, "FCISolver", detail=detail)
        self.mol = mol
        self.verbose = lib.logger.NOTE if mol is None else mol.verbose
        self.stdout = lib.StreamObject.stdout if mol is None else mol.stdout
        checkpoint = settings.pop("checkpoint", None)
        self.settings = Settings(**settings)
        self.world, self.memory_bytes, self.threads = Means.of(memory, scratch, threads, comm)
        self._checkpoint = directory_of(self.world, "FCISolver", checkpoint)
        self.conv_tol, self.max_cycle, self.nroots = 1e-10, self.settings.max_cycle, 1
        self.wfnsym: Any = None
        self.orbsym: Any = None
        self.spin: int | None = None
        self.on_solve: Callable[[FCI], None] | None = None
        self.on_solved: Callable[[FCI], None] | None = None
        self.converged = self.keeps_all = False
        self.eci: Any = None
        self.ci: Any = None
        self.norb: int | None = None
        self.nelec: tuple[int, int] | None = None
        self._open: list[tuple[FCI, list[weakref.ref[CIVector]]]] = []
        self._kept: KeptSolves | None = None
        if self.checkpoint is not None:
            self._kept = KeptSolves(self.world, self.checkpoint, mol)
        self._averaged = 0.0  # largest change of averaged integrals that was reported (Hartree)

    # ---- states ----

    def kernel(
        self,
        h1e: Any,
        eri: Any,
        norb: int,
        nelec: Any,
        ci0: Any = None,
        tol: float | None = None,
        lindep: float | None = None,
        max_cycle: int | None = None,
        max_space: int | None = None,
        nroots: int | None = None,
        davidson_only: Any = None,
        pspace_size: int | None = None,
        orbsym: Any = None,
        wfnsym: Any = None,
        ecore: float = 0.0,
        **_: Any,
    ) -> tuple[Any, Any]:
        """Energies (Hartree, with ecore) and states; for one root a number and a CIVector. Collective.

        ci0: states to begin from; True: the last ones, if they are of the same space. Arguments for PySCF's own
        search (lindep, max_space, pspace_size, davidson_only, max_memory) are accepted and ignored."""
        accuracy = self.conv_tol if tol is None else tol
        return self._kernel(
            (h1e, eri, norb, nelec, ecore),
            ci0,
            np.sqrt(accuracy),
            self.max_cycle if max_cycle is None else max_cycle,
            self.nroots if nroots is None else nroots,
            self.orbsym if orbsym is None else orbsym,
            self.wfnsym if wfnsym is None else wfnsym,
        )

    def approx_kernel(
        self,
        h1e: Any,
        eri: Any,
        norb: int,
        nelec: Any,
        ci0: Any = None,
        tol: float | None = None,
        nroots: int | None = None,
        orbsym: Any = None,
        wfnsym: Any = None,
        ecore: float = 0.0,
        **_: Any,
    ) -> tuple[Any, Any]:
        """As `kernel`, in a few iterations: between steps of the orbitals. Collective."""
        accuracy = self.conv_tol if tol is None else tol
        return self._kernel(
            (h1e, eri, norb, nelec, ecore),
            True if ci0 is None else ci0,
            min(_APPROXIMATE, np.sqrt(accuracy)),
            min(_FEW, self.max_cycle),
            self.nroots if nroots is None else nroots,
            self.orbsym if orbsym is None else orbsym,
            self.wfnsym if wfnsym is None else wfnsym,
        )

    def _kernel(
        self,
        problem: tuple[Any, Any, int, Any, float],
        ci0: Any,
        residual: float,
        max_cycle: int,
        nroots: int,
        orbsym: Any,
        wfnsym: Any,
    ) -> tuple[Any, Any]:
        if isinstance(self, addons.SpinPenaltyFCISolver):  # made by PySCF's fix_spin
            self.fix_spin_(self.ss_penalty, self.ss_value)
        h1e, eri, norb, nelec, ecore = problem
        electrons = self._electrons(nelec)
        self._sweep(ci0)
        made: Any = None
        with self.world.together("active space", norb, electrons):
            if self.world.rank == 0:
                made = self._hamiltonian(h1e, eri, norb, orbsym, ecore)
        found: Hamiltonian = self.world.broadcast(made)
        if max(found.averaged) > 10 * self._averaged:  # not in each step of a CASSCF
            self._averaged = max(found.averaged)
            for note in found.notes:
                lib.logger.note(self, "%s", note)
        if found.unrestricted and isinstance(self, addons.SpinPenaltyFCISolver):
            detail = "fix_spin has no effect where orbitals differ in spin: states have any spin"
            raise OutcoreError(errno.ENOTSUP, "FCISolver", detail=detail)
        ci = FCI.from_hamiltonian(
            found,
            electrons,
            irrep=self._irrep(found, electrons, wfnsym),
            spin=None if found.unrestricted else self.spin,
            roots=nroots,
            fixed=True,
            memory=self.memory_bytes,
            threads=self.threads,
            comm=self.world,
        )
        ci.log_as(self)
        ci.verbose -= 1  # a CASSCF solves many times
        ci.settings = replace(self.settings, residual=min(residual, 0.5), max_cycle=max_cycle)
        if self._kept is not None and (self.keeps_all or ci.forecast().total_seconds > clock.INTERVAL_S):
            ci.settings = replace(ci.settings, any_integrals=True)
            ci.set(checkpoint=self._kept.next())
        if self.on_solve is not None:
            self.on_solve(ci)
        ci.kernel(self._start(ci, ci0))
        if self.on_solved is not None:
            self.on_solved(ci)
        vectors = [CIVector(ci, root) for root in range(nroots)]
        self._open.append((ci, [weakref.ref(each) for each in vectors]))
        self.norb, self.nelec, self.converged = norb, electrons, ci.converged
        self.eci, self.ci = ci.e_tot, vectors if nroots > 1 else vectors[0]
        return self.eci, self.ci

    def _start(self, ci: FCI, ci0: Any) -> list[Place] | None:
        """States to begin from; None unless they are of the same determinants and enough for all roots."""
        roots = ci.target.roots
        if isinstance(ci0, bool | np.bool_):
            given = self._last.solved.roots if ci0 and self._last is not None else []
            before = self._last
        else:
            handles = [each for each in _listed(ci0) if isinstance(each, CIVector)]
            given = [each.place for each in handles]
            before = handles[0].ci if handles else None
            if any(each.ci.target != handles[0].ci.target for each in handles):
                return None
        if before is None or len(given) < roots:
            return None
        same = (
            replace(before.target, roots=roots) == ci.target
            and before.hamiltonian.unrestricted == ci.hamiltonian.unrestricted
            and np.array_equal(before.hamiltonian.irreps, ci.hamiltonian.irreps)
            and np.array_equal(before.hamiltonian.permutation, ci.hamiltonian.permutation)
        )
        return given[:roots] if same else None

    @property
    def _last(self) -> FCI | None:
        """The FCI object of the last `kernel`; None if there is none."""
        return self._open[-1][0] if self._open else None

    def _sweep(self, ci0: Any) -> None:
        """Drops all states without a handle, except the last ones. Collective."""
        alive = [any(each() is not None for each in handles) for _, handles in self._open]
        if self._open:
            alive[-1] = True
            alive = [bool(each) for each in self.world.all_reduce(np.array(alive, np.int64), "max")]
        for is_alive, (ci, _) in zip(alive, self._open, strict=True):
            if not is_alive:
                ci.close()
        self._open = [each for is_alive, each in zip(alive, self._open, strict=True) if is_alive]
        if self._kept is not None and self._open:
            self._kept.keep([ci.checkpoint for ci, _ in self._open if ci.checkpoint])

    def _electrons(self, nelec: Any) -> tuple[int, int]:
        if isinstance(nelec, int | np.integer):
            excess = int(self.spin or 0) if self.spin is not None else int(nelec) % 2
            return (int(nelec) + excess) // 2, (int(nelec) - excess) // 2
        return int(nelec[0]), int(nelec[1])

    def _hamiltonian(self, h1e: Any, eri: Any, norb: int, orbsym: Any, ecore: float) -> Hamiltonian:
        several = isinstance(h1e, list | tuple) or np.ndim(h1e) == 3
        one: Any = tuple(h1e) if several else h1e
        two: Any = eri
        if several:
            pairs = norb * (norb + 1) // 2
            aa, ab, bb = eri
            ab = np.asarray(ab)
            if ab.shape == (pairs, pairs):
                ab = hamiltonian.unpacked(ab, norb)
            two = (aa, ab, bb)
        irreps = None if orbsym is None or not len(orbsym) else np.asarray(orbsym, np.int64) % 10
        return hamiltonian.make(
            one,
            two,
            core_energy=float(ecore),
            irreps=irreps,
            group="" if irreps is None else self._group(irreps),
            rounding=None,  # it depends on the mean field, which is not known here
        )

    def _group(self, irreps: Any) -> str:
        name = getattr(self.mol, "groupname", None) if getattr(self.mol, "symmetry", False) else None
        name = ABELIAN.get(str(name), name)
        if name in IRREPS and max(irreps) < len(IRREPS[name]):
            return str(name)
        return "D2h" if max(irreps) > 3 else "C2v"

    def _irrep(self, found: Hamiltonian, electrons: tuple[int, int], wfnsym: Any) -> int:
        if wfnsym is None:
            irreps, number = found.irreps[found.positions], 0
            for count in electrons:
                number ^= int(np.bitwise_xor.reduce(irreps[:count], initial=0))
            return number
        if isinstance(wfnsym, str):
            try:
                return int(symm.irrep_name2id(self.mol.groupname, wfnsym)) % 10
            except (KeyError, AttributeError, RuntimeError):
                return found.irrep(wfnsym)
        return int(wfnsym) % 10

    # ---- densities ----

    def make_rdm1s(self, fcivec: Any, norb: int, nelec: Any, **_: Any) -> tuple[Matrix, Matrix]:
        """D[p, q] = <q+ p> of each spin."""
        found = _handle(fcivec, norb, nelec).densities()
        return found.alpha.T.copy(), found.beta.T.copy()

    def make_rdm1(self, fcivec: Any, norb: int, nelec: Any, **_: Any) -> Matrix:
        """D[p, q] = <q+ p> of both spins together."""
        return np.ascontiguousarray(_handle(fcivec, norb, nelec).densities().one.T)

    def make_rdm12s(self, fcivec: Any, norb: int, nelec: Any, **_: Any) -> Any:
        """The densities of `make_rdm1s`, and D[p, q, r, s] = <p+ r+ s q> of (alpha-alpha, alpha-beta,
        beta-beta)."""
        found = _handle(fcivec, norb, nelec).densities()
        return (found.alpha.T.copy(), found.beta.T.copy()), (found.same_alpha, found.mixed, found.same_beta)

    def make_rdm12(self, fcivec: Any, norb: int, nelec: Any, **_: Any) -> tuple[Matrix, Matrix]:
        """The densities of `make_rdm12s`, of both spins together."""
        found = _handle(fcivec, norb, nelec).densities()
        return np.ascontiguousarray(found.one.T), found.two

    def make_rdm2(self, fcivec: Any, norb: int, nelec: Any, **_: Any) -> Matrix:
        return _handle(fcivec, norb, nelec).densities().two

    def make_rdm3(self, fcivec: Any, norb: int, nelec: Any, **_: Any) -> Matrix:
        """D[p, q, r, s, t, u] = <p+ r+ t+ u s q> of both spins together. Collective."""
        vector = _handle(fcivec, norb, nelec)
        return vector.ci.make_rdm3(vector.root)

    def make_rdm123(self, fcivec: Any, norb: int, nelec: Any, **_: Any) -> tuple[Matrix, Matrix, Matrix]:
        """Densities of one, two and three particles, as `make_rdm12` and `make_rdm3`. Collective."""
        return *self.make_rdm12(fcivec, norb, nelec), self.make_rdm3(fcivec, norb, nelec)

    def trans_rdm1s(self, cibra: Any, ciket: Any, norb: int, nelec: Any, **_: Any) -> tuple[Matrix, Matrix]:
        """D[p, q] = <bra| q+ p |ket> of each spin."""
        found = _handle(cibra, norb, nelec).densities(_handle(ciket, norb, nelec))
        return found.alpha.T.copy(), found.beta.T.copy()

    def trans_rdm1(self, cibra: Any, ciket: Any, norb: int, nelec: Any, **_: Any) -> Matrix:
        return np.ascontiguousarray(_handle(cibra, norb, nelec).densities(_handle(ciket, norb, nelec)).one.T)

    def trans_rdm12s(self, cibra: Any, ciket: Any, norb: int, nelec: Any, **_: Any) -> Any:
        """The densities of `trans_rdm1s`, and those of two particles, of (alpha-alpha, alpha-beta, beta-alpha,
        beta-beta)."""
        found = _handle(cibra, norb, nelec).densities(_handle(ciket, norb, nelec))
        mixed = found.mixed, np.ascontiguousarray(found.mixed.transpose(2, 3, 0, 1))
        return (found.alpha.T.copy(), found.beta.T.copy()), (found.same_alpha, *mixed, found.same_beta)

    def trans_rdm12(self, cibra: Any, ciket: Any, norb: int, nelec: Any, **_: Any) -> tuple[Matrix, Matrix]:
        found = _handle(cibra, norb, nelec).densities(_handle(ciket, norb, nelec))
        return np.ascontiguousarray(found.one.T), found.two

    # ---- vectors ----

    def absorb_h1e(self, h1e: Any, eri: Any, norb: int, nelec: Any, fac: float = 1.0) -> Any:
        """As in PySCF: adds one-electron integrals to two-electron ones, for `contract_2e`."""
        return direct_spin1.absorb_h1e(h1e, eri, norb, nelec, fac)

    def contract_2e(self, eri: Any, fcivec: Any, norb: int, nelec: Any, *_: Any, **__: Any) -> CIVector:
        """sum_pqrs eri[pq, rs] E_pq E_rs on a state: a vector, not normalized. Collective."""
        vector = _handle(fcivec, norb, nelec)
        ci, world = vector.ci, self.world
        irreps = ci.hamiltonian.irreps[ci.hamiltonian.positions]
        made: Any = None
        with world.together("product with a CI Hamiltonian", norb):
            if world.rank == 0:
                full = ao2mo.restore(1, np.asarray(eri), norb)
                made = self._hamiltonian(np.einsum("pqqs->ps", full), 2 * full, norb, irreps, 0.0)
        found: Hamiltonian = world.broadcast(made)
        solved = ci.solved
        plan, tiling = solved.plan, solved.tiling
        product = vectors.make(world, tiling, plan.kind, cache_bytes=plan.cache_bytes)
        with world.together("CI kernel"):
            kernel = solver.make_kernel(ci.space, found)
        sigma = Sigma(
            world, kernel, tiling, plan.tasks, deal=plan.deal, threads=ci.threads, overlaps=plan.overlaps
        )
        sigma.apply(vector.place, Place(product, 0))
        sigma.close()
        return self._held(ci, product)

    def transform_ci_for_orbital_rotation(self, fcivec: Any, norb: int, nelec: Any, u: Any) -> CIVector:
        """A state in orbitals rotated by u[old, new], or by one matrix for each spin. Collective."""
        vector = _handle(fcivec, norb, nelec)
        h = vector.ci.hamiltonian
        pair = [u, u] if isinstance(u, np.ndarray) and u.ndim == 2 else list(u)
        order = np.ix_(h.permutation, h.permutation)
        alpha, beta = (np.asarray(self.world.broadcast(each), np.float64)[order] for each in pair)
        return self._held(vector.ci, rotated(vector.ci.solved, vector.root, h, alpha, beta))

    def _held(self, ci: FCI, states: Vectors) -> CIVector:
        """A handle of a vector of the same space."""
        other = copy.copy(ci)
        other._solved, other._densities = replace(ci.solved, states=states), {}
        handle = CIVector(other, 0)
        self._open.insert(0, (other, [weakref.ref(handle)]))
        return handle

    # ---- analysis ----

    def spin_square(self, fcivec: Any, norb: int, nelec: Any) -> tuple[float, float]:
        """<S^2> and 2S+1, if both spins have the same orbitals."""
        vector = _handle(fcivec, norb, nelec)
        square = analysis.spin_square(vector.ci.target.electrons, vector.densities())
        return square, float(2 * (np.sqrt(max(square, 0.0) + 0.25) - 0.5) + 1)

    def large_ci(self, fcivec: Any, norb: int, nelec: Any, tol: float = 0.1, return_strs: bool = True) -> Any:
        """Determinants whose coefficients are larger than `tol`, or the largest one: lists of (coefficient, alpha,
        beta), strings of bits or lists of orbitals."""
        vector = _handle(fcivec, norb, nelec)
        count = min(int(1 / max(tol, 1e-3) ** 2) + 1, vector.determinants)
        found = vector.ci.largest(vector.root, count)
        chosen = [each for each in found if abs(each.coefficient) > tol] or found[:1]
        if return_strs:
            return [(each.coefficient, bin(each.alpha), bin(each.beta)) for each in chosen]
        return [(each.coefficient, listed(each.alpha), listed(each.beta)) for each in chosen]

    def energy(self, h1e: Any, eri: Any, fcivec: Any, norb: int, nelec: Any, **_: Any) -> float:
        """<H> of a state for these integrals (Hartree)."""
        vector = _handle(fcivec, norb, nelec)
        of_these = self._hamiltonian(h1e, eri, norb, None, 0.0)
        return vector.densities().energy(of_these)

    def gen_linkstr(self, *_: Any, **__: Any) -> Any:
        """Refused: methods that ask for it work on vectors in memory."""
        raise OutcoreError(
            errno.ENOTSUP,
            "FCISolver",
            detail="its vectors are no arrays; use CASSCF's mc1step (the default), not mc.newton()",
        )

    def fix_spin_(self, shift: float | None = None, ss: float | None = None) -> Self:
        """Restricts states to those with <S^2> = ss = S(S + 1): `spin` becomes 2S. mc.fix_spin_ does the same.

        shift: the new setting `spin_shift` (Hartree); None: it stays. ss: None: that of the fewest unpaired
        electrons. Raises OutcoreError (EINVAL): no spin has this <S^2>."""
        spin = None if ss is None else round(np.sqrt(1 + 4 * max(ss, 0.0)) - 1)
        if ss is not None and spin is not None and abs(spin * (spin + 2) / 4 - ss) > _SAME_SQUARE:
            raise OutcoreError(errno.EINVAL, "FCISolver", detail=f"<S^2> = {ss:g} is S(S + 1) of no spin")
        self.spin = spin
        if shift is not None:
            self.settings = replace(self.settings, spin_shift=float(shift))
        return self

    fix_spin = fix_spin_

    # ---- life ----

    def dump_flags(self, verbose: Any = None) -> Any:
        log = lib.logger.new_logger(self, verbose)
        log.info("******** %s ********", type(self).__name__)
        log.info("conv_tol = %g, max_cycle = %d, nroots = %d", self.conv_tol, self.max_cycle, self.nroots)
        log.info(
            "memory = %s, precision = %s",
            self.memory_bytes or "half of the free memory",
            self.settings.precision,
        )
        return self

    def check_sanity(self) -> Any:
        return self

    def close(self) -> None:
        """Drops all states, except those in the checkpoint. Collective."""
        for ci, _ in self._open:
            ci.close()
        self._open.clear()


def _handle(vector: Any, norb: int, nelec: Any) -> CIVector:
    """The vector, if it is a state of these orbitals and electrons. Raises OutcoreError (EINVAL) otherwise."""
    if not isinstance(vector, CIVector):
        raise OutcoreError(
            errno.EINVAL, "FCISolver", detail=f"a {type(vector).__name__} is no state that it has found"
        )
    orbitals, electrons = vector.ci.hamiltonian.orbitals, vector.ci.target.electrons
    wanted = int(nelec) if np.ndim(nelec) == 0 else tuple(int(each) for each in nelec)
    if norb != orbitals or wanted not in (electrons, sum(electrons)):
        raise OutcoreError(
            errno.EINVAL,
            "FCISolver",
            detail=f"a state of {electrons} electrons in {orbitals} orbitals is none of {nelec} in {norb}",
        )
    return vector


def _listed(states: Any) -> list[Any]:
    return list(states) if isinstance(states, list | tuple) else [states]
