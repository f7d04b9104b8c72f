"""States of EOM-CCSD beside PySCF's with the same integrals.

Ten closed shells (RHF: singlets, triplets, ionised and attached states) and five open ones (UHF: excited states,
ionised and attached states, a spin flipped), each with frozen cores, from fitted and from exact integrals. The
lowest states of Outcore are compared with as many of PySCF's, one after the other: a state that one program
misses, or has twice, moves all that lie above it. PySCF computes more states, so that it misses none of the lowest,
and gets the fitted integrals in place of exact ones. Integrals of ladders are recomputed, because stored ones have
single precision. --quick takes one molecule of each kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outcore.cli.bench import BenchOptions, Claim, at_most

from ._molecules import Case

Values = np.ndarray[Any, np.dtype[Any]]

HAS_CASES = True
SAME = 1e-8  # Hartree
ROOTS, MORE = 2, 8  # states of Outcore and of PySCF, which with 4 states misses a pair of hydrogen cyanide
NOTHING = 1e-8  # Hartree: the energy of no state
AUXILIARY = "cc-pvdz-ri"


@dataclass(frozen=True)
class Kind:
    """name: shown to readers. method: of an Outcore CCSD object. peer: a class of PySCF's EOM modules."""

    name: str
    method: str
    peer: str


_AMMONIA = "N 0 0 0.1; H 0.94 0 -0.27; H -0.47 0.814 -0.27; H -0.47 -0.814 -0.27"
CLOSED = (
    Case("H2O", "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587", "6-31g"),
    Case("NH3", _AMMONIA, "6-31g"),
    Case("N2", "N 0 0 0; N 0 0 1.0977", "6-31g"),
    Case("CO", "C 0 0 0; O 0 0 1.128", "6-31g"),
    Case("HF", "H 0 0 0; F 0 0 0.917", "cc-pvdz"),
    Case("CH2O", "C 0 0 -0.53; O 0 0 0.674; H 0 0.936 -1.115; H 0 -0.936 -1.115", "sto-3g"),
    Case(
        "C2H4",
        "C 0 0 0.67; C 0 0 -0.67; H 0 0.92 1.23; H 0 -0.92 1.23; H 0 0.92 -1.23; H 0 -0.92 -1.23",
        "sto-3g",
    ),
    Case("HCN", "H 0 0 -1.065; C 0 0 0; N 0 0 1.156", "6-31g"),
    Case("H2O2, twisted", "O 0 0.7 0; O 0 -0.72 0.03; H 0.8 0.9 0.5; H -0.75 -0.95 0.52", "sto-3g"),
    Case("BH", "B 0 0 0; H 0 0 1.232", "cc-pvdz"),
)
OPEN = (
    Case("NH2", "N 0 0 0; H 0 0.803 0.635; H 0 -0.803 0.635", "6-31g", 0, 1),
    Case("CH2, triplet", "C 0 0 0; H 0 0.99 0.43; H 0 -0.99 0.43", "6-31g", 0, 2),
    Case("OH", "O 0 0 0; H 0 0 0.97", "6-31g", 0, 1),
    Case("O2, triplet", "O 0 0 0; O 0 0 1.208", "sto-3g", 0, 2),
    Case("H2O+", "O 0 0 0; H 0 0.803 0.59; H 0 -0.803 0.59", "6-31g", 1, 1),
)
OF_CLOSED = (
    Kind("singlets", "eomee_ccsd_singlet", "EOMEESinglet"),
    Kind("triplets", "eomee_ccsd_triplet", "EOMEETriplet"),
    Kind("ionised states", "ipccsd", "EOMIP"),
    Kind("attached states", "eaccsd", "EOMEA"),
)
OF_OPEN = (
    Kind("excited states", "eomee_ccsd", "EOMEESpinKeep"),
    Kind("a spin flipped", "eomsf_ccsd", "EOMEESpinFlip"),
    Kind("ionised states", "ipccsd", "EOMIP"),
    Kind("attached states", "eaccsd", "EOMEA"),
)


