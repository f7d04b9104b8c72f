"""Molecules whose energies are known."""

from __future__ import annotations

from functools import cache

N2 = "N 0 0 0; N 0 0 1.0977"
WATER = "O 0 0 0; H 0 -0.757 0.587; H 0 0.757 0.587"
# Of C2 in the basis of a published case, in NWChem's format.
DZP = """
C S
  3623.8613  0.0016339  0.0  0.0  0.0
  544.04621  0.0125217  0.0  0.0  0.0
  123.74338  0.0621139  0.0  0.0  0.0
  34.763209  0.2181773  0.0  0.0  0.0
  10.933333  0.4980043  0.0  0.0  0.0
  3.5744765  0.0  1.0  0.0  0.0
  0.5748325  0.0  0.0  1.0  0.0
  0.1730364  0.0  0.0  0.0  1.0
C P
  9.4432819  0.0378955  0.0
  2.0017986  0.2081818  0.0
  0.5462972  0.5047417  0.0
  0.1520268  0.0  1.0
C D
  0.8  1.0
"""


@cache
def mean_field(atoms, basis="6-31g", symmetry=True, spin=0):
    from pyscf import gto, scf

    mol = gto.M(atom=atoms, basis=basis, symmetry=symmetry, spin=spin, verbose=0)
    kind = scf.ROHF if spin else scf.RHF
    return kind(mol).run(conv_tol=1e-12)


@cache
def _c2():
    from pyscf import gto, scf

    z = 1.52047364054337
    basis = {"C": gto.basis.parse(DZP)}
    mol = gto.M(atom=f"C 0 0 {-z}; C 0 0 {z}", unit="B", basis=basis, symmetry="C2h", verbose=0)
    return scf.RHF(mol).run(conv_tol=1e-12)


def c2(**settings):
    """An MRCI of two references. For functionals, states without references lie below those of the
    references."""
    from outcore.chem.mrci import MRCI

    given = {"frozen": 2, "inactive": 3, "active": 2, "couplings": "interacting", "irrep": "Ag"}
    return MRCI.from_mean_field(_c2(), **given, **settings)
