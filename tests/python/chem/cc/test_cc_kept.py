"""Coupled cluster resumes from the checkpoint of another run."""

from __future__ import annotations

import errno
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cc_support import IMIDOGEN, WATER, mean_field, open_mean_field

from outcore import OutcoreError
from outcore.chem.cc import CCSD, fno, planning
from outcore.chem.cc.equations import orbitals
from outcore.chem.cc.equations.restricted import RestrictedEquations
from outcore.chem.cc.equations.unrestricted import UnrestrictedEquations
from outcore.chem.cc.keep import kept, kept_steps
from outcore.chem.cc.keep.kept_steps import KeptRows, KeptSteps
from outcore.job import scratch
from outcore.keep import clock
from outcore.tensor.arrays.array import Array
from outcore.tensor.program.recorder import Recorder

LIMITS = {"conv_tol": 1e-8, "conv_tol_normt": 1e-6, "threads": 1}
LOOSE = {"conv_tol": 1e-3, "conv_tol_normt": 1e-2}
ONE = {"conv_tol": 0.9, "conv_tol_normt": 0.9}  # one iteration, of amplitudes that have converged then


@pytest.fixture(scope="module")
def water() -> Any:
    return mean_field(WATER, "6-31g")


@pytest.fixture(scope="module")
def imidogen() -> Any:
    return open_mean_field("UHF", IMIDOGEN, "6-31g")


@pytest.fixture(scope="module")
def whole(water: Any) -> Iterator[CCSD]:
    """A calculation that nothing has ended."""
    with CCSD(water, 1, comm=None, memory="1GB", **LIMITS) as cc:
        cc.kernel()
        yield cc


@pytest.fixture(scope="module")
def wanted(whole: CCSD) -> tuple[float, float]:
    return whole.e_corr, whole.ccsd_t()


def start(mf: Any, directory: Path, **settings: Any) -> CCSD:
    return CCSD(mf, 1, comm=None, memory="1GB", checkpoint=directory, **{**LIMITS, **settings})