def run(options: BenchOptions) -> list[Claim]:
    claims = []
    for reference, cases, kinds in (("RHF", CLOSED, OF_CLOSED), ("UHF", OPEN, OF_OPEN)):
        for integrals in ("fitted", "exact"):
            found = [
                _measured(options, case, integrals, kinds) for case in cases[: 1 if options.quick else None]
            ]
            for kind in kinds:
                errors = [each[kind.name] for each in found if kind.name in each]
                how = f"{len(errors)} molecules, {ROOTS} states each, median {np.median(errors):.0e}"
                name = f"{reference}-EOM-CCSD, {integrals} integrals, {kind.name}: largest difference"
                claims.append(Claim(name, max(errors), "Eh", at_most(SAME), "PySCF", how))
    return claims


def _measured(options: BenchOptions, case: Case, integrals: str, kinds: Sequence[Kind]) -> dict[str, float]:
    """The largest difference of each kind of states."""
    name = f"{case.name}/{case.basis}, {integrals} integrals"
    found: dict[str, float] = options.case(name, lambda: _errors(case, integrals, kinds))
    options.say(f"{name}: " + ", ".join(f"{kind} {error:.1e}" for kind, error in found.items()))
    return found


def _errors(case: Case, integrals: str, kinds: Sequence[Kind]) -> dict[str, float]:
    import pyscf
    from pyscf import lib
    from pyscf.cc import eom_rccsd, eom_uccsd

    from outcore.chem.cc import CCSD

    lib.num_threads(1)  # products are this small
    mol = pyscf.M(atom=case.atoms, basis=case.basis, charge=case.charge, spin=case.spin, verbose=0)
    mf = _mean_field(mol, integrals)
    peer = _peer(mf, integrals)
    modules, found = eom_uccsd if case.spin else eom_rccsd, {}
    with CCSD(
        mf,
        "auto",
        auxbasis=AUXILIARY if integrals == "fitted" else None,
        comm=None,
        memory="2GB",
        threads=1,
        conv_tol=1e-11,
        conv_tol_normt=1e-9,
        ladder="rebuild",
    ) as cc:
        cc.kernel()
        for kind in kinds:
            energies, states = getattr(cc, kind.method)(nroots=ROOTS, residual=1e-9)
            assert states.converged.all(), f"{case.name}, {kind.name}: not converged"
            eom = getattr(modules, kind.peer)(peer)
            eom.conv_tol, eom.max_cycle, eom.max_space = 1e-11, 200, 40
            its = np.atleast_1d(eom.kernel(nroots=MORE)[0])[np.atleast_1d(eom.converged)]
            found[kind.name] = _difference(np.atleast_1d(energies), its, f"{case.name}, {kind.name}")
    return found


def _difference(ours: Values, theirs: Values, what: str) -> float:
    """The largest difference of our states from PySCF's lowest ones, each list in its order. States with equal
    energies count one by one. PySCF's vectors have parts that Pauli's principle leaves out, whose energy is 0: with
    many roots its search finds such vectors, which are no states."""
    theirs = theirs[abs(theirs) > NOTHING]
    assert len(theirs) >= len(ours), f"{what}: PySCF has {len(theirs)} states"
    return float(abs(np.sort(ours) - np.sort(theirs)[: len(ours)]).max())


def _mean_field(mol: Any, integrals: str) -> Any:
    from pyscf import scf

    mf = (scf.UHF if mol.spin else scf.RHF)(mol)
    if integrals == "fitted":
        mf = mf.density_fit(auxbasis=AUXILIARY)
    mf.conv_tol, mf.conv_tol_grad, mf.max_cycle = 1e-13, 1e-9, 200
    mf.kernel()
    assert mf.converged
    return mf


def _peer(mf: Any, integrals: str) -> Any:
    """PySCF's CCSD, tightly converged."""
    from pyscf import cc, df, lib, scf

    reference = (scf.UHF if mf.mol.spin else scf.RHF)(mf.mol)
    reference.mo_coeff, reference.mo_energy, reference.mo_occ = mf.mo_coeff, mf.mo_energy, mf.mo_occ
    reference.e_tot, reference.converged = mf.e_tot, True
    if integrals == "fitted":
        factors = df.DF(mf.mol, auxbasis=AUXILIARY).build()._cderi
        reference._eri = lib.dot(factors.T, factors)
    found = cc.CCSD(reference).set_frozen()
    found.conv_tol, found.conv_tol_normt, found.max_cycle = 1e-12, 1e-10, 200
    found.kernel()
    assert found.converged
    return found
