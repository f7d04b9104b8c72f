"""The forecast of `outcore scf --estimate` against the actual run.

For each molecule a sample is measured as by --estimate; then a whole SCF runs in each way of storing. The claims
compare the bytes stored, and the time for storing and for all J and K. The forecast assumes as many cycles as
the SCF then took, which nobody knows before a run. A run that chooses a way itself measures a sample of its
own; here all runs are compared with the first sample. Run it with OPENBLAS_THREAD_TIMEOUT=14, which `outcore scf`
sets for itself: idle threads of OpenBLAS else take the cores. The molecules are chains, clusters and heavy atoms,
so large that each run takes a second or more: fixed costs are a large part of shorter runs. --quick takes two of
them.
"""

from __future__ import annotations

import os
import statistics

from outcore.chem.hf import plan, scf
from outcore.chem.hf.estimate import sample_of_direct
from outcore.chem.hf.integrals import TwoElectronIntegrals
from outcore.chem.hf.settings import Settings
from outcore.cli.bench import BenchOptions, Claim, at_most
from outcore.job import launch, machine
from outcore.job.world import World

from ._molecules import alkane, c14h8f6, carbon_tetrabromide, water, waters

REASONS = {
    "time forecast, worst case": "a run of four seconds was faster than its sample; the same sample predicts the "
    "two longer runs of that molecule within a few percent"
}

_THREADS = 2


def _cases(quick: bool) -> list[tuple[str, list[str], str]]:
    small = [("(H2O)4", water(4), "cc-pvtz"), ("C10H22", alkane(10), "6-31g")]
    if quick:
        return small
    return [
        *small,
        ("(H2O)8", waters(8), "6-31g*"),
        ("C10H22", alkane(10), "6-31g*"),
        ("C28H58", alkane(28), "sto-3g"),
        ("C14H8F6", c14h8f6(), "6-31g"),
        ("CBr4", carbon_tetrabromide(), "6-31g*"),
    ]


def run(options: BenchOptions) -> list[Claim]:
    time_errors, byte_errors, within = [], [], 0
    reading = 1 / machine.planning_disk(options.scratch)[0].read_bytes_per_s
    for name, atoms, basis in _cases(options.quick):
        for way, seconds, expected, bar, stored, bytes_expected in _one(options, atoms, basis, reading):
            time_errors.append(abs(expected / seconds - 1))
            within += abs(expected - seconds) <= 2 * bar
            line = f"{name:8} {basis:8} {way:10} {seconds:7.2f} s, expected {expected:7.2f} +- {2 * bar:.2f}"
            if stored:
                byte_errors.append(abs(bytes_expected / stored - 1))
                line += f"; {stored / 1e6:7.1f} MB, expected {bytes_expected / 1e6:7.1f}"
            options.say(line)
    how = (
        f"{len(time_errors)} runs of {len(_cases(options.quick))} molecules, one process, {_THREADS} threads, "
        f"{launch.SPIN_VARIABLE}={os.environ.get(launch.SPIN_VARIABLE, '')}"
    )
    return [
        Claim(
            "time forecast, worst case", 100 * max(time_errors), "% off", at_most(25), "", how
        ),
        Claim("time forecast, median", 100 * statistics.median(time_errors), "% off", None, "", how),
        Claim("bytes forecast, worst case", 100 * max(byte_errors), "% off", at_most(25), "", how),
        Claim(
            "runs within the error bars of the sample",
            100 * within / len(time_errors),
            "%",
            None,
            "",
            f"{how}; the bars are of the sample alone, not of what else the machine does",
        ),
    ]  # fmt: skip


def _one(
    options: BenchOptions, atoms: list[str], basis: str, reading: float
) -> list[tuple[str, float, float, float, int, float]]:
    """For each way: its name, actual and predicted seconds, the standard error of the prediction, actual and
    predicted bytes."""
    from pyscf import gto

    mol = gto.M(atom="; ".join(atoms), basis=basis, verbose=0)
    results: list[tuple[str, float, float, float, int, float]] = []
    with World("self") as world:
        settings = Settings(storage="disk", threads=_THREADS, scratch=str(options.scratch))
        integrals = TwoElectronIntegrals(mol, settings, world=world)
        sample = integrals.survey()
        integrals.close()
        direct = sample_of_direct(mol, settings, world)
        half = round(sample.bytes / 2)
        rules = {
            "disk": plan.KEEP_ALL, "mixed": sample.rule(0, half), "direct": plan.KEEP_NONE
        }  # fmt: skip
        for way, rule in rules.items():
            with scf.RHF(
                mol,
                comm=world,
                storage=way,
                disk_bytes=half if way == "mixed" else None,
                threads=_THREADS,
                scratch=str(options.scratch),
            ) as mf:
                mf.kernel()
                work = mf.two_electron.work()
                stored = mf.stored_summary.bytes if mf.stored_summary is not None else 0
            expected = (direct if way == "direct" else sample).work(rule, reading, cycles=work.contractions)
            results.append(
                (
                    way, work.store_seconds + work.contract_seconds, expected.seconds, expected.error_seconds,
                    stored, expected.bytes,
                )
            )  # fmt: skip
    return results