def test_a_run_goes_on_from_the_amplitudes_of_another(
    water: Any, wanted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(clock, "INTERVAL_S", 0.0)
        with start(water, tmp_path / "kept", max_cycle=3, block=8) as first:
            first.kernel()
            assert not first.converged
    with start(water, tmp_path / "kept", block=3) as second:
        second.kernel()
        assert second.found == 3
        assert second.converged
        assert second.iterations[0].number == 4
    assert abs(second.e_corr - wanted[0]) < 1e-8


def test_the_last_iteration_of_a_short_run_is_kept(water: Any, tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        with start(water, tmp_path / "kept", max_cycle=2) as cc:
            cc.kernel()
            assert not cc.converged
            found.append((cc.found, [each.number for each in cc.iterations]))
    assert found == [(0, [1, 2]), (2, [3, 4])]


def test_a_run_that_ended_before_it_kept_something_is_none(
    water: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RestrictedEquations, "_direct_rings", stop)
        with start(water, tmp_path / "kept") as first, pytest.raises(KeyboardInterrupt):
            first.kernel()
    with start(water, tmp_path / "kept", max_cycle=1) as second:
        second.kernel()
        assert second.found == 0
        assert second.iterations


@pytest.mark.parametrize("name", ["water", "imidogen"])
def test_triples_go_on_where_a_run_was_ended(
    name: str, request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mf = request.getfixturevalue(name)
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    told: list[float] = []

    def stop_after_two(part: str, fraction: float) -> None:
        if part == "triple excitations":
            told.append(fraction)
            if len(told) == 3:
                raise KeyboardInterrupt

    with start(mf, tmp_path / "kept", block=2, **LOOSE) as first:
        first.kernel()
        first.on_progress = stop_after_two
        with pytest.raises(KeyboardInterrupt):
            first.ccsd_t()
    tasks = round(1 / told[0])
    told.clear()
    with start(mf, tmp_path / "kept", block=3, **LOOSE) as second:
        second.kernel()
        assert second.converged
        assert not second.iterations
        second.on_progress = lambda part, fraction: told.append(fraction)
        energy = second.ccsd_t()
    assert len(told) == tasks - 2
    with CCSD(mf, 1, comm=None, memory="1GB", **LIMITS | LOOSE) as whole:
        whole.kernel()
        assert abs(energy - whole.ccsd_t()) < 1e-9


def test_amplitudes_of_another_problem_are_refused(water: Any, tmp_path: Path) -> None:
    with start(water, tmp_path / "kept", **ONE) as first:
        first.kernel()
    with pytest.raises(OutcoreError, match="frozen = 1, now it is 0"):
        CCSD(water, comm=None, memory="1GB", checkpoint=tmp_path / "kept").kernel()


def turned(matrix: np.ndarray[Any, Any]) -> Any:
    """Rotates orbitals as if all their energies were equal."""
    generator = np.random.default_rng(3)
    return np.linalg.qr(generator.normal(size=matrix.shape))[0]


def test_orbitals_that_are_made_anew_are_those_that_were_kept(
    water: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(water, tmp_path / "kept", fno=1e-3, max_cycle=3) as first:
        first.kernel()
    with start(water, tmp_path / "other", fno=1e-3) as whole:
        whole.kernel()
    monkeypatch.setattr(fno, "eigenvectors", turned)
    with start(water, tmp_path / "kept", fno=1e-3) as again:
        again.kernel()
        assert again.found == 3
        assert again.iterations[0].norm < 0.1 * whole.iterations[0].norm
    assert abs(again.e_corr - whole.e_corr) < 1e-8
    assert abs(again.delta_mp2 - whole.delta_mp2) < 1e-9


def test_kept_orbitals_of_open_shells_give_amplitudes_of_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mf = open_mean_field("ROHF", IMIDOGEN, "6-31g")
    settings = {"comm": None, "memory": "1GB", "checkpoint": tmp_path / "kept"} | LIMITS | LOOSE
    with CCSD(mf, **settings) as first:
        first.kernel()
        wanted = first.amplitudes()
    right = orbitals.eigenvectors
    monkeypatch.setattr(orbitals, "eigenvectors", lambda matrix: -right(matrix))
    with CCSD(mf, **settings) as again:
        again.kernel()
        assert not again.iterations
        found = again.amplitudes()
    for one, other in zip((*wanted[0], *wanted[1]), (*found[0], *found[1]), strict=True):
        assert abs(one - other).max() < 1e-9


def test_amplitudes_of_orbitals_that_were_made_anew_are_refused(
    water: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"fno": 1e-3, **ONE}
    with start(water, tmp_path / "kept", **settings) as first:
        first.kernel()
    shutil.rmtree(tmp_path / "kept" / "correlated")
    monkeypatch.setattr(fno, "eigenvectors", turned)
    with pytest.raises(OutcoreError, match="it is of other orbitals or another Fock matrix"):
        start(water, tmp_path / "kept", **settings).kernel()


def test_amplitudes_of_another_hamiltonian_are_refused(water: Any, tmp_path: Path) -> None:
    """The orbitals are the same, but the Hamiltonian has an electric field."""
    with start(water, tmp_path / "kept", max_cycle=1) as first:
        first.kernel()
    mf = water.copy()
    core = water.get_hcore() + 0.01 * water.mol.intor("int1e_r")[2]
    mf.get_hcore = lambda *_: core
    with pytest.raises(OutcoreError, match="it is of other orbitals or another Fock matrix"):
        start(mf, tmp_path / "kept").kernel()


def test_a_kill_between_commits_of_spins_leaves_a_start(
    imidogen: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush, stamps = Array.flush, []

    def stop_within(array: Any, facts: Any) -> None:
        if facts.get("iteration") == 4:
            stamps.append(array)
            if len(stamps) == 2:
                raise KeyboardInterrupt
        flush(array, facts)

    with monkeypatch.context() as patched:
        patched.setattr(clock, "INTERVAL_S", 0.0)
        patched.setattr(Array, "flush", stop_within)
        with start(imidogen, tmp_path / "kept") as first, pytest.raises(KeyboardInterrupt):
            first.kernel()
    with start(imidogen, tmp_path / "kept") as second:
        second.kernel()
        assert second.found == 4
        assert second.iterations[0].norm < 0.1 * first.iterations[0].norm
    with CCSD(imidogen, 1, comm=None, memory="1GB", **LIMITS) as whole:
        assert abs(second.e_corr - whole.kernel()[0]) < 1e-8


def test_looser_amplitudes_are_a_start(water: Any, wanted: Any, tmp_path: Path) -> None:
    with start(water, tmp_path / "kept", **LOOSE) as first:
        first.kernel()
        assert first.converged
    with start(water, tmp_path / "kept") as second:
        second.kernel()
        assert second.iterations
        assert second.converged
    assert abs(second.e_corr - wanted[0]) < 1e-8


def damage(array: Path) -> None:
    """Damages each larger file of an array in the middle."""
    for path in array.rglob("*"):
        if path.is_file() and path.stat().st_size > 4096:
            data = bytearray(path.read_bytes())
            middle = len(data) // 2
            data[middle - 1000 : middle + 1000] = bytes(2000)
            path.write_bytes(data)


def test_damaged_amplitudes_are_named(water: Any, tmp_path: Path) -> None:
    with start(water, tmp_path / "kept", **ONE) as first:
        first.kernel()
    damage(tmp_path / "kept" / kept.AMPLITUDES)
    with pytest.raises(OutcoreError, match=kept.AMPLITUDES):
        start(water, tmp_path / "kept").kernel()


KILLED = """
import os, signal, sys

import numpy as np
import pyscf
from outcore.chem.cc import CCSD
from outcore.keep import clock
from outcore.chem.cc.keep.kept_steps import KeptRows
from outcore.chem.cc.equations.restricted import RestrictedEquations

atoms, orbitals = sys.argv[3:]
mf = pyscf.M(atom=atoms, basis="6-31g", verbose=0).RHF()
with np.load(orbitals) as given:
    mf.mo_coeff, mf.mo_energy, mf.mo_occ = (given[name] for name in ("mo_coeff", "mo_energy", "mo_occ"))
mf.converged = True
clock.INTERVAL_S = 0.0
stage = sys.argv[1]


def die(reached):
    if reached == stage:
        os.kill(os.getpid(), signal.SIGKILL)


seen = []


def progress(part, fraction):
    seen.append(part)
    die(f"{part} {seen.count(part)}")


def watch(owner, name, part):
    right = getattr(owner, name)

    def work(*arguments):
        progress(part, 0.0)
        return right(*arguments)

    setattr(owner, name, work)


settings = {"conv_tol": 1e-8, "conv_tol_normt": 1e-6, "threads": 1, "block": 3, "storage": "disk"}
with CCSD(mf, 1, comm=None, memory="1GB", checkpoint=sys.argv[2], **settings) as cc:
    cc.prepare()
    watch(KeptRows, "finish", "row")
    watch(RestrictedEquations, "_direct_rings", "direct rings")
    cc.on_progress = progress
    cc.on_iteration = lambda found: die(f"iteration {found.number}")
    cc.kernel()
    cc.ccsd_t()
"""


def killed(mf: Any, stage: str, directory: Path) -> Path:
    """The checkpoint of a run that gets SIGKILL when it reaches a stage; its first iteration has 10 rows."""
    # Recomputed orbitals differ in rounding, so they count as other orbitals.
    orbitals = {name: getattr(mf, name) for name in ("mo_coeff", "mo_energy", "mo_occ")}
    np.savez(directory / "orbitals.npz", **orbitals)
    arguments = [stage, str(directory / "kept"), WATER, str(directory / "orbitals.npz")]
    ended = subprocess.run([sys.executable, "-c", KILLED, *arguments], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    return directory / "kept"


@pytest.mark.parametrize(
    ("stage", "iteration"),
    [
        ("three-index integrals 2", 0),
        pytest.param("ladder integrals 3", 0, marks=pytest.mark.long),
        ("iteration 4", 3),
        pytest.param("triple excitations 3", None, marks=pytest.mark.long),
    ],
)
def test_a_run_that_was_killed_is_gone_on_with(
    stage: str, iteration: int | None, water: Any, wanted: Any, tmp_path: Path
) -> None:
    with start(water, killed(water, stage, tmp_path)) as cc:
        cc.set_up()
        assert cc.found == iteration or (iteration is None and cc.converged)
        if iteration == 0:  # a run like any other
            return
        cc.kernel()
        cc.ccsd_t()
    assert abs(cc.e_corr - wanted[0]) < 1e-8
    assert abs(cc.e_t - wanted[1]) < 1e-8


def test_what_is_kept_needs_no_room_again(
    water: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    needs: list[int] = []

    def see(world: Any, attempted: str, wanted: list[tuple[Path, int]], **_: int) -> None:
        needs.append(sum(size for _, size in wanted))
        scratch.check_room(world, attempted, wanted)

    monkeypatch.setattr(planning, "check_room", see)
    with start(water, tmp_path / "kept", max_cycle=1) as first:
        first.kernel()
    disk = SimpleNamespace(file_system=lambda _: SimpleNamespace(free_bytes=needs[0] - 1, network=False))
    monkeypatch.setattr(scratch, "_core", disk)
    with pytest.raises(OutcoreError, match="arrays take") as caught:
        start(water, tmp_path / "new").set_up()
    assert caught.value.errno == errno.ENOSPC
    with start(water, tmp_path / "kept", max_cycle=1) as second:
        second.kernel()
        assert second.found == 1


def test_triples_of_kept_amplitudes_need_no_room_for_iterations(
    water: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(water, tmp_path) as first:
        first.kernel()
    needs: list[tuple[Path, int]] = []
    monkeypatch.setattr(planning, "check_room", lambda world, attempted, wanted, **_: needs.extend(wanted))
    with start(water, tmp_path) as second:
        second.kernel()
        assert second.converged and not second.iterations
    assert [path for path, _ in needs] == [Path(second.world.scratch)]


# ---- within an iteration ----


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[None]:
    """A list with an element for each call of a method from now on, without calls that only record."""
    calls: list[None] = []
    right = getattr(owner, name)

    def work(self: Any, *arguments: Any) -> Any:
        if not isinstance(getattr(self, "room", None), Recorder):
            calls.append(None)
        return right(self, *arguments)

    monkeypatch.setattr(owner, name, work)
    return calls


@pytest.mark.parametrize(
    ("stage", "block", "rows", "rings"),
    [
        ("row 15", 3, 6, 1),  # of the second iteration: 4 rows are kept
        pytest.param("row 15", 8, 3, 1, marks=pytest.mark.long),  # blocks are others, and so are rows
        ("direct rings 2", 3, 0, 0),
    ],
)
def test_an_iteration_goes_on_where_it_was_killed(
    stage: str,
    block: int,
    rows: int,
    rings: int,
    water: Any,
    whole: CCSD,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory = killed(water, stage, tmp_path)
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    done = [
        counted(monkeypatch, *each)
        for each in ((KeptRows, "finish"), (RestrictedEquations, "_exchange_rings"))
    ]
    told: list[tuple[int, ...]] = []
    with start(water, directory, block=block, max_cycle=1) as cc:
        cc.on_iteration = lambda found: told.append((found.number, *map(len, done)))
        cc.kernel()
    assert told == [(2, rows, rings)]
    # What changes the amplitudes before they are extrapolated is the same; integrals of some of it were rounded.
    assert abs(cc.iterations[0].norm - whole.iterations[1].norm) < 1e-7


def interrupted(mf: Any, directory: Path, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is interrupted at a method in its first iteration."""

    def work(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(clock, "INTERVAL_S", 0.0)
        with start(mf, directory, block=3) as first:
            first.prepare()
            patched.setattr(owner, name, work)
            with pytest.raises(KeyboardInterrupt):
                first.kernel()


def test_an_iteration_of_open_shells_goes_on(
    imidogen: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(imidogen, tmp_path / "kept", UnrestrictedEquations, "_opposite_spin", monkeypatch)
    rows = counted(monkeypatch, KeptRows, "finish")
    same = counted(monkeypatch, UnrestrictedEquations, "_same_spin")
    energies = []
    with start(imidogen, tmp_path / "kept", block=3, max_cycle=1) as second:
        second.kernel()
        energies.append(second.iterations[0].energy)
        assert second.iterations[0].number == 1
        assert not rows
        assert not same
    with start(imidogen, tmp_path / "other", block=3, max_cycle=1) as whole:
        whole.kernel()
        energies.append(whole.iterations[0].energy)
        assert rows
        assert len(same) == 2
    assert abs(energies[0] - energies[1]) < 1e-12


@contextmanager
def full_disk(module: Any, before: int) -> Iterator[None]:
    """Within it the disk is full after this module has written this many tiles to the checkpoint."""
    right, kept_tiles = module.copying, []

    def copying(array: Any, values: Any) -> Any:
        copy = right(array, values)

        def keep(tile: Any) -> None:
            if len(kept_tiles) == before:
                raise OutcoreError(errno.ENOSPC, "keep a tile")
            copy(tile)
            kept_tiles.append(tile)

        return keep

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "copying", copying)
        yield


@pytest.mark.parametrize("at", ["the next run", "once more"])
def test_a_step_that_was_kept_in_part_is_done_again(
    at: str, water: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    right, again = KeptSteps._keep, counted(monkeypatch, RestrictedEquations, "_exchange_rings")
    with start(water, tmp_path / "other", block=3, max_cycle=1) as whole:
        wanted = whole.kernel()[0]

    def keep(self: Any, name: str, array: Any, number: int) -> None:
        if number == 1:
            return right(self, name, array, number)
        with full_disk(kept_steps, 3):
            return right(self, name, array, number)

    with start(water, tmp_path / "kept", block=3, max_cycle=1) as first:
        with monkeypatch.context() as patched:
            patched.setattr(KeptSteps, "_keep", keep)
            with pytest.raises(OutcoreError, match="keep a tile"):
                first.kernel()
        again.clear()
        if at == "once more":
            first.kernel()
            found = first.e_corr
    if at == "the next run":
        with start(water, tmp_path / "kept", block=3, max_cycle=1) as second:
            found = second.kernel()[0]
    assert not again, "the step before it was kept"
    assert abs(found - wanted) < 1e-12


def test_amplitudes_that_were_kept_in_part_are_not_taken(
    water: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    with start(water, tmp_path / "other", block=3, max_cycle=1) as whole:
        whole.kernel()
        wanted = whole.amplitudes()
    right = kept.KeptAmplitudes.commit

    def commit(self: Any, room: Any, doubles: Any, state: kept.State) -> None:
        if state.iteration < 2:
            return right(self, room, doubles, state)
        with full_disk(kept, 3):
            return right(self, room, doubles, state)

    with start(water, tmp_path / "kept", block=3) as first, monkeypatch.context() as patched:
        patched.setattr(kept.KeptAmplitudes, "commit", commit)
        with pytest.raises(OutcoreError, match="keep a tile"):
            first.kernel()
    with start(water, tmp_path / "kept", block=3) as second:
        second.set_up()
        assert second.found == 1
        for one, other in zip(second.amplitudes(), wanted, strict=True):
            assert abs(one - other).max() < 1e-12


def test_steps_go_once_amplitudes_have_converged(
    water: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(water, tmp_path / "kept", RestrictedEquations, "_direct_rings", monkeypatch)
    steps = sorted(path.name for path in (tmp_path / "kept").glob("iteration.*"))
    assert steps == ["iteration.A+", "iteration.A-", "iteration.R"]
    with monkeypatch.context() as patched:
        patched.setattr(KeptSteps, "remove", lambda self: None)  # a kill just before it
        with start(water, tmp_path / "kept", **LOOSE) as second:
            second.kernel()
            assert second.converged
    damage(tmp_path / "kept" / "iteration.R")
    (tmp_path / "kept" / "iteration.A+" / "manifest").unlink()  # as if it had never been committed
    with start(water, tmp_path / "kept", **LOOSE) as third:
        third.kernel()
        assert not third.iterations
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {"amplitudes", "correlated"}


def test_damaged_rows_are_named(water: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(water, tmp_path / "kept", RestrictedEquations, "_exchange_rings", monkeypatch)
    damage(tmp_path / "kept" / "iteration.A+")
    with pytest.raises(OutcoreError, match=r"iteration\.A\+"):
        start(water, tmp_path / "kept", block=3).kernel()


def test_rows_do_not_begin_when_it_is_time_to_commit(
    water: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = counted(monkeypatch, KeptSteps, "change")
    ended = []
    for late_s in (0.0, 1e6):
        with start(water, tmp_path / f"late {late_s}", block=3, max_cycle=1) as cc:
            cc.set_up()
            assert cc._checkpoint is not None and cc._checkpoint._amplitudes is not None
            cc._checkpoint._amplitudes.clock._last -= late_s
            cc.kernel()
        ended.append(len(rounds))
        rounds.clear()
    assert ended[0] == ended[1] > 0
