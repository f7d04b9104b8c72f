"""TREXIO files: a molecule, its functions and potentials, orbitals, integrals and densities.

Names end in .h5 (HDF5) or .trexio (a directory of text). Spherical functions of a shell are in TREXIO's order (m =
0, 1, -1, 2, -2, ..), Cartesian ones in alphabetical order, as in PySCF. Two-electron integrals are <ij|kl>. Charges
of nuclei are reduced by the electrons that potentials replace. Posenitskiy et al., J. Chem. Phys. 158, 174801
(2023).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from outcore.base import extras
from outcore.base.errors import OutcoreError

Matrix = np.ndarray[Any, np.dtype[np.float64]]
SUFFIXES = (".h5", ".trexio")
_BUFFER = 1 << 20  # integrals that are moved together


def module(attempted: str) -> Any:
    """The package of TREXIO. Raises OutcoreError if it is not installed."""
    try:
        import trexio
    except ModuleNotFoundError as error:
        raise extras.missing(error, attempted) or error from error
    return trexio


def is_one(path: Path) -> bool:
    """Whether a file or a directory belongs to TREXIO, by the names in it."""
    if path.is_dir():
        return (path / "metadata.txt").exists() or (path / "nucleus.txt").exists()
    if not path.is_file():  # to open a FIFO would wait
        return False
    try:
        with path.open("rb") as file:
            if file.read(8) != b"\x89HDF\r\n\x1a\n":
                return False
    except OSError:
        return False
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return "metadata" in file and "scf" not in file
    except (OSError, RuntimeError):  # damaged
        return False


@contextmanager
def opened(path: Path, mode: str, attempted: str) -> Iterator[Any]:
    """A context with an open file. mode: "w": a new file; `plain_file.replaced` removes it if the caller fails.
    Raises OutcoreError."""
    trexio = module(attempted)
    back_end = trexio.TREXIO_TEXT if path.suffix == ".trexio" else trexio.TREXIO_HDF5
    try:
        file = trexio.File(str(path), mode=mode, back_end=back_end if mode == "w" else trexio.TREXIO_AUTO)
        try:
            yield file
        finally:
            file.close()
    except trexio.Error as error:
        raise OutcoreError(errno.EIO, attempted, path=path, detail=str(error)) from error


# ---- writing ----


def write_origin(file: Any, description: str) -> None:
    from importlib.metadata import version

    trexio = module("write TREXIO")
    trexio.write_metadata_code_num(file, 1)
    trexio.write_metadata_code(file, [f"Outcore {version('outcore')}"])
    trexio.write_metadata_description(file, description)


def write_molecule(file: Any, mol: Any, electrons: tuple[int, int] | None = None) -> None:
    """Nuclei, electrons (alpha, beta), functions, potentials."""
    trexio = module("write TREXIO")
    trexio.write_nucleus_num(file, mol.natm)
    trexio.write_nucleus_charge(file, np.asarray(mol.atom_charges(), float))
    trexio.write_nucleus_coord(file, mol.atom_coords())
    trexio.write_nucleus_label(file, [mol.atom_pure_symbol(atom) for atom in range(mol.natm)])
    if mol.symmetry:
        trexio.write_nucleus_point_group(file, str(mol.groupname))
    alpha, beta = mol.nelec if electrons is None else electrons
    trexio.write_electron_num(file, int(alpha + beta))
    trexio.write_electron_up_num(file, int(alpha))
    trexio.write_electron_dn_num(file, int(beta))
    _write_functions(file, trexio, mol)
    if mol._ecp:
        _write_potentials(file, trexio, mol)


def _write_functions(file: Any, trexio: Any, mol: Any) -> None:
    from pyscf import gto

    atoms: list[int] = []
    momenta, exponents, coefficients, factors, shells = [], [], [], [], []
    for shell in range(mol.nbas):
        momentum, exps = int(mol.bas_angular(shell)), mol.bas_exp(shell)
        for column in mol.bas_ctr_coeff(shell).T:
            shells += [len(atoms)] * len(exps)
            atoms.append(int(mol.bas_atom(shell)))
            momenta.append(momentum)
            exponents += list(exps)
            coefficients += list(column)
            factors += list(gto.gto_norm(momentum, exps))
    count = len(atoms)
    trexio.write_basis_type(file, "Gaussian")
    trexio.write_basis_shell_num(file, count)
    trexio.write_basis_prim_num(file, len(exponents))
    trexio.write_basis_nucleus_index(file, atoms)
    trexio.write_basis_shell_ang_mom(file, momenta)
    trexio.write_basis_shell_factor(file, np.ones(count))
    trexio.write_basis_r_power(file, np.zeros(count, np.int64))
    trexio.write_basis_shell_index(file, shells)
    trexio.write_basis_exponent(file, np.array(exponents))
    trexio.write_basis_coefficient(file, np.array(coefficients))
    trexio.write_basis_prim_factor(file, np.array(factors))
    members = [(k + 1) * (k + 2) // 2 if mol.cart else 2 * k + 1 for k in momenta]
    trexio.write_ao_cartesian(file, int(mol.cart))
    trexio.write_ao_num(file, int(mol.nao))
    trexio.write_ao_shell(file, np.repeat(np.arange(count), members))
    trexio.write_ao_normalization(file, np.repeat([_norm(k, cartesian=mol.cart) for k in momenta], members))


def _norm(momentum: int, *, cartesian: bool) -> float:
    """The norm of solid harmonics, which TREXIO leaves out; of Cartesian functions PySCF normalises only s and
    p."""
    return 1.0 if cartesian and momentum > 1 else float(np.sqrt((2 * momentum + 1) / (4 * np.pi)))


def _write_potentials(file: Any, trexio: Any, mol: Any) -> None:
    cores, largest = np.zeros(mol.natm, np.int64), np.zeros(mol.natm, np.int64)
    rows: list[tuple[int, int, int, float, float]] = []  # atom, momentum, power, exponent, coefficient
    for atom in range(mol.natm):
        found = mol._ecp.get(mol.atom_symbol(atom), mol._ecp.get(mol.atom_pure_symbol(atom)))
        if found is None or not mol.atom_charge(atom):
            continue
        cores[atom], parts = found
        largest[atom] = max(each[0] for each in parts) + 1
        for momentum, powers in parts:
            local = int(largest[atom]) if momentum < 0 else int(momentum)
            for power, terms in enumerate(powers):
                rows += [(atom, local, power - 2, float(term[0]), float(term[1])) for term in terms]
    trexio.write_ecp_max_ang_mom_plus_1(file, largest)
    trexio.write_ecp_z_core(file, cores)
    trexio.write_ecp_num(file, len(rows))
    columns = list(zip(*rows, strict=True))
    trexio.write_ecp_nucleus_index(file, list(columns[0]))
    trexio.write_ecp_ang_mom(file, list(columns[1]))
    trexio.write_ecp_power(file, list(columns[2]))
    trexio.write_ecp_exponent(file, list(columns[3]))
    trexio.write_ecp_coefficient(file, list(columns[4]))


def order(mol: Any) -> Any:
    """For each function in TREXIO's order its index in PySCF's order."""
    places: list[Any] = []
    begin = 0
    for shell in range(mol.nbas):
        momentum = int(mol.bas_angular(shell))
        size = (momentum + 1) * (momentum + 2) // 2 if mol.cart else 2 * momentum + 1
        within = np.arange(size)
        if not mol.cart:
            m = np.array([0] + [sign * k for k in range(1, momentum + 1) for sign in (1, -1)])
            # PySCF has p functions in the order x, y, z, others in the order m = -l, .., l.
            within = np.array([2, 0, 1]) if momentum == 1 else m + momentum
        for _ in range(mol.bas_nctr(shell)):
            places.append(within + begin)
            begin += size
    return np.concatenate(places)


def write_orbitals(
    file: Any,
    mol: Any,
    kind: str,
    spins: list[Matrix],
    occupations: list[Matrix],
    energies: list[Matrix] | None = None,
) -> None:
    """Writes orbitals. spins: coefficients [function][orbital] over PySCF's functions, of both spins together or of
    each."""
    trexio, places = module("write TREXIO"), order(mol)
    every = np.concatenate([each[places] for each in spins], axis=1)
    counts = [each.shape[1] for each in spins]
    trexio.write_mo_type(file, kind)
    trexio.write_mo_num(file, sum(counts))
    trexio.write_mo_coefficient(file, np.ascontiguousarray(every.T))
    trexio.write_mo_occupation(file, np.concatenate(occupations))
    trexio.write_mo_spin(file, np.repeat(np.arange(len(spins)), counts))
    if energies is not None:
        trexio.write_mo_energy(file, np.concatenate(energies))


def write_one_electron(file: Any, mol: Any, hamiltonian: Matrix) -> None:
    """Writes integrals over functions: overlap, kinetic energy, nuclei, potentials; and the Hamiltonian of the
    SCF."""
    trexio, places = module("write TREXIO"), order(mol)
    box = np.ix_(places, places)
    trexio.write_ao_1e_int_overlap(file, np.ascontiguousarray(mol.intor("int1e_ovlp")[box]))
    trexio.write_ao_1e_int_kinetic(file, np.ascontiguousarray(mol.intor("int1e_kin")[box]))
    trexio.write_ao_1e_int_potential_n_e(file, np.ascontiguousarray(mol.intor("int1e_nuc")[box]))
    if mol._ecp:
        trexio.write_ao_1e_int_ecp(file, np.ascontiguousarray(mol.intor("ECPscalar")[box]))
    trexio.write_ao_1e_int_core_hamiltonian(file, np.ascontiguousarray(hamiltonian[box]))


def write_two_electron(file: Any, two: Matrix, least: float = 1e-15) -> None:
    """Writes integrals over orbitals. two: (pq|rs) with its full symmetry; each distinct integral is written
    once."""
    trexio, n, offset = module("write TREXIO"), len(two), 0
    first, second = np.tril_indices(n)
    for pair, (p, q) in enumerate(zip(first, second, strict=True)):
        r, s = first[: pair + 1], second[: pair + 1]
        values = two[p, q, r, s]
        chosen = np.flatnonzero(abs(values) > least)
        if len(chosen):
            full = np.stack([np.full(len(chosen), p), r[chosen], np.full(len(chosen), q), s[chosen]], axis=1)
            trexio.write_mo_2e_int_eri(
                file, offset, len(chosen), full.astype(np.int32), np.ascontiguousarray(values[chosen])
            )
            offset += len(chosen)


def write_state(path: Path, mf: Any) -> None:
    """Writes the state of an SCF to a new file: molecule, orbitals, one-electron integrals."""
    unrestricted = np.ndim(mf.mo_occ) == 2
    kind = "UHF" if unrestricted else "ROHF" if mf.mol.spin else "RHF"
    c, o, e = (
        [np.asarray(each) for each in given] if unrestricted else [np.asarray(given)]
        for given in (mf.mo_coeff, mf.mo_occ, mf.mo_energy)
    )
    with opened(path, "w", "write TREXIO") as file:
        write_origin(file, f"{kind}, energy {float(mf.e_tot)!r} Hartree")
        write_molecule(file, mf.mol)
        module("write TREXIO").write_nucleus_repulsion(file, float(mf.mol.energy_nuc()))
        write_orbitals(file, mf.mol, kind, c, o, e)
        write_one_electron(file, mf.mol, np.asarray(mf.get_hcore()))


def write_densities(path: Path, mol: Any, spins: Sequence[Matrix], natural: tuple[Matrix, Matrix]) -> None:
    """Writes one-particle densities over functions to a new file, of alpha and of beta or one of both together, in
    terms of natural orbitals (occupations, coefficients)."""
    trexio = module("write TREXIO")
    occupations, orbitals = natural
    bridge = mol.intor_symmetric("int1e_ovlp") @ orbitals
    found = [np.ascontiguousarray(bridge.T @ each @ bridge) for each in spins]
    counts = [round(float(np.trace(each))) for each in found]
    electrons = (counts[0], counts[1]) if len(counts) == 2 else (counts[0] - counts[0] // 2, counts[0] // 2)
    with opened(path, "w", "write TREXIO") as file:
        write_origin(file, "one-particle densities in natural orbitals")
        write_molecule(file, mol, electrons)
        write_orbitals(file, mol, "Natural", [orbitals], [occupations])
        trexio.write_rdm_1e(file, np.sum(found, axis=0))
        if len(found) == 2:
            trexio.write_rdm_1e_up(file, found[0])
            trexio.write_rdm_1e_dn(file, found[1])


# ---- reading ----


def read_orbitals(path: Path) -> tuple[Any, Any, Any, Any]:
    """Reads a molecule, and coefficients, occupations and energies of its orbitals; for orbitals of each spin these
    are pairs. Raises ValueError if a file lacks something, and OutcoreError."""
    trexio = module("read TREXIO")
    with opened(path, "r", "read TREXIO") as file:
        if not trexio.has_mo_coefficient(file) or not trexio.has_basis_exponent(file):
            raise ValueError("it has no orbitals over Gaussian functions")
        mol = _read_molecule(file, trexio)
        stored = np.asarray(trexio.read_mo_coefficient(file))
        if stored.shape[1] != mol.nao:
            raise ValueError(f"{stored.shape[1]} functions of {mol.nao}")
        c = np.empty_like(stored.T)
        c[order(mol)] = stored.T
        count = c.shape[1]
        spin = np.asarray(trexio.read_mo_spin(file)) if trexio.has_mo_spin(file) else np.zeros(count, int)
        o = np.asarray(trexio.read_mo_occupation(file)) if trexio.has_mo_occupation(file) else None
        e = np.asarray(trexio.read_mo_energy(file)) if trexio.has_mo_energy(file) else np.arange(count) * 1.0
        if o is None:
            raise ValueError("its orbitals have no occupations")
        if not spin.any():
            return mol, c, o, e
        both = [spin == 0, spin == 1]
        return (mol, *([each[..., chosen] for chosen in both] for each in (c, o, e)))


def _read_molecule(file: Any, trexio: Any) -> Any:
    """Reads the molecule, for its functions only; they have PySCF's norm."""
    from pyscf import gto

    labels = [f"{label}{k}" for k, label in enumerate(trexio.read_nucleus_label(file))]
    shells, momenta = trexio.read_basis_nucleus_index(file), trexio.read_basis_shell_ang_mom(file)
    index = np.asarray(trexio.read_basis_shell_index(file))
    exponents, weights = np.asarray(trexio.read_basis_exponent(file)), _weights(file, trexio)
    basis: dict[str, list[Any]] = {label: [] for label in labels}
    for shell, (atom, momentum) in enumerate(zip(shells, momenta, strict=True)):
        mine = index == shell
        norms = gto.gto_norm(int(momentum), exponents[mine])
        rows = np.stack([exponents[mine], weights[mine] / norms], axis=1)
        basis[labels[atom]].append([int(momentum), *rows.tolist()])
    mol = gto.Mole()
    mol.verbose, mol.unit = 0, "bohr"
    mol.cart = bool(trexio.has_ao_cartesian(file) and trexio.read_ao_cartesian(file))
    mol.atom = list(zip(labels, np.asarray(trexio.read_nucleus_coord(file)).tolist(), strict=True))
    mol._basis = basis  # set directly: PySCF would sort it
    charges = np.asarray(trexio.read_nucleus_charge(file))
    mol.spin = round(charges.sum()) % 2
    mol.build(basis={}, dump_input=False, parse_arg=False)
    atoms = mol._atm.copy()
    atoms[:, gto.CHARGE_OF] = charges.round().astype(int)
    mol._atm = atoms
    return mol


