"""ci_run.py DIRECTORY KIND ELEMENTS DIE: solves water, and kills itself after iteration DIE."""

import os
import signal
import sys
from pathlib import Path

import ci_water
import numpy as np

import outcore
from outcore.chem.ci import solver

directory, kind, elements, die = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
saved = np.load(f"{directory}/integrals.npz")
given = saved["one"], saved["two"], float(saved["energy"]), saved["irreps"]
options = {"tolerance": 1e-7, "precision": os.environ.get("PRECISION", "double")}


def told(iteration, states):
    if iteration.number == die:
        os.kill(os.getpid(), signal.SIGKILL)


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
        print(solved.kept_iteration, len(solved.iterations), repr(float(solved.energies[0])), solved.products)
    solved.close()
