"""The orbitals of kept amplitudes. Semicanonical and natural orbitals, which are made from the reference, differ
when they are recomputed: degenerate ones by any rotation. So another run takes the kept orbitals, if they span the
same spaces."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.keep.stages import Stage, Stages, damaged

if TYPE_CHECKING:
    from outcore.arrays.disk_array import DiskArray
    from outcore.chem.cc.equations.orbitals import CorrelatedOrbitals
    from outcore.job.world import World
    from outcore.keep.problem import Problem

Values = np.ndarray[Any, np.dtype[Any]]

NAME = "correlated"
_SPANNED = 1e-6  # largest error of the square of an overlap of orbitals of the same space
_SAME_FOCK = 1e-7  # Hartree
_CACHE_BYTES = 1 << 20


def taken(
    world: World, directory: Path, problem: Problem, overlap: Values, spins: list[CorrelatedOrbitals]
) -> list[CorrelatedOrbitals]:
    """The orbitals of the checkpoint, if they are of this problem, span the spaces of `spins`, and have the same
    Fock matrix; else `spins`. overlap: of basis functions. Collective.

    Raises OutcoreError: EIO (damaged)."""
    try:
        found = Stage(Stages(world, directory), NAME, problem).open(
            lambda array: "", cache_bytes=_CACHE_BYTES, read_only=True
        )
    except OutcoreError as error:
        if error.errno in (errno.EINVAL, errno.ENOTSUP):  # the orbitals are of another problem
            return spins
        raise
    if found is None:
        return spins
    values = np.empty(found.shape)
    found.read_all(values)
    sizes = found.metadata.get("sizes")
    found.close()
    with world.together("take kept orbitals"):
        wanted = [list(each.coefficients.shape) for each in spins]
        if sizes != wanted:
            return spins  # fewer natural orbitals, say: amplitudes are refused
        if values.size != sum(_length(*each) for each in wanted) or not np.isfinite(values).all():
            raise damaged(
                "take kept orbitals", directory / NAME, "orbitals are no numbers; remove it and run again"
            )
        kept: list[CorrelatedOrbitals | None] = []
        begin = 0
        for each in spins:
            functions, orbitals = each.coefficients.shape
            part = values[begin : begin + _length(functions, orbitals)]
            begin += len(part)
            coefficients, fock = np.split(part, [functions * orbitals])
            kept.append(
                _agreeing(each, coefficients.reshape(functions, -1), fock.reshape(orbitals, -1), overlap)
            )
    return spins if any(each is None for each in kept) else [each for each in kept if each is not None]


def _length(functions: int, orbitals: int) -> int:
    return (functions + orbitals) * orbitals


def _agreeing(
    spin: CorrelatedOrbitals, coefficients: Values, fock: Values, overlap: Values
) -> CorrelatedOrbitals | None:
    if spin.missing:
        return spin
    n = len(spin.fock)
    rotation = np.zeros((n, n))
    for box in spin.boxes():
        between = spin.coefficients[:, box].T @ overlap @ coefficients[:, box]
        if not abs(between.T @ between - np.eye(between.shape[1])).max(initial=0.0) < _SPANNED:
            return None
        rotation[box, box] = between
    if not abs(rotation.T @ spin.fock @ rotation - fock).max() < _SAME_FOCK:
        return None  # perhaps another Hamiltonian
    turned = None if spin.turned is None else spin.turned @ rotation
    return replace(
        spin, coefficients=np.ascontiguousarray(coefficients), fock=np.ascontiguousarray(fock), turned=turned
    )


def keep(world: World, directory: Path, problem: Problem, spins: list[CorrelatedOrbitals]) -> None:
    """Keeps orbitals, in place of older ones. Collective."""
    values = np.concatenate([part.ravel() for each in spins for part in (each.coefficients, each.fock)])
    stage = Stage(Stages(world, directory), NAME, problem)
    chunk = (min(len(values), _CACHE_BYTES // (4 * values.itemsize)),)
    array: DiskArray = stage.make(values.shape, chunk, _CACHE_BYTES)
    with world.together("keep orbitals"):
        if world.rank == 0:
            array.put(np.s_[...], values)
    array.sync()
    world.barrier()
    stage.complete(array, sizes=[list(each.coefficients.shape) for each in spins])
    array.close()
