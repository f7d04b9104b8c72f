"""Several tiles are read at a time from an array with a small cache: each comes from the disk once."""

import numpy as np

import outcore
from outcore import BlockSparseArray, trace
from outcore.trace import report

TILES, ELEMENTS = 12, 300_000
CHUNK_BYTES = 128 << 10


def read_bytes():
    events = trace.events()
    device = events["layer"] == report.LAYERS.index("device")
    reads = [report.OPERATIONS.index(each) for each in ("read", "read_async")]
    return int(events["bytes"][device & np.isin(events["op"], reads)].sum())


def test_tiles_that_are_read_at_a_time_come_once(tmp_path):
    axis = [ELEMENTS * i for i in range(TILES + 1)]
    with outcore.World("self", scratch=tmp_path, memory="256MB") as world:
        array = BlockSparseArray(world, [axis], np.ones(TILES, bool), cache_bytes="1MB", path=tmp_path / "b")
        for i in range(TILES):
            array.put_tile((i,), np.full(ELEMENTS, float(i)))
        array.close()
        with BlockSparseArray.open(world, tmp_path / "b", cache_bytes="1MB", read_only=True) as array:
            trace.start()
            requests = [array.get_tile_async((i,)) for i in range(TILES)]
            values = [request.wait() for request in requests]
            trace.stop()
            assert read_bytes() <= 8 * ELEMENTS * TILES + 2 * TILES * CHUNK_BYTES
    for i, found in enumerate(values):
        np.testing.assert_array_equal(found, np.full(ELEMENTS, float(i)))
