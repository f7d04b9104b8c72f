"""Checks of a multireference CI before its SCF, from numbers of electrons and basis functions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from outcore.chem.ci import before as of_all
from outcore.chem.ci.target import AskedStates
from outcore.chem.mrci import references
from outcore.chem.mrci.orbitals import check_choice
from outcore.chem.mrci.tables import check_disk, min_table_bytes
from outcore.chem.symmetry import functions_of_irreps

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.mrci.settings import Settings
    from outcore.chem.mrci.spaces import OrbitalChoice
    from outcore.job.resources import Allowance
    from outcore.job.world import World


def check(
    world: World,
    mol: Mole,
    choice: OrbitalChoice | None,
    states: AskedStates,
    settings: Settings,
    free: Allowance,
) -> None:
    """Checks a multireference CI. choice: None: it is known only after the SCF. Collective.

    Raises OutcoreError: EINVAL; EFBIG (references); ENOSPC (integrals)."""
    with world.together("check a multireference CI"):
        of_all.check_states(mol, [of_all.whole(mol)], [states])
    if choice is None:
        return
    electrons = mol.nelec[0] - choice.frozen, mol.nelec[1] - choice.frozen
    apart = choice.frozen + choice.left_out
    with world.together("check a multireference CI"):
        check_choice(choice, mol.nao - apart, electrons)
        if isinstance(settings.references, Path):
            references.of_file(settings.references, choice, sum(electrons))
        else:
            references.check_space(choice, sum(electrons))
    tables = min_table_bytes(functions_of_irreps(mol), apart + choice.internal)
    if tables > free.bytes // 2:
        check_disk(world, tables)
