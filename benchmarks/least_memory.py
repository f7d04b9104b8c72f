"""The least memory that commands name, for many molecules and bases: with it they end, with 1 MB less they refuse.

Closed and open shells, effective core potentials, Cartesian functions, small and medium molecules, each with
some of the commands that have --memory. `--estimate` names the least memory. A run with exactly that memory, in
a new process, must end. A run with 1 MB less must refuse, with exit status 1 and the same number, before it
prints an energy. Estimates and refusals run in forked children of this process, which share its libraries,
because starting hundreds of processes would take longer than their work. --quick takes few molecules.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from outcore.cli.bench import BenchOptions, Claim, at_least, at_most

from ._molecules import Case, acene, alkane, hydrogen_chain, water

HAS_CASES = True
AUXILIARY = "def2-universal-jkfit"
ENOUGH = "4000MB"  # --memory of estimates; they name the least memory, whatever they are given
ENDED = (0, 3)  # exit statuses; 3 warns about the state of the SCF
REFUSED = 1
PAIRS = 30  # least number of pairs of a molecule and a basis
_MB = 10**6

_JK, _SETS = ("--jkbasis", AUXILIARY), ("--jkbasis", AUXILIARY, "--auxbasis", AUXILIARY)
_NEVPT2 = ("casscf", "--casci", "--nevpt2")
COMMANDS = {
    "scf": ("scf",),
    "scf-disk": ("scf", "--storage", "disk"),
    "scf-gradient": ("scf", "--gradient"),
    "ri-scf": ("ri-scf", "--auxbasis", AUXILIARY),
    "ri-scf-gradient": ("ri-scf", "--auxbasis", AUXILIARY, "--gradient"),
    "rimp2": ("rimp2", *_SETS),
    "rimp2-disk": ("rimp2", *_SETS, "--storage", "disk", "--frozen", "auto"),
    "rimp2-gradient": ("rimp2", *_SETS, "--gradient"),
    "ccsd": ("ccsd", *_SETS, "--frozen", "auto"),
    "ccsd-exact": ("ccsd", "--integrals", "conventional", "--storage", "disk"),
    "ccsd-triples": ("ccsd", *_SETS, "--triples"),
    "ccsd-gradient": ("ccsd", *_SETS, "--gradient"),
    "eom": ("eom", *_SETS, "--frozen", "auto"),
    "eom-properties": ("eom", *_SETS, "--frozen", "auto", "--properties", "--storage", "disk"),
    "fci": ("fci",),
    "mrci": ("mrci",),
    "mrci-ri": ("mrci", "--integrals", "ri", *_SETS),
    "casscf": ("casscf",),
    "nevpt2": _NEVPT2,
    "nevpt2-ri": (*_NEVPT2, "--integrals", "ri", *_JK),
    "optimize": ("optimize", "--method", "scf"),
}
"""Commands and their options, by the names that `Tried` uses."""


@dataclass(frozen=True)
class Tried:
    """A molecule with the commands to try. names: of commands. cas: electrons and orbitals of active spaces. more:
    options of all commands. fci: options of full CI alone."""

    case: Case
    names: str
    cas: str = ""
    more: tuple[str, ...] = ()
    fci: tuple[str, ...] = ()

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Yields the title and the arguments of each command."""
        case = self.case
        for name in self.names.split():
            command, *options = COMMANDS[name]
            if command in ("casscf", "mrci"):
                options += ["--cas", self.cas]
            if command == "fci":
                options += self.fci
            options += [*self.more, "--basis", case.basis]
            options += ["--charge", str(case.charge), "--spin", str(case.spin), "--threads", "1"]
            yield f"{case.name}/{case.basis}, {name}", [command, *options]


def _lines(atoms: list[str]) -> str:
    return "; ".join(atoms)


