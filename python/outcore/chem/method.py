"""The base class of method objects: processes, memory, threads, settings as attributes, checkpoint, output,
closing."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypedDict

from outcore.base import keywords
from outcore.base.errors import OutcoreError
from outcore.chem.logs import Logged
from outcore.job import launch, preflight
from outcore.job.processes import free_memory_of_each, make_world
from outcore.job.resources import Allowance, parse_bytes
from outcore.job.world import World

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


Directory = str | os.PathLike[str] | None


class Among(TypedDict, total=False):
    """Arguments of all methods that some constructors take among their settings. checkpoint: see `Method`."""

    checkpoint: Directory


class Means(NamedTuple):
    """Resources that an object may use. memory_bytes: of all processes together; None: half of the free memory.
    threads: of each process."""

    world: World
    memory_bytes: int | None
    threads: int

    @classmethod
    def of(
        cls,
        memory: int | str | None,
        scratch: str | None,
        threads: int | None,
        comm: Intracomm | World | None,
    ) -> Means:
        """Reads the arguments of a constructor; a communicator becomes a new world. Collective."""
        size = None if memory is None else parse_bytes(memory)
        world = comm if isinstance(comm, World) else make_world(comm, size, scratch)
        return cls(world, size, threads or launch.threads_per_rank())


class Method(Logged):
    """The base of all methods. A constructor begins with `_open`, and ends with `_opened`.

    The fields of `settings`, a frozen dataclass, are attributes: `ci.max_cycle = 100` is `ci.set(max_cycle=100)`.
    From `_opened` on a public name that the class does not have is an AttributeError, not a new attribute.

    `checkpoint` is the directory in which finished work is kept, and looked for first; None: nothing is kept. It is
    an argument of every constructor, and can be set until something has been kept.

    The thread of the caller calls `on_iteration` after each iteration. Any thread may call `on_progress(part,
    fraction)` during a part of the work. `on_warning(line)` gets each reason to doubt a result; without it,
    Python's warnings get it.
    """

    title: ClassVar[str]  # the name of the method in errors
    fixed: ClassVar[Collection[str]] = ()  # settings that `set` refuses once `_is_fixed`
    beside: ClassVar[Collection[str]] = ()  # names that `set` accepts, but no fields of `settings`

    settings: Any
    _kept_in: Path | None = None
    world: World
    threads: int
    memory_bytes: int | None
    on_iteration: Callable[..., None] | None
    on_progress: Callable[[str, float], None] | None
    on_warning: Callable[[str], None] | None

    def _open(
        self,
        settings: Any,
        *,
        memory: int | str | None,
        scratch: str | None,
        threads: int | None,
        comm: Intracomm | World | None,
        checkpoint: Directory = None,
        told_by: Any = None,
    ) -> None:
        """Sets up everything that all constructors have in common. told_by: the PySCF object that gives this object
        its `verbose` and `stdout`. Collective."""
        self.settings = settings
        if told_by is not None:
            self.log_as(told_by)
        self.on_iteration = self.on_progress = self.on_warning = None
        self._owns_world = not isinstance(comm, World)
        self.world, self.memory_bytes, self.threads = Means.of(memory, scratch, threads, comm)
        self._kept_in = directory_of(self.world, self.title, checkpoint)

    @property
    def checkpoint(self) -> Path | None:
        """The directory in which finished work is kept; None: nothing is kept."""
        return self._kept_in

    def _keep_in(self, directory: Path | None) -> None:
        """Another checkpoint than that of the constructor. Collective."""
        self._kept_in = directory

    def _opened(self) -> None:
        self._is_open = True

    def means(self) -> Means:
        """Resources of this object, for other steps that use the same."""
        return Means(self.world, self.memory_bytes, self.threads)

    def _free(self) -> Allowance:
        """Memory that is still free for each process. Collective."""
        return free_memory_of_each(self.world, self.memory_bytes, self.threads)

    def progress(self, part: str) -> Callable[[float], None]:
        """A function that reports the finished fraction of a part of the work."""

        def tell(fraction: float) -> None:
            if self.on_progress is not None:
                self.on_progress(part, fraction)

        return tell

    # ---- settings as attributes ----

    def _settable(self) -> list[str]:
        return [*(each.name for each in fields(vars(self)["settings"])), *self.beside, "checkpoint"]

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            if "_is_open" not in vars(self) or name[0] == "_" or name in vars(self):
                super().__setattr__(name, value)
            elif name in (settable := self._settable()):
                self.set(**{name: value})
            elif hasattr(type(self), name) or any(name in _declared(each) for each in type(self).__mro__):
                super().__setattr__(name, value)
            else:
                raise AttributeError(
                    f"{type(self).__name__} of Outcore has no '{name}': {keywords.hint(name, settable)}"
                )

        def __getattr__(self, name: str) -> Any:
            if name[0] != "_" and "settings" in vars(self) and name in self._settable():
                return getattr(self.settings, name)
            raise AttributeError(f"{type(self).__name__} of Outcore has no '{name}'")

    def set(self, **settings: Any) -> Self:
        """Changes settings. Collective.

        Raises OutcoreError (EINVAL): the name is unknown, the value is out of range, or existing data depends on
        the setting."""
        with self.world.together(self.title, sorted((k, repr(v)) for k, v in settings.items())):
            names = self._settable()
            for name in settings:
                if name not in names:
                    raise self._refused(f"no setting is '{name}': {keywords.hint(name, names)}")
            fixed = sorted(set(settings) & set(self.fixed)) if self._is_fixed else []
            if fixed:
                raise self._refused(
                    f"integrals are made already; make a new object for another {', '.join(fixed)}"
                )
        directory = directory_of(self.world, self.title, settings.get("checkpoint"))
        others = {name: value for name, value in settings.items() if name != "checkpoint"}
        if others:
            with self.world.together(self.title):
                self._take_settings(others)
        if "checkpoint" in settings:
            self._keep_in(directory)
        return self

    @property
    def _is_fixed(self) -> bool:
        """Whether data that depends on the `fixed` settings exists."""
        return True

    def _take_settings(self, settings: dict[str, Any]) -> None:
        self.settings = replace(self.settings, **settings)

    def _refused(self, detail: str) -> OutcoreError:
        return OutcoreError(errno.EINVAL, self.title, detail=detail)

    # ---- life ----

    def _give_back(self) -> None:
        """Frees everything that this object has made in its world. May be repeated. Collective."""

    def close(self) -> None:
        """Frees everything that the processes share. May be repeated. Collective."""
        if not self.world.closed:
            self._give_back()
            if self._owns_world:
                self.world.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: object
    ) -> None:
        if kind is None:
            self.close()
        elif self._owns_world:  # the other processes may be elsewhere; kept files can be reopened at once
            self.world.__exit__(kind, error, traceback)


def directory_of(world: World, title: str, checkpoint: Directory) -> Path | None:
    """The directory of a checkpoint, as a caller gives it. Collective.

    Raises OutcoreError: EINVAL (no path), or what is wrong with the directory, which is made later: see
    `preflight.check_directory`."""
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, str | os.PathLike) or not os.fspath(checkpoint):
        raise OutcoreError(errno.EINVAL, title, detail=f"checkpoint={checkpoint!r} names no directory")
    path = Path(checkpoint)
    with world.together("write checkpoint", str(path)):
        if world.rank == 0:
            preflight.check_directory(path, "write checkpoint")
    return path


def _declared(kind: type) -> Collection[str]:
    names: Collection[str] = vars(kind).get("__annotations__", ())
    return names
