"""Multireference CI on several hosts, whose disks are their own."""

from __future__ import annotations

import pytest

pytest.importorskip("pyscf")


def test_records_lie_on_the_disks_of_all_hosts(hosts):
    said = hosts.run(
        """
        from pyscf import gto, scf
        import outcore
        from outcore.chem.mrci import MRCI

        mol = gto.M(atom="O 0 0 0; H 0 -0.757 0.587; H 0 0.757 0.587", basis="6-31g", symmetry=True, verbose=0)
        mf = scf.RHF(mol).run(conv_tol=1e-12)
        most = 0

        def look(_):
            global most
            most = max(most, held(directory / "scratch"))

        with outcore.World(memory="600MB", scratch=directory / "scratch") as world:
            given = {"inactive": 1, "active": 6, "comm": world, "vector_memory": 0}
            with MRCI.from_mean_field(mf, **given) as ci:
                ci.on_iteration = look
                energy = ci.kernel()
                share = most / ci.report.file_bytes
            tell(abs(energy + 76.1160029238) < 1e-9, 0.3 < share)
        """,
        processes=2,
    )
    hosts.clear()
    assert said == ["True True"] * 2
