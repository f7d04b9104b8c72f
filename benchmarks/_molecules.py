"""Molecules for benchmarks, as lists of "element x y z" in Angstrom, and cases that benchmarks share."""

from __future__ import annotations

import errno
import itertools
import math
from dataclasses import dataclass
from pathlib import Path

from outcore.base.errors import OutcoreError


@dataclass(frozen=True)
class Case:
    """atoms: in PySCF's form. spin: number of unpaired electrons; if there are any, the reference is UHF."""

    name: str
    atoms: str
    basis: str
    charge: int = 0
    spin: int = 0


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


def fullerene() -> list[str]:
    """C60: a truncated icosahedron whose edges are all 1.43 A."""
    golden = (1 + math.sqrt(5)) / 2
    corners = ((0.0, 1.0, 3 * golden), (1.0, 2 + golden, 2 * golden), (golden, 2.0, 2 * golden + 1))
    places = {
        tuple(
            signs[(k + turn) % 3] * corner[(k + turn) % 3] + 0.0 for k in range(3)
        )  # + 0.0 turns -0.0 into 0.0
        for corner in corners
        for turn in range(3)
        for signs in itertools.product((1, -1), repeat=3)
    }
    return [f"C {x * 0.715:.6f} {y * 0.715:.6f} {z * 0.715:.6f}" for x, y, z in sorted(places)]


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


def carbon_tetrabromide() -> list[str]:
    """C-Br 1.942 A."""
    edge = 1.942 / math.sqrt(3)
    return ["C 0 0 0", *(f"Br {edge * x} {edge * y} {edge * x * y}" for x in (1, -1) for y in (1, -1))]


def hydrogen_ring(count: int) -> list[str]:
    """Atoms 0.9 A apart."""
    radius = 0.45 / math.sin(math.pi / count)
    angles = [2 * math.pi * n / count for n in range(count)]
    return [f"H {radius * math.cos(at):.12f} {radius * math.sin(at):.12f} 0" for at in angles]


def hydrogen_chain(count: int) -> list[str]:
    """Atoms 0.9 A apart, in a line."""
    return [f"H 0 0 {0.9 * n:.12f}" for n in range(count)]


def hydrogen_lattice(a: int, b: int, c: int) -> list[str]:
    """A lattice of H2 molecules. The bonds are 0.8 A long and lie along the last axis; neighbours are 1.4 A apart
    in all directions."""
    return [
        f"H {1.4 * x} {1.4 * y} {2.2 * (z // 2) + 0.8 * (z % 2)}"
        for x in range(a)
        for y in range(b)
        for z in range(c)
    ]


def flake(rings: int) -> list[str]:
    """A hexagonal flake of graphene with hydrogen around it. rings: number of rings along an edge (1: benzene,
    2: coronene). C-C 1.42 A, C-H 1.09 A."""
    bond, across = 1.42, 1.42 * math.sqrt(3)
    carbons: dict[tuple[int, int], tuple[float, float]] = {}
    for u in range(1 - rings, rings):
        for v in range(1 - rings, rings):
            if abs(u + v) >= rings:
                continue
            middle = (across * (u + v / 2), 1.5 * bond * v)
            for corner in range(6):
                angle = math.pi / 6 + corner * math.pi / 3
                x, y = middle[0] + bond * math.cos(angle), middle[1] + bond * math.sin(angle)
                carbons[round(100 * x), round(100 * y)] = (x, y)
    atoms = [f"C {x:.6f} {y:.6f} 0" for x, y in carbons.values()]
    for x, y in carbons.values():
        near = [(p - x, q - y) for p, q in carbons.values() if 0 < math.hypot(p - x, q - y) < 1.1 * bond]
        if len(near) == 2:
            dx, dy = -sum(d for d, _ in near), -sum(d for _, d in near)
            scale = 1.09 / math.hypot(dx, dy)
            atoms.append(f"H {x + scale * dx:.6f} {y + scale * dy:.6f} 0")
    return atoms


def formaldehyde() -> list[str]:
    """Near the experimental geometry: C-O 1.204, C-H 1.104 A."""
    return ["C 0 0 -0.53", "O 0 0 0.674", "H 0 0.936 -1.115", "H 0 -0.936 -1.115"]


def uracil() -> list[str]:
    """Uracil, with the geometry that it has in the planar dimer of S22: Jurecka, Sponer, Cerny, Hobza, Phys. Chem.
    Chem. Phys. 8, 1985 (2006)."""
    atoms = (
        ("O", -1.4663316, 1.0121693), ("C", -0.6281464, 1.9142678), ("N", 0.7205093, 1.6882688),
        ("C", 1.6367290, 2.7052764), ("C", 1.2769036, 4.0061763), ("C", -0.1286005, 4.3621549),
        ("N", -0.9777230, 3.2396433), ("O", -0.5972229, 5.4864066), ("H", 2.0103504, 4.7938642),
        ("H", 1.0232515, 0.7061820), ("H", -1.9700268, 3.4323850), ("H", 2.6690620, 2.3883417),
    )  # fmt: skip
    return [f"{name} {x} {y} 0" for name, x, y in atoms]


def acene(rings: int) -> list[str]:
    """Benzene, naphthalene, ..: regular hexagons side by side. C-C 1.40 A, C-H 1.09 A."""
    bond, to_hydrogen = 1.40, 1.09
    atoms: dict[tuple[float, float], str] = {}
    width = 2 * bond * math.cos(math.pi / 6)
    corners = [(ring, 30 + 60 * n) for ring in range(rings) for n in range(6)]
    for radius, name in ((bond, "C"), (bond + to_hydrogen, "H")):
        for ring, angle in corners:
            x = ring * width + radius * math.cos(math.radians(angle))
            y = radius * math.sin(math.radians(angle))
            inner = (ring + 1 < rings and angle in (30, 330)) or (ring and angle in (150, 210))
            if name == "C" or not inner:
                atoms[round(x, 6), round(y, 6)] = name
    return [f"{name} {x} {y} 0" for (x, y), name in atoms.items()]
