"""Whether what is kept is of the present problem: every setting that its values depend on, by name.

Whoever keeps values lays a record beside them: what they are, in which format, and all settings that they depend
on, under names that users know. Settings that change no value (memory, processes, scratch, titles) are not in it.
A run that finds values of other settings refuses them and names what differs; it never goes on from them.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
from dataclasses import dataclass
from typing import Any

from outcore.base.errors import OutcoreError

_ROUNDING = 1e-14  # relative: what processors differ in when they compute the same
_CONVERGED = 1e-9  # relative: what iterations end with, which are begun anew
_MAX_NAMED = 6  # differences in one message
_LONGEST = 60  # characters of a value that is shown


@dataclass(frozen=True)
class Problem:
    """What values are, and all that they depend on.

    settings: what JSON holds, each under the name that users know; numbers count to the last bit.
    rounded: names of settings that are computed, and so differ by rounding from processor to processor.
    converged: names of those that iterations give.
    """

    what: str
    format: int  # version of it
    settings: dict[str, Any]
    rounded: tuple[str, ...] = ()
    converged: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        settings = canonical(self.settings)
        return {
            "what": self.what,
            "format": self.format,
            "settings": settings,
            "fingerprint": fingerprint(settings),
        }

    def check(
        self, found: Any, attempted: str, path: str | os.PathLike[str], *, of_any_method: bool = False
    ) -> None:
        """`found`: the record beside kept values. `of_any_method`: settings that it has beyond those of this
        problem do not matter. Raises OutcoreError: EINVAL (of something else, or of another problem, whose
        settings are named), ENOTSUP (of another format), EIO (damaged)."""
        what = found.get("what") if isinstance(found, dict) else None
        if not isinstance(what, str):
            raise OutcoreError(errno.EINVAL, attempted, path=path, detail=f"it is not {self.what}")
        version = found.get("format", 1)
        if type(version) is not int or version != self.format:
            detail = (
                f"kept in format {_shown(version)}; this program reads format {self.format}; "
                "remove it and run again, or name another directory"
            )
            raise OutcoreError(errno.ENOTSUP, attempted, path=path, detail=detail)
        if what != self.what:
            detail = f"it holds {_shown(what)}, not {self.what}"
            raise OutcoreError(errno.EINVAL, attempted, path=path, detail=detail)
        settings = found.get("settings")
        own = _fingerprint_of(settings) if isinstance(settings, dict) else None
        if not own or found.get("fingerprint") != own:
            detail = "damaged or written wrongly: its settings are not those of its fingerprint"
            raise OutcoreError(errno.EIO, attempted, path=path, detail=detail)
        if of_any_method:
            settings = {name: each for name, each in settings.items() if name in self.settings}
        differs = self.differences(settings)
        if differs:
            detail = f"{'; '.join(differs)}; name another directory, or remove this one"
            raise OutcoreError(errno.EINVAL, attempted, path=path, detail=detail)

    def _rounding(self, name: str) -> float:
        return _CONVERGED if name in self.converged else _ROUNDING if name in self.rounded else 0.0

    def differences(self, found: dict[str, Any]) -> list[str]:
        """What differs from the settings `found`, in words. Empty: the values are those of this problem."""
        wanted = canonical(self.settings)
        if fingerprint(found) == fingerprint(wanted):
            return []
        short, long = [], []
        for name in wanted | found:
            if name not in found or name not in wanted:
                short.append(f"they were kept {'without' if name in wanted else 'with'} '{_shown(name)}'")
            elif not _same(found[name], wanted[name], self._rounding(name)):
                if _is_short(found[name]) and _is_short(wanted[name]):
                    values = f"{_shown(found[name])}, now it is {_shown(wanted[name])}"
                    short.append(f"they were kept with {name} = {values}")
                else:
                    long.append(name)
        if long:
            short.insert(
                0, f"they are of another {', '.join(long[:-1])}{' and ' * (len(long) > 1)}{long[-1]}"
            )
        more = len(short) - _MAX_NAMED
        return short if more <= 0 else [*short[:_MAX_NAMED], f"{more} more differ"]


def canonical(value: Any) -> Any:
    """What JSON gives back of a value; a zero has no sign."""
    if isinstance(value, dict):
        return {str(key): canonical(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(each) for each in value]
    if hasattr(value, "tolist"):  # of NumPy
        return canonical(value.tolist())
    return value + 0.0 if isinstance(value, float) else value


def fingerprint(value: Any) -> str:
    """SHA-256 of what JSON can hold, whatever the order of names."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _fingerprint_of(found: Any) -> str:
    """Of what somebody wrote: nothing if it is nested too deeply for one."""
    try:
        return fingerprint(found)
    except RecursionError:
        return ""


def _same(found: Any, wanted: Any, rounding: float) -> bool:
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and found.keys() == wanted.keys()
            and all(_same(found[key], wanted[key], rounding) for key in wanted)
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(_same(one, other, rounding) for one, other in zip(found, wanted, strict=True))
        )
    if rounding and type(wanted) is float and type(found) is float:
        return math.isclose(found, wanted, rel_tol=rounding)
    return type(found) is type(wanted) and bool(found == wanted)


def _is_short(value: Any) -> bool:
    return value is None or (isinstance(value, bool | int | float | str) and len(str(value)) <= _LONGEST)


def _shown(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
