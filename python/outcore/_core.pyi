"""Native core of Outcore. Use it through the outcore package."""

import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Annotated, Any, overload

import numpy
import numpy.typing
from numpy.typing import NDArray

def ends_by_signal() -> None:
    """
    This process is ending because of a signal: that objects are left is no mistake of the bindings.
    """

def error_message(
    errno_value: int | None,
    attempted: str,
    path: str = "",
    offset: int = -1,
    size_bytes: int = -1,
    detail: str = "",
    rank: int = -1,
) -> str:
    """
    The text of an error: what was attempted, where, how much, why. Negative numbers are left out; a
    negative rank means this process.
    """

def set_process_rank(rank: int, count: int) -> None:
    """
    Names this process in messages, traces and scratch. Call it once, before other threads start.
    """

def process_rank() -> int: ...
def process_count() -> int: ...
def trace_layers() -> tuple[str, ...]: ...
def trace_ops() -> tuple[str, ...]: ...
def trace_size_class_bounds() -> tuple[int, ...]: ...
def trace_event_fields() -> Any:
    """The argument of numpy.dtype() for an array of events."""

def trace_now_ns() -> int: ...
def trace_snapshot() -> dict[str, Any]:
    """Counters as {'layers': {layer: {operation: {counter: number}}}, ...}."""

def trace_reset() -> None:
    """Reset the counters and the peak of disk space."""

def peak_disk_bytes() -> int:
    """
    The most disk space (bytes) that files of this process open for writing took at the same time,
    since trace_reset.
    """

def trace_enable_events(capacity: int) -> None: ...
def trace_disable_events() -> None: ...
def trace_events() -> bytes:
    """Recorded events; the layout is trace_event_fields."""

def trace_dropped_events() -> int: ...
def trace_file_name(file: int) -> str: ...
def trace_record(
    layer: str,
    op: str,
    start_ns: int,
    end_ns: int,
    path: str = "",
    offset: int = 0,
    bytes: int = 0,
    waited_ns: int = 0,
    failed: bool = False,
    sequential: bool = False,
) -> None: ...
def trace_add_waited(layer: str, op: str, nanoseconds: int) -> None: ...

class Request:
    """
    A nonblocking operation under way: a read or write of a file, a transfer of an array, a call, a
    collective transfer. It keeps its memory, and its file or array, alive until it is done, even if
    the Request is deleted before. It goes on by itself.

    A failed operation raises OutcoreError from each `wait` and `test`. If it changes a file or an
    array and nobody has waited for it, the next sync, flush or close of that file or array raises
    its error. Any thread may wait; other Python threads run meanwhile.
    """

    def wait(self) -> Any:
        """
        Block until it is done and return its result: for a file the number of bytes moved (fewer than
        requested only at the end of an exclusive file), for a record its size, for a get the array, for
        a call the reply (a uint8 array, a part of the buffer given to World.call if there was one),
        else None.
        """

    def test(self) -> bool:
        """True once it is done; never blocks."""

    @property
    def done(self) -> bool:
        """True once complete or failed; never raises."""

    def returning(self, value: object) -> Request:
        """Make `wait` return `value`. Returns self."""

def wait_all(requests: Sequence[Request]) -> None:
    """
    Wait for all requests, of any kinds, then raise the error of the first failed one, if any.
    """

def wait_any(requests: Sequence[Request]) -> int:
    """
    Wait until one request is done, of any kinds, and return its position, the first of several; its
    own wait() raises its error.
    """

class File:
    """
    A file with reads and writes at a byte offset, blocking and not.

    Buffers are C-contiguous objects with the buffer protocol (NumPy arrays, bytearray, ...), or a
    list of them for one request over several buffers. Errors are OutcoreError.
    """

    def __init__(
        self,
        path: object,
        *,
        create: bool = True,
        truncate: bool = False,
        read_only: bool = False,
        page_cache: str = "auto",
        expected_bytes: int = 0,
    ) -> None: ...
    def read(self, buffer: object, offset: int) -> int:
        """
        Fill the buffer from a byte offset; returns the bytes read, fewer than asked for only at the end.
        """

    def write(self, buffer: object, offset: int) -> int:
        """Write the whole buffer at a byte offset; returns its bytes."""

    def read_async(self, buffer: object, offset: int) -> Request:
        """
        Start a read or write at a byte offset and return its Request at once; the I/O goes on by itself.
        """

    def write_async(self, buffer: object, offset: int) -> Request:
        """
        Start a read or write at a byte offset and return its Request at once; the I/O goes on by itself.
        """

    def preallocate(self, size_bytes: int) -> None:
        """Reserve space; the length becomes at least size_bytes."""

    def truncate(self, length_bytes: int) -> None: ...
    def length(self) -> int:
        """Length in bytes."""

    def eof(self, offset: int) -> bool:
        """True if offset is at or beyond the end."""

    def flush(self) -> None:
        """
        Wait for all writes and put them on stable storage. Raises the error of a failed write that nobody waited for.
        """

    def close(self) -> None:
        """Wait for everything under way and close; may be repeated."""

    @property
    def path(self) -> str: ...
    @property
    def direct_available(self) -> bool:
        """The file system accepts direct I/O."""

    def __enter__(self) -> File: ...
    def __exit__(self, type: object | None, value: object | None, traceback: object | None) -> None: ...

def remove_file(path: object) -> None:
    """Remove a file; OutcoreError with ENOENT if there is none."""

class FileSystem:
    """What is under a path."""

    @property
    def type(self) -> str:
        """ "ext4", "xfs", "tmpfs", "nfs", ... or "0x..." if unknown"""

    @property
    def total_bytes(self) -> int: ...
    @property
    def free_bytes(self) -> int:
        """Available to this user."""

    @property
    def network(self) -> bool:
        """Shared by several machines."""

    @property
    def memory(self) -> bool:
        """Lives in RAM."""

    @property
    def direct_memory_align(self) -> int:
        """In bytes; 0: no direct I/O here."""

    @property
    def direct_offset_align(self) -> int:
        """In bytes; 0: no direct I/O here."""

def file_system(path: object) -> FileSystem:
    """
    The file system under a path: that of the path itself or of its nearest existing parent.
    """

def engine_name() -> str:
    """ "uring" or "threads"."""

def emulation() -> str:
    """
    What the engine emulates (OUTCORE_THROTTLE, OUTCORE_REQUESTS); empty: nothing.
    """

def engine_reason() -> str:
    """Why this engine was chosen."""

class ExclusiveFile:
    """
    A byte-addressable scratch file of this process (exclusive access file, EAF).

    The name is private to the process: two processes that open "ints" have two files. The file
    vanishes with the process, also when that is killed, unless `keep`: then it is `scratch`/`name`
    and stays. A name opened again in the same process, also after close, finds its bytes; `delete`
    drops them.

    Offsets and sizes are bytes. Buffers are C-contiguous objects with the buffer protocol (NumPy
    arrays, bytearray, memoryview, ...), whose elements are no Python objects. Small sequential
    requests are combined: written behind and read ahead. Threads may share a file.

    Args:
        name: not empty, without '/'.
        scratch: directory; None: outcore.default_scratch().
        keep: the file outlives the process.
        page_cache: 'auto', 'buffered' (always through the page cache) or 'direct' (past it).
        expected_bytes: expected size, 0 if unknown. More than is free is ENOSPC at once.

    Raises:
        OutcoreError: an OSError; EINVAL (name, negative offset), EBADF (closed), ENOENT, EACCES, EROFS
            (scratch), ENOSPC, EIO. A write may be kept in memory and fail later: then the next write, flush
            or close raises.
        ValueError: a buffer that is read-only (where it is read into) or not C-contiguous.
        TypeError: no buffer, or one of Python objects.

    Source: the Exclusive Access Files of ChemIO (Nieplocha, Foster, Kendall 1998).
    """

    def __init__(
        self,
        name: str,
        *,
        scratch: object | None = None,
        keep: bool = False,
        page_cache: str = "auto",
        expected_bytes: int = 0,
    ) -> None: ...
    def read(self, buffer: object, offset: int = 0) -> int:
        """
        Fill the buffer from a byte offset; returns the bytes read, fewer only at the end of the file.
        """

    def write(self, buffer: object, offset: int = 0) -> int:
        """Write the whole buffer at a byte offset; returns its bytes."""

    def read_async(self, buffer: object, offset: int = 0) -> Request:
        """
        Start a read and return its Request at once; the I/O goes on by itself.
        """

    def write_async(self, buffer: object, offset: int = 0) -> Request:
        """
        Start a write and return its Request at once; the I/O goes on by itself.
        """

    def length(self) -> int:
        """Length in bytes, with everything written so far."""

    def eof(self, offset: int) -> bool:
        """True if offset is at or beyond the end."""

    def truncate(self, length_bytes: int) -> None:
        """Set the length in bytes."""

    def preallocate(self, size_bytes: int) -> None:
        """Reserve space on the disk; the length becomes at least size_bytes."""

    def flush(self) -> None:
        """
        Put everything on stable storage. Raises the error of a failed write that nobody waited for.
        """

    def close(self) -> None:
        """
        Wait for everything under way and close; may be repeated. The bytes stay for the next opening.
        """

    def delete(self) -> None:
        """Close the file and drop its bytes."""

    @property
    def closed(self) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str:
        """
        The path that messages name. On a local disk it is not in the directory, unless kept.
        """

    def __repr__(self) -> str: ...
    def __enter__(self) -> ExclusiveFile: ...
    def __exit__(self, type: object | None, value: object | None, traceback: object | None) -> None: ...

