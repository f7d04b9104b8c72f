"""States that begin with vectors of the user and follow them by overlap."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import AMINO, mean_field, open_mean_field
from eom_support import TIGHT, Determinants

from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.cli import main as cli

FOUR = "H 0 0 0; H 0 0.1 0.9; H 1.0 0.1 0; H 0.9 0.2 1.2"


@pytest.fixture(scope="module")
def four() -> Any:
    """Four electrons without symmetry."""
    return mean_field(FOUR, "sto-3g")


def start(mf: Any, **settings: Any) -> CCSD:
    cc = CCSD(mf, comm=None, memory="1GB", threads=1, **TIGHT | settings)
    cc.kernel()
    return cc


def test_roots_follow_start_vectors_past_lower_states(four: Any) -> None:
    with start(four) as cc:
        energies, states = cc.eomee_ccsd_singlet(nroots=3, residual=1e-7)
        assert states.overlaps is None
        every = [each.singles.copy() for each in states.vectors]
        swapped, found = cc.eomee_ccsd_singlet(nroots=2, guess=[every[2], every[0]], residual=1e-7)
        assert found.overlaps == pytest.approx([1.0, 1.0], abs=1e-6)
        strengths = found.properties().oscillator_strengths
        exact = Determinants(four, *cc.amplitudes())
    assert found.converged.all()
    assert swapped == pytest.approx(energies[[2, 0]], abs=1e-7)
    c = four.mo_coeff
    mu = np.einsum("xmn,mp,nq->xpq", four.mol.intor("int1e_r"), c, c)
    for root, state in enumerate((2, 0)):
        one, other = (
            np.einsum("xpq,pq->x", mu, exact.density(*each)) for each in ((state + 1, 0), (0, state + 1))
        )
        assert strengths[root] == pytest.approx(2 / 3 * exact.energies[state] * one @ other, abs=1e-6)


def test_roots_follow_those_of_cis(four: Any) -> None:
    """Vectors of PySCF's TDA of Hartree-Fock, as they are; CIS lacks the second state, of double excitations."""
    cis = four.TDA().run(nstates=2, conv_tol=1e-8)
    with start(four) as cc:
        energies, _ = cc.eomee_ccsd_singlet(nroots=3, residual=1e-7)
        found, states = cc.eomee_ccsd_singlet(nroots=2, guess=[x for x, _ in cis.xy[:2]], residual=1e-7)
    assert found == pytest.approx(energies[[0, 2]], abs=1e-7)
    assert min(states.overlaps) > 0.9


def test_a_search_that_follows_goes_on(four: Any, tmp_path: Path) -> None:
    guess = np.zeros((2, 2))
    guess[1, 0] = 1.0
    found = []
    for residual in (1e-2, 1e-7):
        with start(four, checkpoint=tmp_path / "kept") as cc:
            energy, states = cc.eomee_ccsd_singlet(guess=[guess], residual=residual)
            found.append((states.found, energy, abs(states.vectors[0].singles[1, 0])))
    with start(four, checkpoint=tmp_path / "kept") as cc:
        _, others = cc.eomee_ccsd_singlet(guess=[guess[::-1]], residual=1e-2)
    assert found[0][0] == 0 and found[1][0] > 0  # vectors of the checkpoint are used
    assert others.found == 0  # but not by a search that follows others
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-2)
    assert found[1][2] > 0.4


def test_start_vectors_of_no_states_are_refused(four: Any) -> None:
    given: list[tuple[list[Any], str]] = [
        ([np.ones((2, 2)), np.ones((2, 2))], "2 start vectors for 1 roots"),
        ([np.ones((2, 3))], "shape"),
        ([np.zeros((2, 2))], "of no state"),
        ([np.full((2, 2), np.nan)], "of no state"),
        ([np.full((2, 2), 1 + 1j)], "is complex"),
    ]
    with start(four) as cc:
        for guess, words in given:
            with pytest.raises(OutcoreError, match=words):
                cc.eomee_ccsd_singlet(guess=guess)
        with pytest.raises(OutcoreError, match=r"0\.1 of its norm in excitations of the core"):
            cc.eomee_ccsd_singlet(guess=[np.array([[0.1, 0], [1, 0]])], cvs=1)
        with pytest.raises(TypeError, match="both residual= and tolerance="):
            cc.eomee_ccsd_singlet(residual=1e-6, tolerance=1e-6)


def test_followed_states_of_open_shells_have_properties_beside_a_checkpoint(tmp_path: Path) -> None:
    mf = open_mean_field("UHF", AMINO, "sto-3g")
    with start(mf, checkpoint=tmp_path / "kept") as cc:
        _, states = cc.ipccsd(nroots=1, residual=1e-6)
        guess, strengths = states.start_vectors(), [states.properties().pole_strengths]
        _, followed = cc.ipccsd(nroots=1, residual=1e-6, guess=guess)
        strengths.append(followed.properties().pole_strengths)
    assert strengths[1] == pytest.approx(strengths[0], abs=1e-5)


