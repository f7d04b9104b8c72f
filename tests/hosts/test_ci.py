"""Full CI on several hosts with several processes each."""

from __future__ import annotations

import pytest

pytest.importorskip("pyscf")


def test_rows_of_the_other_host_come_for_both_processes(hosts):
    said = hosts.run(
        """
        from pyscf import gto, scf
        import outcore
        from outcore.chem.ci import FCI
        from outcore.chem.ci.products import ProductWays

        def through_rows(products, dtype):
            return products.by_rows(dtype, 3, copied=True) if products.kind == "global" else None

        ProductWays._best_rows = through_rows
        mol = gto.M(atom="O 0 0 0; H 0 -0.757 0.587; H 0 0.757 0.587", basis="6-31g", symmetry=True, verbose=0)
        mf = scf.RHF(mol).run(conv_tol=1e-12)
        found = []
        for comm in ("self", None):
            with outcore.World(comm, memory="300MB", scratch=directory / "scratch") as world:
                with FCI(mf, frozen=1, comm=world, threads=1) as ci:
                    found.append((ci.kernel(), ci.solved.plan.deal("float64")))
        (alone, none), (energy, deal) = found
        tell(none, deal.nodes, len(deal.copies) > 0, abs(energy - alone) < 1e-9)
        """,
        processes=4,
    )
    assert said == ["None (2, 2) True True"] * 4