def default_scratch() -> str:
    """
    The scratch directory used when none is given: $OUTCORE_SCRATCH, else the fastest writable,
    node-local, disk-backed one of $SLURM_TMPDIR, $TMPDIR, /scratch/$USER, /local/$USER, /var/tmp
    and /tmp. OutcoreError (ENOENT) says why each was refused.
    """

def clean(scratch: object) -> list[str]:
    """
    Remove the directories that dead processes of this user on this host left in a scratch
    directory; returns their paths.
    """

def remove_process_directories() -> None:
    """
    Remove the directories of this process in scratch with all their contents, because it is ending.
    """

class MemoryLimit:
    """One limit of the memory of this process, in bytes."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str:
        """The file or the variable that says so."""

    @property
    def limit_bytes(self) -> int: ...
    @property
    def left_bytes(self) -> int:
        """Bytes that can still be taken."""

    @property
    def shared(self) -> bool:
        """
        Whether all processes of the node share the limit; else each has its own.
        """

    @property
    def hard(self) -> bool:
        """Whether a process that exceeds it fails or is killed."""

def memory_limits(root: str | os.PathLike = "/") -> list[MemoryLimit]:
    """
    All limits, at least that of the machine. Tests use their own files under `root`.
    """

def control_groups(controller: str, root: str | os.PathLike = "/") -> list[pathlib.Path]:
    """
    Directories of the control groups that may limit this process by a controller, innermost first.
    """

def trim_buffers() -> None:
    """
    Give memory that is kept for further transfers to and from disk back to the system.
    """

class Budget:
    """Memory accounted against a limit, in bytes. Thread-safe."""

    @property
    def limit_bytes(self) -> int: ...
    @property
    def origin(self) -> str:
        """Where the limit comes from; empty if the user has set it."""

    @property
    def used_bytes(self) -> int: ...
    @property
    def peak_bytes(self) -> int:
        """The largest number of bytes that was in use at once."""

    def reserve(self, size_bytes: int, what: str) -> None:
        """
        Account for memory. Raises OutcoreError (ENOMEM), which has the sizes, if the budget has no
        room.
        """

    def release(self, size_bytes: int) -> None: ...

class Group:
    """Processes split off from a world. Made by World.split."""

class WorldOptions:
    """Options of a world."""

    def __init__(self, *, memory_bytes: int, scratch: str, node_for_each_process: bool) -> None: ...

def watch_in_finalize() -> None:
    """
    From now on MPI_Finalize ends the job if it waits for a process that has died.
    """

class AwaitedCall:
    """
    A `with` block that waits for other processes: ends this process if one of them has died.
    """

    def __init__(self, name: str) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exception: object) -> None: ...

class World:
    """Native part of outcore.World."""

    @overload
    def __init__(self, communicator: int | None, gate: Callable) -> None: ...
    @overload
    def __init__(self, group: Group, whole: World, scratch: str) -> None: ...
    def split_group(self, color: int, key: int) -> Group:
        """
        The processes of this color as a group; None for a negative color. Collective.
        """

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""

    @property
    def size(self) -> int:
        """Number of processes."""

    @property
    def node(self) -> int:
        """Number of the node of this process, from 0."""

    @property
    def node_count(self) -> int:
        """Number of nodes."""

    @property
    def node_rank(self) -> int:
        """Number of this process on its node."""

    @property
    def node_size(self) -> int:
        """Processes on this node."""

    @property
    def closed(self) -> bool: ...
    @property
    def budget(self) -> Budget:
        """Budget of memory of this process."""

    @property
    def scratch(self) -> str:
        """
        Scratch directory of this process; chosen when first asked for, if none was given.
        """

    @property
    def description(self) -> str:
        """How processes reach one another: 'self', or 'mpi: ' and the library."""

    def flush(self) -> None:
        """
        Wait until all one-sided operations of this process have arrived and are visible.
        """

    def barrier(self) -> None:
        """Flush, then wait, asleep, for all processes. Collective."""

    def close(self) -> None:
        """
        Free all memory of the world. Collective; may be repeated. Its arrays are lost, and views of
        their local memory must not be used any more.
        """

    def gather_bytes(self, gate: Callable) -> list:
        """
        The bytes of all processes, in order of rank; each passes its own. Collective.
        """

    def broadcast_bytes(self, gate: Callable) -> bytes:
        """
        The bytes of the root. The gate passes bytes, which count at the root only, and the rank of the
        root. Collective.
        """

    def reduce_numbers(self, gate: Callable) -> numpy.typing.NDArray:
        """
        Reduce an array of float64 or int64 in place, and return it. The gate passes the array, the
        operation, and bytes that must be the same at all processes. Collective.
        """

    def enter(self, what: str, gate: Callable) -> None:
        """
        Begin a collective step, with bytes that must be the same at all processes: see World.together.
        """

    def leave(self, gate: Callable) -> None:
        """
        End a collective step. Raises the error of the lowest rank that failed.
        """

    def register_procedure(self, name: str, serve: Callable) -> int:
        """Native part of World.register. Collective."""

    def unregister_procedure(self, procedure: int) -> None:
        """Native part of World.unregister. Collective."""

    def procedure(self, name: str) -> int:
        """The number of a registered procedure."""

    def call_procedure(
        self,
        process: int,
        procedure: int,
        header: bytes,
        payload: object | None,
        reply: object | None,
        max_reply_bytes: int,
    ) -> Request:
        """Native part of World.call."""

class Counter:
    """
    A counter of all processes, for dynamic distribution of tasks; initially zero. Made by
    World.counter.
    """

    def __init__(self, world: World) -> None: ...
    def next(self, count: int = 1) -> int:
        """
        Add `count` and return the value before. Any process and thread, at any time; atomic.
        """

    def reset(self) -> None:
        """Set the counter back to zero. Collective."""

class Lock:
    """
    A lock between processes, and between threads; first come, first served. Waits asleep. Made by
    World.lock, used in a `with` block. Its release makes all puts of this process visible to the
    next holder.
    """

    def __init__(self, world: World) -> None: ...
    def acquire(self) -> None:
        """Wait until this process (and thread) holds the lock."""

    def release(self) -> None:
        """
        Give the lock to the next in line. Raises OutcoreError if this process does not hold it.
        """

    def __enter__(self) -> Lock: ...
    def __exit__(self, *exception: object) -> None: ...

class Basis:
    """Shells and functions of a molecule's basis, in libcint's tables."""

    def __init__(
        self,
        atm: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        bas: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        env: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        cartesian: bool,
        int2e: int,
        make_optimizer: int,
        delete_optimizer: int,
    ) -> None:
        """
        Flattened atm [atoms*6], bas [shells*8] and env; the addresses of int2e_cart or int2e_sph,
        int2e_optimizer and CINTdel_optimizer.
        """

    @property
    def shells(self) -> int: ...
    @property
    def functions(self) -> int: ...
    @property
    def kinds(self) -> int:
        """Kinds of shells: integrals over shells of one kind take equally long."""

class Accuracy:
    """
    The largest step to which integrals are rounded. It is the same for all integrals, or at most
    largest_step and in inverse proportion to their weights in the energy, which crude densities
    [count][n][n] estimate.
    """

    @overload
    def __init__(self, step: float) -> None: ...
    @overload
    def __init__(
        self,
        basis: Basis,
        densities: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ],
        step: float,
        largest_step: float,
    ) -> None: ...
    @property
    def share(self) -> float:
        """
        The limit below which quartets are left out at random, as a fraction of a step.
        """

    @property
    def least(self) -> float:
        """No step is smaller."""

    @property
    def largest(self) -> float:
        """No step is larger."""

class ShellGroup:
    """Permutations of shells by operations of a point group."""

    def __init__(
        self,
        basis: Basis,
        images: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None:
        """
        Flattened images [operations*shells] of libcint's shells, without the identity. With a screening
        by this group, J and K are sums over quartets that stand for their copies.
        """

    @property
    def order(self) -> int:
        """Number of operations, the identity included."""

class Screening:
    """Schwarz bounds and the tasks that pass the screening."""

    def __init__(
        self,
        basis: Basis,
        cutoff: float,
        threads: int,
        accuracy: Accuracy | None = None,
        group: ShellGroup | None = None,
    ) -> None: ...
    @property
    def integrals(self) -> int:
        """Number of integrals in the quartets that pass."""

    @property
    def tasks(self) -> int: ...
    def task_integrals(self) -> list[int]:
        """Number of integrals of each task."""

    def stored_bytes_bound(self, accuracy: Accuracy) -> int:
        """Upper bound of the bytes on disk."""

class KeepRule:
    """Which quartets of shells are kept, and which are recomputed."""

    @overload
    def __init__(self, everything: bool) -> None: ...
    @overload
    def __init__(
        self,
        basis: Basis,
        pair_factors: Sequence[float],
        worth: Sequence[float],
        first_exponent: int,
        least: float,
    ) -> None:
        """
        A quartet with Schwarz bound Q is kept if factor(ij) factor(kl) worth(Q) >= least.
        `pair_factors`: one for each pair of kinds a >= b of shells, at a (a + 1) / 2 + b. `worth`: one
        for each power of two of the bound, from 2**first_exponent on.
        """

    @property
    def keeps_all(self) -> bool: ...
    @property
    def keeps_none(self) -> bool: ...

class Survey:
    """A measured sample of the work on two-electron integrals."""

    @property
    def draws(self) -> int: ...
    @property
    def pack_seconds(self) -> float: ...
    @property
    def contract_seconds(self) -> float: ...
    @property
    def unpack_seconds(self) -> float: ...
    @property
    def byte_seconds(self) -> float: ...
    @property
    def looked(self) -> int: ...
    @property
    def look_seconds(self) -> float: ...
    @property
    def look_squares(self) -> float: ...
    def quartets(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """
        [n][10]: pair of kinds of the bra, of the ket, Schwarz bound, density, values, seconds, bytes,
        weight, share of the bytes of the slab's header, draw. The sum of weight times a quantity, divided
        by the draws, estimates its sum over all quartets.
        """

def survey(
    basis: Basis,
    screening: Screening,
    accuracy: Accuracy,
    density: Annotated[
        NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
    ],
    seconds: float,
    most: int,
    first: int,
    stride: int,
) -> Survey:
    """
    Makes draws first, first + stride, ... for `seconds`, at most `most` of them. density [1][n][n]:
    an estimate of the molecule's. Any number of threads at a time.
    """

def damaged_integral_records(index: bytes, record_bytes: int, path: str) -> list[str]:
    """Reads all records of a kept file; returns one line for each damage."""

class IntegralCounts:
    @property
    def quartets(self) -> int: ...
    @property
    def computed(self) -> int: ...
    @property
    def stored(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def disk_bytes(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def damaged(self) -> int: ...
    @property
    def lost_tasks(self) -> int: ...

class IntegralFileOptions:
    """See outcore/chem/integral_file.hpp."""

    def __init__(
        self,
        scratch: str,
        record_bytes: int,
        prefetch: int,
        accuracy: Accuracy,
        page_cache: str,
        expected_bytes: int,
        memory_bytes: int,
        disk_bytes: int,
        small_below: float,
        may_overflow: bool,
        kept_name: str,
        world: World | None = None,
        disk_used: Counter | None = None,
    ) -> None: ...

class TwoElectron:
    """
    This process's share of the two-electron integrals, kept or recomputed.
    """

    def __init__(self, basis: Basis, screening: Screening, rule: KeepRule, threads: int) -> None: ...
    def open_store(self, options: IntegralFileOptions) -> None: ...
    def open_kept(
        self, options: IntegralFileOptions, files: Sequence[tuple[str, bytes]], part: int, parts: int
    ) -> None:
        """
        Opens part `part` of `parts` of the records of kept files; files: (name, index) of each, as
        commit returned them.
        """

    def commit(self) -> tuple[str, bytes]:
        """
        Puts the records on stable storage; returns name and index of the file, which stays.
        """

    def index(self) -> bytes:
        """
        Where this process's records on disk are; pass it to share at all processes.
        """

    def share(self, indices: Sequence[bytes]) -> None:
        """
        indices: the results of index of all processes, by rank. From now on any process can contract
        any record.
        """

    def drop(self) -> None:
        """Drops all records. Collective with a world."""

    def store(self, thread: int, first_task: int, last_task: int) -> None:
        """Computes, packs and stores the kept quartets of tasks [first, last)."""

    def close_store(self) -> None: ...
    def begin(
        self,
        densities: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ],
        symmetry: Sequence[int],
        cutoff: float,
    ) -> None: ...
    def contract_kept(self, tickets: Counter | None = None) -> None:
        """
        Contracts the records of this process; with tickets, its share of the records of all processes.
        """

    def contract_rest(self, thread: int, first_task: int, last_task: int) -> None: ...
    def end(
        self, count: int
    ) -> tuple[
        Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")],
        Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")],
    ]:
        """Partial J and K, [count][n][n] each."""

    def energy_error(
        self,
        densities: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ],
        tasks: Counter,
        tickets: Counter | None = None,
    ) -> tuple[float, float, float]:
        """
        Returns the variance (Hartree^2) of the energy's error from rounding and leaving out integrals,
        the bound of that error (Hartree), and the largest term of a left-out quartet in the variance.
        `tasks` hands out the tasks whose quartets are not kept.
        """

    def counts(self) -> IntegralCounts: ...

def integral_memory_bytes(
    basis: Basis, threads: int, densities: int, record_bytes: int, prefetch: int, small_below: float
) -> int:
    """
    Bytes of memory that a contraction of `densities` matrices on `threads` threads takes;
    record_bytes 0: no records are stored.
    """

class ThreeCenter:
    """
    Three-centre integrals (mn|P). A pair is a row (i, j, column) of int32: shells i >= j; the
    product of their functions a, b is in column + b * size(i) + a. Any thread.
    """

    def __init__(
        self,
        atm: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        bas: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        env: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        orbital_shells: int,
        cartesian: bool,
        int3c2e: int,
        int2e: int,
        make_optimizer: int,
        delete_optimizer: int,
    ) -> None:
        """
        libcint's tables of both bases, flattened, the orbital basis first; the addresses of int3c2e_*
        and int2e_* (sph or cart), int3c2e_optimizer and CINTdel_optimizer.
        """

    @property
    def orbital_shells(self) -> int: ...
    @property
    def auxiliary_shells(self) -> int: ...
    def bounds(self, threads: int) -> list[float]:
        """sqrt(max (ij|ij)) of the shell pairs i >= j, at i (i + 1) / 2 + j."""

    def integrals(
        self,
        pairs: Annotated[
            NDArray[numpy.int32], dict(shape=(None, 3), order="C", device="cpu", writable=False)
        ],
        first: int,
        last: int,
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu")],
        threads: int,
    ) -> None:
        """
        Computes (mn|P) for auxiliary shells [first, last), into the rows of `out`, one for each
        function P.
        """

    def expand(
        self,
        pairs: Annotated[
            NDArray[numpy.int32], dict(shape=(None, 3), order="C", device="cpu", writable=False)
        ],
        rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")],
        threads: int,
    ) -> None:
        """
        Expands rows to symmetric matrices out[row][m][n]. Elements that belong to no pair do not
        change.
        """

    def expand_images(
        self,
        images: Annotated[
            NDArray[numpy.int32], dict(shape=(None, 4), order="C", device="cpu", writable=False)
        ],
        rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu", writable=False)],
        signs: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        characters: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        places: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")],
        threads: int,
    ) -> None:
        """
        As `expand`, for images of pairs, which are rows (i, j, column, operation) of int32: shells in
        either order, whose products are those of a pair after an operation. out[row][m][n] is
        characters[operation] signs[operation][m] signs[operation][n] times the element of the row. The
        functions n of a shell begin at places[shell]; if that is negative, they are left out.
        """

class ThreeCenterGradient:
    """
    Derivatives of three-centre integrals (mn|P) with respect to the positions of atoms. Pairs are
    those of ThreeCenter. Any thread.
    """

    def __init__(
        self,
        atm: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        bas: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        env: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        orbital_shells: int,
        cartesian: bool,
        int3c2e_ip1: int,
        make_optimizer: int,
        delete_optimizer: int,
    ) -> None:
        """
        libcint's tables of both bases, flattened, the orbital basis first; the addresses of
        int3c2e_ip1_* (sph or cart), int3c2e_ip1_optimizer and CINTdel_optimizer.
        """

    def add(
        self,
        pairs: Annotated[
            NDArray[numpy.int32], dict(shape=(None, 3), order="C", device="cpu", writable=False)
        ],
        first: int,
        last: int,
        z: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu", writable=False)],
        gradient: Annotated[NDArray[numpy.float64], dict(shape=(None, 3), order="C", device="cpu")],
        threads: int,
    ) -> None:
        """
        gradient[atom][x] += sum of z[P][mn] d(mn|P)/dx, over P of auxiliary shells [first, last) and
        over m and n of pairs in both orders. The column mn of z has the element of a symmetric matrix.
        Atoms are those of the tables: first of the orbital basis, then of the auxiliary basis.
        """

def pair_sums(
    v: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), device="cpu", writable=False)],
    gaps: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    square: bool,
) -> list[tuple[float, float]]:
    """
    Returns for each j the sums over a and b of v[a,j,b]^2 / d and of v[a,j,b] v[b,j,a] / d (0
    unless `square`), with d = gaps[j] - a[a] - b[b].
    """

class CIStrings:
    """
    All strings of so many electrons of one spin, sorted by irrep, then by value (the highest orbital counts
    most). Orbitals are sorted by irrep; irreps multiply by exclusive or.
    """

    def __init__(self, orbital_irreps: Sequence[int], groups: int, electrons: int) -> None: ...
    @property
    def electrons(self) -> int: ...
    def __len__(self) -> int: ...
    @property
    def strings(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """uint64; bit q of a string is set if an electron is in orbital q."""

    @property
    def offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        int64[groups + 1]: strings of irrep g have the indices [offsets[g], offsets[g + 1]).
        """

    def rank(self, mask: int) -> int:
        """The index of a string."""

