"""TREXIO files in both back-ends: numbers agree with the format's definitions, and are read back."""

import numpy as np
import pytest
import trexio
from pyscf import ao2mo, fci, gto, scf

import outcore
from outcore.base.errors import OutcoreError
from outcore.chem.ci import FCI, fcidump, trexio_states
from outcore.chem.formats import orbitals, trexio_file
from outcore.cli import main as cli

BACK_ENDS = ("a.h5", "a.trexio")
OH = "O 0 0 0.1; H 0.2 0 1.05"


def oh(kind="UHF", **given):
    mol = gto.M(atom=OH, basis={"O": "cc-pvtz", "H": "6-31g"}, spin=1, verbose=0, **given)
    return getattr(scf, kind)(mol).run(conv_tol=1e-10, max_cycle=100)


def read(path, *names):
    with trexio.File(str(path), "r", trexio.TREXIO_AUTO) as file:
        found = [getattr(trexio, f"read_{name}")(file) for name in names]
    return found[0] if len(found) == 1 else found


def solid(momentum, cartesian, x, y, z):
    """Functions of a shell by the definition of TREXIO."""
    if cartesian:
        powers = [
            (i, j, momentum - i - j) for i in range(momentum, -1, -1) for j in range(momentum - i, -1, -1)
        ]
        return [x**i * y**j * z**k for i, j, k in powers]
    r2 = x * x + y * y + z * z
    third = np.sqrt(3)
    return {
        0: [1.0 + 0 * x],
        1: [z, x, y],
        2: [(3 * z * z - r2) / 2, third * x * z, third * y * z, third / 2 * (x * x - y * y), third * x * y],
        3: [
            (5 * z**3 - 3 * z * r2) / 2,
            np.sqrt(3 / 8) * x * (5 * z * z - r2),
            np.sqrt(3 / 8) * y * (5 * z * z - r2),
            np.sqrt(15) / 2 * z * (x * x - y * y),
            np.sqrt(15) * x * y * z,
            np.sqrt(5 / 8) * x * (x * x - 3 * y * y),
            np.sqrt(5 / 8) * y * (3 * x * x - y * y),
        ],
    }[momentum]


def functions_of(path, points):
    """Values of the functions of a file, by the definition of the format."""
    atoms, momenta, index, exponents, coefficients, prim, norms, coord, cartesian = read(
        path,
        *("basis_nucleus_index", "basis_shell_ang_mom", "basis_shell_index", "basis_exponent"),
        *("basis_coefficient", "basis_prim_factor", "ao_normalization", "nucleus_coord", "ao_cartesian"),
    )
    values = []
    for shell, (atom, momentum) in enumerate(zip(atoms, momenta, strict=True)):
        x, y, z = (points - coord[atom]).T
        mine = index == shell
        radial = (coefficients[mine] * prim[mine]) @ np.exp(-np.outer(exponents[mine], x * x + y * y + z * z))
        values += [radial * each for each in solid(int(momentum), cartesian, x, y, z)]
    return np.array(values).T * norms


@pytest.mark.parametrize("name", BACK_ENDS)
@pytest.mark.parametrize("cart", [False, True])
def test_orbitals_have_the_values_that_the_format_defines(name, cart, tmp_path):
    mf = oh(cart=cart)
    orbitals.write(tmp_path / name, mf)
    points = np.random.default_rng(1).uniform(-2, 2, (40, 3))
    stored, spin, occupied = read(tmp_path / name, "mo_coefficient", "mo_spin", "mo_occupation")
    found = functions_of(tmp_path / name, points) @ stored.T
    wanted = mf.mol.eval_gto("GTOval", points) @ np.hstack(list(mf.mo_coeff))
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    np.testing.assert_array_equal(spin, np.repeat([0, 1], mf.mo_coeff[0].shape[1]))
    np.testing.assert_allclose(occupied, np.ravel(mf.mo_occ))
    overlap, repulsion = read(tmp_path / name, "ao_1e_int_overlap", "nucleus_repulsion")
    np.testing.assert_allclose(
        stored[spin == 1] @ overlap @ stored[spin == 1].T, np.eye(sum(spin)), atol=1e-8
    )
    assert repulsion == pytest.approx(mf.mol.energy_nuc())
    assert read(tmp_path / name, "metadata_code")[0].startswith("Outcore")


