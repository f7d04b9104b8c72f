"""The forecast of a multireference CI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from outcore.base import html
from outcore.base.sizes import in_words
from outcore.chem.mrci.size_consistency import penalty
from outcore.chem.mrci.solver import SearchOptions
from outcore.chem.mrci.storage import PACKED_VECTORS, passed_vectors
from outcore.chem.mrci.tables import table_bytes
from outcore.chem.mrci.transform import row_bytes

if TYPE_CHECKING:
    from outcore.chem.mrci.mrci import MRCI

BITS = 16  # about the bits of an element that is packed for a bound of 1e-8 Hartree


@dataclass(frozen=True)
class Forecast:
    """Numbers of bytes. vector: not packed. search_memory: a search in the memory of one process, vectors not
    packed.
    search_packed, search_as_they_are: a search with records, in memory and files together, packed for an error
    bound or not packed. integrals: those with an internal orbital, at each process. tables: integrals between
    external pairs, at each process or on disk."""

    records: int
    vector: int
    search_memory: int
    search_packed: int
    search_as_they_are: int
    integrals: int
    tables: int

    def _repr_html_(self) -> str:
        rows = [
            ("records", self.records),
            ("a vector, not packed", in_words(self.vector)),
            ("a search in memory", in_words(self.search_memory)),
            ("a search in records, packed", f"about {in_words(self.search_packed)}"),
            ("a search in records, not packed", in_words(self.search_as_they_are)),
            ("integrals, each process", in_words(self.integrals)),
            ("integrals between external pairs", in_words(self.tables)),
        ]
        return html.facts("Multireference CI, estimate", rows)

    def lines(self) -> list[str]:
        packed, plain = self.search_packed / 1e6, self.search_as_they_are / 1e6
        return [
            f"a vector has {self.records} records, {self.vector / 1e6:.1f} MB if it is not packed",
            f"a search in memory takes {self.search_memory / 1e6:.1f} MB; in records {plain:.1f} MB, packed about "
            f"{packed:.1f} MB, in memory and files together",
            f"integrals take {self.integrals / 1e6:.1f} MB at each process, and between external pairs "
            f"{self.tables / 1e6:.1f} MB, at each process or on disk",
        ]


def forecast(ci: MRCI) -> Forecast:
    elements, roots = ci.records.elements, ci.roots
    passed = passed_vectors(penalty(ci.settings.functional, sum(ci.electrons)))
    packed = SearchOptions(vectors=PACKED_VECTORS, passed=passed).most(roots) * elements
    return Forecast(
        records=len(ci.records),
        vector=8 * elements,
        search_memory=8 * SearchOptions(vectors=ci.settings.vectors, passed=passed).most(roots) * elements,
        search_packed=packed * BITS // 8,
        search_as_they_are=8 * packed,
        integrals=row_bytes(ci.orbitals.count, ci.orbitals.choice.internal),
        tables=table_bytes(ci.orbitals.orbitals),
    )
