"""The tables of the arrays of a coupled-cluster calculation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from outcore.chem.cc.equations.excited import open_blocks
from outcore.chem.cc.equations.excited.open_blocks import OrbitalRanges
from outcore.chem.cc.equations.excited.spin_vectors import CLOSED
from outcore.chem.cc.equations.spaces import PAIR, Spaces
from outcore.chem.cc.plan.triple_sizes import triple_sums
from outcore.tensor.layout.layout import Layout
from outcore.tensor.layout.tiling import Tiling
from outcore.tensor.plan.statements import ArraySpec, Role

if TYPE_CHECKING:
    from outcore.chem.cc.plan.sizes import Sizes

_input = partial(ArraySpec, role=Role.INPUT)
_scratch = partial(ArraySpec, role=Role.SCRATCH)
_kept = partial(ArraySpec, role=Role.KEPT)
_vector = partial(ArraySpec, role=Role.VECTOR)
_SINGLE = "float32"  # errors


def arrays_of(sizes: Sizes, spaces: tuple[Spaces, ...]) -> dict[str, ArraySpec]:
    """All arrays that equations may ask for, by name."""
    open_shells = (_unrestricted, _multipliers, _triples, _open_states)
    tables = (_restricted,) if len(spaces) == 1 else open_shells
    found: dict[str, ArraySpec] = {}
    for each in chain.from_iterable(table(sizes, *spaces) for table in tables):
        assert each.name not in found, each.name
        found[each.name] = each
    return found


def _restricted(sizes: Sizes, spaces: Spaces) -> Iterator[ArraySpec]:
    o, v, q = spaces.o, spaces.v, Tiling(sizes.auxiliary, name="auxiliary")
    rows, columns = spaces.all_pairs.tiling, spaces.virtual_pairs.tiling
    count = spaces.occupied
    signs = {"+": Tiling(count * (count + 1) // 2)}
    if count > 1:
        signs["-"] = Tiling(count * (count - 1) // 2)
    pairs = Layout((v, o, v, o))
    of_equal_spins = Layout((v, o, v, o), None, PAIR)
    rings = Tiling(sizes.auxiliary + 2)  # the last two of Fock matrices
    yield _input("Boo", Layout((q, o, o), None, "symmetric(1,2)"))
    yield _scratch("Doo", Layout((q, o, o)))
    yield _scratch("Soo", Layout((rings, o, o)))
    yield _input("Bvo", Layout((q, v, o)))
    yield _scratch("Dvo", Layout((q, v, o)))
    yield _scratch("Y", Layout((q, v, o)))
    yield _kept("T", of_equal_spins)
    yield _scratch("U", of_equal_spins)
    yield _input("G", of_equal_spins)
    yield _scratch("E", pairs)
    yield _kept("R", pairs)
    yield _scratch("W", of_equal_spins)
    yield _input("Bvv", Layout((q, v, v), None, "symmetric(1,2)"))
    yield _scratch("Svv", Layout((rings, v, v)))
    for sign, ij in signs.items():
        yield _kept(f"A{sign}", Layout((rows, ij)))
    for sign in signs:
        yield _input(f"V{sign}", Layout((rows, columns)), store_dtype=sizes.ladder_type)
    yield _scratch("rows", Layout((Tiling(sizes.cuts[-1], sizes.cuts), rows)))
    yield _kept("L", of_equal_spins)
    yield _scratch("M", of_equal_spins)
    for name in ("K1", "K2"):
        yield _input(name, pairs)
    for name in ("N", "D"):
        yield _input(name, Layout((o, o, v, o)))
    yield _input("Dvv", Layout((q, v, v)))
    yield _scratch("Goo", Layout((q, o, o)))
    for name in ("Gvo", "Gov", "Yvo"):
        yield _scratch(name, Layout((q, v, o)))
    yield _scratch("Gvv", Layout((q, v, v)))
    for sign, ij in signs.items():
        yield _kept(f"P{sign}", Layout((columns, ij)))
    for vector in range(sizes.vectors):
        yield _vector(f"e{vector}", of_equal_spins, store_dtype=_SINGLE)
        yield _vector(f"t{vector}", of_equal_spins)
    yield from _of_states(sizes, spaces, signs)


def _of_states(sizes: Sizes, spaces: Spaces, signs: Mapping[str, Tiling]) -> Iterator[ArraySpec]:
    """Arrays of excited states and ions."""
    o, v, q = spaces.o, spaces.v, Tiling(sizes.auxiliary, name="auxiliary")
    of_equal_spins = Layout((v, o, v, o), None, PAIR)
    ionized, attached = Layout((v, o, o)), Layout((v, o, v))
    yield _scratch("V", of_equal_spins)
    for name in ("Vip", "Rip", "Sip"):
        yield _scratch(name, ionized)
    yield _scratch("Eip", Layout((o, v, o)))
    for name in ("Vea", "Rea", "Sea", "Pea"):
        yield _scratch(name, attached)
    yield _scratch("Eea", Layout((v, v, o)))
    for sign in "+-":
        for name, of_pairs in (("", spaces.all_pairs.tiling), ("T", spaces.virtual_pairs.tiling)):
            yield _scratch(f"C{name}{sign}", Layout((of_pairs, o)))
            yield _scratch(f"Q{name}{sign}", Layout((of_pairs, Tiling(spaces.occupied**2))))
    yield _scratch("F", Layout((v, o, v, v)))
    yield _input("X", Layout((v, v, o, v)))
    pairs = Layout((v, o, v, o))
    for name in ("Vt", "Rt", "Xt"):
        yield _scratch(name, pairs)
    ranges = OrbitalRanges((spaces, spaces))
    for name, (same, mixed) in CLOSED.items():
        for side in "RL":
            yield _scratch(f"{name}{side}s", ranges.free(same))
            yield _scratch(f"{name}{side}m", ranges.free(mixed))
    yield _scratch("Poo", Layout((q, o, o)))
    for name in ("Pvo", "Yr"):
        yield _scratch(name, Layout((q, v, o)))
    yield _input("T3", of_equal_spins)
    yield _input("Boo3", Layout((q, o, o)))
    yield _input("Bvo3", Layout((q, v, o)))
    yield _input("Bvv3", Layout((q, v, v)))
    row = Tiling(v.size, tile=1)  # to which blocks of any size add
    yield _scratch("T3rows", Layout((row, o, v, o)))
    yield _scratch("Bvo3rows", Layout((q, row, o)))
    yield _scratch("Bvv3rows", Layout((q, row, v)))
    o_, v_ = spaces.occupied, spaces.virtual
    yield _scratch("S3", Layout((Tiling(triple_sums(o_, v_)),)))
    of_ladders = {sign: Layout((spaces.all_pairs.tiling, ij)) for sign, ij in signs.items()}
    for vector in range(sizes.vectors):
        for sign, layout in of_ladders.items():
            yield _scratch(f"A{sign}{vector}", layout)
        for name, layout in (
            ("ee", of_equal_spins),
            ("le", of_equal_spins),
            ("et", pairs),
            ("ip", ionized),
            ("ea", attached),
        ):
            yield _vector(f"{name}{vector}", layout)
            yield _vector(f"H{name}{vector}", layout)
            for side in "RL":  # vectors beside what is made of them
                yield _kept(f"{side}{name}{vector}", layout)


def _unrestricted(sizes: Sizes, a: Spaces, b: Spaces) -> Iterator[ArraySpec]:
    q = Tiling(sizes.auxiliary, name="auxiliary")
    symmetric = "symmetric(1,2)"
    mixed = Layout((a.v, a.o, b.v, b.o))
    for s, name in ((a, "a"), (b, "b")):
        o, v = s.o, s.v
        pairs = Layout((v, o, v, o))
        of_equal_spins = Layout((v, o, v, o), None, PAIR)
        yield _input(f"Boo{name}", Layout((q, o, o), None, symmetric))
        yield _scratch(f"Doo{name}", Layout((q, o, o)))
        yield _scratch(f"oooo{name}", Layout((o, o, o, o)))
        yield _input(f"Bvo{name}", Layout((q, v, o)))
        for each in ("Dvo", "Y"):
            yield _scratch(f"{each}{name}", Layout((q, v, o)))
        yield _scratch(f"ooov{name}", Layout((o, o, v, o)))
        yield _kept(f"T{name}{name}", of_equal_spins)
        yield _input(f"G{name}{name}", of_equal_spins)
        yield _kept(f"W{name}{name}", of_equal_spins)
        yield _scratch(f"E{name}", pairs)
        yield _scratch(f"X{name}", pairs)
        yield _scratch(f"R{name}", pairs)
        yield _input(f"Bvv{name}", Layout((q, v, v), None, symmetric))
        yield _scratch(f"Svv{name}", Layout((q, v, v)))
        count = s.occupied * (s.occupied - 1) // 2
        if count:
            yield _kept(f"A-{name}", Layout((s.all_pairs.tiling, Tiling(count))))
            pairs_of_pairs = Layout((s.all_pairs.tiling, s.virtual_pairs.tiling))
            yield _input(f"V-{name}", pairs_of_pairs, store_dtype=sizes.ladder_type)
        yield _scratch(f"rows{name}", Layout((Tiling(sizes.cuts[-1], sizes.cuts), s.all_pairs.tiling)))
    yield _kept("Tab", mixed)
    yield _input("Gab", mixed)
    yield _scratch("Wab", mixed)
    yield _scratch("ooooab", Layout((a.o, a.o, b.o, b.o)))
    yield _scratch("ooovab", Layout((a.o, a.o, b.v, b.o)))
    yield _scratch("voooab", Layout((a.v, a.o, b.o, b.o)))
    yield _scratch("Hab", mixed)
    yield _scratch("Hba", Layout((b.v, b.o, a.v, a.o)))
    yield _scratch("Cba", Layout((b.v, a.o, b.v, a.o)))
    yield _scratch("Cab", Layout((a.v, b.o, a.v, b.o)))
    yield _kept("Aab", Layout((a.all, a.o, b.all, b.o)))
    yield _input("Vab", Layout((a.all, b.all, a.v, b.v)), store_dtype=sizes.ladder_type)
    doubles = {
        "aa": Layout((a.v, a.o, a.v, a.o), None, PAIR),
        "ab": mixed,
        "bb": Layout((b.v, b.o, b.v, b.o), None, PAIR),
    }
    for vector in range(sizes.vectors):
        for name, layout in doubles.items():
            yield _vector(f"e{name}{vector}", layout, store_dtype=_SINGLE)
            yield _vector(f"t{name}{vector}", layout)


def _multipliers(sizes: Sizes, a: Spaces, b: Spaces) -> Iterator[ArraySpec]:
    """Arrays of multipliers of open shells."""
    q = Tiling(sizes.auxiliary, name="auxiliary")
    for s, name in ((a, "a"), (b, "b")):
        o, v = s.o, s.v
        yield _kept(f"L{name}{name}", Layout((v, o, v, o), None, PAIR))
        yield _scratch(f"J{name}", Layout((v, o, v, o)))
        yield _input(f"D{name}{name}", Layout((o, o, v, o)))
        yield _scratch(f"Goo{name}", Layout((q, o, o)))
        for each in ("Gvo", "Gov", "Yvo"):
            yield _scratch(f"{each}{name}", Layout((q, v, o)))
        yield _scratch(f"Gvv{name}", Layout((q, v, v)))
        count = s.occupied * (s.occupied - 1) // 2
        if count:
            yield _kept(f"P-{name}", Layout((s.virtual_pairs.tiling, Tiling(count))))
    mixed = Layout((a.v, a.o, b.v, b.o))
    for each in ("Lab", "Pab"):
        yield _kept(each, mixed)
    yield _scratch("Rab", mixed)
    yield _scratch("Jba", Layout((b.v, a.o, b.v, a.o)))
    yield _scratch("Jab", Layout((a.v, b.o, a.v, b.o)))
    yield _input("Dab", Layout((a.o, a.o, b.v, b.o)))
    yield _input("Dba", Layout((b.o, b.o, a.v, a.o)))


def _open_states(sizes: Sizes, *spaces: Spaces) -> Iterator[ArraySpec]:
    """Arrays of excited states and ions of open shells."""
    q, ranges = Tiling(sizes.auxiliary, name="auxiliary"), OrbitalRanges(spaces)
    every = [*(each.all for each in spaces), Tiling(1)]
    for kind in open_blocks.ALL:
        for a, i in kind.singles:
            of_pair = f"{'abx'[a]}{'abx'[i]}"
            for what in ("Y", "Z"):
                yield _scratch(
                    f"{kind.name}{what}{of_pair}", Layout((q, ranges.virtual[a], ranges.occupied[i]))
                )
            if a != open_blocks.NONE:
                yield _scratch(f"{kind.name}P{of_pair}", Layout((q, ranges.occupied[a], ranges.occupied[i])))
                yield _scratch(f"{kind.name}V{of_pair}", Layout((q, ranges.virtual[a], ranges.occupied[i])))
        for labels in kind.rings():
            yield _scratch(kind.ring_name(labels), ranges.free(labels))
        for part, labels in enumerate(kind.doubles):
            a, i, b, j = labels
            yield _scratch(kind.scratch_name(part), ranges.free(labels))
            name, left = kind.ladder_name(part), kind.left_ladder_name(part)
            inside = ranges.occupied[i], ranges.occupied[j]
            if a == b != open_blocks.NONE:
                columns = Tiling(inside[0].size * inside[1].size)
                yield _scratch(f"{name}-", Layout((spaces[a].all_pairs.tiling, columns)))
                yield _scratch(f"{left}-", Layout((spaces[a].virtual_pairs.tiling, columns)))
            elif open_blocks.NONE not in (a, b):
                yield _scratch(name, Layout((every[a], inside[0], every[b], inside[1])))
                yield _scratch(left, ranges.free(labels))
            for vector in range(sizes.vectors):
                for side in "RL":  # vectors beside what is made of them
                    yield _kept(f"{side}{kind.array_name(part)}{vector}", ranges.layout(labels))
                yield _vector(f"{kind.array_name(part)}{vector}", ranges.layout(labels))
                yield _vector(f"H{kind.array_name(part)}{vector}", ranges.layout(labels))


def _triples(sizes: Sizes, a: Spaces, b: Spaces) -> Iterator[ArraySpec]:
    """Arrays of derivatives of (T) of open shells."""
    q = Tiling(sizes.auxiliary, name="auxiliary")
    for s, other, name in ((a, b, "a"), (b, a, "b")):
        o, v = s.o, s.v
        row = Tiling(v.size, tile=1)  # to which blocks of any size add
        yield _input(f"T{name}{name}3", Layout((v, o, v, o), None, PAIR))
        yield _input(f"Boo3{name}", Layout((q, o, o)))
        yield _input(f"Bvo3{name}", Layout((q, v, o)))
        yield _input(f"Bvv3{name}", Layout((q, v, v)))
        yield _scratch(f"T{name}{name}3rows", Layout((row, o, v, o)))
        yield _scratch(f"Bvo3{name}rows", Layout((q, row, o)))
        yield _scratch(f"Bvv3{name}rows", Layout((q, row, v)))
        both = "ab" if name == "a" else "ba"
        yield _scratch(f"T{both}3rows", Layout((row, o, other.v, other.o)))
    yield _input("Tab3", Layout((a.v, a.o, b.v, b.o)))
    yield _scratch("S3", Layout((Tiling(sum(triple_sums(s.occupied, s.virtual) for s in (a, b))),)))
