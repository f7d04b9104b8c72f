"""Three-index integrals of NEVPT2 move no less than their bound, which docs/why/bounds.md derives."""

from __future__ import annotations

import numpy as np
import pytest

from outcore.chem.frozen import Frozen
from outcore.chem.nevpt2.integrals import OuterIntegrals, least_bytes
from outcore.chem.nevpt2.orbitals import CasOrbitals
from outcore.job.resources import Allowance
from outcore.job.world import World

pytest.importorskip("pyscf")
from pyscf import gto

from outcore.chem.mp2.tiles import TileReader
from outcore.chem.ri.fitting import SCREENING
from outcore.chem.ri.plan import pair_tasks
from outcore.chem.ri.rows import FittedRows
from outcore.chem.ri.traffic import TrafficWatch

ATOMS, CORE, ACTIVE = 80, 36, 2
SETS = {"H": [[0, [1.2, 1.0]], [0, [0.4, 1.0]]]}  # few auxiliary functions


@pytest.fixture
def orbitals() -> CasOrbitals:
    """Any orthonormal orbitals: only their numbers matter."""
    found = np.linalg.qr(np.random.default_rng(0).normal(size=(ATOMS, ATOMS)))[0]
    core, active, virtual = np.split(found, [CORE, CORE + ACTIVE], axis=1)
    none = np.zeros((ACTIVE,) * 2), np.zeros((ACTIVE,) * 4), np.zeros((ATOMS,) * 2)
    energies = np.zeros(CORE), np.zeros(virtual.shape[1])
    return CasOrbitals(core, active, virtual, *energies, *none, 0.0, Frozen())


@pytest.mark.parametrize("share", [1.0, 8.0])
def test_pairs_of_core_orbitals(orbitals, no_work_space, tmp_path, share):
    """share: the memory over the least."""
    mol = gto.M(atom=[("H", (0, 0, 1.3 * k)) for k in range(ATOMS)], basis="sto-3g", verbose=0)
    with World("self", scratch=str(tmp_path)) as world:
        rows = FittedRows(world, mol, SETS, 1, SCREENING)
        memory = int(share * least_bytes(ATOMS, rows.columns, rows.count, orbitals.counts, 1, 1, "auto"))
        watch = TrafficWatch()
        made = OuterIntegrals(world, rows, orbitals, Allowance(memory, "a test"), 1, "auto", None)
        written = watch.traffic(world, made.least_moved(pairs=False))
        source, plan = made.core_virtual, made.plan.transform
        tasks = pair_tasks(CORE, CORE, plan.block, plan.tile, same=True)
        pairs = sum(
            (block.end - block.begin) * (tile.end - tile.begin)
            for block, tile in TileReader(source, source, plan).tiles(tasks)
        )
        found = watch.traffic(world, made.least_moved(pairs=True))
        made.close()
    assert pairs >= CORE * (CORE + 1) / 2
    assert written.bytes >= written.least_bytes
    assert found.bytes >= found.least_bytes >= 2 * written.least_bytes
    assert (found.least_bytes == 0) == (share > 1) == (found.bytes == 0)