class CIPanel:
    """
    Some rows of a vector C[alpha, beta] in memory. Each row has the columns that symmetry allows,
    from its first column to the end of their sector. Home rows have all columns of the sector; the
    same-spin part works on these. Transposed: rows are beta strings, columns are alpha strings.
    Elements are undefined until cleared or loaded.
    """

    def __init__(
        self,
        kernel: CIKernel,
        home: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        others: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        begins: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        dtype: object,
        transposed: bool = False,
        unit: int = 64,
    ) -> None:
        """
        home, others: indices of rows, int64, ascending. begins: the first column of each of the others.
        dtype: float64 or float32. In memory, rows begin and end at multiples of `unit` bytes from the
        beginning of their sector.
        """

    def assign(
        self,
        home: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        others: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        begins: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None:
        """
        Assigns other rows to the panel; its memory is used again if it is enough. Elements are
        undefined.
        """

    @property
    def rows(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """int64: all rows, ascending."""

    def ranges(
        self,
        bases: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        pitches: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        first: int,
        last: int,
    ) -> list:
        """
        For each of rows[first:last] a pair (offset in bytes, array): the memory that the panel has of
        the row, extended to whole units, and its place in a file of rows. bases, pitches: int64, for
        each irrep of rows the offset of its first row and the distance of two rows, in bytes. The
        arrays are valid until the panel is assigned again.
        """

    @property
    def nbytes(self) -> int: ...
    def clear(self, threads: int = 1) -> None:
        """Sets all elements to 0."""

    @overload
    def load(
        self,
        row: int,
        column: int,
        tile: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu", writable=False)],
        transpose: bool = False,
        scale: float = 1.0,
    ) -> None: ...
    @overload
    def load(
        self,
        row: int,
        column: int,
        tile: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device="cpu", writable=False)],
        transpose: bool = False,
        scale: float = 1.0,
    ) -> None:
        """
        panel[row + i, column + j] = scale * tile[i, j] (tile[j, i] with `transpose`), for the indices
        that the panel has. A tile lies in one sector of rows and in one sector of columns. Several
        threads may load different tiles.
        """

    @overload
    def unload(
        self,
        row: int,
        column: int,
        tile: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu")],
        transpose: bool = False,
        scale: float = 1.0,
    ) -> None: ...
    @overload
    def unload(
        self,
        row: int,
        column: int,
        tile: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device="cpu")],
        transpose: bool = False,
        scale: float = 1.0,
    ) -> None:
        """
        tile[i, j] (tile[j, i] with `transpose`) += scale * panel[row + i, column + j], for the indices that the panel
        has.
        """

    @overload
    def load_tiles(
        self,
        vector: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        tiles: Annotated[
            NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        parity: int,
        threads: int = 1,
    ) -> None: ...
    @overload
    def load_tiles(
        self,
        vector: Annotated[
            NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        tiles: Annotated[
            NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        parity: int,
        threads: int = 1,
    ) -> None:
        """
        Loads the elements that the panel has from tiles of a vector, which lie one after another.
        tiles: int64 [tiles][5], elements before the tile, indices of its first strings, shape. parity:
        1 or -1 for a folded vector, else 0.
        """

    @overload
    def add_to_tiles(
        self,
        vector: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        tiles: Annotated[
            NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        parity: int,
        threads: int = 1,
    ) -> None: ...
    @overload
    def add_to_tiles(
        self,
        vector: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
        tiles: Annotated[
            NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        parity: int,
        threads: int = 1,
    ) -> None:
        """
        vector += T in these tiles, T being the panel; for a folded vector T + parity T^T. Else as
        load_tiles.
        """

class CIKernel:
    """
    Products of a Hamiltonian with parts of vectors C[alpha, beta].

    A hole is an N-1 electron string of one spin. parity 0: H C = opposite_spin (over all holes) +
    same_spin (of beta) + same_spin on transposed panels (of alpha). parity 1 or -1, C = parity C^T:
    H C = T + parity T^T with T = opposite_spin + same_spin (of beta). Any thread, also several at a
    time; BLAS should use one thread. Calls at the same time need different panels.
    """

    def __init__(
        self,
        orbital_irreps: Sequence[int],
        groups: int,
        alpha: int,
        beta: int,
        target: int,
        parity: int,
        one: object,
        two: object,
        spin_shift: float = 0.0,
    ) -> None:
        """
        Orbitals are sorted by irrep. one [n][n] and two [n][n][n][n], (pq|rs), float64. If the spins
        have different orbitals: tuples (alpha, beta) and (aa, ab, bb), and parity 0. spin_shift (Eh):
        adds spin_shift * (S^2 - M(M+1)), M = |alpha - beta| / 2.
        """

    @property
    def alpha_strings(self) -> CIStrings: ...
    @property
    def beta_strings(self) -> CIStrings: ...
    @property
    def determinants(self) -> int:
        """
        Number of pairs of strings of the right symmetry; with folding, (I, J) and (J, I) both count.
        """

    @property
    def holes(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """
        uint64: the holes of alpha electrons (N-1 electron strings), by value. Work is divided into
        ranges of them.
        """

    def rows_of(self, first: int, last: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        Indices of the alpha strings that holes [first, last) reach, ascending.
        """

    def begins_of(self, first: int, last: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        For each row of rows_of the first beta string that the holes meet there, or the end of the
        sector: the holes meet all strings from it on. Without folding it is the first of the sector.
        """

    def opposite_spin(self, x: CIPanel, t: CIPanel, first: int, last: int, threads: int = 1) -> None:
        """
        Adds to t the part of H x that acts on an alpha and a beta electron, of holes [first, last);
        with folding, half of it. Both panels must have the rows_of this range, each from begins_of on.
        """

    def same_spin(self, x: CIPanel, t: CIPanel, threads: int = 1) -> None:
        """
        Adds to t the part of H x that acts on two electrons of the columns' spin, for home rows, which
        must be the same in both panels.
        """

    def opposite_spin_density(
        self,
        bra: CIPanel,
        ket: CIPanel,
        sums: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None, None), order="C", device="cpu")
        ],
        first: int,
        last: int,
        threads: int = 1,
    ) -> None:
        """
        sums[p,q,r,s] += <bra|a+_p b+_r b_s a_q|ket>, a of alpha and b of beta electrons, of holes
        [first, last); with folding the density is sums[p,q,r,s] + sums[r,s,p,q]. Panels as for
        opposite_spin; bra and ket may be the same.
        """

    def same_spin_density(
        self,
        bra: CIPanel,
        ket: CIPanel,
        sums: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None, None), order="C", device="cpu")
        ],
        threads: int = 1,
    ) -> None:
        """
        sums[p,q,r,s] += <bra|a+_p a+_r a_s a_q|ket> of the columns' spin. Panels as for same_spin; bra
        and ket may be the same. Needs two or more electrons in all.
        """

    def flops(self, first: int, last: int) -> float:
        """
        Floating-point operations of the products of matrices in opposite_spin.
        """

    def same_spin_flops(self, panel: CIPanel) -> float:
        """Floating-point operations of the products of matrices in same_spin."""

    @overload
    def diagonal(
        self,
        alpha: int,
        beta: int,
        tile: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu")],
    ) -> None: ...
    @overload
    def diagonal(
        self,
        alpha: int,
        beta: int,
        tile: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device="cpu")],
    ) -> None:
        """tile[i, j] = <I J|H|I J>, I = alpha + i and J = beta + j."""