_WATER = _lines(water(1))
_METHYLENE = "C 0 0 0; H 0 0.99 0.43; H 0 -0.99 0.43"
_AMINO = "N 0 0 0; H 0 0.803 0.635; H 0 -0.803 0.635"
_FORMALDEHYDE = "C 0 0 -0.53; O 0 0 0.674; H 0 0.936 -1.115; H 0 -0.936 -1.115"
_ETHENE = "C 0 0 0.67; C 0 0 -0.67; H 0 0.92 1.23; H 0 -0.92 1.23; H 0 0.92 -1.23; H 0 -0.92 -1.23"
_AMMONIA = "N 0 0 0.1; H 0.94 0 -0.27; H -0.47 0.814 -0.27; H -0.47 -0.814 -0.27"
_PEROXIDE = "O 0.7 0 0; O -0.72 0.03 0; H 0.9 0.8 0.5; H -0.95 -0.75 0.52"
_METHANOL = (
    "C -0.05 0.66 0; O -0.05 -0.76 0; H -1.09 0.98 0; H 0.44 1.07 0.89; H 0.44 1.07 -0.89; H 0.87 -1.05 0"
)
_SULFIDE = "S 0 0 0; H 0 0.962 0.927; H 0 -0.962 0.927"
_TRIED = (
    Tried(Case("H2O", _WATER, "6-31g"), "scf ccsd-triples eom-properties casscf nevpt2 fci mrci", "4,4",
          fci=("--frozen", "1", "--frozen-virtual", "4")),
    Tried(Case("F2", "F 0 0 0; F 0 0 1.41", "sto-3g"), "rimp2-disk ccsd eom-properties ccsd-exact"),
    Tried(Case("H2O, Cartesian", _WATER, "cc-pvdz"), "scf-disk rimp2-gradient ccsd-exact nevpt2-ri", "4,4",
          more=("--cart",)),
    Tried(Case("H2O", _WATER, "cc-pvtz"), "ri-scf rimp2 mrci-ri", "2,2"),
    Tried(Case("NH3", _AMMONIA, "6-31g*"), "ccsd-gradient eom optimize"),
    Tried(Case("CH2, triplet", _METHYLENE, "cc-pvdz", 0, 2), "ri-scf-gradient nevpt2", "2,2"),
    Tried(Case("NH2", _AMINO, "6-31g", 0, 1), "scf mrci casscf", "3,2"),
    Tried(Case("CH2O", _FORMALDEHYDE, "6-31g"), "eom-properties nevpt2-ri", "4,3"),
    Tried(Case("C2H4", _ETHENE, "6-31g"), "mrci nevpt2", "2,2"),
    Tried(Case("HF", "H 0 0 0; F 0 0 0.917", "cc-pvdz"), "eom scf-disk"),
    Tried(Case("N2", "N 0 0 0; N 0 0 1.0977", "6-31g"), "casscf nevpt2-ri mrci-ri", "6,6"),
    Tried(Case("H2", "H 0 0 0; H 0 0 0.74", "cc-pvtz"), "fci scf-disk"),
    Tried(Case("LiH", "Li 0 0 0; H 0 0 1.595", "cc-pvdz"), "casscf ccsd-triples", "2,2"),
    Tried(Case("He", "He 0 0 0", "cc-pvqz"), "fci rimp2"),
    Tried(Case("Li", "Li 0 0 0", "6-31g*", 0, 1), "fci scf"),
    Tried(Case("N, quartet", "N 0 0 0", "cc-pvdz", 0, 3), "casscf nevpt2", "3,3"),
    Tried(Case("OH", "O 0 0 0; H 0 0 0.97", "6-31g", 0, 1), "rimp2-gradient eom ccsd-triples"),
    Tried(Case("O2, triplet", "O 0 0 0; O 0 0 1.208", "6-31g", 0, 2), "scf-gradient ccsd"),
    Tried(Case("H2O+", _WATER, "6-31g", 1, 1), "ccsd-exact mrci-ri", "3,2"),
    Tried(Case("HCl", "H 0 0 0; Cl 0 0 1.275", "def2-svp"), "rimp2-disk ri-scf-gradient"),
    Tried(Case("H2S", _SULFIDE, "def2-svp"), "mrci casscf", "2,2"),
    Tried(Case("HI, core potential", "H 0 0 0; I 0 0 1.609", "def2-svp"), "scf-disk rimp2"),
    Tried(Case("AgH, core potential", "Ag 0 0 0; H 0 0 1.618", "def2-svp"), "ri-scf scf-gradient"),
    Tried(Case("CuH, core potential", "Cu 0 0 0; H 0 0 1.463", "lanl2dz"), "scf rimp2-disk"),
    Tried(Case("NaH, core potential", "Na 0 0 0; H 0 0 1.887", "lanl2dz"), "ccsd-exact fci"),
    Tried(Case("SiH2, core potential", "Si 0 0 0; H 0 1.09 1.06; H 0 -1.09 1.06", "lanl2dz"),
          "ccsd-triples eom-properties nevpt2", "2,2"),
    Tried(Case("SnH2, core potential", "Sn 0 0 0; H 0 1.2 1.2; H 0 -1.2 1.2", "def2-svp"), "nevpt2 rimp2-gradient",
          "2,2"),
    Tried(Case("CH3", "C 0 0 0; H 1.08 0 0; H -0.54 0.935 0; H -0.54 -0.935 0", "6-31g*", 0, 1),
          "rimp2 optimize"),
    Tried(Case("CH3OH", _METHANOL, "6-31g"), "rimp2-gradient scf"),
    Tried(Case("H2O2, twisted", _PEROXIDE, "6-31g"), "nevpt2-ri rimp2", "2,2"),
    Tried(Case("C2H6", _lines(alkane(2)), "def2-svp"), "rimp2 scf-disk"),
    Tried(Case("benzene", _lines(acene(1)), "sto-3g"), "rimp2-disk"),
    Tried(Case("benzene", _lines(acene(1)), "cc-pvdz"), "rimp2"),
    Tried(Case("(H2O)2", _lines(water(2)), "cc-pvdz"), "scf rimp2-disk"),
    Tried(Case("H10", _lines(hydrogen_chain(10)), "sto-3g"), "fci casscf", "4,4"),
)  # fmt: skip
_QUICK = {"H2O/6-31g": "scf ccsd-triples nevpt2", "NH2/6-31g": "mrci", "He/cc-pvqz": "fci"}


