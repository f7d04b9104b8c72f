"""Checks whether kept values belong to the present problem: by every setting on which the values depend.

A method that keeps values writes a record beside them: their meaning, their format, and all settings on which they
depend, under names that users know. Settings that change no value (memory, processes, scratch, titles) are not
in it. A run that finds values of other settings refuses them and names the differences; it never continues from
them.
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

_ROUNDING = 1e-14  # relative: difference of processors that compute the same
_CONVERGED = 1e-9  # relative: difference of results of iterations that are run again
_MAX_NAMED = 6  # differences in one message
_LONGEST = 60  # characters of a value that is shown


@dataclass(frozen=True)
class Problem:
    """The meaning of values, and all settings on which they depend.

    settings: JSON values, each under the name that users know; numbers are compared to the last bit.
    rounded: names of computed settings, which differ by rounding from processor to processor.
    converged: names of settings that are results of iterations.
    """

    what: str
    format: int  # version of the format of the values
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
        """Checks `found`, the record beside kept values. `of_any_method`: its settings that this problem does not
        have do not matter. Raises OutcoreError: EINVAL (values of another meaning, or of another problem; the
        message names the settings), ENOTSUP (another format), EIO (damaged)."""
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
        """The differences from the settings `found`, in words. Empty: the values are those of this problem."""
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
    """The value as it is after writing and reading it as JSON; a zero has no sign."""
    if isinstance(value, dict):
        return {str(key): canonical(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(each) for each in value]
    if hasattr(value, "tolist"):  # of NumPy
        return canonical(value.tolist())
    return value + 0.0 if isinstance(value, float) else value


def fingerprint(value: Any) -> str:
    """SHA-256 of a JSON value; it does not depend on the order of names."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _fingerprint_of(found: Any) -> str:
    """The fingerprint of a value from a file; "" if it is nested too deeply for one."""
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
