"""Classic disk resident arrays on several processes: each moves its share, and all get the same errors."""

import errno

import numpy as np
import pytest

import outcore
from outcore import OutcoreError
from outcore.keep import classic


@pytest.mark.parametrize("files", [1, 3])
def test_a_round_trip(world, shared_tmp_path, monkeypatch, files):
    monkeypatch.setattr(classic, "PIECE_BYTES", 3000)
    values = np.arange(31.0 * 17 * 5).reshape(31, 17, 5)
    with outcore.DiskArray(world, values.shape, "float64") as array:
        array.write_all(values)
        classic.export_dra(array, shared_tmp_path / "a", files=files)
    with classic.import_dra(world, shared_tmp_path / "a.info") as back:
        found = np.empty_like(values)
        back.read_all(found)
        np.testing.assert_array_equal(found, values)


def test_a_file_that_became_shorter_is_an_error_at_all(world, shared_tmp_path):
    with outcore.DiskArray(world, (100, 100), "float64") as array:
        classic.export_dra(array, shared_tmp_path / "a", files=2)
    if world.rank == 0:
        (shared_tmp_path / "a.1").write_bytes(b"short")
    world.barrier()
    with pytest.raises(OutcoreError, match=r"a\.1 has 5 bytes") as raised:
        classic.import_dra(world, shared_tmp_path / "a", shared_tmp_path / "b")
    assert raised.value.errno == errno.EIO
    assert not (shared_tmp_path / "b").exists()
