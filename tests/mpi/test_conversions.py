"""PySCF's conversions of objects with integrals out of core, on several processes."""

from __future__ import annotations

import pytest

pytest.importorskip("pyscf")
from pyscf import gto
from pyscf import scf as reference

from outcore.chem import ri
from outcore.chem.hf import scf

# Process 0 drives, and sends all others the same values.
pytestmark = pytest.mark.processes(2)

AUXILIARY = "def2-universal-jkfit"
WATER = {"atom": "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587", "basis": "6-31g"}
OXYGEN = {"atom": "O 0 0 0; O 0 0 1.2", "basis": "6-31g", "spin": 2}


def run(mf):
    mf.conv_tol = 1e-11
    return mf.run().e_tot


def irreps(mf):
    mf.irrep_nelec = {"A1": 6, "B1": 2, "B2": 2}
    return run(mf)


def fast_newton(mf):
    mf.conv_tol = 1e-11
    return reference.fast_newton(mf, verbose=0).e_tot


def scanned(mf):
    mf.conv_tol = 1e-11
    return mf.as_scanner()(WATER["atom"].replace("0.757", "0.85"))


WAYS = {
    "restricted open-shell": (run, "RHF", OXYGEN),
    "irreps": (irreps, "RHF", {**WATER, "symmetry": "C2v"}),
    "newton": (lambda mf: run(mf.newton()), "UHF", OXYGEN),
    "fast_newton": (fast_newton, "RHF", WATER),
    "to_rks": (lambda mf: run(mf.to_rks("camb3lyp")), "RHF", WATER),
    "smearing": (lambda mf: run(mf.smearing(0.01)), "RHF", WATER),
    "as_scanner": (scanned, "RHF", WATER),
    "density_fit, J alone": (lambda mf: run(mf.density_fit(AUXILIARY, only_dfj=True)), "RHF", WATER),
    "TDA": (lambda mf: (run(mf), mf.TDA().run(nstates=1).e[0])[1], "RHF", WATER),
}


FITTED = ("irreps", "fast_newton", "to_rks", "density_fit, J alone")
"""Ways that run always with fitted integrals; the others run so with stored ones."""


@pytest.mark.parametrize(
    ("name", "fitted"),
    [
        pytest.param(name, fitted, marks=() if fitted == (name in FITTED) else pytest.mark.long)
        for name in WAYS
        for fitted in (False, True)
    ],
)
def test_energy_is_pyscfs_on_every_process(comm, computed_once, shared_tmp_path, name, fitted):
    call, kind, given = WAYS[name]

    def pyscfs():
        mf = getattr(reference, kind)(gto.M(verbose=0, **given))
        return float(call(mf.density_fit(AUXILIARY) if fitted else mf))

    mol = gto.M(verbose=0, **given)
    if fitted:
        mf = getattr(ri, kind)(mol, AUXILIARY)
    else:
        mf = getattr(scf, kind)(mol, scratch=str(shared_tmp_path), screening=1e-12)
    with mf:
        energy = float(call(mf))
    assert energy == pytest.approx(
        computed_once(f"{name} {fitted}", pyscfs), abs=1e-7 if name == "TDA" else 1e-9
    )
    assert len(set(comm.allgather(energy))) == 1
