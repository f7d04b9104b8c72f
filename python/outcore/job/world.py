"""The processes that work together: `World`.

    with outcore.World() as world:
        tasks = world.counter()
        while (task := tasks.next()) < 1000:
            ...
        total = world.all_reduce(mine)

A process that no launcher started is a world of one, without MPI.
"""

from __future__ import annotations

import atexit
import errno
import hashlib
import os
import pickle
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ContextDecorator, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import numpy as np

from outcore import _core
from outcore.base import interrupts, keywords, threads
from outcore.base.errors import OutcoreError, as_fields, printable
from outcore.job import arguments, launch
from outcore.job.collective import in_gate
from outcore.job.unclosed import Unclosed

if TYPE_CHECKING:
    from types import TracebackType

    from mpi4py.MPI import Intracomm

T = TypeVar("T")
Procedure = Callable[[int, bytes, "np.ndarray[Any, np.dtype[np.uint8]]"], Any]

EXIT_GRACE_S = 10.0  # a process that ends waits this long for the others to end too

_open: list[World] = []  # kept until they are closed, since the garbage collector cannot close collectively


class World(_core.World):
    """Processes, their nodes, memory budget and scratch. Making and closing it is collective; so are the methods
    that say so: all processes call them in the same order, from one thread at a time. If one process calls
    something else, or with other arguments, the call raises OutcoreError (EINVAL) at all processes.

    Args:
        comm: an mpi4py communicator; None: all processes of the job, or this process alone if no launcher
            started it; "self": this process alone. The MPI must be the one that mpi4py has loaded, with
            MPI_THREAD_MULTIPLE (its default).
        memory: budget of each process for arrays, caches and buffers, in bytes or as "2GB"; None: half of this
            process's share of the memory of its node.
        scratch: directory for scratch; None: the fastest node-local one, chosen when it is needed.
        nodes: "hosts" (None), or "processes": each process counts as a node, so that transfers between nodes
            can be tried on one machine. OUTCORE_NODES=processes in the environment does the same.

    A child made by fork (os.fork, multiprocessing's "fork") cannot use the world of its parent, nor any object made
    in that world: calls raise OutcoreError (EBADF) at once, except `close`, which does nothing there. It may make a
    World("self") of its own, unless its parent is one of several processes under MPI. Workers that are to
    use Outcore are best started by multiprocessing's "spawn" or "forkserver".

    Use it in a `with` block, or call `close`. `budget` accounts the memory; `node`, `nodes`, `node_rank` and
    `node_size` say where this process runs.

    Raises:
        OutcoreError: ENOTSUP (no MPI, or not a usable one), ENOENT, EACCES (scratch), EINVAL; the same at all. If
            `comm` is no communicator, EINVAL at this process alone, since it names no other processes.
    """

    held_bytes: int | None = None
    """In a command whose memory was predicted: bytes that each process holds besides the plans of methods."""

    @keywords.checked()
    def __init__(
        self,
        comm: Intracomm | Literal["self"] | None = None,
        *,
        memory: int | str | None = None,
        scratch: str | os.PathLike[str] | None = None,
        nodes: str | None = None,
    ) -> None:
        if comm is not None and comm != "self" and not hasattr(comm, "py2f"):
            raise OutcoreError(
                errno.EINVAL, f"World({comm!r})", detail="a communicator, None or 'self' is needed"
            )
        self.comm = launch.world() if comm is None else None if isinstance(comm, str) else comm
        communicator = None
        if self.comm is not None and self.comm.Get_size() > 1:
            launch.load_transport(self.comm)
            communicator = self.comm.py2f()

        def options() -> _core.WorldOptions:
            if nodes not in (None, "hosts", "processes"):
                raise ValueError(f"nodes={nodes!r} is neither 'hosts' nor 'processes'")
            return _core.WorldOptions(
                memory_bytes=arguments.size_bytes("memory", memory),
                scratch=arguments.path("scratch", scratch),
                node_for_each_process=nodes == "processes",
            )

        in_gate("make a world", lambda gate: _core.World.__init__(self, communicator, gate), options)
        self.unclosed = Unclosed()
        _open.append(self)

    def split(self, color: int, key: int = 0, scratch: str | os.PathLike[str] | None = None) -> World | None:
        """Makes a world of the processes of equal color, ordered by `key`, then by rank in this world; returns None
        for a negative color. The new world has its own arrays and collective calls. It shares the budget with this
        world, and also the scratch directory, unless `scratch` gives the group another one. All processes of this
        world can reach its arrays (`DiskArray.share`). Collective; so is closing each part, over its processes.

        Raises: OutcoreError at all processes of a group if its scratch directory cannot be used."""
        with self.together("split"):
            mine = arguments.integer("color", color, bits=32), arguments.integer("key", key, bits=32)
            place = arguments.path("scratch", scratch)
        group = self.split_group(*mine)
        if group is None:
            return None
        part = World.__new__(World)
        _core.World.__init__(part, group, self, place)
        part.comm = None
        part.unclosed = Unclosed()
        _open.append(part)
        return part

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.node_count

    def close(self) -> None:
        """Frees all memory of the world. Collective; may be repeated. Arrays in memory and scratch are lost; views
        of their local memory must not be used any more. While one process waits here, other collective calls of
        other processes raise errors.

        Persistent arrays that are still open to write are committed, with a ResourceWarning for each. If an
        exception leaves the `with` block of the world, at any process, they keep the state that was committed last,
        with a RuntimeWarning for each.

        Raises OutcoreError if such an array could not be committed (ENOSPC, say); the world is closed then, too."""
        self._end(commits=True)

    def _end(self, *, commits: bool) -> None:
        try:
            if commits and not self.closed:
                self.unclosed.end(self)
        finally:
            super().close()
            if self in _open:
                _open.remove(self)
            self.unclosed.lose(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        ends = isinstance(error, SystemExit) and not error.code  # sys.exit() is no failure
        self._end(commits=kind is None or ends)

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"{self.node_count} nodes, {self.description}"
        return f"<outcore.World: process {self.rank} of {self.size}, {where}>"

    def counter(self) -> _core.Counter:
        """A counter that all processes increase, zero at first. Collective."""
        return _core.Counter(self)

    def lock(self) -> _core.Lock:
        """A lock between processes. Collective."""
        return _core.Lock(self)

    def broadcast(self, value: T, root: int = 0) -> T:
        """Returns the object of process `root` at all processes, by pickling it. Collective."""
        is_root = self.rank == root

        def bring() -> tuple[bytes, int]:
            return pickle.dumps(value) if is_root else b"", arguments.integer("root", root, bits=32)

        data = in_gate("broadcast", self.broadcast_bytes, bring)
        return value if is_root else pickle.loads(data)

    def gather(self, value: T) -> list[T]:
        """Returns the objects of all processes, in order of rank, at all processes, by pickling them. Collective;
        for small objects."""
        every = in_gate("gather", self.gather_bytes, lambda: pickle.dumps(value))
        return [pickle.loads(each) for each in every]

    def all_reduce(self, value: Any, op: str = "sum") -> Any:
        """The sum, "min" or "max" of a number or of the elements of an array over all processes, the same bits at
        all of them. Collective. Returns a number, or a new array of the same shape and type."""
        dtype, shape = np.dtype(float), ()

        def bring() -> tuple[np.ndarray[Any, Any], str, bytes]:
            nonlocal dtype, shape
            array = np.asarray(value)
            dtype, shape = array.dtype, array.shape
            return _numbers(array, arguments.text("op", op)), op, f"{op} {dtype} {shape}".encode()

        numbers = in_gate("all_reduce", self.reduce_numbers, bring)
        result = numbers.view(np.complex128) if dtype.kind == "c" else numbers
        result = result.astype(dtype, copy=False).reshape(shape)
        return result if isinstance(value, np.ndarray) else result.item()

    def register(self, name: str, procedure: Procedure) -> int:
        """Makes a procedure known at all processes, each with its own function, and returns its number. Collective.

        `procedure(caller, header, payload)` gets the rank of the caller, bytes, and a read-only uint8 array, which
        may lie in memory of the caller: copy the data that are needed after the call. It returns the reply (any
        object with the buffer protocol) or None. A thread of this process runs it (several calls at once, in any
        order), also while the process computes, if other Python threads can run then. It may use this process's
        part of arrays, and may wait. If it raises, the caller gets the error as OutcoreError.

        Raises:
            OutcoreError: EEXIST, if the name is taken; the same at all.
        """

        def serve(caller: int, header: bytes, payload: Any) -> tuple[Any, Any]:
            try:
                reply = procedure(caller, header, payload)
                return as_fields(None, name), np.ascontiguousarray(reply) if isinstance(
                    reply, np.ndarray
                ) else reply
            except Exception as error:
                return as_fields(error, f"procedure '{name}'"), None

        with self.together("register a procedure"):
            arguments.text("name", name)
            if not callable(procedure):
                raise TypeError(f"procedure '{name}' is {procedure!r}, no function")
        return self.register_procedure(name, serve)

    def unregister(self, name: str) -> None:
        """Forgets a procedure, once calls of it that are being served here have ended. Collective."""
        with self.together("unregister a procedure"):
            number = self.procedure(arguments.text("name", name))
        self.unregister_procedure(number)

    def call(
        self,
        process: int,
        procedure: str | int,
        header: bytes = b"",
        payload: Any = None,
        *,
        reply: Any = None,
        max_reply_bytes: int = 1 << 20,
    ) -> _core.Request:
        """Calls a procedure at a process (this one, too); `wait` of the result gives the reply. Returns at once; if
        very many calls to the process are outstanding it waits for some to end. Any thread, not collective.

        Args:
            procedure: its name or number.
            header: at most 3 KiB.
            payload: any C-contiguous object with the buffer protocol, no Python objects, up to 1 GiB; it must not
                change until the call is complete.
            reply: buffer for the reply, C-contiguous and writable; None: a buffer is made.
            max_reply_bytes: room for the reply if `reply` is None.

        Raises:
            OutcoreError: here: EINVAL (no such process), ENOENT (no such procedure), EMSGSIZE. At `wait`: the error
                of the procedure, EMSGSIZE (the reply does not fit into its buffer).
        """
        number = self.procedure(procedure) if isinstance(procedure, str) else procedure
        return self.call_procedure(process, number, header, payload, reply, max_reply_bytes)

    def together(self, what: str, *arguments: Any) -> AbstractContextManager[None]:
        """A step that succeeds at all processes or fails at all: if the block raises at any process, all raise the
        error of the lowest rank that has one, as OutcoreError. Collective. The block must not wait for
        other processes. Also a decorator: `@world.together("read input")`.

        `what` and `arguments` (which must be picklable) have to be the same at all processes.
        """
        return _Step(self, what, lambda: arguments)

    def together_with(self, what: str, bring: Callable[[], Any]) -> AbstractContextManager[None]:
        """As `together`, with arguments that the function `bring` makes inside the gate: if it raises, all
        processes raise its error, and none runs the block."""
        return _Step(self, what, bring)


class _Step(ContextDecorator):
    """Returned by `World.together`, for a block or a function.

    A world of one process passes a gate only when there is an error to report."""

    def __init__(self, world: World, what: str, bring: Callable[[], Any]) -> None:
        self._world, self._what, self._bring = world, what, bring

    def __enter__(self) -> None:
        world = self._world
        if world.size > 1:
            self._begin(self._bring)
            return
        _check_open(world)
        try:
            self._bring()
        except BaseException as error:
            self._begin(partial(_raise, error))

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, traceback: TracebackType | None
    ) -> None:
        world = self._world
        if failure is None and world.size == 1:
            _check_open(world)
            return
        try:
            in_gate(printable(str(self._what)), world.leave, partial(_raise, failure))
        except OutcoreError as common:
            common.collective = True
            raise

    def _begin(self, bring: Callable[[], Any]) -> None:
        """Passes the first gate."""
        label = printable(str(self._what))

        def print_of_arguments() -> bytes:
            return hashlib.sha256(pickle.dumps(bring())).digest()

        in_gate(label, lambda gate: self._world.enter(label, gate), print_of_arguments)


