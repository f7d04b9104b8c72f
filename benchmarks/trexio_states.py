"""A state of a hundred million determinants, from vectors on disk into a TREXIO file, in 500 MB.

One command, `outcore fci --trexio`: N2/cc-pVDZ with two frozen occupied and three frozen virtual orbitals, to a
loose residual, because the file can hold any state. Then the benchmark reads the file in pieces, counts the
determinants, checks that no two neighbours are equal, computes the norm of the state, and removes the file.

--quick: N2 with more frozen virtual orbitals, a hundred thousand determinants.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from outcore.cli.bench import BenchOptions, Claim, at_least, at_most
from outcore.job.resources import parse_bytes

from . import _killed_runs

_MOLECULE = "2\nN2\nN 0 0 0\nN 0 0 1.0977\n"
_MEMORY = "500MB"
_PIECE = 1 << 20  # determinants per read


def run(options: BenchOptions) -> list[Claim]:
    geometry, results = options.scratch / "n2.xyz", options.scratch / "results.json"
    geometry.write_text(_MOLECULE)
    target = options.scratch / "n2.h5"
    frozen_virtual = "14" if options.quick else "3"
    command = [
        sys.executable, "-m", "outcore", "fci", str(geometry), "--basis", "cc-pvdz", "--group", "D2h",
        "--frozen", "2", "--frozen-virtual", frozen_virtual, "--precision", "mixed", "--residual", "1e-3",
        "--memory", _MEMORY, "--scratch", str(options.scratch), "--trexio", str(target), "--json", str(results),
    ]  # fmt: skip
    _, most = _killed_runs.run(options, "N2", command, lambda line: options.say(line.rstrip()))
    found = json.loads(results.read_text())
    count, squared, repeated = _read(target)
    size = target.stat().st_size
    target.unlink()
    how = f"{found['determinants']} determinants, {size / 1e9:.2f} GB"
    energy = found["energies_hartree"][0]
    return [
        Claim("determinants in the file", count, "", None if options.quick else at_least(1e8), "", how),
        Claim(
            "determinants in the file less those of the state", count - found["determinants"] + repeated, "",
            at_most(0), "", f"{how}; read back in pieces of {_PIECE}",
        ),
        Claim("norm of the state in the file, less 1", abs(squared - 1), "", at_most(1e-9), "", how),
        Claim(
            f"peak resident over {_MEMORY}", most / parse_bytes(_MEMORY), "", at_most(1.0), "",
            f"{how}; search, densities and file",
        ),
        Claim("energy", energy, "Eh", None, "", f"residual {found['residuals'][0]:.1e} Eh"),
    ]  # fmt: skip


def _read(path: Path) -> tuple[int, float, int]:
    """The number of determinants in a file, the sum of their squared coefficients, and the number of determinants
    that equal the one before."""
    import trexio

    squared, repeated, begin = 0.0, 0, 0
    last = np.zeros((0, 2), np.int64)
    with trexio.File(str(path), "r", trexio.TREXIO_HDF5) as file:
        count = int(trexio.read_determinant_num(file))
        while begin < count:
            piece = min(_PIECE, count - begin)
            listed = np.concatenate([last, np.asarray(trexio.read_determinant_list(file, begin, piece)[0])])
            values = np.asarray(trexio.read_determinant_coefficient(file, begin, piece)[0])
            repeated += int((listed[1:] == listed[:-1]).all(axis=1).sum())
            squared += float(values @ values)
            last, begin = listed[-1:], begin + piece
    return count, squared, repeated
