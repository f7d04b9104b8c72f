"""The output of a run of full CI: the space, iterations, states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.ci import rounding
from outcore.chem.ci.analysis import DEBYE
from outcore.chem.units import HARTREE

if TYPE_CHECKING:
    from outcore.chem.ci.estimate import Forecast
    from outcore.chem.ci.fci import FCI
    from outcore.chem.ci.sigma import SigmaTraffic

_SMALL = 1e-5  # weights below it are not shown
_LINE = 8  # occupations of natural orbitals in a line


def told(name: str) -> str:
    """The name of an irrep, which may be a number."""
    return f"of irrep {name}" if name.isdigit() else name


def space_lines(ci: FCI) -> Iterator[str]:
    """Lines about the space that is diagonalized."""
    h, space, target = ci.hamiltonian, ci.space, ci.target
    counts = np.bincount(h.irreps, minlength=h.groups)
    of_irreps = ", ".join(
        f"{count} {told(name)}" for count, name in zip(counts, h.names, strict=True) if count
    )
    frozen = 0 if ci.orbitals is None else ci.orbitals.frozen
    yield (
        f"{target.electrons[0]}+{target.electrons[1]} electrons in {h.orbitals} orbitals ({of_irreps})"
        + (f", {frozen} frozen" if frozen else "")
        + (", orbitals of each spin" if h.unrestricted else "")
    )
    blocks = [each for each in space.blocks if each]
    yield (
        f"{target.title(h)}: {space.determinants} determinants in {len(blocks)} symmetry "
        f"{'block' if len(blocks) == 1 else 'blocks'}"
        + (f" of {min(blocks)} to {max(blocks)}" if len(blocks) > 1 else "")
        + (", folded" if space.folded else "")
    )


def space_facts(ci: FCI) -> dict[str, Any]:
    """As `space_lines`, for --json."""
    return {
        "orbitals": ci.hamiltonian.orbitals,
        "electrons": list(ci.target.electrons),
        "group": ci.hamiltonian.group,
        "irrep": ci.hamiltonian.names[ci.target.irrep],
        "determinants": ci.space.determinants,
    }


def sorted_states(searches: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """All states of several searches in the order of energy, from their results. root: number in its search, from
    1."""
    found = [
        {
            "energy_hartree": energy,
            "irrep": each["roots"][root]["label"] if "roots" in each else each["irrep"],
            "spin": each["spin"],
            "root": root + 1,
        }
        for each in searches
        for root, energy in enumerate(each["energies_hartree"])
    ]
    found.sort(key=lambda each: each["energy_hartree"])
    for each in found:
        each["excitation_ev"] = (each["energy_hartree"] - found[0]["energy_hartree"]) * HARTREE
    return found


def states_table(states: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Lines of a table of `sorted_states`."""
    yield f"{'state':>5} {'energy / Eh':>18} {'above / eV':>11} {'2S':>3} {'root':>4}  irrep"
    for number, each in enumerate(states, 1):
        yield (
            f"{number:5d} {each['energy_hartree']:18.10f} {each['excitation_ev']:11.6f} {each['spin']:3d} "
            f"{each['root']:4d}  {each['irrep']}"
        )


def in_one_line(forecast: Forecast) -> str:
    """The forecast of a run in one line."""
    moved = (forecast.read_bytes + forecast.written_bytes) / 1e6
    disk = f", disk {forecast.disk_bytes / 1e6:.0f} MB" if forecast.disk_bytes else ""
    return (
        f"{forecast.plan.in_words}: memory {forecast.memory_bytes / 1e6:.0f} MB{disk}; an iteration "
        f"{forecast.seconds:.1f} s, {moved:.0f} MB moved"
    )


def products_line(what: str, moved: SigmaTraffic) -> str:
    """A line about products. moved: of those with vectors on disk."""
    if not moved.least:
        return f"{what}: no disk traffic"
    return (
        f"{what}: {moved.bytes / 1e6:.0f} MB moved to and from disk, {moved.bytes / moved.least:.2f} times the "
        "least that must be moved"
    )


def found_lines(ci: FCI) -> Iterator[str]:
    """Lines about data of another run that a solved CI has used."""
    solved, commits = ci.solved, ci.solved.commits
    if solved.kept_iteration:
        yield f"began with states of iteration {solved.kept_iteration} of another run, of {ci.checkpoint}"
    if commits.found:
        yield f"products of another run that this one continued: {commits.found}"
    if commits.anew:
        yield "products of another run were recomputed, as integrals differ in rounding"


class Iterations:
    """A line for each iteration: its seconds, and the share of them that the first process waited for vectors."""

    def __init__(self, say: Callable[[str], None], core_energy: float) -> None:
        self._say, self._core = say, core_energy
        self._before: Any = None

    def __call__(self, iteration: Any, *_: Any) -> None:
        energies = iteration.energies + self._core
        if self._before is None:
            self._say(
                f"{'iter':>4} {'root':>4} {'energy / Eh':>18} {'change':>9} {'residual':>9} {'s':>8} waiting"
            )
        for root, (energy, residual) in enumerate(zip(energies, iteration.residuals, strict=True)):
            change = "" if self._before is None else f"{energy - self._before[root]:9.1e}"
            first = f"{iteration.number:4d}" if root == 0 else " " * 4
            share = 100 * iteration.waited_seconds / max(iteration.seconds, 1e-9)
            seconds = f"{iteration.seconds:8.2f} {share:5.0f} %" if root == 0 else ""
            self._say(f"{first} {root + 1:4d} {energy:18.10f} {change:>9} {residual:9.1e} {seconds}".rstrip())
        self._before = energies


