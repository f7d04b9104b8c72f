"""FCIDUMP in and out."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest
from ci_cases import integrals, random_hamiltonian

from outcore.base.errors import OutcoreError
from outcore.chem.ci import fcidump
from outcore.chem.ci import hamiltonian as hamiltonians

IRREPS = [2, 0, 3, 0, 1, 2]
SMALL = "&FCI NORB=2,NELEC=2,MS2=0,\n ORBSYM=1,1,\n ISYM=1,\n&END\n"
BODY = "0.6 1 1 1 1\n0.1 2 1 2 1\n0.5 2 2 1 1\n0.7 2 2 2 2\n-1.2 1 1 0 0\n-0.4 2 2 0 0\n0.7 0 0 0 0\n"


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "FCIDUMP"

    def write(text: str):
        path.write_text(text)
        return path

    return write


def refused(path) -> str:
    with pytest.raises(OutcoreError) as caught:
        fcidump.read(path)
    message = str(caught.value)
    assert str(path) in message
    return message


def same(left, right, tolerance=1e-13):
    for one, other in ((left.ones, right.ones), (left.twos, right.twos)):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, atol=tolerance)
    assert left.irreps.tolist() == right.irreps.tolist()
    assert left.permutation.tolist() == right.permutation.tolist()
    assert left.core_energy == pytest.approx(right.core_energy, abs=tolerance)


def test_what_was_written_is_read(tmp_path):
    path, h = tmp_path / "FCIDUMP", random_hamiltonian(6, 1, IRREPS, core_energy=9.25)
    fcidump.write(path, h, (3, 2), 2)
    found = fcidump.read(path)
    same(found.hamiltonian, h)
    assert (found.electrons, found.irrep, found.notes) == ((3, 2), 2, ())
    assert [each.name for each in tmp_path.iterdir()] == ["FCIDUMP"]


def test_orbitals_that_differ_in_spin_are_written_and_read(tmp_path):
    (one_a, aa), (one_b, bb) = integrals(6, 1, IRREPS), integrals(6, 2, IRREPS)
    ab = aa + np.einsum("pq,rs->pqrs", one_a, one_b)
    h = hamiltonians.make((one_a, one_b), (aa, ab, bb), irreps=IRREPS, group="C2v", core_energy=0.5)
    fcidump.write(tmp_path / "FCIDUMP", h, (3, 4))
    found = fcidump.read(tmp_path / "FCIDUMP")
    assert found.electrons == (3, 4) and found.hamiltonian.unrestricted
    same(found.hamiltonian, h)


def test_numbers_of_spin_orbitals_are_understood(dump):
    (one_a, aa), (one_b, bb) = integrals(2, 1), integrals(2, 2)
    ab = aa + np.einsum("pq,rs->pqrs", one_a, one_b)
    lines = ["&FCI NORB=4,NELEC=2,MS2=0,UHF=.TRUE.,ORBSYM=1,1,1,1,ISYM=1 /"]
    for spin, (one, blocks) in enumerate(((one_a, (aa, ab)), (one_b, (ab.transpose(2, 3, 0, 1), bb)))):
        for p, q in np.ndindex(2, 2):
            lines.append(f"{one[p, q]:.17g} {2 * p + spin + 1} {2 * q + spin + 1} 0 0")
            for other, two in enumerate(blocks):
                for r, s in np.ndindex(2, 2):
                    right = f"{2 * r + other + 1} {2 * s + other + 1}"
                    lines.append(f"{two[p, q, r, s]:.17g} {2 * p + spin + 1} {2 * q + spin + 1} {right}")
    found = fcidump.read(dump("\n".join([*lines, "1.5 0 0 0 0\n"])))
    expected = hamiltonians.make((one_a, one_b), (aa, ab, bb), core_energy=1.5, irreps=[0, 0], names=["1"])
    same(found.hamiltonian, expected)


@pytest.mark.parametrize("molpro", [False, True])
@pytest.mark.parametrize("symmetry", [False, "C2v"])
def test_a_file_of_pyscf_is_read(tmp_path, molpro, symmetry):
    pyscf = pytest.importorskip("pyscf")
    from pyscf.tools import fcidump as theirs

    atoms = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"
    mf = pyscf.M(atom=atoms, basis="sto-3g", symmetry=symmetry, verbose=0).RHF().run()
    path = tmp_path / "FCIDUMP"
    theirs.from_scf(mf, str(path), molpro_orbsym=molpro, tol=0)
    found = fcidump.read(path)
    assert found.electrons == (5, 5) and found.irrep == 0
    assert found.hamiltonian.groups == (4 if symmetry else 1)
    assert any("from 0" in note for note in found.notes) == (bool(symmetry) and not molpro)
    one = mf.mo_coeff.T @ mf.get_hcore() @ mf.mo_coeff
    order = found.hamiltonian.permutation
    np.testing.assert_allclose(found.hamiltonian.one, one[np.ix_(order, order)], atol=1e-10)
    theirs_read = theirs.read(str(path), verbose=False)
    ours = tmp_path / "OURS"
    fcidump.write(ours, found.hamiltonian, found.electrons)
    again = theirs.read(str(ours), verbose=False)
    np.testing.assert_allclose(again["H2"], theirs_read["H2"], atol=1e-10)
    np.testing.assert_allclose(again["H1"], theirs_read["H1"], atol=1e-10)


@pytest.mark.parametrize(
    "header",
    [
        SMALL,
        " &FCI NORB=  2,NELEC= 2,MS2= 0,\n  ORBSYM=1,1,\n  ISYM=1\n /\n",
        "$FCI norb=2 nelec=2 ms2=0 orbsym=1 1 isym=1 $END\n",
        "&FCI NORB=2,\n NELEC=2,\n MS2=0,\n ORBSYM=2*1,\n ISYM=1,\n IUHF=0,\n &\n",
        "&fci\n\tNORB = 2 , NELEC = 2, MS2 = 0 ! a comment\n ORBSYM = 1,1 ISYM = 1, UHF=.FALSE. TREL=F\n&end\n",
    ],
)
def test_variants_of_the_header_are_the_same(dump, header):
    found = fcidump.read(dump(header + BODY))
    assert found.electrons == (1, 1) and found.irrep == 0 and found.notes == ()
    assert found.hamiltonian.two[1, 0, 0, 1] == 0.1 and found.hamiltonian.core_energy == 0.7


def test_numbers_of_fortran_orbital_energies_and_partners_are_taken(dump):
    body = BODY.replace("0.1 2 1 2 1", "1.0D-01 1 2 2 1\n0.1 2 1 1 2") + "-0.5 1 0 0 0\n\n"
    assert fcidump.read(dump(SMALL + body)).hamiltonian.two[0, 1, 0, 1] == 0.1


def test_what_is_taken_for_granted_is_told(dump):
    notes = fcidump.read(dump("&FCI NORB=2 NELEC=2 PROPBITLEN=15 &END\n" + BODY)).notes
    assert len(notes) == 3
    assert "PROPBITLEN" in notes[0] and "no MS2" in notes[1] and "no symmetry" in notes[2]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "header does not end"),
        ("NORB=2\n" + BODY, "begins with 'NORB=2'"),
        ("&FCI NORB=2,NELEC=2,MS2=0\n" + BODY, "header does not end"),
        ("&FCI NELEC=2,MS2=0 &END\n" + BODY, "has no NORB"),
        ("&FCI NORB=two,NELEC=2,MS2=0 &END\n" + BODY, "NORB='two'"),
        ("&FCI NORB=2,NORB=2,NELEC=2,MS2=0 &END\n" + BODY, "NORB twice"),
        ("&FCI 3 NORB=2,NELEC=2,MS2=0 &END\n" + BODY, "before the first NAME="),
        ("&FCI NORB=2,NELEC=2,MS2=1 &END\n" + BODY, "contradict each other"),
        ("&FCI NORB=2,NELEC=6,MS2=0 &END\n" + BODY, "too many for 2 orbitals"),
        ("&FCI NORB=2,NELEC=2,MS2=0,ORBSYM=1 &END\n" + BODY, "1 irreps for 2 orbitals"),
        ("&FCI NORB=2,NELEC=2,MS2=0,ORBSYM=1,9 &END\n" + BODY, "irreps are 1 to 8"),
        ("&FCI NORB=2,NELEC=2,MS2=0,ORBSYM=1,2,ISYM=5 &END\n" + BODY, "ISYM=5"),
        ("&FCI NORB=2,NELEC=2,MS2=0,TREL=.TRUE. &END\n" + BODY, "complex"),
        ("&FCI NORB=2,NELEC=2,MS2=0,UHF=maybe &END\n" + BODY, "neither true nor false"),
        ("&FCI NORB=2,NELEC=2,MS2=0 &END 7\n" + BODY, "line 1: after the end"),
        (SMALL + BODY.replace("0.5 2 2 1 1", "0.5 2 2 1"), "line 7: '0.5 2 2 1' is not a value and four"),
        (SMALL + BODY.replace("0.5 2 2 1 1", "0.5 2 2 1 1 1"), "line 7: '0.5 2 2 1 1 1' looks complex"),
        (SMALL + BODY.replace("0.5 2", "(0.5,0.1) 2"), "line 7: '(0.5,0.1) 2 2 1 1' looks complex"),
        (SMALL + BODY.replace("0.5 2", "nan 2"), "line 7: 'nan 2 2 1 1' is not"),
        (SMALL + BODY.replace("0.5 2", "0_5 2"), "line 7: '0_5 2 2 1 1' is not"),
        (SMALL + BODY.replace("0.5 2 2 1 1", "0.5 2 2 1 1.5"), "line 7"),
        (SMALL + BODY.replace("0.5 2 2 1 1", "0.5 3 2 1 1"), "line 7: orbital 3 of 2"),
        (SMALL + BODY.replace("0.5 2 2 1 1", "0.5 -2 2 1 1"), "line 7"),
        (SMALL + BODY.replace("0.5 2 2 1 1", "0.5 2 0 1 1"), "line 7: orbitals [2, 0, 1, 1]"),
        (SMALL + BODY.replace("0.5 2 2 1 1", "0.5 2 2 1 1\n0.4 1 1 2 2"), "is 0.5 here and 0.4 elsewhere"),
        (SMALL + BODY.replace("-0.4 2 2", "0.2 1 2 0 0\n0.3 2 1"), "elsewhere"),
        (SMALL + BODY + "0.8 0 0 0 0\n", "core energies 0.7 and 0.8"),
        (SMALL + BODY.rsplit("\n", 2)[0] + "\n", "cut short"),
        (SMALL, "cut short"),
        (
            "&FCI NORB=2,NELEC=2,MS2=0,ORBSYM=1,2 &END\n" + BODY.replace("0.5 2 2", "0.5 2 1"),
            "symmetry forbids it",
        ),
        ("&FCI NORB=2,NELEC=2,MS2=0,IUHF=1 &END\n" + "0.0 0 0 0 0\n" * 5, "cut short"),
        (
            "&FCI NORB=2,NELEC=2,MS2=0,IUHF=1 &END\n0.1 1 1 0 0\n" + "0.0 0 0 0 0\n" * 6,
            "block of alpha-alpha",
        ),
        ("&FCI NORB=2,NELEC=2,MS2=0,IUHF=1 &END\n" + BODY.replace("0.5 2 2", "0.5 2 1"), "mix the spins"),
        ("&FCI NORB=3,NELEC=2,MS2=0,IUHF=1 &END\n" + BODY, "NORB=3 spin orbitals"),
    ],
)
def test_damage_is_named(dump, text, told):
    assert told in refused(dump(text))


def test_what_is_no_text_or_not_there_is_refused(tmp_path):
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    assert "not a text file" in refused(tmp_path / "binary")
    assert "No such file" in refused(tmp_path / "missing")
    assert "directory" in refused(tmp_path)


def test_a_file_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch):
    path, h = tmp_path / "FCIDUMP", random_hamiltonian(2)
    with pytest.raises(OutcoreError, match="write FCIDUMP"):
        fcidump.write(tmp_path / "no" / "FCIDUMP", h, (1, 1))
    fcidump.write(path, h, (1, 1))
    before = path.read_text()

    def fails(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(fcidump, "_write_one", fails)
    with pytest.raises(OutcoreError, match=r"write FCIDUMP .*No space"):
        fcidump.write(path, h, (1, 0))
    assert path.read_text() == before and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("written", ["{:.6e}", "{:.7f}"])
def test_files_of_seven_digits_are_read_and_what_is_averaged_is_told(dump, written):
    h = random_hamiltonian(6, 1, IRREPS, core_energy=9.25)
    one, two = (each[np.ix_(*[h.positions] * each.ndim)] for each in (h.ones[0], h.twos[0]))
    noise = np.random.default_rng(2)
    lines = [
        "&FCI NORB=6,NELEC=4,MS2=0,",
        f"ORBSYM={','.join(str(each + 1) for each in IRREPS)},ISYM=1,",
        "&END",
    ]
    for values, places in ((two, np.ndindex(6, 6, 6, 6)), (one, np.ndindex(6, 6))):
        for at in places:
            value = values[at] + noise.uniform(-1.4e-7, 1.4e-7)
            lines.append(written.format(value) + "".join(f" {k + 1}" for k in (*at, -1, -1)[:4]))
    found = fcidump.read(dump("\n".join([*lines, written.format(9.25) + " 0 0 0 0\n"])))
    same(found.hamiltonian, h, 1e-6)
    assert any("given more than once differ by up to" in note and "averaged" in note for note in found.notes)
    assert found.hamiltonian.averaged[1] > 1e-8


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SMALL.replace("NORB=2", "NORB=9223372036854775808") + BODY, "line 1: NORB='9223372036854775808'"),
        (SMALL.replace("NELEC=2", "NELEC=1e999") + BODY, "line 1: NELEC='1e999'"),
        (SMALL.replace("MS2=0", "MS2=-99999999999999999999") + BODY, "line 1: MS2="),
        (SMALL.replace("1,1,", "1,18446744073709551617,") + BODY, "line 2: ORBSYM="),
        (SMALL.replace("ISYM=1", "ISYM=nan") + BODY, "line 3: ISYM='nan'"),
        (SMALL.replace("1,1,", "99999999999999999999*1,") + BODY, "line 2: ORBSYM='99999999999999999999*1'"),
        (SMALL.replace("NORB=2", "NORB=4000") + BODY, "line 1: NORB=4000; there may be 64"),
        (SMALL + BODY.replace("2 2 2 2", "2 2 2 18446744073709551618"), "line 8: '0.7 2 2 2 184467"),
        (SMALL + BODY.replace("2 2 2 2", "2 2 2 9223372036854775807"), "line 8"),
        (SMALL + BODY.replace("0.7 2 2 2 2", "1e400 2 2 2 2"), "line 8: '1e400 2 2 2 2' is not"),
        (SMALL + BODY.replace("0.7 2 2 2 2", "1d99999999999999999999 2 2 2 2"), "line 8"),
        (SMALL + BODY.replace("0.7 2 2 2 2", "inf 2 2 2 2"), "line 8: 'inf 2 2 2 2' is not"),
        (SMALL + BODY.replace("0.7 2 2 2 2", f"{'9' * 5000} 2 2 2 2"), "line 8"),
    ],
)
def test_numbers_that_no_machine_has_are_refused_with_their_line(dump, text, told):
    assert told in refused(dump(text))


def test_a_fifo_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    assert "it is a FIFO" in refused(tmp_path / "fifo")
