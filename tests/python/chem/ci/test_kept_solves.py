"""States of a solver that solves many times outlast a run that was ended in one of the solves."""

from __future__ import annotations

import pytest

from outcore import OutcoreError, World
from outcore.chem.ci.kept_solves import KeptSolves
from outcore.chem.ci.restart import KeptStates
from outcore.keep import clock

pyscf = pytest.importorskip("pyscf")

from pyscf import mcscf  # noqa: E402

from outcore.chem.ci import FCISolver  # noqa: E402


class Stop(Exception):
    pass


@pytest.fixture(scope="module")
def nitrogen():
    mol = pyscf.M(atom="N 0 0 0; N 0 0 1.2", basis="sto-3g", symmetry="D2h", verbose=0)
    return mol.RHF().run(conv_tol=1e-12)


@pytest.fixture
def solver(nitrogen, tmp_path):
    """Makes solvers that keep their states; small spaces have few guessed determinants, so that they iterate."""
    made = []

    def make(**settings):
        one = FCISolver(nitrogen.mol, threads=1, comm=None, scratch=str(tmp_path), guess_size=20, **settings)
        made.append(one)
        return one

    yield make
    for each in made:
        each.close()


def casscf(nitrogen, solver):
    mc = mcscf.CASSCF(nitrogen, 8, 10)
    mc.verbose, mc.fcisolver = 0, solver
    return mc


def stopped(nitrogen, solver, solve, iteration):
    """A CASSCF that is ended in this iteration of one of its solves, both counted from 1."""
    mc, solves = casscf(nitrogen, solver), []

    def on_solve(ci):
        solves.append(ci)

        def told(each, _):
            if len(solves) == solve and each.number == iteration:
                raise Stop

        ci.on_iteration = told

    solver.on_solve = on_solve
    with pytest.raises(Stop):
        mc.kernel()


@pytest.fixture
def every_solve_is_long(monkeypatch):
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)


@pytest.mark.parametrize("solve", [pytest.param(1, marks=pytest.mark.long), 3])
def test_a_run_begins_with_the_states_of_the_last_solve(
    nitrogen, solver, tmp_path, monkeypatch, every_solve_is_long, solve
):
    whole = casscf(nitrogen, solver())
    whole.kernel()
    stopped(nitrogen, solver(checkpoint=tmp_path / "kept"), solve, 2)
    found, find = [], KeptStates.find
    monkeypatch.setattr(KeptStates, "find", lambda self: found.append(find(self)) or found[-1])
    mc, began = casscf(nitrogen, solver(checkpoint=tmp_path / "kept")), []
    mc.fcisolver.on_solved = lambda ci: began.append(ci.solved.kept_iteration)
    mc.kernel()
    assert began[0] == 2 and not any(began[1:])
    assert found[0].iteration == 2
    assert not any(found[1:])
    assert mc.e_tot == pytest.approx(whole.e_tot, abs=1e-9)


def test_a_solve_that_a_kill_may_lose_keeps_nothing(nitrogen, solver, tmp_path):
    mc = casscf(nitrogen, solver(checkpoint=tmp_path / "kept"))
    mc.kernel()
    assert list((tmp_path / "kept").glob("step.*")) == []


def test_states_that_nobody_needs_are_removed(nitrogen, solver, tmp_path, every_solve_is_long):
    mc = casscf(nitrogen, solver(checkpoint=tmp_path / "kept"))
    mc.kernel()
    for _ in range(3):
        mc.fcisolver._sweep(None)
        assert len(list((tmp_path / "kept").glob("step.*"))) <= 2


def test_states_of_another_space_are_refused(nitrogen, solver, tmp_path, every_solve_is_long):
    stopped(nitrogen, solver(checkpoint=tmp_path / "kept"), 1, 2)
    mc = mcscf.CASCI(nitrogen, 6, 6)
    mc.verbose, mc.fcisolver = 0, solver(checkpoint=tmp_path / "kept")
    with pytest.raises(OutcoreError, match="go on from kept states"):
        mc.kernel()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"atom": "N 0 0 0; N 0 0 1.3"}, "another geometry"),
        ({"charge": 2}, "charge = 0, now it is 2"),
        ({"basis": "6-31g"}, "another basis"),
    ],
)
def test_states_of_another_molecule_are_refused(nitrogen, tmp_path, change, told):
    other = pyscf.M(**{"atom": "N 0 0 0; N 0 0 1.2", "basis": "sto-3g", "symmetry": "D2h", **change})
    with World("self", scratch=str(tmp_path)) as world:
        for _ in range(2):
            KeptSolves(world, tmp_path / "kept", nitrogen.mol)
        with pytest.raises(OutcoreError, match=told):
            KeptSolves(world, tmp_path / "kept", other)


def test_states_that_do_not_say_of_which_molecule_they_are_are_refused(nitrogen, tmp_path):
    states = tmp_path / "kept" / "step.0" / "states.float64"
    states.mkdir(parents=True)
    (states / "manifest").touch()
    with (
        World("self", scratch=str(tmp_path)) as world,
        pytest.raises(OutcoreError, match="does not say of which molecule"),
    ):
        KeptSolves(world, tmp_path / "kept", nitrogen.mol)


def test_a_casscf_of_another_molecule_does_not_begin_with_kept_states(
    nitrogen, solver, tmp_path, every_solve_is_long
):
    """Their determinants are the same, and so are all facts about orbitals that the states record."""
    stopped(nitrogen, solver(checkpoint=tmp_path / "kept"), 1, 2)
    mol = pyscf.M(atom="N 0 0 0; N 0 0 1.1", basis="sto-3g", symmetry="D2h", verbose=0)
    with pytest.raises(OutcoreError, match="another geometry"):
        FCISolver(mol, threads=1, comm=None, scratch=str(tmp_path), checkpoint=tmp_path / "kept")


def test_a_step_that_had_kept_nothing_yet_is_passed_over(tmp_path):
    """A kill between the directory of a step and its first states leaves those of the step before."""
    with World("self", scratch=str(tmp_path)) as world:
        KeptSolves(world, tmp_path / "kept", None)
        for number, name in ((3, "states.float64"), (4, "")):
            (tmp_path / "kept" / f"step.{number}" / name).mkdir(parents=True)
            if name:
                (tmp_path / "kept" / f"step.{number}" / name / "manifest").touch()
        steps = KeptSolves(world, tmp_path / "kept", None)
        assert [steps.next().name, steps.next().name] == ["step.3", "step.5"]


def test_the_directory_lies_in_one_that_is_there(tmp_path):
    with (
        World("self", scratch=str(tmp_path)) as world,
        pytest.raises(OutcoreError, match="no such directory"),
    ):
        KeptSolves(world, tmp_path / "not" / "there", None)
