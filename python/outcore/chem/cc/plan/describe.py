"""Arrays and statements of a coupled-cluster calculation, recorded by running its equations without data."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from outcore.base.recent import Recent
from outcore.chem.cc import fno
from outcore.chem.cc.equations import methods
from outcore.chem.cc.equations.integrals import Integrals, fit_space, transform_space
from outcore.chem.cc.equations.open_triple_arrays import OpenDerivatives, OpenRows
from outcore.chem.cc.equations.orbitals import CorrelatedOrbitals
from outcore.chem.cc.equations.spaces import Spaces
from outcore.chem.cc.equations.triple_arrays import ROWS, SMALL, Derivatives
from outcore.chem.cc.plan import assembly
from outcore.chem.cc.plan.layouts import arrays_of
from outcore.chem.cc.plan.triple_sizes import TripleDerivativesKernel, TripleOperands, TriplesEnergy
from outcore.chem.cc.plan.work import largest_tile, of_panels, of_three_index
from outcore.chem.cc.settings import Settings
from outcore.chem.cc.updates import Updates
from outcore.tensor.plan.statements import ArraySpec, Pass, Space, Touched
from outcore.tensor.program.recorder import Alone, RecordedArray, Recorder

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

    from outcore.chem.cc.plan.room import Room
    from outcore.chem.cc.plan.sizes import Sizes

ITERATIONS = 12
"""The usual number of iterations."""

Made = TypeVar("Made")

_DOUBLE = 8
_FEW = 2  # functions, or occupied orbitals, of a model: as few as there may be of each


_remembered: list[Any] = []


def remembered(make: Callable[..., Made]) -> _lru_cache_wrapper[Made]:
    """Remembers descriptions, or facts of them, for the plans that are compared, until `forget`."""
    made = lru_cache(maxsize=8)(make)
    _remembered.append(made)
    return made


class RecordingRoom(Recorder):
    """As `Room`, without data. block: most virtual orbitals of a block. processes: how many the calculation
    will have. `spaces`: of the model that equations work on, with blocks of one orbital each."""

    signs = None
    beside_made_bytes = 0

    def __init__(
        self, sizes: Sizes, block: int, threads: int, processes: int = 1, *, each: bool = False
    ) -> None:
        spaces = spaces_of(sizes, block)
        model = replace(
            sizes,
            auxiliary=_FEW,
            occupied=tuple(min(o, _FEW) for o in sizes.occupied),
            virtual=tuple(len(each.v) for each in spaces),
            cuts=(0, _FEW),
        )
        self.spaces = spaces_of(model, 1)
        models = {name: each.layout for name, each in arrays_of(model, self.spaces).items()}
        super().__init__(arrays_of(sizes, spaces), models, each=each)
        self.sizes, self.threads, self.world = sizes, threads, Alone(processes)
        self.spins = [_spin(each.occupied, each.virtual) for each in self.spaces]

    def integrals(self, spaces: Spaces, name: str = "") -> Integrals:
        """Three-index integrals, which are made in rows and then fitted in columns."""
        rows = self.array(f"rows{name}")
        self._goes_by("transform integrals", transform_space, written=[rows])
        made = Integrals(cast("Room", self), spaces, name)
        arrays = cast("tuple[RecordedArray, ...]", made.arrays)
        self._goes_by("fit integrals", fit_space, read=[rows], written=arrays)
        self.release(rows)
        return made

    def _goes_by(
        self, what: str, space: Callable[[Sizes, int, int], float], read: Any = (), written: Any = ()
    ) -> None:
        touched = {each: Touched(float(each.nbytes), 0.0) for each in read}
        touched |= {each: Touched(0.0, float(each.nbytes)) for each in written}
        of_tile = partial(space, self.sizes, self.threads)
        self.description.statements.append(Pass(what, touched, frozenset(written), of_tile))

    # ---- work space ----

    def space_of_tiles(self, array: RecordedArray, held: int, beside: Space) -> Space:
        sizes, threads, name = self.sizes, self.threads, array.spec.name

        def space(tile: int) -> float:
            layout = _specs(sizes, tile)[name].layout
            workers = min(threads, math.prod(layout.grid))
            return max(float(held * workers * largest_tile(layout) * _DOUBLE), beside(tile))

        return space

    def space_of_product(self, arrays: Sequence[Any]) -> Space:
        sizes = self.sizes
        names = [each.spec.name if isinstance(each, RecordedArray) else None for each in arrays]
        whole = 0 if names[-1] is not None else math.prod(arrays[-1].shape)

        def space(tile: int) -> float:
            specs = _specs(sizes, tile)
            *operands, out = (0 if name is None else largest_tile(specs[name].layout) for name in names)
            panels = of_panels(operands, out + whole)
            return float(max(panels, of_three_index(sizes, tile)) * _DOUBLE)

        return space


def _made_specs(sizes: Sizes, block: int) -> dict[str, ArraySpec]:
    return arrays_of(sizes, spaces_of(sizes, block))


_specs = remembered(_made_specs)


def spaces_of(sizes: Sizes, block: int) -> tuple[Spaces, ...]:
    """Orbitals of each spin. block: most virtual orbitals of a block."""
    return tuple(Spaces(o, v, block) for o, v in zip(sizes.occupied, sizes.virtual, strict=True))


Describe = Callable[..., RecordingRoom]


def forget() -> None:
    """Gives the memory of all descriptions back: once a plan is chosen, nobody asks for them. Several of them take
    10 MB, which no budget accounts for."""
    for each in _remembered:
        each.cache_clear()
    gc.collect()  # descriptions refer to themselves


@remembered
def iterations(
    sizes: Sizes, block: int, threads: int, processes: int = 1, *, is_stored: bool, each: bool = False
) -> RecordingRoom:
    """Records a calculation from integrals to iterations with all vectors of the extrapolation. is_stored:
    integrals of ladders are stored. each: work on all tiles, not on one of those that look alike."""
    recording = RecordingRoom(sizes, block, threads, processes, each=each)
    room, spins = cast("Room", recording), recording.spins
    names = assembly.spin_names(len(spins))
    made = [recording.integrals(each, name) for each, name in zip(recording.spaces, names, strict=True)]
    equations = assembly.equations(room, made, [each.fock for each in spins], is_stored=is_stored)
    updates = Updates(room, spins, equations, sizes.vectors)
    updates.put_second_order(0.0)
    singles = [np.zeros((each.occupied, each.virtual)) for each in spins]
    updates.extrapolation.fill(np.zeros(sum(each.size for each in singles)))
    with recording.loop(ITERATIONS):
        updates.advance(singles, Settings())
        equations.energy(singles)
    return recording


@remembered
def response(
    sizes: Sizes,
    block: int,
    threads: int,
    processes: int = 1,
    *,
    is_stored: bool,
    each: bool = False,
    triples: bool = False,
) -> RecordingRoom:
    """Records a calculation from converged amplitudes to multipliers and densities. triples: with derivatives of
    (T)."""
    recording = RecordingRoom(sizes, block, threads, processes, each=each)
    room, spins = cast("Room", recording), recording.spins
    t = [np.zeros((each.occupied, each.virtual)) for each in spins]
    of_triples: Derivatives | OpenDerivatives | None = None
    if triples:
        one = [np.zeros_like(each.fock) for each in spins]
        of_triples = Derivatives(room, t[0], one[0]) if len(t) == 1 else OpenDerivatives(room, t, one)
    equations = assembly.multipliers(room, [each.fock for each in spins], t, of_triples, is_stored=is_stored)
    updates = Updates(room, spins, equations, sizes.vectors)
    singles = equations.put_first()
    updates.extrapolation.fill(np.zeros(sum(each.size for each in t)))
    with recording.loop(ITERATIONS):
        updates.advance(singles, Settings())
        equations.energy(singles)
    assembly.densities(equations, singles)
    return recording


def response_of_triples(*given: Any, **options: Any) -> RecordingRoom:
    """As `response`, with derivatives of (T)."""
    return response(*given, **options, triples=True)


@remembered
def triple_derivatives(sizes: Sizes, block: int, threads: int, processes: int = 1, **_: Any) -> RecordingRoom:
    """Records a calculation from converged amplitudes to derivatives of (T)."""
    recording = RecordingRoom(sizes, block, threads, processes)
    room = cast("Room", recording)
    if len(recording.spins) == 2:
        _open_triple_derivatives(room, recording.spins)
        return recording
    (spin,) = recording.spins
    t1 = np.zeros((spin.occupied, spin.virtual))
    t2, integrals = room.array("T"), Integrals(room, recording.spaces[0])
    made, rows = Derivatives(room, t1, np.zeros_like(spin.fock)), [room.array(name) for name in ROWS]
    small = room.array(SMALL)
    room.kernel(
        TripleDerivativesKernel(sizes, threads, (t2, *integrals.arrays), (*rows, made.boo, small)), list
    )
    room.release(small)
    made.collect(room, rows, recording.spaces[0].v.cuts)
    made.rotation(room, t1, t2, integrals)
    return recording


def _open_triple_derivatives(room: Room, spins: list[CorrelatedOrbitals]) -> None:
    spaces, t = room.spaces, [np.zeros((each.occupied, each.virtual)) for each in spins]
    same, mixed = [room.array("Taa"), room.array("Tbb")], room.array("Tab")
    integrals = [Integrals(room, each, name) for each, name in zip(spaces, "ab", strict=True)]
    made, rows = OpenDerivatives(room, t, [np.zeros_like(each.fock) for each in spins]), OpenRows(room)
    small = room.array(SMALL)
    operands = (*same, mixed, *(array for each in integrals for array in each.arrays))
    room.kernel(
        TripleDerivativesKernel(room.sizes, room.threads, operands, (*rows.arrays, *made.boo, small)), list
    )
    room.release(small)
    made.collect(room, rows, [each.v.cuts for each in spaces])
    for s, (each, doubles) in enumerate(zip(integrals, same, strict=True)):
        made.rotation(room, s, t[s], (doubles, mixed), each, (t[s], t[s]))


@remembered
def triples(
    sizes: Sizes, block: int, threads: int, processes: int = 1, *, most: int | None = None, **_: Any
) -> RecordingRoom:
    """Records the energy of (T) of converged amplitudes. most: orbitals of its blocks, if the caller has chosen."""
    recording = RecordingRoom(sizes, block, threads, processes)
    names = assembly.spin_names(len(recording.spins))
    integrals = zip(
        *([recording.array(f"{kind}{name}") for kind in ("Boo", "Bvo", "Bvv")] for name in names), strict=True
    )
    same = tuple(recording.array(f"T{name}{name}") for name in names)
    mixed = recording.array("Tab") if len(names) == 2 else None
    boo, bvo, bvv = integrals
    of = TripleOperands(same, boo, bvo, bvv, mixed)
    recording.kernel(TriplesEnergy(sizes, threads, processes, of, most), list)
    return recording


@remembered
def second_order(sizes: Sizes, block: int, threads: int, processes: int = 1, **_: Any) -> RecordingRoom:
    """Records a calculation from integrals to the density of second order, of closed shells."""
    recording = RecordingRoom(sizes, block, threads, processes)
    made = recording.integrals(recording.spaces[0])
    fno.density(cast("Room", recording), made, recording.spins[0])
    return recording


def asked(describe: Describe, sizes: Sizes, threads: int = 1) -> int:
    """The number of arrays, which does not depend on blocks."""
    return _asked.get(
        (*_key(describe), sizes),
        lambda: len(describe(sizes, max(sizes.virtual), threads, is_stored=True).arrays),
    )


def work_bytes(describe: Describe, sizes: Sizes, block: int, threads: int) -> int:
    """The least work space (bytes) of a stage with blocks of so many orbitals: that of its largest statement.
    Other stages go on with the blocks and arrays of iterations, and get no less work space than these. (T), if the
    method has it, may follow any stage in its work space, so it counts as well. Statements do not depend on blocks,
    so those of a stage with all orbitals in one block are asked."""

    def look() -> int:
        stages: list[Describe] = [describe, iterations]
        if methods.of(sizes.method).has_triples:
            stages.append(triples)
        recorded = (each(sizes, max(sizes.virtual), threads, is_stored=True) for each in stages)
        return math.ceil(max(each.work_space(block) for each in recorded))

    return _worked.get((*_key(describe), sizes, block, threads), look)


def _key(describe: Describe) -> tuple[object, ...]:
    if isinstance(describe, partial):
        return describe.func, describe.args, frozenset(describe.keywords.items())
    return (describe,)


_asked: Recent[int] = Recent(100)  # each part of a calculation asks about all parts that may follow
_worked: Recent[int] = Recent(500)


def _spin(occupied: int, virtual: int) -> CorrelatedOrbitals:
    """Orbitals with arbitrary energies."""
    count = occupied + virtual
    return CorrelatedOrbitals(np.zeros((count, count)), np.diag(np.arange(1.0, count + 1)), occupied)
