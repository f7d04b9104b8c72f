"""States that outlast a run."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from mrci_files import damage, find_open
from mrci_molecules import WATER, mean_field

from outcore.arrays.disk_array import DiskArray
from outcore.arrays.sparse_array import BlockSparseArray
from outcore.base.errors import OutcoreError
from outcore.chem.mrci import MRCI, integrals, tables
from outcore.job.world import World

ENERGY = -76.1160029238


def water(path, **settings):
    return MRCI.from_mean_field(
        mean_field(WATER), inactive=1, active=6, comm=None, checkpoint=path, **settings
    )


class Killed(Exception):
    pass


def run_until(path, iteration, **settings):
    """Ends a run as the death of a process would: the checkpoint is not told."""

    def told(now):
        if now.number == iteration:
            raise Killed

    with water(path, **settings) as ci:
        ci.on_iteration = told
        with pytest.raises(Killed):
            ci.kernel()


@pytest.mark.parametrize("settings", [{}, {"error_bound": 1e-8}])
def test_another_run_goes_on(tmp_path, settings):
    with water(None) as ci:
        wanted = ci.kernel()
        whole = len(ci.found.iterations)
    run_until(tmp_path, 6)
    with water(tmp_path, **settings) as ci:
        assert ci.kernel() == pytest.approx(wanted, abs=1.1e-8 if settings else 1e-9)
        assert ci.went_on
        assert len(ci.found.iterations) < whole


def test_several_roots_go_on(tmp_path):
    run_until(tmp_path, 4, roots=2)
    with water(tmp_path, roots=2) as ci, water(None, roots=2) as other:
        assert ci.kernel() == pytest.approx(other.kernel(), abs=1e-8)


def test_a_run_that_ended_needs_one_iteration(tmp_path):
    for _ in range(2):
        with water(tmp_path) as ci:
            ci.kernel()
            iterations = len(ci.found.iterations)
    assert iterations == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"roots": 2}, "roots"),
        ({"references": "all"}, "references"),
        ({"spin": 2}, "spin"),
        ({"functional": "acpf"}, "functional"),
        ({"spin_shift": 0.3}, "kept with spin shift = 0.05, now it is 0.3; name another directory"),
    ],
)
def test_states_of_others_are_refused(tmp_path, settings, message):
    run_until(tmp_path, 2)
    with water(tmp_path, **settings) as ci, pytest.raises(OutcoreError, match=message):
        ci.kernel()


def test_factors_that_differ_within_their_tolerance_are_the_same(tmp_path, monkeypatch):
    run_until(tmp_path, 4, integrals="cholesky", tolerance=1e-3)
    finer = water(tmp_path, integrals="cholesky", tolerance=1e-4)
    with finer as ci, pytest.raises(OutcoreError, match="they are of another integrals"):
        ci.kernel()
    made, random = integrals.of_source, np.random.default_rng(7)

    def by_other_pivots(*given):
        factors = made(*given)
        return factors + 1e-5 * random.standard_normal(factors.shape)

    monkeypatch.setattr(integrals, "of_source", by_other_pivots)
    with water(tmp_path, integrals="cholesky", tolerance=1e-3) as ci:
        ci.kernel()
        assert ci.went_on


def test_a_directory_that_is_not_there(tmp_path):
    with pytest.raises(OutcoreError, match="none"):
        water(tmp_path / "none" / "kept")


# ---- faults ----


def run(directory, die, *memory, processes=1):
    program = [
        sys.executable,
        str(Path(__file__).with_name("mrci_run.py")),
        str(directory),
        str(die),
        *memory,
    ]
    mpiexec = Path(sys.executable).with_name("mpiexec")
    return subprocess.run(
        [*([str(mpiexec), "-n", str(processes)] if processes > 1 else []), *program],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )


def test_a_killed_run_loses_at_most_an_iteration(tmp_path):
    """The second run has two processes, with records in a file; one process is killed."""
    assert run(tmp_path, 5).returncode == -9
    second = run(tmp_path, 3, "50000", processes=2)
    assert second.returncode != 0
    third = run(tmp_path, 0)
    assert third.returncode == 0, third.stderr
    went_on, before, _, energy = third.stdout.split()
    assert went_on == "True"
    assert int(before) == 5 + 3
    assert float(energy) == pytest.approx(ENERGY, abs=2e-9)


def goes_on(path, iteration):
    """Resumes after a fault in the next iteration: at most that is lost."""
    with water(path) as ci:
        assert ci.kernel() == pytest.approx(ENERGY, abs=2e-9)
        assert ci.went_on and ci.kept_iteration == iteration


def test_a_disk_that_is_full(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def told(iteration):
        if iteration.number == 4:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))

    with water(tmp_path, vector_memory=0, scratch=str(tmp_path)) as ci:
        ci.on_iteration = told
        try:
            with pytest.raises(OutcoreError) as caught:
                ci.kernel()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG
    goes_on(tmp_path, 4)


@pytest.mark.parametrize("full", ["scratch", "kept"])
def test_the_same_object_goes_on_when_there_is_room_again(tmp_path, small_disk, full):
    scratch, kept = (small_disk if full == each else tmp_path for each in ("scratch", "kept"))
    filler, done = small_disk / "filler", []

    def fill(iteration):
        done.append(iteration.number)
        if iteration.number == 2:
            with filler.open("wb", buffering=0) as file:
                for size in (1 << 16, 1):
                    with suppress(OSError):
                        while file.write(b"x" * size):
                            pass

    with water(kept, vector_memory=0, scratch=str(scratch)) as ci:
        ci.on_iteration = fill
        with pytest.raises(OutcoreError, match=rf"\d+ bytes .*{small_disk}.*No space left") as caught:
            ci.kernel()
        assert caught.value.errno == errno.ENOSPC
        ci.on_iteration = None
        filler.unlink()
        assert ci.kernel() == pytest.approx(ENERGY, abs=2e-9)
        assert ci.went_on and ci.kept_iteration == done[-1] >= 2


def tiles(directory):
    with World("self") as world:
        array = BlockSparseArray.open(world, directory, read_only=True)
        found = [array.get_tile((root, 0)).copy() for root in range(2)]
        array.close()
    return found


def test_states_of_two_iterations_are_never_kept_together(tmp_path, monkeypatch):
    """A fault between the roots of an iteration leaves both as the iteration before has saved them."""
    put, copy = BlockSparseArray.put_tile_async, tmp_path / "copy"

    def told(iteration):
        if iteration.number == 3:
            shutil.copytree(tmp_path / "kept", copy)
            monkeypatch.setattr(BlockSparseArray, "put_tile_async", fails)

    def fails(array, tile, data):
        if tile[0] == 1:
            raise OutcoreError(errno.EIO, "put a tile")
        return put(array, tile, data)

    with water(tmp_path / "kept", roots=2) as ci:
        ci.on_iteration = told
        with pytest.raises(OutcoreError, match="put a tile"):
            ci.kernel()
    for now, before in zip(tiles(tmp_path / "kept" / "states"), tiles(copy / "states"), strict=True):
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"vector_memory": 0}, "multireference CI"),
        ({"integral_memory": 0}, "integrals of a multireference CI"),
    ],
    ids=["vectors", "integrals"],
)
def test_a_file_that_may_not_be_so_large_is_refused_before_the_first_iteration(tmp_path, given, what):
    before, iterations = resource.getrlimit(resource.RLIMIT_FSIZE), []
    with water(None, scratch=str(tmp_path), **given) as ci:
        ci.on_iteration = iterations.append
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            with pytest.raises(OutcoreError, match=f"^{what} /.*a file of .*, more than the") as caught:
                ci.kernel()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG
    assert not iterations


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_one_flipped_bit_of_what_is_kept_makes_no_wrong_number(tmp_path):
    """Either an error, or a start from the intact part."""
    mf, given = mean_field("Li 0 0 0; H 0 0 1.6", "sto-3g"), {"inactive": 1, "active": 3, "comm": None}

    def start(**more):
        return MRCI.from_mean_field(mf, **given, **more)

    with start() as ci:
        wanted = ci.kernel()
    with start(checkpoint=tmp_path / "whole", max_cycle=3) as ci:
        ci.kernel()
    refused = 0
    for file in sorted(each for each in (tmp_path / "whole").rglob("*") if each.is_file()):
        for at in np.linspace(0, file.stat().st_size - 1, 25).astype(int):
            kept = tmp_path / "kept"
            shutil.copytree(tmp_path / "whole", kept)
            flip(kept / file.relative_to(tmp_path / "whole"), at)
            with start(checkpoint=kept) as ci:
                try:
                    assert ci.kernel() == pytest.approx(wanted, abs=1e-9), (file.name, at)
                except OutcoreError as error:
                    refused += 1
                    assert str(kept) in str(error)
            shutil.rmtree(kept)
    assert refused > 25


def test_a_flipped_bit_of_a_state_is_found(tmp_path):
    run_until(tmp_path, 3)
    largest = max((each for each in (tmp_path / "states").rglob("*") if each.is_file()), key=os.path.getsize)
    damage(largest)
    with water(tmp_path) as ci, pytest.raises(OutcoreError) as caught:
        ci.kernel()
    assert caught.value.errno == errno.EIO


def test_a_flipped_bit_of_a_record_is_found(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def told(iteration):
        if iteration.number == 3:
            damage(next(iter(find_open(scratch))))

    with water(tmp_path, vector_memory=0, scratch=str(scratch)) as ci:
        ci.on_iteration = told
        with pytest.raises(OutcoreError) as caught:
            ci.kernel()
    assert caught.value.errno == errno.EIO
    goes_on(tmp_path, 3)


def test_a_flipped_bit_of_integrals_on_disk_is_found(tmp_path, monkeypatch):
    """The integrals are larger than their cache."""
    monkeypatch.setattr(tables, "_CHUNK_ELEMENTS", 16)
    monkeypatch.setattr(tables, "DiskArray", partial(DiskArray, cache_bytes=1))
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def told(iteration):
        if iteration.number == 3:
            (file,) = find_open(scratch)
            damage(file)

    with water(tmp_path, integral_memory=0, scratch=str(scratch)) as ci:
        ci.on_iteration = told
        with pytest.raises(OutcoreError) as caught:
            ci.kernel()
    assert caught.value.errno == errno.EIO
    goes_on(tmp_path, 3)


def test_a_disk_without_room_is_refused_before_the_start(tmp_path, monkeypatch):
    from outcore.chem.mrci import storage

    monkeypatch.setattr(storage, "_PACKED_BYTES", 1 << 50)
    with water(None, error_bound=1e-8, vector_memory=0) as ci, pytest.raises(OutcoreError) as caught:
        ci.kernel()
    assert caught.value.errno == errno.ENOSPC


def test_integrals_larger_than_memory(tmp_path):
    with pytest.raises(OutcoreError, match=r"integrals over 13 orbitals take 51\.0 kB") as caught:
        water(None, memory="60KB")
    assert caught.value.errno == errno.ENOMEM
