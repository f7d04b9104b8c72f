"""The finished parts of NEVPT2, from which another run resumes."""

from __future__ import annotations

import numpy as np
import pytest

from outcore.base.errors import OutcoreError
from outcore.keep import clock

pyscf = pytest.importorskip("pyscf")

from pyscf import mcscf  # noqa: E402

from outcore.chem.ci import FCISolver  # noqa: E402
from outcore.chem.nevpt2 import NEVPT2, QDNEVPT2, active, classes  # noqa: E402
from outcore.chem.nevpt2.perturbers import Perturbers  # noqa: E402

WATER = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"


@pytest.fixture
def states(tmp_path, monkeypatch):
    """A CASCI of water with commits after every part, and the directory of its checkpoint."""
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    made = []

    def make(roots=1, distance=0.757):
        atom = WATER.replace("0.757", str(distance))
        mf = pyscf.M(atom=atom, basis="6-31g", verbose=0).RHF().run(conv_tol=1e-12)
        mc = mcscf.CASCI(mf, 4, 4)
        mc.verbose, mc.fcisolver = (
            0,
            FCISolver(mf.mol, comm=None, threads=1, scratch=str(tmp_path), memory="1GB"),
        )
        made.append(mc.fcisolver)
        mc.fcisolver.nroots, mc.fcisolver.conv_tol = roots, 1e-13
        mc.kernel()
        return mc

    yield make, tmp_path / "kept"
    for each in made:
        each.close()
        each.world.close()


def stopped(monkeypatch, owner, name, after):
    """Raises Ctrl-C in a call of a function after a number of calls; returns the calls."""
    calls, function = [], getattr(owner, name)

    def counted(*given, **more):
        calls.append(given)
        if len(calls) > after:
            raise KeyboardInterrupt
        return function(*given, **more)

    monkeypatch.setattr(owner, name, counted)
    return calls


WHERE = [
    (active, "holes_of_three", 4, 10),
    (classes, "energies", 0, 1),
    (Perturbers, "moments", 2, 8),  # 2 core orbitals and 7 virtual ones; of those of the core 2 are finished
]


@pytest.mark.parametrize(("owner", "name", "after", "all_calls"), WHERE, ids=[each[1] for each in WHERE])
def test_a_stopped_run_goes_on_with_the_same_result(states, monkeypatch, owner, name, after, all_calls):
    make, kept = states
    mc = make()
    expected = NEVPT2(mc)
    expected.kernel()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        stopped(patched, owner, name, after)
        NEVPT2(mc, checkpoint=kept).kernel()
    calls = stopped(monkeypatch, owner, name, 1000)
    found = NEVPT2(make(), checkpoint=kept)
    found.kernel()
    assert 0 < len(calls) <= all_calls - after + 1
    assert found.e_classes == pytest.approx(expected.e_classes, abs=1e-11)


def test_a_finished_run_is_not_repeated(states, monkeypatch):
    make, kept = states
    mc = make()
    expected = NEVPT2(mc, checkpoint=kept).kernel()
    for owner, name, *_ in WHERE:
        stopped(monkeypatch, owner, name, 0)
    assert NEVPT2(mc, checkpoint=kept).kernel() == pytest.approx(expected, abs=1e-13)


def test_states_that_mix_go_on_together(states, monkeypatch):
    make, kept = states
    mc = make(roots=2)
    expected = QDNEVPT2(mc)
    expected.kernel()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        stopped(patched, Perturbers, "moments", 12)  # in the second root
        QDNEVPT2(mc, checkpoint=kept).kernel()
    calls = stopped(monkeypatch, Perturbers, "moments", 1000)
    found = QDNEVPT2(mc, checkpoint=kept)
    found.kernel()
    assert 0 < len(calls) < 10
    np.testing.assert_allclose(found.columns, expected.columns, atol=1e-11)


def test_parts_of_other_states_are_not_used(states):
    """Such as parts of an optimisation that was restarted; new parts replace them."""
    make, kept = states
    mc = make()
    NEVPT2(mc, checkpoint=kept).kernel()
    rotated = make()
    rotation = np.eye(rotated.mo_coeff.shape[1])
    rotation[4:6, 4:6] = [[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]]
    rotated.kernel(rotated.mo_coeff @ rotation)
    expected = NEVPT2(rotated).kernel()
    told = NEVPT2(rotated, checkpoint=kept)
    assert told.kernel() == pytest.approx(expected, abs=1e-11)
    assert NEVPT2(rotated, checkpoint=kept).kernel() == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("what", ["frozen", "molecule", pytest.param("screening", marks=pytest.mark.long)])
def test_parts_of_another_problem_are_refused(states, what):
    make, kept = states
    mc = make()
    NEVPT2(mc, checkpoint=kept).kernel()
    other = make(distance=0.76) if what == "molecule" else mc
    settings = {
        "frozen": {"frozen": 1},
        "molecule": {},
        "screening": {"auxbasis": "cc-pvdz-ri"},
    }[what]
    with pytest.raises(OutcoreError, match="name another directory") as caught:
        NEVPT2(other, checkpoint=kept, **settings).kernel()
    assert caught.value.path.startswith(str(kept))


def test_a_damaged_file_is_refused(states):
    make, kept = states
    mc = make()
    NEVPT2(mc, checkpoint=kept).kernel()
    for path in (kept / "nevpt2.perturbers.0").rglob("*"):
        if path.is_file() and path.name != "manifest":
            content = bytearray(path.read_bytes())
            for place in range(0, len(content), 64):
                content[place] ^= 0xFF
            path.write_bytes(bytes(content))
    with pytest.raises(OutcoreError):
        NEVPT2(mc, checkpoint=kept).kernel()
