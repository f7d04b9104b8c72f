"""Quasi-degenerate SC-NEVPT2: states of a CASCI or CASSCF that mix through perturbers outside the active space.

    correlation = outcore.chem.nevpt2.QDNEVPT2(mc, memory="2GB")
    energies = correlation.kernel()

Angeli, Borini, Cestari, Cimiraglia, J. Chem. Phys. 121, 4043 (2004). The zeroth-order Hamiltonian is that of each
state. A perturber V_l|m> of state m, which lies E_l(m) - E_m above it, gives the element

    H_nm = <n|H|m> - sum_l <V_l n|V_l m> / (E_l(m) - E_m)

where all outer orbitals are those of m. So a column is SC-NEVPT2 of one state, and its diagonal element is the
energy of that state. The other elements have overlaps of perturbers in place of norms: they need transition
densities, and for perturbers with one outer orbital one further product with a Hamiltonian. The mean of the matrix
and its transpose is diagonalized.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base import html, keywords
from outcore.base.errors import OutcoreError
from outcore.chem.doubts import tell as tell_doubts
from outcore.chem.logs import NOTE
from outcore.chem.method import Method
from outcore.chem.nevpt2.nevpt2 import NEVPT2
from outcore.chem.nevpt2.orbitals import states_of

if TYPE_CHECKING:
    from outcore.chem.ci.fci_solver import CIVector
    from outcore.chem.ci.sigma import SigmaTraffic
    from outcore.chem.frozen import Asked
    from outcore.chem.nevpt2.active import Matrix
    from outcore.chem.ri.cholesky import Cholesky
    from outcore.chem.ri.traffic import Traffic

TITLE = "QD-NEVPT2"
_ORTHOGONAL = 1e-5  # largest overlap of two converged states


class QDNEVPT2(Method):
    """QD-NEVPT2 of all roots of a CASCI or CASSCF object of PySCF whose states `outcore.chem.ci.FCISolver` has
    found. It uses the processes, the scratch directory and the threads of that solver. States of different irreps
    or spins do not mix.

    Args: as `NEVPT2`, without `root`.

    After `kernel`: `e_tot` (Hartree, of the mixed states, in rising order), `mixing` [root][mixed state], `e_roots`
    (SC-NEVPT2 of each root), `e_classes` (of each root, as in `NEVPT2`), `hamiltonian` [root][root] (the mean of
    `columns` and its transpose), `columns` [root][root] (with the perturbers of the second root). `warnings` has
    the reasons to doubt a result, as in `NEVPT2`. The constructor and `kernel` are collective.
    Raises OutcoreError, the same on all processes: EINVAL (fewer than two states, states that overlap), ENOTSUP
    (states of one irrep and spin in different worlds or spaces of vectors).
    """

    title = TITLE
    fixed = ("screening", "checkpoint")

    @keywords.checked()
    def __init__(
        self,
        mc: Any,
        *,
        frozen: Asked = None,
        frozen_virtual: Asked = None,
        auxbasis: Any = None,
        memory: int | str | None = None,
        screening: float | None = None,
        storage: str = "auto",
        checkpoint: str | Path | None = None,
        force: bool = False,
        source: Cholesky | None = None,
    ) -> None:
        states = states_of(mc)
        if len(states) < 2:
            raise _refused(f"{len(states)} state mixes with none; take NEVPT2, or more roots")
        self._roots = [
            NEVPT2(
                mc,
                root,
                frozen=frozen,
                frozen_virtual=frozen_virtual,
                auxbasis=auxbasis,
                memory=memory,
                screening=screening,
                storage=storage,
                checkpoint=checkpoint,
                force=force,
                source=source,
            )
            for root in range(len(states))
        ]
        first = self._roots[0]
        self.mol = mc.mol
        self._open(
            first.settings,
            memory=first.memory_bytes,
            scratch=None,
            threads=first.threads,
            comm=first.world,
            checkpoint=checkpoint,
            told_by=mc,
        )
        self.e_tot: Matrix = np.array([each.e_cas for each in self._roots])
        self.mixing: Matrix = np.eye(len(states))
        self.columns: Matrix = np.diag(self.e_tot)
        self._kinds = [_kind(each) for each in states]
        self._done = False
        self._check_states(states)
        self._opened()

    def _keep_in(self, directory: Path | None) -> None:
        super()._keep_in(directory)
        for each in self._roots:
            each.set(checkpoint=directory)

    def _check_states(self, states: list[CIVector]) -> None:
        """Checks that states that may mix are orthogonal vectors of one space. Collective."""
        for n, m in combinations(range(len(states)), 2):
            if self._kinds[n] != self._kinds[m]:
                continue
            bra, ket = states[n], states[m]
            if bra.ci.world is not ket.ci.world or not _comparable(bra, ket):
                raise _refused(
                    f"roots {n} and {m} have one irrep and spin, but their vectors are of different worlds or "
                    "spaces; take one solver with more roots",
                    errno.ENOTSUP,
                )
            overlap = bra.dot(ket)
            if abs(overlap) > _ORTHOGONAL:
                raise _refused(
                    f"roots {n} and {m} overlap by {overlap:.1e}: take one solver with more roots, where two find "
                    "states of one irrep and spin"
                )

    # ---- results ----

    @property
    def roots(self) -> int:
        return len(self._roots)

    @property
    def hamiltonian(self) -> Matrix:
        """The effective Hamiltonian [root][root] (Hartree)."""
        return (self.columns + self.columns.T) / 2

    @property
    def e_roots(self) -> Matrix:
        """The SC-NEVPT2 energy of each root, without mixing (Hartree)."""
        return np.diag(self.columns).copy()

    @property
    def e_classes(self) -> list[dict[str, float]]:
        return [each.e_classes for each in self._roots]

    @property
    def traffic(self) -> list[Traffic]:
        """Of each root, as in `NEVPT2`."""
        return [each.traffic for each in self._roots]

    @property
    def moved_by_products(self) -> list[SigmaTraffic]:
        """Of each root, as in `NEVPT2`."""
        return [each.moved_by_products for each in self._roots]

    @property
    def integral_title(self) -> str:
        return self._roots[0].integral_title

    @property
    def converged(self) -> bool:
        """Whether all states have converged."""
        return all(each.converged for each in self._roots)

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the result, one line each."""
        return [f"root {root}: {line}" for root, each in enumerate(self._roots) for line in each.warnings]

    @property
    def _is_fixed(self) -> bool:
        return self._done

    def _repr_html_(self) -> str:
        if not self._done:
            return html.facts(TITLE, [("roots", str(self.roots)), ("state", "not run")])
        rows: list[tuple[str, object]] = [
            (f"{TITLE} energy of state {k}", f"{energy:.10f} Eh") for k, energy in enumerate(self.e_tot)
        ]
        return html.facts(TITLE, [*rows, *(("warning", each) for each in self.warnings)])

    # ---- energies ----

    def kernel(self) -> Matrix:
        """Energies of the mixed states (Hartree), in rising order. Collective."""
        columns = np.zeros((self.roots, self.roots))
        for m, method in enumerate(self._roots):
            others = [n for n in range(self.roots) if n != m and self._kinds[n] == self._kinds[m]]
            method.on_progress, method.on_warning = self._teller(m), _nothing  # `warnings` has them all
            energy, couplings = method.column([self._roots[n].state for n in others])
            columns[m, m], columns[others, m] = method.e_cas + energy, couplings
        self.columns, self._done = columns, True
        self.e_tot, self.mixing = self._mixed()
        for k, energy in enumerate(self.e_tot):
            self.log(NOTE, "E(QD-NEVPT2) = %.15g  state %d", energy, k)
        tell_doubts(self.world, self.warnings, self.on_warning)
        return self.e_tot

    def _mixed(self) -> tuple[Matrix, Matrix]:
        """Energies and mixing. Each irrep and spin is diagonalized by itself."""
        effective, energies = self.hamiltonian, np.zeros(self.roots)
        mixing = np.zeros((self.roots, self.roots))
        for kind in dict.fromkeys(self._kinds):
            mine = [root for root, each in enumerate(self._kinds) if each == kind]
            energies[mine], vectors = np.linalg.eigh(effective[np.ix_(mine, mine)])
            vectors *= np.sign(vectors[abs(vectors).argmax(axis=0), range(len(mine))])
            mixing[np.ix_(mine, mine)] = vectors
        order = np.argsort(energies, kind="stable")
        return energies[order], mixing[:, order]

    def _teller(self, root: int) -> Callable[[str, float], None]:
        def tell(part: str, fraction: float) -> None:
            if self.on_progress is not None:
                self.on_progress(f"root {root + 1}: {part}", fraction)

        return tell


def _nothing(_: str) -> None:
    """Ignores a warning that is reported later."""


def _kind(state: CIVector) -> tuple[int, int | None]:
    """Irrep and spin: states of two kinds do not mix."""
    return state.ci.target.irrep, state.ci.target.spin


def _comparable(bra: CIVector, ket: CIVector) -> bool:
    """Whether vectors are of the same determinants in the same order."""
    first, second = (each.ci for each in (bra, ket))
    return (
        replace(first.target, roots=1) == replace(second.target, roots=1)
        and np.array_equal(first.hamiltonian.irreps, second.hamiltonian.irreps)
        and np.array_equal(first.hamiltonian.permutation, second.hamiltonian.permutation)
    )


def _refused(detail: str, number: int = errno.EINVAL) -> OutcoreError:
    return OutcoreError(number, TITLE, detail=detail)
