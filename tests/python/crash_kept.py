"""Records how integrals, or the tensors of RI-MP2, are kept, and then examines the states after a loss of
power.

    LD_PRELOAD=.../liboutcore_crash_recorder.so python crash_kept.py integrals|tensors IMAGES

State 1: the next run finds the kept arrays; state 0: it recomputes them. In any case the energy is that of a
run from scratch. Called by test_kept_crash.py. Prints its findings; exit status 0 if all is well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import crash_recorder
from pyscf import gto
from pyscf import scf as reference

from outcore.chem.hf import scf
from outcore.chem.mp2 import MP2

MAX_ERROR = 1e-9  # Hartree
mol = gto.M(atom="O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587", basis="sto-3g", verbose=0)
orbitals = reference.RHF(mol).run(conv_tol=1e-12)

Run = Callable[[Path], tuple[float, bool]]  # the energy, and whether the arrays of an earlier run were found


def integrals(place: Path) -> tuple[float, bool]:
    with scf.RHF(mol, keep=str(place), screening=1e-12) as mf:
        mf.conv_tol = 1e-11
        return float(mf.kernel()), bool(mf.two_electron.reused)


def tensors(place: Path) -> tuple[float, bool]:
    mp2 = MP2(orbitals, auxbasis="cc-pvdz-ri", checkpoint=place / "kept")
    mp2.kernel()
    return float(mp2.e_corr), mp2.found == {"fitted"}


def look_at(run: Run, expected: float) -> Callable[[Path], int]:
    def look(place: Path) -> int:
        energy, found = run(place)
        assert abs(energy - expected) < MAX_ERROR, f"{energy} instead of {expected}"
        again, found_again = run(place)
        assert found_again, "what was kept by the next run is not found by the one after that"
        assert abs(again - expected) < MAX_ERROR
        return int(found)

    return look


def record(run: Run) -> int:
    """Records a run from scratch; returns the number of steps."""
    with crash_recorder.temporary() as place:
        crash_recorder.begin(place)
        crash_recorder.allow(0, 1)
        run(Path(place))
        crash_recorder.allow(1)
        return crash_recorder.end()


def main(run: Run, images: int) -> None:
    """Power is lost in a run, and in others that follow one that was killed."""
    with crash_recorder.temporary() as place:
        expected, _ = run(Path(place))
    made = 0
    for part in (None, 0.9, 0.6, 0.3):
        steps = record(run)
        if part is not None:
            with crash_recorder.temporary() as place:
                crash_recorder.go_on(int(steps * part), place)
                run(Path(place))
                crash_recorder.allow(1)
                crash_recorder.end()
        more, wrong = crash_recorder.examine(look_at(run, expected), max(5, images // 4))
        made += more
        assert wrong == 0, f"after {part} of a run: {crash_recorder.mistakes[0]}"
    print(f"{made} images")


if __name__ == "__main__":
    main({"integrals": integrals, "tensors": tensors}[sys.argv[1]], int(sys.argv[2]))
