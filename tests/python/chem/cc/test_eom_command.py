"""The command `outcore eom`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import WATER, mean_field

from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem.gradients.properties import DEBYE
from outcore.cli import main as cli

OPEN = ["--charge", "1", "--spin", "1"]
LOOSE = ["--cc-tol", "1e-3", "--amplitude-tol", "1e-2", "--state-tol", "1e-2"]


@pytest.fixture
def water(tmp_path: Path) -> Path:
    path = tmp_path / "water.xyz"
    path.write_text("3\nwater\n" + WATER.replace("; ", "\n") + "\n")
    return path


def command(path: Path, *arguments: Any, basis: str = "6-31g") -> list[str]:
    given = ["--basis", basis, "--threads", "1", "--frozen", "1", "--scratch", str(path.parent)]
    if "--integrals" not in arguments:
        given += ["--auxbasis", "cc-pvdz-ri", "--jkbasis", "def2-universal-jkfit"]
    return ["eom", str(path), *given, *map(str, arguments)]


def run(path: Path, *arguments: Any, basis: str = "6-31g") -> int:
    return cli.run(command(path, *arguments, basis=basis))


def test_states_are_shown_and_written(water: Path, tmp_path: Path, capsys: Any) -> None:
    assert run(water, "--states", "2", "--json", tmp_path / "found.json") == 0
    found = json.loads((tmp_path / "found.json").read_text())
    states = found["states"]
    assert [each["converged"] for each in states] == [True, True]
    assert states[0]["energy_hartree"] == pytest.approx(0.307676, abs=1e-5)
    assert states[0]["singles"] + states[0]["doubles"] == pytest.approx(1.0)
    assert states[0]["character"].startswith("single excitation 5 -> 6")
    text = capsys.readouterr().out
    assert re.search(r"^ +1 +0\.30767\d+ +8\.37\d+ +0\.95\d+ +single excitation 5 -> 6", text, re.MULTILINE)


@pytest.mark.parametrize("storage", ["auto", "disk"])
def test_what_products_moved_is_told_beside_the_least(
    water: Path, tmp_path: Path, capsys: Any, storage: str
) -> None:
    assert run(water, "--storage", storage, *LOOSE, "--json", tmp_path / "found.json", basis="sto-3g") == 0
    moved = json.loads((tmp_path / "found.json").read_text())["moved_by_state_products"]
    text = capsys.readouterr().out
    if storage == "auto":
        assert moved["counted"] == moved["least"] == 0
        assert "products with vectors: no disk traffic" in text
        return
    assert moved["counted"] >= moved["least"] > 0
    over = moved["planned"] / moved["least"]
    assert f"{over:.2f} times the least of each product by itself" in text


def test_exact_integrals_have_the_ions_of_pyscf(water: Path, tmp_path: Path) -> None:
    import pyscf
    from pyscf import cc
    from pyscf.cc import eom_rccsd

    arguments = ["--integrals", "conventional", "--kind", "ip", "--states", "2", "--state-tol", "1e-8"]
    assert run(water, *arguments, "--json", tmp_path / "found.json", basis="sto-3g") == 0
    found = [each["energy_hartree"] for each in json.loads((tmp_path / "found.json").read_text())["states"]]
    mf = pyscf.M(atom=WATER, basis="sto-3g", verbose=0).RHF().run(conv_tol=1e-12)
    peer = cc.RCCSD(mf, frozen=1).run(conv_tol=1e-11, conv_tol_normt=1e-9)
    eom = eom_rccsd.EOMIP(peer)
    eom.conv_tol = 1e-12
    assert found == pytest.approx(list(eom.kernel(nroots=2)[0]), abs=2e-7)


@pytest.mark.memory
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(["ee"], marks=pytest.mark.long),
        pytest.param(["ee", "--multiplicity", "3"], marks=pytest.mark.long),
        ["ea"],
        ["ee", "--properties"],
        pytest.param(["ip", "--properties"], marks=pytest.mark.long),
        pytest.param(["ea", "--properties"], marks=pytest.mark.long),
        pytest.param(["ee", "--multiplicity", "3", "--properties"], marks=pytest.mark.long),
        ["sf", *OPEN],
        pytest.param(["sf", *OPEN, "--properties"], marks=pytest.mark.long),
        pytest.param(["ip", *OPEN, "--properties"], marks=pytest.mark.long),
        pytest.param(["ea", *OPEN], marks=pytest.mark.long),
    ],
    ids=" ".join,
)
def test_the_least_memory_is_enough(water: Path, kind: list[str]) -> None:
    """In fresh processes, which hold nothing else yet."""

    loose = ["--cc-tol", "0.9", "--amplitude-tol", "0.9", "--state-tol", "0.1"]

    def output(*more: str) -> str:
        arguments = command(water, "--kind", *kind, "--states", "2", *loose, *more, basis="cc-pvdz")
        found = subprocess.run(
            [sys.executable, "-m", "outcore", *arguments], capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    least = re.search(r"least memory: (\d+) MB", output("--estimate"))
    assert least is not None
    output("--memory", f"{least[1]}MB")


def test_states_that_have_not_converged_are_an_error_and_no_result(
    water: Path, tmp_path: Path, capsys: Any
) -> None:
    """Of three ions some have converged first; the rest has no number in the results, and none in the text."""
    path, states = tmp_path / "found.json", list[dict[str, Any]]()
    arguments = ["--kind", "ip", "--states", "3", "--properties", "--state-tol", "1e-5", "--json", path]
    for iterations in range(2, 20):
        capsys.readouterr()
        with pytest.raises(NotConverged, match="state-iterations") as caught:
            run(water, *arguments, "--state-iterations", iterations, *LOOSE[:4], basis="sto-3g")
        states = json.loads(path.read_text())["states"]
        if any(each["converged"] for each in states):
            break
    text = capsys.readouterr().out
    left = [number for number, each in enumerate(states, 1) if not each["converged"]]
    assert len(states) == 3 and 0 < len(left) < 3
    numbers = ", ".join(map(str, left))
    assert re.search(rf"\(roots? {numbers} of 3\)", str(caught.value))
    for number, each in enumerate(states, 1):
        line = re.search(rf"^ +{number} +(.*)$", text[text.index("singles") :], re.MULTILINE)
        assert line is not None
        if each["converged"]:
            assert f"{each['energy_hartree']:.8f}" in line[1]
        else:
            assert each == {"converged": False}
            assert line[1] == "has not converged"
    assert "dipole" not in text and "properties_seconds" not in json.loads(path.read_text())


def test_open_shells_have_states(water: Path, tmp_path: Path, capsys: Any) -> None:
    arguments = ["--charge", "1", "--spin", "1", "--kind", "ee", "--states", "1", *LOOSE]
    assert run(water, *arguments, "--json", tmp_path / "found.json", basis="sto-3g") == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert "multiplicity" not in found
    assert re.search(r"single excitation \d+b -> 5b", found["states"][0]["character"])
    least = re.search(r"<S\^2>", capsys.readouterr().out)
    assert least is not None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--charge", "1", "--spin", "1", "--multiplicity", "3"), "UHF reference"),
        (("--states", "1000"), "1000 roots; there are 32 of single excitations"),
        (("--cvs", "1"), "orbital 1 of the core is not occupied and correlated; do not freeze it"),
        (("--kind", "ea", "--cvs", "2"), "by core-valence separation is not there"),
        (("--frozen", "5"), "there is nothing to correlate"),
    ],
)
def test_states_that_do_not_exist_are_refused_before_anything_is_computed(
    water: Path, capsys: Any, options: tuple[str, ...], words: str
) -> None:
    with pytest.raises(OutcoreError, match=words):
        run(water, *options)
    assert "HF energy" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--kind", "sf"), "high-spin"),
        (("--kind", "xy"), "none of ee, ip, ea, sf"),
        (("--states", "0"), "0 roots"),
        (("--state-tol", "2"), "a residual of 2"),
        (("--multiplicity", "5"), "multiplicity 5"),
        (("--kind", "ip", "--multiplicity", "3"), "kind 'ee' alone"),
        (("--multiplicity", "3", "--properties", "--nto", "found"), "light makes no transitions"),
        (("--properties", "--dyson", "found"), "--dyson has no effect but on ions"),
        (("--spectrum", "found.csv"), "--spectrum has no effect without --properties"),
        (("--nto", "found"), "--nto has no effect without --properties"),
        (("--state-density", "a.cube"), "--state-density has no effect without --properties"),
        (("--properties", "--state-density", "a.txt"), "its name must end in"),
        (("--properties", "--width", "0.2"), "--width has no effect without --spectrum or --plot"),
        (("--properties", "--spectrum", "found.txt"), "must end in .csv"),
        (("--properties", "--plot", "found.txt"), "must end in .png"),
        (("--properties", "--estimate", "--spectrum", "found.csv"), "with --estimate"),
    ],
)
def test_what_is_not_there_is_refused(water: Path, options: tuple[str, ...], words: str) -> None:
    with pytest.raises(OutcoreError, match=words):
        run(water, *options)


@pytest.mark.parametrize("option", ["--triples", "--fno", "--gradient"])
def test_options_of_other_methods_are_unknown(water: Path, option: str) -> None:
    with pytest.raises(cli.UsageError, match="No such option"):
        run(water, option)


def test_properties_are_shown_and_written(water: Path, tmp_path: Path, capsys: Any) -> None:
    from pyscf.tools import molden

    files = {name: tmp_path / name for name in ("found.json", "found.csv", "found.svg", "pairs")}
    arguments = ["--states", "2", "--properties", "--json", files["found.json"], "--nto", files["pairs"]]
    arguments += ["--cc-tol", "1e-5", "--amplitude-tol", "1e-4", "--state-tol", "1e-4"]
    arguments += ["--spectrum", files["found.csv"], "--plot", files["found.svg"], "--width", "0.2"]
    assert run(water, *arguments, basis="sto-3g") == 0
    found = json.loads(files["found.json"].read_text())
    for state in found["states"]:
        moments = zip(state["transition_moment_right_au"], state["transition_moment_left_au"], strict=True)
        strength = 2 / 3 * state["energy_hartree"] * sum(x * y for x, y in moments)
        assert state["oscillator_strength"] == pytest.approx(strength)
        assert state["natural_transition_weights"][0] > 0.9
    first, *rows = files["found.csv"].read_text().splitlines()
    assert "0.2 eV" in first
    lines = [each.split(",") for each in rows if each.startswith("line")]
    assert [float(each[3]) for each in lines] == pytest.approx(
        [state["oscillator_strength"] for state in found["states"]], rel=1e-6
    )
    assert files["found.svg"].read_text().startswith("<?xml")
    mol, _, orbitals, occupations, *_ = molden.load(str(tmp_path / "pairs2.molden"))
    assert occupations[0] == pytest.approx(found["states"][1]["natural_transition_weights"][0], abs=1e-4)
    pairs = len(occupations) // 2
    assert occupations[pairs:] == pytest.approx(occupations[:pairs])
    metric = mol.intor("int1e_ovlp")
    for group in (orbitals[:, :pairs], orbitals[:, pairs:]):  # holes, particles
        assert group.T @ metric @ group == pytest.approx(np.eye(pairs), abs=1e-4)
    inside = mean_field(WATER, "sto-3g").mo_coeff[:, :5].T @ metric @ orbitals
    assert np.linalg.norm(inside[:, 0]) > 0.99
    assert np.linalg.norm(inside[:, pairs]) < 0.1
    strength = found["states"][0]["oscillator_strength"]
    assert re.search(rf"^ +1 +[0-9.]+ +[0-9.]+ +{strength:.6f} ", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    ("kind", "electrons", "unpaired"),
    [
        (["ee"], 10, 0),
        (["ip"], 9, None),  # the spin density of ions of closed shells is not made
        pytest.param(["ee", "--multiplicity", "3"], 10, None, marks=pytest.mark.long),
        pytest.param(["ee", *OPEN], 9, 1, marks=pytest.mark.long),
    ],
)
def test_densities_of_states_are_written(
    water: Path, tmp_path: Path, kind: list[str], electrons: int, unpaired: int | None
) -> None:
    from pyscf import gto

    path = tmp_path / "found.json"
    given = ["--kind", *kind, "--states", "2", "--properties", "--state-tol", "1e-4", "--json", path]
    assert run(water, *given, "--state-density", tmp_path / "of.npz", basis="sto-3g") == 0
    found = json.loads(path.read_text())
    assert found["density_files"] == [str(tmp_path / f"of{number}.npz") for number in (1, 2)]
    mol = gto.M(atom=WATER, basis="sto-3g", verbose=0)
    overlap, r = mol.intor("int1e_ovlp"), mol.intor("int1e_r")
    for file, state in zip(found["density_files"], found["states"], strict=True):
        densities = np.load(file)
        total = densities["total"]
        assert np.vdot(overlap, total) == pytest.approx(electrons, abs=1e-6)
        moment = mol.atom_charges() @ mol.atom_coords() - np.einsum("xmn,mn->x", r, total)
        assert moment * DEBYE == pytest.approx(state["dipole_debye"], abs=1e-6)
        assert ("spin" in densities) == (unpaired is not None)
        if unpaired is not None:
            assert np.vdot(overlap, densities["spin"]) == pytest.approx(unpaired, abs=1e-6)


def test_a_density_of_an_ion_has_its_electrons_in_other_formats(water: Path, tmp_path: Path) -> None:
    import trexio

    given = ["--kind", "ip", "--states", "1", "--properties", *LOOSE]
    assert run(water, *given, "--state-density", tmp_path / "of.h5", basis="sto-3g") == 0
    with trexio.File(str(tmp_path / "of1.h5"), "r", trexio.TREXIO_HDF5) as file:
        assert trexio.read_electron_num(file) == 9
        assert np.trace(trexio.read_rdm_1e(file)) == pytest.approx(9, abs=1e-6)
        assert not trexio.has_rdm_1e_up(file)


def test_an_estimate_has_properties(water: Path, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    assert run(water, "--states", "2", "--properties", "--estimate", "--json", path, basis="sto-3g") == 0
    found = json.loads(path.read_text())
    of_left, of_densities = {"Ree0", "Ree1", "le0"}, {"Ree0", "Lee1", "L"}
    assert of_left <= set(found["properties_estimate"]["arrays"])
    assert of_densities <= set(found["densities_estimate"]["arrays"])
    assert not (of_left | of_densities) & set(found["states_estimate"]["arrays"])


@pytest.mark.parametrize(("kind", "array"), [("sf", "usf"), ("ip", "uip"), ("ea", "uea")])
def test_an_estimate_of_open_shells_has_arrays_of_their_states(
    water: Path, tmp_path: Path, capsys: Any, kind: str, array: str
) -> None:
    from outcore.chem.cc.equations.excited import kinds

    path = tmp_path / "found.json"
    options = ["--kind", kind, *OPEN, "--states", "2", "--properties", "--estimate", "--json", path]
    assert run(water, *options, basis="sto-3g") == 0
    found = json.loads(path.read_text())
    names = kinds.of(array).names
    assert len(names) > 1
    for stage, wanted in (
        ("states_estimate", [f"{name}{n}" for name in names for n in range(6)]),
        ("properties_estimate", [f"R{name}{n}" for name in names for n in range(2)]),
        ("densities_estimate", [f"{side}{name}{n}" for side in "RL" for name in names for n in range(2)]),
    ):
        assert set(wanted) <= set(found[stage]["arrays"])
    assert re.search(r"least memory: \d+ MB", capsys.readouterr().out)


def test_ions_have_dyson_orbitals(water: Path, tmp_path: Path, capsys: Any) -> None:
    from pyscf.tools import molden

    path = tmp_path / "found.json"
    arguments = [
        "--kind",
        "ip",
        "--states",
        "2",
        "--properties",
        "--dyson",
        tmp_path / "hole",
        "--json",
        path,
        *LOOSE,
    ]
    assert run(water, *arguments, basis="sto-3g") == 0
    state = json.loads(path.read_text())["states"][1]
    mol, _, orbitals, occupations, *_ = molden.load(str(tmp_path / "hole2.molden"))
    assert occupations == pytest.approx([state["pole_strength"]] * 2, abs=1e-4)
    overlap = orbitals.T @ mol.intor("int1e_ovlp") @ orbitals
    assert overlap == pytest.approx(np.ones((2, 2)), abs=1e-2)
    assert "1 -> 2" in capsys.readouterr().out


def test_transition_orbitals_of_open_shells_are_of_both_spins(water: Path, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    arguments = ["--charge", "1", "--spin", "1", "--states", "1", "--properties", "--nto", tmp_path / "pairs"]
    assert run(water, *arguments, *LOOSE, "--json", path, basis="sto-3g") == 0
    weights = json.loads(path.read_text())["states"][0]["natural_transition_weights"]
    assert sum(weights["alpha"] + weights["beta"]) == pytest.approx(1.0, abs=1e-2)
    text = (tmp_path / "pairs1.molden").read_text()
    assert text.count("Spin= Beta") == 2 * len(weights["beta"])
    assert text.count("Sym= hole") == text.count("Sym= particle")


def test_triplets_have_moments_and_no_strengths(water: Path, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "found.json"
    arguments = ["--multiplicity", "3", "--states", "1", "--properties", "--json", path, *LOOSE]
    assert run(water, *arguments, basis="sto-3g") == 0
    state = json.loads(path.read_text())["states"][0]
    assert len(state["dipole_debye"]) == 3
    assert "oscillator_strength" not in state
    assert "zero by spin" in capsys.readouterr().out


def test_a_stopped_run_goes_on_from_its_amplitudes(water: Path, tmp_path: Path, capsys: Any) -> None:
    arguments = ["--states", "1", "--checkpoint", tmp_path / "kept"]
    found = []
    for name, more in (("first", ["--state-iterations", "1"]), ("second", [])):
        path = tmp_path / f"{name}.json"
        try:
            run(water, *arguments, *more, "--json", path, basis="sto-3g")
        except NotConverged:
            continue
        found = json.loads(path.read_text())["states"]
    assert "converged amplitudes" in capsys.readouterr().out
    assert run(water, *arguments[:2], "--json", tmp_path / "whole.json", basis="sto-3g") == 0
    whole = json.loads((tmp_path / "whole.json").read_text())["states"]
    assert found[0]["energy_hartree"] == pytest.approx(whole[0]["energy_hartree"], abs=1e-7)
