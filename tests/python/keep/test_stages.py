"""Stages of a checkpoint: they count once complete; stages of another problem, in another format, or damaged
ones are refused."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import outcore
from outcore import DiskArray, checkpoint
from outcore.base.errors import OutcoreError
from outcore.keep import stages
from outcore.keep.problem import Problem
from outcore.keep.stages import Stage, Stages

PROBLEM = Problem("amplitudes", 2, {"threshold": 1e-9})
CACHE = 1 << 20


@pytest.fixture
def world():
    with outcore.World("self") as world:
        yield world


def stage(world: outcore.World, directory: Path, problem: Problem = PROBLEM) -> Stage:
    return Stage(Stages(world, directory), "t2", problem)


def sound(array: DiskArray) -> str:
    return "" if array.shape == (4, 6) else f"its shape is {array.shape}"


def make(kept: Stage, dtype: str = "float64") -> None:
    array = kept.make((4, 6), (2, 6), CACHE, dtype)
    array.put(np.s_[...], np.arange(24.0, dtype=dtype).reshape(4, 6))
    kept.complete(array, rows=3)
    array.close()


def test_a_stage_that_is_complete_is_found_with_its_facts(world, tmp_path):
    kept = stage(world, tmp_path / "kept")
    assert kept.open(sound, cache_bytes=CACHE) is None
    make(kept)
    found = kept.open(sound, cache_bytes=CACHE, read_only=True)
    assert found is not None
    assert found.metadata["rows"] == 3
    assert np.array_equal(found[...], np.arange(24.0).reshape(4, 6))
    found.close()


def test_a_stage_in_single_precision(world, tmp_path):
    kept = stage(world, tmp_path)
    make(kept, "float32")
    with pytest.raises(OutcoreError, match="its type is float32") as error:
        kept.open(sound, cache_bytes=CACHE)
    assert error.value.errno == errno.EIO
    found = kept.open(sound, cache_bytes=CACHE, dtype="float32")
    assert found is not None
    found.close()


def test_a_stage_that_was_not_completed_is_not_there(world, tmp_path):
    kept = stage(world, tmp_path)
    array = kept.make((4, 6), (2, 6), CACHE)
    array.put(np.s_[...], np.ones((4, 6)))
    array.close()
    with pytest.raises(OutcoreError, match="not amplitudes"):  # there, and nothing says what it is
        kept.open(sound, cache_bytes=CACHE)


@pytest.mark.parametrize(
    ("problem", "says", "code"),
    [
        (
            Problem("amplitudes", 3, {"threshold": 1e-9}),
            "kept in format 2; this program reads format 3",
            "ENOTSUP",
        ),
        (
            Problem("amplitudes", 1, {"threshold": 1e-9}),
            "kept in format 2; this program reads format 1",
            "ENOTSUP",
        ),
        (Problem("integrals", 2, {"threshold": 1e-9}), "it holds amplitudes, not integrals", "EINVAL"),
        (Problem("amplitudes", 2, {"threshold": 1e-8}), "threshold = 1e-09, now it is 1e-08", "EINVAL"),
    ],
)
def test_what_is_of_something_else_is_refused_by_name(world, tmp_path, problem, says, code):
    make(stage(world, tmp_path))
    with pytest.raises(OutcoreError, match=says) as error:
        stage(world, tmp_path, problem).open(sound, cache_bytes=CACHE)
    assert error.value.errno == getattr(errno, code)
    stages.save(tmp_path / "small", PROBLEM, {"x": np.ones(3)}, {"cycle": 1})
    with (
        pytest.raises(OutcoreError, match=says) as error,
        stages.opened(tmp_path / "small", problem, "restart"),
    ):
        pass
    assert error.value.errno == getattr(errno, code)


def test_an_array_that_its_check_finds_wrong_is_refused_as_damaged(world, tmp_path):
    kept = stage(world, tmp_path)
    make(kept)
    with pytest.raises(OutcoreError, match="damaged or written wrongly: too small; remove it") as error:
        kept.open(lambda _: "too small", cache_bytes=CACHE)
    assert error.value.errno == errno.EIO


def test_a_directory_in_a_directory_that_is_not_there_is_refused(world, tmp_path):
    with pytest.raises(OutcoreError, match="no such directory") as error:
        Stages(world, tmp_path / "none" / "kept")
    assert error.value.errno == errno.ENOENT


def test_small_arrays_of_one_process_come_back_with_their_facts(tmp_path):
    for cycle in (1, 2):
        stages.save(tmp_path / "small", PROBLEM, {"x": np.full(3, cycle)}, {"cycle": cycle})
    with stages.opened(tmp_path / "small", PROBLEM, "restart") as saved:
        assert saved.meta["cycle"] == 2
        assert np.array_equal(saved["x"], [2, 2, 2])


# ---- what Hartree-Fock and density fitting keep ----


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """One checkpoint of each kind, and a function that resumes from it."""
    pytest.importorskip("pyscf")
    import kept_kinds

    from outcore.chem import restart

    place = tmp_path_factory.mktemp("kept")
    with outcore.World("self") as world:
        kept_kinds.read_integrals(world, place, "disk")
        kept_kinds.read_fitted(world, place)
        mf = kept_kinds.orbitals()
        orbitals = {key: np.asarray(getattr(mf, key)) for key in ("mo_coeff", "mo_energy", "mo_occ")}
        restart.Checkpoint(mf, "RHF", place / "orbitals").save(orbitals, 9, float(mf.e_tot), converged=True)
        readers: dict[str, Callable[[], Any]] = {
            "integrals": lambda: kept_kinds.read_integrals(world, place, "disk"),
            "orbitals": lambda: restart.load(mf, "RHF", place / "orbitals"),
            **dict.fromkeys(
                ("three_index", "mp2.0", "pairs.all"), lambda: kept_kinds.read_fitted(world, place)
            ),
        }
        yield place, readers, world


def rewrite(world: outcore.World, path: Path, version: object) -> None:
    """Changes the format number only."""
    if path.name in ("integrals", "orbitals"):
        with checkpoint.load(world, path) as saved:
            arrays, meta = {name: saved[name] for name in saved}, saved.meta
        checkpoint.save(world, path, arrays, meta | {"format": version})
        return
    with DiskArray.open(world, path, read_only=False) as array:
        array.flush(array.metadata | {"format": version})


@pytest.mark.parametrize("name", ["integrals", "orbitals", "three_index", "mp2.0", "pairs.all"])
@pytest.mark.parametrize("version", [1, 4])
def test_whatever_is_kept_says_its_format_and_another_one_is_refused(everything, name, version):
    place, readers, world = everything
    readers[name]()
    rewrite(world, place / name, version)
    try:
        with pytest.raises(
            OutcoreError, match=f"kept in format {version}; this program reads format [23]"
        ) as error:
            readers[name]()
        assert error.value.errno == errno.ENOTSUP
        assert name in str(error.value.path)
    finally:
        rewrite(world, place / name, 3 if name == "integrals" else 2)
    readers[name]()
