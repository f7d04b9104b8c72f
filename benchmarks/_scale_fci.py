"""Full CI on a cluster: the method's own plan and forecast, with the rates of the cluster."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem.ci import estimate
from outcore.chem.ci.hamiltonian import Hamiltonian
from outcore.chem.ci.plan import Plan, make_plan
from outcore.chem.ci.search import SearchOptions
from outcore.chem.ci.space import Space
from outcore.chem.ci.tiles import VectorTiling

from ._cluster import Cluster, Taken, together

BOUND = 1e-6  # Hartree, error bound for packed vectors on disk


@dataclass(frozen=True)
class Case:
    """A closed-shell atom or molecule. All orbitals but the lowest `frozen` are active."""

    name: str
    atoms: str
    basis: str
    group: str
    charge: int = 0
    frozen: int = 0
    frozen_irrep: int = 0
    orbitals: int | None = None  # use only so many of the active orbitals, some of each irrep

    @cached_property
    def hamiltonian(self) -> Hamiltonian:
        """A Hamiltonian without integrals: plans and operation counts depend only on irreps."""
        from pyscf import gto

        mol = gto.M(atom=self.atoms, basis=self.basis, charge=self.charge, symmetry=self.group, verbose=0)
        found = sorted(
            int(irrep)
            for irrep, each in zip(mol.irrep_id, mol.symm_orb, strict=True)
            for _ in range(each.shape[1])
        )
        for _ in range(self.frozen):
            found.remove(self.frozen_irrep)
        groups = {"D2h": 8, "C2v": 4}[self.group]
        names = dict(zip(mol.irrep_id, mol.irrep_name, strict=True))
        found = (
            found
            if self.orbitals is None
            else [found[len(found) * k // self.orbitals] for k in range(self.orbitals)]
        )
        n = len(found)
        return Hamiltonian(
            one=np.zeros((n, n)),
            two=np.zeros((n, n, n, n)),
            core_energy=0.0,
            irreps=np.array(found),
            groups=groups,
            group=self.group,
            names=tuple(names.get(g, "") for g in range(groups)),
            permutation=np.arange(n),
        )

    @cached_property
    def space(self) -> Space:
        from pyscf import gto

        mol = gto.M(atom=self.atoms, basis=self.basis, charge=self.charge, verbose=0)
        pairs = mol.nelectron // 2 - self.frozen
        return Space(self.hamiltonian, pairs, pairs, parity=1)

    @cached_property
    def tiling(self) -> VectorTiling:
        return VectorTiling(self.space)


FLUORIDE = Case("F-/aug-cc-pVTZ", "F 0 0 0", "aug-cc-pvtz", "D2h", -1)
FROZEN = replace(FLUORIDE, name="F-/aug-cc-pVTZ, frozen core", frozen=1)
WATER = "O 0 0 -0.0048; H 0 0.8018 -0.5603; H 0 -0.8018 -0.5603"
SMALL = Case("H2O/cc-pVDZ, frozen core", WATER, "cc-pvdz", "C2v", 0, 1)


def options(cluster: Cluster, **changes: Any) -> SearchOptions:
    given = {"threads": cluster.threads, "error_bound": BOUND, **changes}
    return SearchOptions(**given)


@dataclass(frozen=True)
class Planned:
    """A plan with its tasks. seconds: time of planning on this machine; on a cluster each process plans."""

    case: Case
    cluster: Cluster
    plan: Plan
    seconds: float

    @classmethod
    def of(cls, case: Case, cluster: Cluster, **changes: Any) -> Planned:
        """Raises OutcoreError (ENOMEM)."""
        begin = time.perf_counter()
        plan = make_plan(
            case.space,
            case.tiling,
            options(cluster, **changes),
            cluster.free_bytes,
            processes=cluster.size,
            nodes=tuple(node for node in range(cluster.nodes) for _ in range(cluster.processes)),
            rates=cluster.rates(),
        )
        plan.tasks(plan.work_type)
        return cls(case, cluster, plan, time.perf_counter() - begin)

    def taken(self) -> Taken | str:
        """Time and traffic of a whole run; a text if the disks are too small."""
        needed, there = self.plan.disk_bytes, self.cluster.disk * self.cluster.nodes
        if needed > there:
            return f"{needed / 1e12:.3g} TB of disk are needed, there are {there / 1e12:.3g}"
        found = estimate.of_plan(self.plan, self.case.hamiltonian, self.cluster.rates())
        return of_forecast(found, self.seconds)


def taken(case: Case, cluster: Cluster) -> Taken | str:
    """Time and traffic of a whole run, or a text that says why it cannot run."""
    try:
        return Planned.of(case, cluster).taken()
    except OutcoreError as error:
        return str(error)


def of_forecast(found: estimate.Forecast, planning: float) -> Taken:
    """Converts a forecast. planning: seconds."""
    longest, moving, correcting, turning = found.parts  # turning: of rows
    count = estimate.ITERATIONS
    names = "disk" if found.plan.kind == "disk" else "network"
    computing = longest / found.uneven
    products = {"products of matrices": computing, "uneven tasks": longest - computing}
    if found.plan.overlaps and moving > longest:
        products = {f"vectors over the {names}": moving}
    elif not found.plan.overlaps:
        products[f"vectors over the {names}"] = moving
    on_disk = found.plan.kind == "disk" or found.plan.packed
    if turning:
        products["rows over the network, while nothing computes"] = turning
    passes = {"passes of corrections" + (" on disk" if on_disk else ""): correcting}
    iteration = together(products, passes)
    parts = {name: count * seconds for name, seconds in iteration.items()}
    parts["planning at each process"] = planning
    disk = (found.read_bytes + found.written_bytes) * count if on_disk else 0.0
    if on_disk and found.plan.kind != "disk":  # products use memory alone
        disk = count * sum(found.plan.pass_bytes)
    return Taken(
        count * computing,
        parts,
        disk,
        found.network_bytes * count,
        f"{found.plan.in_words}; {sum(iteration.values()):.3g} s an iteration, {count} of them; "
        f"{len(found.plan.tasks(found.plan.work_type))} tasks; {found.disk_bytes / 1e12:.3g} TB of disk"
        + _between_nodes(found.plan),
    )


def _between_nodes(plan: Plan) -> str:
    """What a product moves there, in vectors of all determinants, for people."""
    moved, space = plan.product_bytes, plan.space
    if not moved.crossing:
        return ""
    whole = space.determinants * np.dtype(plan.work_type).itemsize
    least = least_crossing(space.orbitals, space.electrons[0], max(plan.nodes) + 1) / (
        2 if space.folded else 1
    )
    return (
        f"; between nodes a product moves {moved.crossing / whole:.2f} vectors of all determinants for tasks and "
        f"{moved.turning / whole:.2f} from tiles into rows and back, as each element is in the row of its alpha "
        f"and in that of its beta string; without a point group {least:.2f} cross at least"
    )


def least_crossing(orbitals: int, electrons: int, nodes: int) -> float:
    """Vectors between nodes in a product, at least, without a point group and with as many electrons of each spin:
    see docs/why/bounds.md."""
    met = electrons * (orbitals - electrons) + 1
    rest = met - orbitals
    share = (math.sqrt(rest * rest + 4 * orbitals * met / nodes) - rest) / (2 * orbitals)
    return 2 * (nodes * share - 1)
