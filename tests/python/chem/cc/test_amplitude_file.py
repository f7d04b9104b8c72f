"""Amplitudes in HDF5 files: reading them back, exchange with PySCF, and files of other content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import IMIDOGEN, WATER, mean_field, open_mean_field

from outcore import OutcoreError
from outcore.chem.cc import CCSD

pytest.importorskip("h5py")

TIGHT = {"conv_tol": 1e-9, "conv_tol_normt": 1e-7}


@pytest.fixture(scope="module")
def water() -> Any:
    return mean_field(WATER, "sto-3g")


@pytest.fixture(scope="module")
def imidogen() -> Any:
    return open_mean_field("UHF", IMIDOGEN, "sto-3g")


def start(mf: Any, frozen: int = 1, **settings: Any) -> CCSD:
    given = {"integrals": "conventional", "comm": None, "memory": "1GB", "threads": 1}
    return CCSD(mf, frozen, **given, **TIGHT | settings)


@pytest.fixture(scope="module")
def kept(
    water: Any, imidogen: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Path, float]]:
    """Files of amplitudes, and their energies."""
    found = {}
    for name, mf in (("water", water), ("imidogen", imidogen)):
        path = tmp_path_factory.mktemp("amplitudes") / f"{name}.h5"
        with start(mf, block=2) as cc:
            cc.kernel()
            cc.save_amplitudes(path)
        found[name] = path, cc.e_corr
    return found


def turn_first_two(path: Path) -> None:
    """The same amplitudes for other orbitals: the first two occupied ones of each spin are mixed."""
    import h5py

    mix = np.array([[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]])

    def turn(array: Any, axis: int) -> None:
        values = np.moveaxis(array[...], axis, 0)
        values[:2] = np.tensordot(mix, values[:2], ([0], [0]))
        array[...] = np.moveaxis(values, 0, axis)

    with h5py.File(path, "a") as file:
        for what, axes in (("mo_coeff", (1,)), ("t1", (0,)), ("t2", (0, 1))):
            group = file.get(f"ccsd/{what}__from_list__") or {"": file.get(f"ccsd/{what}")}
            for array in group.values():
                for axis in axes:
                    turn(array, axis)


@pytest.mark.parametrize("name", ["water", "imidogen"])
@pytest.mark.parametrize("change", ["signs", "rotation"])
def test_amplitudes_of_a_file_are_those_that_were_written(
    name: str, change: str, kept: Any, request: Any, tmp_path: Path
) -> None:
    import shutil

    mf, path = request.getfixturevalue(name), tmp_path / "t.h5"
    shutil.copy(kept[name][0], path)
    if change == "rotation":
        turn_first_two(path)
    else:
        mf = mf.copy()
        mf.mo_coeff = -np.array(mf.mo_coeff)
    with start(mf, from_amplitudes=path, block=3, storage="disk") as cc:
        cc.kernel()
    assert cc.converged
    assert len(cc.iterations) <= 2
    assert abs(cc.iterations[0].energy - kept[name][1]) < 1e-8
    assert not path.with_name(f"{path.name}.part").exists()


def test_pyscf_reads_them_and_is_read(water: Any, kept: Any, tmp_path: Path) -> None:
    from pyscf import cc as peers
    from pyscf import lib

    found = lib.chkfile.load(str(kept["water"][0]), "ccsd")
    with start(water, from_amplitudes=kept["water"][0], max_cycle=1) as cc:
        cc.set_up()
        mine = cc.amplitudes()
    assert abs(found["t1"] - mine[0]).max() < 1e-12
    assert abs(found["t2"] - mine[1]).max() < 1e-12
    both = lib.chkfile.load(str(kept["imidogen"][0]), "ccsd")
    assert [each.shape for each in both["t2"]] == [(4, 4, 1, 1), (4, 2, 1, 3), (2, 2, 3, 3)]
    peer = peers.CCSD(water, frozen=1)
    peer.conv_tol, peer.conv_tol_normt = 1e-10, 1e-8
    peer.kernel()
    peer.chkfile = str(tmp_path / "peer.chk")
    peer.dump_chk(frozen=1, mo_coeff=water.mo_coeff)
    with start(water, from_amplitudes=tmp_path / "peer.chk") as cc:
        cc.kernel()
        assert len(cc.iterations) <= 2
    assert abs(cc.e_corr - peer.e_corr) < 1e-8


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("atoms", "another geometry"),
        ("basis", "another basis"),
        ("frozen", "4 occupied and 2 virtual orbitals, now there are 5 and 2"),
        ("open", "amplitudes of closed shells"),
        ("orbitals", "its occupied orbitals are others than the present ones"),
        ("missing", "No such file"),
        ("empty", "no t1 and t2 of CCSD"),
        ("numbers", "no numbers"),
    ],
)
def test_amplitudes_of_something_else_are_refused(
    given: str, words: str, water: Any, imidogen: Any, kept: Any, tmp_path: Path
) -> None:
    import shutil

    import h5py

    mf, path, frozen = water, tmp_path / "t.h5", 1
    shutil.copy(kept["water"][0], path)
    if given == "atoms":
        mf = mean_field("O 0 0 0; H 0 0 1.0; H 0 0.9 -0.2", "sto-3g")
    elif given == "basis":
        mf = mean_field(WATER, "6-31g")
    elif given == "frozen":
        frozen = 0
    elif given == "open":
        mf = imidogen
    elif given == "orbitals":
        mf = water.copy()
        mf.mo_coeff = water.mo_coeff[:, [0, 1, 2, 3, 5, 4, 6]]
    elif given == "missing":
        path.unlink()
    with h5py.File(path, "a" if given != "missing" else "w") as file:
        if given == "empty":
            del file["ccsd/t2"]
        elif given == "open":
            del file["ccsd/problem"]
        elif given == "numbers":
            file["ccsd/t2"][0, 0, 0, 0] = np.nan
    if given == "missing":
        path.unlink()
    with pytest.raises(OutcoreError, match=words):
        start(mf, frozen, from_amplitudes=path).kernel()
