"""The frame of commands of a method that takes orbitals of an SCF: the processes, and the SCF."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from outcore.base import interrupts, start
from outcore.base.errors import OutcoreError
from outcore.chem import least
from outcore.cli.run import Run
from outcore.job import preflight

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.mean_field import Kind
    from outcore.chem.options import MoleculeOptions
    from outcore.chem.problem import Settings
    from outcore.chem.ri.auxiliary import Purpose
    from outcore.chem.search import SCFSearch
    from outcore.job.resources import Allowance
    from outcore.job.world import World

Made = TypeVar("Made")
SOON = 64  # up to so many functions everything that decides about memory is computed within seconds
SEARCH_BYTES = 64 << 20  # memory of a search whose result only goes into a refusal
UNDECIDED = (
    3  # exit status: the SCF ended in a saddle point, or storing integrals may change its energy too much
)


class MoleculeRun(Run):
    """A run of a method with a world. `open_world` makes the world; it is closed with the run."""

    options: MoleculeOptions
    world: World
    forced = False  # whether an SCF that has not converged is accepted
    asked = (
        1e-8  # convergence of the energy of the method after the SCF (Hartree), which sets that of the SCF
    )
    status = 0  # exit status of a run that has its results
    held_bytes = 0  # memory of each process outside its stages, as predicted when the first world was opened

    def __init__(self, options: MoleculeOptions, *, give_back: bool = True) -> None:
        super().__init__(options, give_back=give_back)
        with start.loading():
            import pyscf.scf  # noqa: F401  (which every method needs)

            from outcore.chem import least_memory  # noqa: F401
        self.kept_at = options.checkpoint

    def build(self) -> Mole:
        """Builds the molecule and describes it in the results. Raises OutcoreError for faults in its input."""
        from pyscf import lib

        mol = self.options.build(self.say)
        if int(mol.nao) <= SOON:  # threads would take longer to meet than to work
            lib.num_threads(1)
        self.results["molecule"] = {
            "atoms": [
                [mol.atom_symbol(atom), *map(float, place)]
                for atom, place in enumerate(mol.atom_coords(unit="Angstrom"))
            ],
            "unit": "angstrom",
            "basis": self.options.basis,
            "charge": int(mol.charge),
            "spin": int(mol.spin),
            "electrons": int(mol.nelectron),
            "functions": int(mol.nao),
        }
        return mol

    def open_world(self, held: int | None = None) -> None:
        """Makes the world of the run. held: see World.held_bytes. Collective."""
        from outcore.job.processes import make_world, predicted_held

        self.world = make_world(self.comm, self.options.memory_bytes, self.options.scratch)
        self.world.held_bytes = held
        self.held_bytes = self.held_bytes or predicted_held(self.world, self.usual_bytes)

    @property
    def threads(self) -> int:
        """The largest number of threads of a process. Collective."""
        from outcore.job.launch import threads_per_rank

        return int(self.world.all_reduce(self.options.threads or threads_per_rank(), "max"))

    @property
    def usual_bytes(self) -> int:
        """Memory that each process holds outside its stages: one of the bounds of `least`."""
        return least.STORED_BYTES

    def least_of_fitted_scf(self, mol: Mole, auxmol: Mole, spins: int, group: str | None = None) -> int:
        """Memory that `fitted_scf` needs of each process. spins: number of spins with densities of their own.
        group: see DensityFitting. Collective."""
        from outcore.chem import least_memory
        from outcore.chem.ri.fitting import SCREENING

        options = self.options
        return least_memory.fitted_scf(
            self.world,
            mol,
            auxmol,
            spins=spins,
            screening=SCREENING if options.screening is None else options.screening,
            threads=self.threads,
            storage="disk" if options.checkpoint else options.storage,
            held_bytes=self.held_bytes,
            group=group,
        )

    def free_bytes(self) -> int:
        """Memory of each process that is free for stages, before the first stage. Collective."""
        return max(0, self._share().bytes - self.held_bytes)

    def _share(self) -> Allowance:
        from outcore.job.processes import memory_share

        return min(self.world.gather(memory_share(self.world, self.options.memory_bytes, self.threads)))

    def predict_memory(self, stages: Mapping[str, int]) -> None:
        """Determines the least memory of the run before anything is computed. stages: memory of each process in
        each stage. Collective. Raises OutcoreError (ENOMEM) if there is less."""
        needed, share = least.Least(self.world.size, self.held_bytes, stages), self._share()
        self.results["least_memory_bytes"] = needed.bytes
        if self.options.estimate:
            self.say(f"least memory: {needed.bytes // 10**6} MB for all processes")
        with self.world.together("memory of a run"):
            needed.check(share)
        self.world.held_bytes = self.held_bytes

    def refuse_soon(self, mol: Mole, stages: Mapping[str, int]) -> int:
        """Refuses memory that is too little in any case. A large molecule is refused at once, because it may take
        long to compute how much is enough. stages: least memory of each process in each stage. Collective.

        Returns the bytes of each process that a search of pivots may use. For few functions the search runs before
        the refusal, which then says how much is enough; it gets the bytes that make it fast. Raises OutcoreError
        (ENOMEM)."""
        needed, half = least.Least(self.world.size, self.held_bytes, stages), self.free_bytes() // 2
        share = self._share()
        if not self.options.estimate and int(mol.nao) > SOON:
            with self.world.together("memory of a run"):
                needed.check(share, bound=True)
        return half if needed.fits(share) else max(half, SEARCH_BYTES)

    def predict_file(self, stage: str, largest: Callable[[], int]) -> None:
        """Checks the size of the largest file of a stage before anything is computed. largest: plans the bytes of
        the largest file of a process; called only where the size of files is limited. Collective. Raises
        OutcoreError (EFBIG)."""
        if not self.options.estimate and any(self.world.gather(preflight.files_are_limited())):
            size = largest()
            place = self.options.checkpoint or self.world.scratch
            with self.world.together("files of a run"):
                preflight.check_file_size(stage, place, size)

    def stand_in(self, mol: Mole, kind: Kind) -> Any:
        """A mean-field object without an SCF, with placeholder orbitals of the right number, for plans."""
        from outcore.chem import mean_field

        mf = mean_field.make(mol, kind)
        mean_field.give_orbitals(mf)
        return mf

    def check_auxiliary(self, mol: Mole, names: dict[Purpose, str | None]) -> dict[Purpose, Mole]:
        """Molecules with the auxiliary sets of the run, which are looked up before anything is computed; says
        warnings about them. Not collective. Raises OutcoreError, as `auxiliary.build`."""
        from outcore.chem.ri import auxiliary

        found = {purpose: auxiliary.build(mol, name, purpose) for purpose, name in names.items()}
        for purpose, auxmol in found.items():
            if line := auxiliary.warning(auxmol, purpose):
                self.say(line)
        self.results["auxiliary_sets"] = {
            purpose: {"sets": auxiliary.title(auxmol), "stand_in": auxiliary.stand_in(auxmol) or None}
            for purpose, auxmol in found.items()
        }
        return found

    def renew_world(self, mf: Any = None) -> None:
        """Replaces the world by a new one, which frees the memory of all arrays. `mf`: an object of `stored_scf`,
        which continues in the new world. Collective."""
        held = self.world.held_bytes
        self.world.close()
        self.open_world(held)
        if mf is not None:
            mf.comm = self.world

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        super().__exit__(kind, error, traceback)
        if interrupts.behind(error) is None:  # an interrupt may have reached this process alone
            self.world.__exit__(None if error is None else type(error), error)

    @property
    def means(self) -> dict[str, Any]:
        """Resources for every method, as arguments of its constructor."""
        return {"memory": self.options.memory, "threads": self.options.threads, "comm": self.world}

    def common_settings(self) -> dict[str, Any]:
        """Settings that all methods with integrals of their own have in common."""
        options = self.options
        return {
            **self.means,
            "storage": options.storage,
            "checkpoint": options.checkpoint,
        } | ({} if options.screening is None else {"screening": options.screening})

    def stored_scf(self, mol: Mole, kind: Kind) -> Any:
        """Runs an SCF with stored integrals to convergence. The caller closes it. Collective."""
        from outcore.chem.hf import scf as methods

        options = self.options
        given = {
            "storage": options.storage,
            "screening": options.screening,
            "scratch": options.scratch,
            "threads": options.threads,
            "memory": options.memory_bytes,
        }
        mf = getattr(methods, kind)(
            mol, comm=self.world, **{name: each for name, each in given.items() if each is not None}
        )
        self.converge(mf, kind, mf.world)
        return mf

    def fitted_scf(self, mol: Mole, kind: Kind, auxbasis: str | None) -> Any:
        """Runs a density-fitted SCF to convergence, keeps its Fock matrices, and closes its integrals.
        Collective."""
        from outcore.chem import ri
        from outcore.chem.reference import keep_focks
        from outcore.chem.ri.problem import settings

        mf = getattr(ri, kind)(mol, auxbasis, **self.common_settings())
        fitting = mf.with_df
        self.converge(
            mf,
            kind,
            self.world,
            lambda: settings(mol, fitting.auxiliary_molecule(), fitting.screening),
        )
        keep_focks(mf)
        fitting.close_integrals()
        return mf

    def converge(self, mf: Any, kind: Kind, world: World, more: Callable[[], Settings] = dict) -> None:
        """Runs an SCF, or restores the orbitals that another run has kept. `more`: see restart.begin. Collective.

        Raises NotConverged."""
        from outcore.chem import restart
        from outcore.chem.search import SCFSearch

        options, begin = self.options, time.monotonic()
        options.set_up(mf, asked=self.asked)
        if options.conv_tol is None:
            self.say(
                f"SCF converged to {mf.conv_tol:.0e} Eh and an orbital gradient of {mf.conv_tol_grad:.0e}, as the "
                "method after it needs"
            )
        found, keeper = restart.begin(
            mf, kind, world, self.say, checkpoint=options.checkpoint, restart=options.restart, more=more
        )
        search = SCFSearch(mf, options, world, self.say, keeper)
        search.run(found, as_it_is=self.forced)
        if not self.forced:
            search.refuse()
        self.doubt(search)
        seconds = time.monotonic() - begin
        state = "converged" if mf.converged else "not converged"
        self.say(f"{kind} energy {mf.e_tot:.10f} Eh, {state} in {mf.cycles} cycles, {seconds:.1f} s")
        self.results |= {
            "scf_energy_hartree": float(mf.e_tot),
            "scf_converged": bool(mf.converged),
            "molecular_orbitals": int(np.shape(mf.mo_occ)[-1]),
            "scf_seconds": seconds,
            "stability": search.report,
        }

    def doubt(self, search: SCFSearch) -> None:
        """Warns of a result that the search could not decide, and sets the exit status."""
        if search.undecided:
            self.status = UNDECIDED
            self.warn(
                "the state of the SCF is a saddle point that could not be left: with less noise it may be another; "
                f"try another --guess (exit status {UNDECIDED})"
            )
        error = search.storage_error
        if error is not None and not error.kept:
            self.status = UNDECIDED
            why = search.no_room or "storing them finer did not help"
            self.warn(
                f"the energy of the SCF may err by {error.bound:.1e} Eh by storing integrals, more than "
                f"{error.allowed:.0e} Eh: {why} (exit status {UNDECIDED})"
            )

    def with_first_orbitals(self, make: Callable[[], Made]) -> Made | None:
        """The result of `make`, which uses `first_orbitals`; None if their irreps are refused, because those of the
        converged SCF may differ. An estimate raises the refusal. Collective."""
        try:
            return make()
        except OutcoreError as error:
            if self.options.estimate or error.errno != errno.EINVAL:
                raise
            return None

    def first_orbitals(self, mol: Mole, kind: Kind) -> Any:
        """For an estimate of a CI: an object with the start orbitals of its SCF. Only their irreps matter."""
        from outcore.chem import scf_options
        from outcore.chem.hf import scf as methods

        # Uses the kernels of the SCF: PySCF's take gigabytes of address space, and end the process if they get
        # none. Ours take less than the SCF does. Memory is not checked yet: a run reports its memory as a whole.
        mf = getattr(methods, kind)(mol, comm=self.world, storage="direct", threads=self.options.threads)
        density = mf.get_init_guess(mol, self.options.guess or scf_options.GUESSES[0])
        mf.mo_energy, mf.mo_coeff = mf.eig(mf.get_fock(dm=density), mf.get_ovlp())
        mf.mo_occ = mf.get_occ(mf.mo_energy, mf.mo_coeff)
        order = np.lexsort((mf.mo_energy, -mf.mo_occ))  # as an SCF leaves them
        mf.mo_energy, mf.mo_occ = (np.take_along_axis(each, order, -1) for each in (mf.mo_energy, mf.mo_occ))
        mf.mo_coeff = np.take_along_axis(np.asarray(mf.mo_coeff), order[..., None, :], -1)
        mf.converged = True
        mf.close()
        return mf