def _check_open(world: World) -> None:
    """Raises OutcoreError (EBADF) if the world was closed, or was made before this process was forked."""
    _ = world.description  # raises unless the world is open


def _raise(error: BaseException | None) -> None:
    if error is not None:
        raise error


def shared(comm: Intracomm | None) -> World:
    """The world of a communicator (None: this process alone), for callers without a world of their own. The first
    call makes it, with the default options, and is collective; the world is closed when the communicator is freed,
    or at the end of the process. The caller must not close it."""
    if comm is None:
        return _alone()
    present = comm.Get_attr(_shared_key())
    if isinstance(present, World) and not present.closed:
        return present
    world = World(comm)
    comm.Set_attr(_shared_key(), world)
    return world


@cache
def _alone() -> World:
    return World("self")


@cache
def _shared_key() -> int:
    """The key under which a communicator keeps its world."""
    from mpi4py import MPI

    return MPI.Comm.Create_keyval(delete_fn=lambda _comm, _key, world: world.close())


def _numbers(array: np.ndarray[Any, Any], op: str) -> np.ndarray[Any, Any]:
    """A copy of an array in the form that native code reduces: contiguous float64 or int64, one dimension."""
    if array.dtype.kind in "iu" and array.dtype != np.uint64:
        return np.array(array, np.int64, copy=True).ravel()
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return np.array(array, np.float64, copy=True).ravel()
    if array.dtype.kind == "c" and op == "sum":
        return np.array(array, np.complex128, copy=True).ravel().view(np.float64)
    raise OutcoreError(
        errno.EINVAL,
        f"all_reduce of {array.dtype} with op='{op}'",
        detail="integers and floats, or a complex sum",
    )


