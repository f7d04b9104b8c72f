"""Amplitudes in an HDF5 file, as checkpoint files of PySCF have them: `pyscf.lib.chkfile.load(file, "ccsd")` gives
e_corr, t1, t2 and mo_coeff, those of each spin (aa, ab, bb) in lists. Each of the two programs begins with
amplitudes of the other.

Amplitudes are [i,a] and [i,j,a,b]; mo_coeff are their orbitals, without frozen ones. The present orbitals may
differ from those of the file by a rotation among occupied or among virtual ones.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.base.plain_file import sync_directory
from outcore.chem import problem
from outcore.chem.cc.equations.doubles import spin_pairs
from outcore.chem.formats.hdf5_text import text_of
from outcore.keep import hdf5
from outcore.keep.problem import Problem

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.cc.equations.doubles import Doubles
    from outcore.chem.cc.equations.orbitals import CorrelatedOrbitals
    from outcore.chem.cc.plan.room import Room
    from outcore.job.world import World

Values = np.ndarray[Any, np.dtype[Any]]

_READ = "begin with amplitudes of a file"
_FORMAT = 1
_SPANNED = 1e-5  # largest error of an overlap of orbitals of the same space
_SAME = 1e-7
_SPIN = ("", " of spin alpha", " of spin beta")


def _problem(mol: Mole) -> Problem:
    return Problem("amplitudes of CCSD", _FORMAT, problem.molecule(mol), problem.ROUNDED)


def _names(what: str, count: int) -> list[str]:
    """Names of one array, or of `count` arrays of a list, as PySCF writes them."""
    return [f"ccsd/{what}"] if count == 1 else [f"ccsd/{what}__from_list__/{n:06d}" for n in range(count)]


# ---- out ----


def save(
    path: Path,
    mol: Mole,
    spins: Sequence[CorrelatedOrbitals],
    energy: float,
    singles: Sequence[Values],
    doubles: Sequence[Doubles],
) -> None:
    """Writes a file, which replaces an older one once all is written. Collective.

    Raises OutcoreError: ENOSPC and the like, ENOTSUP (h5py is missing)."""
    world = doubles[0].amplitudes.world
    with (
        _replaced(world, path) as part,
        hdf5.opened(world, part, "w") as file,
        world.together("write amplitudes"),
    ):
        if file is not None:
            with hdf5.translated("write amplitudes", part):
                file["ccsd/e_corr"], file["ccsd/frozen"] = energy, 0
                file["ccsd/problem"] = json.dumps(_problem(mol).as_json())
                for what, values in (
                    ("mo_coeff", [each.coefficients for each in spins]),
                    ("t1", [_true(t, each) for t, each in zip(singles, spins, strict=True)]),
                ):
                    for name, each in zip(_names(what, len(spins)), values, strict=True):
                        file[name] = each
                for name, two in zip(_names("t2", len(doubles)), doubles, strict=True):
                    _write(file, name, two, spins)


@contextmanager
def _replaced(world: World, path: Path) -> Iterator[Path]:
    """A new file, which takes the place of `path` at the end; it is removed after an error."""
    part = path.with_name(f"{path.name}.part")
    try:
        yield part
        with world.together("write amplitudes"):
            if world.rank == 0:
                with open(part, "rb") as file:
                    os.fsync(file.fileno())
                os.replace(part, path)
                sync_directory(path.absolute().parent)
    except BaseException:
        if world.rank == 0:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        raise


def size_bytes(spins: Sequence[CorrelatedOrbitals]) -> int:
    """About how many bytes a file has."""
    excitations = [math.prod(each.sizes) for each in spins]
    return 8 * sum(excitations[s] * excitations[r] for s, r in spin_pairs(len(spins)))


def _true(t1: Values, spin: CorrelatedOrbitals) -> Values:
    return np.zeros(spin.sizes) if spin.missing else t1


def _write(file: Any, name: str, doubles: Doubles, spins: Sequence[CorrelatedOrbitals]) -> None:
    first, second = (spins[s] for s in doubles.spins)
    (i, a), (j, b) = first.sizes, second.sizes
    target = file.create_dataset(name, (i, j, a, b), "f8", fillvalue=0.0)
    if first.missing or second.missing:
        return
    layout = doubles.amplitudes.layout
    for tile in layout.stored:
        _, box_a, _, box_b = _turned(layout.box(tile))
        values = doubles.amplitudes.get_tile(tile).transpose(1, 3, 0, 2)
        target[:, :, box_a, box_b] = values
        if layout.symmetry.order > 1:
            target[:, :, box_b, box_a] = values.transpose(1, 0, 3, 2)


def _turned(box: Any) -> tuple[slice, slice, slice, slice]:
    """A box [a,i,b,j] as slices of i, a, j, b."""
    a, i, b, j = box
    return i, a, j, b


# ---- in ----


def load(
    path: Path,
    mol: Mole,
    overlap: Values,
    room: Room,
    spins: Sequence[CorrelatedOrbitals],
    singles: list[Values],
    doubles: list[Doubles],
) -> None:
    """Reads singles in place, and puts doubles; the caller synchronizes the doubles. overlap: of basis functions.
    Collective.

    Raises OutcoreError: ENOENT, EINVAL (another molecule or basis, other orbitals, or no amplitudes), EIO.
    """
    world = room.world
    with hdf5.opened(world, path, "r") as file:
        found: Any = None
        with world.together(_READ, str(path)):
            if file is not None:
                with hdf5.translated("read", path):
                    found = _read(file, path, mol, overlap, spins)
        values, turns = world.broadcast(found)
        for mine, given, (o, v) in zip(singles, values, turns, strict=True):
            if given.size:
                mine[...] = o.T @ given @ v
        for name, each in zip(_names("t2", len(doubles)), doubles, strict=True):
            first, second = each.spins
            if not (spins[first].missing or spins[second].missing):
                _load(room, file, path, name, each, [*turns[first], *turns[second]])


def _read(file: Any, path: Path, mol: Mole, overlap: Values, spins: Sequence[CorrelatedOrbitals]) -> Any:
    """Singles, and rotations from the orbitals of the file."""
    if "ccsd/problem" in file:
        try:
            record = json.loads(text_of(file["ccsd/problem"], path))
        except ValueError as error:
            raise _refused(path, f"its settings are damaged ({error})") from error
        _problem(mol).check(record, _READ, path)
    count = len(spins)
    names = _names("t1", count)
    pairs = count * (count + 1) // 2
    if any(name not in file for name in (*names, *_names("t2", pairs))):
        other = "closed" if count > 1 else "open"
        there = _names("t1", 3 - count)[0] in file
        raise _refused(
            path, f"it has amplitudes of {other} shells" if there else "it has no t1 and t2 of CCSD"
        )
    singles = [np.asarray(file[name], float) for name in names]
    turns = []
    for number, (spin, t1, given) in enumerate(
        zip(spins, singles, _orbitals(file, path, count), strict=True)
    ):
        which = _SPIN[number + 1 if count > 1 else 0]
        if t1.shape != spin.sizes:
            raise _refused(
                path,
                f"it has {t1.shape[0]} occupied and {t1.shape[1]} virtual orbitals{which}, now there are "
                f"{spin.sizes[0]} and {spin.sizes[1]}",
            )
        turns.append(_turns(path, spin, given, overlap, which))
    if not all(np.isfinite(each).all() for each in singles):
        raise OutcoreError(errno.EIO, _READ, path=path, detail="singles are no numbers")
    for name, (s, r) in zip(_names("t2", pairs), spin_pairs(count), strict=True):
        (i, a), (j, b) = spins[s].sizes, spins[r].sizes
        if file[name].shape != (i, j, a, b):
            raise _refused(path, f"t2 has the shape {file[name].shape}, not {(i, j, a, b)}")
    return singles, turns


def _orbitals(file: Any, path: Path, count: int) -> list[Values]:
    """Orbitals of the file, of each spin, without frozen ones."""
    for group in ("ccsd", "scf"):
        names = [each.replace("ccsd", group) for each in _names("mo_coeff", count)]
        if all(name in file for name in names):
            found = [np.asarray(file[name], float) for name in names]
            break
        if f"{group}/mo_coeff" in file:  # one set for both spins, or an array of both
            whole = np.asarray(file[f"{group}/mo_coeff"], float)
            found = list(whole) if whole.ndim == 3 else [whole] * count
            break
    else:
        raise _refused(path, "it has no mo_coeff: the orbitals of its amplitudes are not known")
    return [
        np.delete(each, frozen, axis=1)
        for each, frozen in zip(found, _frozen(file, path, found), strict=True)
    ]


def _frozen(file: Any, path: Path, orbitals: list[Values]) -> list[Values]:
    """Numbers of the frozen orbitals of each spin, which PySCF's amplitudes do not have."""
    names = [name for name in ("ccsd/frozen", "ccsd/frozen__from_list__") if name in file]
    given = _plain(file[names[0]]) if names else 0
    if not isinstance(given, list):
        given = list(range(int(given)))
    nested = any(isinstance(each, list) for each in given)
    found = [np.array(each, int) for each in (given if nested else [given] * len(orbitals))]
    wrong = len(found) != len(orbitals) or any(
        ((numbers < 0) | (numbers >= each.shape[1])).any()
        for numbers, each in zip(found, orbitals, strict=False)
    )
    if wrong:
        raise _refused(path, "it does not say which orbitals are frozen")
    return found


