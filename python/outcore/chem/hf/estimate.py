"""The forecast of a Hartree-Fock run, from a measured sample of its integrals."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from outcore.base import html
from outcore.base.sizes import in_words
from outcore.chem.hf import plan
from outcore.chem.hf.integrals import TwoElectronIntegrals
from outcore.chem.hf.plan import Work
from outcore.chem.hf.settings import Settings
from outcore.job import machine

if TYPE_CHECKING:
    from pyscf.gto import Mole
    from rich.table import Table

    from outcore.job.world import World


@dataclass(frozen=True)
class Forecast:
    """Integrals, bytes and seconds of each way to run. The time of start-up and of linear algebra is the same for
    all, and is not included. `auto` keeps `memory_bytes` in memory and the rest of its bytes on disk."""

    functions: int
    integrals: int
    disk_budget_bytes: int
    memory_budget_bytes: int
    ways: dict[str, Work]
    disk_measured: bool = True  # False: a slow disk is assumed
    symmetry: tuple[str, ...] = ()  # lines about the symmetry of the molecule

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def _repr_html_(self) -> str:
        rows = [
            (
                name,
                f"{work.kept:.3e}",
                in_words(work.bytes),
                f"{work.store_seconds:.1f}",
                f"{work.cycle_seconds:.2f}",
                f"{work.seconds:.1f} +- {2 * work.error_seconds:.1f}",
            )
            for name, work in self.ways.items()
        ]
        measured = "" if self.disk_measured else "; the disk was not measured, a slow one is assumed"
        return html.table(
            f"Hartree-Fock, estimate: {self.functions} functions, {self.integrals:.3e} integrals",
            ("integrals", "kept", "size", "computing, s", "each J and K, s", "all, s"),
            rows,
            "; ".join([f"{plan.CYCLES} times J and K{measured}", *self.symmetry]),
        )

    def table(self) -> Table:
        """One row for each way."""
        from rich import box
        from rich.table import Table

        table = Table(
            title=f"{self.functions} functions, {self.integrals:.3e} integrals; {plan.CYCLES} times J and K"
            + ("" if self.disk_measured else "; the disk was not measured, a slow one is assumed")
            + "".join(f"\n{line}" for line in self.symmetry),
            box=box.SIMPLE,
            title_justify="left",
        )
        table.add_column("integrals")
        for name in ("kept", "bytes", "computing, s", "each J and K, s", "all, s"):
            table.add_column(name, justify="right")
        for name, work in self.ways.items():
            table.add_row(
                name,
                f"{work.kept:.3e}",
                f"{work.bytes / 1e6:.0f} MB",
                f"{work.store_seconds:.1f}",
                f"{work.cycle_seconds:.2f}",
                f"{work.seconds:.1f} +- {2 * work.error_seconds:.1f}",
            )
        return table


def forecast(mol: Mole, settings: Settings, world: World) -> Forecast:
    """Forecasts the ways disk, mixed (within settings.disk_bytes, or half of the bytes of all integrals), auto and
    direct. Collective; nothing is stored. The +- of the table is two standard errors of the sample; the number of
    cycles of an SCF is not known before."""
    integrals = TwoElectronIntegrals(mol, replace(settings, storage="auto"), world=world)
    sample = integrals.survey()
    estimate = integrals.estimate()
    direct = sample_of_direct(mol, settings, world)
    waiting, measured = 0.0, True
    with world.together("measure the scratch disk"):
        if world.rank == 0:
            rates, measured = machine.planning_disk(integrals.scratch)
            waiting = 1 / (rates.read_bytes_per_s * world.node_count)
    waiting, measured = world.broadcast((waiting, measured))
    budget = sample.bytes / 2 if settings.disk_bytes is None else settings.disk_bytes
    rules = {
        "disk": plan.KEEP_ALL,
        f"mixed, {budget / 1e6:.0f} MB": sample.rule(0, budget),
        "direct": plan.KEEP_NONE,
        "auto": integrals.rule,
    }
    ways = {
        name: (direct if name == "direct" else sample).work(
            rule, waiting, in_memory_bytes=estimate.record_memory_bytes if name == "auto" else 0
        )
        for name, rule in rules.items()
    }
    integrals.close()
    return Forecast(
        estimate.functions,
        estimate.integrals,
        estimate.disk_bytes,
        estimate.record_memory_bytes,
        ways,
        measured,
        tuple(integrals.symmetry.lines()),
    )


def sample_of_direct(mol: Mole, settings: Settings, world: World) -> plan.Sample:
    """The sample of a direct run, whose screening differs from that of a run that stores for an error of the
    energy. Collective."""
    integrals = TwoElectronIntegrals(
        mol, replace(settings, storage="direct", disk_bytes=None, keep=None), world=world
    )
    sample = integrals.survey()
    integrals.close()
    return sample
