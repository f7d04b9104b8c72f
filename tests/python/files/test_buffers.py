"""Memory that files and calls accept: elements in C order, not addresses of objects."""

import ctypes

import numpy as np
import pytest

from outcore import ExclusiveFile, OutcoreError, RecordFile, SharedFile, World, _core

VALUES = np.arange(6.0).reshape(2, 3)

ADDRESSES = {
    "objects": np.array([1.5, None], object),
    "a field of objects": np.zeros(2, [("O", "f8"), ("o", "O")]),
    "a field of objects beside a date": np.zeros(2, [("t", "M8[s]"), ("o", "O")]),
    "strings of any length": np.array(["a" * 100] * 2, np.dtypes.StringDType()),
    "a view of objects": memoryview(np.array([1.5, None], object)),
    "objects of ctypes": (ctypes.py_object * 2)(),
    "pointers of ctypes": (ctypes.POINTER(ctypes.c_int) * 2)(),
}
PLAIN = {
    "dates": np.array(["2001-02-03", "NaT"], "M8[D]"),
    "text": np.array(["ab", "c"]),
    "bytes": np.array([b"ab", b"c"]),
    "a field whose name is O": np.array([(1.5, 2)], [("O", "f8"), ("P", "i4")]),
    "doubles of ctypes": (ctypes.c_double * 2)(1.5, 2.5),
}


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """For each name a function with a buffer that it reads (True: that it fills)."""
    with World("self", scratch=tmp_path_factory.mktemp("scratch"), memory="500MB") as world:
        exclusive, shared = ExclusiveFile("e", scratch=world.scratch), SharedFile(world, "s")
        records = RecordFile(world, "r", 3)
        device = _core.File(f"{world.scratch}/device")
        for file in (exclusive, shared, device):
            file.write(np.zeros(1000), 0)
        records[0] = np.zeros(0)
        world.register("echo", lambda caller, header, payload: payload)
        yield {
            "ExclusiveFile.write": (lambda b: exclusive.write(b, 0), False),
            "ExclusiveFile.write_async": (lambda b: exclusive.write_async(b, 0), False),
            "ExclusiveFile.read": (lambda b: exclusive.read(b, 0), True),
            "ExclusiveFile.read_async": (lambda b: exclusive.read_async(b, 0), True),
            "SharedFile.write": (lambda b: shared.write(b, 0), False),
            "SharedFile.write_async": (lambda b: shared.write_async(b, 0), False),
            "SharedFile.writev": (lambda b: shared.writev([(0, b)]), False),
            "SharedFile.read": (lambda b: shared.read(b, 0), True),
            "SharedFile.read_async": (lambda b: shared.read_async(b, 0), True),
            "SharedFile.readv": (lambda b: shared.readv([(0, b)]), True),
            "RecordFile.put": (lambda b: records.__setitem__(1, b), False),
            "RecordFile.put_async": (lambda b: records.put_async(1, b), False),
            "RecordFile.get_into": (lambda b: records.get_into(0, b), True),
            "RecordFile.get_into_async": (lambda b: records.get_into_async(0, b), True),
            "_core.File.write": (lambda b: device.write([b, b], 0), False),
            "_core.File.read": (lambda b: device.read([b, b], 0), True),
            "payload": (lambda b: world.call(0, "echo", payload=b), False),
            "reply": (lambda b: world.call(0, "echo", reply=b), True),
        }
        exclusive.delete()
        for file in (shared, records, device):
            file.close()


@pytest.mark.parametrize("kind", ADDRESSES)
def test_elements_that_are_addresses_are_refused_everywhere(calls, kind):
    for call, _ in calls.values():
        with pytest.raises(TypeError, match="addresses of objects"):
            call(ADDRESSES[kind])


def test_masked_arrays_are_refused_everywhere(calls):
    for call, _ in calls.values():
        with pytest.raises(TypeError, match="a masked array, whose mask would be lost"):
            call(np.ma.array(VALUES, mask=VALUES > 1))


def test_other_orders_than_that_of_c_are_refused_everywhere(calls):
    for other in (VALUES.T, np.asfortranarray(VALUES), VALUES[:, ::2], VALUES[::-1], memoryview(VALUES.T)):
        for call, fills in calls.values():
            with pytest.raises(ValueError, match="read into a contiguous" if fills else "ascontiguousarray"):
                call(other)


def test_arrays_that_have_both_orders_are_taken(tmp_path):
    with ExclusiveFile("e", scratch=tmp_path) as file:
        for each in (VALUES[:1].T, VALUES[:, :1].copy().T, np.zeros((0, 3)).T, np.float64(1.5), VALUES[1:]):
            back = np.empty(np.shape(each))
            assert file.write(each, 0) == each.nbytes == file.read(back, 0)
            assert np.array_equal(back, each)
        file.delete()


@pytest.mark.parametrize("kind", PLAIN)
def test_elements_of_one_size_are_written_as_numpy_writes_them(tmp_path, kind):
    values = PLAIN[kind]
    with ExclusiveFile("e", scratch=tmp_path) as file:
        file.write(values, 0)
        back = bytearray(memoryview(np.asarray(values).view(np.uint8)).nbytes)
        file.read(back, 0)
        file.delete()
    assert back == np.asarray(values).tobytes()


def test_answers_of_objects_are_errors_at_the_caller():
    with World("self") as world:
        world.register("objects", lambda caller, header, payload: ADDRESSES["objects"])
        world.register("transposed", lambda caller, header, payload: VALUES.T)
        with pytest.raises(OutcoreError, match="addresses of objects"):
            world.call(0, "objects").wait()
        reply = world.call(0, "transposed").wait()
        assert np.array_equal(reply.view(float).reshape(3, 2), VALUES.T)
