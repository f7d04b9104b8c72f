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
    The text of an error: what was attempted, where, how much, why. Negative numbers are left out (the rank: this one).
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
    """What numpy.dtype() takes for an array of events."""

def trace_now_ns() -> int: ...
def trace_snapshot() -> dict[str, Any]:
    """Counters as {'layers': {layer: {operation: {counter: number}}}, ...}."""

def trace_reset() -> None:
    """Counters begin anew, and the peak of disk space."""

def peak_disk_bytes() -> int:
    """
    Bytes that files of this process, open for writing together, took on disks at most, since trace_reset.
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
    collective transfer. It keeps its memory, and its file or array, alive until it is done, also when the
    Request goes before. It goes on by itself.

    A failed operation raises OutcoreError from each `wait` and `test`. If it was to change a file or an array,
    and nobody has waited for it, the next sync, flush or close of that raises its error. Any thread may wait;
    other Python threads run meanwhile.
    """

    def wait(self) -> Any:
        """
        Block until it is done and return what it brought: the bytes that a file has moved (fewer than asked for
        only at the end of an exclusive file; of a record: its size), the array of a get, the reply of a call (a
        uint8 array, a part of the buffer given to World.call if there was one), else None.
        """

    def test(self) -> bool:
        """True once it is done; never blocks."""

    @property
    def done(self) -> bool:
        """True once complete or failed; never raises."""

    def returning(self, value: object) -> Request:
        """`wait` returns this. Returns self."""

def wait_all(requests: Sequence[Request]) -> None:
    """
    Wait for all requests, of any kinds, then raise the error of the first failed one, if any.
    """

def wait_any(requests: Sequence[Request]) -> int:
    """
    Wait until one request is done, of any kinds, and return its position, the first of several; its error
    is left for its own wait().
    """

class File:
    """
    A file with reads and writes at a byte offset, blocking and not.

    Buffers are C-contiguous objects with the buffer protocol (NumPy arrays, bytearray, ...), or a
    list of them for one request scattered over several. Errors are OutcoreError.
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
    """What is under a path: the path itself or its nearest existing parent."""

def engine_name() -> str:
    """ "uring" or "threads"."""

def emulation() -> str:
    """
    What the engine emulates (OUTCORE_THROTTLE, OUTCORE_REQUESTS); empty: nothing.
    """

def engine_reason() -> str:
    """Why the engine is what it is."""

class ExclusiveFile:
    """
    A byte-addressable scratch file of this process (exclusive access file, EAF).

    The name is private to the process: two processes that open "ints" have two files. The file vanishes
    with the process, also when that is killed, unless `keep`: then it is `scratch`/`name` and stays. A name
    opened again in the same process, also after close, finds its bytes; `delete` drops them.

    Offsets and sizes are bytes. Buffers are C-contiguous objects with the buffer protocol (NumPy arrays,
    bytearray, memoryview, ...), whose elements are no Python objects. Small sequential requests are
    combined: written behind and read ahead. Threads may share a file.

    Args:
        name: not empty, without '/'.
        scratch: directory; None: outcore.default_scratch().
        keep: the file outlives the process.
        page_cache: 'auto', 'buffered' (always through the page cache) or 'direct' (past it).
        expected_bytes: size it will have, 0 if unknown. More than is free is ENOSPC at once.

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
        What messages name. On a local disk it is not in the directory, unless kept.
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
    Remove what dead processes of this user on this host left in a scratch directory; returns the paths.
    """

def remove_process_directories() -> None:
    """
    Remove the directories of this process in scratch with all that is in them: it is ending.
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
        """What can still be taken."""

    @property
    def shared(self) -> bool:
        """By all processes of the node; else each has one of its own."""

    @property
    def hard(self) -> bool:
        """Who goes over it fails or is ended."""

def memory_limits(root: str | os.PathLike = "/") -> list[MemoryLimit]:
    """
    All limits that there are, at least that of the machine. Tests have files of their own under `root`.
    """

def control_groups(controller: str, root: str | os.PathLike = "/") -> list[pathlib.Path]:
    """
    Directories of the control groups of this process that a controller may limit, innermost first.
    """

def trim_buffers() -> None:
    """
    Gives memory of transfers to and from disk that is kept for the next ones back to the system.
    """

