"""Errors of coupled cluster when something is wrong."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cc_support import WATER, files_of_arrays, flip_a_bit, mean_field
from conformance.full_disk import files_of_at_most

from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.chem.cc.plan import fitting
from outcore.job import scratch


@pytest.fixture(scope="module")
def stretched() -> Any:
    return mean_field("N 0 0 0; N 0 0 2.0", "sto-3g")


def start(mf: Any, **settings: Any) -> CCSD:
    return CCSD(mf, 2, integrals="conventional", comm=None, memory="1GB", threads=1, **settings)


def test_divergence_names_the_amplitude_and_what_may_help(stretched: Any) -> None:
    cc = start(stretched, diis_space=1, max_cycle=200)
    words = r"iteration \d+ diverged: the amplitudes changed by .*, that of orbitals \d+, \d+ -> \d+, \d+ by"
    with pytest.raises(OutcoreError, match=f"{words}.*--level-shift 0.3.*--damping 0.5"):
        cc.kernel()
    with pytest.raises(OutcoreError, match="iterations have diverged; make a new object"):
        cc.kernel()


@pytest.mark.parametrize("aid", [{"damping": 0.5}, {"level_shift": 0.4}], ids=["damping", "shift"])
def test_level_shift_and_damping_help(stretched: Any, aid: dict[str, float]) -> None:
    from pyscf import cc as peers

    peer = peers.CCSD(stretched, frozen=2)
    peer.conv_tol = 1e-9
    peer.kernel()
    with start(stretched, diis_space=1, max_cycle=200, conv_tol=2e-3, conv_tol_normt=3e-2, **aid) as cc:
        cc.kernel()
    assert peer.converged
    assert cc.converged
    assert abs(cc.e_corr - peer.e_corr) < 2e-2


@pytest.mark.parametrize("name", ["V+", pytest.param("Bvv", marks=pytest.mark.long)])
def test_a_flipped_bit_of_stored_integrals_is_an_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Large enough that two chunks, which stay in memory, are a part of them.
    for each in ("CACHE_BYTES", "_LARGEST_CACHE"):
        monkeypatch.setattr(fitting, each, 512)
    files = files_of_arrays(monkeypatch)
    mf = mean_field(WATER, "aug-cc-pvdz")
    settings = {"storage": "disk", "ladder": "disk", "scratch": str(tmp_path), "threads": 1}
    cc = CCSD(mf, 1, comm=None, memory="1GB", **settings)
    cc.set_up()
    flip_a_bit(files[name])
    with pytest.raises(OutcoreError, match="checksum") as caught:
        cc.kernel()
    assert caught.value.errno == errno.EIO
    assert not cc.iterations


def test_a_disk_that_is_too_small_is_refused_beforehand(
    stretched: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cc = start(stretched, storage="disk", scratch=str(tmp_path), checkpoint=tmp_path / "kept")
    needed = cc.prepare().disk_bytes
    monkeypatch.setattr(
        scratch,
        "_core",
        SimpleNamespace(file_system=lambda path: SimpleNamespace(free_bytes=needed, network=False)),
    )
    with pytest.raises(OutcoreError, match=r"arrays take [\d.]+ .B, there are") as caught:
        cc.kernel()
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.path == str(tmp_path)


@pytest.mark.parametrize("stage", ["integrals", "iterations"])
def test_a_disk_that_fills_is_an_error(stage: str, stretched: Any, tmp_path: Path) -> None:
    cc = start(stretched, storage="disk", scratch=str(tmp_path))
    if stage == "iterations":
        cc.set_up()
    with files_of_at_most(512), pytest.raises(OutcoreError) as caught:
        cc.kernel()
    assert caught.value.errno == errno.EFBIG
    assert not cc.converged
