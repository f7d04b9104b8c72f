"""Multireference configuration interaction: all single and double excitations from a list of references.

Names are loaded at first use: `outcore.chem.mrci.MRCI`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outcore.chem.mrci.mrci import MRCI as MRCI

__all__ = ["MRCI"]


def __getattr__(name: str) -> Any:
    if name == "MRCI":
        from outcore.chem.mrci.mrci import MRCI

        return MRCI
    raise AttributeError(f"module 'outcore.chem.mrci' has no attribute '{name}'")
