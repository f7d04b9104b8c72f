"""Numbers of a damaged chkfile that would lead native code outside of arrays, or into endless loops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from outcore import OutcoreError
from outcore.chem import orbital_file

h5py = pytest.importorskip("h5py")
pytest.importorskip("pyscf")
from pyscf import gto, scf  # noqa: E402


@pytest.mark.parametrize(
    ("table", "row", "column", "value"),
    [("_atm", 1, 1, 10**8), ("_bas", 0, 0, 7), ("_bas", 0, 2, -1), ("_bas", 1, 5, 10**8), ("_bas", 0, 1, 99)],
)
def test_a_table_that_leads_nowhere_is_refused(
    table: str, row: int, column: int, value: int, tmp_path: Path
) -> None:
    mf: Any = scf.RHF(gto.M(atom="H 0 0 0; H 0 0 0.74", basis="sto-3g", verbose=0))
    mf.chkfile = str(tmp_path / "h2.chk")
    mf.kernel()
    assert orbital_file.start(mf, tmp_path / "h2.chk")["mo_coeff"].shape == (2, 2)
    with h5py.File(tmp_path / "h2.chk", "r+") as file:
        tables = json.loads(file["mol"][()])
        tables[table][row][column] = value
        del file["mol"]
        file["mol"] = json.dumps(tables)
    with pytest.raises(OutcoreError, match="leads nowhere"):
        orbital_file.start(mf, tmp_path / "h2.chk")


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("length", 255 << 24, "bytes is one of"),
        ("heap", 1 << 40, "beyond the end of the file"),
        ("number", 3, "is not where the file says"),
        ("size of the heap", 1 << 56, "damaged"),
        ("size of the text", 227, "bytes is one of"),
    ],
)
def test_a_text_that_hdf5_would_follow_for_ever_is_refused(
    place: str, value: int, said: str, tmp_path: Path
) -> None:
    mf: Any = scf.RHF(gto.M(atom="H 0 0 0; H 0 0 0.74", basis="sto-3g", verbose=0))
    path = tmp_path / "h2.chk"
    mf.chkfile = str(path)
    mf.kernel()
    with h5py.File(path, "r") as file:
        reference, text = file["mol"].id.get_offset(), file["mol"][()]
    content = bytearray(path.read_bytes())
    heap = int.from_bytes(content[reference + 4 : reference + 12], "little")
    assert content[heap : heap + 4] == b"GCOL" and content[heap + 32 :].startswith(text)
    at, width = {
        "length": (reference, 4),
        "heap": (reference + 4, 8),
        "number": (reference + 12, 4),
        "size of the heap": (heap + 8, 8),
        "size of the text": (heap + 24, 8),
    }[place]
    content[at : at + width] = value.to_bytes(width, "little")
    path.write_bytes(content)
    with pytest.raises(OutcoreError, match=said):
        orbital_file.start(mf, path)
