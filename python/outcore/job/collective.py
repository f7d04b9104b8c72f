"""Common parts of collective calls: the gate that they begin with, and the end of a `with` block."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from outcore.base.errors import Fields, OutcoreError, as_fields

if TYPE_CHECKING:
    from types import TracebackType

T = TypeVar("T")
Result = TypeVar("Result")
Gate = Callable[[], tuple[Fields, T | None]]
"""Native code calls it inside its gate: it returns the fields of an error, or of none, and this process's part."""


def in_gate(what: str, call: Callable[[Gate[T]], Result], bring: Callable[[], T]) -> Result:
    """Makes a collective call of the native module. `bring` runs inside its gate: it checks and returns the
    arguments of this process, and must not wait for other processes.

    If it raises at one process, all processes raise the same OutcoreError; at that process the exception is its
    cause. An exception that ends the program (Ctrl-C) is raised unchanged at that process.
    """
    failure: BaseException | None = None

    def gate() -> tuple[Fields, T | None]:
        nonlocal failure
        try:
            return as_fields(None, what), bring()
        except BaseException as error:
            failure = error
            return as_fields(error, what), None

    try:
        return call(gate)
    except OutcoreError as common:
        if failure is None:
            raise
        if not isinstance(failure, Exception):
            raise failure from common
        raise common from failure
    finally:
        failure = None  # the exception holds a reference to this frame


class _Closable(Protocol):
    def close(self) -> None: ...
    def _left_by_error(self) -> None: ...


class Closing:
    """A `with` block closes the object at its end, but not after an error: other processes may be elsewhere, and a
    collective `close` would wait for them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self: _Closable,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._left_by_error()

    def _left_by_error(self) -> None:
        """Called after an error. Persistent objects override it, so that the end of their world does not commit
        them."""
