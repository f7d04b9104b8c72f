"""Options that `outcore ri-scf` and `outcore rimp2` have in common, named once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from outcore.chem import storage
from outcore.chem.gradients.options import DensityOptions
from outcore.chem.options import GROUP
from outcore.chem.ri.plan import STORAGES, check_storage
from outcore.chem.symmetry import known_group


@dataclass(frozen=True, kw_only=True)
class Options(DensityOptions):
    """Options of both commands."""

    storage: Annotated[str, storage.option(STORAGES, "integrals")] = "auto"
    group: Annotated[str | None, GROUP] = None

    def check(self) -> None:
        super().check()
        check_storage(self.storage)
        if self.group is not None:
            known_group(self.group)