@pytest.mark.parametrize("name", BACK_ENDS)
def test_a_potential_is_written_term_by_term(name, tmp_path):
    mol = gto.M(atom="I 0 0 0; H 0 0 1.6", basis="def2-svp", ecp={"I": "def2-svp"}, verbose=0)
    mf = scf.RHF(mol).run(conv_tol=1e-9)
    orbitals.write(tmp_path / name, mf)
    charge, core, most, momenta, power, exponents, coefficients = read(
        tmp_path / name,
        *("nucleus_charge", "ecp_z_core", "ecp_max_ang_mom_plus_1", "ecp_ang_mom", "ecp_power"),
        *("ecp_exponent", "ecp_coefficient"),
    )
    assert (list(charge), list(core), list(most)) == ([25, 1], [28, 0], [3, 0])
    # V(r) = sum of local terms of l = 3, as PySCF has them under l = -1.
    r = 1.3
    local = momenta == 3
    found = np.sum(coefficients[local] * r ** power[local].astype(float) * np.exp(-exponents[local] * r * r))
    (wanted,) = (parts for momentum, parts in mol._ecp["I"][1] if momentum == -1)
    terms = [c * r ** (k - 2) * np.exp(-e * r * r) for k, each in enumerate(wanted) for e, c in each]
    assert found == pytest.approx(sum(terms))
    assert len(momenta) == sum(len(each) for _, parts in mol._ecp["I"][1] for each in parts)


@pytest.mark.parametrize("name", BACK_ENDS)
@pytest.mark.parametrize("kind", ["UHF", "ROHF"])
def test_orbitals_of_a_file_begin_an_scf(name, kind, tmp_path, capsys):
    mf = oh(kind)
    orbitals.write(tmp_path / name, mf)
    (tmp_path / "a.xyz").write_text("2\n\n" + OH.replace("; ", "\n") + "\n")
    given = ["scf", str(tmp_path / "a.xyz"), "--basis", "cc-pvdz", "--threads", "1", "--storage", "direct"]
    assert cli.run([*given, "--restart", str(tmp_path / name), *(["--rohf"] if kind == "ROHF" else [])]) == 0
    assert f"begins with the orbitals of {tmp_path / name}" in " ".join(capsys.readouterr().out.split())


def test_orbitals_are_read_as_they_were(tmp_path):
    mf = oh()
    orbitals.write(tmp_path / "a.h5", mf)
    mol, c, o, e = trexio_file.read_orbitals(tmp_path / "a.h5")
    np.testing.assert_allclose(c, np.array(mf.mo_coeff), atol=1e-12)
    np.testing.assert_allclose(o, mf.mo_occ)
    np.testing.assert_allclose(e, mf.mo_energy)
    np.testing.assert_allclose(mol.intor("int1e_ovlp"), mf.mol.intor("int1e_ovlp"), atol=1e-12)


def ci_of(mf, **given):
    ci = FCI(mf, threads=1, **given)
    ci.verbose = 0
    ci.kernel()
    return ci


def water():
    atoms = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
    mol = gto.M(atom=atoms, basis="sto-3g", symmetry=True, verbose=0)
    return scf.RHF(mol).run(conv_tol=1e-12)


@pytest.mark.parametrize("name", BACK_ENDS)
@pytest.mark.parametrize(
    ("spin", "folded"), [(0, True), pytest.param(0, False, marks=pytest.mark.long), (2, True)]
)
def test_determinants_of_a_file_have_the_energy_of_the_state(name, spin, folded, tmp_path, monkeypatch):
    monkeypatch.setattr(trexio_states, "PIECE", 16)
    ci = ci_of(water(), frozen=1, spin=spin, folded=folded)
    ci.write_trexio(tmp_path / name)
    h, core, alpha, beta, energy = read(
        tmp_path / name,
        *(
            "mo_1e_int_core_hamiltonian",
            "nucleus_repulsion",
            "electron_up_num",
            "electron_dn_num",
            "state_energy",
        ),
    )
    n = len(h)
    with trexio.File(str(tmp_path / name), "r", trexio.TREXIO_AUTO) as file:
        count = trexio.read_determinant_num(file)
        strings = trexio.read_determinant_list(file, 0, count)[0]
        values = trexio.read_determinant_coefficient(file, 0, count)[0]
        size = trexio.read_mo_2e_int_eri_size(file)
        indices, integrals = trexio.read_mo_2e_int_eri(file, 0, size)[:2]
    assert count == ci.space.determinants
    eri = np.zeros((n,) * 4)
    for (p, r, q, s), value in zip(indices, integrals, strict=True):  # <pr|qs> = (pq|rs)
        for i, j, k, m in ((p, q, r, s), (q, p, r, s), (p, q, s, r), (q, p, s, r)):
            eri[i, j, k, m] = eri[k, m, i, j] = value
    places = [
        {int(each): row for row, each in enumerate(fci.cistring.make_strings(range(n), electrons))}
        for electrons in (alpha, beta)
    ]
    vector = np.zeros((len(places[0]), len(places[1])))
    for (a, b), value in zip(strings, values, strict=True):
        vector[places[0][int(a)], places[1][int(b)]] = value
    assert np.linalg.norm(vector) == pytest.approx(1)
    solver = fci.direct_spin1.FCI()
    found = solver.energy(h, ao2mo.restore(8, eri, n), vector, n, (alpha, beta)) + core
    assert found == pytest.approx(energy, abs=1e-8)
    assert energy == pytest.approx(float(ci.e_tot), abs=1e-12)
    rdm = read(tmp_path / name, "rdm_1e")
    np.testing.assert_allclose(rdm, solver.make_rdm1(vector, n, (alpha, beta)), atol=1e-7)