@dataclass(frozen=True)
class Found:
    """Results of one command. least: bytes that the estimate names; None if it names none. peak: resident bytes of
    the run over the least memory. wrong: failures, by keys of `_NAMES`."""

    title: str
    least: int | None
    peak: float | None
    wrong: dict[str, str]


_NAMES = {
    "named": "commands that name no least memory in an estimate",
    "ends": "runs with the least memory that do not end",
    "refused": "runs with 1 MB less that are not refused with the same number",
    "before": "refusals that come after an energy",
}


def run(options: BenchOptions) -> list[Claim]:
    import pyscf.gto  # noqa: F401  (forked children share it)

    found, pairs = list[Found](), set[str]()
    for tried in _TRIED:
        pair = f"{tried.case.name}/{tried.case.basis}"
        for title, command in tried.commands():
            if not options.quick or title.removeprefix(f"{pair}, ") in _QUICK.get(pair, "").split():
                found.append(Found(**options.case(title, partial(_one, options, tried.case, title, command))))
                pairs.add(pair)
    how = f"{len(found)} commands of {len(pairs)} molecules and bases"
    claims = []
    for key, name in _NAMES.items():
        wrong = [f"{each.title}: {each.wrong[key]}" for each in found if key in each.wrong]
        claims.append(Claim(name, len(wrong), "commands", at_most(0), "", "; ".join(wrong) or how))
    shares = [each.peak for each in found if each.peak is not None]
    largest, of_median = max(shares, default=None), how
    if shares:
        of_median += f", median {statistics.median(shares):.2f}"
    claims.append(
        Claim("peak of a run over its least memory, largest", largest, "", at_most(1), "", of_median)
    )
    enough = None if options.quick else at_least(PAIRS)
    return [*claims, Claim("molecules and bases", len(pairs), "", enough, "", how)]


def _one(options: BenchOptions, case: Case, title: str, command: list[str]) -> dict[str, Any]:
    """Runs an estimate, a refusal and a run with the least memory; returns the fields of `Found`."""
    molecule, results = options.scratch / "molecule.xyz", options.scratch / "results.json"
    atoms = case.atoms.split("; ")
    molecule.write_text("\n".join([str(len(atoms)), case.name, *atoms]) + "\n")
    name, *more = command
    given = [name, str(molecule), *more, "--scratch", str(options.scratch)]
    wrong: dict[str, str] = {}
    found = _told(options, [*given, "--estimate", "--memory", ENOUGH])
    told = re.search(r"least memory: (\d+) MB", found.output)
    if told is None:
        wrong["named"] = found.last
        options.say(f"{title}: no least memory, {found.last}")
        return vars(Found(title, None, None, wrong))
    least = int(told[1])
    less = _told(options, [*given, "--memory", f"{least - 1}MB"])
    if less.status != REFUSED or f"--memory {least}MB is the least" not in less.output:
        wrong["refused"] = f"{least} MB, status {less.status}, {less.last}"
    elif " Eh" in less.output:
        wrong["before"] = next(line for line in less.output.splitlines() if " Eh" in line)
    process = [sys.executable, "-m", "outcore", *given, "--memory", f"{least}MB", "--json", str(results)]
    ran = subprocess.run(process, capture_output=True, text=True, check=False)
    peak = None
    if ran.returncode in ENDED:
        peak = json.loads(results.read_text())["peak_memory_bytes"] / (least * _MB)
    else:
        wrong["ends"] = f"{least} MB, status {ran.returncode}, {ran.stderr.strip()[-300:]}"
    results.unlink(missing_ok=True)
    options.say(f"{title}: {least} MB, peak {peak or 0:.2f} of it {' '.join(wrong.values())}")
    return vars(Found(title, least * _MB, peak, wrong))


@dataclass(frozen=True)
class _Told:
    """Exit status and output of a command that has ended."""

    status: int
    output: str

    @property
    def last(self) -> str:
        return self.output.strip()[-300:]


def _told(options: BenchOptions, arguments: list[str]) -> _Told:
    """Runs a command in a forked child of this process."""
    said = options.scratch / "said"
    child = os.fork()
    if child == 0:
        _become(arguments, said)
    _, status = os.waitpid(child, 0)
    return _Told(os.waitstatus_to_exitcode(status), said.read_text())


def _become(arguments: list[str], said: Path) -> None:
    """Runs the command in this process and ends the process with its status. said: file for the output."""
    from outcore.cli.main import main

    status = REFUSED
    try:
        with said.open("w") as file:
            for number in (1, 2):
                os.dup2(file.fileno(), number)
        main(arguments)
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)
