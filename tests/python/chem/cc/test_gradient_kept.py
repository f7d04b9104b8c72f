"""A gradient resumes from the checkpoint of a run that was killed at any stage; the checkpoint records its
settings."""

from __future__ import annotations

import errno
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance.full_disk import files_of_at_most, fill

from outcore import OutcoreError
from outcore.chem.cc import CCSD, ccsd
from outcore.chem.cc.keep import kept, kept_orbitals
from outcore.chem.cc.keep.checkpoint import DERIVATIVES, LAMBDA, MULTIPLIERS, RESPONSE, SLABS
from outcore.chem.gradients import response
from outcore.job import launch
from outcore.keep import clock

Values = np.ndarray[Any, np.dtype[Any]]

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0.1 -0.7572 -0.4692"
HYDROXYL = "O 0 0 0; H 0 0.3 0.9"
SETTINGS: dict[str, Any] = {"memory": "1GB", "threads": 1, "auxbasis": "cc-pvdz-ri", "block": 1}
TIGHT = {"conv_tol": 1e-10, "conv_tol_normt": 1e-9}
LOOSE = {"conv_tol": 1e-3, "conv_tol_normt": 1e-2}
ONE = {"conv_tol": 0.9, "conv_tol_normt": 0.9}  # one iteration
KILLED = f"""
import os, signal, sys
import numpy as np, pyscf
from outcore.chem.cc import CCSD
from outcore.chem.cc.keep import kept_response
from outcore.job import launch
from outcore.keep import clock

stage, directory, atoms, spin, triples, orbitals = sys.argv[1:]
job = launch.launched()
last = job is None or job.rank == job.size - 1
mol = pyscf.M(atom=atoms, spin=int(spin), basis="sto-3g", verbose=0)
mf = (mol.UHF() if mol.spin else mol.RHF()).density_fit(auxbasis="cc-pvdz-jkfit")
with np.load(orbitals) as given:
    for name in given.files:
        setattr(mf, name, given[name])
mf.converged = True
clock.INTERVAL_S = 0.0
seen = []

def progress(part, fraction=0.0):
    seen.append(part)
    dies = last or part == "derivatives of triples"  # whose tasks may all be of one process
    if dies and f"{{part}} {{seen.count(part)}}" == stage:
        os.kill(os.getpid(), signal.SIGKILL)

keep = kept_response.KeptResponse.keep
def kept_then(self, *arguments, **options):
    keep(self, *arguments, **options)
    progress("response")
kept_response.KeptResponse.keep = kept_then

with CCSD(mf, 1, checkpoint=directory, **{SETTINGS | TIGHT!r}) as cc:
    cc.on_progress = progress
    cc.kernel()
    if int(triples):
        cc.ccsd_t(derivatives=True)
    cc.nuc_grad_method().kernel()
"""
OF_SLABS = ("derivatives of the SCF's integrals", "derivatives of CCSD's integrals")


def mean_field(atoms: str, spin: int = 0, basis: str = "sto-3g", jkbasis: str = "cc-pvdz-jkfit") -> Any:
    import pyscf

    mol = pyscf.M(atom=atoms, spin=spin, basis=basis, verbose=0)
    mf = (mol.UHF() if spin else mol.RHF()).density_fit(auxbasis=jkbasis)
    mf.conv_tol, mf.conv_tol_grad = 1e-12, 1e-9
    return mf.run()


@pytest.fixture(scope="module")
def water() -> Any:
    return mean_field(WATER)


def start(mf: Any, directory: Path | None, frozen: Any = 1, **settings: Any) -> CCSD:
    return CCSD(mf, frozen, comm=None, checkpoint=directory, **{**SETTINGS, **TIGHT, **settings})


def gradient(cc: CCSD, *, triples: bool) -> Values:
    cc.kernel()
    if triples:
        cc.ccsd_t(derivatives=True)
    return np.asarray(cc.nuc_grad_method().kernel())


