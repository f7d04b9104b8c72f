"""The base of all objects of methods: settings as attributes, the world, the end."""

from __future__ import annotations

import errno
import itertools
import shutil
from pathlib import Path

import numpy as np
import pyscf
import pytest

import outcore
from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.chem.ci import FCI, FCISolver
from outcore.chem.mp2 import MP2
from outcore.chem.mrci import MRCI
from outcore.chem.nevpt2 import NEVPT2, QDNEVPT2


def of_states(method, roots):
    """A method that takes the world, the scratch directory and the threads of a solver that has found its
    states."""

    def make(mf, comm=None, threads=1, **given):
        mc = pyscf.mcscf.CASCI(mf, 3, 2)
        mc.verbose = 0
        mc.fcisolver = FCISolver(mf.mol, comm=comm, threads=threads, memory="1GB")
        mc.fcisolver.nroots = roots
        mc.kernel()
        return method(mc, **given)

    return make


METHODS = {
    "ccsd": lambda mf, **given: CCSD(mf, integrals="conventional", **given),
    "mp2": lambda mf, **given: MP2(mf, auxbasis="cc-pvdz-ri", **given),
    "fci": FCI,
    "mrci": lambda mf, **given: MRCI.from_mean_field(mf, active=2, **given),
}
OF_STATES = {"nevpt2": of_states(NEVPT2, 1), "qdnevpt2": of_states(QDNEVPT2, 2)}
EVERY = METHODS | OF_STATES
each_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
every_method = pytest.mark.parametrize("method", EVERY.values(), ids=EVERY)


@pytest.fixture(scope="module")
def mf():
    mol = pyscf.M(atom="Li 0 0 0; H 0 0 1.6", basis="sto-3g", verbose=0)
    return mol.RHF().run(conv_tol=1e-11)


@pytest.mark.parametrize(
    "method, name, value",
    [
        ("ccsd", "max_cycle", 7),
        ("ccsd", "frozen", 1),
        ("mp2", "scs", (1.0, 0.0)),
        ("fci", "residual", 1e-5),
        ("mrci", "vectors", 4),
        ("nevpt2", "screening", 1e-9),
        ("qdnevpt2", "screening", 1e-9),
    ],
)
def test_settings_are_attributes(mf, method, name, value):
    with EVERY[method](mf) as made:
        setattr(made, name, value)
        assert getattr(made, name) == value
        assert getattr(made.settings, name, value) == value
        assert made.set(**{name: value}) is made


@pytest.mark.parametrize(
    "method, wrong, meant",
    [
        ("ccsd", "max_cycles", "max_cycle"),
        ("mp2", "screning", "screening"),
        ("fci", "presision", "precision"),
        ("mrci", "resdual", "residual"),
        ("nevpt2", "screning", "screening"),
        ("qdnevpt2", "chekpoint", "checkpoint"),
    ],
)
def test_a_name_that_is_not_there_gets_the_one_that_was_meant(mf, method, wrong, meant):
    with EVERY[method](mf) as made:
        with pytest.raises(AttributeError, match=f"did you mean '{meant}'"):
            setattr(made, wrong, 1)
        with pytest.raises(OutcoreError, match=f"no setting is '{wrong}': did you mean '{meant}'"):
            made.set(**{wrong: 1})
        with pytest.raises(AttributeError, match=wrong):
            getattr(made, wrong)


@pytest.mark.parametrize(
    "method, name, value", [("ccsd", "max_cycle", 0), ("fci", "vectors", 1), ("mrci", "residual", 2.0)]
)
def test_a_value_out_of_range_is_refused_and_changes_nothing(mf, method, name, value):
    with METHODS[method](mf) as made:
        before = made.settings
        with pytest.raises(OutcoreError):
            setattr(made, name, value)
        assert made.settings == before


@pytest.mark.parametrize(
    "method, name, value",
    [
        ("ccsd", "frozen", 1),
        ("ccsd", "checkpoint", "kept"),
        ("mp2", "screening", 1e-9),
        ("mp2", "checkpoint", "kept"),
        ("mrci", "references", "all"),
        ("nevpt2", "checkpoint", "kept"),
        ("qdnevpt2", "checkpoint", "kept"),
    ],
)
def test_what_was_made_already_cannot_be_changed(mf, method, name, value):
    with EVERY[method](mf) as made:
        made.kernel()
        with pytest.raises(OutcoreError, match=f"made already; make a new object for another {name}"):
            setattr(made, name, value)


