"""A state of full CI in a TREXIO file: orbitals, integrals, densities, and all determinants, tile by tile."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base import plain_file
from outcore.base.errors import OutcoreError
from outcore.chem.formats import trexio_file

if TYPE_CHECKING:
    from outcore.chem.ci.fci import FCI
    from outcore.chem.ci.space import Space

_ATTEMPTED = "write TREXIO"
PIECE = 1 << 18  # determinants that are written together: 24 bytes each, and the library's copies


def check_name(option: str, path: Path | None) -> None:
    """Raises OutcoreError if the name of a file has another ending, or if the package is missing."""
    if path is None:
        return
    if path.suffix not in trexio_file.SUFFIXES:
        detail = f"its name must end in {' or '.join(trexio_file.SUFFIXES)}"
        raise OutcoreError(errno.EINVAL, f"{option} {path}", detail=detail)
    trexio_file.module(_ATTEMPTED)


def check(ci: FCI) -> None:
    """Raises OutcoreError (ENOTSUP) if orbitals differ in spin."""
    if ci.hamiltonian.unrestricted:
        raise OutcoreError(
            errno.ENOTSUP, _ATTEMPTED, detail="orbitals of spin alpha and beta differ; take those of ROHF"
        )


def write(path: Path, ci: FCI, root: int = 0) -> None:
    """Writes a state, and replaces an existing file. Orbitals are the active ones, sorted by irrep. Integrals,
    electrons and `nucleus.repulsion` are those of the active space, as in an FCIDUMP file: frozen orbitals are
    folded into them. The first process writes, with memory for one tile and PIECE determinants. Collective. Raises
    OutcoreError."""
    found = ci.densities(root)
    with ci.world.together(_ATTEMPTED, str(path), root):
        check(ci)
        if ci.world.rank == 0:
            trexio = trexio_file.module(_ATTEMPTED)
            with (
                plain_file.replaced(path, _ATTEMPTED) as new,
                trexio_file.opened(new, "w", _ATTEMPTED) as file,
            ):
                _write_space(file, trexio, ci, root)
                trexio.write_rdm_1e_up(file, np.ascontiguousarray(found.alpha))
                trexio.write_rdm_1e_dn(file, np.ascontiguousarray(found.beta))
                trexio.write_rdm_1e(file, np.ascontiguousarray(found.one))
                trexio.write_state_num(file, ci.target.roots)
                trexio.write_state_id(file, root)
                trexio.write_state_energy(file, float(ci.e_states[root]))
                _write_determinants(file, trexio, ci, root)


def _write_space(file: Any, trexio: Any, ci: FCI, root: int) -> None:
    space, hamiltonian = ci.orbitals, ci.hamiltonian
    n = hamiltonian.orbitals
    frozen = (
        "" if space is None or not space.frozen else f"; {space.frozen} frozen orbitals are in the integrals"
    )
    trexio_file.write_origin(file, f"full CI{frozen}")
    if space is not None:
        trexio_file.write_molecule(file, space.mol, ci.space.electrons)
        trexio_file.write_orbitals(
            file, space.mol, "CI", [space.coefficients[0]], [np.diag(ci.densities(root).one).copy()]
        )
    else:
        trexio.write_mo_num(file, n)
        for name, count in zip(("up_num", "dn_num"), ci.space.electrons, strict=True):
            getattr(trexio, f"write_electron_{name}")(file, int(count))
        trexio.write_electron_num(file, int(sum(ci.space.electrons)))
    trexio.write_mo_class(file, ["Active"] * n)
    trexio.write_mo_symmetry(file, [hamiltonian.names[each] for each in hamiltonian.irreps])
    trexio.write_nucleus_repulsion(file, float(hamiltonian.core_energy))
    trexio.write_mo_1e_int_core_hamiltonian(file, np.ascontiguousarray(hamiltonian.ones[0]))
    trexio_file.write_two_electron(file, hamiltonian.twos[0])


def _write_determinants(file: Any, trexio: Any, ci: FCI, root: int) -> None:
    states, space, offset = ci.solved.states, ci.space, 0
    for number in range(len(states.tiling)):
        tile = states.tiling[number]
        block = np.asarray(states.get(root, tile))
        r, c = tile.first
        alpha, beta = space.alpha.strings[r : r + tile.shape[0]], space.beta.strings[c : c + tile.shape[1]]
        offset = _write_block(file, trexio, offset, alpha, beta, block)
        if space.parity and not tile.on_diagonal:
            offset = _write_block(file, trexio, offset, beta, alpha, space.parity * block.T)
    _check_count(offset, space)


def _write_block(file: Any, trexio: Any, offset: int, alpha: Any, beta: Any, block: Any) -> int:
    rows = max(1, PIECE // max(1, len(beta)))
    for begin in range(0, len(alpha), rows):
        part = np.ascontiguousarray(block[begin : begin + rows], np.float64)
        listed = np.empty((part.size, 2), np.int64)
        listed[:, 0] = np.repeat(alpha[begin : begin + rows].astype(np.uint64).view(np.int64), len(beta))
        listed[:, 1] = np.tile(beta.astype(np.uint64).view(np.int64), len(part))
        trexio.write_determinant_list(file, offset, part.size, listed)
        trexio.write_determinant_coefficient(file, offset, part.size, part.ravel())
        offset += part.size
    return offset


def _check_count(written: int, space: Space) -> None:
    if written != space.determinants:
        raise OutcoreError(
            errno.EIO, _ATTEMPTED, detail=f"{written} of {space.determinants} determinants were written"
        )
