"""Codecs of the program for arrays on disk, beside those that are built in."""

from __future__ import annotations

import errno
import warnings
from abc import ABC, abstractmethod

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.base.plugins import Plugins

BUILT_IN = ("none", "blosc2", "blosc2-zstd", "blosc2-lz4", "fixed-point")


class Codec(ABC):
    """Lossless compression of chunks, by any thread, several at a time. It holds the GIL while it works.

    `name` is what arrays are made with, and what messages say. `number`, one of 128 to 255, is what their files
    have: it is never given to another codec. Files can be opened where a codec of their number is.
    """

    name: str
    number: int

    @abstractmethod
    def encode(self, data: bytes, element_bytes: int) -> bytes:
        """Compresses one byte or more. A chunk that does not become shorter is stored as it
        is."""

    @abstractmethod
    def decode(self, data: bytes, size: int, element_bytes: int) -> bytes:
        """The `size` bytes that `encode` was given. `data` may be anything: raises an exception for what `encode`
        has never made, which the reader of the array gets as OutcoreError (EIO)."""


def add_codec(codec: Codec) -> None:
    """Makes a codec known in this process, until it ends; again: nothing happens. Every process adds it before it
    makes or opens an array with it.

    Raises TypeError for what is no codec; OutcoreError: EINVAL (name, number), EEXIST (another codec has the name
    or the number).
    """
    _ADDED.add(_checked(codec).name, codec)


def find(name: str) -> None:
    """Makes a codec known that an installed package has, if it is none of those that are; of a name that nobody
    has the native module says so."""
    if name not in BUILT_IN:
        _ADDED.find(name)


def find_all() -> None:
    """The same of all of them: files have numbers, not names. Warns of those that cannot be used, which an array
    need not have."""
    for name in _ADDED.names():
        try:
            _ADDED.find(name)
        except OutcoreError as error:
            warnings.warn(str(error), stacklevel=2)


_known: dict[str, Codec] = {}  # native code calls them, and does not keep them


def _checked(codec: object) -> Codec:
    """What is added for the first time is made known to native code."""
    if not isinstance(codec, Codec):
        raise TypeError(f"{codec!r} is no outcore.extend.Codec")
    if codec.name in BUILT_IN or codec.name.split() != [codec.name]:
        raise OutcoreError(
            errno.EINVAL, f"add codec {codec.name!r}", detail="a name is one word, and none of those built in"
        )
    if _known.get(codec.name) is not codec:
        _core.add_codec(codec.number, codec.name, codec)
        _known[codec.name] = codec
    return codec


def _loaded(name: str, found: object) -> Codec:
    codec = _checked(found() if isinstance(found, type) else found)
    if codec.name != name:
        raise ValueError(f"the codec is called {codec.name!r}")
    return codec


_ADDED: Plugins[Codec] = Plugins("outcore.codecs", _loaded)