def _weights(file: Any, trexio: Any) -> Any:
    """The coefficients of primitives, with all factors."""
    weights = np.asarray(trexio.read_basis_coefficient(file))
    if trexio.has_basis_prim_factor(file):
        weights = weights * np.asarray(trexio.read_basis_prim_factor(file))
    if trexio.has_basis_shell_factor(file):
        weights = (
            weights
            * np.asarray(trexio.read_basis_shell_factor(file))[
                np.asarray(trexio.read_basis_shell_index(file))
            ]
        )
    return weights


def read_integrals(path: Path) -> tuple[Matrix, Matrix, float, tuple[int, int]]:
    """Reads h [p][q], (pq|rs), the core energy and the numbers of (alpha, beta) electrons. Raises OutcoreError."""
    attempted = "read TREXIO"
    trexio = module(attempted)
    with opened(path, "r", attempted) as file:
        lacks = [
            name
            for name in (
                "mo_1e_int_core_hamiltonian",
                "mo_2e_int_eri",
                "electron_up_num",
                "nucleus_repulsion",
            )
            if not getattr(trexio, f"has_{name}")(file)
        ]
        if lacks:
            raise OutcoreError(errno.EINVAL, attempted, path=path, detail=f"it lacks {', '.join(lacks)}")
        one = np.asarray(trexio.read_mo_1e_int_core_hamiltonian(file))
        if trexio.has_mo_spin(file) and np.any(trexio.read_mo_spin(file)):
            raise OutcoreError(
                errno.ENOTSUP,
                attempted,
                path=path,
                detail="its orbitals differ in spin; write an FCIDUMP file",
            )
        two, offset = np.zeros((len(one),) * 4), 0
        total = int(trexio.read_mo_2e_int_eri_size(file))
        while offset < total:
            indices, values, read, _ = trexio.read_mo_2e_int_eri(file, offset, min(_BUFFER, total - offset))
            p, r, q, s = np.asarray(indices[:read]).T
            for a, b, c, d in ((p, q, r, s), (r, s, p, q)):
                for i, j in ((a, b), (b, a)):
                    two[i, j, c, d] = two[i, j, d, c] = values[:read]
            offset += read
            if not read:
                break
        electrons = int(trexio.read_electron_up_num(file)), int(trexio.read_electron_dn_num(file))
        return one, two, float(trexio.read_nucleus_repulsion(file)), electrons
