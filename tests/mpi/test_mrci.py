"""Multireference CI on several processes: the energies of one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("pyscf")
sys.path.append(str(Path(__file__).parents[1] / "python" / "chem" / "mrci"))
from mrci_molecules import WATER, mean_field

from outcore.base.errors import OutcoreError
from outcore.chem.mrci import MRCI
from outcore.job.world import World

ENERGY = -76.1160029238


def water(world, **settings):
    return MRCI.from_mean_field(mean_field(WATER), inactive=1, active=6, comm=world, **settings)


@pytest.mark.parametrize("vector_memory", [None, 100_000, 2_000])
def test_energies(comm, vector_memory):
    with World(comm, memory="300MB") as world, water(world, vector_memory=vector_memory) as ci:
        assert ci.kernel() == pytest.approx(ENERGY, abs=1e-9)
        assert ci.converged
        assert (ci.report.spilled > 0) == (vector_memory is not None)


def test_integrals_on_disk(comm):
    """Each process writes its share of them, and reads all."""
    with World(comm, memory="300MB") as world, water(world, integral_memory=0, vector_memory=0) as ci:
        assert ci.kernel() == pytest.approx(ENERGY, abs=1e-9)
        assert ci.streamed_bytes > 0


def test_packed_energies(comm):
    with World(comm, memory="300MB") as world, water(world, error_bound=1e-8) as ci:
        assert ci.kernel() == pytest.approx(ENERGY, abs=1.2e-8)
        assert ci.packing_error <= 1e-8


def test_all_refuse_what_cannot_be(comm):
    with (
        World(comm, memory="300MB") as world,
        pytest.raises(OutcoreError, match="active orbitals cannot hold"),
    ):
        MRCI.from_mean_field(mean_field(WATER), inactive=1, active=1, comm=world)
