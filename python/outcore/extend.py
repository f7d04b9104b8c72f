"""What a program adds to Outcore: codecs of arrays on disk, and places of the tiles of extended arrays.

A package adds them without a call, as entry points of the groups `outcore.codecs` (a class derived from Codec) and
`outcore.backends` (one derived from Backend), under their names. Outcore imports one when its name is asked for.
`outcore.conformance` has the tests that they must pass.
"""

from outcore.arrays.codecs import Codec, add_codec
from outcore.tensor.arrays.backends.backend import Backend
from outcore.tensor.arrays.backends.places import add_backend

__all__ = ["Backend", "Codec", "add_backend", "add_codec"]