def _plain(node: Any) -> Any:
    """A number, or a list, which PySCF keeps as an array or as a group of its elements."""
    if hasattr(node, "keys"):
        return [_plain(node[name]) for name in sorted(node)]
    return np.asarray(node[()]).tolist()


def _turns(
    path: Path, spin: CorrelatedOrbitals, given: Values, overlap: Values, which: str
) -> tuple[Values, Values]:
    """<orbitals of the file | present ones>, of occupied and of virtual ones."""
    if spin.missing:
        return np.eye(1), np.eye(1)
    if given.shape != spin.coefficients.shape:
        raise _refused(
            path,
            f"its orbitals{which} are of shape {given.shape}, the present ones {spin.coefficients.shape}",
        )
    found = []
    for kind, box in zip(("occupied", "virtual"), spin.boxes(), strict=True):
        between = given[:, box].T @ overlap @ spin.coefficients[:, box]
        off = float(abs(between.T @ between - np.eye(between.shape[1])).max())
        if not off < _SPANNED:
            raise _refused(
                path, f"its {kind} orbitals{which} are others than the present ones, by {off:.1e} in overlap"
            )
        found.append(between)
    return found[0], found[1]


def _load(room: Room, file: Any, path: Path, name: str, doubles: Doubles, turns: list[Values]) -> None:
    """Puts doubles of a file, turned to the present orbitals. turns: rotations of i, a, j, b."""
    layout, world = doubles.amplitudes.layout, room.world
    signs = [each for each in map(_signs, turns) if each is not None]
    plain = len(signs) == len(turns)
    first, second = doubles.free
    with world.together(_READ):
        if file is not None:
            for tile in (layout if plain else first.layout).stored:
                with hdf5.translated("read", path):
                    i, a, j, b = _turned(layout.box(tile))
                    values = np.asarray(file[name][:, :, a, b], float).transpose(2, 0, 3, 1)
                if not np.isfinite(values).all():
                    raise OutcoreError(
                        errno.EIO, _READ, path=path, detail=f"{name} has elements that are no numbers"
                    )
                if plain:
                    parts = [each[box] for each, box in zip(signs, (i, a, j, b), strict=True)]
                    values = np.einsum("aibj,i,a,j,b->aibj", values, *parts)
                    doubles.put(tile, np.ascontiguousarray(values))
                else:
                    first.put_tile(tile, np.ascontiguousarray(values))
    if plain:
        return
    first.sync()
    turn_i, turn_a, turn_j, turn_b = turns
    room.contract("aibj,aA->Aibj", first, turn_a, out=second)
    room.contract("aibj,iI->aIbj", second, turn_i, out=first)
    room.contract("aibj,bB->aiBj", first, turn_b, out=second)
    room.contract("aibj,jJ->aibJ", second, turn_j, out=first)
    room.each_tile(
        doubles.amplitudes, lambda tile: doubles.put(tile, first[layout.box(tile)]), "amplitudes of a file"
    )


def _signs(turn: Values) -> Values | None:
    """Signs of orbitals, if a rotation changes nothing else; None: it does."""
    found: Values = np.sign(np.diag(turn))
    return found if abs(turn - np.diag(found)).max() < _SAME else None


def _refused(path: Path, detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _READ, path=path, detail=detail)
