"""Values of densities and orbitals on a grid, in Gaussian's cube format. Few points are evaluated at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Matrix = np.ndarray[Any, np.dtype[np.float64]]

POINTS = 80  # of each axis of the box
_MARGIN = 3.0  # between the outermost nuclei and the faces of the box (Bohr)
_WORK_BYTES = 1 << 23  # of functions at the points that are evaluated together


def write_density(path: Path, mol: Any, density: Matrix) -> None:
    """Writes a density [n][n] over basis functions, as electrons in Bohr^3. Not collective."""
    _write(
        path,
        mol,
        ("electron density", "electrons in Bohr^3"),
        (),
        lambda functions: np.einsum("gp,gp->g", functions @ density, functions)[:, None],
    )


def write_orbitals(path: Path, mol: Any, chosen: Sequence[tuple[str, int]], coefficients: Matrix) -> None:
    """Writes orbitals (Bohr^-3/2), side by side as Gaussian does. chosen: the spin ("" for both) and the number,
    from 0, of each; in the file numbers count from 1. coefficients: [function][orbital]. Not collective."""
    names = ", ".join(f"{spin} {number + 1}".strip() for spin, number in chosen)
    numbers = [number + 1 for _, number in chosen]
    _write(
        path,
        mol,
        ("orbitals", f"{names}, counted from 1"),
        numbers,
        lambda functions: functions @ coefficients,
    )


def _write(
    path: Path,
    mol: Any,
    title: tuple[str, str],
    numbers: Sequence[int],
    evaluate: Callable[[Matrix], Matrix],
) -> None:
    """numbers: of orbitals; empty for a density. evaluate: takes functions [point][n] to values [point][value]."""
    places = mol.atom_coords()
    origin = places.min(axis=0) - _MARGIN
    steps = (places.max(axis=0) + _MARGIN - origin) / (POINTS - 1)
    axes = [origin[k] + steps[k] * np.arange(POINTS) for k in range(3)]
    rows = max(1, _WORK_BYTES // (8 * POINTS * max(1, int(mol.nao))))  # of points along z
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{title[0]}\n{title[1]}\n")
        file.write(_line(-mol.natm if numbers else mol.natm, *origin))
        for k in range(3):
            file.write(_line(POINTS, *(steps[k] if k == each else 0.0 for each in range(3))))
        for atom in range(mol.natm):
            charge = int(mol.atom_charge(atom))
            file.write(_line(charge + int(mol.atom_nelec_core(atom)), float(charge), *places[atom]))
        if numbers:
            file.write("".join(f"{each:5d}" for each in (len(numbers), *numbers)) + "\n")
        columns = np.array([(x, y) for x in axes[0] for y in axes[1]])
        for begin in range(0, len(columns), rows):
            some = columns[begin : begin + rows]
            points = np.column_stack([np.repeat(some, POINTS, axis=0), np.tile(axes[2], len(some))])
            values = evaluate(mol.eval_gto("GTOval", points)).reshape(len(some), -1)
            file.writelines(_values(row) for row in values)


def _line(number: int, *values: float) -> str:
    return f"{number:5d}" + "".join(f"{each:12.6f}" for each in values) + "\n"


def _values(row: Matrix) -> str:
    """Six values a line; a new line for each row of points along z."""
    lines = ["".join(f"{each:13.5E}" for each in row[k : k + 6]) for k in range(0, len(row), 6)]
    return "\n".join(lines) + "\n"
