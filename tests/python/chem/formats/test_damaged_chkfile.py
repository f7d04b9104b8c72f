"""Tables of a chkfile that native code would follow out of its numbers."""

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
