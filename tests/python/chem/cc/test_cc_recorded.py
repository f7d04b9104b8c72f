"""The recorded traffic of equations equals their actual traffic."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cc_support import AMINO, WATER, mean_field, open_mean_field

from outcore.chem.cc import CCSD, triple_response
from outcore.chem.cc.equations.triples import Triples
from outcore.chem.cc.plan import describe, room
from outcore.chem.cc.plan.sizes import Sizes
from outcore.keep import clock
from outcore.tensor.arrays.backends.disk import DiskTiles
from outcore.tensor.plan.statements import Call, Contract, Pass


@pytest.fixture(scope="module")
def water() -> Any:
    return mean_field(WATER, "6-31g")


@pytest.fixture(scope="module")
def amino() -> Any:
    return open_mean_field("UHF", AMINO, "6-31g")


class Count:
    """Bytes of tiles read from and written to arrays on disk, and the bytes that the native loop of products
    has counted."""

    def __init__(self) -> None:
        self.total = 0


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Count]:
    count = Count()
    with monkeypatch.context() as patched:
        for name, times in (("get_async", 1), ("put_async", 1), ("acc_async", 2)):
            right = getattr(DiskTiles, name)

            def counted(
                self: Any, number: int, *given: Any, right: Any = right, times: int = times, **more: Any
            ) -> Any:
                count.total += times * int(self.layout.sizes[number]) * self.dtype.itemsize
                return right(self, number, *given, **more)

            patched.setattr(DiskTiles, name, counted)
        contract = room.einsum

        def contracted(*given: Any, **more: Any) -> Any:
            result, found = contract(*given, **more)
            count.total += int(found.actual.disk)
            return result, found

        patched.setattr(room, "einsum", contracted)
        yield count


@pytest.mark.parametrize(
    ("reference", "method", "ladder"),
    [
        *(
            ("water", method, way)
            for method in ("ccsd", "ccd", "lccd", "dcsd")
            for way in ("disk", "rebuild")
        ),
        ("amino", "ccsd", "disk"),
        ("amino", "ccsd", "rebuild"),
        ("water", "cc2", "auto"),
    ],
)
def test_an_iteration_moves_what_was_recorded(
    reference: str, method: str, ladder: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    mf = request.getfixturevalue(reference)
    settings = {"storage": "disk", "ladder": ladder, "block": 3, "diis_space": 2, "max_cycle": 2}
    with CCSD(mf, 1, method=method, comm=None, memory="1GB", threads=1, **settings) as cc:
        cc.kernel()
        cc.max_cycle = 1  # all vectors are there
        with counting(monkeypatch) as count:
            cc.kernel()
        assert cc.plan is not None
        found = cc.iterations[-1].moved
        assert found.counted == found.planned == cc.plan.product_bytes
        assert count.total == pytest.approx(cc.plan.moved_bytes, rel=1e-3)


@pytest.mark.parametrize("reference", ["water", "amino"])
@pytest.mark.parametrize("block", [pytest.param(1, marks=pytest.mark.long), 3, 5])
def test_triples_read_what_is_planned_and_no_less_than_the_bound(
    reference: str, block: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of (T) and tiles are cut at different orbitals."""
    mf = request.getfixturevalue(reference)
    settings = {"storage": "disk", "ladder": "disk", "block": block, "conv_tol": 0.1, "conv_tol_normt": 0.1}
    with CCSD(mf, 1, comm=None, memory="1GB", threads=2, **settings) as cc:
        cc.kernel()
        with counting(monkeypatch) as count:
            cc.ccsd_t()
        moved = cc.moved_by_triples
        assert cc.plan is not None and cc.plan.triples is not None and moved is not None
        assert moved.counted == pytest.approx(moved.planned)
        assert moved.planned == pytest.approx(cc.plan.triples.bytes)
        assert count.total == pytest.approx(moved.planned)
        assert moved.planned >= moved.least > 0


