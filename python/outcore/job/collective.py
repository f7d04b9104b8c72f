"""What collective calls have in common: the gate they begin with, and the end of a `with` block."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from outcore.base.errors import Fields, OutcoreError, as_fields

if TYPE_CHECKING:
    from types import TracebackType

T = TypeVar("T")
Result = TypeVar("Result")
Gate = Callable[[], tuple[Fields, T | None]]
"""What native code calls inside of its gate: the fields of an error, or of none, and what this process brings."""


def in_gate(what: str, call: Callable[[Gate[T]], Result], bring: Callable[[], T]) -> Result:
    """Makes a collective call of the native module. `bring` runs inside of its gate: it checks and makes what this
    process comes with, and must not wait for other processes.

    What it raises at one process, all raise as the same OutcoreError; there, the exception is its cause. One that
    ends the program (Ctrl-C) stays what it is at that process.
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
        failure = None  # which holds this frame


class _Closable(Protocol):
    def close(self) -> None: ...
    def _left_by_error(self) -> None: ...


class Closing:
    """In a `with` block it is closed at the end, but not after an error: the others may be elsewhere, and nobody
    waits for them."""

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
        """Of what is persistent: the end of its world does not commit it."""
