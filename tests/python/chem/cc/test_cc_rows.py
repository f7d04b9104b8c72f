"""Energies of the standard suite that programs of quantum chemistry share (standard_suite_ref.py of QCEngine): SCF
and coupled cluster each with all integrals ("conv"), density fitting ("df") or Cholesky decomposition ("cd"), all
electrons ("ae") or frozen cores ("fc"). A few here; OUTCORE_ROWS=all for the others."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import pytest
from cc_support import AMINO, BORANE, FLUORIDE

from outcore.chem.cc import CCSD

MOLECULES = {
    "hf": ((FLUORIDE, 0, 0), "cc-pvdz"),
    # Along the axes of its symmetry, as the suite has it: a loose decomposition depends on how the molecule lies.
    "h2o": (("O 0 0 0; H 0 0.7574806116 0.5865041543; H 0 -0.7574806116 0.5865041543", 0, 0), "aug-cc-pvdz"),
    "nh2": (AMINO, "aug-cc-pvdz"),
    "bh3p": (BORANE, "cc-pvdz"),
}

# Molecule, SCF, reference, core, coupled cluster, energies of CCSD and of (T).
SHORT = [
    ("hf", "df", "RHF", "ae", "df", -0.20886881949604, -0.00193801686266),
    ("hf", "conv", "RHF", "ae", "cd", -0.20874537, -0.00193646),
    ("h2o", "conv", "RHF", "fc", "cd", -0.22717646, -0.00521255),
    ("bh3p", "conv", "UHF", "fc", "conv", -0.08117105566, -0.00060401),
]
LONG = [
    ("hf", "conv", "RHF", "fc", "df", -0.20695586, -0.00192267),
    ("hf", "df", "RHF", "fc", "df", -0.20694030442285, -0.00192209183545),
    ("hf", "conv", "RHF", "ae", "df", -0.20888438, -0.00193859),
    ("h2o", "conv", "RHF", "ae", "conv", -0.2294105794, -0.00523856),
    ("h2o", "conv", "RHF", "fc", "conv", -0.22717334532791256, -0.00521238),
    ("h2o", "df", "RHF", "ae", "df", -0.22953288030956, -0.00524345048605),
    ("h2o", "df", "RHF", "fc", "df", -0.22729553766998, -0.00521721307613),
    ("bh3p", "df", "UHF", "ae", "df", -0.08223900985527, -0.00062655599464),
    ("bh3p", "df", "UHF", "fc", "df", -0.08123709133288, -0.00060440612636),
    ("bh3p", "conv", "UHF", "ae", "df", -0.08224363, -0.00062669),
    ("bh3p", "conv", "UHF", "ae", "cd", -0.08217068, -0.00062618),
    ("nh2", "conv", "UHF", "ae", "conv", -0.17387203707017695, -0.00384378),
    ("nh2", "conv", "UHF", "fc", "conv", -0.1716495276047496, -0.00381116),
    ("nh2", "df", "UHF", "fc", "df", -0.17173557387375, -0.00381543842966),
    ("nh2", "conv", "ROHF", "ae", "conv", -0.178236032911, -0.003901085777),
    ("nh2", "conv", "ROHF", "fc", "conv", -0.175993216083, -0.003868160727),
]
ROWS = SHORT + LONG if os.environ.get("OUTCORE_ROWS") == "all" else SHORT

INTEGRALS = {"conv": "conventional", "df": "ri", "cd": "cholesky"}


@cache
def reference(name: str, kind: str, how: str) -> Any:
    import pyscf
    from pyscf import scf

    (atoms, charge, spin), basis = MOLECULES[name]
    mf = getattr(scf, kind)(pyscf.M(atom=atoms, charge=charge, spin=spin, basis=basis, verbose=0))
    if how == "df":
        mf = mf.density_fit(auxbasis=f"{basis}-jkfit")
    mf.conv_tol = 1e-12
    mf.kernel()
    return mf


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(row[:5]))
def test_energies_are_those_of_the_suite(row: Any) -> None:
    name, scf, kind, core, integrals, energy, triples = row
    settings: dict[str, Any] = {"integrals": INTEGRALS[integrals]}
    if integrals == "cd":
        settings["tolerance"] = 1e-4
    frozen = "auto" if core == "fc" else None
    with CCSD(
        reference(name, kind, scf),
        frozen,
        comm=None,
        memory="1GB",
        threads=1,
        conv_tol=1e-9,
        conv_tol_normt=1e-6,
        **settings,
    ) as cc:
        cc.kernel()
        cc.ccsd_t()
    tolerance = 1e-6 if integrals == "cd" else 1e-8
    assert abs(cc.e_corr - energy) < tolerance
    assert abs(cc.e_t - triples) < tolerance
