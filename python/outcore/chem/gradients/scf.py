"""Nuclear gradients of Hartree-Fock, also with the correction of a method to its density."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem import reference as references
from outcore.chem.gradients.one_electron import nuclei, one_electron
from outcore.chem.gradients.two_electron import EnergyDerivatives, two_electron

if TYPE_CHECKING:
    from outcore.chem.gradients.densities import Densities
    from outcore.chem.gradients.three_index import SlabKeeper
    from outcore.chem.method import Means
    from outcore.parallel.tasks import Progress

_ATTEMPTED = "gradient"
_SAME = 1e-9  # largest difference of integrals that are computed twice, relative to the largest element


def gradient(
    mf: Any,
    means: Means,
    densities: Densities,
    progress: Progress | None = None,
    keeper: SlabKeeper | None = None,
) -> EnergyDerivatives:
    """Derivatives of nuclei, one-electron energy and the energy of Coulomb and exchange, with the integrals of the
    SCF; the same bits at all processes. keeper: keeps the results of slabs of fitted integrals. Collective."""
    world, mol = means.world, mf.mol
    found, least_moved = two_electron(mf, means, densities, progress, keeper)
    with world.together(_ATTEMPTED):
        found += one_electron(world, mol, mf, densities)
    return EnergyDerivatives(nuclei(mol) + world.all_reduce(found), least_moved)


def scf_reference(means: Means, mf: Any) -> references.Reference:
    """The orbitals of a mean-field object that has a gradient. Collective. Raises OutcoreError."""

    def take(given: Any) -> references.Reference:
        check(given)
        found = references.as_given(given)
        stationary(given, found)
        return found

    return references.of_rank_0(means.world, mf, _ATTEMPTED, take)


def check(mf: Any) -> None:
    """Raises OutcoreError for a mean-field object that has no gradient here, the same on all processes that have
    the same object. Not collective."""
    from pyscf.scf import hf

    references.check_method(mf, _ATTEMPTED)
    mol, kind = mf.mol, type(mf).__name__
    if mf.converged is False and mf.mo_coeff is not None:
        raise OutcoreError(
            errno.EINVAL,
            _ATTEMPTED,
            detail="the SCF has not converged (mf.converged is False): its energy has no gradient of this form",
        )
    if mf.istype("_SmearingSCF"):
        raise refused(f"{kind} smears occupations, whose response is not there: take whole occupations")
    if getattr(mol, "_pseudo", None):
        raise refused("pseudopotentials of plane waves (GTH) have no derivatives here: take an ECP")
    if vars(mf).get("only_dfj"):
        raise refused(f"{kind} fits Coulomb integrals alone (only_dfj): fit both, or none")
    if vars(mf).get("_eri") is not None and not getattr(mol, "natm", 0):
        raise refused("the integrals are those of a model without atoms")
    if getattr(mf, "disp", None):
        raise refused(f"{kind} has a dispersion correction ({mf.disp}): add the gradient of that yourself")
    for what, own, usual in (
        ("one-electron Hamiltonian", mf.get_hcore(), hf.get_hcore(mol)),
        ("overlap", mf.get_ovlp(), hf.get_ovlp(mol) if hasattr(hf, "get_ovlp") else mol.intor("int1e_ovlp")),
    ):
        if np.shape(own) != np.shape(usual) or abs(own - usual).max() > _SAME * max(1.0, abs(usual).max()):
            raise refused(
                f"the {what} of {kind} is not that of the molecule (a field, an environment, relativity, a model), "
                "and its derivatives are not known"
            )


def stationary(mf: Any, reference: references.Reference) -> None:
    """Raises OutcoreError if there are fewer orbitals than functions, because some were left out."""
    functions = mf.mol.nao
    for each in reference.spins:
        if each.coefficients.shape[1] < functions:
            raise refused(
                f"{functions - each.coefficients.shape[1]} combinations of {functions} functions were left out as "
                "linearly dependent, and how these change with the geometry is not known: take a smaller basis"
            )


def refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.ENOTSUP, _ATTEMPTED, detail=detail)
