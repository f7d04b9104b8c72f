"""Stored integrals with a bounded error of the energy: bytes, error, and the time to unpack them.

Hartree-Fock of C14H8F6 with integrals that are stored for an error of 1e-9 Hartree. The reference is the energy
with integrals stored for an error of 1e-12 Hartree. The times to unpack and to contract are measured on a
sample of the integrals in a record, from its checksum to J and K, medians of several samples. --quick uses
STO-3G instead of 6-31G*.
"""

from __future__ import annotations

import statistics
from dataclasses import replace

from outcore.chem.hf import scf
from outcore.chem.hf.integrals import TwoElectronIntegrals
from outcore.chem.hf.settings import Settings
from outcore.cli.bench import BenchOptions, Claim, at_most
from outcore.job.world import World

from ._molecules import c14h8f6

_ERROR = 1e-9
_SAMPLES = 5


def run(options: BenchOptions) -> list[Claim]:
    from pyscf import gto

    basis = "sto-3g" if options.quick else "6-31g*"
    mol = gto.M(atom="; ".join(c14h8f6()), basis=basis, cart=True, verbose=0)
    settings = Settings(error=_ERROR, scratch=str(options.scratch))
    shares = []
    with World("self") as world:
        for _ in range(_SAMPLES):
            integrals = TwoElectronIntegrals(mol, replace(settings, threads=1), world=world)
            shares.append(integrals.survey().unpack_share)
            integrals.close()
        energies = []
        for error in (_ERROR, 1e-3 * _ERROR):
            with scf.RHF(mol, comm=world, error=error, scratch=str(options.scratch)) as mf:
                mf.conv_tol = 1e-11
                energies.append(mf.kernel())
                if error == _ERROR:
                    stored, bound = mf.stored_summary, mf.energy_error().bound
            options.say(f"error {error:.0e}: {energies[-1]:.12f} Eh")
    assert stored is not None
    share = statistics.median(shares)
    how = f"C14H8F6/{basis} cartesian, error {_ERROR:.0e} Eh"
    return [
        Claim(
            "bytes of an integral, all included",
            stored.bytes / stored.stored,
            "bytes",
            at_most(3.0),
            "",
            f"{how}: {stored.bytes / 1e9:.3f} GB of records, {stored.stored:.3e} integrals",
        ),
        Claim(
            "unpacking against contracting",
            share / (1 - share),
            "of its time",
            at_most(1.0),
            "",
            f"{how}: one thread, checksums included in unpacking, median of {_SAMPLES} samples",
        ),
        Claim(
            "error of the energy against what is allowed",
            abs(energies[0] - energies[1]) / _ERROR,
            "of it",
            at_most(1.0),
            "the same run with an error of 1e-12 Eh",
            f"{how}: {energies[0] - energies[1]:.1e} Eh",
        ),
        Claim("error promised after convergence", bound / _ERROR, "of it", at_most(1.0), "", how),
    ]
