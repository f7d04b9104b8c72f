"""outcore.OutcoreError: what native and Python code raise."""

from __future__ import annotations

import copy
import errno
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import outcore
from outcore import _core
from outcore.base.errors import NotConverged, OutcoreError, as_outcore_error


def native_error() -> OutcoreError:
    with pytest.raises(OutcoreError) as caught:
        _core.trace_enable_events(0)
    return caught.value


def test_native_error_is_an_outcore_error_and_an_os_error() -> None:
    error = native_error()
    assert type(error) is OutcoreError
    assert isinstance(error, OSError)


def test_native_error_says_what_was_attempted_and_why() -> None:
    error = native_error()
    assert error.errno == errno.EINVAL
    assert error.attempted == "allocation of a trace buffer"
    assert "at least one is needed" in error.detail
    assert str(error) == f"allocation of a trace buffer: Invalid argument ({error.detail})"


def test_a_signal_while_a_native_error_is_made_is_what_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> OutcoreError:
        raise KeyboardInterrupt

    monkeypatch.setattr("outcore.base.errors.OutcoreError", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _core.trace_enable_events(0)


def test_native_error_without_a_place_has_none() -> None:
    error = native_error()
    assert error.path == ""
    assert error.filename is None
    assert error.offset is None
    assert error.size_bytes is None


def test_attributes_of_os_error_are_set() -> None:
    error = OutcoreError(errno.ENOSPC, "write", path="/scratch/x", offset=8, size_bytes=16)
    assert error.errno == errno.ENOSPC
    assert error.strerror == "No space left on device"
    assert error.filename == "/scratch/x"


def test_text_says_what_where_and_how_much() -> None:
    error = OutcoreError(errno.ENOSPC, "write", path="/x", offset=0, size_bytes=16, detail="free: 3 bytes")
    assert str(error) == "write of 16 bytes at offset 0 of /x: No space left on device (free: 3 bytes)"


def test_rank_is_in_the_text_when_there_are_several() -> None:
    _core.set_process_rank(2, 4)
    try:
        error = OutcoreError(errno.EIO, "read", path="/x", offset=7)
    finally:
        _core.set_process_rank(0, 1)
    assert error.rank == 2
    assert str(error) == "rank 2: read at offset 7 of /x: Input/output error"


def test_process_rank_and_count_are_what_was_set() -> None:
    _core.set_process_rank(3, 5)
    try:
        assert (_core.process_rank(), _core.process_count()) == (3, 5)
    finally:
        _core.set_process_rank(0, 1)


@pytest.mark.parametrize("move", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_error_keeps_everything_on_its_way_to_another_process(
    move: Callable[[OutcoreError], OutcoreError],
) -> None:
    _core.set_process_rank(1, 2)
    try:
        error = OutcoreError(errno.EIO, "read", path="/x", offset=7, size_bytes=9, detail="torn")
    finally:
        _core.set_process_rank(0, 1)
    moved = move(error)
    assert type(moved) is OutcoreError
    assert str(moved) == str(error)
    for name in (
        "errno",
        "strerror",
        "filename",
        "attempted",
        "path",
        "offset",
        "size_bytes",
        "detail",
        "rank",
    ):
        assert getattr(moved, name) == getattr(error, name), name


def test_a_path_object_is_accepted(tmp_path: Path) -> None:
    assert OutcoreError(errno.ENOENT, "open", path=tmp_path).path == str(tmp_path)


def test_a_path_that_is_not_utf8_is_accepted() -> None:
    error = OutcoreError(errno.EIO, "read", path="/x/\udcff")
    assert error.path == "/x/\udcff"
    assert str(error) == "read /x/\ufffd: Input/output error"


def test_error_without_an_errno_says_why_in_its_own_words() -> None:
    error = OutcoreError(None, "find the launcher", path="/x", detail="there is none")
    assert error.errno is None
    assert error.strerror is None
    assert error.filename == "/x"
    assert str(error) == "find the launcher /x: there is none"
    assert str(OutcoreError(None, "find the launcher")) == "find the launcher"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.errno, again.path) == (str(error), None, "/x")


def test_no_convergence_is_an_error_of_its_own() -> None:
    error = NotConverged(None, "converge the SCF", detail="after 3 cycles")
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, NotConverged)
    assert str(again) == "converge the SCF: after 3 cycles"


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (MemoryError("Unable to allocate 1 GiB"), errno.ENOMEM),
        (OSError("libxc.so: failed to map segment from shared object"), errno.ENOMEM),
        (ImportError("libx.so: failed to map segment from shared object"), errno.ENOMEM),
        (RuntimeError("can't start new thread"), errno.EAGAIN),
        (ValueError("no"), errno.EINVAL),
        (KeyError("no"), errno.EINVAL),
        (FileNotFoundError(errno.ENOENT, "no"), errno.ENOENT),
        (RuntimeError("it is Tuesday"), None),
    ],
)
def test_errors_of_others_get_an_errno_that_fits_or_none(error: Exception, number: int | None) -> None:
    ours = as_outcore_error(error, "compute")
    assert ours.errno == number
    assert type(error).__name__ in str(ours)
    with outcore.World("self") as world, pytest.raises(OutcoreError) as caught, world.together("compute"):
        raise error
    assert (caught.value.errno, str(caught.value)) == (number, str(ours))


def test_error_without_an_errno_travels_with_a_call() -> None:
    def serve(*_: object) -> bytes:
        raise RuntimeError("it is Tuesday")

    with outcore.World("self") as world:
        world.register("serve", serve)
        with pytest.raises(OutcoreError, match="it is Tuesday") as caught:
            world.call(0, "serve").wait()
    assert caught.value.errno is None


def test_no_source_says_that_a_number_is_out_of_domain() -> None:
    root = Path(__file__).parents[3]
    sources = [*root.glob("python/**/*.py"), *root.glob("src/**/*.cpp"), *root.glob("bindings/**/*.cpp")]
    assert len(sources) > 100
    assert not [path for path in sources if "EDOM" in path.read_text()]