class Budget:
    """Memory accounted against a limit, in bytes. Thread-safe."""

    @property
    def limit_bytes(self) -> int: ...
    @property
    def origin(self) -> str:
        """Where the limit comes from, if not from the user."""

    @property
    def used_bytes(self) -> int: ...
    @property
    def peak_bytes(self) -> int:
        """The most that was in use at once."""

    def reserve(self, size_bytes: int, what: str) -> None:
        """
        Account for memory. Raises OutcoreError (ENOMEM) with the numbers if it does not fit.
        """

    def release(self, size_bytes: int) -> None: ...

class Group:
    """Processes split off from a world. Made by World.split."""

class WorldOptions:
    """What a world is made of."""

    def __init__(self, *, memory_bytes: int, scratch: str, node_for_each_process: bool) -> None: ...

def watch_in_finalize() -> None:
    """
    From now on MPI_Finalize ends the job if it waits for a process that has died.
    """

class AwaitedCall:
    """A block that waits for processes ends this one if one has died."""

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
        """Memory of this process."""

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
        Free all memory of the world. Collective; may be repeated. Arrays in it are lost, and views of their
        local memory must not be used any more.
        """

    def gather_bytes(self, gate: Callable) -> list:
        """
        The bytes of all processes, in order of rank; each brings its own. Collective.
        """

    def broadcast_bytes(self, gate: Callable) -> bytes:
        """
        The bytes of a root; each process brings its own, which count at the root, and the root. Collective.
        """

    def reduce_numbers(self, gate: Callable) -> numpy.typing.NDArray:
        """
        Reduces an array of float64 or int64 in place, and returns it. Each process brings it, the operation,
        and bytes that must be the same at all. Collective.
        """

    def enter(self, what: str, gate: Callable) -> None:
        """
        Begin a collective step, with bytes that must be the same at all: see World.together.
        """

    def leave(self, gate: Callable) -> None:
        """End a collective step. Raises what the lowest rank brings that fails."""

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
    A number that all processes count up, for dynamic distribution of tasks. Made by
    World.counter. Zero at first.
    """

    def __init__(self, world: World) -> None: ...
    def next(self, count: int = 1) -> int:
        """
        Add `count` and return the value before. Any process and thread, at any time; atomic.
        """

    def reset(self) -> None:
        """Back to zero. Collective."""

class Lock:
    """
    A lock between processes, and between threads; first come, first served. Waits asleep. Made
    by World.lock, used in a `with` block. Releasing it makes what this process has put visible to
    the next one.
    """

    def __init__(self, world: World) -> None: ...
    def acquire(self) -> None:
        """Wait until it is this process's (and thread's) turn."""

    def release(self) -> None:
        """Let the next one have it. Raises OutcoreError if it is not held."""

    def __enter__(self) -> Lock: ...
    def __exit__(self, *exception: object) -> None: ...

class Basis:
    """Shells and functions of a molecule, in libcint's tables."""

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
        """Kinds of shells: those of one kind take equally long."""

class Accuracy:
    """
    The largest steps to which integrals are rounded: the same for all, or in inverse proportion to
    what crude densities [count][n][n] make of them, at most largest_step.
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
        """Of a step: the limit below which quartets are left out at random."""

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
        Flattened images [operations*shells] of libcint's shells, the identity not among them. J and K with
        a screening by it are sums over quartets that stand for their copies.
        """

    @property
    def order(self) -> int:
        """Operations, the identity included."""

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
        """Integrals in the quartets that pass."""

    @property
    def tasks(self) -> int: ...
    def task_integrals(self) -> list[int]:
        """Integrals of each task."""

    def stored_bytes_bound(self, accuracy: Accuracy) -> int:
        """Upper bound of the bytes on disk."""

