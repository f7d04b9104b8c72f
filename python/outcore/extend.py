"""Extensions of Outcore: codecs for arrays on disk, and backends (places for the tiles of extended arrays).

A package adds them without a call, as entry points: a class derived from Codec in the group `outcore.codecs`, one
derived from Backend in the group `outcore.backends`, each under its name. Outcore imports one when a program asks
for its name. `outcore.conformance` has the tests that they must pass.
"""

from outcore.arrays.codecs import Codec, add_codec
from outcore.tensor.arrays.backends.backend import Backend
from outcore.tensor.arrays.backends.places import add_backend

__all__ = ["Backend", "Codec", "add_backend", "add_codec"]
