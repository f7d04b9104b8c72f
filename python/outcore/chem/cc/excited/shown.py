"""Properties of states, as `outcore eom` shows and writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.excited import dyson, transition_orbitals
from outcore.chem.cc.excited.properties import PROPERTIES
from outcore.chem.cc.excited.spectrum import EV_NANOMETRES, WIDTH, Spectrum
from outcore.chem.formats import densities
from outcore.chem.gradients.properties import DEBYE
from outcore.chem.units import HARTREE

if TYPE_CHECKING:
    from pathlib import Path

    from outcore.chem.cc.excited.dyson import DysonOrbitals
    from outcore.chem.cc.excited.options import Options
    from outcore.chem.cc.excited.properties import StateProperties
    from outcore.chem.cc.excited.transition_orbitals import TransitionOrbitals
    from outcore.chem.run import MoleculeRun


def properties(run: MoleculeRun, options: Options, found: StateProperties) -> None:
    """Shows the table, and writes the files that the options ask for. Collective."""
    kind = found.states.kind
    if kind.from_ground:
        strengths = found.oscillator_strengths
        lines = [f"{each:10.6f}" for each in strengths]
        _table(run, found, "strength", lines)
        orbitals = [transition_orbitals.of_root(found, root) for root in range(len(strengths))]
        for root, strength in enumerate(strengths):
            run.results["states"][root] |= {
                "oscillator_strength": float(strength),
                "transition_moment_right_au": found.right_moments[root].tolist(),
                "transition_moment_left_au": found.left_moments[root].tolist(),
                "natural_transition_weights": orbitals[root].weights,
            }
        _spectrum(run, options, found)
        _orbitals(
            run, options.nto_files, orbitals, found, "natural transition orbitals", "transition_orbital"
        )
    elif kind.is_ion:
        lines = [f"{each:10.6f}" for each in found.pole_strengths]
        _table(run, found, "pole", lines)
        for root, strength in enumerate(found.pole_strengths):
            run.results["states"][root]["pole_strength"] = float(strength)
        ions = [dyson.of_root(found, root) for root in range(len(lines))]
        _orbitals(run, options.dyson_files, ions, found, "Dyson orbitals", "dyson_orbital")
    else:
        _table(run, found, "", [""] * len(found.states.energies))
        run.say(
            "strengths of transitions from the ground state are zero by spin, or not there: none are computed"
        )
    if not kind.from_ground:
        _between(run, found)
    _densities(run, options.density_files, found)
    run.results |= {
        "ground_dipole_debye": (found.ground_dipole * DEBYE).tolist(),
        "left_iterations": len(found.iterations),
    }
    if found.mol.charge or kind.is_ion:
        run.say("dipole moments of charged states are about the origin of the coordinates")


def _table(run: MoleculeRun, found: StateProperties, title: str, shown: Sequence[str]) -> None:
    """Shows energies, dipole moments, and a column of this title."""
    run.say(f"{'state':>5} {'E / eV':>10} {'nm':>9} {title:>10}  dipole moment / Debye")
    run.say(f"{0:5d} {'':>31}  {_row(found.ground_dipole)}")
    has_light = found.states.kind.from_ground
    for root, (energy, text) in enumerate(zip(found.states.energies * HARTREE, shown, strict=True)):
        length = f"{EV_NANOMETRES / energy:9.2f}" if has_light and energy > 0 else " " * 9
        run.say(f"{root + 1:5d} {energy:10.4f} {length} {text:>10}  {_row(found.dipoles[root])}")
        run.results["states"][root]["dipole_debye"] = (found.dipoles[root] * DEBYE).tolist()


def _between(run: MoleculeRun, found: StateProperties) -> None:
    """Shows strengths between the lowest of the states and others."""
    energies, strengths = found.states.energies, found.strengths_from_lowest
    lowest = int(np.argmin(energies))
    for root, (energy, strength) in enumerate(zip(energies, strengths, strict=True)):
        run.results["states"][root]["strength_from_lowest"] = float(strength)
        if root != lowest:
            gap = (energy - energies[lowest]) * HARTREE
            run.say(f"{lowest + 1:5d} -> {root + 1}: {gap:.4f} eV, strength {strength:.6f}")


def _spectrum(run: MoleculeRun, options: Options, found: StateProperties) -> None:
    spectrum = Spectrum(found.states.energies * HARTREE, found.oscillator_strengths, options.width or WIDTH)
    files = [("spectrum", options.spectrum, spectrum.write), ("plot", options.plot, spectrum.draw)]
    with run.world.together(PROPERTIES):
        for _, path, write in files if run.root else ():
            if path is not None:
                write(path)
    for what, path, _ in files:
        if path is not None:
            run.say(f"{what} in {path}")
            run.results[f"{what}_file"] = str(path)


def _orbitals(
    run: MoleculeRun,
    files: Sequence[Path],
    orbitals: Sequence[TransitionOrbitals | DysonOrbitals],
    found: StateProperties,
    what: str,
    name: str,
) -> None:
    """Writes a file for each state, if the options ask for files. name: of their list in results."""
    with run.world.together(PROPERTIES):
        for path, each in zip(files if run.root else (), orbitals, strict=False):
            each.write(path, found.mol)
    if files:
        run.say(f"{what} in {files[0]} .. {files[-1].name}")
        run.results[f"{name}_files"] = [str(each) for each in files]


def _densities(run: MoleculeRun, files: Sequence[Path], found: StateProperties) -> None:
    """Writes the density of each state."""
    with run.world.together(PROPERTIES):
        for root, path in enumerate(files if run.root else ()):
            densities.write(path, found.mol, found.state_densities(root))
    if files:
        run.say(f"densities of states in {files[0]} .. {files[-1].name}")
        run.results["density_files"] = [str(each) for each in files]


def _row(moment: Any) -> str:
    debye = np.round(moment * DEBYE, 5) + 0.0  # no -0
    return "".join(f"{each:11.5f}" for each in debye) + f"   total {np.linalg.norm(debye):.5f}"
