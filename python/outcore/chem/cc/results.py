"""Results of a coupled-cluster calculation: energies, amplitudes, diagnostics."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base import html
from outcore.base.errors import OutcoreError
from outcore.chem import doubts
from outcore.chem.cc import fno
from outcore.chem.cc.equations import methods, orbitals
from outcore.chem.cc.equations.doubles import spin_pairs
from outcore.chem.cc.given import GivenDoubles
from outcore.chem.cc.keep import amplitude_file

if TYPE_CHECKING:
    from outcore.chem.cc.equations.doubles import Equations
    from outcore.chem.cc.equations.orbitals import CorrelatedOrbitals
    from outcore.chem.cc.iteration import Iteration
    from outcore.chem.cc.settings import Settings
    from outcore.chem.frozen import Frozen
    from outcore.chem.reference import Reference

Values = np.ndarray[Any, np.dtype[Any]]


class Results:
    """The part of a CCSD object with its results. The object sets the attributes."""

    _mf: Any
    reference: Reference
    restricted: bool
    spins: list[CorrelatedOrbitals]
    singles: list[Values]
    equations: Equations | None
    e_corr: float
    e_t: float
    delta_mp2: float
    converged: bool
    iterations: list[Iteration]
    settings: Settings
    _auxbasis: Any
    _screening: float
    _integrals: Any
    _every: list[CorrelatedOrbitals]  # correlated orbitals, before natural ones replace some
    _frozen: Frozen

    @property
    def method_facts(self) -> methods.MethodFacts:
        return methods.of(self.settings.method)

    @property
    def mol(self) -> Any:
        return self._mf.mol

    @property
    def scf_object(self) -> Any:
        return self._mf

    @property
    def given_auxbasis(self) -> Any:
        return self._auxbasis

    @property
    def screening(self) -> float:
        """The threshold of three-index integrals."""
        return self._screening

    @property
    def given_integrals(self) -> bool:
        """Whether two-electron integrals are those that the reference gives."""
        return self._integrals is not None

    @property
    def frozen(self) -> Any:
        """Orbitals that are not correlated: how many of the lowest, or a list; see `outcore.chem.frozen.Frozen`."""
        return self._frozen.as_json()

    @property
    def e_hf(self) -> float:
        """Energy of the determinant of the reference (Hartree)."""
        return self.reference.energy

    @property
    def e_tot(self) -> float:
        return self.e_hf + self.e_corr

    def _repr_html_(self) -> str:
        e_t, delta = self.e_t, self.delta_mp2
        method = self.method_facts.title
        title = f"{method}(T)" if e_t else method
        state = "yes" if self.converged else "no" if self.iterations else "not run"
        if not self.iterations and not self.converged:
            return html.facts(title, [("SCF energy", f"{self.e_hf:.10f} Eh"), ("converged", state)])
        rows: list[tuple[str, object]] = [
            ("SCF energy", f"{self.e_hf:.10f} Eh"),
            ("correlation energy", f"{self.e_corr:.10f} Eh"),
            (f"{method} energy", f"{self.e_tot:.10f} Eh"),
            ("(T) energy", f"{e_t:.10f} Eh" if e_t else None),
            (f"{method}(T) energy", f"{self.e_tot + e_t:.10f} Eh" if e_t else None),
            ("left out by natural orbitals, MP2", f"{delta:.10f} Eh" if delta else None),
            ("converged", state),
            ("iterations", self.iterations[-1].number if self.iterations else 0),
            ("integrals", self.settings.integrals),
            ("frozen", self._frozen),
        ]
        return html.facts(title, [*rows, *(("warning", each) for each in self.warnings)])

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the result, a line each: a determinant that is not the lowest of its occupation, a
        positive correlation energy."""
        of_orbitals = doubts.of_orbitals([self._energies(number) for number in range(len(self._every))])
        return of_orbitals + doubts.of_energy(self.e_corr, self.settings.conv_tol)

    def _energies(self, number: int) -> tuple[Values, Values]:
        """Energies of occupied and of virtual orbitals of a spin (Hartree), frozen ones among them."""
        given, correlated = self.reference.spins[number], self._every[number]
        energies = np.array(given.energies if given.fock is None else np.diag(given.fock))
        if not correlated.missing:
            energies[self.active_positions(number)] = correlated.energies
        return energies[: given.occupied], energies[given.occupied :]

    @property
    def active_orbitals(self) -> Any:
        """Coefficients of the orbitals of `t1` and `t2`, (functions, orbitals), without frozen ones.

        They are those of the reference, but natural ones with `fno`, and semicanonical ones where ROHF was made so
        before orbitals were frozen. Open shells have a pair, for alpha and beta."""
        found = [
            orbitals.correlated(given, number, self._frozen)
            if each.missing
            else orbitals.given_coefficients(each)
            for number, (each, given) in enumerate(zip(self.spins, self.reference.spins, strict=True))
        ]
        return found[0] if self.restricted else tuple(found)

    def active_positions(self, number: int) -> Any:
        """Positions of the correlated orbitals of a spin among those of `reference`, occupied ones first."""
        given = self.reference.spins[number]
        return np.concatenate(self._frozen.active(number, given.numbers, given.occupied))

    def fno_error(self, *, triples: bool = False) -> float:
        """An estimate of the error that frozen natural orbitals leave in `e_tot + delta_mp2`, or with `triples` in
        `e_tot + e_t + delta_mp2` (Hartree, not negative): a share of `delta_mp2` that bounded the errors of small
        molecules."""
        return abs(self.delta_mp2) * (fno.TRIPLES_ERROR if triples else fno.ERROR)

    @property
    def uncorrelated(self) -> bool:
        """Whether no spin has both occupied and virtual orbitals. Then the energy is 0 without a calculation."""
        return not self.spins[0].occupied or not self.spins[0].virtual

    @property
    def t1(self) -> Any:
        """Singles [i,a] of `active_orbitals`, a copy; for open shells those of both spins."""
        found = [orbitals.given_singles(t, spin) for t, spin in zip(self.singles, self.spins, strict=True)]
        return found[0] if self.restricted else tuple(found)

    @property
    def t2(self) -> Any:
        """Doubles [i,j,a,b] of `active_orbitals`, for open shells those of spins aa, ab, bb. They are no copy, so
        later iterations change them: see GivenDoubles."""
        pairs = spin_pairs(len(self.spins))
        found: list[Any]
        if self.uncorrelated:
            sizes = [each.sizes for each in self.spins]
            found = [np.zeros((sizes[s][0], sizes[r][0], sizes[s][1], sizes[r][1])) for s, r in pairs]
        elif self.equations is None:
            raise OutcoreError(errno.EINVAL, "take amplitudes", detail="run kernel() first")
        else:
            arrays = [each.amplitudes for each in self.equations.doubles]
            found = [
                GivenDoubles(each, self.spins[s], self.spins[r])
                for each, (s, r) in zip(arrays, pairs, strict=True)
            ]
        return found[0] if self.restricted else tuple(found)

    def amplitudes(self) -> tuple[Any, Any]:
        """`t1` and `t2` in memory, at each process."""
        doubles = self.t2
        return self.t1, np.asarray(doubles) if self.restricted else tuple(map(np.asarray, doubles))

    def save_amplitudes(self, path: str | os.PathLike[str]) -> None:
        """Writes an HDF5 file, in place of an older one; see `amplitude_file`. Collective.

        Raises OutcoreError (ENOTSUP) for another method than CCSD: PySCF would take its amplitudes for those of
        CCSD.
        """
        if not self.method_facts.has_amplitude_file:
            detail = f"the file is of CCSD, not of {self.method_facts.title}; a checkpoint keeps them"
            raise OutcoreError(errno.ENOTSUP, "save amplitudes", path=path, detail=detail)
        if self.equations is None:
            raise OutcoreError(errno.EINVAL, "save amplitudes", path=path, detail="run kernel() first")
        amplitude_file.save(
            Path(path), self.mol, self.spins, self.e_corr, self.singles, self.equations.doubles
        )

    @property
    def file_bytes(self) -> int:
        """About how many bytes `save_amplitudes` writes."""
        return amplitude_file.size_bytes(self.spins)

    def get_t1_diagnostic(self) -> float:
        """|t1| over the root of the number of correlated electrons of closed shells; above 0.02 one determinant is
        hardly enough. Lee, Taylor, Int. J. Quantum Chem. Symp. 23, 199 (1989)."""
        if not self.restricted:
            raise OutcoreError(errno.ENOTSUP, "T1 diagnostic", detail="it is of closed shells")
        return float(np.linalg.norm(self.singles[0]) / np.sqrt(2 * self.spins[0].occupied))

    def get_d1_diagnostic(self) -> float:
        """The largest singular value of t1, of closed shells. Janssen, Nielsen, Chem. Phys. Lett. 290, 423
        (1998)."""
        if not self.restricted:
            raise OutcoreError(errno.ENOTSUP, "D1 diagnostic", detail="it is of closed shells")
        return float(np.linalg.norm(self.singles[0], 2))
