"""The `outcore fci` command."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from outcore.base.errors import NotConverged
from outcore.chem.ci.options import Options
from outcore.chem.ci.view import (
    Iterations,
    StateView,
    in_one_line,
    sorted_states,
    space_facts,
    space_lines,
    states_table,
)
from outcore.chem.run import MoleculeRun
from outcore.cli.run import with_options

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.ci.fci import FCI
    from outcore.chem.mean_field import Kind


@with_options
def fci(options: Options) -> int:
    """Full CI of a molecule after its SCF, or with the integrals of an FCIDUMP file; vectors in memory or on disk.
    Exit status 3: the energy is there, but the state of the SCF is a saddle point that could not be left, or there
    is no room for integrals as fine as its energy needs."""
    with _Run(options) as run:
        ci = run.of_file() if options.fcidump is not None else run.of_molecule()
        run.solve(ci)
        run.finish(run.world)
        run.refuse_unconverged()
    return run.status


class _Run(MoleculeRun):
    """The stages of a run, and their output."""

    options: Options
    energies = MappingProxyType(
        {
            "scf_energy_hartree": "SCF energy",
            "energies_hartree": "FCI energy",
        }
    )

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.asked = min(self.asked, options.residual / 100)  # residuals enter energies squared
        self.open_world()
        self._unconverged: list[str] = []  # reasons of searches that have not converged

    # ---- the objects to solve ----

    def of_file(self) -> FCI:
        from outcore.chem.ci.fci import FCI

        options = self.options
        ci = FCI.from_fcidump(str(options.fcidump), **self._states_of_first(options.spin), **self._given())
        n, electrons = ci.hamiltonian.orbitals, sum(ci.target.electrons)
        self.header(
            f"FCI  {options.fcidump}: {electrons} electrons, {n} orbitals", f"scratch {self.world.scratch}"
        )
        return ci

    def of_molecule(self) -> FCI:
        from outcore.chem.symmetry import group_line, with_symmetry

        options = self.options
        plain = self.build()
        mol = with_symmetry(plain, options.group or "auto") or plain
        kind: Kind = "UHF" if options.uhf else "ROHF" if options.rohf or mol.spin else "RHF"
        self.header(options.title(f"FCI({kind})", mol), f"scratch {self.world.scratch}")
        self.say(group_line(mol))
        self._check_orbitals(mol)
        self.refuse_soon(mol, self._of_scf(mol))
        first = self.with_first_orbitals(lambda: self._made(self.first_orbitals(mol, kind), integrals=False))
        every = [] if first is None else self._calculations(first)
        self._predict_memory(mol, every)
        if every and not options.no_solve:
            self.predict_file("full CI", partial(_largest_file, every))
        if first is not None and options.estimate:
            return first
        del first, every
        mf = self.stored_scf(mol, kind)
        mf.close()  # integrals of active orbitals are computed from exact ones
        return self._made(mf)

    def _predict_memory(self, mol: Mole, every: list[FCI]) -> None:
        """Determines the least memory of all stages. every: CIs with the start orbitals of the SCF, whose irreps
        matter; if the list is empty, the least memory is that of the SCF."""
        from outcore.chem import least_memory
        from outcore.chem.ci.orbitals import transform_bytes

        stages = self._of_scf(mol)
        if every:
            first = every[0].hamiltonian
            left = least_memory.left_by_scf(mol)
            made = transform_bytes(int(mol.nao), first.orbitals, unrestricted=first.unrestricted)
            needed = max(each.least_bytes() for each in every)
            stages |= {"transform integrals": left + made, "full CI": left + needed}
        self.predict_memory(stages)

    def _of_scf(self, mol: Mole) -> dict[str, int]:
        from outcore.chem import least_memory
        from outcore.chem.hf.settings import METHOD, Settings

        return {METHOD: least_memory.stored_scf(mol, Settings(storage=self.options.storage), self.threads)}

    def _check_orbitals(self, mol: Mole) -> None:
        """Checks orbitals and states before the SCF."""
        from outcore.chem.ci import before
        from outcore.chem.ci.target import AskedStates

        options = self.options
        before.check(
            mol,
            options.groups() or (AskedStates(options.irrep, int(mol.spin), options.roots),),
            frozen_orbitals=options.frozen,
            frozen_virtual=options.frozen_virtual,
            active_orbitals=options.active,
            unrestricted=options.uhf,
        )

    def _made(self, mf: Any, **more: Any) -> FCI:
        from outcore.chem.ci.fci import FCI

        options = self.options
        return FCI(
            mf,
            frozen=options.frozen,
            frozen_virtual=options.frozen_virtual,
            active=options.active,
            group=None if mf.mol.symmetry else "C1",
            **self._states_of_first(None),
            **self._given(),
            **more,
        )

    def _given(self) -> dict[str, Any]:
        return {"folded": self._folded, **self.means, **self.options.settings()}

    def _states_of_first(self, spin: int | None) -> dict[str, Any]:
        """The states of the first object, whose orbitals and integrals all others use. spin: 2S without
        --states."""
        options = self.options
        if groups := options.groups():
            return {"irrep": groups[0].irrep, "spin": groups[0].spin, "roots": groups[0].roots}
        return {"irrep": options.irrep, "spin": spin, "roots": options.roots}

    def _calculations(self, first: FCI) -> list[FCI]:
        """An object for each irrep and spin."""
        return [first] + [
            first.with_states(irrep=each.irrep, spin=each.spin, roots=each.roots, folded=self._folded)
            for each in self.options.groups()[1:]
        ]

    @property
    def _folded(self) -> bool | None:
        return False if self.options.unfolded else None

    # ---- the CI ----

    def solve(self, ci: FCI) -> None:
        options = self.options
        for line in ci.notes:
            self.say(line)
        self._describe(ci, self.results)
        if options.write_fcidump is not None and not options.estimate:
            ci.write_fcidump(options.write_fcidump)
            self.say(f"wrote {options.write_fcidump}")
            self.results["fcidump"] = str(options.write_fcidump)
        if options.no_solve:
            return
        if options.states is not None:
            self._solve_several(ci)
            return
        self.results |= self._solve_one(ci)
        self._write_files(ci)
        ci.close()

    def _solve_several(self, first: FCI) -> None:
        """Solves one irrep and spin after the other, and drops the states of each before the next. Files are those
        of the first."""
        options, found = self.options, []
        for number, ci in enumerate(self._calculations(first)):
            part: dict[str, Any] = {"spin": ci.target.spin}
            if number:
                self.say("")
                self._describe(ci, part)
            else:
                part |= {
                    name: self.results[name] for name in ("orbitals", "electrons", "irrep", "determinants")
                }
            self._keep_apart(ci)
            part |= self._solve_one(ci)
            found.append(part)
            if not number:
                self._write_files(ci)
            ci.close()
        self.results["searches"] = found
        if options.estimate:
            self.results["estimate"] = found[0]["estimate"]
            return
        states = sorted_states(found)
        for line in states_table(states):
            self.say(line)
        self.results |= {
            "states": states,
            "energies_hartree": [each["energy_hartree"] for each in states],
            "converged": not self._unconverged,
        }

    def _keep_apart(self, ci: FCI) -> None:
        """Gives each irrep and spin a directory of its own for its states."""
        if (directory := self.options.checkpoint) is None or self.options.estimate:
            return
        path = directory / f"irrep-{ci.target.irrep}-2S-{ci.target.spin}"
        with self.world.together("keep states", str(path)):
            if self.world.node_rank == 0 and directory.is_dir():
                path.mkdir(exist_ok=True)
        self.world.barrier()
        ci.set(checkpoint=path)

    def _describe(self, ci: FCI, results: dict[str, Any]) -> None:
        for line in space_lines(ci):
            self.say(line)
        results |= space_facts(ci) | {"blocks": ci.space.blocks}

    def _solve_one(self, ci: FCI) -> dict[str, Any]:
        """Solves, prints the states, and returns them as results."""
        options, forecast = self.options, ci.forecast()
        if options.estimate:
            self.console.print(forecast.table())
            return {"estimate": forecast.as_json()}
        for line in str(forecast).splitlines() if options.full else [in_one_line(forecast)]:
            self.say(line)
        ci.verbose = 0  # the command says it
        ci.on_iteration = Iterations(self.say, ci.hamiltonian.core_energy)
        begin = time.monotonic()
        ci.kernel()
        seconds = time.monotonic() - begin
        view = StateView(ci, self.say)
        view.energies(seconds)
        for line in forecast.against(ci.solved, seconds).splitlines():
            self.say(line)
        if not ci.converged:
            self._unconverged.append(ci.solved.why)
        found = view.results() | {"fci_seconds": seconds, "moved_by_products": asdict(ci.solved.moved)}
        if options.largest:
            found |= view.determinants(options.largest)
        if not options.energy_only:
            found |= view.densities()
        return found

    def _write_files(self, ci: FCI) -> None:
        options = self.options
        if options.estimate:
            return
        root = int(options.density_of) - 1
        if options.molden is not None:
            ci.write_molden(options.molden, root)
            self.say(f"wrote {options.molden}")
        if options.trexio is not None:
            ci.write_trexio(options.trexio, root)
            self.say(f"wrote {options.trexio}")
        if options.density is not None:
            ci.write_density(options.density, root)
            self.say(f"wrote {options.density}")
            self.results["density_file"] = str(options.density)

    def refuse_unconverged(self) -> None:
        if self._unconverged:
            raise NotConverged(
                None,
                "converge the CI",
                detail=f"{self._unconverged[0]}; raise --iterations or --vectors",
            )


def _largest_file(every: Sequence[FCI]) -> int:
    return max(each.largest_file() for each in every)
