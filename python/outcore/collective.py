"""What objects of several processes have in common, that are closed by all of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from types import TracebackType


class _Closable(Protocol):
    def close(self) -> None: ...


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
