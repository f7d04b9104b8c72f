"""Progress of a contraction or a program, as a caller gets it: the finished fraction, and the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outcore.base.console import Lines, visible
from outcore.base.notebook import Bar, in_notebook

if TYPE_CHECKING:
    from outcore.job.world import World

_EVERY_S = 0.1  # between two calls
_TRUST = 0.05  # weight of the prediction before the run shows its speed, as a share of the predicted time


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes:
        statement: the one under way, or the last one that ended.
        task, tasks: panels of its result that are done or were given to other processes, and all of them.
        fraction: of the whole run that is done, by predicted time.
        seconds: since the run began.
        seconds_left: until its end, by predicted time and the speed of the run so far.
    """

    statement: str
    task: int
    tasks: int
    fraction: float
    seconds: float
    seconds_left: float


Tell = Callable[[Progress], None] | bool
"""The argument `progress` of a caller: a function that process 0 calls, ten times a second at most; True: a bar in
the terminal, or in the output of a notebook's cell."""

Told = Callable[[float, int, int], None]
"""The function that a part of a run calls, with its finished fraction, the number of a task, and how many there
are."""


class Watch:
    """Follows a run of parts whose times are predicted. An error that `tell` raises ends the run at all processes.

    Args:
        tell: is called with the progress.
        predicted_seconds: of the whole run.
    """

    def __init__(self, tell: Callable[[Progress], None], predicted_seconds: float) -> None:
        self._tell, self._predicted = tell, max(predicted_seconds, 1e-9)
        self._begun = time.monotonic()
        self._told_at = -_EVERY_S
        self._done = self._begin_done = 0.0  # predicted seconds of parts that are over: now, at the begin
        self._statement, self._part = "", 0.0
        self._is_over = False  # the part has ended, and `tell` was called

    def went_on(self, predicted_seconds: float) -> None:
        """An earlier run has done so much."""
        self._done = self._begin_done = predicted_seconds

    def begin(self, statement: str, predicted_seconds: float) -> None:
        """A part begins; the one before it is over."""
        self._done += self._part
        self._statement, self._part, self._is_over = statement, predicted_seconds, False

    def __call__(self, fraction: float, task: int, tasks: int) -> None:
        now = time.monotonic()
        if (now - self._told_at < _EVERY_S and fraction < 1) or self._is_over:
            return
        self._is_over = fraction >= 1
        self._told_at = now
        passed = now - self._begun
        done = min(self._done + fraction * self._part, self._predicted)
        trust = _TRUST * self._predicted
        slower = (passed + trust) / (done - self._begin_done + trust)
        left = (self._predicted - done) * slower
        self._tell(Progress(self._statement, task, tasks, done / self._predicted, passed, left))


@contextmanager
def watching(tell: Tell | None, world: World, predicted_seconds: float) -> Iterator[Watch | None]:
    """The Watch of a run, for the caller's `tell`; None at other processes than 0, and without `tell`."""
    if not tell or world.rank != 0:
        yield None
    elif tell is True and in_notebook():
        bar = Bar()
        yield Watch(
            lambda found: bar.show(found.statement, found.fraction, f"{found.seconds_left:.0f} s left"),
            predicted_seconds,
        )
    elif tell is True:
        with _bar() as show:
            yield Watch(show, predicted_seconds)
    else:
        yield Watch(tell, predicted_seconds)


@contextmanager
def _bar() -> Iterator[Callable[[Progress], None]]:
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bars

    text, left = (TextColumn(name, markup=False) for name in ("{task.description}", "{task.fields[left]}"))
    with Bars(text, BarColumn(), TaskProgressColumn(), left, console=Lines().rich) as bars:
        bar = bars.add_task("", total=1.0, left="")

        def show(found: Progress) -> None:
            left = f"{found.seconds_left:.0f} s left"
            bars.update(bar, description=visible(found.statement), completed=found.fraction, left=left)

        yield show
