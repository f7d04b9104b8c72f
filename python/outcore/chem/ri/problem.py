"""What fitted integrals depend on, and the format in which they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outcore.chem import problem
from outcore.chem.ri import auxiliary, metric

if TYPE_CHECKING:
    from pyscf.gto import Mole

FORMAT = 2  # of all arrays and their facts


def settings(mol: Mole, auxmol: Mole, screening: float) -> problem.Settings:
    """What fitted integrals of a molecule and its auxiliary basis depend on."""
    return {
        **problem.integrals(mol),
        **problem.auxiliary(auxmol),
        "screening": float(screening),
        "cut of the metric": metric.LINEAR_DEPENDENCE,
    }


_OF_SCF = "of the SCF"
ROUNDED = (*problem.ROUNDED, f"auxiliary contractions {_OF_SCF}")


def of_mean_field(mf: Any) -> problem.Settings:
    """The fitting of an SCF, on which its orbitals and their response depend; of exact integrals nothing."""
    fitting = vars(mf).get("with_df")
    if fitting is None:
        return {}
    # As it was given, of ours; functions themselves of PySCF's.
    given = getattr(fitting, "given_auxbasis", None) or fitting.auxbasis
    found = problem.auxiliary(auxiliary.build(mf.mol, given))
    found["screening"] = float(getattr(fitting, "screening", 0.0))
    return {f"{name} {_OF_SCF}": each for name, each in found.items()}
