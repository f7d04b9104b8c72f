"""States of EOM-CCSD: beside PySCF's of the same integrals, and all roots of small matrices."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import numpy as np
import pytest
from cc_support import WATER, mean_field
from eom_support import AUXILIARY, dense, fitted, made, peer_of

from outcore import OutcoreError
from outcore.chem.cc import CCSD, inherited
from outcore.chem.cc.excited import vectors_of_plan
from outcore.chem.cc.inherited import Inherited
from outcore.job.resources import Allowance

Values = np.ndarray[Any, np.dtype[Any]]

PLACES: dict[str, dict[str, Any]] = {
    "memory": {},
    "disk": {"storage": "disk", "ladder": "disk", "block": 4},
    "rebuild": {"block": 4, "ladder": "rebuild"},
}
LOOSE = {"conv_tol": 1e-4, "conv_tol_normt": 1e-3}


@pytest.fixture(scope="module")
def water() -> Any:
    return fitted(WATER, "6-31g")


@pytest.fixture(scope="module")
def peer(water: Any) -> Any:
    return peer_of(water)


@pytest.fixture(scope="module")
def singlets(peer: Any) -> Values:
    from pyscf.cc import eom_rccsd

    eom = eom_rccsd.EOMEESinglet(peer)
    eom.conv_tol, eom.max_cycle = 1e-12, 200
    return np.array(eom.kernel(nroots=3)[0])


Ground = Callable[[str], CCSD]
"""Of a place of arrays: the object whose amplitudes have converged, the same for all tests."""


@pytest.fixture(scope="module")
def ground(water: Any) -> Iterator[Ground]:
    def start(place: str) -> CCSD:
        cc = stack.enter_context(made(water, **PLACES[place]))
        cc.kernel()
        return cc

    with ExitStack() as stack:
        yield cache(start)


def long(*given: Any) -> Any:
    return pytest.param(*given, marks=pytest.mark.long)


@pytest.mark.parametrize("place", ["memory", long("disk"), long("rebuild")])
def test_singlets_are_those_of_pyscf(ground: Ground, singlets: Values, place: str) -> None:
    energies, states = ground(place).eomee_ccsd_singlet(nroots=3, residual=1e-9)
    assert states.converged.all()
    assert abs(energies - singlets).max() < 1e-8


@pytest.mark.parametrize(
    ("place", "kept"),
    [
        ("memory", False),
        ("disk", True),
        ("rebuild", True),
        long("memory", True),
        long("disk", False),
        long("rebuild", False),
    ],
)
def test_rings_of_singles_may_be_kept(
    ground: Ground, singlets: Values, place: str, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        vectors_of_plan.PlannedVectors, "seconds", property(lambda way: way.keeps_rings != kept)
    )
    energies, states = ground(place).eomee_ccsd_singlet(nroots=2, residual=1e-9)
    assert ("X" in states.plan.arrays) == kept
    assert abs(energies - singlets[:2]).max() < 1e-8


@pytest.mark.parametrize("error", [errno.ENOMEM, errno.ENOSPC])
def test_rings_are_not_kept_where_there_is_no_room(
    ground: Ground, singlets: Values, error: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_of_plan.PlannedVectors, "seconds", property(lambda way: not way.keeps_rings))
    check = Inherited.check_disks

    def refuse(self: Inherited, plan: Any, *given: Any, **more: Any) -> None:
        if "X" in plan.arrays:
            raise OutcoreError(error, "keep rings")
        check(self, plan, *given, **more)

    monkeypatch.setattr(Inherited, "check_disks", refuse)
    energy, states = ground("memory").eomee_ccsd_singlet(residual=1e-5)
    assert "X" not in states.plan.arrays
    assert abs(energy - singlets[0]) < 1e-5


def test_passes_over_vectors_move_what_is_planned(ground: Ground) -> None:
    _, states = ground("disk").eomee_ccsd_singlet(nroots=2, residual=1e-3)
    plan = states.plan
    vector, most = plan.entry("ee0").bytes, sum(name.startswith("Hee") for name in plan.arrays)
    passes = {each.text.split(":")[0]: each.bytes for each in plan.iteration if not each.is_product}
    assert passes["corrections"] == (2 * most + 2) * vector
    assert passes["products of vectors"] == (2 * most + 2 * 2) * vector
    first = states.iterations[0]  # of start vectors alone
    assert first.moved_by_passes.counted == (2 * 2 + 2) * first.products * vector + 2 * vector
    for each in states.iterations:
        assert each.moved_by_passes.counted == each.moved_by_passes.planned > 0


@pytest.mark.parametrize("place", ["memory", pytest.param("disk", marks=pytest.mark.long)])
@pytest.mark.parametrize(("name", "of_peer"), [("ipccsd", "EOMIP"), ("eaccsd", "EOMEA")])
def test_ions_are_those_of_pyscf(ground: Ground, peer: Any, name: str, of_peer: str, place: str) -> None:
    from pyscf.cc import eom_rccsd

    eom = getattr(eom_rccsd, of_peer)(peer)
    eom.conv_tol, eom.max_cycle = 1e-12, 200
    expected = np.array(eom.kernel(nroots=2)[0])
    energies, states = getattr(ground(place), name)(nroots=2, residual=1e-9)
    assert states.converged.all()
    assert abs(energies - expected).max() < 1e-8


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("eomee_ccsd_singlet", marks=pytest.mark.long),
        pytest.param("eomee_ccsd_triplet", marks=pytest.mark.long),
        "ipccsd",
        pytest.param("eaccsd", marks=pytest.mark.long),
    ],
)
def test_tight_energies_are_the_same_in_any_memory(ground: Ground, name: str) -> None:
    """Stored integrals of the ladder have double precision where amplitudes converge tightly."""
    every = [getattr(ground(place), name)(nroots=2, residual=1e-10)[0] for place in PLACES]
    assert np.ptp(every, axis=0).max() < 1e-9


def test_the_lower_of_two_states_that_nearly_have_one_energy_is_found() -> None:
    """In nearly symmetric ammonia. The lower one converges last, and its energy rises on its way."""
    atoms = "N 0 0 0.1; H 0.94 0 -0.27; H -0.47 0.814 -0.27; H -0.47 -0.814 -0.27"
    with made(fitted(atoms, "6-31g"), ladder="rebuild", conv_tol=1e-9, conv_tol_normt=1e-7) as cc:
        cc.kernel()
        two, three = (cc.eaccsd(nroots=count, residual=1e-8)[0] for count in (2, 3))
    assert two == pytest.approx(three[:2], abs=1e-7)
    assert 1e-6 < three[2] - three[1] < 2e-5


@pytest.mark.long
def test_states_whose_order_changes_with_correlation_are_found() -> None:
    """Of hydrogen cyanide: the second and third triplet have a symmetry that lies above others without
    correlation."""
    mf = fitted("H 0 0 -1.065; C 0 0 0; N 0 0 1.156", "6-31g")
    with made(mf, 2, ladder="rebuild", conv_tol=1e-9, conv_tol_normt=1e-7) as cc:
        cc.kernel()
        every = cc.eomee_ccsd_triplet(nroots=6, tolerance=1e-7)[0]
        for count in (2, 3, 4):
            found = cc.eomee_ccsd_triplet(nroots=count, tolerance=1e-7)[0]
            assert found == pytest.approx(every[:count], abs=1e-6)


def test_stored_integrals_have_the_precision_that_amplitudes_need(water: Any) -> None:
    for limit, name, item_bytes in ((1e-7, "float32", 4), (0.9e-7, "float64", 8)):
        with made(water, conv_tol_normt=limit, ladder="memory") as cc:
            plan = cc.prepare()
            assert {plan.entry(each).store_dtype for each in ("V+", "V-")} == {name}
            elements = sum(np.prod(plan.entry(each).layout.shape) for each in ("V+", "V-"))
            assert plan.ways["memory"].stored_bytes == item_bytes * elements


@pytest.mark.parametrize("kind", ["ip", "ea"])
def test_no_ion_is_missed(kind: str) -> None:
    mf = mean_field("H 0 0 0; H 0 0 0.9; H 0.9 0 0; H 0.9 0 0.9001", "sto-3g")
    with CCSD(mf, comm=None, memory="1GB", threads=1, conv_tol=1e-11, conv_tol_normt=1e-9) as cc:
        cc.kernel()
        states = cc.states(kind, nroots=2, residual=1e-8)
        every = np.sort(dense(states.equations).real)
    assert abs(states.energies - every[:2]).max() < 1e-7


def test_one_kind_after_another(ground: Ground) -> None:
    cc = ground("memory")
    first = cc.ipccsd(residual=1e-8)[0]
    cc.eaccsd(residual=1e-2)
    again = cc.ipccsd(residual=1e-8)[0]
    assert abs(first - again) < 1e-9


def test_a_number_for_one_root(ground: Ground, singlets: Values) -> None:
    energy, _ = ground("memory").eomee_ccsd_singlet(residual=1e-8)
    assert type(energy) is float
    assert abs(energy - singlets[0]) < 1e-7


def test_a_small_space_begins_anew(ground: Ground, singlets: Values, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_of_plan, "_VECTORS", (4, 4, 4))
    energies, _ = ground("memory").eomee_ccsd_singlet(nroots=2, residual=1e-9)
    assert abs(energies - singlets[:2]).max() < 1e-8


@pytest.mark.parametrize(
    ("atoms", "basis", "frozen"),
    [("Be 0 0 0", "6-31g", 1), ("H 0 0 0; H 0 0 0.9; H 0.9 0 0; H 0.9 0 0.9001", "sto-3g", 0)],
    ids=["degenerate", "nearly degenerate"],
)
def test_no_root_is_missed(atoms: str, basis: str, frozen: int) -> None:
    mf = mean_field(atoms, basis)
    with CCSD(mf, frozen, comm=None, memory="1GB", threads=1, conv_tol=1e-11, conv_tol_normt=1e-9) as cc:
        cc.kernel()
        energies, states = cc.eomee_ccsd_singlet(nroots=4, residual=1e-8)
        every = dense(states.equations)
    every = np.sort(every.real)
    assert abs(energies - every[: len(energies)]).max() < 1e-7


def test_roots_that_have_not_converged_have_no_energies(ground: Ground) -> None:
    energies, states = ground("memory").eomee_ccsd_singlet(nroots=2, max_cycle=2)
    assert np.isnan(energies).all()
    assert not states.converged.any()
    assert "root" in states.why


def test_amplitudes_stay_for_triples(water: Any) -> None:
    with made(water, **LOOSE) as cc:
        cc.kernel()
        expected = cc.ccsd_t()
    with made(water, **LOOSE) as cc:
        cc.kernel()
        cc.eomee_ccsd_singlet(residual=1e-2)
        assert abs(cc.ccsd_t() - expected) < 1e-10


def test_multipliers_can_be_had_before_and_after(water: Any) -> None:
    with made(water, **LOOSE) as cc:
        cc.kernel()
        before = cc.solve_lambda()[0].copy()
        cc.eomee_ccsd_singlet(residual=1e-2)
        assert abs(cc.solve_lambda()[0] - before).max() < 1e-9


def test_other_methods_are_refused(water: Any) -> None:
    with CCSD(water, 1, comm=None, memory="1GB", threads=1, auxbasis=AUXILIARY, method="dcsd") as cc:
        cc.kernel()
        with pytest.raises(OutcoreError, match="not of DCSD"):
            cc.eomee_ccsd_singlet()


def test_amplitudes_must_have_converged(water: Any) -> None:
    with made(water) as cc, pytest.raises(OutcoreError, match="run kernel"):
        cc.eomee_ccsd_singlet()


def test_the_former_name_of_a_residual_is_told(ground: Any) -> None:
    with pytest.warns(DeprecationWarning, match="residual="):
        states = ground("memory").eomee_ccsd_singlet(tolerance=1e-2)[1]
    assert states.settings.residual == 1e-2


@pytest.mark.parametrize(
    ("settings", "message"), [({"nroots": 0}, "0 roots"), ({"residual": 2.0}, "residual")]
)
def test_settings_out_of_range_are_refused(water: Any, settings: dict[str, Any], message: str) -> None:
    with made(water) as cc, pytest.raises(OutcoreError, match=message):
        cc.eomee_ccsd_singlet(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"left": True}, r"no argument 'left', unlike PySCF: left vectors .*properties\(\)"),
        ({"koopmans": True}, "no argument 'koopmans', unlike PySCF: .*guess="),
        ({"partition": "mp"}, "no argument 'partition', unlike PySCF"),
        ({"eris": None}, "no argument 'eris', unlike PySCF"),
        ({"max_cycles": 3}, "no argument 'max_cycles': did you mean 'max_cycle'"),
    ],
    ids=str,
)
def test_keywords_that_are_not_there_are_named(
    ground: Ground, settings: dict[str, Any], message: str
) -> None:
    for method in (ground("memory").ipccsd, ground("memory").eomee_ccsd_singlet):
        with pytest.raises(TypeError, match=message):
            method(nroots=1, **settings)


def test_more_roots_than_there_are(ground: Ground) -> None:
    with pytest.raises(OutcoreError, match="single excitations"):
        ground("memory").eomee_ccsd_singlet(nroots=1000)


def test_nothing_that_was_described_for_plans_stays(water: Any) -> None:
    from outcore.chem.cc.excited import describe as of_states
    from outcore.chem.cc.plan import describe

    with made(water, **LOOSE) as cc:
        cc.kernel()
        assert describe.iterations.cache_info().currsize
        cc.eomee_ccsd_singlet(residual=1e-2)
    assert not describe.iterations.cache_info().currsize
    assert not of_states.states.cache_info().currsize


@pytest.mark.parametrize("is_command", [False, True])
def test_an_object_goes_on_with_what_its_process_leaves(
    water: Any, is_command: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a command the memory was predicted, and the same input gives the same plans."""
    with made(water, memory="4GB", **LOOSE) as cc:
        cc.kernel()
        assert cc.room is not None
        cc.world.held_bytes = 1 << 27 if is_command else None
        monkeypatch.setattr(inherited, "free_memory_of_each", lambda *_: Allowance(10**8, "--memory"))
        planned = cc.room.plan.work_bytes + cc.room.plan.taken_bytes
        found = Inherited(cc)
        kept = sum(each.bytes_of_process(1) for each in found._entries.values())
    assert found._bytes == (planned if is_command else 10**8 + kept)
