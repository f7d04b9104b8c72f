"""What a plan has to know of an array of coupled cluster. Nothing is read off its name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outcore.tensor.layout import Layout

_DOUBLE, _SINGLE = 8, 4


class Role(Enum):
    """What an array is for.

    INTEGRALS: three-index integrals and what is made once of them.
    PREPARATION: is released before iterations begin.
    AMPLITUDES: doubles, which the ladder packs in each pass; they outlast iterations.
    LADDER_INTEGRALS: stream by in each pass of a ladder, or are made again and have no array at all.
    LADDER_PRODUCT: of a ladder, whose last axis is cut where passes begin.
    VECTOR: of the extrapolation; an iteration goes through it once.
    SCRATCH: undefined between residuals.
    """

    INTEGRALS = "integrals"
    PREPARATION = "preparation"
    AMPLITUDES = "amplitudes"
    LADDER_INTEGRALS = "ladder integrals"
    LADDER_PRODUCT = "ladder product"
    VECTOR = "vector"
    SCRATCH = "scratch"


@dataclass(frozen=True)
class ArraySpec:
    """One array.

    Attributes:
        name: by which equations ask for it; for people and checkpoints.
        uses: times that an iteration reads or writes it beside products of pairs and the ladder.
        store_dtype: of elements where they lie; None: double precision.
        in_pair_products: products of pairs with pairs read it, or write it.
        is_kept: a checkpoint has a copy.
    """

    name: str
    layout: Layout
    role: Role
    uses: int
    store_dtype: str | None = None
    in_pair_products: bool = False
    is_kept: bool = False

    @property
    def bytes(self) -> int:
        return self.layout.elements * (_SINGLE if self.store_dtype else _DOUBLE)