def test_a_setting_counts_in_the_next_run(mf):
    with FCI(mf, max_cycle=1, guess_size=1) as ci:
        ci.kernel()
        assert not ci.converged
        ci.max_cycle = 50
        ci.kernel()
        assert ci.converged


@each_method
def test_a_world_of_the_caller_stays_open_and_its_own_is_closed(mf, method):
    with outcore.World("self", memory="4GB") as world:
        with method(mf, comm=world, memory="3GB", threads=1) as made:
            assert made.means() == (world, 3_000_000_000, 1)
        made.close()
        assert not world.closed
    made = method(mf)
    made.close()
    made.close()
    assert made.world.closed


@pytest.mark.parametrize("method", OF_STATES.values(), ids=OF_STATES)
def test_a_method_of_states_has_the_world_of_their_solver(mf, method):
    with outcore.World("self", memory="4GB") as world:
        with method(mf, comm=world, memory="3GB") as made:
            assert made.means() == (world, 3_000_000_000, 1)
        assert not world.closed


@every_method
def test_a_checkpoint_is_a_directory_of_the_head(mf, method, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    with method(mf, checkpoint=str(first)) as made:
        assert made.checkpoint == first
        made.checkpoint = second
        assert made.checkpoint == second
        made.kernel()
    assert not first.exists() or not any(first.iterdir())
    assert any(second.iterdir())


@every_method
def test_a_checkpoint_that_is_no_directory_is_refused_at_once(mf, method, tmp_path):
    file = tmp_path / "file"
    file.write_text("kept")
    for wrong, words in (
        (3, "checkpoint=3 names no directory"),
        (file, f"write checkpoint {file}"),
        (tmp_path / "none" / "kept", "No such file or directory"),
    ):
        with pytest.raises(OutcoreError, match=words):
            method(mf, checkpoint=wrong)
        with method(mf) as made:
            with pytest.raises(OutcoreError, match=words):
                made.checkpoint = wrong
            assert made.checkpoint is None
    assert file.read_text() == "kept"


def test_a_solver_of_pyscf_has_the_checkpoint_of_a_method(mf, tmp_path):
    """FCISolver is an object of PySCF, and no Method."""
    assert FCISolver(mf.mol, comm=None, checkpoint=str(tmp_path / "kept")).checkpoint == Path(
        tmp_path / "kept"
    )
    with pytest.raises(OutcoreError, match="names no directory"):
        FCISolver(mf.mol, comm=None, checkpoint=3)


def first(energies):
    return float(np.ravel(energies)[0])


@pytest.fixture(scope="module")
def kept(mf, tmp_path_factory):
    """Checkpoint directories of all methods, and their energies."""
    top, energies = tmp_path_factory.mktemp("kept"), {}
    for name, method in EVERY.items():
        with method(mf, checkpoint=top / name) as made:
            made.kernel()
            energies[name] = first(made.e_tot)
    return top, energies


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(one, other, marks=pytest.mark.long if other == "qdnevpt2" and one != "nevpt2" else ())
        for one, other in itertools.permutations(EVERY, 2)
    ],
)
def test_what_one_method_has_kept_is_not_taken_for_that_of_another(mf, kept, tmp_path, one, other):
    """Each method finds no checkpoint of its own, or refuses the other one by name; its energy is right."""
    directories, energies = kept
    copy = shutil.copytree(directories / one, tmp_path / "copy")
    with EVERY[other](mf, checkpoint=copy) as made:
        try:
            made.kernel()
        except OutcoreError as error:
            assert str(copy) in str(error)
        else:
            assert first(made.e_tot) == pytest.approx(energies[other], abs=1e-6)


@each_method
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_an_ended_run_has_kept_can_be_opened_while_its_error_is_held(mf, method, error, tmp_path):
    """A notebook holds an error so, with all objects of its frames."""

    def run(stop=None, **given):
        with method(mf, memory="1GB", threads=1, **given) as found:
            found.on_iteration = found.on_progress = stop
            found.kernel()
            return found.e_tot

    def stop(*_):
        raise error

    kept = {"checkpoint": tmp_path / "kept"}
    for _ in range(2):
        with pytest.raises((error, OutcoreError)) as held:
            run(stop, **kept)
        assert not isinstance(held.value, OutcoreError) or held.value.errno != errno.EBUSY
        assert np.allclose(run(**kept), run(), atol=1e-7)
        assert held.traceback
        shutil.rmtree(tmp_path / "kept")
