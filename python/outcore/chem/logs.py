"""Output of method objects while they compute: lines on a stream, as those of PySCF, and Python's logging."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from outcore.job.world import World

# Levels of `verbose`, as in PySCF: an object writes the lines of its level and of all lower levels.
WARN = 2
NOTE = 3  # results
INFO = 4  # iterations, and where arrays are
DEBUG = 5

_LEVELS = {WARN: logging.WARNING, NOTE: logging.INFO, INFO: logging.INFO, DEBUG: logging.DEBUG}

# Without a handler of the program, logging would write warnings to standard error.
logging.getLogger("outcore").addHandler(logging.NullHandler())


class Teller(Protocol):
    """An object of Outcore, or of a class of PySCF that Outcore derives from."""

    verbose: int
    stdout: Any

    @property
    def world(self) -> World: ...


class Logged:
    """An object of a method that reports its progress; see `tell`."""

    world: World
    verbose: int = NOTE
    stdout: Any = None  # standard output, as it is when a line is written

    def log_as(self, other: Any) -> None:
        """Takes level and stream from another object: a molecule or a method of PySCF."""
        self.verbose, self.stdout = other.verbose, other.stdout

    def log(self, level: int, text: str, *values: object) -> None:
        """A line; see `tell`."""
        tell(self, level, text, *values)


def tell(teller: Teller, level: int, text: str, *values: object) -> None:
    """Writes a line at the first process. It is formatted with % only if the stream or a logger takes it.

    The stream `stdout` of the object gets it if `verbose` is at least its level: 0 none, 3 results, 4 iterations as
    well. The logger of the module of its class, such as `outcore.chem.cc.ccsd`, gets it whatever `verbose` is.
    """
    if teller.world.rank:
        return
    logging.getLogger(_module(type(teller))).log(_LEVELS[level], text, *values)
    if teller.verbose >= level:
        print(text % values if values else text, file=teller.stdout or sys.stdout, flush=True)


def _module(kind: type) -> str:
    """The module of the first class that is Outcore's: a program may have a subclass."""
    return next(each.__module__ for each in kind.__mro__ if each.__module__.startswith("outcore."))
