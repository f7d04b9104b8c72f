"""Files, requests and file systems of the device layer in Python."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from outcore import OutcoreError, _core


@pytest.fixture(params=["auto", "buffered", "direct"])
def file(request: pytest.FixtureRequest, tmp_path: Path):
    with _core.File(tmp_path / "file", page_cache=request.param) as opened:
        yield opened


def random_array(size: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random(size)


def test_blocking_round_trip(file: _core.File) -> None:
    data = random_array(300_000)
    assert file.write(data, 17) == data.nbytes
    back = np.empty_like(data)
    assert file.read(back, 17) == data.nbytes
    np.testing.assert_array_equal(back, data)
    assert file.length() == data.nbytes + 17
    assert file.eof(file.length())


def test_nonblocking_round_trip(file: _core.File) -> None:
    data = random_array(100_000)
    back = np.empty_like(data)
    _core.wait_all([file.write_async(data[i : i + 1000], 8 * i) for i in range(0, data.size, 1000)])
    requests = [file.read_async(back[i : i + 1000], 8 * i) for i in range(0, data.size, 1000)]
    assert requests[_core.wait_any(requests)].done
    assert all(request.wait() == 8000 for request in requests)
    np.testing.assert_array_equal(back, data)


def test_lists_scatter_and_gather(file: _core.File) -> None:
    parts = [random_array(n, n) for n in (1, 1000, 70_000)]
    backs = [np.empty_like(part) for part in parts]
    assert file.write(parts, 5) == sum(part.nbytes for part in parts)
    assert file.read_async(tuple(backs), 5).wait() == sum(part.nbytes for part in parts)
    for part, back in zip(parts, backs, strict=True):
        np.testing.assert_array_equal(back, part)


def test_any_buffer(file: _core.File) -> None:
    file.write(b"0123456789", 0)
    target = bytearray(4)
    assert file.read(target, 3) == 4
    assert target == b"3456"
    assert file.read(memoryview(target)[:2], 9) == 1
    assert target[:1] == b"9"


def test_request_keeps_its_array_alive(file: _core.File) -> None:
    expected = random_array(500_000)
    request = file.write_async(expected.copy(), 0)
    gc.collect()
    assert request.wait() == expected.nbytes
    back = np.empty_like(expected)
    file.read(back, 0)
    np.testing.assert_array_equal(back, expected)


def test_dropped_request_keeps_its_array_until_complete(file: _core.File) -> None:
    for i in range(50):
        file.write_async(np.full(20_000, float(i)), i * 160_000)
    gc.collect()
    file.flush()
    back = np.empty(20_000)
    for i in range(50):
        file.read(back, i * 160_000)
        assert (back == i).all()


def test_buffer_is_released_when_complete(file: _core.File) -> None:
    data = bytearray(b"x" * 1000)
    request = file.write_async(data, 0)
    request.wait()
    data.extend(b"y")  # BufferError while the request holds it


def test_read_only_buffer_is_refused(file: _core.File) -> None:
    with pytest.raises(ValueError, match="read-only"):
        file.read(b"some bytes", 0)
    frozen = np.zeros(10)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        file.read_async(frozen, 0)
    assert file.write(frozen, 0) == 80


def test_buffer_that_is_not_contiguous_is_refused(file: _core.File) -> None:
    with pytest.raises(ValueError, match="contiguous"):
        file.write(np.zeros((10, 10))[:, ::2], 0)
    with pytest.raises(ValueError, match="contiguous"):
        file.read(np.zeros(10)[::2], 0)


def test_what_is_not_a_buffer_is_refused(file: _core.File) -> None:
    with pytest.raises(TypeError, match="buffer protocol"):
        file.write(3.5, 0)


def test_negative_offset(file: _core.File) -> None:
    with pytest.raises(OutcoreError, match="negative offset -8") as caught:
        file.write(np.zeros(3), -8)
    assert caught.value.errno == errno.EINVAL


def test_closed_file(tmp_path: Path) -> None:
    file = _core.File(tmp_path / "file")
    file.close()
    file.close()
    with pytest.raises(OutcoreError, match="closed") as caught:
        file.length()
    assert caught.value.errno == errno.EBADF


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(OutcoreError) as caught:
        _core.File(tmp_path / "missing", create=False)
    assert caught.value.errno == errno.ENOENT
    with pytest.raises(OutcoreError):
        _core.remove_file(tmp_path / "missing")


def test_misspelled_cache(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'diret'"):
        _core.File(tmp_path / "file", page_cache="diret")


def test_waiting_lets_other_threads_run(tmp_path: Path) -> None:
    file = _core.File(tmp_path / "file")
    data = random_array(1_000_000)
    wrong: list[int] = []

    def work(part: int) -> None:
        back = np.empty_like(data)
        offset = part * data.nbytes
        file.write_async(data, offset).wait()
        file.read_async(back, offset).wait()
        if not np.array_equal(back, data):
            wrong.append(part)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_exit_with_requests_under_way(tmp_path: Path) -> None:
    program = (
        "import numpy as np\n"
        "from outcore import _core\n"
        f"file = _core.File({str(tmp_path / 'file')!r})\n"
        "requests = [file.write_async(np.ones(100_000), i * 800_000) for i in range(40)]\n"
        "file.write_async(np.ones(100_000), 40 * 800_000)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert os.path.getsize(tmp_path / "file") == 41 * 800_000


def test_file_system(tmp_path: Path) -> None:
    here = _core.file_system(tmp_path)
    below = _core.file_system(tmp_path / "not" / "there" / "yet")
    assert here.type == below.type != ""
    assert here.total_bytes >= here.free_bytes > 0
    assert below.direct_offset_align == here.direct_offset_align


def test_engine_says_why() -> None:
    assert _core.engine_name() in {"uring", "threads"}
    assert _core.engine_reason()


@pytest.mark.parametrize("name", ["threads"])
def test_engine_by_environment(name: str) -> None:
    program = "from outcore import _core; print(_core.engine_name())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True, capture_output=True, text=True, timeout=120, env={**os.environ, "OUTCORE_ENGINE": name},
    )  # fmt: skip
    assert done.stdout.strip() == name
