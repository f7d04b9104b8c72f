"""Products of doubles with integrals of four occupied orbitals, from sums and differences of half the length
each."""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore.tensor.layout import kernels

Values = np.ndarray[Any, np.dtype[Any]]


class HoleProducts:
    """Multiplies tiles of doubles by h[k,i,l,j] = h[l,j,k,i]. Any thread."""

    def __init__(self, hole: Values) -> None:
        self._occupied = o = len(hole)
        plus, minus = kernels.pack_pairs(hole.transpose(0, 2, 1, 3))
        first, second = np.tril_indices(o)
        self._plus, self._minus = plus[first, second], minus[np.tril_indices(o, -1)]  # [kl,ij]
        self._plus[first == second] *= 0.5

    def product(self, tile: Values) -> Values:
        """sum_kl t[a,k,b,l] h[k,i,l,j] as [a,i,b,j], of a tile of doubles."""
        o = self._occupied
        packed = kernels.pack_pairs(tile.transpose(0, 2, 1, 3))  # [a,b,kl]
        plus, minus = packed[0] @ self._plus, packed[1] @ self._minus
        pairs = np.empty((*plus.shape[:2], o, o))
        return kernels.unpack_pairs(plus, minus, pairs).transpose(0, 2, 1, 3)
