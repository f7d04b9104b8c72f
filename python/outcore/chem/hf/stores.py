"""Two-electron integrals of several Coulomb operators, shared by objects that are made of each other."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from outcore.base.errors import OutcoreError
from outcore.chem.hf.accuracy import Finer
from outcore.chem.hf.integrals import TwoElectronIntegrals
from outcore.chem.hf.settings import Settings
from outcore.chem.molecule import integrals_key

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.job.world import World

_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@dataclass
class Stores:
    """own: integrals of the molecule's operator, kept as the settings say. others: integrals of other operators, by
    PySCF's omega, recomputed in each call. `get`, `replace` and `close` are collective."""

    own: TwoElectronIntegrals | None = None
    others: dict[float, TwoElectronIntegrals] = field(default_factory=dict)

    def get(
        self,
        mol: Mole,
        omega: float,
        settings: Settings,
        world: World,
        *,
        own: bool,
        store: Callable[[TwoElectronIntegrals], None],
    ) -> TwoElectronIntegrals:
        """The integrals of the present molecule for the operator of `omega` (0: 1/r). Integrals of another
        geometry, basis or operator are never reused. store: called with new integrals of the molecule's
        operator."""
        with mol.with_range_coulomb(omega):
            key = integrals_key(mol)
            if own:
                present = self.own
                if present is None or present.key != key or present.settings != settings:
                    self.close()
                    self.own = present = self._made(mol, settings, world, store)
                return present
            found = self.others.get(omega)
            if found is None or found.key != key:
                if found is not None:
                    self.others.pop(omega).close()
                found = self.others[omega] = TwoElectronIntegrals(mol, _direct(settings), world=world)
            return found

    def replace(
        self,
        mol: Mole,
        settings: Settings,
        world: World,
        finer: Finer,
        store: Callable[[TwoElectronIntegrals], None],
    ) -> str:
        """Stores the integrals of the molecule's operator again, with smaller steps. Returns "", or the reason why
        there is no room for them: then they are stored as before. Collective."""
        before = self.own
        assert before is not None
        work, coarse = before.work(), before.finer
        self.own = None
        before.close()
        with mol.with_range_coulomb(float(mol.omega or 0.0)):
            try:
                self.own, refused = self._made(mol, settings, world, store, finer), ""
            except OutcoreError as error:
                if error.errno not in _NO_ROOM:
                    raise
                self.own, refused = self._made(mol, settings, world, store, coarse), str(error)
        self.own.count_before(work)
        return refused

    @staticmethod
    def _made(
        mol: Mole,
        settings: Settings,
        world: World,
        store: Callable[[TwoElectronIntegrals], None],
        finer: Finer | None = None,
    ) -> TwoElectronIntegrals:
        made = TwoElectronIntegrals(mol, settings, world=world, finer=finer)
        try:
            store(made)
        except OutcoreError:
            made.abandon()
            raise
        return made

    def close(self) -> None:
        for each in self._all():
            each.close()

    def abandon(self) -> None:
        """As `close`, but not collective."""
        for each in self._all():
            each.abandon()

    def _all(self) -> list[TwoElectronIntegrals]:
        every = [*self.others.values(), *([] if self.own is None else [self.own])]
        self.own, self.others = None, {}
        return every


def _direct(settings: Settings) -> Settings:
    """Settings of the same accuracy without a disk. Memory has no limit here: records of "auto" may already use the
    budget."""
    return Settings(
        storage="direct",
        error=settings.error,
        screening=settings.screening,
        threads=settings.threads,
        group=settings.group,
    )