def killed(mf: Any, triples: bool, directory: Path, *stages: str, processes: int = 1) -> None:
    """Each run resumes from the one before; one of its processes gets SIGKILL when it reaches its stage."""
    launcher = [launch.find_launcher(), "-n", processes] if processes > 1 else []
    # Recomputed orbitals differ in rounding, so they count as other orbitals.
    orbitals = directory / "orbitals.npz"
    np.savez(orbitals, **{name: getattr(mf, name) for name in ("mo_coeff", "mo_energy", "mo_occ", "e_tot")})
    atoms = "; ".join(f"{symbol} {x!r} {y!r} {z!r}" for symbol, (x, y, z) in mf.mol._atom)
    places = atoms.replace("np.float64(", "").replace(")", "")
    for stage in stages:
        arguments = [stage, directory / "kept", places, mf.mol.spin, int(triples), orbitals]
        code = KILLED.replace("atom=atoms", 'atom=atoms, unit="Bohr"')
        command = [*launcher, sys.executable, "-c", code, *arguments]
        ended = subprocess.run(list(map(str, command)), capture_output=True, check=False)
        of_kill = -signal.SIGKILL if processes == 1 else signal.SIGKILL  # as MPICH's launcher reports it
        assert ended.returncode == of_kill, (stage, ended.returncode, ended.stderr)


def keep_amplitudes(directory: Path) -> None:
    """Keeps the amplitudes, and nothing of later stages."""
    for each in directory.iterdir():
        if not each.name.startswith((kept.AMPLITUDES, kept_orbitals.NAME)):
            shutil.rmtree(each)


def parts_of(cc: CCSD) -> list[str]:
    told: list[str] = []
    cc.on_progress = lambda name, _: told.append(name)
    return told


