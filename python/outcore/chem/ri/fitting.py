"""Density fitting for PySCF's mean-field methods, with the three-index integrals of `ThreeIndex`."""

from __future__ import annotations

import copy
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pyscf import df, lib

from outcore.arrays.disk_array import DiskArray
from outcore.base import keywords
from outcore.base.errors import OutcoreError
from outcore.chem.logs import INFO, NOTE, tell
from outcore.chem.method import Means
from outcore.chem.molecule import integrals_key
from outcore.chem.ri import auxiliary
from outcore.chem.ri import pairs as pair_lists
from outcore.chem.ri.jk import JKRequest, jk
from outcore.chem.ri.plan import check_storage, min_for_integrals
from outcore.chem.ri.symmetry import FittingSymmetry, sizes
from outcore.chem.ri.three_index import ThreeIndex
from outcore.chem.symmetry import known_group
from outcore.job import launch
from outcore.job.processes import JOB, free_memory, make_world
from outcore.job.resources import Allowance, parse_bytes
from outcore.job.world import World
from outcore.keep.stages import Stages

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm
    from pyscf.gto import Mole

Matrix = np.ndarray[Any, np.dtype[np.float64]]

SCREENING = 1e-11


class DensityFitting(df.DF):  # type: ignore[misc]
    """A `with_df` of PySCF whose integrals lie in memory and on disk, at all processes of a job.

    Parameters: `auxbasis` (see `auxiliary.build`), `memory` (of all processes together, in bytes or as "400MB";
    default half of the available memory), `scratch` (directory), `threads` (of each process), `screening` (of
    pairs of functions, see Pairs), `comm` (an mpi4py communicator or an outcore.World; default all processes of
    the job, None for this process alone), `storage` ("auto": integrals stay in memory as far as they fit; "disk"),
    `checkpoint` (directory where the integrals are kept, or found, if another run has made them; not those of
    range-separated operators), `operators` (how many Coulomb operators share the memory: 2 for range-separated
    hybrids), `spins` (2: the densities of both spins differ, and take twice the memory), `group` (point group by
    which integrals stand for others: a name of D2h or of its subgroups; default the largest that the molecule has;
    "C1": none).

    `build`, `get_jk`, `reset` and `close` are collective; the density of rank 0 counts. The first step that needs
    the integrals calls `build`. After that `loop` is not collective. Integrals of a molecule that has changed are
    recomputed. Raises OutcoreError, the same on all processes.
    """

    _auxbasis: Any
    _keys = {"threads", "screening", "three_index", "group"}  # noqa: RUF012  (PySCF's convention)

    @keywords.checked()
    def __init__(
        self,
        mol: Mole,
        auxbasis: Any = None,
        *,
        memory: int | str | None = None,
        scratch: str | None = None,
        threads: int | None = None,
        screening: float = SCREENING,
        comm: Intracomm | World | None = JOB,
        storage: str = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        operators: int = 1,
        spins: int = 1,
        group: str | None = None,
    ) -> None:
        super().__init__(mol, auxbasis)
        self.group = None if group is None else known_group(group)
        self._storage = check_storage(storage)
        self._checkpoint = None if checkpoint is None else Path(checkpoint)
        self._operators, self._spins = operators, spins
        self.threads = threads or launch.threads_per_rank()
        self.screening = screening
        self.three_index: ThreeIndex | None = None
        self._least_before = 0.0  # least_bytes of integrals that have been closed
        self._memory_bytes = None if memory is None else parse_bytes(memory)
        self._scratch = scratch
        self._owns_world = not isinstance(comm, World)
        self._world: World | None = comm if isinstance(comm, World) else None
        self._comm = None if isinstance(comm, World) else launch.world() if comm is JOB else comm
        self._key = ""
        self._rsh_df: dict[str, DensityFitting] = {}

    # ---- processes and memory ----

    @property
    def world(self) -> World:
        """The processes of this object. The first call is collective."""
        if self._world is None or self._world.closed:  # its maker may have closed it
            self._owns_world = True
            self._world = make_world(self._comm, self._memory_bytes, self._scratch)
        return self._world

    def free_memory(self) -> Allowance:
        """Free memory of this process, for one of the operators that share it."""
        free = free_memory(self.world, self._memory_bytes, self.threads)
        return Allowance(free.bytes // (1 if self.mol.omega else self._operators), free.reason)

    def means(self) -> Means:
        """Resources of this object, for other steps that use the same."""
        return Means(self.world, self._memory_bytes, self.threads)

    @property
    def given_auxbasis(self) -> Any:
        """The auxiliary basis as the user gave it: a name, functions, or None."""
        return self._auxbasis

    @property
    def storage(self) -> str:
        """The place of integrals: in memory as far as they fit ("auto"), or all on disk ("disk")."""
        return self._storage

    def min_bytes(self) -> int:
        """The least memory of each process for integrals, J and K of the present molecule. Collective, as `world`
        is."""
        symmetry = FittingSymmetry.find(self.world, self.mol, self.auxiliary_molecule(), self.group)
        found = sizes(
            symmetry,
            np.array(pair_lists.native(symmetry.mol, symmetry.auxmol).bounds(self.threads)),
            screening=self.screening,
            orbitals=max(*self.mol.nelec, 1),
            spins=self._spins,
        )
        transfer = DiskArray.transfer_bytes(self.world)
        return min_for_integrals(found, self.world.size, self.threads, self._storage, transfer_bytes=transfer)

    @property
    def least_bytes(self) -> float:
        """Bytes that all processes together had to move to and from disk so far, in this memory; see
        docs/why/bounds.md."""
        present = 0.0 if self.three_index is None else self.three_index.least_bytes
        return self._least_before + present + sum(each.least_bytes for each in self._rsh_df.values())

    # ---- integrals, J and K for PySCF ----

    def build(self) -> Self:
        """Makes the integrals of the present molecule, at the present omega. Collective."""
        self.prepare()
        self.integrals()
        return self

    def prepare(self) -> ThreeIndex:
        """Plans new integrals in place of existing ones. Collective."""
        self.close_integrals()
        with self.world.together("auxiliary basis", self.title):
            self.auxmol = self.auxiliary_molecule()
            auxiliary.warn(self.auxmol, "jk", self.world)
        self._key = self._present_key()
        self.three_index = ThreeIndex(
            self.world,
            self.mol,
            self.auxmol,
            orbitals=max(*self.mol.nelec, 1),
            spins=self._spins,
            free_memory=self.free_memory,
            threads=self.threads,
            screening=self.screening,
            storage=self._storage,
            stages=None if self._checkpoint is None else Stages(self.world, self._checkpoint),
            group=self.group,
        )
        return self.three_index

    def auxiliary_molecule(self) -> Mole:
        """The present molecule with the auxiliary basis. Not collective."""
        return auxiliary.build(self.mol, self._auxbasis)

    def _present_key(self) -> str:
        return f"{integrals_key(self.mol)} {self.title} {self.screening!r} {self.group}"

    def integrals(self) -> ThreeIndex:
        """The integrals of the present molecule. Builds them if there are none; then it is collective."""
        if self.three_index is None or self._key != self._present_key():
            self.prepare()
        assert self.three_index is not None
        if self.three_index.build():
            made = self.three_index
            tell(self, INFO, "density fitting: %s", made.summary(self.auxmol))
            for line in made.symmetry.found.lines():
                tell(self, INFO, "density fitting: %s", line)
            if made.dropped:
                tell(
                    self,
                    NOTE,
                    "%d of %d auxiliary basis functions (omega = %g) are linearly dependent and left out",
                    *(made.dropped, made.metric_functions, self.mol.omega or 0),
                )
        return self.three_index

    def get_naoaux(self) -> int:
        return self.integrals().rows

    def loop(self, blksize: int | None = None) -> Iterator[Matrix]:
        """Yields B in blocks of rows [rows][n(n+1)/2], with pairs packed as in PySCF. Each block is a new array."""
        integrals = self.integrals()
        for batch in integrals.rows_of(blksize or self.blockdim):
            yield lib.pack_tril(integrals.matrices(batch))

    def get_jk(
        self,
        dm: Any,
        hermi: int = 1,
        with_j: bool = True,
        with_k: bool = True,
        direct_scf_tol: float = 0.0,
        omega: float | None = None,
    ) -> tuple[Any, Any]:
        """J and K [...][n][n] of density matrices [...][n][n]. Collective.

        omega: of the range-separated Coulomb operator, erf(omega r) / r, or erfc if negative; its integrals are
        made once and kept in addition to the others.
        """
        if np.iscomplexobj(dm):
            (j, k), (j_imag, k_imag) = (
                self.get_jk(np.asarray(each), 0, with_j, with_k, 0.0, omega) for each in (dm.real, dm.imag)
            )
            return (j + 1j * j_imag if with_j else None), (k + 1j * k_imag if with_k else None)
        shape = np.shape(dm)
        omega = float((self.mol.omega if omega is None else omega) or 0.0)
        asked = (JKRequest.of(dm, with_j=with_j, with_k=with_k), omega, self.title)
        request, omega, _ = self.world.broadcast(asked)
        j, k = self.answer(request, omega)
        return (None if j is None else j.reshape(shape)), (None if k is None else k.reshape(shape))

    def answer(self, request: JKRequest, omega: float) -> tuple[Any, Any]:
        """J and K of a request that all processes have. Collective."""
        if omega != (self.mol.omega or 0.0):
            with self.range_coulomb(omega) as other:
                return other.answer(request, omega)
        return jk(self.integrals(), request, self.threads, max(*self.mol.nelec, 1))

    @contextmanager
    def range_coulomb(self, omega: float | None) -> Iterator[DensityFitting]:
        """A context with the fitting of the range-separated operator. In it the molecule, and the one with the
        auxiliary basis, have the integrals of that operator, which PySCF's gradients use."""
        key = f"{omega or 0:.6f}"
        if key not in self._rsh_df:
            other = lib.view(self, self.__class__)
            other._forget()
            other._owns_world, other._checkpoint = False, None
            self._rsh_df[key] = other
        with ExitStack() as operators:
            for each in (self.mol, self.auxmol):
                if each is not None:
                    operators.enter_context(each.with_range_coulomb(omega or 0))
            yield self._rsh_df[key]

    # ---- for PySCF ----

    @property
    def auxbasis(self) -> Any:
        """The functions themselves if a name was given: PySCF's gradients may know other functions by that name."""
        if isinstance(self._auxbasis, dict | list):
            return self._auxbasis
        return self.auxiliary_molecule().basis

    @auxbasis.setter
    def auxbasis(self, value: Any) -> None:
        self.close_integrals()
        self.auxmol, self._auxbasis = None, value

    def _refuse_tensor(self, name: str, value: Any) -> None:
        if value is not None:
            raise OutcoreError(
                errno.ENOTSUP,
                "fit densities out of core",
                detail=f"{name} has no effect here: integrals are kept in, and taken from, a directory that is "
                "given as checkpoint; for those of PySCF use PySCF's DF",
            )

    @property
    def _cderi(self) -> None:
        return None

    @_cderi.setter
    def _cderi(self, value: Any) -> None:
        self._refuse_tensor("_cderi", value)

    @property
    def _cderi_to_save(self) -> None:
        return None

    @_cderi_to_save.setter
    def _cderi_to_save(self, value: Any) -> None:
        self._refuse_tensor("_cderi_to_save", value)

    # ---- copies ----

    @property
    def title(self) -> str:
        """A text that distinguishes the fittings of one object, the same at all processes, though a dictionary may
        have its elements in another order."""
        given = self._auxbasis
        return str(sorted(given.items()) if isinstance(given, dict) else given)

    def another(self, auxbasis: Any, comm: World | None = None) -> DensityFitting:
        """A fitting with the same settings and another auxiliary basis, on the same processes if no others are
        given."""
        other: DensityFitting = lib.view(self, self.__class__)
        other._forget()
        other._world, other._owns_world = (self.world if comm is None else comm), False
        other._checkpoint = None  # it has the integrals of one basis
        other._auxbasis = auxbasis
        return other

    def _forget(self) -> None:
        """Drops integrals of the molecule without closing them: other objects use them."""
        self.three_index, self._rsh_df, self.auxmol, self._key = None, {}, None, ""
        self._least_before = 0.0

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        for key in ("three_index", "_world", "_comm", "auxmol", "_key", "_rsh_df"):
            state.pop(key, None)
        return state | {"_alone": self._comm is None and self._owns_world, "_owns_world": True}

    def __setstate__(self, state: dict[str, Any]) -> None:
        alone = state.pop("_alone")
        self.__dict__.update(state, stdout=sys.stdout, _vjopt=None)
        self._world, self._comm = None, None if alone else launch.world()
        self._forget()

    def __deepcopy__(self, memo: dict[int, Any]) -> DensityFitting:
        new = self.__class__.__new__(self.__class__)
        memo[id(self)] = new
        new.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        new._comm, new._owns_world, new.stdout = self._comm, self._owns_world, self.stdout
        new._world = None if self._owns_world else self._world
        return new

    # ---- life ----

    def plan_for(self, operators: int, spins: int) -> None:
        """Makes room for so many operators and spins. Collective: closes integrals that were planned for fewer."""
        if operators > self._operators or spins > self._spins:
            self.close_integrals()
            self._operators, self._spins = max(operators, self._operators), max(spins, self._spins)

    def close_integrals(self) -> None:
        self._least_before = self.least_bytes
        if self.three_index is not None:
            self.three_index.close()
            self.three_index = None
        for other in self._rsh_df.values():
            other.close_integrals()
        self._rsh_df = {}

    def reset(self, mol: Mole | None = None) -> Self:
        """Forgets the integrals and, with an argument, takes another molecule. Collective."""
        self.close_integrals()
        return super().reset(mol)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Drops the integrals, their file and their processes' common memory. Collective."""
        self.close_integrals()
        if self._owns_world and self._world is not None:
            self._world.close()
            self._world = None
