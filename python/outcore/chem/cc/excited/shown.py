"""What `outcore eom` shows and writes of properties of states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.excited import transition_orbitals
from outcore.chem.cc.excited.properties import PROPERTIES
from outcore.chem.cc.excited.spectrum import EV_NANOMETRES, WIDTH, Spectrum
from outcore.chem.gradients.properties import DEBYE
from outcore.chem.units import HARTREE

if TYPE_CHECKING:
    from outcore.chem.cc.excited.options import Options
    from outcore.chem.cc.excited.properties import StateProperties
    from outcore.chem.run import MoleculeRun


def properties(run: MoleculeRun, options: Options, found: StateProperties) -> None:
    """The table, and the files that were asked for. Collective."""
    energies, strengths = found.states.energies * HARTREE, found.oscillator_strengths
    orbitals = [transition_orbitals.of_root(found, root) for root in range(len(energies))]
    run.say(f"{'state':>5} {'E / eV':>10} {'nm':>9} {'strength':>10}  dipole moment / Debye")
    run.say(f"{0:5d} {'':>31}  {_row(found.ground_dipole)}")
    for root, (energy, strength) in enumerate(zip(energies, strengths, strict=True)):
        length = f"{EV_NANOMETRES / energy:9.2f}" if energy > 0 else " " * 9
        run.say(f"{root + 1:5d} {energy:10.4f} {length} {strength:10.6f}  {_row(found.dipoles[root])}")
        run.results["states"][root] |= {
            "oscillator_strength": float(strength),
            "transition_moment_right_au": found.right_moments[root].tolist(),
            "transition_moment_left_au": found.left_moments[root].tolist(),
            "dipole_debye": (found.dipoles[root] * DEBYE).tolist(),
            "natural_transition_weights": orbitals[root].weights.tolist(),
        }
    run.results |= {
        "ground_dipole_debye": (found.ground_dipole * DEBYE).tolist(),
        "left_iterations": len(found.iterations),
    }
    if found.mol.charge:
        run.say("of a charged molecule dipole moments are about the origin of the coordinates")
    spectrum = Spectrum(energies, strengths, options.width or WIDTH)
    files = [
        ("spectrum", options.spectrum, spectrum.write),
        ("plot", options.plot, spectrum.draw),
    ]
    with run.world.together(PROPERTIES):
        for _, path, write in files if run.root else ():
            if path is not None:
                write(path)
        for path, each in zip(options.nto_files if run.root else (), orbitals, strict=False):
            each.write(path, found.mol)
    for what, path, _ in files:
        if path is not None:
            run.say(f"{what} in {path}")
            run.results[f"{what}_file"] = str(path)
    if options.nto_files:
        run.say(f"natural transition orbitals in {options.nto_files[0]} .. {options.nto_files[-1].name}")
        run.results["transition_orbital_files"] = [str(each) for each in options.nto_files]


def _row(moment: Any) -> str:
    debye = np.round(moment * DEBYE, 5) + 0.0  # no -0
    return "".join(f"{each:11.5f}" for each in debye) + f"   total {np.linalg.norm(debye):.5f}"
