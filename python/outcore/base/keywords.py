"""Names of arguments: an unknown one is refused, with the name that the caller may have meant."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# Names that other programs, or older versions, have for the same thing.
_OTHER_NAMES = {
    **dict.fromkeys(("max_memory", "memory_bytes", "mem", "budget", "budget_bytes"), "memory"),
    **dict.fromkeys(("scratch_dir", "scratch_directory", "scratchdir", "tmpdir", "directory"), "scratch"),
    **dict.fromkeys(("num_threads", "nthreads", "n_threads", "max_threads"), "threads"),
    **dict.fromkeys(("communicator", "mpi_comm"), "comm"),
}


def hint(name: str, names: Iterable[str]) -> str:
    """For the message about a name that is none of `names`: "did you mean 'memory'?", or a list of them."""
    known = sorted(names)
    other = _OTHER_NAMES.get(name)
    close = [other] if other in known else difflib.get_close_matches(name, known, 1)
    return f"did you mean '{close[0]}'?" if close else f"there are {', '.join(known)}"


def checked(*settings: type) -> Callable[[Function], Function]:
    """A decorator of functions and constructors: a keyword that is no parameter raises TypeError with a `hint`.

    Args:
        settings: dataclasses or typed dictionaries whose names the function takes as `**`.
    """

    def decorate(function: Function) -> Function:
        parameters = inspect.signature(function).parameters.values()
        by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        known = {each.name for each in parameters if each.kind in by_name} - {"self", "cls"}
        known.update(*(each.__annotations__ for each in settings))
        title = function.__qualname__.removesuffix(".__init__").removesuffix(".__call__")

        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            for name in given:
                if name not in known:
                    raise TypeError(f"{title} has no argument '{name}': {hint(name, known)}")
            return function(*args, **given)

        return call  # type: ignore[return-value]

    return decorate
