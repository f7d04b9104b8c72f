"""Words for the places of the arrays of coupled cluster."""

from __future__ import annotations

import errno

from outcore.base.errors import OutcoreError
from outcore.chem import storage as storage_words

METHOD = "coupled cluster"
STORAGES = ("auto", "disk")  # arrays that fit stay in memory; all are on disk
LADDERS = ("auto", "disk", "memory", "rebuild")


def check_places(storage: str, ladder: str) -> None:
    """Raises OutcoreError (EINVAL) for unknown words, and for places that exclude each other."""
    storage_words.check(storage, STORAGES, METHOD)
    if ladder not in LADDERS:
        raise OutcoreError(errno.EINVAL, f"ladder '{ladder}'", detail=f"it may be {', '.join(LADDERS)}")
    if storage == "disk" and ladder == "memory":
        raise OutcoreError(errno.EINVAL, "ladder integrals in memory", detail="all arrays are to be on disk")