@pytest.fixture(scope="module")
def kept_of_all(water: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a run that was ended at its last step, without that of the Lambda iterations."""
    directory = tmp_path_factory.mktemp("settings") / "kept"
    with start(water, directory, **LOOSE) as cc:
        gradient(cc, triples=True)
    return directory


@pytest.fixture(scope="module")
def undisturbed(water: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], Values]:
    """The kept amplitudes of a run, the parts that it has told, and its gradient."""
    directory = tmp_path_factory.mktemp("undisturbed") / "kept"
    with start(water, directory) as cc:
        parts = parts_of(cc)
        found = gradient(cc, triples=True)
    keep_amplitudes(directory)
    return directory, parts, found


def test_of_closed_shells_each_part_goes_on_where_it_was_killed(
    water: Any, undisturbed: Any, tmp_path: Path
) -> None:
    amplitudes, whole, wanted = undisturbed
    shutil.copytree(amplitudes, tmp_path / "kept")
    stages = ("derivatives of triples 2", "Lambda iteration 3 2", "response 3", f"{OF_SLABS[0]} 2")
    killed(water, True, tmp_path, *stages, f"{OF_SLABS[1]} 2")
    with start(water, tmp_path / "kept") as cc:
        told = parts_of(cc)
        assert abs(gradient(cc, triples=True) - wanted).max() < 1e-9
        assert cc.multipliers.iterations == []
    assert "derivatives of triples" not in told
    assert told.count(OF_SLABS[0]) == 1 < whole.count(OF_SLABS[0])  # the end of it alone
    assert 1 <= told.count(OF_SLABS[1]) < whole.count(OF_SLABS[1])


@pytest.fixture(scope="module")
def hydroxyl() -> Any:
    return mean_field(HYDROXYL, 1)


def test_of_open_shells_multipliers_go_on_within_an_iteration(hydroxyl: Any, tmp_path: Path) -> None:
    with start(hydroxyl, tmp_path / "kept") as cc:
        whole = parts_of(cc)
        wanted = gradient(cc, triples=False)
    keep_amplitudes(tmp_path / "kept")
    products = whole.count("Lambda iteration 5")
    killed(hydroxyl, False, tmp_path, f"Lambda iteration 5 {products - 1}")
    with start(hydroxyl, tmp_path / "kept") as cc:
        told = parts_of(cc)
        assert abs(gradient(cc, triples=False) - wanted).max() < 1e-9
        assert cc.multipliers.iterations[0].number == 5
    assert told.count("Lambda iteration 5") < products
    assert told.count("Lambda iteration 6") == products


def test_of_open_shells_derivatives_of_triples_go_on_after_a_kill(hydroxyl: Any, tmp_path: Path) -> None:
    with start(hydroxyl, tmp_path / "kept") as cc:
        whole = parts_of(cc)
        wanted = gradient(cc, triples=True)
    keep_amplitudes(tmp_path / "kept")
    killed(hydroxyl, True, tmp_path, "derivatives of triples 2")
    with start(hydroxyl, tmp_path / "kept") as cc:
        told = parts_of(cc)
        assert abs(gradient(cc, triples=True) - wanted).max() < 1e-9
    assert 0 < told.count("derivatives of triples") < whole.count("derivatives of triples")


@pytest.mark.launcher
def test_a_job_goes_on_where_one_of_its_processes_was_killed(
    water: Any, undisturbed: Any, tmp_path: Path
) -> None:
    amplitudes, _, wanted = undisturbed
    shutil.copytree(amplitudes, tmp_path / "kept")
    killed(water, True, tmp_path, "Lambda iteration 3 5", processes=2)
    with start(water, tmp_path / "kept") as cc:
        told = parts_of(cc)
        assert abs(gradient(cc, triples=True) - wanted).max() < 1e-9
        assert cc.multipliers.iterations[0].number == 3
    assert "derivatives of triples" not in told


def test_a_scanner_goes_on_within_a_geometry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    kept, water = tmp_path / "kept", mean_field(WATER)  # its own: a scanner moves the integrals of the SCF
    mol = water.mol.set_geom_(1.02 * water.mol.atom_coords(), unit="Bohr", inplace=False)

    def scanner(directory: Path | None, stage: str = "") -> tuple[Any, list[str]]:
        cc, told = start(water, directory), list[str]()

        def tell(part: str, _: float) -> None:
            told.append(part)
            if part == stage:
                raise KeyboardInterrupt

        cc.on_progress = tell
        return cc.nuc_grad_method().as_scanner(), told

    alone, _ = scanner(None)
    wanted = alone(mol)
    ended, _ = scanner(kept, "Lambda iteration 2")
    with pytest.raises(KeyboardInterrupt):
        ended(mol)
    assert len(list(kept.glob("geometry.*"))) == 1
    ended.base.give_back()
    gone_on, told = scanner(kept)
    energy, gradient = gone_on(mol)
    assert not any(part.startswith("iteration") for part in told)
    assert next(part for part in told if part.startswith("Lambda")) == "Lambda iteration 2"
    assert energy == pytest.approx(wanted[0], abs=1e-9)
    assert abs(gradient - wanted[1]).max() < 1e-8
    gone_on.remove_checkpoint()
    assert not list(kept.glob("geometry.*"))


def test_orbital_multipliers_are_a_start_and_are_taken_once_they_have_converged(
    water: Any, kept_of_all: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(kept_of_all, tmp_path / "kept")
    for name in (RESPONSE, SLABS):
        for each in (tmp_path / "kept").glob(f"{name}*"):
            shutil.rmtree(each)
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    right, begins = response.sparse.cg, []

    def solve(operator: Any, given: Values, begin: Values | None, callback: Any, **options: Any) -> Any:
        def keep(vector: Values) -> None:
            callback(vector)
            if len(begins) == 1:
                raise KeyboardInterrupt

        begins.append(begin)
        return right(operator, given, begin, callback=keep, **options)

    monkeypatch.setattr(response.sparse, "cg", solve)
    with start(water, tmp_path / "kept", **LOOSE) as first, pytest.raises(KeyboardInterrupt):
        gradient(first, triples=True)
    for _ in range(2):
        with start(water, tmp_path / "kept", **LOOSE) as cc:
            gradient(cc, triples=True)
    assert len(begins) == 2
    assert begins[0] is None
    assert begins[1] is not None


def test_a_disk_that_fills_loses_nothing(water: Any, tmp_path: Path) -> None:
    settings = {"storage": "disk", "scratch": str(tmp_path), **LOOSE}
    with start(water, None, **settings) as cc:
        wanted = gradient(cc, triples=True)
    with start(water, tmp_path / "kept", **settings) as first:
        first.kernel()
        with files_of_at_most(4096), pytest.raises(OutcoreError) as caught:
            first.ccsd_t(derivatives=True)
        assert caught.value.errno == errno.EFBIG
        assert np.isfinite(np.asarray(first.t2)).all()
        first.solve_lambda()  # it was refused before anything was given back
        assert first.multipliers.converged
    with start(water, tmp_path / "kept", **settings) as second:
        second.kernel()
        assert second.converged
        assert second.iterations == []
        second.solve_lambda()
        with files_of_at_most(4096), pytest.raises(OutcoreError) as caught:
            second.nuc_grad_method().kernel()
        assert caught.value.errno == errno.EFBIG
    with start(water, tmp_path / "kept", **settings) as third:
        assert abs(gradient(third, triples=True) - wanted).max() < 1e-9


@pytest.mark.parametrize("full", [pytest.param("scratch", marks=pytest.mark.long), "kept"])
def test_a_disk_that_is_full_in_the_lambda_equations_loses_nothing(
    water: Any, tmp_path: Path, small_disk: Path, full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch, kept = (small_disk if full == each else tmp_path for each in ("scratch", "kept"))
    settings = {"storage": "disk", "scratch": str(scratch), **LOOSE}
    with start(water, None, **settings) as cc:
        wanted = gradient(cc, triples=False)
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    filler: list[Path] = []

    def tell(part: str, _: float) -> None:
        if part == "Lambda iteration 1" and not filler:
            filler.append(fill(small_disk))

    with start(water, kept / "kept", **settings) as first:
        first.on_progress = tell
        with pytest.raises(OutcoreError, match=rf"{small_disk}.*No space left") as caught:
            gradient(first, triples=False)
        assert caught.value.errno == errno.ENOSPC
        assert first.converged
    filler[0].unlink()
    with start(water, kept / "kept", **settings) as second:
        assert abs(gradient(second, triples=False) - wanted).max() < 1e-9
        assert second.iterations == []
        assert second.multipliers.iterations[0].number == 1


# ---- the settings of a checkpoint ----


def with_only(directory: Path, name: str, to: Path) -> Path:
    """The checkpoint reduced to the part of this name."""
    to.mkdir()
    found = sorted(directory.glob(f"{name}*"))
    assert found
    for each in found:
        shutil.copytree(each, to / each.name)
    return to


@pytest.mark.parametrize("name", [DERIVATIVES, MULTIPLIERS, RESPONSE, SLABS])
def test_all_that_is_kept_knows_its_settings(
    water: Any, kept_of_all: Path, tmp_path: Path, name: str
) -> None:
    alone = with_only(kept_of_all, name, tmp_path / "kept")
    with start(water, alone, 0, **ONE) as cc:
        with pytest.raises(OutcoreError, match="frozen = 1, now it is 0") as caught:
            gradient(cc, triples=True)
        assert caught.value.errno == errno.EINVAL
        assert name in str(caught.value.path)


CHANGED = {
    "frozen virtual": ({}, {"frozen_virtual": 1}, "another frozen|frozen = "),
    "auxiliary basis": ({}, {"auxbasis": "cc-pvdz-jkfit"}, "another auxiliary basis"),
    "screening": ({}, {"screening": 1e-9}, "screening"),
    "basis": ({"basis": "sto-6g"}, {}, "basis"),
    "SCF's auxiliary basis": ({"jkbasis": "cc-pvtz-jkfit"}, {}, "auxiliary basis of the SCF"),
    "geometry": ({"atoms": WATER.replace("0.1 ", "0.2 ")}, {}, "another geometry"),
}


@pytest.mark.parametrize("changed", CHANGED)
def test_multipliers_of_other_settings_are_refused_by_name(
    kept_of_all: Path, tmp_path: Path, changed: str
) -> None:
    of_scf, settings, words = CHANGED[changed]
    alone = with_only(kept_of_all, MULTIPLIERS, tmp_path / "kept")
    mf = mean_field(**{"atoms": WATER, **of_scf})
    with start(mf, alone, **{**ONE, **settings}) as cc:
        cc.kernel()
        with pytest.raises(OutcoreError, match=words) as caught:
            cc.solve_lambda()
        assert caught.value.errno == errno.EINVAL


def test_multipliers_of_another_format_are_refused(
    water: Any, kept_of_all: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = with_only(kept_of_all, MULTIPLIERS, tmp_path / "kept")
    monkeypatch.setattr(ccsd, "FORMAT", ccsd.FORMAT + 1)
    with start(water, alone, **ONE) as cc:
        cc.kernel()
        with pytest.raises(OutcoreError, match=f"kept in format {ccsd.FORMAT - 1}") as caught:
            cc.solve_lambda()
        assert caught.value.errno == errno.ENOTSUP


def test_what_looser_thresholds_have_left_is_a_start_alone(
    water: Any, kept_of_all: Path, tmp_path: Path
) -> None:
    with start(water, None) as cc:
        wanted = gradient(cc, triples=True)
    shutil.copytree(kept_of_all, tmp_path / "kept")
    with start(water, tmp_path / "kept") as cc:
        assert abs(gradient(cc, triples=True) - wanted).max() < 1e-8
        assert cc.multipliers.iterations
    assert not list((tmp_path / "kept").glob(f"{LAMBDA}.*"))
