"""The `outcore fci` command."""

from __future__ import annotations

import time
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from outcore.base.errors import NotConverged
from outcore.chem.ci.options import Options
from outcore.chem.ci.view import Iterations, StateView, in_one_line, space_facts, space_lines
from outcore.chem.run import MoleculeRun
from outcore.cli.run import with_options

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.ci.fci import FCI
    from outcore.chem.mean_field import Kind


@with_options
def fci(options: Options) -> int:
    """Full CI of a molecule after its SCF, or of the integrals in an FCIDUMP file; vectors in memory or on disk.
    Exit status 3: the energy is there, but the state of the SCF is a saddle point that could not be left, or there
    is no room for integrals as fine as its energy needs."""
    with _Run(options) as run:
        ci = run.of_file() if options.fcidump is not None else run.of_molecule()
        run.solve(ci)
        run.finish(run.world)
        run.refuse_unconverged(ci)
    return run.status


class _Run(MoleculeRun):
    """The stages of a run, and what is shown of them."""

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

    # ---- what is solved ----

    def of_file(self) -> FCI:
        from outcore.chem.ci.fci import FCI

        options = self.options
        ci = FCI.from_fcidump(str(options.fcidump), irrep=options.irrep, spin=options.spin, **self._given())
        n, electrons = ci.hamiltonian.orbitals, sum(ci.target.electrons)
        self.header(
            f"FCI  {options.fcidump}: {electrons} electrons, {n} orbitals", f"scratch {self.world.scratch}"
        )
        return ci

    def of_molecule(self) -> FCI:
        from outcore.chem.symmetry import with_symmetry

        options = self.options
        plain = self.build()
        mol = with_symmetry(plain, options.group or "auto") or plain
        kind: Kind = "UHF" if options.uhf else "ROHF" if options.rohf or mol.spin else "RHF"
        self.header(options.title(f"FCI({kind})", mol), f"scratch {self.world.scratch}")
        self.say(f"point group {mol.groupname if mol.symmetry else 'C1'}")
        self._check_orbitals(mol)
        self.refuse_soon(mol, self._of_scf(mol))
        first = self.with_first_orbitals(lambda: self._made(self.first_orbitals(mol, kind), integrals=False))
        self._predict_memory(mol, first)
        if first is not None and not options.no_solve:
            self.predict_file("full CI", first.largest_file)
        if first is not None and options.estimate:
            return first
        del first
        mf = self.stored_scf(mol, kind)
        mf.close()  # integrals of active orbitals are made of exact ones
        return self._made(mf)

    def _predict_memory(self, mol: Mole, first: FCI | None) -> None:
        """The least memory of all stages. `first`: with the orbitals that the SCF begins with, as irreps count;
        None: it is that of the SCF."""
        from outcore.chem import least_memory
        from outcore.chem.ci.orbitals import transform_bytes

        stages = self._of_scf(mol)
        if first is not None:
            left, n = least_memory.left_by_scf(mol), first.hamiltonian.orbitals
            made = transform_bytes(int(mol.nao), n, unrestricted=first.hamiltonian.unrestricted)
            stages |= {"transform integrals": left + made, "full CI": left + first.least_bytes()}
        self.predict_memory(stages)

    def _of_scf(self, mol: Mole) -> dict[str, int]:
        from outcore.chem import least_memory
        from outcore.chem.hf.settings import METHOD, Settings

        return {METHOD: least_memory.stored_scf(mol, Settings(storage=self.options.storage), self.threads)}

    def _check_orbitals(self, mol: Mole) -> None:
        """What is wrong with frozen and active orbitals is found before the SCF."""
        from outcore.chem import active, frozen
        from outcore.chem.symmetry import irrep_number

        options = self.options
        numbers, spins = range(int(mol.nao)), mol.nelec if options.uhf else (min(mol.nelec),)
        frozen.of(mol, options.frozen, options.frozen_virtual, [(numbers, int(each)) for each in spins])
        group = str(mol.groupname) if mol.symmetry else "C1"
        active.read(options.active, len(spins)).check(len(numbers), partial(irrep_number, group))

    def _made(self, mf: Any, **more: Any) -> FCI:
        from outcore.chem.ci.fci import FCI

        options = self.options
        return FCI(
            mf,
            frozen=options.frozen,
            frozen_virtual=options.frozen_virtual,
            active=options.active,
            group=None if mf.mol.symmetry else "C1",
            irrep=options.irrep,
            **self._given(),
            **more,
        )

    def _given(self) -> dict[str, Any]:
        options = self.options
        return {
            "roots": options.roots,
            "folded": False if options.unfolded else None,
            "memory": options.memory,
            "threads": options.threads,
            "comm": self.world,
            **options.settings(),
        }

    # ---- the CI ----

    def solve(self, ci: FCI) -> None:
        options = self.options
        for line in (*ci.notes, *space_lines(ci)):
            self.say(line)
        self.results |= space_facts(ci) | {"blocks": ci.space.blocks}
        if options.write_fcidump is not None and not options.estimate:
            ci.write_fcidump(options.write_fcidump)
            self.say(f"wrote {options.write_fcidump}")
            self.results["fcidump"] = str(options.write_fcidump)
        if options.no_solve:
            return
        forecast = ci.forecast()
        if options.estimate:
            self.console.print(forecast.table())
            self.results |= {"estimate": forecast.as_json()}
            return
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
        self.results |= view.results() | {"fci_seconds": seconds}
        if options.largest:
            self.results |= view.determinants(options.largest)
        if not options.energy_only:
            self.results |= view.densities()
        if options.molden is not None:
            ci.write_molden(options.molden)
            self.say(f"wrote {options.molden}")
        if options.trexio is not None:
            ci.write_trexio(options.trexio)
            self.say(f"wrote {options.trexio}")
        if options.density is not None:
            ci.write_density(options.density)
            self.say(f"wrote {options.density}")
            self.results["density_file"] = str(options.density)

    def refuse_unconverged(self, ci: FCI) -> None:
        if not (self.options.estimate or self.options.no_solve) and not ci.converged:
            raise NotConverged(
                None,
                "converge the CI",
                detail=f"{ci.solved.why}; raise --iterations or --vectors",
            )
        ci.close()
