"""A pass over derivatives of three-index integrals (P|mn) and of the metric (P|Q), contracted as they are made:

    dE = sum_P,mn Z[P,mn] d(P|mn) + sum_PQ Y[P,Q] d(P|Q)

The pass asks for Z, a three-index density, in slabs of auxiliary functions; no derivative is stored.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from outcore import _core
from outcore.parallel import team
from outcore.parallel.tasks import STOP, each_task, tasks_of

if TYPE_CHECKING:
    from outcore.chem.gradients.densities import Matrix
    from outcore.chem.ri.rows import FittedRows
    from outcore.job.world import World
    from outcore.parallel.tasks import Progress

MakeSlab = Callable[[int, slice, "Matrix"], None]  # thread, rows P, and Z [rows][columns], which it fills


class SlabKeeper(Protocol):
    """Keeps the results of slabs, from which another run goes on. Collective."""

    def rows(self, most: int) -> int:
        """Rows of a slab, `most` at most."""

    def tasks(self, count: int, rows: int, width: int) -> Any:
        """An object that keeps `width` numbers of each of `count` slabs, as `chem.cc.keep.kept.KeptTasks`."""


_DOUBLE = 8
_METRIC_ROWS = 64  # functions whose derivatives are made together, if no shell has more


def slab_bytes(columns: int) -> int:
    """Bytes of one auxiliary function of a slab, at each thread."""
    return columns * _DOUBLE


def metric_bytes(auxiliary: int) -> int:
    """Bytes of derivatives of the metric, beside Y."""
    return 5 * _METRIC_ROWS * auxiliary * _DOUBLE


def three_index(
    world: World,
    mol: Any,
    rows: FittedRows,
    most: int,
    threads: int,
    make: MakeSlab,
    progress: Progress | None = None,
    keeper: SlabKeeper | None = None,
) -> Matrix:
    """[atom][x] of sum Z d(P|mn), this process's share (Hartree/Bohr). rows: the auxiliary set, and pairs of
    functions m, n. make: fills Z of these pairs, symmetric in m and n, in slabs of at most `most` auxiliary
    functions, or of one shell. Collective."""
    native = native_derivatives(mol, rows.auxmol)
    most = most if keeper is None else keeper.rows(most)
    blocks = rows.blocks(most)
    counter = world.counter()
    with world.together("derivatives of three-index integrals"):
        longest = max(each.stop - each.start for _, each in blocks)
        buffers = [np.empty((longest, rows.columns)) for _ in range(threads)]
        found = [np.zeros((mol.natm, 3)) for _ in range(threads)]

        def add(thread: int, task: int, out: Matrix) -> None:
            shells, box = blocks[task]
            z = buffers[thread][: box.stop - box.start]
            make(thread, box, z)
            native.add(rows.pairs.table, shells.start, shells.stop, z, out, 1)

        if keeper is None:

            def work(thread: int, task: int) -> None:
                add(thread, task, found[thread])

            each_task(counter, len(blocks), threads, work, progress)
            return np.asarray(sum(found[1:], found[0]))
    kept = keeper.tasks(len(blocks), most, found[0].size)
    total = _kept(world, counter, kept, threads, add, found[0].shape, progress)
    return total if world.rank == 0 else np.zeros_like(total)


def _kept(
    world: World,
    counter: Any,
    kept: Any,
    threads: int,
    add: Callable[[int, int, Matrix], None],
    shape: tuple[int, int],
    progress: Progress | None,
) -> Matrix:
    """The sum of all slabs, at all processes; those that another run has kept are not recomputed."""
    left = np.flatnonzero(kept.before[-1] == 0)
    stream = tasks_of(counter, len(left))

    def until(deadline: float) -> Iterator[int]:
        for number in stream:
            yield number
            if time.monotonic() > deadline:
                kept.exhausted = False
                return

    def work(thread: int, number: int) -> None:
        slab = np.zeros(shape)
        add(thread, int(left[number]), slab)
        kept.finish(int(left[number]), slab.ravel())
        if progress is not None and thread == 0:
            progress((number + 1) / len(left))

    while kept.more():
        deadline = kept.deadline()
        with world.together("derivatives of three-index integrals"):
            kept.exhausted = True
            team.each(until(deadline), threads, work, stop=lambda: counter.next(STOP))
    if progress is not None:
        progress(1.0)
    return np.asarray(kept.result()).reshape(shape)


def metric(mol: Any, auxmol: Any, y: Matrix) -> Matrix:
    """[atom][x] of sum Y d(P|Q) (Hartree/Bohr). Not collective: y [P][Q] may be a part of it, which need not be
    symmetric."""
    found, first = np.zeros((mol.natm, 3)), auxmol.ao_loc_nr()
    atoms = auxmol._bas[:, 0]
    begin = 0
    while begin < auxmol.nbas:
        end = begin + 1
        while end < auxmol.nbas and first[end + 1] - first[begin] <= _METRIC_ROWS:
            end += 1
        box = slice(int(first[begin]), int(first[end]))
        derivative = auxmol.intor("int2c2e_ip1", comp=3, shls_slice=(begin, end, 0, auxmol.nbas))
        both = y[box] + y[:, box].T
        force = np.einsum("xPQ,PQ->Px", derivative, both)
        np.add.at(found, np.repeat(atoms[begin:end], np.diff(first[begin : end + 1])), -force)
        begin = end
    return found


def native_derivatives(mol: Any, auxmol: Any) -> Any:
    """Derivatives of the integrals of both bases for the native code, with the libcint that PySCF has loaded.
    Auxiliary functions stand on the atoms of the molecule."""
    from pyscf import gto
    from pyscf.gto.moleintor import libcgto

    def address(name: str) -> int:
        return int(ctypes.cast(getattr(libcgto, name), ctypes.c_void_p).value or 0)

    assert np.array_equal(mol.atom_coords(), auxmol.atom_coords())
    atm, bas, env = gto.conc_env(mol._atm, mol._bas, mol._env, auxmol._atm, auxmol._bas, auxmol._env)
    bas = np.array(bas, np.int32)
    bas[mol.nbas :, gto.ATOM_OF] -= mol.natm
    return _core.ThreeCenterGradient(
        np.ascontiguousarray(atm[: mol.natm], np.int32).ravel(),
        bas.ravel(),
        np.ascontiguousarray(env, np.float64),
        mol.nbas,
        bool(mol.cart),
        address("int3c2e_ip1_cart" if mol.cart else "int3c2e_ip1_sph"),
        address("int3c2e_ip1_optimizer"),
        address("CINTdel_optimizer"),
    )
