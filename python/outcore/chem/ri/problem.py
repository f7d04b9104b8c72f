"""What fitted integrals depend on, and the format in which they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outcore.chem import problem
from outcore.chem.ri import metric

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