@pytest.fixture(scope="module")
def amino() -> Iterator[dict[str, Any]]:
    """Objects of the open shell whose amplitudes have converged, by the reference."""
    made = {}
    for kind in ("UHF", "ROHF"):
        frozen = [0] if kind == "ROHF" else 1  # a list, so that orbitals are rotated after some are frozen
        mf = open_mean_field(kind, AMINO, "sto-3g")
        made[kind] = CCSD(mf, frozen, comm=None, memory="1GB", threads=1, ladder="rebuild", **TIGHT)
        made[kind].kernel()
    yield made
    for each in made.values():
        each.close()


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("eomsf_ccsd", "UHF"),
        ("ipccsd", "ROHF"),
        *(pytest.param(each, "UHF", marks=pytest.mark.long) for each in ("eomee_ccsd", "ipccsd", "eaccsd")),
        *(
            pytest.param(each, "ROHF", marks=pytest.mark.long)
            for each in ("eomee_ccsd", "eomsf_ccsd", "eaccsd")
        ),
    ],
)
def test_roots_of_open_shells_follow_start_vectors(amino: dict[str, CCSD], reference: str, name: str) -> None:
    search = getattr(amino[reference], name)
    energies, states = search(nroots=2, residual=1e-7)
    first, second = states.start_vectors()
    swapped, found = search(nroots=2, guess=[second, first], residual=1e-7)
    assert found.converged.all()
    assert swapped == pytest.approx(energies[::-1], abs=1e-6)


def test_start_vectors_are_of_the_orbitals_of_the_reference(amino: dict[str, CCSD]) -> None:
    """Those of ROHF are rotated after some are frozen."""
    cc = amino["ROHF"]
    assert any(each.turned is not None for each in cc.spins)
    _, states = cc.ipccsd(nroots=1, residual=1e-6)
    ((alpha, beta),) = states.start_vectors()
    (inside,) = (each.singles for each in states.vectors)
    rotations = [each.turned[: each.occupied, : each.occupied] for each in cc.spins]
    cut = len(alpha)
    assert alpha == pytest.approx(rotations[0] @ inside[:cut])
    assert beta == pytest.approx(rotations[1] @ inside[cut:])


def test_start_vectors_of_open_shells_have_both_spins(amino: dict[str, CCSD]) -> None:
    cc = amino["UHF"]
    for guess in (np.ones(3), (np.ones((4, 2)), np.ones((4, 2))), 5):
        with pytest.raises(OutcoreError, match="start vector"):
            cc.eomee_ccsd(guess=[guess])


def _run(path: Path, *arguments: Any) -> list[float]:
    found = path.parent / "found.json"
    command = ["eom", path, "--basis", "sto-3g", "--integrals", "conventional", "--threads", 1, "--scratch"]
    command += [path.parent, "--state-tol", 1e-6, "--json", found]
    assert cli.run([str(each) for each in (*command, *arguments)]) == 0
    states = json.loads(found.read_text())["states"]
    for each in states:
        assert ("overlap_with_followed" in each) == ("--follow" in arguments)
        assert each.get("overlap_with_followed", 1.0) > 0.95  # nuclei moved little
    return [each["energy_hartree"] for each in states]


@pytest.mark.parametrize("open_shell", [pytest.param(False, marks=pytest.mark.long), True])
def test_another_run_follows_states_of_a_file(tmp_path: Path, open_shell: bool) -> None:
    path, file = tmp_path / "h.xyz", tmp_path / "states.npz"
    atoms = FOUR.replace("; ", "\n")
    path.write_text(f"4\n\n{atoms}\n")
    more = ["--charge", 1, "--spin", 1, "--kind", "ip"] if open_shell else []
    energies = _run(path, "--states", 2, "--save-states", file, *more)
    with np.load(file) as kept:
        turned = dict(kept)
    count = sum(name.startswith("root0.") for name in turned)
    for part in range(count):  # the second state alone
        turned[f"root0.{part}"] = turned[f"root1.{part}"]
    np.savez(file, **turned)
    moved = path.read_text().replace("0.1 0.9", "0.1 0.91")
    path.write_text(moved)
    expected = _run(path, "--states", 2, *more)
    followed = _run(path, "--states", 1, "--follow", file, *more)
    assert followed[0] == pytest.approx(expected[1], abs=1e-5)
    assert abs(expected[1] - energies[1]) > 1e-5  # nuclei have moved


def test_files_of_other_states_are_refused_before_anything_is_computed(tmp_path: Path, capsys: Any) -> None:
    path, file = tmp_path / "h.xyz", tmp_path / "states.npz"
    atoms = FOUR.replace("; ", "\n")
    path.write_text(f"4\n\n{atoms}\n")
    _run(path, "--states", 1, "--save-states", file)
    assert "HF energy" in capsys.readouterr().out
    for more, words in (
        (["--states", 1, "--kind", "ip"], "those of EOM-EE-CCSD, singlets, not of EOM-IP-CCSD"),
        (["--states", 2], "it has 1 states, fewer than 2"),
        (["--states", 1, "--basis", "6-31g"], "of another molecule or basis: basis"),
        (["--states", 1, "--charge", 2], "of another molecule or basis: charge, electrons"),
        (["--states", 1, "--estimate"], "--follow has no effect with --estimate"),
    ):
        with pytest.raises(OutcoreError, match=words):
            _run(path, "--follow", file, *more)
    file.write_bytes(b"no archive")
    with pytest.raises(OutcoreError, match="no file of"):
        _run(path, "--follow", file, "--states", 1)
    assert "HF energy" not in capsys.readouterr().out
    with pytest.raises(OutcoreError, match=r"must end in \.npz"):
        _run(path, "--save-states", tmp_path / "states.txt")
