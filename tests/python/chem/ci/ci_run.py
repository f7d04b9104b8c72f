"""ci_run.py DIRECTORY KIND ELEMENTS DIE: solves water, and kills itself after iteration DIE. Or it commits
after each task, and kills itself at DIE_AT: "commit N" (before it), "committed N", "copy N" of tiles of the
checkpoint. Or it dies after DIE_AFTER seconds of computing, wherever it is then; 0: it does not. The file
seconds has those of a run that ends. ERROR_BOUND: of packed vectors."""

import os
import resource
import signal
import sys
from pathlib import Path

import ci_water
import numpy as np

import outcore
from outcore.chem.ci import rounding, solver
from outcore.chem.ci.kept_products import KeptProducts
from outcore.chem.ci.vector import KeptVectors
from outcore.keep import clock

directory, kind, elements, die = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
saved = np.load(f"{directory}/integrals.npz")
given = saved["one"], saved["two"], float(saved["energy"]), saved["irreps"]
options = {"tolerance": 1e-7, "precision": os.environ.get("PRECISION", "double")}
if bound := float(os.environ.get("ERROR_BOUND", "0")):
    options |= {"tolerance": rounding.tolerance(bound, 1), "error_bound": bound}


def told(iteration, states):
    if iteration.number == die:
        os.kill(os.getpid(), signal.SIGKILL)


def at(moment, owner, name):
    right, seen = getattr(owner, name), 0

    def work(*arguments):
        nonlocal seen
        seen += 1
        if moment.endswith("ed"):
            right(*arguments)
        if os.environ.get("DIE_AT") == f"{moment} {seen}":
            os.kill(os.getpid(), signal.SIGKILL)
        if not moment.endswith("ed"):
            return right(*arguments)

    setattr(owner, name, work)


def computed():
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


begin = computed()
if "DIE_AT" in os.environ or "DIE_AFTER" in os.environ:
    clock.INTERVAL_S = 0.0
if float(os.environ.get("DIE_AFTER", "0")):
    signal.setitimer(signal.ITIMER_VIRTUAL, float(os.environ["DIE_AFTER"]))
if "DIE_AT" in os.environ:
    at("commit", KeptProducts, "_commit")
    at("committed", KeptProducts, "_commit")
    at("copy", KeptVectors, "put_async")

with outcore.World(scratch=directory, memory="400MB") as world:
    hamiltonian = ci_water.hamiltonian(given)
    space = ci_water.space(hamiltonian)
    solved = solver.solve(
        world,
        space,
        hamiltonian,
        spin=0,
        checkpoint=Path(directory) / "kept",
        options=solver.SearchOptions(**options),
        on_iteration=told,
        chosen=ci_water.small_plan(space, kind, elements, processes=world.size, kept=True, **options),
    )
    if world.rank == 0:
        energy, found = repr(float(solved.energies[0])), solved.commits.found
        print(solved.kept_iteration, len(solved.iterations), energy, solved.products, found)
        Path(directory, "seconds").write_text(str(computed() - begin))
    solved.close()