def _forget() -> None:
    """Called in a forked child: the worlds of its parent are not its own, so it forgets them without closing."""
    for world in _open:
        world.unclosed.clear()
    _open.clear()
    _alone.cache_clear()


os.register_at_fork(after_in_child=_forget)


_closers: list[threading.Thread] = []


def let_others_fail() -> None:
    """Begins to close all worlds of this process, which is ending alone, so that collective calls of the other
    processes raise errors."""
    with suppress(OutcoreError):  # without a thread for it this process ends the job
        _closers.append(threads.start("outcore-close", _close_quietly))


def _close_quietly() -> None:
    # A signal may have interrupted a collective step: the arguments of other processes then make no sense here.
    for world in list(_open):
        with suppress(OutcoreError, MemoryError, ValueError):
            world._end(commits=False)


def _close(world: World) -> None:
    failed = getattr(sys, "last_value", None) is not None and not hasattr(sys, "ps1")
    try:
        world._end(commits=not failed)
    except OutcoreError:
        if not world.closed:  # else the thread of `let_others_fail` has closed it
            raise


@atexit.register
def _close_all() -> None:
    """Closes all open worlds at the end of the process. If the other processes do not end as well, it ends the job,
    because they would wait for ever.

    It removes scratch here, not at the exit of the process: that comes after MPI_Finalize, when a launcher may kill
    the process as soon as another one has ended, and when signals have their default effect again."""
    _alone.cache_clear()
    for closer in _closers:
        closer.join(EXIT_GRACE_S)
    for world in list(_open):
        if not _closed_in_time(world):
            if interrupts.ending() is None:
                text = "has ended without closing its world while others go on; ending the job"
                print(f"outcore: process {world.rank} {text}", file=sys.stderr, flush=True)
            launch.abort(interrupts.ending() or 1)
        if world.comm is not None and world.comm.Get_attr(_shared_key()) is world:
            world.comm.Delete_attr(_shared_key())
    _core.remove_process_directories()


def _closed_in_time(world: World) -> bool:
    try:
        closing = threads.start("outcore-close", _close, world)
    except OutcoreError:  # without a thread there could be no limit to the wait
        return False
    closing.join(EXIT_GRACE_S)
    while closing.is_alive() and world.unclosed.committing:  # all processes are here, and write
        closing.join(EXIT_GRACE_S)
    return not closing.is_alive()
