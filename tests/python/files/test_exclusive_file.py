"""Exclusive access files: bytes, buffers, errors, remaining files."""

import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

import outcore
from outcore import ExclusiveFile, OutcoreError


@pytest.fixture
def scratch(tmp_path):
    return tmp_path


@pytest.fixture
def file(scratch):
    with ExclusiveFile("ints", scratch=scratch) as file:
        yield file
        if not file.closed:
            file.delete()


def run_python(program, *arguments, expect=0):
    """Runs a program in another process; `expect` is its exit status."""
    answer = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert answer.returncode == expect, answer.stderr
    return answer.stdout


@contextlib.contextmanager
def mounted(device_type, size_bytes, place):
    """A small file system mounted under `place`; needs root."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: a file system that is really full needs root to be mounted")
    target = place / "mounted"
    target.mkdir()
    if device_type == "ext4":
        image = place / "image"
        with image.open("wb") as out:
            out.truncate(size_bytes)
        mkfs = shutil.which("mkfs.ext4", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if mkfs is None:
            pytest.skip("NOT TESTED: a file system that is really full needs mkfs.ext4 (Debian: e2fsprogs)")
        subprocess.run([mkfs, "-q", "-m", "0", image], check=True)
        command = ["mount", "-o", "loop", image, target]
    else:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", target]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(
            f"NOT TESTED: a file system that is really full cannot be mounted here: {made.stderr.strip()}"
        )
    try:
        yield target
    finally:
        subprocess.run(["umount", "--lazy", target], check=True)


# ---- bytes


def test_write_then_read(file):
    values = np.arange(1000.0)
    assert file.write(values, 160) == 8000
    back = np.empty_like(values)
    assert file.read(back, 160) == 8000
    assert (back == values).all()


def test_offset_is_zero_unless_given(file):
    file.write(b"hello")
    buffer = bytearray(5)
    assert file.read(buffer) == 5
    assert buffer == b"hello"


def test_read_beyond_the_end_gives_fewer_bytes(file):
    file.write(b"0123456789")
    buffer = bytearray(b"x" * 8)
    assert file.read(buffer, 6) == 4
    assert buffer == b"6789xxxx"


def test_offset_beyond_the_end_reads_nothing(file):
    file.write(b"0123456789")
    assert file.read(bytearray(8), 1 << 40) == 0


def test_nonblocking(file):
    values = np.random.default_rng(1).random(100_000)
    requests = [file.write_async(values[i : i + 10_000], 8 * i) for i in range(0, values.size, 10_000)]
    assert [request.wait() for request in requests] == [80_000] * 10
    back = np.empty_like(values)
    assert file.read_async(back).wait() == values.nbytes
    assert (back == values).all()


def test_request_keeps_the_array_alive(file):
    requests = [file.write_async(np.full(50_000, float(i)), 400_000 * i) for i in range(20)]
    for request in requests:
        request.wait()
    back = np.empty((20, 50_000))
    file.read(back)
    assert (back == np.arange(20.0)[:, None]).all()


def test_length_eof_truncate_preallocate(file):
    file.write(b"0123456789")
    assert file.length() == 10
    assert not file.eof(9)
    assert file.eof(10)
    file.truncate(4)
    assert file.length() == 4
    file.preallocate(8192)
    assert file.length() == 8192


@pytest.mark.parametrize("seed", range(5))
def test_any_mixture_agrees_with_a_bytearray(scratch, seed):
    choose = random.Random(seed)
    model = bytearray()
    file = ExclusiveFile("model", scratch=scratch, page_cache=choose.choice(["auto", "buffered", "direct"]))
    position = 0  # of a run of sequential requests
    for _ in range(400):
        kind = choose.choice(
            ["write"] * 4
            + ["read"] * 4
            + ["write_async", "read_async", "truncate", "length", "flush", "reopen"]
        )
        size = choose.choice([0, 1, 100, 1600, 4096, 20_000, choose.randrange(300_000)])
        offset = position if choose.random() < 0.7 else choose.randrange(1_000_000)
        if kind in ("write", "write_async"):
            data = choose.randbytes(size)
            moved = file.write(data, offset) if kind == "write" else file.write_async(data, offset).wait()
            assert moved == size
            if size and len(model) < offset:
                model.extend(bytes(offset - len(model)))
            model[offset : offset + size] = data
            position = offset + size
        elif kind in ("read", "read_async"):
            buffer = bytearray(size)
            moved = file.read(buffer, offset) if kind == "read" else file.read_async(buffer, offset).wait()
            assert buffer[:moved] == model[offset : offset + size]
            assert moved == len(model[offset : offset + size])
            position = offset + size
        elif kind == "truncate" and choose.random() < 0.3:
            file.truncate(offset)
            model = model[:offset] + bytes(max(0, offset - len(model)))
        elif kind == "length":
            assert file.length() == len(model)
        elif kind == "flush":
            file.flush()
        elif kind == "reopen":
            file.close()
            file = ExclusiveFile("model", scratch=scratch)
    file.delete()


def test_threads_share_a_file(file):
    def work(number):
        for i in range(100):
            offset = (100 * number + i) * 1600
            data = bytes([number * 16 + i % 16]) * 1600
            file.write(data, offset)
            buffer = bytearray(1600)
            file.read(buffer, offset)
            wrong.extend([] if buffer == data else [(number, i)])

    wrong = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ---- buffers


@pytest.mark.parametrize(
    "buffer",
    [bytearray(8), memoryview(bytearray(8)), np.zeros(2, np.int32), np.zeros((1, 1, 8), np.uint8)],
)
def test_kinds_of_buffers(file, buffer):
    file.write(b"abcdefgh")
    assert file.read(buffer) == 8
    assert bytes(memoryview(buffer).cast("B") if memoryview(buffer).format == "B" else buffer) == b"abcdefgh"


def test_empty_buffer_moves_nothing(file):
    assert file.write(b"") == 0
    assert file.read(np.empty(0)) == 0


def test_read_only_buffer_is_refused_for_reading_into(file):
    file.write(b"0123")
    values = np.zeros(4, np.uint8)
    values.flags.writeable = False
    for refused in (values, b"0123"):
        with pytest.raises(ValueError, match="read-only buffer"):
            file.read(refused)
        with pytest.raises(ValueError, match="read-only buffer"):
            file.read_async(refused)


def test_read_only_buffer_may_be_written(file):
    values = np.arange(4, dtype=np.uint8)
    values.flags.writeable = False
    assert file.write(values) == 4


def test_strided_buffer_is_refused(file):
    with pytest.raises(ValueError, match="not C-contiguous"):
        file.write(np.zeros((10, 10))[:, ::2])


def test_no_buffer_is_refused(file):
    with pytest.raises(TypeError, match="buffer protocol"):
        file.write("text")


# ---- names and what is left behind


def test_name_opened_again_finds_its_bytes(scratch):
    with ExclusiveFile("again", scratch=scratch) as file:
        file.write(b"bytes")
    with ExclusiveFile("again", scratch=scratch) as file:
        assert file.length() == 5
        file.delete()
    with ExclusiveFile("again", scratch=scratch) as file:
        assert file.length() == 0


def test_with_closes(scratch):
    with ExclusiveFile("ints", scratch=scratch) as file:
        assert not file.closed
    assert file.closed
    assert "closed" in repr(file)


def test_keep_leaves_a_file_that_another_process_opens(scratch):
    program = (
        "import sys, outcore\n"
        "with outcore.ExclusiveFile('vectors', scratch=sys.argv[1], keep=True) as file: file.write(b'kept')"
    )
    run_python(program, scratch)
    assert (scratch / "vectors").read_bytes() == b"kept"
    assert [path.name for path in scratch.iterdir()] == ["vectors"]
    with ExclusiveFile("vectors", scratch=scratch, keep=True) as file:
        buffer = bytearray(4)
        file.read(buffer)
        assert buffer == b"kept"


def test_normal_exit_leaves_nothing(scratch):
    program = (
        "import sys, outcore\n"
        "file = outcore.ExclusiveFile('ints', scratch=sys.argv[1])\n"
        "file.write(bytes(10**6))"
    )
    run_python(program, scratch)
    assert list(scratch.iterdir()) == []


KILLED = """
import os, signal, sys, outcore
file = outcore.ExclusiveFile("ints", scratch=sys.argv[1])
file.write(bytes(8 << 20))
file.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_process_leaves_no_bytes(scratch):
    run_python(KILLED, scratch, expect=-signal.SIGKILL)
    assert sum(path.stat().st_size for path in scratch.rglob("*") if path.is_file()) == 0


