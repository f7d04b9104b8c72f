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
SOON = 64  # functions up to which all that decides about memory is computed within seconds
SEARCH_BYTES = 64 << 20  # of a search that a refusal follows
UNDECIDED = (
    3  # exit status: the SCF ended in a saddle point, or storing integrals may change its energy too much
)


class MoleculeRun(Run):
    """A run whose method has a world, from `open_world`, which is closed with the run."""

    options: MoleculeOptions
    world: World
    forced = False  # an SCF that has not converged is taken as it is
    asked = (
        1e-8  # convergence of the energy of the method after the SCF (Hartree), which that of the SCF follows
    )
    status = 0  # exit status of a run that has its results
    held_bytes = (
        0  # of each process, beside what stages take, as it was predicted when the first world was opened
    )

    def __init__(self, options: MoleculeOptions, *, give_back: bool = True) -> None:
        super().__init__(options, give_back=give_back)
        with start.loading():
            import pyscf.scf  # noqa: F401  (which every method needs)

            from outcore.chem import least_memory  # noqa: F401
        self.kept_at = options.checkpoint

    def build(self) -> Mole:
        """The molecule, which results have, too. Raises OutcoreError for what is wrong with it."""
        from pyscf import lib

        mol = self.options.build(self.say)
        if int(mol.nao) <= SOON:  # its threads would take longer to meet than what they do
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
        """held: see World.held_bytes. Collective."""
        from outcore.job.processes import make_world, predicted_held

        self.world = make_world(self.comm, self.options.memory_bytes, self.options.scratch)
        self.world.held_bytes = held
        self.held_bytes = self.held_bytes or predicted_held(self.world, self.usual_bytes)

    @property
    def threads(self) -> int:
        """Of each process, at most. Collective."""
        from outcore.job.launch import threads_per_rank

        return int(self.world.all_reduce(self.options.threads or threads_per_rank(), "max"))

    @property
    def usual_bytes(self) -> int:
        """What each process holds beside what stages take: one of the bounds of `least`."""
        return least.STORED_BYTES

    def least_of_fitted_scf(self, mol: Mole, auxmol: Mole, spins: int, group: str | None = None) -> int:
        """What `fitted_scf` needs of each process. spins: that have densities of their own. group: of
        DensityFitting. Collective."""
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
        """What stages may take of each process, before the first one. Collective."""
        return max(0, self._share().bytes - self.held_bytes)

    def _share(self) -> Allowance:
        from outcore.job.processes import memory_share

        return min(self.world.gather(memory_share(self.world, self.options.memory_bytes, self.threads)))

    def predict_memory(self, stages: Mapping[str, int]) -> None:
        """The least memory of the run, before anything is computed; `stages`: what each takes of each process.
        Collective. Raises OutcoreError (ENOMEM) if there is less."""
        needed, share = least.Least(self.world.size, self.held_bytes, stages), self._share()
        self.results["least_memory_bytes"] = needed.bytes
        if self.options.estimate:
            self.say(f"least memory: {needed.bytes // 10**6} MB for all processes")
        with self.world.together("memory of a run"):
            needed.check(share)
        self.world.held_bytes = self.held_bytes

    def refuse_soon(self, mol: Mole, stages: Mapping[str, int]) -> int:
        """Refuses memory that is too little whatever comes, before anything is computed that tells how much is
        enough, where that may take long. stages: what each takes of each process at least. Collective.

        Returns bytes of each process for a search of pivots: of few functions the search comes before the refusal,
        which says how much is enough, and has what makes it fast. Raises OutcoreError (ENOMEM)."""
        needed, half = least.Least(self.world.size, self.held_bytes, stages), self.free_bytes() // 2
        share = self._share()
        if not self.options.estimate and int(mol.nao) > SOON:
            with self.world.together("memory of a run"):
                needed.check(share, bound=True)
        return half if needed.fits(share) else max(half, SEARCH_BYTES)

    def predict_file(self, stage: str, largest: Callable[[], int]) -> None:
        """The largest file of a stage, before anything is computed: bytes of one process, by a plan that is made
        where the size of files is limited. Collective. Raises OutcoreError (EFBIG)."""
        if not self.options.estimate and any(self.world.gather(preflight.files_are_limited())):
            size = largest()
            place = self.options.checkpoint or self.world.scratch
            with self.world.together("files of a run"):
                preflight.check_file_size(stage, place, size)

    def stand_in(self, mol: Mole, kind: Kind) -> Any:
        """A mean field without an SCF: orbitals of the right number, for plans."""
        from outcore.chem import mean_field

        mf = mean_field.make(mol, kind)
        mean_field.give_orbitals(mf)
        return mf

    def check_auxiliary(self, mol: Mole, names: dict[Purpose, str | None]) -> dict[Purpose, Mole]:
        """Molecules with the auxiliary sets that a run will take, which are looked for now, and what is to be said
        of them. Not collective. Raises OutcoreError, as `auxiliary.build`."""
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
        """What arrays have taken of the memory is free again. `mf`: of `stored_scf`, it goes on in the new world.
        Collective."""
        held = self.world.held_bytes
        self.world.close()
        self.open_world(held)
        if mf is not None:
            mf.comm = self.world

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        super().__exit__(kind, error, traceback)
        if interrupts.behind(error) is None:  # which this process alone may have got
            self.world.__exit__(None if error is None else type(error), error)

    @property
    def means(self) -> dict[str, Any]:
        """What every method may take, as constructors take it."""
        return {"memory": self.options.memory, "threads": self.options.threads, "comm": self.world}

    def common_settings(self) -> dict[str, Any]:
        """What methods with integrals of their own take, beside what is theirs alone."""
        options = self.options
        return {
            **self.means,
            "storage": options.storage,
            "checkpoint": options.checkpoint,
        } | ({} if options.screening is None else {"screening": options.screening})

    def stored_scf(self, mol: Mole, kind: Kind) -> Any:
        """An SCF with stored integrals, which has converged. The caller closes it. Collective."""
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
        """A density-fitted SCF, which has converged; Fock matrices are kept, and integrals closed.
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
        """Runs an SCF, or takes the orbitals that another run has kept. `more`: see restart.begin. Collective.

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
            "scf_seconds": seconds,
            "stability": search.report,
        }

    def doubt(self, search: SCFSearch) -> None:
        """Warns of a state that could not be decided, which is the exit status, too."""
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
        """What `make` makes of `first_orbitals`; None where these have other irreps than they may have, which those
        of the SCF need not have: an estimate is refused then. Collective."""
        try:
            return make()
        except OutcoreError as error:
            if self.options.estimate or error.errno != errno.EINVAL:
                raise
            return None

    def first_orbitals(self, mol: Mole, kind: Kind) -> Any:
        """For an estimate of a CI: an object with the orbitals that its SCF would begin with, as their irreps
        count."""
        from outcore.chem import scf_options
        from outcore.chem.hf import scf as methods

        # By the kernels of the SCF: those of PySCF take gigabytes of address space, and end the process without.
        # They take less than the SCF, whose memory is not checked yet: that of a run is told as a whole.
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
