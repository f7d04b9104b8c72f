"""Relaxed densities and nuclear gradients of CCSD with density fitting, by PySCF's names.

Three-index densities Gamma of the correlated orbitals (`densities`, `open_densities`) meet derivative integrals as
X = (P|Q)^-1/2 Gamma over basis functions, in slabs of auxiliary functions (`gradients.correlation`). Integrals of
the SCF give the response of orbitals (`gradients.response`).

Bozkaya, Sherrill, J. Chem. Phys. 144, 174103 (2016).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from pyscf import lib
from pyscf.grad import rhf

from outcore.base.errors import OutcoreError
from outcore.chem import reference as references
from outcore.chem.cc import disks
from outcore.chem.gradients import correlation
from outcore.chem.gradients import scf as of_scf
from outcore.chem.gradients.fitted import independent
from outcore.chem.gradients.response import Unrelaxed, with_response
from outcore.chem.gradients.scanner import scanner_of
from outcore.chem.gradients.two_electron import least_of_jk
from outcore.chem.ri.bound import once
from outcore.chem.ri.plan import TransformSizes, plan_transform
from outcore.chem.ri.rows import FittedRows
from outcore.chem.ri.traffic import TrafficWatch
from outcore.chem.ri.transformed import ActiveOrbitals, Transformed
from outcore.job import resources
from outcore.job.processes import free_memory_of_each
from outcore.parallel import team

if TYPE_CHECKING:
    from outcore.chem.cc.ccsd import CCSD
    from outcore.chem.cc.equations.three_index_densities import ThreeIndexDensity
    from outcore.chem.cc.keep.kept_response import KeptSlabs
    from outcore.chem.gradients.densities import Densities, Matrix
    from outcore.chem.ri.traffic import Traffic

_ATTEMPTED = "gradient of CCSD"


class RelaxedResponse:
    """Relaxed densities of a CCSD object, and the arrays that its gradient needs beside them. Methods are
    collective.

    Attributes:
        densities: of the SCF and CCSD together.

    Raises OutcoreError, the same on all processes, as `response.Multipliers`.
    """

    def __init__(self, of: CCSD) -> None:
        self._of, self.world = of, of.world
        self._mark = ""  # of the relaxed densities in the checkpoint
        self._means = of.means()
        of_scf.scf_reference(self._means, of.scf_object)
        fixed = of.multipliers.make_densities()
        self._rows = FittedRows(self.world, of.mol, of.given_auxbasis, of.threads, of.screening)
        factor = independent(self.world, self._rows)
        y = self._overlap(fixed.three_index)
        # The room counts the products before.
        self._watch, self._least_moved = TrafficWatch(), -least_of_jk(of.scf_object)
        of.multipliers.release_densities(
            *(array for each in fixed.three_index for array in (each.oo, each.vo, each.vv))
        )
        disks.check_densities(of, of.multipliers.room.plan.sizes)
        self._gammas = [
            self._over_orbitals(each, spin.coefficients)
            for each, spin in zip(fixed.three_index, of.spins, strict=True)
        ]
        of.multipliers.release_densities()
        factor.coefficients(y)
        factor.coefficients(y.T)
        self._y = y if self.world.rank == 0 else np.zeros_like(y)  # the sum over processes counts
        for each in self._gammas:
            each.apply(factor.coefficients, of.threads)
            each.sync()
        orbital = correlation.orbital_gradient(self.world, self._rows, self._gammas, self._slabs())
        self.densities = self._relax(fixed.one, [first + second for first, second in orbital])

    def _overlap(self, fixed: list[ThreeIndexDensity]) -> Matrix:
        """-sum_pq Gamma[P,pq] B[Q,pq] / 2 of all spins as [P][Q], at all processes."""
        assert self._of.room is not None
        contract, found = self._of.room.contract, np.zeros((self._rows.count,) * 2)
        for each in fixed:
            b = each.integrals
            found += contract("Pki,Qki->PQ", each.oo, b.boo) + contract("Pac,Qac->PQ", each.vv, b.bvv)
            found += 2.0 * contract("Pai,Qai->PQ", each.vo, b.bvo)
        found *= -0.5
        return found

    def _over_orbitals(self, fixed: ThreeIndexDensity, coefficients: Matrix) -> Transformed:
        """Gamma[P,p,q] of all correlated orbitals p and q of one spin."""
        of, world, rows = self._of, self.world, self._rows
        count = coefficients.shape[1]
        none = np.empty(0)
        orbitals = ActiveOrbitals(coefficients, coefficients, none, none, np.arange(count))
        sizes = TransformSizes(rows.functions, rows.columns, rows.count, (count,), (count,))
        resources.trim_heap()
        free = free_memory_of_each(*self._means)
        with world.together(_ATTEMPTED):
            chosen = plan_transform(sizes, free.bytes, world.size, of.threads, "disk", limit=free.reason)
        # What does not fit is written before all of it is known, and read after that.
        self._least_moved += 2 * once(sizes.bytes, free.bytes * world.size)
        made = Transformed(world, rows.count, orbitals, chosen)
        tiles = list(_tiles(fixed))[world.rank :: world.size]
        with world.together(_ATTEMPTED):
            team.each(tiles, of.threads, lambda _, tile: _put(made, fixed, *tile))
        made.sync()
        return made

    def _relax(self, one: list[Matrix], orbital: list[Matrix]) -> Densities:
        """one: densities of fixed orbitals. orbital: derivatives by the coefficients [n][p] of each spin."""
        of, share, unrelaxed = self._of, len(one) / 2, []
        for number, (given, spin) in enumerate(zip(of.reference.spins, of.spins, strict=True)):
            active = of.active_positions(number)
            count = given.coefficients.shape[1]
            correlated, density, w = np.zeros(count, bool), np.zeros((count, count)), np.zeros((count, count))
            correlated[active] = True
            if not spin.missing:
                density[np.ix_(active, active)] = share * one[number]
                w[:, active] = share * given.coefficients.T @ orbital[number]
            unrelaxed.append(
                Unrelaxed(given.coefficients, given.energies, given.occupied, correlated, density, w)
            )
        if of.kept is None:
            return with_response(self.world, of.scf_object, unrelaxed)
        kept = of.kept.response(of.multipliers.mark)
        found = with_response(self.world, of.scf_object, unrelaxed, kept)
        self._mark = str(self.world.broadcast(kept.stamp))
        return found

    def _keeper(self, name: str) -> KeptSlabs | None:
        """The part of the checkpoint for slabs of a pass over derivative integrals; None without a checkpoint."""
        kept = self._of.kept
        return None if kept is None else kept.slabs(name, self._mark)

    def _slabs(self) -> correlation.Slabs:
        shapes = [each.orbitals.shape for each in self._gammas]
        resources.trim_heap()
        return correlation.slabs(
            self._rows, shapes, free_memory_of_each(*self._means).bytes, self._of.threads
        )

    def gradient(self) -> Matrix:
        """[atom][x] (Hartree/Bohr), the same bits at all processes."""
        of, world = self._of, self.world
        tell = of.progress("derivatives of the SCF's integrals")
        found, least_moved = of_scf.gradient(
            of.scf_object, self._means, self.densities, tell, self._keeper("scf")
        )
        self._least_moved += least_moved
        more = correlation.gradient(
            world,
            of.mol,
            self._rows,
            1,
            self._gammas,
            self._y,
            self._slabs(),
            of.progress("derivatives of CCSD's integrals"),
            self._keeper("ccsd"),
        )
        total: Matrix = found + world.all_reduce(more)
        return total

    def traffic(self) -> Traffic:
        """Disk traffic so far, of relaxed densities and the gradient, without that of products. Collective."""
        return self._watch.traffic(self.world, self._least_moved + least_of_jk(self._of.scf_object))

    def close(self) -> None:
        """Gives back the three-index densities."""
        for each in self._gammas:
            each.close()


def _tiles(fixed: ThreeIndexDensity) -> Iterator[tuple[str, int, int]]:
    """Tiles of Gamma: the kind, and the blocks of its axes of virtual orbitals."""
    yield "oo", 0, 0
    blocks = range(len(fixed.integrals.spaces.v))
    for a in blocks:
        yield "vo", a, 0
        for b in blocks:
            yield "vv", a, b


def _put(to: Transformed, fixed: ThreeIndexDensity, kind: str, a: int, b: int) -> None:
    cuts = fixed.integrals.spaces.cuts
    if kind == "oo":
        _put_orbitals(to, fixed.oo.get_tile((0, 0, 0)), 0, 0)
    elif kind == "vo":
        values = fixed.vo.get_tile((0, a, 0))
        _put_orbitals(to, values, cuts[a + 1], 0)
        _put_orbitals(to, values.transpose(0, 2, 1), 0, cuts[a + 1])
    else:
        _put_orbitals(to, fixed.vv.get_tile((0, a, b)), cuts[a + 1], cuts[b + 1])


def _put_orbitals(to: Transformed, values: Matrix, first: int, begin: int) -> None:
    """values [P][p][q]."""
    for number in range(values.shape[1]):
        to.put_orbital(first + number, begin, np.ascontiguousarray(values[:, number])).wait()


def check_fitted(of: CCSD) -> None:
    """Raises OutcoreError (ENOTSUP) for integrals and references without a gradient."""
    if of.settings.integrals != "ri":
        raise _refused(
            f"integrals are {of.settings.integrals}: gradients are of density fitting, take integrals='ri'"
        )
    if of.given_integrals:
        raise _refused("the integrals are given, not fitted, and have no derivatives")
    if not of.restricted and references.is_restricted_open(of.scf_object):
        raise _refused(
            "the orbitals are of ROHF: gradients are of RHF and UHF, as the response of orbitals that are made "
            "semicanonical is not there"
        )
    turned = any(each.turned is not None for each in of.spins)
    if turned or of.reference.note:
        raise _refused(
            f"the orbitals are {of.orbitals_note or of.reference.note}: gradients are of canonical ones of the SCF"
        )


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.ENOTSUP, _ATTEMPTED, detail=detail)


# ---- by PySCF's names ----


class Gradients(rhf.GradientsBase):  # type: ignore[misc]
    """Gradients of a CCSD object, in its memory and on its processes. `kernel` is collective, and runs the stages
    that have not run. Raises OutcoreError, the same on all processes."""

    atmlst: Any
    de: Any

    def kernel(self, atmlst: Any = None) -> Matrix:
        """The gradient [atom][x] (Hartree/Bohr); also sets `de`. atmlst: atoms; None: as before, all at first."""
        de: Matrix = self.base.relaxed_densities(gradient=True).gradient()
        self.atmlst = self.atmlst if atmlst is None else atmlst
        de = de if self.atmlst is None else de[list(self.atmlst)]
        self.de = de
        return de

    grad = lib.alias(kernel, alias_name="grad")

    def as_scanner(self) -> Any:
        """A function of a molecule, which gives its energy (Hartree) and gradient, of CCSD(T) if (T) has been
        computed. Collective, as its calls are."""
        found = scanner_of(self)
        found.base.derivatives = True
        return found
