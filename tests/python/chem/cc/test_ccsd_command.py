"""The command `outcore ccsd`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import WATER

from outcore.base.errors import OutcoreError
from outcore.chem.cc import CCSD
from outcore.cli import main as cli


@pytest.fixture
def water(tmp_path: Path) -> Path:
    path = tmp_path / "water.xyz"
    path.write_text("3\nwater\n" + WATER.replace("; ", "\n") + "\n")
    return path


def command_line(path: Path, *arguments: Any) -> list[str]:
    given = ["--basis", "sto-3g", "--threads", "1", "--memory", "1GB"]
    if "--integrals" not in arguments:
        given += ["--integrals", "conventional"]
    return ["ccsd", str(path), *given, "--scratch", str(path.parent), *map(str, arguments)]


def run(path: Path, *arguments: Any) -> int:
    return cli.run(command_line(path, *arguments))


AT_FIXED_RATES = """
import sys
from dataclasses import replace
from outcore.chem.cc import planning
from outcore.cli import main
from outcore.tensor.plan.rates import ASSUMED
planning.measured = lambda world, threads: replace(ASSUMED, threads=threads, processes=world.size)
sys.exit(main.run(sys.argv[1:]))
"""


def run_alone(path: Path, *arguments: Any) -> str:
    """A run in a process of its own, on a machine of known rates; its output."""
    ended = subprocess.run(
        [sys.executable, "-c", AT_FIXED_RATES, *command_line(path, *arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_an_scf_that_has_not_converged_is_refused_but_by_force(water: Path, capsys: Any) -> None:
    with pytest.raises(OutcoreError, match="after 2 cycles"):
        run(water, "--max-cycle", "2")
    capsys.readouterr()
    assert run(water, "--max-cycle", "2", "--force", "--cc-tol", "1e-3", "--amplitude-tol", "1e-2") == 0
    output = capsys.readouterr().out
    assert "not converged in 2 cycles" in output
    assert "of an SCF that has not converged" in output
    assert re.search(r"^SCF energy +-\S+ Eh, not converged\nCCSD energy +-\S+ Eh$", output, re.MULTILINE)


def test_what_was_stopped_goes_on_to_the_energies_of_a_whole_run(
    water: Path, tmp_path: Path, capsys: Any
) -> None:
    command = ("--triples", "--cc-tol", "1e-10", "--amplitude-tol", "1e-8", "--json", tmp_path / "found.json")
    for what, limit in (("amplitudes", "--iterations"), ("cycles", "--max-cycle")):
        with pytest.raises(OutcoreError, match=f"after 3 .*{what}"):
            run(water, *command, "--checkpoint", tmp_path / what, limit, "3")
        if what == "amplitudes":
            output = capsys.readouterr().out
            summary = r"^SCF energy +-\S+ Eh\nCCSD energy +-\S+ Eh, not converged$"
            assert re.search(summary, output, re.MULTILINE)
    energies = []
    for kept in ((), ("--checkpoint", tmp_path / "amplitudes"), ("--checkpoint", tmp_path / "cycles")):
        assert run(water, *command, *kept) == 0
        found = json.loads((tmp_path / "found.json").read_text())
        assert found["scf_converged"] and found["converged"] and "warnings" not in found
        energies.append(found["ccsd_t_energy_hartree"])
    assert energies[1:] == pytest.approx([energies[0]] * 2, abs=1e-8)


def test_what_makes_a_result_doubtful_is_told_and_kept(tmp_path: Path, capsys: Any) -> None:
    carbon = tmp_path / "carbon.xyz"
    carbon.write_text("1\n\nC 0 0 0\n")
    command = ("--spin", "2", "--iterations", "1")
    with pytest.raises(OutcoreError):
        run(carbon, *command, "--checkpoint", tmp_path / "kept")
    capsys.readouterr()
    swapped = ("--restart", tmp_path / "kept", "--swap", "a1:5", "--quiet")
    with pytest.raises(OutcoreError):
        run(carbon, *command, *swapped, "--json", tmp_path / "found.json")
    told = json.loads((tmp_path / "found.json").read_text())["warnings"]
    assert "occupied orbital of spin alpha" in told[0]
    assert f"warning: {told[0]}" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("integrals", ["conventional", "ri"])
def test_a_run_after_an_scf_that_has_not_converged_goes_on(
    water: Path, tmp_path: Path, capsys: Any, integrals: str
) -> None:
    command = ("--max-cycle", "2", "--force", "--checkpoint", tmp_path / "kept")
    fitting = ("--auxbasis", "cc-pvdz-ri", "--jkbasis", "cc-pvdz-jkfit") if integrals == "ri" else ()
    command = (*command, "--integrals", integrals, *fitting)
    with pytest.raises(OutcoreError, match="after 2 iterations"):
        run(water, *command, "--iterations", "2")
    capsys.readouterr()
    assert run(water, *command) == 0
    output = capsys.readouterr().out
    assert lines_of(output, "orbitals that have not converged found in")
    assert lines_of(output, "amplitudes of iteration 2 found in")


def test_amplitudes_of_one_run_begin_another(water: Path, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("h5py")
    assert run(water, "--amplitudes", tmp_path / "t.h5") == 0
    first = capsys.readouterr().out
    assert f"amplitudes in {tmp_path / 't.h5'}" in " ".join(first.split())
    assert run(water, "--from-amplitudes", tmp_path / "t.h5") == 0
    second = capsys.readouterr().out
    assert len(second.splitlines()) < len(first.splitlines()) - 4  # fewer iterations
    energies = [next(x for x in each.splitlines() if x.startswith("CCSD energy")) for each in (first, second)]
    assert abs(float(energies[0].split()[2]) - float(energies[1].split()[2])) < 1e-7


def test_a_file_of_amplitudes_that_cannot_be_written_is_refused_before_anything_is_done(water: Path) -> None:
    with pytest.raises(OutcoreError, match="write amplitudes"):
        run(water, "--amplitudes", water.parent / "none" / "t.h5")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--orbitals", "standard", "--rohf"), "--orbitals has no effect without --rohf and --frozen"),
        (("--amplitudes", "t.h5", "--estimate"), "--amplitudes has no effect with --estimate"),
        (("--ladder", "memory", "--storage", "disk"), "all arrays are to be on disk"),
        (
            ("--frozen", "5", "--amplitudes", "t.h5"),
            "--amplitudes has no effect where no orbitals are correlated",
        ),
    ],
    ids=str,
)
def test_options_without_effect_are_refused(water: Path, options: tuple[str, ...], words: str) -> None:
    with pytest.raises(OutcoreError, match=words):
        run(water, *options)


OPEN = ("--charge", "1", "--spin", "1")


def lines_of(text: str, begin: str) -> list[str]:
    return [each for each in text.splitlines() if each.startswith(begin)]


def test_rohf_needs_its_integrals_no_more(water: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from outcore.chem.hf import integrals

    made: list[None] = []
    right = integrals.TwoElectronIntegrals.store

    def make(*arguments: Any, **more: Any) -> Any:
        made.append(None)
        return right(*arguments, **more)

    monkeypatch.setattr(integrals.TwoElectronIntegrals, "store", make)
    assert run(water, "--charge", "1", "--rohf", "--triples") == 0
    assert len(made) == 1
    energy, *_ = lines_of(capsys.readouterr().out, "CCSD(T) energy")  # once more in the summary

    import pyscf

    mf = pyscf.M(atom=WATER, basis="sto-3g", charge=1, spin=1, verbose=0).ROHF().run(conv_tol=1e-11)
    with CCSD(mf, comm=None, memory="1GB") as cc:
        cc.kernel()
        assert abs(float(energy.split()[2]) - cc.e_tot - cc.ccsd_t()) < 1e-7


def test_an_estimate_says_the_least_memory_and_that_natural_orbitals_are_unknown(
    water: Path, capsys: Any
) -> None:
    assert run(water, "--estimate", "--fno", "1e-3", "--triples") == 0
    output = capsys.readouterr().out
    assert lines_of(output, "5 occupied and 2 virtual orbitals")
    assert lines_of(output, "estimated with all virtual orbitals")
    (least,) = lines_of(output, "least memory")
    megabytes = int(least.split()[2])
    assert 50 < megabytes < 1000


@pytest.mark.parametrize(
    ("ladder", "ion"),
    [
        pytest.param("disk", (), id="disk, closed", marks=pytest.mark.long),
        pytest.param("disk", OPEN, id="disk, open"),
        pytest.param("rebuild", (), id="rebuild, closed", marks=pytest.mark.long),
        pytest.param("rebuild", OPEN, id="rebuild, open", marks=pytest.mark.long),
    ],
)
def test_estimate_run_and_report_say_the_same(
    water: Path, tmp_path: Path, ion: tuple[str, ...], ladder: str
) -> None:
    asked = ("--storage", "disk", "--ladder", ladder, "--triples", *ion, "--json")
    # Each in a process of its own: what other tests have left in this one counts as its memory.
    estimated = run_alone(water, *asked, tmp_path / "estimate.json", "--estimate")
    reported = run_alone(water, *asked, tmp_path / "run.json")
    estimate = json.loads((tmp_path / "estimate.json").read_text())["estimate"]
    found = json.loads((tmp_path / "run.json").read_text())
    assert found["plan"] == estimate
    for what, planned in (
        ("moved_by_products_of_an_iteration", "moved_bytes_of_its_products"),
        ("moved_by_triples", "moved_bytes_of_triples"),
    ):
        assert found[what]["planned"] == pytest.approx(estimate[planned])
        assert found[what]["counted"] == pytest.approx(estimate[planned])
    seconds, megabytes = estimate["seconds_of_triples"], estimate["moved_bytes_of_triples"] / 1e6
    assert seconds > 0 and f"(T): {seconds:.3g} s, {megabytes:.0f} MB from disk" in estimated
    assert f"(predicted {seconds:.2g} s" in reported and f"predicted were {megabytes:.0f} MB" in reported
    assert f"(predicted {estimate['seconds_of_an_iteration']:.2g} s" in reported


def test_triples_of_nothing_are_nothing(water: Path, capsys: Any) -> None:
    assert run(water, "--frozen", "5", "--triples") == 0
    (energy,) = lines_of(capsys.readouterr().out, "(T) energy")
    assert float(energy.split()[2]) == 0.0


@pytest.mark.parametrize("more", [(), ("--triples",)])
def test_where_nothing_is_correlated_the_density_is_that_of_the_scf(
    water: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    asked, result = ("--gradient", "--dipole", "--json", str(tmp_path / "r")), tmp_path / "r"
    sets = ("--jkbasis", "def2-svp-jkfit", "--auxbasis", "cc-pvdz-ri")
    assert run(water, "--integrals", "ri", *sets, "--frozen", "5", *asked, *more) == 0
    found = json.loads(result.read_text())
    of_scf = ["ri-scf", str(water), "--basis", "sto-3g", "--auxbasis", "def2-svp-jkfit"]
    assert cli.run([*of_scf, "--scratch", str(tmp_path), *asked]) == 0
    expected = json.loads(result.read_text())
    for name in ("gradient_hartree_per_bohr", "dipole_debye"):
        assert np.array(found[name]) == pytest.approx(np.array(expected[name]), abs=1e-6)


def test_a_run_says_what_was_predicted(water: Path, capsys: Any) -> None:
    assert run(water) == 0
    (took,) = lines_of(capsys.readouterr().out, "iteration: ")
    assert re.fullmatch(r"iteration: \S+ s \(predicted \S+ s(: overheads dominate in small systems)?\)", took)


def test_a_run_says_what_its_products_moved(water: Path, capsys: Any) -> None:
    more = ("--integrals", "ri", "--auxbasis", "cc-pvdz-ri", "--jkbasis", "def2-svp-jkfit")
    assert run(water, "--storage", "disk", "--dipole", *more) == 0
    shown = capsys.readouterr().out
    for what in ("its products", "products of an iteration of multipliers", "products of densities"):
        (moved,) = lines_of(shown, f"{what} moved")
        assert re.search(r"moved \d+ MB .* predicted were \d+ MB; .* \d+ MB in all", moved)
    assert lines_of(shown, "densities and gradient: ")


def test_a_run_in_memory_says_that_its_products_moved_nothing(water: Path, capsys: Any) -> None:
    assert run(water, "--triples") == 0
    shown = capsys.readouterr().out
    assert lines_of(shown, "its products: no disk traffic")
    assert lines_of(shown, "(T): no disk traffic")