def test_killed_process_leaves_nothing_after_the_next_start(scratch):
    run_python(KILLED, scratch, expect=-signal.SIGKILL)
    run_python("import sys, outcore; outcore.ExclusiveFile('next', scratch=sys.argv[1]).close()", scratch)
    assert list(scratch.iterdir()) == []


def test_clean_removes_what_a_killed_process_left(scratch):
    run_python(KILLED, scratch, expect=-signal.SIGKILL)
    removed = outcore.clean(scratch)
    assert [Path(path).parent for path in removed] == [scratch.resolve()]
    assert list(scratch.iterdir()) == []


def test_clean_spares_this_process(file, scratch):
    assert outcore.clean(scratch) == []
    file.write(b"still works")


def test_default_scratch_is_not_the_current_directory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OUTCORE_SCRATCH", raising=False)
    monkeypatch.setenv("TMPDIR", ".")
    chosen = Path(run_python("import outcore; print(outcore.default_scratch())").strip())
    assert chosen.is_absolute()
    assert chosen != tmp_path


def test_default_scratch_follows_the_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("OUTCORE_SCRATCH", str(tmp_path))
    assert run_python("import outcore; print(outcore.default_scratch())").strip() == str(tmp_path.resolve())


# ---- errors


@pytest.mark.parametrize(
    "operation",
    [
        lambda file: file.read(bytearray(1)),
        lambda file: file.write(b"x"),
        lambda file: file.read_async(bytearray(1)),
        lambda file: file.write_async(b"x"),
        lambda file: file.length(),
        lambda file: file.eof(0),
        lambda file: file.truncate(0),
        lambda file: file.preallocate(1),
        lambda file: file.flush(),
        lambda file: file.delete(),
    ],
)
def test_closed_handle(file, operation):
    file.close()
    with pytest.raises(OutcoreError, match="the file is closed") as caught:
        operation(file)
    assert caught.value.errno == errno.EBADF