@pytest.mark.parametrize("reference", ["water", pytest.param("amino", marks=pytest.mark.long)])
def test_derivatives_of_triples_move_no_less_than_the_bound(
    reference: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, actual = triple_response.derive, list[int]()
    mf = request.getfixturevalue(reference)
    settings = {"storage": "disk", "block": 3, "conv_tol": 0.1, "conv_tol_normt": 0.1}
    with CCSD(mf, 1, comm=None, memory="1GB", threads=2, **settings) as cc:
        cc.kernel()
        with counting(monkeypatch) as count:

            def derive(of: CCSD) -> Any:
                found = right(of)
                actual.append(count.total)  # before multipliers are solved for
                return found

            monkeypatch.setattr(triple_response, "derive", derive)
            cc.ccsd_t(derivatives=True)
        moved = cc.moved_by_triples
    assert moved is not None and moved.counted == pytest.approx(moved.planned)
    assert moved.planned >= moved.least > 0
    assert actual[0] >= moved.least


def test_what_triples_have_read_is_counted_where_an_earlier_run_has_made_some(
    water: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    settings = {"storage": "disk", "ladder": "disk", "block": 2, "conv_tol": 0.1, "conv_tol_normt": 0.1}
    common = {"comm": None, "memory": "1GB", "threads": 1, "checkpoint": tmp_path / "kept", **settings}
    right, tasks = Triples._task, 0

    def stop(self: Triples, task: tuple[int, int]) -> float:
        nonlocal tasks
        tasks += 1
        if tasks == 4:
            raise KeyboardInterrupt
        return right(self, task)

    with CCSD(water, 1, **common) as whole:
        whole.kernel()
        energy = whole.ccsd_t()
        assert whole.moved_by_triples is not None
        bytes_ = whole.moved_by_triples.counted
    shutil.rmtree(tmp_path / "kept")
    first = CCSD(water, 1, **common)
    first.kernel()
    with monkeypatch.context() as patched:
        patched.setattr(Triples, "_task", stop)
        with pytest.raises(KeyboardInterrupt):
            first.ccsd_t()
    first.close()
    with CCSD(water, 1, **common) as second:
        second.kernel()
        assert second.ccsd_t() == pytest.approx(energy, abs=1e-12)
        moved = second.moved_by_triples
    assert moved is not None
    assert 0 < moved.counted < moved.planned == pytest.approx(bytes_)


@pytest.mark.parametrize("occupied", [(4,), (4, 3), (1, 1)], ids=["closed", "open", "one"])
@pytest.mark.parametrize("block", [2, 3, 5])
def test_tiles_that_look_alike_are_worked_on_alike(occupied: tuple[int, ...], block: int) -> None:
    sizes = Sizes(15, 60, occupied, (11,) * len(occupied), 3, (0, 60))
    one, all_ = (describe.iterations(sizes, block, 1, is_stored=True, each=each) for each in (False, True))
    pairs = zip(one.description.statements, all_.description.statements, strict=True)
    passes = [(a, b) for a, b in pairs if isinstance(a, Pass)]
    assert passes
    for a, b in passes:
        assert {x.name: y for x, y in a.touched.items()} == {x.name: y for x, y in b.touched.items()}
        assert {x.name for x in a.filled} == {x.name for x in b.filled}


def test_methods_ask_for_the_arrays_that_they_need() -> None:
    def names(method: str) -> set[str]:
        sizes = Sizes(15, 60, (4,), (11,), 3, (0, 60), method)
        return {each.name for each in describe.iterations(sizes, 4, 1, is_stored=True).arrays}

    assert names("ccsd") - names("ccd") == {"Doo", "Dvo"}
    of_ladder = {"A+", "A-", "V+", "V-", "Soo", "Svv"}
    assert names("ccsd") - names("cc2") == of_ladder and names("cc2") < names("ccsd")
    assert names("ccsd") == names("dcsd") and names("ccd") == names("lccd")


def test_equations_are_statements_of_all_kinds_in_a_loop() -> None:
    found = describe.iterations(Sizes(15, 60, (4,), (11,), 3, (0, 60)), 4, 1, is_stored=True).description
    (loop,) = found.loops
    assert loop.last == len(found.statements)
    kinds = {type(each) for each in found.statements[loop.first : loop.last]}
    assert kinds == {Contract, Pass, Call}
    (amplitudes,) = (each for each in found.variables if each.name == "T")
    first, last = found.life(amplitudes) or (0, 0)
    assert first < loop.first and last == loop.last - 1
