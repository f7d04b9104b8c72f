"""Options that `outcore ri-scf` and `outcore rimp2` have in common, named once."""

from __future__ import annotations

from dataclasses import dataclass

from outcore.chem.options import MoleculeOptions
from outcore.chem.ri.plan import check_storage


@dataclass(frozen=True, kw_only=True)
class Options(MoleculeOptions):
    """What both commands are asked for."""

    def check(self) -> None:
        super().check()
        check_storage(self.storage)