def test_a_higher_root_has_its_own_occupations(tmp_path):
    ci = ci_of(water(), frozen=1, roots=2)
    ci.write_trexio(tmp_path / "a.h5", 1)
    occupations, rdm, energy, number = read(
        tmp_path / "a.h5", "mo_occupation", "rdm_1e", "state_energy", "state_id"
    )
    assert (energy, number) == (pytest.approx(float(ci.e_states[1]), abs=1e-12), 1)
    np.testing.assert_allclose(occupations, np.diag(rdm), atol=1e-12)
    assert abs(occupations - np.diag(ci.densities(0).one)).max() > 0.1


def test_determinants_are_written_in_pieces(tmp_path, monkeypatch):
    pieces = []
    write = trexio.write_determinant_list
    monkeypatch.setattr(trexio_states, "PIECE", 64)
    monkeypatch.setattr(
        trexio, "write_determinant_list", lambda *given: pieces.append(given[2]) or write(*given)
    )
    ci = ci_of(water(), group="C1")
    ci.write_trexio(tmp_path / "a.h5")
    assert sum(pieces) == ci.space.determinants == 441
    assert max(pieces) <= 64


@pytest.mark.parametrize("name", BACK_ENDS)
def test_integrals_of_a_file_are_those_of_another_full_ci(name, tmp_path):
    ci = ci_of(water(), frozen=1)
    ci.write_trexio(tmp_path / name)
    dump = fcidump.read(tmp_path / name)
    assert sum(dump.electrons) == 8
    again = FCI.from_fcidump(tmp_path / name, threads=1)
    again.verbose = 0
    assert float(again.kernel()) == pytest.approx(float(ci.e_tot), abs=1e-9)


def test_the_command_writes_a_state_and_a_density(tmp_path):
    (tmp_path / "a.xyz").write_text("2\n\nO 0 0 0.1\nH 0.2 0 1.05\n")
    given = ["fci", str(tmp_path / "a.xyz"), "--basis", "sto-3g", "--threads", "1", "--quiet"]
    files = ["--trexio", str(tmp_path / "a.trexio"), "--density", str(tmp_path / "b.h5")]
    assert cli.run([*given, *files]) == 0
    occupations, rdm = read(tmp_path / "b.h5", "mo_occupation", "rdm_1e")
    assert occupations.sum() == pytest.approx(9)
    np.testing.assert_allclose(rdm, np.diag(occupations), atol=1e-9)
    assert read(tmp_path / "a.trexio", "electron_num") == 9


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--trexio", "a.txt"], r"must end in \.h5 or \.trexio"),
        (["--trexio", "a.h5", "--uhf"], "--trexio has no effect with --uhf"),
        (["--trexio", "a.h5", "--energy-only"], "--trexio has no effect with --energy-only"),
        (["--density", "a.h5", "--estimate"], "--density has no effect with --estimate"),
        (["--restart", "bad.h5"], "neither a Molden file"),
    ],
)
def test_what_cannot_be_is_refused(more, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.xyz").write_text("2\n\nO 0 0 0.1\nH 0.2 0 1.05\n")
    (tmp_path / "bad.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(OutcoreError, match=said):
        cli.run(["fci", "a.xyz", "--basis", "sto-3g", "--threads", "1", *more])


def test_a_file_without_integrals_is_refused(tmp_path):
    orbitals.write(tmp_path / "a.h5", water())
    with pytest.raises(outcore.OutcoreError, match="lacks mo_1e_int_core_hamiltonian, mo_2e_int_eri"):
        fcidump.read(tmp_path / "a.h5")
