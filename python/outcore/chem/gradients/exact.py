"""Coulomb and exchange energies with exact integrals: PySCF contracts derivatives of the integrals as it computes
them; shells are tasks of all processes. That is so for stored integrals, too: what is stored are integrals, not
their derivatives, so an SCF that stores them has no faster gradient than a direct one. The native contraction is
that of fitted integrals (`three_index`)."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.gradients.forecast import DERIVATIVES, PredictedPart
from outcore.parallel import team
from outcore.parallel.tasks import tasks_of

if TYPE_CHECKING:
    from outcore.chem.gradients.densities import Densities, Matrix
    from outcore.job.world import World
    from outcore.parallel.tasks import Progress

_DOUBLE = 8
_TASKS = 8  # fewest tasks for each process, so that all end at about the same time


def least_bytes(mol: Any, spins: int, threads: int, *, changed: bool) -> int:
    """Bytes that `exact` needs in each process."""
    largest = int(np.diff(mol.ao_loc_nr()).max())
    return _held_bytes(mol, spins, changed=changed) + _block_bytes(mol, spins, threads, changed) * largest


def _sets(spins: int, changed: bool) -> int:
    """Number of density matrices."""
    return spins * (2 if changed else 1)


def _held_bytes(mol: Any, spins: int, *, changed: bool) -> int:
    """Bytes of densities, with copies, and of bounds of pairs of shells."""
    return (6 * _sets(spins, changed) * int(mol.nao) ** 2 + 4 * int(mol.nbas) ** 2) * _DOUBLE


def _block_bytes(mol: Any, spins: int, threads: int, changed: bool) -> int:
    """Bytes of J and K of one basis function, three components, at each thread and as the sum."""
    return (threads + 2) * 3 * 2 * _sets(spins, changed) * int(mol.nao) * _DOUBLE


def exact(
    world: World,
    mol: Any,
    densities: Densities,
    threads: int,
    free_bytes: int,
    progress: Progress | None = None,
) -> Matrix:
    """[atom][x] of this process's share (Hartree/Bohr), in `free_bytes`, which must not be less than the least.
    The energy is Coulomb and exchange within the density of the SCF, and between it and the correction.
    Collective."""
    from pyscf import lib

    weight, changed = densities.weight, any(each.change is not None for each in densities.spins)
    of_scf = [each.of_scf for each in densities.spins]
    # E = sum p_mn (mn|ls) d_ls - ..: bilinear, with half of the SCF's own density in p
    halved = [each.of_scf / 2 + each.changed for each in densities.spins] if changed else []
    total, half = weight * np.sum(of_scf, axis=0), weight * np.sum(halved or of_scf, axis=0)
    given = np.array([*of_scf, *halved])
    spins, found = len(of_scf), np.zeros((mol.natm, 3))
    left = free_bytes - _held_bytes(mol, spins, changed=changed)
    blocks = _blocks(mol, left // _block_bytes(mol, spins, threads, changed), world.size)
    counter = world.counter()
    with world.together("derivatives of two-electron integrals"), lib.with_omp_threads(threads):
        screened = _screened(mol)
        functions, atoms = mol.ao_loc_nr(), np.repeat(np.arange(mol.natm), _functions_of_atoms(mol))

        def work(_thread: int, task: int) -> None:
            first, last = blocks[task]
            j, k = _contracted(mol, given, screened, first, last)
            box = slice(int(functions[first]), int(functions[last]))
            j_scf = weight * np.sum(j[:spins], axis=0)
            force = np.einsum("xmn,mn->mx", j_scf, half[box])
            for spin in range(spins):
                other = given[spins + spin] if changed else given[spin]
                force -= weight * np.einsum("xmn,mn->mx", k[spin], other[box])
            if changed:
                force += np.einsum("xmn,mn->mx", weight * np.sum(j[spins:], axis=0), total[box])
                for spin in range(spins):
                    force -= weight * np.einsum("xmn,mn->mx", k[spins + spin], given[spin][box])
            # nabla stands on a function, whose atom moves the other way
            np.add.at(found, atoms[box], -2 * force)
            if progress is not None:
                progress((task + 1) / len(blocks))

        team.each(tasks_of(counter, len(blocks)), 1, work)
    return found


def _screened(mol: Any) -> Any:
    from pyscf.grad import rhf
    from pyscf.scf import _vhf

    screened = _vhf._VHFOpt(mol, "int2e_ip1", "CVHFgrad_jk_prescreen", dmcondname="CVHFnr_dm_cond1")
    screened.q_cond = rhf._calc_q_cond(mol, screened)
    return screened


def _contracted(mol: Any, given: Matrix, screened: Any, first: int, last: int) -> Any:
    """J and K of densities `given` [set][n][n] with derivatives by the functions of shells first .. last - 1."""
    from pyscf.scf import _vhf

    return _vhf.direct_mapdm(
        mol._add_suffix("int2e_ip1"),
        "s2kl",
        ("lk->s1ij", "jk->s1il"),
        given,
        3,
        mol._atm,
        mol._bas,
        mol._env,
        vhfopt=screened,
        shls_slice=(first, last, *(0, mol.nbas) * 3),
    )


def seconds(mol: Any, spins: int, threads: int) -> float:
    """Predicted seconds of one process for all of `exact`, from one shell of each kind. Not collective."""
    from pyscf import lib
    from pyscf.scf import hf

    kinds = [(mol.bas_angular(b), mol.bas_nprim(b), mol.bas_nctr(b)) for b in range(mol.nbas)]
    given = np.array([hf.init_guess_by_minao(mol) / 2] * spins)
    total = 0.0
    with lib.with_omp_threads(threads):
        screened = _screened(mol)
        for kind, count in Counter(kinds).items():
            shell = [number for number, each in enumerate(kinds) if each == kind][count // 2]
            begin = time.perf_counter()
            _contracted(mol, given, screened, shell, shell + 1)
            total += count * (time.perf_counter() - begin)
    return total


def parts(mol: Any, world: World, spins: int, threads: int) -> dict[str, PredictedPart]:
    """The estimate of a gradient: nothing of it is on disk. Collective."""
    found = 0.0
    with world.together("estimate"):
        if world.rank == 0:
            found = seconds(mol, spins, threads)
    return {DERIVATIVES: PredictedPart(world.broadcast(found) / world.size)}


def _functions_of_atoms(mol: Any) -> Any:
    slices = mol.aoslice_by_atom()
    return slices[:, 3] - slices[:, 2]


def _blocks(mol: Any, most: int, processes: int) -> list[tuple[int, int]]:
    """Neighbouring shells with at most `most` functions together, or one shell; several for each process."""
    functions = mol.ao_loc_nr()
    most = min(most, max(1, int(functions[-1]) // (_TASKS * processes)))
    blocks, begin = [], 0
    while begin < mol.nbas:
        end = begin + 1
        while end < mol.nbas and functions[end + 1] - functions[begin] <= most:
            end += 1
        blocks.append((begin, end))
        begin = end
    return blocks