class StateView:
    """The output about a solved CI. Methods are collective."""

    def __init__(self, ci: FCI, say: Callable[[str], None]) -> None:
        self._ci, self._say = ci, say

    def energies(self, seconds: float) -> None:
        solved, commits = self._ci.solved, self._ci.solved.commits
        state = "converged" if solved.converged else "NOT converged"
        for line in found_lines(self._ci):
            self._say(line)
        if commits.count:
            self._say(
                f"{commits.count} commits within iterations wrote {commits.written_bytes / 1e6:.0f} MB "
                f"in {commits.seconds:.1f} s"
            )
        self._say(f"{state} in {len(solved.iterations)} iterations, {seconds:.1f} s")
        for root, (energy, bound) in enumerate(zip(solved.energies, solved.bounds, strict=True)):
            temple = "" if bound.temple is None else f", not below {bound.temple:.10f} (Temple)"
            self._say(f"FCI energy of root {root + 1}: {energy:.10f} Eh")
            self._say(
                f"  error within {bound.weinstein:.1e} Eh (Weinstein){temple}; extrapolated "
                f"{bound.extrapolated:.10f} +- {bound.uncertainty:.1e}"
            )
            if solved.converged and (asked := self._ci.settings.error_bound):
                self._say(
                    f"  at most {bound.raised:.1e} Eh above the exact energy, bound {asked:.1e}, if the next state "
                    f"lies {rounding.GAP:g} Eh or more higher"
                )

    def results(self) -> dict[str, Any]:
        solved = self._ci.solved
        return {
            "energies_hartree": [float(each) for each in solved.energies],
            "residuals": [float(each) for each in solved.residuals],
            "converged": bool(solved.converged),
            "iterations": len(solved.iterations),
            "of_iterations": [
                {
                    "energies_hartree": [float(e) + self._ci.hamiltonian.core_energy for e in each.energies],
                    "residuals": [float(r) for r in each.residuals],
                    "precision": each.precision,
                    "seconds": each.seconds,
                    "waited_seconds": each.waited_seconds,
                }
                for each in solved.iterations
            ],
            "products": solved.products,
            "kind": solved.plan.kind,
            "moved_in_products_bytes": {
                "read": solved.moved.read,
                "added": solved.moved.added,
                "least": solved.moved.least,
            },
            "commits_within_iterations": asdict(solved.commits),
            "bounds": [asdict(each) for each in solved.bounds],
        }

    def determinants(self, count: int) -> dict[str, Any]:
        ci, found = self._ci, []
        for root in range(ci.target.roots):
            listed, weights = ci.largest(root, count), ci.weights(root)
            self._say(f"root {root + 1}: largest determinants (2, a, b, 0: occupation of each orbital)")
            for each in listed:
                self._say(f"{each.coefficient:12.6f}  {each.occupation(ci.hamiltonian.orbitals)}")
            shown = ", ".join(
                f"{level}: {100 * weight:.4g} %" for level, weight in enumerate(weights) if weight > _SMALL
            )
            self._say(f"  weight by excitations from the first: {shown}")
            found.append(
                {
                    "determinants": [
                        [each.coefficient, each.occupation(ci.hamiltonian.orbitals)] for each in listed
                    ],
                    "weights": [float(each) for each in weights],
                }
            )
        return {"determinants_of_roots": found}

    def densities(self) -> dict[str, Any]:
        ci, found = self._ci, []
        for root in range(ci.target.roots):
            of_root: dict[str, Any] = {"label": ci.label(root), "spin_square": ci.spin_square(root)}
            square = of_root["spin_square"]
            spin = "" if square is None else f", <S^2> = {abs(square):.6f}"
            self._say(f"root {root + 1}: {told(of_root['label'])}{spin}")
            if ci.orbitals is not None:
                dipole = ci.dipole(root) * DEBYE
                of_root["dipole_debye"] = [float(each) for each in dipole]
                parts = " ".join(f"{each + 0.0:.6f}" for each in np.round(dipole, 6))
                self._say(f"  dipole moment {parts}, in all {np.linalg.norm(dipole):.6f} Debye")
            if not ci.hamiltonian.unrestricted:
                natural = ci.natural_orbitals(root)
                of_root["occupations"] = [float(each) for each in natural.occupations]
                names = [ci.hamiltonian.names[each] for each in natural.irreps]
                self._occupations(natural.occupations, names)
            found.append(of_root)
        for root in range(1, ci.target.roots if ci.orbitals is not None else 0):
            moment = ci.transition_dipole(0, root)
            found[root]["transition_dipole_au"] = [float(each) for each in moment]
            self._say(f"roots 1 to {root + 1}: transition dipole {np.linalg.norm(moment):.6f} atomic units")
        return {"roots": found}

    def _occupations(self, occupations: Any, names: list[str]) -> None:
        self._say("  natural occupations:")
        for first in range(0, len(names), _LINE):
            part = slice(first, first + _LINE)
            self._say(
                "    "
                + "  ".join(f"{o:.4f} {n:<3}" for o, n in zip(occupations[part], names[part], strict=True))
            )
