"""How much memory blocks of virtual orbitals take in (T). Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

_DOUBLE = 8


def padded(occupied: int) -> int:
    """How many occupied orbitals the last index of arrays of closed shells has room for: whole registers of the
    kernel, and rows that do not all fall on the same places of the nearest cache."""
    room = -(-occupied // 4) * 4
    return room if room % 32 else room + 4


def block_bytes(
    occupied: Sequence[int], virtual: Sequence[int], auxiliary: int, block: int, threads: int
) -> int:
    """What three blocks of so many virtual orbitals take, with what is being made and the room of threads.
    occupied, virtual: orbitals of each spin, or of closed shells."""
    o, v, q = max(occupied), max(virtual), auxiliary
    if len(occupied) == 1:
        last = padded(o)
        singles = 7 * block * o * last * (v + o)
        doubles = block * block * last * ((6 + threads) * v + 9 * o)
        three_index = 3 * q * block * (v + o) + q * o * o
        return int(_DOUBLE * (singles + doubles + three_index + 2 * threads * o * o * last))
    singles = 7 * block * (v + o) * o * o
    doubles = 10 * block * block * o * (v + 2 * o)
    three_index = 5 * q * block * (v + o) + 2 * q * o * o
    return int(_DOUBLE * (singles + doubles + three_index + 2 * threads * o**3))
