"""Words for the place where the integrals of a method are. All methods use these words; each method has some."""

from __future__ import annotations

import errno
from typing import Any

import typer

from outcore.base.errors import OutcoreError

_MEANINGS = {
    "auto": "in memory as far as they fit",
    "memory": "all in memory",
    "disk": "all on disk",
    "mixed": "those worth most on disk, the rest recomputed",
    "direct": "nowhere, recomputed when needed",
}


def option(has: tuple[str, ...], what: str) -> Any:
    """The option --storage of a method: its words, and the meaning of each."""
    meanings = "; ".join(f"'{word}': {_MEANINGS[word]}" for word in has)
    return typer.Option(help=f"Where {what} are. {meanings}.")


def check(word: str, has: tuple[str, ...], method: str) -> str:
    """Returns the word if the method has it. Else raises OutcoreError (EINVAL), which lists the words it has."""
    if word in has:
        return word
    why = f"{method} does not have it" if word in _MEANINGS else "there is no such word"
    raise OutcoreError(errno.EINVAL, f"storage '{word}'", detail=f"{why}; {method} has {', '.join(has)}")
