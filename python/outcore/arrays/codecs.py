"""Codecs for arrays on disk that a program adds to the built-in ones."""

from __future__ import annotations

import errno
import warnings
from abc import ABC, abstractmethod

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.base.plugins import Plugins

BUILT_IN = ("none", "blosc2", "blosc2-zstd", "blosc2-lz4", "fixed-point")


class Codec(ABC):
    """Lossless compression of chunks. Any thread calls it, several at a time; it holds the GIL while it works.

    `name`: a program creates arrays with it, and messages contain it. `number`, 128 to 255: files contain it, so
    it must never be given to another codec. A process can open a file only if it has a codec of the file's number.
    """

    name: str
    number: int

    @abstractmethod
    def encode(self, data: bytes, element_bytes: int) -> bytes:
        """Compresses one byte or more. A chunk that does not become shorter is stored uncompressed."""

    @abstractmethod
    def decode(self, data: bytes, size: int, element_bytes: int) -> bytes:
        """Returns the `size` bytes that `encode` was given. `data` may be any bytes: for those that `encode` has
        not made it raises an exception, and the reader of the array gets OutcoreError (EIO)."""


def add_codec(codec: Codec) -> None:
    """Makes a codec known in this process, until the process ends. Adding it again has no effect. Every process
    adds it before it makes or opens an array with it.

    Raises TypeError for an object that is no codec; OutcoreError: EINVAL (name, number), EEXIST (another codec has
    the name or the number).
    """
    _ADDED.add(_checked(codec).name, codec)


def find(name: str) -> None:
    """Makes the codec of this name known, if it is not built in and an installed package has it. A name that no
    package has is not an error here: the native module raises it."""
    if name not in BUILT_IN:
        _ADDED.find(name)


def find_all() -> None:
    """Makes the codecs of all installed packages known: a file names its codec by number only, so any of them may
    be needed. A codec that cannot be used gives a warning, because the file may not need it."""
    for name in _ADDED.names():
        try:
            _ADDED.find(name)
        except OutcoreError as error:
            warnings.warn(str(error), stacklevel=2)


_known: dict[str, Codec] = {}  # keeps the codecs alive: native code calls them, and holds no references


def _checked(codec: object) -> Codec:
    """The object, if it is a codec; native code learns of it the first time."""
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
