"""A flipped bit in checkpoints of methods: `outcore verify` finds it, or another run is refused, or nobody
reads the bit and results do not change."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outcore.base.errors import OutcoreError
from outcore.cli import main as cli

pytest.importorskip("pyscf")

from pyscf import gto, scf

from outcore.chem.cc import CCSD
from outcore.chem.ci import FCI
from outcore.chem.ci.kept_products import KeptProducts
from outcore.keep import clock

PLACES = 5  # of each file, from the first byte to the last


def coupled_cluster(mf: Any, kept: Path) -> list[float]:
    with CCSD(mf, integrals="conventional", checkpoint=kept, comm=None, threads=1, memory="1GB") as cc:
        return [cc.kernel()[0], cc.ccsd_t()]


def full_ci(mf: Any, kept: Path) -> list[float]:
    with FCI(mf, checkpoint=kept, comm=None, threads=1, memory="1GB") as ci:
        return [ci.kernel()]


class Stop(Exception):
    pass


def ended_within_an_iteration(mf: Any, kept: Path) -> None:
    """A full CI that has committed the product of its first iteration."""
    right = KeptProducts._commit

    def commit(self: KeptProducts) -> None:
        right(self)
        if self.commits.count == 1:
            raise Stop

    with pytest.MonkeyPatch.context() as patched, pytest.raises(Stop):
        patched.setattr(clock, "INTERVAL_S", 0.0)
        patched.setattr(KeptProducts, "_commit", commit)
        full_ci(mf, kept)


@pytest.mark.parametrize(
    ("method", "leave"),
    [(coupled_cluster, coupled_cluster), (full_ci, full_ci), (full_ci, ended_within_an_iteration)],
)
def test_no_bit_that_changes_makes_a_wrong_number(
    method: Callable[[Any, Path], list[float]], leave: Callable[[Any, Path], Any], tmp_path: Path, capsys: Any
) -> None:
    mol = gto.M(atom="Li 0 0 0; H 0 0 1.6", basis="sto-3g", verbose=0)
    mf = scf.RHF(mol).run(conv_tol=1e-12)
    whole, kept = tmp_path / "whole", tmp_path / "kept"
    wanted = method(mf, tmp_path / "other")
    leave(mf, whole)
    found = passed = 0
    for file in sorted(each for each in whole.rglob("*") if each.is_file() and each.stat().st_size):
        for at in np.linspace(0, file.stat().st_size - 1, PLACES).astype(int):
            shutil.copytree(whole, kept)
            damaged = kept / file.relative_to(whole)
            values = bytearray(damaged.read_bytes())
            values[at] ^= 1
            damaged.write_bytes(values)
            if cli.run(["verify", str(kept)]) == 1:
                found += 1
                assert str(damaged.parent.relative_to(kept)) in capsys.readouterr().out
            else:
                try:
                    assert method(mf, kept) == pytest.approx(wanted, abs=1e-9), (file.name, at)
                    passed += 1
                except OutcoreError as error:
                    assert str(kept) in str(error)
            shutil.rmtree(kept)
    assert found > PLACES and passed
