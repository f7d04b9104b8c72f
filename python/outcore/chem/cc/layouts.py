"""The arrays of a coupled-cluster calculation by name, with layouts and types of elements on disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from outcore.chem.cc.spaces import PAIR, Spaces
from outcore.tensor.layout import Layout
from outcore.tensor.tiling import Tiling

if TYPE_CHECKING:
    from outcore.chem.cc.plan import Sizes


def arrays_of(sizes: Sizes, spaces: tuple[Spaces, ...]) -> Iterator[tuple[str, Layout, str | None]]:
    """All arrays, those first that are used most for their size."""
    return _restricted(sizes, *spaces) if len(spaces) == 1 else _unrestricted(sizes, *spaces)


def _restricted(sizes: Sizes, spaces: Spaces) -> Iterator[tuple[str, Layout, str | None]]:
    """All arrays, those first that are used most for their size."""
    o, v, q = spaces.o, spaces.v, Tiling(sizes.auxiliary, name="auxiliary")
    rows, columns = spaces.all_pairs.tiling, spaces.virtual_pairs.tiling
    count = spaces.occupied
    signs = {"+": Tiling(count * (count + 1) // 2)}
    if count > 1:
        signs["-"] = Tiling(count * (count - 1) // 2)
    pairs = (v, o, v, o)
    rings = Tiling(sizes.auxiliary + 2)  # the last two of Fock matrices
    yield "Boo", Layout((q, o, o), None, "symmetric(1,2)"), None
    yield "Doo", Layout((q, o, o)), None
    yield "Soo", Layout((rings, o, o)), None
    for name in ("Bvo", "Dvo", "Y"):
        yield name, Layout((q, v, o)), None
    for name in ("T", "U", "G"):
        yield name, Layout(pairs, None, PAIR), None
    for name in ("E", "R"):
        yield name, Layout(pairs), None
    yield "W", Layout(pairs, None, PAIR), None
    yield "Bvv", Layout((q, v, v), None, "symmetric(1,2)"), None
    yield "Svv", Layout((rings, v, v)), None
    for sign, ij in signs.items():
        yield f"A{sign}", Layout((rows, ij)), None
    for sign in signs:
        yield f"V{sign}", Layout((rows, columns)), "float32"
    yield "rows", Layout((Tiling(sizes.cuts[-1], sizes.cuts), rows)), None
    for vector in range(sizes.vectors):
        yield f"e{vector}", Layout(pairs, None, PAIR), "float32"
        yield f"t{vector}", Layout(pairs, None, PAIR), None


def _unrestricted(sizes: Sizes, a: Spaces, b: Spaces) -> Iterator[tuple[str, Layout, str | None]]:
    """All arrays of two spins."""
    q = Tiling(sizes.auxiliary, name="auxiliary")
    symmetric = "symmetric(1,2)"
    both = (a.v, a.o, b.v, b.o)
    for s, name in ((a, "a"), (b, "b")):
        o, v = s.o, s.v
        pairs = (v, o, v, o)
        yield f"Boo{name}", Layout((q, o, o), None, symmetric), None
        yield f"Doo{name}", Layout((q, o, o)), None
        yield f"oooo{name}", Layout((o, o, o, o)), None
        for each in ("Bvo", "Dvo", "Y"):
            yield f"{each}{name}", Layout((q, v, o)), None
        yield f"ooov{name}", Layout((o, o, v, o)), None
        for each in ("T", "G", "W"):
            yield f"{each}{name}{name}", Layout(pairs, None, PAIR), None
        for each in ("E", "X", "R"):
            yield f"{each}{name}", Layout(pairs), None
        yield f"Bvv{name}", Layout((q, v, v), None, symmetric), None
        yield f"Svv{name}", Layout((q, v, v)), None
        count = s.occupied * (s.occupied - 1) // 2
        if count:
            yield f"A-{name}", Layout((s.all_pairs.tiling, Tiling(count))), None
            yield f"V-{name}", Layout((s.all_pairs.tiling, s.virtual_pairs.tiling)), "float32"
        yield f"rows{name}", Layout((Tiling(sizes.cuts[-1], sizes.cuts), s.all_pairs.tiling)), None
    for each in ("Tab", "Gab", "Wab"):
        yield each, Layout(both), None
    yield "ooooab", Layout((a.o, a.o, b.o, b.o)), None
    yield "ooovab", Layout((a.o, a.o, b.v, b.o)), None
    yield "voooab", Layout((a.v, a.o, b.o, b.o)), None
    yield "Hab", Layout(both), None
    yield "Hba", Layout((b.v, b.o, a.v, a.o)), None
    yield "Mba", Layout((b.v, a.o, b.v, a.o)), None
    yield "Lab", Layout((a.v, b.o, a.v, b.o)), None
    yield "Aab", Layout((a.all, a.o, b.all, b.o)), None
    yield "Vab", Layout((a.all, b.all, a.v, b.v)), "float32"
    for vector in range(sizes.vectors):
        for name, layout in (
            ("aa", Layout((a.v, a.o, a.v, a.o), None, PAIR)),
            ("ab", Layout(both)),
            ("bb", Layout((b.v, b.o, b.v, b.o), None, PAIR)),
        ):
            yield f"e{name}{vector}", layout, "float32"
            yield f"t{name}{vector}", layout, None
