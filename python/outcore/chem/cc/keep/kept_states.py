"""Checkpoint of a search for states: vectors, each beside the product of H with it. They are states, the directions
in which states were corrected before, and new vectors of an iteration. Any of them can start a search for the same
states, so a kill between commits of two vectors leaves a start, too."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem.cc.keep.kept import CACHE_BYTES, copying
from outcore.job.unclosed import only_flushed
from outcore.keep.clock import Clock
from outcore.keep.problem import fingerprint
from outcore.keep.stages import Stages, damaged, offering
from outcore.tensor.arrays.array import Array

if TYPE_CHECKING:
    from outcore.chem.cc.plan.room import Room
    from outcore.job.world import World
    from outcore.keep.problem import Problem

Values = np.ndarray[Any, np.dtype[Any]]

STATES = "states"
_GO_ON = "go on from kept states"


@dataclass
class KeptVector:
    """Singles of a vector and of H times it; the largest error of the latter. converged_to: it is a state of a
    search that has converged to this norm of residuals, and has looked for others; None: of no such search."""

    singles: Values
    multiplied: Values
    error: float
    converged_to: float | None


class KeptStates:
    """Collective. Arrays are open only while they are read or written.

    Args:
        mark: of the amplitudes and of the wanted states. Vectors with another mark are not found.
        shape: of singles.
        side: "" for right vectors, "l" for left ones, which stay beside right ones.

    Raises OutcoreError: EINVAL (of another problem), ENOTSUP (of another format), EIO (damaged).
    """

    def __init__(
        self,
        world: World,
        directory: Path,
        problem: Problem,
        mark: Any,
        shape: tuple[int, ...],
        side: str = "",
    ) -> None:
        self._world, self._problem, self._shape, self._side = world, problem, shape, side
        self._mark = fingerprint(mark)
        self._directory = Stages(world, directory).directory
        self._serial = 0  # of the last commit
        self.clock = Clock(world)

    def _path(self, number: int, part: int, *, multiplied: bool) -> Path:
        name = f"{'h' if multiplied else 'v'}{self._side}{number}"
        return self._directory / f"{STATES}.{name}.{part}"

    # ---- the checkpoint of another run ----

    def bring(
        self, room: Room, number: int, doubles: Sequence[Array], multiplied: Sequence[Array]
    ) -> KeptVector | None:
        """Puts doubles of a vector and of H times it, and returns the rest; None: no vector has this number, or a
        part of it is missing."""
        places = [(part, each) for part in range(len(doubles)) for each in (False, True)]
        found: KeptVector | None = None
        arrays = list[Array]()
        try:
            for part, is_product in places:
                array = self._open(number, part, multiplied=is_product)
                if array is None:
                    return None
                arrays.append(array)
            stamps = {each.metadata.get("stamp") for each in arrays}
            if len(stamps) != 1 or None in stamps:
                return None
            path, facts = self._path(number, 0, multiplied=False), arrays[0].metadata
            into = [(multiplied if is_product else doubles)[part] for part, is_product in places]
            with self._world.together(_GO_ON, number):
                found = self._read(facts, path)
                for to, kept in zip(into, arrays, strict=True):
                    if kept.shape != to.shape:
                        raise _damaged(path, f"an array of shape {kept.shape}, not {to.shape}")
            for to, kept in zip(into, arrays, strict=True):
                room.each_tile(to, copying(to, kept), "kept states")
            self._serial = max(self._serial, int(facts["serial"]))
        finally:
            for array in arrays:
                array.drop()
        return found

    def _open(self, number: int, part: int, *, multiplied: bool) -> Array | None:
        path = self._path(number, part, multiplied=multiplied)
        try:
            with offering(path):
                found = only_flushed(Array.open(self._world, path, read_only=False, cache_bytes=CACHE_BYTES))
        except OutcoreError as error:
            if error.errno != errno.ENOENT:
                raise
            return None
        try:
            with self._world.together(_GO_ON, number):
                self._problem.check(found.metadata, _GO_ON, path)
        except OutcoreError:
            found.drop()
            raise
        if found.metadata.get("mark") != self._mark:
            found.drop()
            return None
        return found

    def _read(self, facts: dict[str, Any], path: Path) -> KeptVector:
        try:
            singles, multiplied = (np.array(facts[name], float) for name in ("singles", "multiplied"))
            error, serial, stamp = float(facts["error"]), int(facts["serial"]), facts["stamp"]
            limit = facts.get("converged_to")
            converged_to = None if limit is None else float(limit)
        except (KeyError, TypeError, ValueError) as wrong:
            raise _damaged(path, f"{type(wrong).__name__}: {wrong}") from wrong
        if singles.shape != self._shape or multiplied.shape != self._shape:
            raise _damaged(path, f"singles of shape {singles.shape}, not {self._shape}")
        if stamp != _stamp(serial, singles, multiplied, error) or not np.isfinite(error):
            raise _damaged(path, "singles are not those that were written")
        return KeptVector(singles, multiplied, error, converged_to)

    # ---- the checkpoint of this run ----

    def begin(self) -> None:
        """Begins a commit."""
        self._serial += 1

    def put(
        self,
        room: Room,
        number: int,
        row: Values,
        vectors: Sequence[Sequence[Array]],
        multiplied: Sequence[Sequence[Array]],
        kept: KeptVector,
    ) -> None:
        """Commits one combination of vectors, and of H times them. row: its coefficients. kept: the combination
        without its doubles."""
        facts = {
            "mark": self._mark,
            "serial": self._serial,
            "singles": kept.singles.tolist(),
            "multiplied": kept.multiplied.tolist(),
            "error": kept.error,
            "converged_to": kept.converged_to,
            "stamp": _stamp(self._serial, kept.singles, kept.multiplied, kept.error),
        }
        used = [int(each) for each in np.flatnonzero(row)]
        for is_product, group in ((False, vectors), (True, multiplied)):
            for part, arrays in enumerate(zip(*group, strict=True)):
                path = self._path(number, part, multiplied=is_product)
                self._combine(room, path, [(float(row[n]), arrays[n]) for n in used], facts)

    def _combine(
        self, room: Room, path: Path, terms: list[tuple[float, Array]], facts: dict[str, Any]
    ) -> None:
        layout = terms[0][1].layout
        array = only_flushed(Array(self._world, layout, path=path, overwrite=True, cache_bytes=CACHE_BYTES))

        def work(tile: Any) -> None:
            values = np.zeros(layout.tile_shape(tile))
            for factor, each in terms:
                values += factor * each.get_tile(tile)
            array.put_tile(tile, values)

        try:
            room.each_tile(array, work, "keep states")
            array.flush(self._problem.as_json() | facts)
        finally:
            array.drop()


def _stamp(serial: int, singles: Values, multiplied: Values, error: float) -> str:
    return fingerprint([serial, singles.tolist(), multiplied.tolist(), error])[:32]


def _damaged(path: Path, detail: str) -> OutcoreError:
    return damaged(_GO_ON, path, f"{detail}; remove it and run again")
