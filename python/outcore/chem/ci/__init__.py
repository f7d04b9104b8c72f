"""Configuration interaction: all determinants of some orbitals, or single and double excitations from references.

Names are loaded at first use: `outcore.chem.ci.FCI`, `outcore.chem.ci.MRCI`.

Files:

    command, options, settings, before, view:
        `outcore fci`, and checks before its SCF
    fci, fci_solver:
        the object, and the solver of PySCF's CASCI and CASSCF
    hamiltonian, orbitals, fcidump:
        integrals, orbitals, FCIDUMP files
    space, target, tiles, determinants, spins:
        determinants, states, tiles of vectors
    groups, sigma, passes, vector:
        the sigma vector: tasks, products, passes
    strips:
        rows on disk
    rows, near, deal, copies, lists:
        rows in the memory of several nodes, copies of them, and which node does and needs what
    solver, search, guess, selected, bounds:
        the search for states, and the determinants that it begins with
    packed_search, rounding:
        the search over rounded vectors, and the effect of rounding on energies
    analysis, densities, three_particle, trexio_states:
        analysis of states, densities, states in files of TREXIO
    rotation, mapped:
        states in rotated orbitals, and of other spaces
    plan, products, estimate, speeds:
        memory, ways to make products, predictions, rates
    restart, finished, kept_products, kept_solves:
        checkpoints: states, finished parts of an iteration, states of many solves
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outcore.chem.ci.fci import FCI as FCI
    from outcore.chem.ci.fci_solver import FCISolver as FCISolver

__all__ = ["FCI", "MRCI", "FCISolver"]


def __getattr__(name: str) -> Any:
    if name == "FCI":
        from outcore.chem.ci.fci import FCI

        return FCI
    if name == "FCISolver":
        from outcore.chem.ci.fci_solver import FCISolver

        return FCISolver
    if name == "MRCI":  # this room does not know that one
        return import_module("outcore.chem.mrci").MRCI
    raise AttributeError(f"module 'outcore.chem.ci' has no attribute '{name}'")
