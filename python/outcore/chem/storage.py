"""Where the integrals of a method are: the same words for every method, of which each has some."""

from __future__ import annotations

import errno

from outcore.base.errors import OutcoreError

WORDS = ("auto", "memory", "disk", "direct", "mixed")


def check(word: str, has: tuple[str, ...], method: str) -> str:
    """The word, which the method has. Raises OutcoreError (EINVAL), which lists those that it has."""
    if word in has:
        return word
    why = f"{method} does not have it" if word in WORDS else "there is no such word"
    raise OutcoreError(errno.EINVAL, f"storage '{word}'", detail=f"{why}; {method} has {', '.join(has)}")
