"""Molecules for benchmarks, as lists of "element x y z" in Angstrom."""

from __future__ import annotations

import errno
import math
from pathlib import Path

from outcore.errors import OutcoreError


def water(count: int) -> list[str]:
    """A row of water molecules."""
    return [
        line
        for n in range(count)
        for line in (f"O {3 * n} 0 0", f"H {3 * n} 0.757 0.587", f"H {3 * n} -0.757 0.587")
    ]


def waters(count: int) -> list[str]:
    """Water molecules on a grid of 3 A, two by two in a layer."""
    spots = [(3.0 * (n // 4), 3.0 * (n // 2 % 2), 3.0 * (n % 2)) for n in range(count)]
    atoms = (("O", 0.0, 0.0), ("H", 0.757, 0.587), ("H", -0.757, 0.587))
    return [f"{name} {x} {y + dy:.3f} {z + dz:.3f}" for x, y, z in spots for name, dy, dz in atoms]


def alkane(carbons: int) -> list[str]:
    """All-trans: C-C 1.53 A, C-H 1.09 A, CCC 112.7 degrees, HCH 106.5 degrees."""
    half, turn = math.radians(112.7) / 2, math.radians(106.5) / 2
    along, up = 1.53 * math.sin(half), 1.53 * math.cos(half)
    atoms = []
    for n in range(carbons):
        x, z, sign = n * along, (n % 2) * up, 1 if n % 2 else -1
        atoms.append(("C", x, 0.0, z))
        atoms += [
            ("H", x, side * 1.09 * math.sin(turn), z + sign * 1.09 * math.cos(turn)) for side in (1, -1)
        ]
        for end, direction in ((0, -1), (carbons - 1, 1)):
            if n == end:
                atoms.append(
                    ("H", x + direction * 1.09 * math.sin(half), 0.0, z - sign * 1.09 * math.cos(half))
                )
    return [f"{name} {x:.6f} {y:.6f} {z:.6f}" for name, x, y, z in atoms]


def c14h8f6() -> list[str]:
    """The molecule of the ChemIO study."""
    return c14h8f6_file().read_text().splitlines()[2:]


def c14h8f6_file() -> Path:
    """Its XYZ file, among the examples."""
    for directory in Path(__file__).resolve().parents:
        path = directory / "examples" / "c14h8f6.xyz"
        if path.is_file():
            return path
    raise OutcoreError(
        errno.ENOENT, "find the geometry", path="examples/c14h8f6.xyz", detail="run it from a checkout"
    )
