"""The `outcore casscf` command."""

from __future__ import annotations

import errno
import time
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem import least
from outcore.chem.casscf.options import Options
from outcore.chem.run import MoleculeRun
from outcore.cli.run import with_options
from outcore.keep import clock

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.casscf.kept import KeptOrbitals
    from outcore.chem.casscf.space import CasSpace
    from outcore.chem.ci.fci import FCI
    from outcore.chem.ci.sigma import SigmaTraffic
    from outcore.chem.mean_field import Kind
    from outcore.chem.ri.auxiliary import Purpose
    from outcore.chem.ri.cholesky import Cholesky
    from outcore.chem.ri.traffic import Traffic

_ENERGY, _GRADIENT = 1e-9, 1e-5  # Hartree: convergence of a CASSCF
_CI_ENERGY = 1e-12  # Hartree
_HALF = 2  # fitted integrals get one half of the free memory, the CI gets the rest
_MADE = 4  # copies of a piece of exact integrals that exist while vectors are made from it
_LIBRARIES = 14 << 20  # memory of libraries for CASSCF and NEVPT2, beyond those of an SCF and a CI


def _of_converged(mc: Any, orbitals: Any, **_: Any) -> tuple[bool, float, float, Any, Any, None]:
    """Replaces PySCF's optimisation if the orbitals have converged already: it only finds the states."""
    energy, of_active, states = mc.casci(orbitals, mc.ci, mc.ao2mo(orbitals))
    return True, energy, of_active, states, orbitals, None


@with_options
def casscf(options: Options) -> int:
    """CASSCF or CASCI of a molecule after its SCF, orbitals by PySCF and full CI by Outcore, and NEVPT2; on one
    process. Exit status 3: the energy is there, but the state of the SCF is a saddle point that could not be
    left, or there is no room for integrals as fine as its energy needs."""
    with _Run(options) as run:
        run.of_molecule()
        run.finish(run.world)
        run.refuse_unconverged()
    return run.status