class KeepRule:
    """Which quartets of shells are kept, and which recomputed."""

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
        A quartet with Schwarz bound Q is kept if factor(ij) factor(kl) worth(Q) >= least. `pair_factors`: of
        pairs of kinds a >= b of shells, at a (a + 1) / 2 + b. `worth`: of bounds from 2**first_exponent on,
        one for each power of two.
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
    def quartets(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """
        [n][8]: pair of kinds of the bra, of the ket, Schwarz bound, density, values, seconds, bytes, weight. Sums over
        all quartets are estimated by those of weight times value, divided by the draws.
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
    Makes draws first, first + stride, ... for `seconds`, at most `most` of them. density [1][n][n]: about that of the molecule. Any number of threads at a time.
    """

def damaged_integral_records(index: bytes, record_bytes: int, path: str) -> list[str]:
    """Reads all records of a kept file: what is damaged, one line for each."""

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
        Part `part` of `parts` of the records of kept files, (name, index) each as commit gave them.
        """

    def commit(self) -> tuple[str, bytes]:
        """
        Puts the records on stable storage; name and index of the file, which stays.
        """

    def index(self) -> bytes:
        """Where this process's records on disk are, for share of all processes."""

    def share(self, indices: Sequence[bytes]) -> None:
        """
        What index gave at each process, by rank: any of them contracts any record from now on.
        """

    def drop(self) -> None:
        """Drops what is stored. Collective with a world."""

    def store(self, thread: int, first_task: int, last_task: int) -> None:
        """Computes, packs and stores what is kept of tasks [first, last)."""

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
        """With tickets: this process's share of the records of all."""

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
        Variance of the energy's error from storing integrals and leaving some out (Hartree^2), its bound, and the
        largest term of what is left out in the variance. `tasks` hands out the tasks of what is not kept.
        """

    def counts(self) -> IntegralCounts: ...

def integral_memory_bytes(
    basis: Basis, threads: int, densities: int, record_bytes: int, prefetch: int, small_below: float
) -> int:
    """
    Bytes that contracting `densities` matrices on `threads` threads takes; record_bytes 0: nothing stored.
    """

class ThreeCenter:
    """
    Three-centre integrals (mn|P). A pair is a row (i, j, column) of int32: shells i >= j, whose
    functions a, b are in column + b * size(i) + a. Any thread.
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
        libcint's tables of both bases, flattened, orbitals first; the addresses of int3c2e_* and int2e_* (sph or
        cart), int3c2e_optimizer and CINTdel_optimizer.
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
        (mn|P) of auxiliary shells [first, last) into the rows of `out`, one for each function P.
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
        Rows as symmetric matrices out[row][m][n]. Elements of no pair are left alone.
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
        As `expand`, of rows (i, j, column, operation) of int32: shells in either order, whose products are those of a
        pair after an operation. out[row][m][n] has characters[operation] signs[operation][m] signs[operation][n] times
        the element of the row, with n of the functions of a shell from places[shell] on; of negative ones there are none.
        """

class ThreeCenterGradient:
    """
    Derivatives of three-centre integrals (mn|P) by the places of atoms. Pairs are those of ThreeCenter. Any thread.
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
        libcint's tables of both bases, flattened, orbitals first; the addresses of int3c2e_ip1_* (sph or cart), int3c2e_ip1_optimizer
        and CINTdel_optimizer.
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
        gradient[atom][x] += sum of z[P][mn] d(mn|P)/dx over P of auxiliary shells [first, last), and over m and n of pairs in both
        orders; z has an element of a symmetric matrix in the column of mn. Atoms of the tables: those of the orbitals, then
        those of the auxiliary basis.
        """

def pair_sums(
    v: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), device="cpu", writable=False)],
    gaps: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    square: bool,
) -> list[tuple[float, float]]:
    """
    For each j the sums over a and b of v[a,j,b]^2 / d and v[a,j,b] v[b,j,a] / d (0 unless `square`), with
    d = gaps[j] - a[a] - b[b].
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
        """uint64, bit q of a string: an electron in orbital q."""

    @property
    def offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        int64[groups + 1]: strings of irrep g have indices offsets[g] to offsets[g + 1].
        """

    def rank(self, mask: int) -> int:
        """The index of a string."""

class CIPanel:
    """
    Some rows of a vector C[alpha, beta] in memory, each with the columns that symmetry allows from one on to the end
    of their sector. Home rows have all of them; on these the same-spin part works. Transposed: rows are beta, columns
    are alpha strings. Elements are undefined until cleared or loaded.
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
        home, others: indices of rows, int64, ascending. begins: of each of the others the first column. dtype float64 or
        float32. In memory rows begin and end at multiples of `unit` bytes from the beginning of their sector.
        """

    def assign(
        self,
        home: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        others: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        begins: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None:
        """Other rows; memory is kept if it is enough. Elements are undefined."""

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
        For rows[first:last] (offset in bytes, array): what the panel has of each, up to the next unit, where rows lie in a
        file. bases, pitches: int64, by irrep of rows: of the first row in bytes, and from a row to the next. Arrays are of
        use until the panel is assigned anew.
        """

    @property
    def nbytes(self) -> int: ...
    def clear(self, threads: int = 1) -> None:
        """All elements 0."""

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
        panel[row + i, column + j] = scale * tile[i, j] (tile[j, i] with `transpose`), for the indices that the panel
        has. A tile lies in one sector of rows and one of columns. Several threads may load different tiles.
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
        What the panel has of tiles of a vector, which lie one after another; parity 1 or -1: of a folded one. tiles:
        int64 [tiles][5], elements before the tile, indices of its first strings, shape.
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
        vector += T, the panel, in these tiles; of a folded vector T + parity T^T. Else as load_tiles.
        """

class CIKernel:
    """
    Products of a Hamiltonian with parts of vectors C[alpha, beta].

    parity 0: H C = opposite_spin (of all holes) + same_spin (of beta) + same_spin on transposed panels (of alpha).
    parity 1 or -1, C = parity C^T: H C = T + parity T^T with T = opposite_spin + same_spin (of beta).
    Any thread, also several at a time; a BLAS of one thread is expected. Panels of a call are its own.
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
        Orbitals are sorted by irrep. one [n][n] and two [n][n][n][n], (pq|rs), float64; different orbitals for each
        spin: (alpha, beta) and (aa, ab, bb), parity 0. spin_shift (Eh): adds spin_shift * (S^2 - M(M+1)), M = |alpha - beta| / 2.
        """

    @property
    def alpha_strings(self) -> CIStrings: ...
    @property
    def beta_strings(self) -> CIStrings: ...
    @property
    def determinants(self) -> int:
        """
        Pairs of strings of the right symmetry; with folding (I, J) and (J, I).
        """

    @property
    def holes(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
        """
        uint64: alpha strings of one electron less, by value. Work is given as ranges of them.
        """

    def rows_of(self, first: int, last: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        Indices of the alpha strings that holes [first, last) reach, ascending.
        """

    def begins_of(self, first: int, last: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        For each row of rows_of the first beta string that the holes meet there, or the end of the sector: they meet all
        from it on. Without folding that is the first of the sector.
        """

    def opposite_spin(self, x: CIPanel, t: CIPanel, first: int, last: int, threads: int = 1) -> None:
        """
        t += the part of an alpha and a beta electron, of holes [first, last); with folding, half of it. Both panels
        have rows_of the range, from begins_of on.
        """

    def same_spin(self, x: CIPanel, t: CIPanel, threads: int = 1) -> None:
        """
        t += the part of two electrons of the columns' spin, of home rows, which are the same in both panels.
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
        sums[p,q,r,s] += <bra|a+_p b+_r b_s a_q|ket>, a of alpha and b of beta electrons, of holes [first, last); with
        folding the density is sums[p,q,r,s] + sums[r,s,p,q]. Panels as for opposite_spin; bra and ket may be one.
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
        sums[p,q,r,s] += <bra|a+_p a+_r a_s a_q|ket> of the columns' spin. Panels as for same_spin; bra and ket may be one.
        Of two and more electrons in all.
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
    One tile of all vectors, as chem/ci/correction.hpp says; adds dot products to `sums`. Any thread.
    """

def ci_dots(
    a: Sequence[Annotated[NDArray, dict(order="C", device="cpu", writable=False)]],
    b: Sequence[Annotated[NDArray, dict(order="C", device="cpu", writable=False)]],
    sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """Dot products [a][b] of tiles, added to `sums`. Any thread."""

def ci_round(
    values: Annotated[NDArray[numpy.float64], dict(order="C", device="cpu")],
    step: float,
    added: Annotated[NDArray[numpy.float64], dict(order="C", device="cpu")] | None = None,
) -> float:
    """
    Rounds to whole multiples of a power of two in place; what was added goes to `added`. Returns the sum of its squares. Any thread.
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
        externals: orbitals of each irrep. kinds (uint8: 0 none, 1 alpha, 2 beta, 3 one of each, 4 two alpha, 5 two
        beta electrons are external), alpha, beta (uint64, internal strings): sorted in this order.
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
        uint8[records]: 1 of those that are their own partner under the exchange of spins.
        """

    def fold(
        self,
        first: int,
        last: int,
        scale: float,
        data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None:
        """
        Records that are their own partner become scale (R + parity R^T), in place.
        """

    def fold_records(
        self,
        records: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        scale: float,
        data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None:
        """The same of some records, one after another."""

class MRCITask:
    """A piece of a product of the Hamiltonian with a vector."""

    @property
    def cost(self) -> float:
        """About that many floating-point operations."""

class MRCIKernel:
    """
    The Hamiltonian on vectors of a multireference CI, in tasks. Any thread, also several at a time; a BLAS of
    one thread is expected.
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
        one [n][n]: internal orbitals, then external ones by irrep (float64). rows: (pq|rs) [pq][rs], r >= s, of
        pairs pq with an internal orbital: p >= q of internal ones, then of each external p all internal q. coulomb,
        exchange: (pp|qq), (pq|pq) [n][n]. Adds constant + spin_shift * (S^2 - M(M+1)), M = |alpha - beta| / 2 (Eh).
        Pairs of external orbitals: with `reserve_external` and `take_external`, or `read_external`.
        """

    @property
    def external_size(self) -> int:
        """Integrals between pairs of external orbitals."""

    def external_rows(
        self,
        c: int,
        column: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
    ) -> list:
        """
        Those of pairs (c, d), d <= c, from column [a][bd] = (ac|bd), b >= d: (first element, values) of each part.
        """

    def reserve_external(self) -> None:
        """Room for all of them in memory."""

    def take_external(
        self,
        c: int,
        column: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """Keeps those of `external_rows` in memory. Any thread, each c once."""

    def read_external(self, array: DiskArrayAccess, slab_elements: int) -> None:
        """
        They are in this line of float64, as `external_rows` has them, and are read in slabs.
        """

    def tasks(
        self,
        max_cost: float,
        max_elements: int = 0,
        units: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
    ) -> list[MRCITask]:
        """
        All tasks; each at most of that cost, and of so many elements of units (0: any), if one hole is not more.
        units: of each record the number of the unit that it is moved in, ascending from 0; None: each is one.
        """

    def units_of(
        self,
        task: MRCITask,
        units: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
    ) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Units, or records, that a task reads and adds to, ascending."""

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
        Adds to t. offsets: where each record that the task meets begins in x and in t. shared: other threads add to t
        as well.
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
        Adds to sums [n][n]: of all tasks the density of each spin times the number of electrons of the other;
        folded, alpha gets that of either spin.
        """

    def exchange(
        self,
        task: MRCITask,
        x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> float:
        """sum_pq <a+_p b+_q b_p a_q>, as far as the task has it."""

    def diagonal(
        self,
        first: int,
        last: int,
        elements: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None:
        """Diagonal elements of records first to last."""

    @property
    def on_disk(self) -> bool:
        """Whether products read integrals between external pairs from an array."""

    @property
    def integral_bytes(self) -> int:
        """In memory."""

    @property
    def work_bytes(self) -> int:
        """What `apply` has in memory of each thread."""

class MRCISinglets:
    """
    Groups of records with two holes in the first orbitals and two external electrons, whose four spins are to be a
    singlet; see chem/mrci/singlets.hpp.
    """

    def __init__(self, space: MRCISpace, inactive: int) -> None: ...
    def __len__(self) -> int: ...
    def records_of(self, first: int, last: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Records of groups first to last, ascending."""

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
        Takes out of groups first to last what is no singlet. offsets: where each of their records begins in data.
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
    Energy of connected triples of closed shells: of virtual orbitals a and b of two blocks and all c of
    a third one; a >= b >= c where blocks are the same. Of a block x (t_jk^dx as [x][j][d][k] and as
    [x][k][d][j], -(ix|lk) as [x][i][l][k] and as [x][l][k][i], t1 [x][i], Fock elements [x][i],
    energies [x]); of two ((ix|yd) as [x][y][d][i], (iy|xd) likewise, t_ij^xy as [x][y][i][j] and as
    [x][y][j][i], (ix|jy) as [x][y][i][j]). The last index of arrays with four has room for a multiple
    of 4. Any thread.
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
    As triples_energy, with derivatives. by_w[a][b][c][i][j][k], also of the other orders of a, b and c that
    are in it where blocks are the same, is by the connected amplitudes; sums: of occupied orbitals [i][j], of
    each block (t1 [x][i], Fock elements [x][i], density [x]), of ab, ac, bc [x][y][i][j], by (ix|jy). One
    thread has them.
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
    Adds to the density [x][y] of all orbitals of the first block what b of the second and all c of the third
    make, c <= b where these are the same. One thread has it.
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
    Energy of connected triples of three orbitals of one spin: a and b of two blocks and all c of a third
    one; a > b > c where blocks are the same. What blocks are: chem/cc/open_triples.hpp. Any thread.
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
    The same of two orbitals a > b of one spin and all c of a block of the other one. Any thread.
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
        For each dimension the first indices of its blocks, from 0 on, rising. The product of the numbers
        of blocks is at most the number of processes.
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
        (begin, end) of what a process holds; OutcoreError (EINVAL) if block-cyclic.
        """

    def local_shape(self, process: int) -> tuple[int, ...]:
        """Shape of the memory of a process."""

    def parts_of(self, process: int, begin: Sequence[int], end: Sequence[int]) -> list[list[list[int]]]:
        """
        What a process holds of a box: for each block [begin, end, index of its first element in the
        memory of the process].
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
        """Of this array in its world; equal at all processes."""

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
        """NumPy view of all of it."""

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
    """What a new disk array is, and how it is kept."""

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
    """What is opened, and how."""

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
        Take part in a transfer that this process cannot make: all get the error of these fields.
        """

    def flush(self, gate: Callable) -> None:
        """With the metadata that this process brings; None: the present ones."""

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

def array_facts(path: str, contained: int = 0) -> tuple[dict[str, str], bytes]:
    """
    What the manifest of a persistent array says, and its metadata. Raises OutcoreError if it is none, or
    damaged.
    """

def verify_array(path: str, contained: int = 0) -> tuple[list[str], int]:
    """
    Read all of a persistent array and check every checksum: what is damaged, one line for each, and how many components are not here, but on local disks of other nodes.
    """

class SharedFileOptions:
    """What a new shared file is; sizes in bytes."""

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
        As read_async, of a list of (offset, buffer). Small ranges that lie close together are read together.
        """

    def writev_async(self, ranges: Sequence[tuple[int, object]]) -> Request:
        """As write_async, of a list of (offset, buffer), which must not overlap."""

    def length(self) -> int:
        """
        The end of the file: the highest byte that any process has begun to write. Not collective.
        """

    def sync(self) -> None:
        """
        Everything this process has written is visible to all. Raises the error of a write that nobody
        waited for. Not collective.
        """

    def flush(self) -> None:
        """
        Everything written by any process is on stable storage. Collective; raises as sync does.
        """

    def close(self) -> None:
        """
        Wait for everything and close; the bytes are gone. Collective; raises as sync does. May be repeated.
        """

    def destroy(self) -> None:
        """
        As close, for bytes that are not wanted: no errors of writes. Collective.
        """

    @property
    def closed(self) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def hard_limit(self) -> int:
        """In bytes; 0: none."""

    @property
    def stripe(self) -> int:
        """Bytes that lie in one component file, before the next one's turn."""

    @property
    def components(self) -> int:
        """Number of component files."""

    @property
    def placement(self) -> str: ...

class RecordFileOptions:
    """What a new record file is; sizes in bytes."""

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
        """Write a record, of whatever size it was before."""

    def get(self, record: int) -> bytes:
        """The bytes of a record. OutcoreError (ENOENT) if there is none."""

    def get_into(self, record: int, buffer: object) -> int:
        """
        Read a record into a buffer that is long enough, else OutcoreError (EMSGSIZE); returns its bytes. What
        of the buffer lies behind them may be changed.
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
        How long a buffer must be for get_into, without reading the disk: the size of the record and up to a
        ninth and 64 bytes more. None if there is none.
        """

    def erase(self, record: int) -> None:
        """Nothing, if there is none."""

    def sync(self) -> None:
        """
        All puts of this process are complete and visible to all. Raises the error of one that nobody waited
        for. Not collective.
        """

    def flush(self) -> None:
        """All records are on stable storage. Collective; raises as sync does."""

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
        """Of the file, by all processes together, with space of old versions."""

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
        """Bytes of the smallest; 0 if there was none."""

    @property
    def most(self) -> int:
        """Bytes of the largest."""

class RecordStoreCounts:
    """Records that one process moved; those of the file are among all."""

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
        Collective. sizes: numbers of each record. memory_bytes: of each process, for packed records.
        reserve_bytes: of the memory of all, which idle records leave to others. placement: of the file.
        """

    def get(
        self,
        records: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None:
        """Records, ascending, one after another."""

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
        Each number with at most this error; 0: as it is. idle: others have memory first.
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
        Adds to records, each atomically; sums are stored with at most this error.
        """

    def erase(
        self,
        records: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None:
        """They are zero again."""

    def set_reserve(self, bytes: int) -> None:
        """Bytes of memory that idle records leave to others from now on."""

    def close(self) -> None:
        """The records are gone. Collective; may be repeated."""

    @property
    def counts(self) -> RecordStoreCounts: ...
    def place(
        self,
        records: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        Packed bytes of each: positive in memory, negative in the file, 0 of none.
        """

def pack_numbers(
    numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    error: float,
) -> bytes:
    """Numbers packed, each with at most this error; 0: as they are."""

def unpack_numbers(
    packed: bytes,
    error: float,
    numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """
    The numbers again. OutcoreError (EIO) for what pack_numbers never made.
    """

class BlockSparseArguments:
    """What a new block-sparse array is, and how it is kept."""

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
        """Number of the tiles that are there."""

    def nonzero_tiles(self) -> list[list[int]]:
        """Indices of the tiles that are there, in order of their numbers."""

    def sync(self) -> None: ...
    def flush(self, gate: Callable) -> None:
        """With the metadata that this process brings; None: the present ones."""

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
    out = alpha * value, or added to it, of any strides; as tensor/tiles.hpp says. Any thread.
    """

def tensor_multiply(left: object, right: object, out: object, dtype: str, alpha: object, add: bool) -> bool:
    """
    out = alpha left right, or added to it, matrices of elements that BLAS multiplies; false, and nothing is done, if neither rows nor columns have them side by side. Any thread.
    """

def tensor_has_blas() -> bool:
    """Whether SciPy's BLAS can be called."""

def tensor_pack_pairs(x: object, plus: object, minus: object, dtype: str, n: int, diagonal: float) -> None:
    """
    Sums and differences of pairs of elements, as tensor/tiles.hpp says. Any thread.
    """

def tensor_unpack_pairs(x: object, plus: object, minus: object, dtype: str, n: int, diagonal: float) -> None:
    """The reverse. Any thread."""

class Boxes:
    """An array as products see it: boxes of it come and go."""

    @staticmethod
    def of_memory(array: object, shape: Sequence[int], dtype: str, writes: bool) -> Boxes:
        """Of an array of NumPy."""

    @staticmethod
    def of_ones(one: object, rank: int, dtype: str) -> Boxes:
        """Boxes whose elements are all `one`."""

    @staticmethod
    def of_global(array: object) -> Boxes:
        """Of the native part of a GlobalArray."""

    @staticmethod
    def of_disk(array: object) -> Boxes:
        """Of the native part of a disk array."""

    @staticmethod
    def of_python(moves: object) -> Boxes:
        """Of an object that moves boxes: outcore.tensor.plan.loop.Moves."""

    @staticmethod
    def of_tiles(table: TileTable, flat: Boxes, dtype: str, max_bytes: int) -> Boxes:
        """Of tiles in an array of one dimension."""

    @staticmethod
    def of_sparse(table: TileTable, array: object, max_bytes: int) -> Boxes:
        """Of the native part of a BlockSparseArray."""

    def section(self, axis: int, begin: int) -> Boxes:
        """The part that begins at a place along an axis."""

class TileTable:
    """
    Which stored tile each tile of a layout comes from: as tensor/tiled_boxes.hpp says.
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
    What a product multiplies, in which panels and which order: tensor/product.hpp.
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
    What the processes of a node share for a product: tensor/shared_panels.hpp. Collective to make.
    """

    def __init__(
        self, world: World, slots: Sequence[int], largest_bytes: Sequence[int], units: int
    ) -> None: ...
    def fail(self) -> None:
        """The others wait for no panel of this process any more."""

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
    This process's part of a product: elements got of the left and of the right operand, elements put, operations. `multiply`: the name of a type that BLAS multiplies, or a function. `watch`: called now and then with the fraction that is done and complete tasks; true ends the work. `memory`, `shares`: where processes share panels, the group of the result that they divide, and bounds.
    """