def ci_correct(
    states: Sequence[Annotated[NDArray, dict(order="C", device="cpu")]],
    h_states: Sequence[Annotated[NDArray, dict(order="C", device="cpu")]],
    vectors: Sequence[Annotated[NDArray, dict(order="C", device="cpu")]],
    h_vectors: Sequence[Annotated[NDArray, dict(order="C", device="cpu")]],
    corrections: Sequence[Annotated[NDArray, dict(order="C", device="cpu")]],
    diagonal: Annotated[NDArray[numpy.float64], dict(order="C", device="cpu", writable=False)],
    to_states: Annotated[NDArray[numpy.float64], dict(order="C", device="cpu", writable=False)],
    to_vectors: Annotated[NDArray[numpy.float64], dict(order="C", device="cpu", writable=False)],
    collapses: bool,
    energies: Annotated[NDArray[numpy.float64], dict(order="C", device="cpu", writable=False)],
    active: Sequence[int],
    smallest: float,
    parity: int,
    sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """
    Updates one tile of all vectors, as chem/ci/correction.hpp defines; adds dot products to `sums`.
    Any thread.
    """

def ci_dots(
    a: Sequence[Annotated[NDArray, dict(order="C", device="cpu", writable=False)]],
    b: Sequence[Annotated[NDArray, dict(order="C", device="cpu", writable=False)]],
    sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """Adds the dot products [a][b] of tiles to `sums`. Any thread."""

def ci_round(
    values: Annotated[NDArray[numpy.float64], dict(order="C", device="cpu")],
    step: float,
    added: Annotated[NDArray[numpy.float64], dict(order="C", device="cpu")] | None = None,
) -> float:
    """
    Rounds values to whole multiples of step, a power of two, in place. `added` receives the
    changes. Returns the sum of their squares. Any thread.
    """

class MRCISpace:
    """
    Records of a multireference CI: internal determinants, each with its block of external orbitals; see
    chem/mrci/space.hpp.
    """

    def __init__(
        self,
        externals: Sequence[int],
        internal_irreps: Sequence[int],
        electrons: Sequence[int],
        target: int,
        parity: int,
        kinds: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        alpha: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        beta: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None:
        """
        externals: number of external orbitals of each irrep. kinds (uint8; external electrons: 0 none,
        1 alpha, 2 beta, 3 one of each, 4 two alpha, 5 two beta), alpha, beta (uint64, internal strings)
        of each record, sorted in this order.
        """

    def __len__(self) -> int: ...
    @property
    def size(self) -> int:
        """Elements of a vector."""

    @property
    def offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """int64[records + 1]: where records begin in a vector, and its end."""

    @property
    def own(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
        """
        uint8[records]: 1 for records that are their own partner under the exchange of spins.
        """

    def fold(
        self,
        first: int,
        last: int,
        scale: float,
        data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None:
        """
        Replaces records that are their own partner by scale (R + parity R^T), in place.
        """

    def fold_records(
        self,
        records: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        scale: float,
        data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None:
        """As fold, for some records, which lie one after another in data."""

class MRCITask:
    """A piece of a product of the Hamiltonian with a vector."""

    @property
    def cost(self) -> float:
        """Estimated floating-point operations."""

class MRCIKernel:
    """
    The Hamiltonian on vectors of a multireference CI, in tasks. Any thread, also several at a time;
    BLAS should use one thread.
    """

    def __init__(
        self,
        space: MRCISpace,
        one: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        rows: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        coulomb: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        exchange: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        spin_shift: float = 0.0,
        constant: float = 0.0,
    ) -> None:
        """
        one [n][n]: internal orbitals, then external ones by irrep (float64). rows: (pq|rs) [pq][rs], r
        >= s, for pairs pq with an internal orbital: first p >= q of internal ones, then for each
        external p all internal q. coulomb, exchange: (pp|qq), (pq|pq) [n][n]. Adds constant +
        spin_shift * (S^2 - M(M+1)), M = |alpha - beta| / 2 (Eh). Integrals between pairs of external
        orbitals come by `reserve_external` and `take_external`, or by `read_external`.
        """

    @property
    def external_size(self) -> int:
        """Number of integrals between pairs of external orbitals."""

    def external_rows(
        self,
        c: int,
        column: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
    ) -> list:
        """
        Integrals of external pairs (c, d), d <= c, from column [a][bd] = (ac|bd), b >= d: (first
        element, values) of each part of the line.
        """

    def reserve_external(self) -> None:
        """Allocates memory for all integrals between external pairs."""

    def take_external(
        self,
        c: int,
        column: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """
        Keeps the integrals of `external_rows` in memory. Any thread, each c once.
        """

    def read_external(self, array: DiskArrayAccess, slab_elements: int) -> None:
        """
        Products read the integrals between external pairs from this array, a line of float64 that holds
        the parts of `external_rows`, in slabs.
        """

    def tasks(
        self,
        max_cost: float,
        max_elements: int = 0,
        units: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
    ) -> list[MRCITask]:
        """
        All tasks. Each has at most max_cost, and its units at most max_elements elements (0: any
        number), unless a single hole has more. units: for each record the number of the unit in which
        it is moved, ascending from 0; None: each record is a unit.
        """

    def units_of(
        self,
        task: MRCITask,
        units: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
    ) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        The units (None: the records) that a task reads and adds to, ascending.
        """

    def apply(
        self,
        task: MRCITask,
        x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        t: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        offsets: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        shared: bool = False,
    ) -> None:
        """
        Adds the part of H x that the task computes to t. offsets: where each record that the task meets
        begins in x and in t. shared: other threads add to t at the same time.
        """

    def density(
        self,
        task: MRCITask,
        x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        alpha: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        beta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    ) -> None:
        """
        Adds to sums [n][n]. Over all tasks, alpha and beta receive the density of their spin times the
        number of electrons of the other spin; folded, alpha receives that of either spin.
        """

    def exchange(
        self,
        task: MRCITask,
        x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> float:
        """The contribution of the task to sum_pq <a+_p b+_q b_p a_q>."""

    def diagonal(
        self,
        first: int,
        last: int,
        elements: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None:
        """Diagonal elements of records [first, last)."""

    @property
    def on_disk(self) -> bool:
        """Whether products read integrals between external pairs from an array."""

    @property
    def integral_bytes(self) -> int:
        """Bytes of integrals in memory."""

    @property
    def work_bytes(self) -> int:
        """Bytes of memory that `apply` uses in each thread."""

class MRCISinglets:
    """
    Groups of records with two holes in the first orbitals and two external electrons. The spins of
    these four electrons must couple to a singlet; see chem/mrci/singlets.hpp.
    """

    def __init__(self, space: MRCISpace, inactive: int) -> None: ...
    def __len__(self) -> int: ...
    def records_of(self, first: int, last: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Records of groups [first, last), ascending."""

    def project(
        self,
        first: int,
        last: int,
        data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        offsets: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """
        Projects groups [first, last) onto singlets. offsets: where each of their records begins in
        data.
        """

def triples_energy(
    occupied: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    virtuals: int,
    a: int,
    b: int,
    of_a: tuple,
    of_b: tuple,
    of_c: tuple,
    of_ab: tuple,
    of_ac: tuple,
    of_bc: tuple,
    same_ab: bool,
    same_bc: bool,
) -> float:
    """
    Energy of connected triples of closed shells, for one virtual orbital a of a block, one b of a
    second block and all c of a third block; a >= b >= c where blocks are the same. of_a, of_b,
    of_c, for a block x: (t_jk^dx as [x][j][d][k] and as [x][k][d][j], -(ix|lk) as [x][i][l][k] and
    as [x][l][k][i], t1 [x][i], Fock elements [x][i], energies [x]). of_ab, of_ac, of_bc, for two
    blocks x, y: ((ix|yd) as [x][y][d][i], (iy|xd) likewise, t_ij^xy as [x][y][i][j] and as
    [x][y][j][i], (ix|jy) as [x][y][i][j]). In arrays with four indices the last one has room for a
    multiple of 4. Any thread.
    """

def triples_derivatives(
    occupied: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    virtuals: int,
    a: int,
    b: int,
    of_a: tuple,
    of_b: tuple,
    of_c: tuple,
    of_ab: tuple,
    of_ac: tuple,
    of_bc: tuple,
    same_ab: bool,
    same_bc: bool,
    by_w: Annotated[
        NDArray[numpy.float64], dict(shape=(None, None, None, None, None, None), order="C", device="cpu")
    ],
    sums: tuple,
) -> float:
    """
    As triples_energy, and adds derivatives of the energy. by_w[a][b][c][i][j][k] receives those
    with respect to the connected amplitudes, also for the other orders of a, b and c that by_w has
    if blocks are the same. sums: [i][j] of occupied orbitals; for each block (by t1 [x][i], by Fock
    elements [x][i], density [x]); for ab, ac, bc [x][y][i][j], by (ix|jy). No other thread may use
    by_w and sums meanwhile.
    """

def triples_density(
    occupied: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    virtuals: int,
    b: int,
    of_a: tuple,
    of_b: tuple,
    of_c: tuple,
    of_ab: tuple,
    of_ac: tuple,
    of_bc: tuple,
    same_bc: bool,
    density: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
) -> None:
    """
    Adds to the density [x][y] of all orbitals of the first block the contributions of b of the
    second block and all c of the third, c <= b if these blocks are the same. No other thread may
    use density meanwhile.
    """

def same_spin_triples(
    occupied: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    virtuals: int,
    a: int,
    b: int,
    of_a: tuple,
    of_b: tuple,
    of_c: tuple,
    of_ab: tuple,
    of_ac: tuple,
    of_bc: tuple,
    same_ab: bool,
    same_bc: bool,
) -> float:
    """
    Energy of connected triples of three virtual orbitals of one spin: one a of a block, one b of a
    second block and all c of a third block; a > b > c where blocks are the same.
    chem/cc/open_triples.hpp describes the blocks. Any thread.
    """

def mixed_spin_triples(
    occupied: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    virtuals: int,
    other_occupied: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    other_virtuals: int,
    a: int,
    b: int,
    of_a: tuple,
    of_b: tuple,
    of_c: tuple,
    of_ab: tuple,
    of_ac: tuple,
    of_bc: tuple,
    same_ab: bool,
) -> float:
    """
    As same_spin_triples, for two orbitals a > b of one spin and all c of a block of the other spin.
    Any thread.
    """

class Distribution:
    """
    Which process holds which elements of an array: a grid of processes over the dimensions, the last
    varying fastest. Made for a shape and a number of processes; the same on all of them.
    """

    @staticmethod
    def regular(shape: Sequence[int], processes: int) -> Distribution:
        """
        Blocks as equal as can be, on a grid chosen so that patches are nearly cubic.
        """

    @staticmethod
    def irregular(shape: Sequence[int], processes: int, begins: Sequence[Sequence[int]]) -> Distribution:
        """
        For each dimension the first indices of its blocks, increasing from 0. The product of the
        numbers of blocks is at most the number of processes.
        """

    @staticmethod
    def block_cyclic(
        shape: Sequence[int], processes: int, block: Sequence[int], grid: Sequence[int] | None = None
    ) -> Distribution:
        """
        Blocks dealt out to a grid in turn, as ScaLAPACK does; the grid is chosen if not given.
        """

    @property
    def kind(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def grid(self) -> tuple[int, ...]:
        """Processes along each dimension."""

    @property
    def block(self) -> tuple[int, ...]:
        """Shape of the (largest) blocks."""

    @property
    def processes(self) -> int: ...
    def owner(self, index: Sequence[int]) -> int:
        """Rank of the process that holds an element."""

    def patch(self, process: int) -> tuple[list[int], list[int]]:
        """
        (begin, end) of the box that a process holds; OutcoreError (EINVAL) if block-cyclic.
        """

    def local_shape(self, process: int) -> tuple[int, ...]:
        """Shape of the memory of a process."""

    def parts_of(self, process: int, begin: Sequence[int], end: Sequence[int]) -> list[list[list[int]]]:
        """
        The parts of a box that a process holds: for each block [begin, end, index of its first element
        in the memory of the process].
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __repr__(self) -> str: ...

class GlobalArray:
    """Native part of outcore.GlobalArray, which checks indices and types."""

    def __init__(self, world: World, gate: Callable) -> None: ...
    @property
    def distribution(self) -> Distribution: ...
    @property
    def local(self) -> numpy.typing.NDArray:
        """NumPy view of the memory of this process."""

    @property
    def closed(self) -> bool: ...
    @property
    def number(self) -> int:
        """
        A number that is equal at all processes, and different for each array of the world.
        """

    def get(
        self, begin: Sequence[int], end: Sequence[int], step: Sequence[int], memory: object
    ) -> Request: ...
    def put(
        self, begin: Sequence[int], end: Sequence[int], step: Sequence[int], memory: object
    ) -> Request: ...
    def accumulate(
        self, begin: Sequence[int], end: Sequence[int], step: Sequence[int], memory: object, alpha: object
    ) -> Request: ...
    def gather(
        self,
        indices: Annotated[
            NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        memory: object,
    ) -> None: ...
    def scatter(
        self,
        indices: Annotated[
            NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        memory: object,
    ) -> None: ...
    def scatter_accumulate(
        self,
        indices: Annotated[
            NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        memory: object,
        alpha: object,
    ) -> None: ...
    def read_increment(self, index: Sequence[int], value: int) -> int: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...

class NodeArray:
    """Native part of outcore.NodeArray, which checks the type."""

    def __init__(self, world: World, gate: Callable) -> None: ...
    @property
    def view(self) -> numpy.typing.NDArray:
        """NumPy view of the whole array."""

    @property
    def closed(self) -> bool: ...
    def barrier(self) -> None: ...
    def post(self, element: int, value: int) -> None: ...
    def wait_for(self, element: int, least: int, timeout_us: int) -> bool: ...
    def close(self) -> None: ...

def add_codec(number: int, name: str, codec: object) -> None:
    """See outcore.extend.add_codec."""

class DiskArrayAccess:
    """
    Native part of outcore.AttachedDiskArray, which checks indices and types.
    """

    @staticmethod
    def attach(world: World, handle: bytes, cache_bytes: int) -> DiskArrayAccess: ...
    def get(
        self,
        begin: Sequence[int],
        end: Sequence[int],
        step: Sequence[int],
        memory: object,
        alpha: object | None = None,
        waits: bool = False,
    ) -> Request: ...
    def put(
        self,
        begin: Sequence[int],
        end: Sequence[int],
        step: Sequence[int],
        memory: object,
        alpha: object | None = None,
        waits: bool = False,
    ) -> Request: ...
    def accumulate(
        self,
        begin: Sequence[int],
        end: Sequence[int],
        step: Sequence[int],
        memory: object,
        alpha: object,
        waits: bool = False,
    ) -> Request: ...
    def prefetch(self, boxes: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None: ...
    def sync(self) -> None: ...
    @property
    def shape(self) -> tuple: ...
    @property
    def chunk(self) -> tuple: ...
    @property
    def dtype(self) -> str: ...

class DiskArrayCaches:
    """Memory of a process for chunks, in bytes."""

    def __init__(self, *, own_bytes: int, others_bytes: int) -> None: ...

class DiskArrayArguments:
    """Options of a new disk array."""

    def __init__(
        self,
        *,
        shape: Sequence[int],
        dtype: str,
        path: str,
        chunk: Sequence[int],
        typical: Sequence[int],
        codec: str,
        placement: str,
        overwrite: bool,
        expected_bytes: int,
        metadata: str,
        caches: DiskArrayCaches,
        identity: str,
        contained: int,
    ) -> None: ...

class DiskArrayOpening:
    """Arguments to open a disk array."""

    def __init__(
        self, *, path: str, read_only: bool, caches: DiskArrayCaches, contained: int = 0
    ) -> None: ...

class DiskArray(DiskArrayAccess):
    """Native part of outcore.DiskArray, which checks arguments."""

    def __init__(self, world: World, gate: Callable) -> None: ...
    @staticmethod
    def open(world: World, gate: Callable) -> DiskArray: ...
    @staticmethod
    def transfer_bytes(world: World) -> int: ...
    def share(self, parent: World) -> bytes: ...
    def write_section(
        self,
        array: object,
        from_begin: Sequence[int],
        from_end: Sequence[int],
        order: Sequence[int] | None,
        begin: Sequence[int],
        end: Sequence[int],
    ) -> Request: ...
    def read_section(
        self,
        array: object,
        to_begin: Sequence[int],
        to_end: Sequence[int],
        order: Sequence[int] | None,
        begin: Sequence[int],
        end: Sequence[int],
    ) -> Request: ...
    def write_block(self, memory: object, begin: Sequence[int], end: Sequence[int]) -> Request: ...
    def read_block(self, memory: object, begin: Sequence[int], end: Sequence[int]) -> Request: ...
    def refuse(self, fields: tuple) -> Request:
        """
        Take part in a transfer that this process cannot make: all processes get the error with these
        fields.
        """

    def flush(self, gate: Callable) -> None:
        """
        Flush with the metadata that the gate passes; None: the present metadata.
        """

    def close(self) -> None: ...
    def drop(self) -> None: ...
    def remove(self) -> None: ...
    def stored_bytes(self) -> int: ...
    def next_written(self, chunk: int) -> int: ...
    @property
    def codec(self) -> str: ...
    @property
    def components(self) -> int: ...
    @property
    def placement(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def metadata(self) -> bytes: ...
    @property
    def identity(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def closed(self) -> bool: ...

def usual_chunk(shape: Sequence[int], element_bytes: int) -> tuple[int, ...]:
    """
    The shape of the chunks that a new disk array without codec gets if none is given.
    """

def array_facts(path: str, contained: int = 0) -> tuple[dict[str, str], bytes]:
    """
    The facts in the manifest of a persistent array, and its metadata. Raises OutcoreError if there
    is no such array at the path, or if it is damaged.
    """

def verify_array(path: str, contained: int = 0) -> tuple[list[str], int]:
    """
    Read all of a persistent array and check every checksum. Returns one line for each damage, and
    how many components are not here but on local disks of other nodes.
    """

class SharedFileOptions:
    """Options of a new shared file; sizes in bytes."""

    def __init__(
        self,
        *,
        hard_limit: int,
        soft_limit: int,
        reserve: bool,
        typical_request: int,
        placement: str,
        components_per_node: int,
        page_cache: str,
        client_cache_bytes: int,
    ) -> None: ...

class SharedFile:
    """Native part of outcore.SharedFile."""

    def __init__(self, world: World, gate: Callable) -> None: ...
    def read(self, buffer: object, offset: int = 0) -> int:
        """
        Fill the buffer from a byte offset; returns its bytes. Beyond the end it is OutcoreError (EINVAL).
        """

    def write(self, buffer: object, offset: int = 0) -> int:
        """
        Write the whole buffer at a byte offset; returns its bytes. Beyond the hard limit it is
        OutcoreError (EFBIG).
        """

    def read_async(self, buffer: object, offset: int = 0) -> Request:
        """
        Start a read and return its request at once; the I/O goes on by itself.
        """

    def write_async(self, buffer: object, offset: int = 0) -> Request:
        """
        Start a write and return its request at once; the I/O goes on by itself.
        """

    def readv_async(self, ranges: Sequence[tuple[int, object]]) -> Request:
        """
        As read_async, for a list of (offset, buffer). Small ranges that lie close together are read
        together.
        """

    def writev_async(self, ranges: Sequence[tuple[int, object]]) -> Request:
        """
        As write_async, for a list of (offset, buffer), which must not overlap.
        """

    def length(self) -> int:
        """
        The end of the file: the highest byte that any process has begun to write. Not collective.
        """

    def sync(self) -> None:
        """
        Make everything that this process has written visible to all. Raises the error of a write that
        nobody waited for. Not collective.
        """

    def flush(self) -> None:
        """
        Put everything that any process has written on stable storage. Collective; raises as sync does.
        """

    def close(self) -> None:
        """
        Wait for everything and close; the bytes are gone. Collective; raises as sync does. May be repeated.
        """

    def destroy(self) -> None:
        """
        As close, but without errors of writes, for bytes that are not wanted. Collective.
        """

    @property
    def closed(self) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def hard_limit(self) -> int:
        """The hard limit in bytes; 0: none."""

    @property
    def stripe(self) -> int:
        """
        Consecutive bytes of the file in one component file, before the next component follows.
        """

    @property
    def components(self) -> int:
        """Number of component files."""

    @property
    def placement(self) -> str: ...

class RecordFileOptions:
    """Options of a new record file; sizes in bytes."""

    def __init__(
        self,
        *,
        records: int,
        hard_limit: int,
        soft_limit: int,
        typical_record: int,
        placement: str,
        page_cache: str,
    ) -> None: ...

class RecordFile:
    """Native part of outcore.RecordFile."""

    def __init__(self, world: World, gate: Callable) -> None: ...
    def put(self, record: int, buffer: object) -> None:
        """Write a record; its size may change."""

    def get(self, record: int) -> bytes:
        """
        The bytes of a record. OutcoreError (ENOENT) if there is no such record.
        """

    def get_into(self, record: int, buffer: object) -> int:
        """
        Read a record into a buffer that is long enough, else OutcoreError (EMSGSIZE); returns the size
        of the record. The rest of the buffer may be changed.
        """

    def put_async(self, record: int, buffer: object) -> Request:
        """Start a put and return its request at once."""

    def get_into_async(self, record: int, buffer: object) -> Request:
        """
        Start get_into and return its request at once; wait() returns the bytes of the record.
        """

    def size(self, record: int) -> int | None:
        """Bytes of a record; None if there is none."""

    def capacity(self, record: int) -> int | None:
        """
        A length of a buffer that is enough for get_into: the size of the record, and up to a ninth and
        64 bytes more. Reads nothing from the disk. None if there is no such record.
        """

    def erase(self, record: int) -> None:
        """Remove a record, if it exists."""

    def sync(self) -> None:
        """
        Complete all puts of this process and make them visible to all. Raises the error of a put that
        nobody waited for. Not collective.
        """

    def flush(self) -> None:
        """Put all records on stable storage. Collective; raises as sync does."""

    def close(self) -> None:
        """
        Wait for everything and close; the records are gone. Collective; raises as sync does. May be repeated.
        """

    @property
    def closed(self) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def taken_bytes(self) -> int:
        """
        Bytes of the file that all processes together have taken, with the space of old versions.
        """

    def __len__(self) -> int: ...

class RecordTraffic:
    """Records that were moved."""

    @property
    def count(self) -> int: ...
    @property
    def bytes(self) -> int:
        """Packed."""

    @property
    def least(self) -> int:
        """Bytes of the smallest record; 0 if there was none."""

    @property
    def most(self) -> int:
        """Bytes of the largest record."""

class RecordStoreCounts:
    """
    Counts of the records that one process moved; reads and writes include those of the file.
    """

    @property
    def reads(self) -> RecordTraffic: ...
    @property
    def writes(self) -> RecordTraffic: ...
    @property
    def file_reads(self) -> RecordTraffic: ...
    @property
    def file_writes(self) -> RecordTraffic: ...

class RecordStore:
    """
    Records of numbers that all processes read, write and add to: packed with a bounded error, in memory that they
    share while there is room, else in a file. Any thread; see file/record_store.hpp.
    """

    def __init__(
        self,
        world: World,
        name: str,
        sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        *,
        memory_bytes: int,
        reserve_bytes: int = 0,
        placement: str = "auto",
    ) -> None:
        """
        Collective. sizes: how many numbers each record has. memory_bytes: memory of each process for
        packed records. reserve_bytes: part of the memory of all processes that idle records leave to
        the others. placement: of the file.
        """

    def get(
        self,
        records: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None:
        """
        Read records, which are in ascending order, one after another into memory.
        """

    def put(
        self,
        records: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        error: float,
        numbers: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        idle: bool = False,
    ) -> None:
        """
        Write records, each number with at most this error; 0: exactly. idle: other records have memory
        first.
        """

    def add(
        self,
        records: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        error: float,
        numbers: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """
        Add to records, to each atomically; sums are stored with at most this error.
        """

    def erase(
        self,
        records: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Set records to zero."""

    def set_reserve(self, bytes: int) -> None:
        """Set the bytes of memory that idle records leave to others from now on."""

    def close(self) -> None:
        """Close the store; its records are gone. Collective; may be repeated."""

    @property
    def counts(self) -> RecordStoreCounts: ...
    def place(
        self,
        records: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        Packed bytes of each record: positive in memory, negative in the file, 0 if it was never
        written.
        """

def pack_numbers(
    numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    error: float,
) -> bytes:
    """Pack numbers, each with at most this error; 0: exactly."""

def unpack_numbers(
    packed: bytes,
    error: float,
    numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """
    Unpack numbers. OutcoreError (EIO) for bytes that pack_numbers never made.
    """

class BlockSparseArguments:
    """Options of a new block-sparse array."""

    def __init__(
        self,
        *,
        boundaries: Sequence[Sequence[int]],
        nonzero: bytes,
        dtype: str,
        path: str,
        codec: str,
        placement: str,
        overwrite: bool,
        metadata: str,
        caches: DiskArrayCaches,
    ) -> None: ...

class BlockSparseArray:
    """Native part of outcore.BlockSparseArray, which checks arguments."""

    def __init__(self, world: World, gate: Callable) -> None: ...
    @staticmethod
    def open(world: World, gate: Callable) -> BlockSparseArray: ...
    def get(
        self, tile: Sequence[int], memory: object, alpha: object | None = None, waits: bool = False
    ) -> Request: ...
    def put(
        self, tile: Sequence[int], memory: object, alpha: object | None = None, waits: bool = False
    ) -> Request: ...
    def accumulate(
        self, tile: Sequence[int], memory: object, alpha: object, waits: bool = False
    ) -> Request: ...
    def prefetch(self, tiles: Sequence[Sequence[int]]) -> None: ...
    def owner(self, tile: Sequence[int]) -> int: ...
    @property
    def count(self) -> int:
        """Number of nonzero tiles."""

    def nonzero_tiles(self) -> list[list[int]]:
        """Indices of the nonzero tiles, in order of their numbers."""

    def sync(self) -> None: ...
    def flush(self, gate: Callable) -> None:
        """
        Flush with the metadata that the gate passes; None: the present metadata.
        """

    def close(self) -> None: ...
    def drop(self) -> None: ...
    def remove(self) -> None: ...
    def stored_bytes(self) -> int: ...
    @property
    def shape(self) -> tuple: ...
    @property
    def grid(self) -> tuple: ...
    @property
    def boundaries(self) -> list[list[int]]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def metadata(self) -> bytes: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def closed(self) -> bool: ...

def tensor_permute(out: object, value: object, dtype: str, alpha: object, accumulate: bool) -> None:
    """
    out = alpha * value, or out += alpha * value; any strides. See tensor/tiles.hpp. Any thread.
    """

def tensor_multiply(left: object, right: object, out: object, dtype: str, alpha: object, add: bool) -> bool:
    """
    out = alpha left right, or out += alpha left right, for matrices of a type that BLAS multiplies.
    Returns false and does nothing if elements lie side by side neither along rows nor along
    columns. Any thread.
    """

def tensor_has_blas() -> bool:
    """Whether SciPy's BLAS can be called."""

def tensor_pack_pairs(x: object, plus: object, minus: object, dtype: str, n: int, diagonal: float) -> None:
    """
    Sums and differences of pairs of elements, as tensor/tiles.hpp defines them. Any thread.
    """

def tensor_unpack_pairs(x: object, plus: object, minus: object, dtype: str, n: int, diagonal: float) -> None:
    """The reverse of pack_pairs. Any thread."""

class Mutex:
    """
    A lock between threads, of Python and of native code, used in a `with` block. Other
    Python threads run while one waits for it.
    """

    def __init__(self) -> None: ...
    def __enter__(self) -> Mutex: ...
    def __exit__(self, *exception: object) -> None: ...

class Boxes:
    """An array as products see it: they get and put boxes of it."""

    @staticmethod
    def of_memory(array: object, shape: Sequence[int], dtype: str, writes: bool) -> Boxes:
        """Boxes of an array of NumPy."""

    @staticmethod
    def of_ones(one: object, rank: int, dtype: str) -> Boxes:
        """Boxes whose elements are all `one`."""

    @staticmethod
    def of_global(array: object) -> Boxes:
        """Boxes of the native part of a GlobalArray."""

    @staticmethod
    def of_disk(array: object) -> Boxes:
        """Boxes of the native part of a disk array."""

    @staticmethod
    def of_python(moves: object) -> Boxes:
        """Boxes of an object that moves them: outcore.tensor.plan.loop.Moves."""

    @staticmethod
    def of_tiles(table: TileTable, flat: Boxes, dtype: str, max_bytes: int) -> Boxes:
        """Boxes of tiles that lie in an array of one dimension."""

    @staticmethod
    def of_sparse(table: TileTable, array: object, max_bytes: int) -> Boxes:
        """Boxes of the native part of a BlockSparseArray."""

    def section(self, axis: int, begin: int) -> Boxes:
        """The part of an array that begins at an index along an axis."""

    def adding_under(self, lock: Mutex | Lock) -> Boxes:
        """The array, with each add under the lock."""

class TileTable:
    """
    Which stored tile each tile of a layout comes from; see tensor/tiled_boxes.hpp.
    """

    def __init__(
        self,
        cuts: Sequence[Sequence[int]],
        numbers: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        images: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        kinds: Sequence[tuple[Sequence[int], int]],
    ) -> None: ...

class Steps:
    """
    The panels that a product multiplies, and their order; see tensor/product.hpp.
    """

    def __init__(
        self,
        groups: Sequence[
            tuple[
                Annotated[
                    NDArray[numpy.int64],
                    dict(shape=(None, None, None), order="C", device="cpu", writable=False),
                ],
                Sequence[Sequence[int]],
            ]
        ],
        sides: Sequence[tuple[Sequence[int], Sequence[tuple[int, int]]]],
        flags: Sequence[bytes | None] | None,
        steps: Annotated[
            NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        task_ends: Sequence[int],
        half: bool = False,
    ) -> None: ...

class NodePanels:
    """
    Memory that the processes of a node share for a product; see tensor/shared_panels.hpp.
    Construction is collective.
    """

    def __init__(
        self, world: World, slots: Sequence[int], largest_bytes: Sequence[int], units: int
    ) -> None: ...
    def fail(self) -> None:
        """
        Tells the other processes that this one failed: they wait for its panels no more.
        """

def fetched_panels(
    steps: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    slots: Sequence[int],
) -> Annotated[NDArray[numpy.bool_], dict(shape=(None, None))]:
    """
    [n][2]: whether one process that carries out these steps fetches the left and the right panel of
    each into its slots.
    """

def tensor_product(
    steps: Steps,
    left: Boxes,
    right: Boxes,
    out: Boxes,
    *,
    slots: Sequence[int],
    results: int,
    unit: int,
    hinted: int,
    threads: int,
    add: bool,
    one_put: bool,
    element_bytes: int,
    multiply: object,
    alpha: object,
    counter: Counter | None,
    watch: object,
    memory: NodePanels | None = None,
    shares: tuple[int, Sequence[Sequence[int]]] | None = None,
) -> tuple:
    """
    Does this process's part of a product. Returns the elements got of the left and of the right
    operand, the elements put, and the operations. `multiply`: the name of a type that BLAS
    multiplies, or a function. `watch`: called now and then with the fraction of the work that is
    done and the number of complete tasks; if it returns true, the work ends. `memory`, `shares`: if
    processes share panels, their common memory; the group of axes of the result that they divide,
    and the bounds of their shares.
    """
