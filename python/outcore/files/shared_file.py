"""Shared files and record files: scratch files of all processes, read and written by any of them at any time.

with outcore.World() as world, outcore.SharedFile(world, "integrals", typical_request=32768) as f:
    f.write(block, offset=number * block.nbytes)      # any process, any block
    world.barrier()
    request = f.read_async(buffer, offset=other * buffer.nbytes)
    ...                                               # compute on; the read goes on by itself
    request.wait()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from outcore import _core
from outcore.job import arguments
from outcore.job.collective import Closing, in_gate

if TYPE_CHECKING:
    from outcore.job.arguments import Size
    from outcore.job.world import World


class SharedFile(_core.SharedFile, Closing):
    """A byte-addressable scratch file of all processes of `world` (shared file, SF). It vanishes with the job, also
    when that is killed.

    Making, flushing and closing it is collective. Reads and writes are not: any process and thread may call them
    at any time, at any offset, in any size, without help of the others. Bytes below the end that nobody has written
    are zeros. The end is the highest byte that any process has begun to write; every process that can know of that
    write knows the end.

    A write is visible to all when it has been waited for, or after `sync`. Requests on overlapping bytes, one of
    them a write, happen in no defined order. Buffers are C-contiguous objects with the buffer
    protocol (NumPy arrays, bytearray, ...), whose elements are no Python objects.

    Args:
        world: the processes.
        name: the name of the file in messages.
        hard_limit: a write beyond it is an error. Sizes are bytes, or text as "20GB"; None: no limit, or unknown.
        soft_limit: size that the file will have; ENOSPC at once if less is free.
        reserve: space for the soft limit is reserved at once.
        typical_request: size of most requests, which determines the stripe.
        placement: "shared" (one directory that all processes see), "local" (each node keeps a part, which others
            reach through its processes) or "auto" (which of them it is).
        components_per_node: files on each node; 0: one for each process, at most 8.
        page_cache: "auto", "buffered" (always through the page cache) or "direct" (past it).
        client_cache_bytes: memory of this process for copies of bytes on other nodes, for data that is read again
            and again. A copy shows later writes of others only after `sync`. The memory is taken from the budget of
            the world as it is needed; None: no copies.

    Raises:
        OutcoreError: EINVAL (arguments; negative offset; reading beyond the end), EFBIG (writing beyond the hard
            limit), EBADF (closed), ENOSPC, EIO, with the rank where it happened. The error of a nonblocking request
            is raised by its wait; that of a write that nobody waits for by the next sync, flush or close.
        ValueError: a buffer that is read-only (where it is read into) or not C-contiguous.
        TypeError: no buffer, or one of Python objects.

    Source: the Shared Files of ChemIO (Nieplocha, Foster, Kendall 1998).
    """

    def __init__(
        self,
        world: World,
        name: str,
        *,
        hard_limit: Size = None,
        soft_limit: Size = None,
        reserve: bool = False,
        typical_request: Size = None,
        placement: str = "auto",
        components_per_node: int = 0,
        page_cache: str = "auto",
        client_cache_bytes: Size = None,
    ) -> None:
        def bring() -> tuple[str, _core.SharedFileOptions]:
            return arguments.text("name", name), _core.SharedFileOptions(
                hard_limit=_size("hard_limit", hard_limit),
                soft_limit=_size("soft_limit", soft_limit),
                reserve=arguments.flag("reserve", reserve),
                typical_request=_size("typical_request", typical_request),
                placement=arguments.text("placement", placement),
                components_per_node=arguments.integer("components_per_node", components_per_node, bits=32),
                page_cache=arguments.text("page_cache", page_cache),
                client_cache_bytes=_size("client_cache_bytes", client_cache_bytes),
            )

        in_gate("create shared file", lambda gate: _core.SharedFile.__init__(self, world, gate), bring)

    def readv(self, ranges: Sequence[tuple[int, object]]) -> int:
        """Reads a list of (offset, buffer) as one request; returns the number of bytes. Small ranges that lie close
        together are read together, with the bytes between them."""
        moved: int = self.readv_async(ranges).wait()
        return moved

    def writev(self, ranges: Sequence[tuple[int, object]]) -> int:
        """Writes a list of (offset, buffer), which must not overlap, as one request; returns the number of
        bytes."""
        moved: int = self.writev_async(ranges).wait()
        return moved

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"{self.components} components, {self.placement}"
        return f"<outcore.SharedFile '{self.name}': {where}>"


class RecordFile(_core.RecordFile, Closing):
    """A scratch file, as SharedFile is, of records 0 to `records` - 1. Each record has any size, and may grow or
    shrink when it is rewritten; any process writes and reads any record at any time.

    `f[k] = array` and `f[k]` (bytes) are put and get; `del f[k]`, `k in f`. A get returns what one put wrote, never
    a mixture; if two processes put the same record at the same time, the put that ends last stays. A put that fails
    leaves the record as it was. Nonblocking puts take effect when they are waited for, or in `sync`.

    Args:
        world: the processes.
        name: the name of the file in messages.
        records: largest number of records; each needs eight bytes of memory.
        hard_limit, soft_limit, placement, page_cache: as for SharedFile; a put that would take the file beyond the
            hard limit is an error.
        typical_record: size of most records.

    Raises:
        OutcoreError: EINVAL (arguments, number of a record), ENOENT (no such record), EMSGSIZE (longer than the
            buffer), EFBIG (hard limit), EBADF (closed), ENOSPC, EIO (also a record that is damaged).
    """

    def __init__(
        self,
        world: World,
        name: str,
        records: int,
        *,
        hard_limit: Size = None,
        soft_limit: Size = None,
        typical_record: Size = None,
        placement: str = "auto",
        page_cache: str = "auto",
    ) -> None:
        def bring() -> tuple[str, _core.RecordFileOptions]:
            return arguments.text("name", name), _core.RecordFileOptions(
                records=arguments.integer("records", records),
                hard_limit=_size("hard_limit", hard_limit),
                soft_limit=_size("soft_limit", soft_limit),
                typical_record=_size("typical_record", typical_record),
                placement=arguments.text("placement", placement),
                page_cache=arguments.text("page_cache", page_cache),
            )

        in_gate("create record file", lambda gate: _core.RecordFile.__init__(self, world, gate), bring)

    def __setitem__(self, record: int, data: object) -> None:
        self.put(record, data)

    def __getitem__(self, record: int) -> bytes:
        return self.get(record)

    def __delitem__(self, record: int) -> None:
        self.erase(record)

    def __contains__(self, record: int) -> bool:
        return 0 <= record < len(self) and self.capacity(record) is not None

    def __repr__(self) -> str:
        return f"<outcore.RecordFile '{self.name}': {'closed' if self.closed else f'{len(self)} records'}>"


def _size(name: str, size: Size) -> int:
    """A size in bytes; 0: no limit, or unknown."""
    return 0 if size == 0 else arguments.size_bytes(name, size)
