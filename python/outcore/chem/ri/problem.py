"""Settings that fitted integrals depend on, and the format in which these are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outcore.chem import problem
from outcore.chem.ri import auxiliary, metric

if TYPE_CHECKING:
    from pyscf.gto import Mole

FORMAT = 2  # of all kept arrays and their metadata


def settings(mol: Mole, auxmol: Mole, screening: float) -> problem.Settings:
    """Settings that fitted integrals of a molecule and its auxiliary basis depend on."""
    return {
        **problem.integrals(mol),
        **problem.auxiliary(auxmol),
        "screening": float(screening),
        "cut of the metric": metric.LINEAR_DEPENDENCE,
    }


_OF_SCF = "of the SCF"
ROUNDED = (*problem.ROUNDED, f"auxiliary contractions {_OF_SCF}")


def of_mean_field(mf: Any) -> problem.Settings:
    """Settings of the fitting of an SCF, on which its orbitals and their response depend; empty for exact
    integrals."""
    fitting = vars(mf).get("with_df")
    if fitting is None:
        return {}
    # For our fitting the auxiliary basis as it was given; for PySCF's the functions themselves.
    given = getattr(fitting, "given_auxbasis", None) or fitting.auxbasis
    found = problem.auxiliary(auxiliary.build(mf.mol, given))
    found["screening"] = float(getattr(fitting, "screening", 0.0))
    return {f"{name} {_OF_SCF}": each for name, each in found.items()}