class _Run(MoleculeRun):
    """The stages of a run, and their output."""

    options: Options

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._method = "CASCI" if options.casci else "CASSCF"
        self.energies = MappingProxyType(
            {
                "scf_energy_hartree": "SCF energy",
                "average_energy_hartree": f"{self._method} average",
                "energies_hartree": f"{self._method} energy",
                "nevpt2_energies_hartree": "NEVPT2 energy",
                "qd_nevpt2_energies_hartree": "QD-NEVPT2 energy",
            }
        )
        if self.comm is not None and self.comm.size > 1:
            raise OutcoreError(
                errno.ENOTSUP,
                "outcore casscf",
                detail=f"it runs on one process, not on {self.comm.size}; --threads gives it more cores",
            )
        self.open_world()
        self._converged = True
        self._moved: list[SigmaTraffic] = []  # by each solve whose vectors are on disk
        self._vectors: Cholesky | None = None  # Cholesky vectors of exact integrals, for NEVPT2
        self._later_bytes = 0  # memory that stages after the SCF need

    @property
    def usual_bytes(self) -> int:
        if self.options.integrals == "ri":
            return least.FITTED_BYTES + _LIBRARIES
        return (least.DECOMPOSED_BYTES if self.options.nevpt2 else least.STORED_BYTES) + _LIBRARIES

    # ---- before the states ----

    def of_molecule(self) -> None:
        from outcore.chem.symmetry import group_line, with_symmetry

        options, plain = self.options, self.build()
        mol = plain if options.avas is not None else with_symmetry(plain, "auto") or plain
        kind: Kind = "ROHF" if mol.spin else "RHF"
        self.header(options.title(f"{self._method}({kind})", mol), f"scratch {self.world.scratch}")
        self.say(group_line(mol))
        self._check_orbitals(mol)
        sets: dict[Purpose, Mole] = {}
        if options.integrals == "ri":
            sets = self.check_auxiliary(mol, {"jk": options.jkbasis})
        first = self._predict(mol, kind, sets)
        if options.estimate:
            assert first is not None
            self._describe(first)
            forecasts = [each.forecast() for each in first]
            for forecast in forecasts:
                self.console.print(forecast.table())
            parts = [each.as_json() for each in forecasts]
            self.results |= {"estimate": parts[0]} | ({"estimates": parts} if len(parts) > 1 else {})
            return
        self._solve(self._mean_field(mol, kind))

    def _predict(self, mol: Mole, kind: Kind, sets: dict[Purpose, Mole]) -> list[FCI] | None:
        """Determines the least memory of all stages, and returns the result of `_first`. With decomposed integrals
        the memory is known only after the search of pivots."""
        from outcore.chem import least_memory
        from outcore.chem.ri.cholesky import EXACT, Cholesky

        options = self.options
        of_scf, decomposes = self._of_scf(mol, kind, sets), options.nevpt2 and options.integrals != "ri"
        of_vectors = {"Cholesky decomposition": least_memory.decomposition(mol, 1)} if decomposes else {}
        room = self.refuse_soon(mol, of_scf | of_vectors)
        first = None if options.avas is not None else self._first(mol, kind)
        if first is None:
            self.predict_memory(of_scf)
        elif decomposes:
            self._vectors = Cholesky(
                self.world,
                mol,
                EXACT,
                room,
                check=lambda found: self.predict_memory(self._with_vectors(mol, first, of_scf, found)),
            )
        else:
            integrals = self._of_nevpt2(mol, first[0], fitted=sets["jk"]) if options.nevpt2 else 0
            self.predict_memory(of_scf | self._of_states(mol, first, integrals))
        return first

    def _with_vectors(
        self, mol: Mole, first: list[FCI], of_scf: dict[str, int], found: Cholesky
    ) -> dict[str, int]:
        """Memory of all stages, with the factor of a decomposition."""
        from outcore.chem import least_memory

        stages = of_scf | self._of_states(mol, first, self._of_nevpt2(mol, first[0], vectors=found))
        factor = least_memory.factor_bytes(found.rank)
        return {name: each + factor for name, each in stages.items()} | {
            "Cholesky decomposition": least_memory.decomposition(mol, found.rank)
        }

    def _of_nevpt2(
        self, mol: Mole, first: FCI, *, fitted: Mole | None = None, vectors: Cholesky | None = None
    ) -> int:
        """Memory of integrals with outer orbitals, from auxiliary functions or from Cholesky vectors of exact
        ones."""
        from outcore.chem import frozen
        from outcore.chem.nevpt2.integrals import least_bytes
        from outcore.chem.ri import pairs
        from outcore.chem.ri.fitting import SCREENING

        options, n, active = self.options, int(mol.nao), first.hamiltonian.orbitals
        core = (int(mol.nelectron) - sum(first.target.electrons)) // 2
        numbers = np.arange(n - active)
        stay = frozen.of(mol, options.frozen, options.frozen_virtual, [(numbers, core)])
        inside, outside = (len(each) for each in stay.active(0, numbers, core))
        if not inside and not outside:
            return 0
        counts, rows, columns, made = (inside, active, outside), 0, n * n, 0
        others = options.count - 1 if options.quasi_degenerate else 0
        if fitted is not None:
            rows, columns = int(fitted.nao), pairs.columns_of(mol, fitted, SCREENING, self.threads)
        if vectors is not None:
            rows, made = vectors.rank, _MADE * int(np.diff(vectors.cuts).max(initial=0)) * columns * 8
        return self.threads * made + least_bytes(n, columns, rows, counts, 1, self.threads, "auto", others)

    def _check_orbitals(self, mol: Mole) -> None:
        """Checks orbitals and states before the SCF."""
        from outcore.chem import frozen
        from outcore.chem.ci import before
        from outcore.chem.ci.orbitals import count_before_scf
        from outcore.chem.nevpt2.orbitals import refuse_lists

        def pair(electrons: int) -> tuple[int, int]:
            return (electrons + int(mol.spin)) // 2, (electrons - int(mol.spin)) // 2

        options, n = self.options, int(mol.nao)
        space, known = options.space(), [before.whole(mol)]
        if space.of_irreps is not None:
            space.check_irreps(mol)
            known.append(before.of_names(mol, space.of_irreps, [pair(space.electrons(int(mol.nelectron)))]))
        elif options.avas is not None:
            space.check_atomic(mol)
        else:
            numbers = np.arange(count_before_scf(mol))
            active, electrons = space.places(sum((numbers < each).astype(np.int64) for each in mol.nelec))
            known.append(before.of_count(len(active), pair(electrons)))
        if options.nevpt2:
            asked = frozen.of(mol, options.frozen, options.frozen_virtual, [(range(n), min(mol.nelec))])
            refuse_lists(asked)
        before.check_states(mol, known, options.groups(int(mol.spin)))

    def _check_spins(self, mol: Mole, electrons: int, orbitals: int) -> None:
        """Checks that the active space has states of each spin."""
        from outcore.chem.ci.target import check_spin

        for each in self.options.groups(mol.spin):
            check_spin(electrons, orbitals, each.spin)

    def _of_scf(self, mol: Mole, kind: Kind, sets: dict[Purpose, Mole]) -> dict[str, int]:
        from outcore.chem import least_memory
        from outcore.chem.hf.settings import METHOD, Settings

        if self.options.integrals == "ri":
            spins = 1 if kind == "RHF" else 2
            return {"density-fitted SCF": _HALF * self.least_of_fitted_scf(mol, sets["jk"], spins)}
        return {METHOD: least_memory.stored_scf(mol, Settings(storage=self.options.storage), self.threads)}

    def _first(self, mol: Mole, kind: Kind) -> list[FCI] | None:
        """A full CI for each irrep and spin, with active orbitals among the start orbitals of the SCF: only their
        irreps matter."""
        from outcore.chem.ci.fci import FCI

        def make() -> list[FCI]:
            mf = self.first_orbitals(mol, kind)
            active, _ = self.options.space().of_first(mf)
            return [
                FCI(
                    mf,
                    active=active.tolist(),
                    group=None if mol.symmetry else "C1",
                    irrep=each.irrep,
                    spin=each.spin,
                    roots=each.roots,
                    integrals=False,
                    **self.means,
                )
                for each in self.options.groups(mol.spin)
            ]

        return self.with_first_orbitals(make)

    def _of_states(self, mol: Mole, first: list[FCI], integrals: int) -> dict[str, int]:
        """Memory of the CI, of PySCF's integrals with two active orbitals, and of vectors and integrals of NEVPT2,
        together with the states."""
        from outcore.chem import least_memory
        from outcore.chem.nevpt2.orbitals import TITLE
        from outcore.chem.nevpt2.perturbers import least_bytes

        options, n, active = self.options, int(mol.nao), first[0].hamiltonian.orbitals
        left = least_memory.left_by_scf(mol)
        parts = _HALF if options.integrals == "ri" else 1
        every = [each.target.roots * each.space.determinants * 8 for each in first]
        states = sum(every)
        of_search = (each.least_bytes() - own for each, own in zip(first, every, strict=True))
        found = {"full CI": left + parts * (states + max(of_search))}
        if not options.casci:
            found["orbitals of a CASSCF"] = left + parts * 3 * 2 * 8 * n**2 * active**2
        if options.nevpt2:
            vectors = max(least_bytes(each.hamiltonian, each.space, self.threads) for each in first)
            found[TITLE] = left + parts * (states + max(vectors, integrals))
        self._later_bytes = max(found.values())
        return found

    def _mean_field(self, mol: Mole, kind: Kind) -> Any:
        """PySCF's object with the orbitals of an SCF."""
        from outcore.chem import mean_field, ri

        options = self.options
        if options.integrals == "ri":
            solved = self.fitted_scf(mol, kind, options.jkbasis)
        else:
            solved = self.stored_scf(mol, kind)
            solved.close()
        self.renew_world()
        mf = mean_field.make(mol, kind)
        for name in ("mo_coeff", "mo_energy", "mo_occ", "e_tot", "converged"):
            setattr(mf, name, getattr(solved, name))
        # PySCF may keep exact integrals only as far as they leave later stages their memory.
        mf.verbose, mf.max_memory = 0, (self._share().bytes - self._later_bytes) / 1e6
        if options.integrals == "ri":
            half = self._share().bytes - self.free_bytes() // _HALF
            given: dict[str, Any] = {} if options.screening is None else {"screening": options.screening}
            mf = ri.density_fit(
                mf, options.jkbasis, memory=half, threads=self.threads, comm=self.world, **given
            )
        return mf

    # ---- states ----

    def _solve(self, mf: Any) -> None:
        from pyscf import mcscf
        from pyscf.lib.exceptions import PointGroupSymmetryError

        from outcore.chem.casscf.kept import STATES
        from outcore.chem.ci.fci_solver import FCISolver

        options, space, begin = self.options, self.options.space().choose(mf), time.monotonic()
        self._check_spins(mf.mol, space.electrons, space.orbitals)
        groups, several = options.groups(mf.mol.spin), options.count > 1
        mc = getattr(mcscf, self._method)(mf, space.orbitals, space.electrons, ncore=space.core)
        if len(groups) == 1:
            unpaired = groups[0].spin
            mc.nelecas = (space.electrons + unpaired) // 2, (space.electrons - unpaired) // 2
        solvers = [
            FCISolver(
                mf.mol,
                **self.means,
                checkpoint=None if options.checkpoint is None else options.checkpoint / f"{STATES}.{number}",
            )
            for number in range(len(groups))
        ]
        for solver, group in zip(solvers, groups, strict=True):
            solver.nroots, solver.spin, solver.conv_tol = group.roots, group.spin, _CI_ENERGY
            solver.wfnsym = group.irrep
            solver.on_solve, solver.on_solved = self._show_iterations, self._end_solve
            solver.keeps_all = options.nevpt2  # it continues only with the same states, to the last digits
        mc.fcisolver, mc.verbose, mc.max_memory = solvers[0], 0, self._share().bytes / 1e6
        orbitals = space.coefficients
        if len(groups) > 1:
            mc = mcscf.state_average_mix(mc, solvers, options.state_weights())
        if not options.casci:
            mc.conv_tol, mc.conv_tol_grad, mc.max_cycle_macro = _ENERGY, _GRADIENT, options.iterations
            if several and len(groups) == 1:
                mc = mc.state_average(options.state_weights())
            orbitals = self._watch(mc, mf, space)
        has_converged = {"_kern": _of_converged} if self._has_converged else {}
        try:
            mc.kernel(orbitals, **has_converged)
        except PointGroupSymmetryError as error:
            detail = f"{error}: a degenerate shell is active in part; take whole shells"
            raise OutcoreError(
                errno.EINVAL, f"choose active orbitals in {mf.mol.groupname}", detail=detail
            ) from error
        if kept := self._kept_orbitals:
            kept.save(mc.mo_coeff, self._iteration, converged=bool(mc.converged))
        self._converged = bool(mc.converged) and all(each.converged for each in _calculations(mc))
        self._describe(_calculations(mc))
        self.results |= {"converged": self._converged, "casscf_seconds": time.monotonic() - begin}
        self._tell_states(mc)
        if options.write_fcidump is not None:
            _calculations(mc)[0].write_fcidump(options.write_fcidump)
            self.say(f"wrote {options.write_fcidump}")
            self.results["fcidump"] = str(options.write_fcidump)
        if options.nevpt2 and self._converged:
            (self._quasi if options.quasi_degenerate else self._nevpt2)(mc)
        if options.density is not None:
            self._write_density(mc)
        for solver in solvers:
            solver.close()

    def _show_iterations(self, ci: FCI) -> None:
        """Shows the iterations of a CASCI, and of a CI that takes so long that a kill would lose much."""
        from outcore.chem.ci.view import Iterations

        is_long = ci.checkpoint is not None and ci.forecast().total_seconds > clock.INTERVAL_S
        if self.options.casci or is_long:
            ci.on_iteration = Iterations(self.say, ci.hamiltonian.core_energy)

    def _end_solve(self, ci: FCI) -> None:
        from outcore.chem.ci.view import found_lines

        for line in found_lines(ci):
            self.say(line)
        if ci.solved.plan.kind == "disk":
            self._moved.append(ci.solved.moved)

    _kept_orbitals: KeptOrbitals | None = None
    _iteration, _has_converged = 0, False

    def _watch(self, mc: Any, mf: Any, space: CasSpace) -> Any:
        """Prints and keeps each iteration of `mc`. Returns the orbitals to begin with."""
        options, orbitals = self.options, space.coefficients
        if options.checkpoint is not None:
            from outcore.chem.casscf.kept import KeptOrbitals

            more = {
                "active space": [space.core, space.orbitals, space.electrons],
                "choice of active orbitals": [str(options.active), str(options.avas), options.avas_threshold],
                **({} if options.core is None else {"doubly occupied orbitals": options.core}),
                **({} if options.states is None else {"states": list(map(str, options.groups(0)))}),
                "weights": options.state_weights(),
                "irrep": str(options.irrep),
                "integrals": [options.integrals, str(options.jkbasis), options.screening],
            }
            self._kept_orbitals = KeptOrbitals(options.checkpoint, mf, more)
            found = self._kept_orbitals.find()
            if found is not None:
                orbitals, self._iteration, self._has_converged = found
                how = "has converged in" if self._has_converged else "begins with orbitals of"
                self.say(f"{how} iteration {self._iteration} in {options.checkpoint}")
        self.say(f"{'iter':>4} {'energy / Eh':>18} {'gradient':>9}")

        before = [np.inf]

        def told(known: dict[str, Any]) -> None:  # PySCF calls it in smaller steps as well
            energy, gradient = float(known["e_tot"]), float(known.get("norm_gorb0", before[0]))
            if gradient == before[0]:
                return
            before[0], self._iteration = gradient, self._iteration + 1
            self.say(f"{self._iteration:4d} {energy:18.10f} {gradient:9.1e}")
            if self._kept_orbitals is not None:
                self._kept_orbitals.save(known["mo"], self._iteration)

        mc.callback = told
        return orbitals

    def _describe(self, calculations: list[FCI]) -> None:
        """Describes the space in the output. calculations: one for each irrep and spin."""
        from outcore.chem.ci.view import space_facts, space_lines

        for line in dict.fromkeys(line for each in calculations for line in space_lines(each)):
            self.say(line)
        facts = [space_facts(each) for each in calculations]
        self.results |= facts[0] | ({"spaces": facts} if len(facts) > 1 else {})

    def _states(self, mc: Any) -> list[tuple[Any, float]]:
        """Handles and energies of all states."""
        if self.options.count == 1:
            return [(mc.ci, float(mc.e_tot))]
        energies = getattr(mc, "e_states", mc.e_tot)
        return list(zip(mc.ci, map(float, energies), strict=True))

    def _tell_states(self, mc: Any) -> None:
        from outcore.chem.ci.analysis import spin_square
        from outcore.chem.ci.sigma import SigmaTraffic
        from outcore.chem.ci.view import products_line

        moved = SigmaTraffic.sum(self._moved)
        self.say(products_line(f"products of {self._method}", moved))
        self.results["moved_by_products"] = asdict(moved)
        found, states = [], self._states(mc)
        for root, (state, energy) in enumerate(states, 1):
            densities = state.densities()
            occupations = np.linalg.eigvalsh(densities.one)[::-1]
            square = spin_square(state.ci.target.electrons, densities)
            irrep = state.ci.hamiltonian.names[state.ci.target.irrep]
            self.say(
                f"{self._method} energy of root {root}: {energy:.10f} Eh, {irrep}, <S^2> = {abs(square):.6f}"
            )
            self.say("  natural occupations: " + " ".join(f"{each:.4f}" for each in occupations))
            found.append(
                {
                    "irrep": irrep,
                    "occupations": [float(each) for each in occupations],
                    "spin_square": float(square),
                }
            )
        self.results |= {"energies_hartree": [energy for _, energy in states], "roots": found}
        if self.options.count > 1 and not self.options.casci:
            self.results["average_energy_hartree"] = float(mc.e_tot)

    def _nevpt2(self, mc: Any) -> None:
        from outcore.chem.nevpt2.nevpt2 import NEVPT2

        energies, parts = [], []
        for root in range(self.options.count):
            method = NEVPT2(mc, root, **self._settings_of_nevpt2())
            method.on_warning = self.warn
            with self.stages() as tell:
                method.on_progress = tell
                method.kernel()
            self._tell_classes(root, method.integral_title, method.e_classes)
            self._tell_moved(method.traffic, method.moved_by_products)
            energies.append(method.e_tot)
            parts.append(method.e_classes)
        self.results |= {"nevpt2_energies_hartree": energies, "nevpt2_classes_hartree": parts}

    def _settings_of_nevpt2(self) -> dict[str, Any]:
        options = self.options
        return {
            "frozen": options.frozen,
            "frozen_virtual": options.frozen_virtual,
            "memory": options.memory,
            "source": self._vectors,
            "checkpoint": options.checkpoint,
        }

    def _tell_classes(self, root: int, title: str, energies: dict[str, float]) -> None:
        self.say(f"NEVPT2 of root {root + 1}: {title}")
        for name, energy in energies.items():
            self.say(f"  perturbers {name:<5}{energy:18.10f} Eh")

    def _tell_moved(self, traffic: Traffic, of_products: SigmaTraffic) -> None:
        """Shows the disk traffic of NEVPT2 of one root beside the least, and adds it to the results."""
        from outcore.chem.ci.view import products_line

        self.say(traffic.line("  three-index integrals"))
        self.say(products_line("  products with perturbers", of_products))
        found = traffic.as_json() | {"moved_by_products": asdict(of_products)}
        self.results.setdefault("nevpt2_traffic", []).append(found)

    def _quasi(self, mc: Any) -> None:
        from outcore.chem.nevpt2.quasi import QDNEVPT2

        method = QDNEVPT2(mc, **self._settings_of_nevpt2())
        method.on_warning = self.warn
        with self.stages() as tell:
            method.on_progress = tell
            energies = method.kernel()
        moved = zip(method.traffic, method.moved_by_products, strict=True)
        for root, (classes, each) in enumerate(zip(method.e_classes, moved, strict=True)):
            self._tell_classes(root, method.integral_title, classes)
            self._tell_moved(*each)
        self.say("QD-NEVPT2: states, and the square of each root in them")
        for energy, shares in zip(energies, method.mixing.T**2, strict=True):
            self.say(f"{energy:18.10f} Eh  " + " ".join(f"{each:.4f}" for each in shares))
        self.results |= {
            "nevpt2_energies_hartree": method.e_roots.tolist(),
            "nevpt2_classes_hartree": method.e_classes,
            "qd_nevpt2_energies_hartree": energies.tolist(),
            "qd_nevpt2_mixing": method.mixing.tolist(),
            "qd_nevpt2_hamiltonian_hartree": method.hamiltonian.tolist(),
        }

    def _write_density(self, mc: Any) -> None:
        """Writes the density of the requested states."""
        from outcore.chem.formats import densities as files

        path, mo = self.options.density, np.asarray(mc.mo_coeff)
        assert path is not None
        weights = zip(self.options.density_weights(), self._states(mc), strict=True)
        found = [(weight, state.densities()) for weight, (state, _) in weights if weight]
        alpha = sum(weight * each.alpha for weight, each in found)
        beta = sum(weight * each.beta for weight, each in found)
        core, active = mo[:, : mc.ncore], mo[:, mc.ncore : mc.ncore + mc.ncas]
        spins = [core @ core.T + active @ each @ active.T for each in (alpha, beta)]
        files.write(path, mc.mol, (spins[0], spins[1]))
        self.say(f"wrote {path}")
        self.results["density_file"] = str(path)

    def refuse_unconverged(self) -> None:
        if not self._converged:
            raise NotConverged(None, f"converge the {self._method}", detail="raise --iterations")


def _calculations(mc: Any) -> list[FCI]:
    """The FCI object of each irrep and spin."""
    states = mc.ci if isinstance(mc.ci, list) else [mc.ci]
    return list(dict.fromkeys(state.ci for state in states))
