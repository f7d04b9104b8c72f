"""Functions of NumPy for extended arrays: those that are methods of them, and all others for copies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from outcore.tensor.arrays.numpy_like import NumpyLike

_METHODS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.sum: lambda a: a.sum(),
    np.linalg.norm: lambda x: x.norm(),
    np.max: lambda a: a.max(),
    np.min: lambda a: a.min(),
    np.vdot: lambda a, b: a.dot(b, conjugate=True),
    np.transpose: lambda a, axes=None: a.transpose(*(() if axes is None else (tuple(axes),))),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
}


def apply(
    function: Callable[..., Any], kind: type[NumpyLike], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Calls a function of NumPy with extended arrays, which are of `kind`, among its arguments. If a method does
    the same, it is called; else each array becomes a NumPy copy, which may be too large (ENOMEM). The copy is
    read-only: functions that write into it (`out=`, numpy.copyto) raise NumPy's ValueError, and no result is
    lost."""
    method = _METHODS.get(function)
    if method is not None and args and isinstance(args[0], kind) and _takes(method, args, kwargs):
        return method(*args, **kwargs)

    def copied(value: Any) -> Any:
        if isinstance(value, kind):
            copy = value.to_numpy().view()
            copy.flags.writeable = False
            return copy
        return type(value)(map(copied, value)) if type(value) in (list, tuple) else value

    return function(*map(copied, args), **{name: copied(value) for name, value in kwargs.items()})


def _takes(method: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a method takes these arguments: with an axis or a type it does not."""
    try:
        inspect.signature(method).bind(*args, **kwargs)
    except TypeError:
        return False
    return True