@pytest.mark.parametrize(
    "operation",
    [
        lambda file: file.read(bytearray(1), -1),
        lambda file: file.write(b"x", -1),
        lambda file: file.read_async(bytearray(1), -1),
        lambda file: file.write_async(b"x", -1),
        lambda file: file.eof(-1),
    ],
)
def test_negative_offset(file, operation):
    with pytest.raises(OutcoreError, match="negative offset") as caught:
        operation(file)
    assert caught.value.errno == errno.EINVAL


@pytest.mark.parametrize("operation", ["truncate", "preallocate"])
def test_negative_size(file, operation):
    with pytest.raises(OutcoreError, match=r"negative .*-1") as caught:
        getattr(file, operation)(-1)
    assert caught.value.errno == errno.EINVAL


def test_negative_expected_size(scratch):
    with pytest.raises(OutcoreError, match="expected_bytes is negative: -1"):
        ExclusiveFile("ints", scratch=scratch, expected_bytes=-1)


@pytest.mark.parametrize("name", ["", "a/b", "..", "a\0b"])
def test_impossible_name(scratch, name):
    with pytest.raises(OutcoreError) as caught:
        ExclusiveFile(name, scratch=scratch)
    assert caught.value.errno == errno.EINVAL


def test_unknown_cache(scratch):
    with pytest.raises(ValueError, match="'warm', expected 'auto'"):
        ExclusiveFile("ints", scratch=scratch, page_cache="warm")


def test_missing_scratch(scratch):
    with pytest.raises(OutcoreError, match="nowhere: No such file or directory") as caught:
        ExclusiveFile("ints", scratch=scratch / "nowhere")
    assert caught.value.errno == errno.ENOENT


def test_scratch_that_is_a_file(scratch):
    (scratch / "file").touch()
    with pytest.raises(OutcoreError) as caught:
        ExclusiveFile("ints", scratch=scratch / "file")
    assert caught.value.errno == errno.ENOTDIR


def test_read_only_scratch():
    program = (
        "import os, sys, outcore\n"
        "outcore.ExclusiveFile, outcore.OutcoreError\n"  # loaded while that is still allowed
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "try: outcore.ExclusiveFile('ints', scratch=sys.argv[1])\n"
        "except outcore.OutcoreError as error: print(error.errno, error)"
    )
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        os.chmod(directory, 0o555)
        number, _, text = run_python(program, directory).partition(" ")
    assert int(number) == errno.EACCES
    assert directory in text
    assert "must be readable and writable" in text


def test_read_only_file_system(scratch):
    with mounted("tmpfs", 1 << 20, scratch) as place:
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        with pytest.raises(OutcoreError, match="must be readable and writable") as caught:
            ExclusiveFile("ints", scratch=place)
        assert caught.value.errno == errno.EROFS


def test_more_expected_than_free(scratch):
    with pytest.raises(OutcoreError, match=r"needed: 1152921504606846976 bytes, free: \d+ bytes") as caught:
        ExclusiveFile("ints", scratch=scratch, keep=True, expected_bytes=1 << 60)
    assert caught.value.errno == errno.ENOSPC
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("kind", ["ext4", "tmpfs"])
def test_full_scratch(scratch, kind):
    with mounted(kind, 8 << 20, scratch) as place:
        file = ExclusiveFile("ints", scratch=place)
        data = np.random.default_rng(1).integers(0, 255, 1 << 20, np.uint8)
        file.write(data)
        with pytest.raises(OutcoreError, match=r"free: \d+ bytes") as caught:
            for i in range(1, 20):
                file.write(data, i << 20)
        assert caught.value.errno == errno.ENOSPC
        back = np.empty_like(data)
        assert file.read(back) == 1 << 20  # bytes written before stay readable
        assert (back == data).all()
        file.delete()


def test_full_scratch_with_small_records(scratch):
    with mounted("ext4", 8 << 20, scratch) as place:
        file = ExclusiveFile("ints", scratch=place)
        with pytest.raises(OutcoreError) as caught:
            for i in range(10_000):
                file.write(bytes(1600), 1600 * i)
            file.close()
        assert caught.value.errno == errno.ENOSPC


def test_full_scratch_preallocate(scratch):
    with mounted("ext4", 8 << 20, scratch) as place:
        file = ExclusiveFile("ints", scratch=place)
        with pytest.raises(OutcoreError, match="preallocate of 104857600 bytes") as caught:
            file.preallocate(100 << 20)
        assert caught.value.errno == errno.ENOSPC
        file.write(b"and it goes on")
