"""Random recorded programs (conformance/random_programs.py) in numbers:

    python tests/random_programs.py FIRST LAST --processes 4            # seeds FIRST .. LAST - 1
    python tests/random_programs.py FIRST LAST --processes 4 --kills 1  # killed after a second or so, then gone on

With `--large` the arrays take more than the budget leaves, and resident memory is compared with the budget.

With kills each job has 1 to `--processes` processes, one of which is killed at a random moment; the next job
resumes the program, on another number of processes and with other memory. Prints each failure, with all that
is needed to reproduce it, and how many programs ran; the status is 1 if one failed. `--json` adds that to a
file, as to conformance/random_programs.json, of which `python scripts/documents` makes a table.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path

from conformance import random_programs, random_statements

import outcore
from outcore.job import launch

STATEMENTS = 12


def main() -> int:
    options = arguments()
    if options.directory is not None:
        return job(options)
    memory = (
        "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    )  # files after a kill are the same there, and fast
    with tempfile.TemporaryDirectory(prefix="outcore-programs-", dir=memory) as name:
        options.directory = Path(name)
        return all_jobs(options)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--kills", type=float, metavar="SECONDS", help="between two kills, on average")
    parser.add_argument("--large", action="store_true", help="arrays of megabytes, in a budget of 32 MB")
    parser.add_argument("--statements", action="store_true", help="random statements that run at once")
    parser.add_argument("--json", type=Path, metavar="FILE", help="to which what ran is added")
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)  # of a job that this command starts
    parser.add_argument("--number", type=int, default=0, help=argparse.SUPPRESS)  # of that job
    return parser.parse_args()


# ---- the jobs ----


def all_jobs(options: argparse.Namespace) -> int:
    chance, begun = random.Random(options.first), time.monotonic()
    number = kills = failed = 0
    while (seed := first_left(options)) < options.last:
        processes = chance.randint(1, options.processes) if options.kills else options.processes
        command = [sys.executable, __file__, str(seed), str(options.last), "--number", str(number)]
        command += ["--directory", str(options.directory)]
        command += ["--kills", str(options.kills)] if options.kills else []
        command += [f"--{name}" for name in ("statements", "large") if getattr(options, name)]
        if processes > 1:
            command = [str(Path(sys.executable).parent / "mpiexec"), "-n", str(processes), *command]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as running:
            killed = False
            if options.kills:
                killed = kill_one(options, number, running, chance)
                kills += killed
            said, _ = running.communicate()
        if running.returncode != 0 and not killed:
            failed += 1
            print(said, flush=True)
            done(options, first_left(options))
        number += 1
    count = options.last - options.first
    if options.json is not None:
        ran: dict[str, str | int | float] = {
            "kind": "statements" if options.statements else "large" if options.large else "programs",
            "first": options.first,
            "last": options.last,
            "processes": options.processes,
            "kills": kills,
            "failed": failed,
        }
        if (share := max_resident(options)) > 0:
            ran["resident"] = share
        runs = json.loads(options.json.read_text()) if options.json.exists() else []
        options.json.write_text(json.dumps([*runs, ran], indent=1) + "\n")
    print(
        f"{count} programs on {'1 to ' * bool(options.kills)}{options.processes} processes, {kills} kills, "
        f"{failed} failed, {time.monotonic() - begun:.0f} s"
    )
    return int(failed > 0)


def first_left(options: argparse.Namespace) -> int:
    """The first seed that no job has finished."""
    with suppress(FileNotFoundError):
        return max(int(line) for line in (options.directory / "done").read_text().split()) + 1
    return int(options.first)


def done(options: argparse.Namespace, seed: int, share: float = 0.0) -> None:
    for name, value in (("done", seed), ("resident", share)):
        with (options.directory / name).open("a") as file:
            file.write(f"{value}\n")


def max_resident(options: argparse.Namespace) -> float:
    """The largest share of the budget that became resident in a process while a program ran."""
    return round(max(map(float, (options.directory / "resident").read_text().split())), 3)


def kill_one(
    options: argparse.Namespace, number: int, running: subprocess.Popen[str], chance: random.Random
) -> bool:
    """Kills one process of a job, at a random moment after its first program begins to run; False if it ends
    before."""
    file = options.directory / f"job{number}"
    while not file.exists() and running.poll() is None:
        time.sleep(0.002)
    with suppress(subprocess.TimeoutExpired):
        running.wait(chance.expovariate(1 / options.kills))
        return False
    with suppress(ProcessLookupError):
        os.kill(chance.choice([int(pid) for pid in file.read_text().split()]), signal.SIGKILL)
        return True
    return False


# ---- one of them ----


def job(options: argparse.Namespace) -> int:
    warnings.filterwarnings("ignore", "invalid value")  # of elements that are no numbers
    nodes = ("hosts", "processes")[options.number % 2]
    comm = launch.world()
    memory = "32MB" if options.large else "128MB"
    with outcore.World(comm or "self", memory=memory, scratch=options.directory, nodes=nodes) as world:
        if not options.kills:
            random_programs.run(world, 0)  # modules and objects that are made once are resident from now on
        for seed in range(options.first, options.last):
            share = one(world, seed, options)
            if world.rank == 0:
                done(options, seed, share)
    return 0


def one(world: outcore.World, seed: int, options: argparse.Namespace) -> float:
    """The share of the budget that became resident, if known."""
    if options.statements:
        random_statements.RandomStatements(world, seed).run(STATEMENTS)
    elif options.kills:
        path = options.directory / str(seed)
        random_programs.go_on(world, seed, path, options.number, lambda: begins(world, options))
        world.barrier()
        if world.rank == 0:
            shutil.rmtree(path)
    else:
        return random_programs.run(world, seed, ways=(seed % 2,), is_large=options.large)
    return 0.0


def begins(world: outcore.World, options: argparse.Namespace) -> None:
    """Reports which processes can be killed."""
    pids = world.gather(os.getpid())
    file = options.directory / f"job{options.number}"
    if world.rank == 0 and not file.exists():
        file.with_suffix(".new").write_text(" ".join(map(str, pids)))
        file.with_suffix(".new").rename(file)


if __name__ == "__main__":
    sys.exit(main())
