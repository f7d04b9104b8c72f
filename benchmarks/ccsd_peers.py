"""Whole CCSD(T) calculations against PySCF, Psi4 and NWChem, which get all the memory that they want.

Whole runs of naphthalene in cc-pVDZ are timed from outside, start-up and SCF included, one after another, on two
cores each (NWChem: two processes), with the same convergence; Outcore has 500 MB. The energies of all programs are
compared, for naphthalene and for water. NWChem has no density fitting: its energy of water is compared with that of
`--integrals conventional`. --quick takes water alone, where start-up takes most of the time.
"""

from __future__ import annotations

from dataclasses import asdict

from outcore.cli.bench import BenchOptions, Claim, at_most
from outcore.job.resources import parse_bytes

from ._cc_programs import PEERS, Job, Run, ours
from ._molecules import acene, water
from ._peers import missing

HAS_CASES = True
WATER = Job("water/cc-pVDZ", water(1), "cc-pvdz", "400MB")
MAIN = Job("naphthalene/cc-pVDZ", acene(2), "cc-pvdz", "500MB")


def run(options: BenchOptions) -> list[Claim]:
    claims = _whole(options, WATER, compares_time=False)
    return claims if options.quick else claims + _whole(options, MAIN, compares_time=True)


def _whole(options: BenchOptions, job: Job, *, compares_time: bool) -> list[Claim]:
    """Times of whole CCSD(T) runs, and energies; without `compares_time` only energies, also from exact
    integrals."""

    def case(name: str, *more: str) -> Run:
        program = PEERS.get(name)

        def measure() -> dict[str, object]:
            found = ours(job, options.scratch, *more) if program is None else program(job, options.scratch)
            return asdict(found)

        found = Run(**options.case(f"{job.name}, {name}", measure))
        energies = f"CCSD {found.ccsd:.9f}, (T) {found.triples:.9f} Eh"
        options.say(f"{job.name}: {name:22} {found.seconds:8.1f} s, {energies}")
        return found

    mine = case("ours")
    options.ran(job.name, mine.results)
    exact = None if compares_time else case("ours, all integrals", "--integrals", "conventional")
    peak = mine.results["peak_memory_bytes"] / parse_bytes(job.memory)
    how = "resident memory of a whole run, SCF and (T) included"
    claims = [Claim(f"{job.name}: peak memory over --memory", peak, "", at_most(1.0), "", how)]
    for peer in PEERS:
        if peer != "PySCF" and (why := missing(peer)):
            options.say(why)
            continue
        found = case(peer)
        if compares_time:
            how = f"once each, with the SCF: {mine.seconds:.1f} s in {job.memory}, {found.seconds:.1f} s in 8 GB"
            name = f"{job.name}: CCSD(T), whole run, time over {peer}'s"
            claims.append(Claim(name, mine.seconds / found.seconds, "", at_most(1.0), peer, how))
        fits = peer != "NWChem"
        reference = mine if fits or exact is None else exact
        error = max(abs(reference.ccsd - found.ccsd), abs(reference.triples - found.triples))
        how = "correlation energies of CCSD and (T), the larger difference"
        if not fits:
            how += (
                "; of all integrals" if exact else "; NWChem's are of all integrals, ours of density fitting"
            )
        bar = at_most(1e-6) if fits or exact else None
        claims.append(Claim(f"{job.name}: energies against {peer}'s", error, "Eh", bar, peer, how))
    return claims
