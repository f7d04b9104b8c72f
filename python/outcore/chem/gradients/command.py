"""Densities and gradients, as commands show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.formats import densities as formats
from outcore.chem.gradients import properties
from outcore.chem.ri.traffic import TrafficWatch

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.cc.least import FittedSets
    from outcore.chem.frozen import Frozen
    from outcore.chem.gradients.densities import Densities, Matrix
    from outcore.chem.gradients.forecast import PredictedPart
    from outcore.chem.gradients.options import DensityOptions
    from outcore.chem.options import MoleculeOptions
    from outcore.chem.ri.auxiliary import Purpose
    from outcore.chem.ri.traffic import Traffic
    from outcore.chem.run import MoleculeRun


def fitted_needs(
    run: MoleculeRun,
    mol: Mole,
    sets: dict[Purpose, Mole],
    frozen: Frozen | None,
    spins: int,
    *,
    gradient: bool,
    relaxed: bool,
    group: str | None = None,
) -> dict[str, int]:
    """The least bytes of each stage in each process, with fitted integrals: the SCF, whose integrals have the
    symmetry of `group`, then RI-MP2 unless `frozen` is None, relaxed densities, the gradient. Collective."""
    from outcore.chem import least_memory
    from outcore.chem.gradients import least as of_gradients
    from outcore.chem.ri.fitting import SCREENING

    options = run.options
    screening = SCREENING if options.screening is None else options.screening
    given: dict[str, Any] = {
        "spins": spins,
        "screening": screening,
        "threads": run.threads,
        "storage": place_of(options),
    }
    scf = run.least_of_fitted_scf(mol, sets["jk"], spins, group)
    left = least_memory.left_by_scf(mol)
    found = {"RI-SCF": scf}
    if gradient:
        found["gradient"] = left + of_gradients.of_fitted(
            run.world, mol, sets["jk"], changed=frozen is not None, **given
        )
    if frozen is not None:
        found["RI-MP2"] = left + least_memory.mp2(run.world, mol, sets["mp2"], frozen, **given)
        if relaxed:
            found["densities of RI-MP2"] = left + least_memory.densities_of_mp2(
                run.world, mol, sets["mp2"], frozen, **given
            )
            found["orbital response"] = 2 * scf + left + of_gradients.RESPONSE_BYTES
    return found


def fitting_of(options: MoleculeOptions, sets: dict[Purpose, Mole], jk_bytes: int) -> FittedSets:
    """The auxiliary sets of a coupled-cluster gradient, by the options of a command; see `cc.least`."""
    from outcore.chem.cc.least import FittedSets
    from outcore.chem.ri.fitting import SCREENING

    return FittedSets(
        auxmol=sets["mp2"],
        of_scf=sets["jk"],
        jk_bytes=jk_bytes,
        screening=SCREENING if options.screening is None else options.screening,
        storage=options.storage,
    )


def place_of(options: MoleculeOptions) -> str:
    """The storage of fitted integrals: those of a checkpoint lie on disk."""
    return "disk" if options.checkpoint else options.storage


def tell_parts(run: MoleculeRun, parts: Mapping[str, PredictedPart], name: str) -> None:
    """Shows parts of an estimate, and puts them into the results under this name."""
    for title, part in parts.items():
        run.say(f"{title}: {part.told()}")
    run.results[name] = {title: asdict(part) for title, part in parts.items()}


def of_scf(run: MoleculeRun, options: DensityOptions, mf: Any) -> None:
    """Shows the properties of a converged SCF that the options ask for. Collective."""
    from outcore.chem.gradients import densities, scf

    means, watch, least = mf.means(), TrafficWatch(), 0.0
    found = densities.of_scf(scf.scf_reference(means, mf))

    def gradient() -> Matrix:
        nonlocal least
        with run.progress("gradient") as progress:
            made, least = scf.gradient(mf, means, found, progress)
        return made

    show(run, options, mf.mol, found, gradient)
    tell_traffic(run, watch.traffic(run.world, least))


def tell_traffic(run: MoleculeRun, traffic: Traffic) -> None:
    """Shows the disk traffic of densities and of the gradient beside the least."""
    run.say(traffic.line("densities and gradient"))
    run.results["densities_traffic"] = traffic.as_json()


def show(
    run: MoleculeRun, options: DensityOptions, mol: Any, densities: Densities, gradient: Callable[[], Matrix]
) -> None:
    """Shows moments and charges, writes the file, and makes and shows the gradient, as the options ask; for any
    method. Collective."""
    if options.dipole:
        moments(run, mol, densities.both, open_shells=len(densities.spins) == 2)
    if options.density is not None:
        with run.world.together("write the density"):
            if run.root:
                formats.write(options.density, mol, densities.both, densities.weighted)
        run.say(f"density written to {options.density}")
        run.results["density_file"] = str(options.density)
    if options.gradient:
        found = gradient()
        run.results["gradient_hartree_per_bohr"] = found.tolist()
        run.say("gradient (Eh/bohr)")
        for atom, row in enumerate(found):
            run.say(f"{atom + 1:4d} {mol.atom_symbol(atom):<6}" + "".join(f"{each:17.10f}" for each in row))
        run.say(f"norm {np.linalg.norm(found):.3e}, largest element {abs(found).max():.3e}")


def moments(run: MoleculeRun, mol: Any, spins: tuple[Matrix, Matrix], *, open_shells: bool) -> None:
    """Shows moments and Mulliken charges, of open shells also spins. spins: densities of alpha and beta over basis
    functions."""
    found = properties.of(mol, spins)
    debye = found.dipole * properties.DEBYE
    run.say(
        "dipole moment (Debye)"
        + "".join(f"{each:12.6f}" for each in debye)
        + f"   {np.linalg.norm(debye):.6f}"
    )
    if mol.charge:
        run.say("the molecule is charged: the dipole moment is about the origin of the coordinates")
    run.say("quadrupole moment, without trace, about the origin (a.u.)")
    for row in found.quadrupole:
        run.say("     " + "".join(f"{each:12.6f}" for each in row))
    run.say("Mulliken charges" + (" and spins" if open_shells else ""))
    for atom, charge in enumerate(found.charges):
        spin = f"{found.spins[atom]:12.6f}" if open_shells else ""
        run.say(f"{atom + 1:4d} {mol.atom_symbol(atom):<6}{charge:12.6f}{spin}")
    run.results |= {
        "dipole_debye": debye.tolist(),
        "quadrupole_au": found.quadrupole.tolist(),
        "mulliken_charges": found.charges.tolist(),
    }
    if open_shells:
        run.results["mulliken_spins"] = found.spins.tolist()
