"""Closed-shell CCSD: residuals and energies beside PySCF's and those of the literature."""

from __future__ import annotations

import errno
from typing import Any

import numpy as np
import pytest
from cc_support import FLUORIDE, WATER, fitted_peer, mean_field, random_amplitudes

from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.chem.cc.diis import Diis
from outcore.chem.cc.updates import Updates

TIGHT = {"conv_tol": 1e-10, "conv_tol_normt": 1e-8}


@pytest.fixture(scope="module")
def water() -> Any:
    return mean_field(WATER, "6-31g")


def residuals(cc: CCSD, t1: np.ndarray[Any, Any], t2: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """[i,a] and [i,j,a,b]"""
    equations = cc.set_up()
    (doubles,) = equations.doubles
    layout = doubles.amplitudes.layout
    whole = t2.transpose(2, 0, 3, 1)
    for tile in layout.stored:
        doubles.put(tile, np.ascontiguousarray(whole[layout.box(tile)]))
    (singles,) = equations.residual([t1])
    return singles, doubles.residual.to_numpy().transpose(1, 3, 0, 2)


@pytest.mark.parametrize(
    "settings",
    [{}, {"block": 3, "storage": "disk"}, {"block": 3, "ladder": "rebuild"}],
    ids=["memory", "disk", "rebuild"],
)
def test_residual_of_any_amplitudes_is_that_of_pyscf(water: Any, settings: dict[str, Any]) -> None:
    peer = fitted_peer(water, frozen=1)
    eris = peer.ao2mo()
    o, v = peer.nocc, peer.nmo - peer.nocc
    t1, t2 = random_amplitudes(o, v)
    new1, new2 = peer.update_amps(t1, t2, eris)
    gaps = eris.mo_energy[:o, None] - eris.mo_energy[o:]
    wanted1 = (new1 - t1) * gaps
    wanted2 = (new2 - t2) * (gaps[:, None, :, None] + gaps[None, :, None, :])
    with CCSD(water, frozen=1, integrals="ri", comm=None, memory="1GB", **settings) as cc:
        singles, doubles = residuals(cc, t1, t2)
        precision = 1e-12 if cc.plan is not None and cc.plan.ladder == "rebuild" else 1e-6
    assert abs(singles - wanted1).max() < 1e-12
    assert abs(doubles - wanted2).max() < precision


def test_energy_does_not_depend_on_tiles_and_places(water: Any) -> None:
    peer = fitted_peer(water)
    peer.kernel()
    triples = peer.ccsd_t()
    for settings in ({}, {"block": 3, "storage": "disk"}):
        with CCSD(water, integrals="ri", comm=None, memory="1GB", **TIGHT, **settings) as cc:
            cc.kernel()
            assert cc.converged
            assert abs(cc.e_corr - peer.e_corr) < 1e-9
            t1, t2 = cc.amplitudes()
            assert abs(cc.ccsd_t() - triples) < 1e-9
        assert abs(t1 - peer.t1).max() < 1e-7
        assert abs(t2 - peer.t2).max() < 1e-7


@pytest.mark.parametrize(
    ("frozen", "energy", "triples"),
    [(None, -0.208743643, -0.0019363896542312043), ("auto", -0.2068152041, -0.0019205007159748158)],
)
def test_conventional_energies_are_those_of_the_suite(frozen: Any, energy: float, triples: float) -> None:
    with CCSD(
        mean_field(FLUORIDE, "cc-pvdz"), frozen, integrals="conventional", comm=None, memory="1GB", **TIGHT
    ) as cc:
        cc.kernel()
        cc.ccsd_t()
    assert abs(cc.e_corr - energy) < 1e-8
    assert abs(cc.e_t - triples) < 1e-8


def test_frozen_natural_orbitals_and_what_they_lose(water: Any) -> None:
    from pyscf import cc as peers
    from pyscf import mp

    peer = mp.MP2(water)
    peer.kernel()
    everything = peers.CCSD(water)
    everything.kernel()
    threshold = 3e-3
    natural = peers.FNOCCSD(water, thresh=threshold)
    natural.kernel()
    with CCSD(water, integrals="conventional", fno=threshold, comm=None, memory="1GB", **TIGHT) as cc:
        cc.kernel()
    assert cc.natural is not None
    assert abs(cc.natural.energy - peer.e_corr) < 1e-9
    assert cc.spins[0].virtual < len(cc.natural.occupations) == 8
    assert abs(cc.e_corr - natural.e_corr) < 1e-6
    assert abs(cc.e_corr + cc.delta_mp2 - everything.e_corr) < 0.5 * abs(cc.e_corr - everything.e_corr)


CYANIDE = "C 0 0 0; H 0 0 -1.066; N 0 0 1.156"
FLUORINE = "F 0 0 0; F 0 0 1.412"  # whose error is the largest share of the error of MP2


@pytest.mark.parametrize(
    ("atoms", "threshold"),
    [(WATER, 1e-3), (FLUORIDE, 3e-4), (CYANIDE, 3e-3), (FLUORINE, 1e-3)],
    ids=["water", "fluoride", "cyanide", "fluorine"],
)
def test_the_error_of_natural_orbitals_is_within_its_estimate(atoms: str, threshold: float) -> None:
    from pyscf import cc as peers
    from pyscf.data.elements import chemcore

    mf = mean_field(atoms, "cc-pvdz")
    peer = peers.CCSD(mf, frozen=chemcore(mf.mol))
    peer.conv_tol, peer.conv_tol_normt = 1e-9, 1e-7
    peer.kernel()
    everything = peer.e_corr, peer.e_corr + peer.ccsd_t()
    with CCSD(mf, "auto", integrals="cholesky", fno=threshold, comm=None, memory="1GB") as cc:
        ccsd = cc.kernel()[0] + cc.delta_mp2
        found = ccsd, ccsd + cc.ccsd_t()
    for with_triples in (False, True):
        error = abs(found[with_triples] - everything[with_triples])
        assert error < cc.fno_error(triples=with_triples) < 5 * error


def test_no_natural_orbital_that_stays_is_refused(water: Any) -> None:
    with pytest.raises(OutcoreError, match=r"no virtual orbital has an occupation above 0\.9"):
        CCSD(water, fno=0.9, comm=None, memory="1GB").kernel()


def test_any_orbitals_are_frozen_as_in_pyscf(water: Any) -> None:
    from pyscf import cc as peers

    peer = peers.CCSD(water, frozen=[1, 5])
    peer.conv_tol, peer.conv_tol_normt = 1e-10, 1e-8
    peer.kernel()
    with CCSD(water, [1], frozen_virtual=[5], comm=None, memory="1GB", **TIGHT) as cc:
        assert cc.kernel()[0] == pytest.approx(peer.e_corr, abs=1e-8)
        assert cc.ccsd_t() == pytest.approx(peer.ccsd_t(), abs=1e-8)
        assert cc.frozen == [1, 5] and cc.active_orbitals.shape == (13, 11)


def test_one_occupied_orbital_and_the_ways_of_pyscf() -> None:
    from pyscf import cc as peers

    mf = mean_field("He 0 0 0", "cc-pvdz")
    peer = peers.CCSD(mf)
    peer.conv_tol, peer.conv_tol_normt = 1e-11, 1e-9
    peer.kernel()
    cc = CCSD(mf, comm=None, memory="1GB")
    cc.ladder = "rebuild"
    with cc.run(**TIGHT):
        assert abs(cc.e_corr - peer.e_corr) < 1e-9
        assert cc.e_hf == mf.e_tot
        assert abs(cc.get_t1_diagnostic() - peer.get_t1_diagnostic()) < 1e-7
        assert abs(cc.get_d1_diagnostic() - peer.get_d1_diagnostic()) < 1e-7
        assert cc.plan is not None and cc.plan.ladder == "rebuild"
        with pytest.raises(OutcoreError, match="integrals are made already"):
            cc.set(fno=1e-3)


def test_a_single_amplitude_is_extrapolated() -> None:
    """All of its errors are parallel, so two of them give a combination without error."""
    from pyscf import fci

    mf = mean_field("H 0 0 0; H 0 0 1.5", "sto-3g")
    with CCSD(mf, comm=None, memory="1GB", threads=1, **TIGHT) as cc:
        cc.kernel()
        assert cc.converged
        assert len(cc.iterations) < 12
        assert cc.e_tot == pytest.approx(fci.FCI(mf).kernel()[0], abs=1e-8)


def test_an_unknown_setting_is_refused(water: Any) -> None:
    with pytest.raises(OutcoreError, match="no setting is 'colour'"):
        CCSD(water, comm=None, memory="1GB").set(colour=1)


def test_nothing_to_correlate() -> None:
    with CCSD(mean_field("He 0 0 0", "sto-3g"), comm=None, memory="1GB", integrals="cholesky") as cc:
        energy, singles, doubles = cc.kernel()
        assert energy == 0.0
        assert cc.converged
        assert (singles.shape, doubles.shape) == ((1, 0), (1, 1, 0, 0))


def test_all_orbitals_frozen_leave_nothing_to_correlate(water: Any) -> None:
    with CCSD(water, 5, comm=None, memory="1GB") as cc:
        assert cc.kernel()[0] == cc.ccsd_t() == 0.0


def test_a_reference_that_has_not_converged_is_refused_but_by_force(water: Any) -> None:
    mf = water.copy()
    mf.converged = False
    with pytest.raises(OutcoreError, match=r"the SCF has not converged .* or give force=True"):
        CCSD(mf, comm=None, memory="1GB")
    with CCSD(mf, force=True, comm=None, memory="1GB") as cc:
        assert "of an SCF that has not converged" in cc.summary()


def test_too_little_memory_is_refused_with_the_least_that_does(water: Any) -> None:
    with pytest.raises(OutcoreError, match=r"needs? at least [\d.]+ MB more"):
        CCSD(water, integrals="ri", comm=None, memory="10MB").kernel()


@pytest.mark.parametrize(
    "settings",
    [
        {"integrals": "exact"},
        {"ladder": "tape"},
        {"diis_space": 0},
        {"damping": 1.0},
        {"integrals": "cholesky", "tolerance": 0.0},
    ],
)
def test_settings_out_of_range_are_refused(water: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(OutcoreError, match="coupled cluster"):
        CCSD(water, comm=None, **settings)


def test_triples_leave_amplitudes_and_can_be_asked_for_again(water: Any) -> None:
    """Memory that only iterations need is freed for (T)."""
    with CCSD(water, frozen=1, comm=None, memory="1GB") as cc:
        cc.kernel()
        _, doubles = cc.amplitudes()
        assert cc.equations is not None
        before = len(cc.equations.room._arrays)
        first = cc.ccsd_t()
        assert len(cc.equations.room._arrays) == len(cc.equations.of_triples) < before
        assert abs(cc.ccsd_t() - first) < 1e-14
        assert np.array_equal(cc.amplitudes()[1], doubles)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"integrals": "ri", "tolerance": 1e-4}, "a tolerance is of integrals='cholesky' alone"),
        ({"auxbasis": "cc-pvdz-ri"}, "integrals are conventional, for which there is no auxbasis"),
        (
            {"integrals": "cholesky", "screening": 1e-9},
            "integrals are cholesky, for which there is no screening",
        ),
        ({"orbitals": "standard"}, "orbitals='standard' is of ROHF alone"),
    ],
    ids=str,
)
def test_settings_without_effect_are_refused(water: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(OutcoreError, match=words):
        CCSD(water, comm=None, memory="1GB", **settings)


def test_integrals_are_those_of_the_reference(water: Any) -> None:
    with CCSD(water, comm=None, memory="1GB") as cc:
        assert cc.integrals == "conventional"
    with CCSD(water.density_fit(), force=True, comm=None, memory="1GB") as cc:
        assert cc.integrals == "ri"


def test_attributes_are_settings_as_in_pyscf(water: Any) -> None:
    with (
        CCSD(water, comm=None, memory="1GB", **TIGHT) as cc,
        CCSD(water, 1, comm=None, memory="1GB", **TIGHT) as other,
    ):
        cc.frozen = 1
        cc.max_cycle = 2
        cc.kernel()
        assert not cc.converged
        cc.max_cycle = 50
        cc.kernel()
        assert cc.converged
        assert [each.number for each in cc.iterations] == list(range(1, len(cc.iterations) + 1))
        assert abs(cc.e_corr - other.kernel()[0]) < 1e-9
        limit = cc.iterations[-1].norm / 10
        cc.conv_tol_normt = limit
        assert not cc.converged
        cc.kernel()
        assert cc.converged
        assert cc.iterations[-1].norm < limit
        with pytest.raises(OutcoreError, match="make a new object for another frozen"):
            cc.frozen = 2
        for name in ("max_memory", "mol", "e_tot"):
            with pytest.raises(AttributeError):
                setattr(cc, name, 4000)


def test_no_iterations_after_triples_have_taken_their_memory(water: Any) -> None:
    with CCSD(water, comm=None, memory="1GB") as cc:
        cc.kernel()
        cc.ccsd_t()
        cc.conv_tol_normt = 1e-10
        with pytest.raises(OutcoreError, match=r"was given back for \(T\); make a new object"):
            cc.kernel()


def test_a_stored_ladder_of_single_precision_is_not_converged_on_tightly(water: Any) -> None:
    for ladder in ("memory", "rebuild"):
        with CCSD(water, comm=None, memory="1GB", ladder=ladder, conv_tol_normt=1e-5) as cc:
            cc.kernel()
            cc.conv_tol_normt = 1e-9
            if ladder == "rebuild":
                cc.kernel()
                assert cc.converged
                continue
            with pytest.raises(OutcoreError, match="stored in single precision: make another object"):
                cc.kernel()


@pytest.mark.parametrize("storage", ["auto", "disk"])
def test_doubles_act_as_an_array(water: Any, storage: str) -> None:
    with CCSD(water, 1, comm=None, memory="1GB", block=3, storage=storage) as cc:
        _, _, t2 = cc.kernel()
        whole = np.asarray(t2)
        assert t2.shape == whole.shape == (4, 4, 8, 8)
        assert t2.nbytes == whole.nbytes
        for key in (
            np.s_[1, 2, 3, 4],
            np.s_[1:3, 0, ..., 2:7],
            np.s_[2],
            np.s_[:, :, 5],
            np.s_[..., 1],
            np.s_[[0, 2]],
        ):
            assert np.array_equal(t2[key], whole[key])
        assert np.array_equal(t2[whole > 0], whole[whole > 0])
        assert abs(whole - cc.amplitudes()[1]).max() == 0.0


@pytest.mark.parametrize("aid", [{"damping": 0.5}, {"level_shift": 0.3}, {"fno": 1e-3}], ids=str)
def test_what_helps_iterations_changes_no_result(water: Any, aid: dict[str, float]) -> None:
    more = {"level_shift": 0.3} if "fno" in aid else {}
    limits = {"conv_tol": 1e-9, "conv_tol_normt": 1e-7, "max_cycle": 100}
    with CCSD(water, comm=None, memory="1GB", **limits, **aid, **more) as cc:
        cc.kernel()
    with CCSD(water, comm=None, memory="1GB", **limits, **(aid if more else {})) as other:
        other.kernel()
    assert cc.converged
    assert abs(cc.e_corr - other.e_corr) < 1e-8
    assert abs(cc.delta_mp2 - other.delta_mp2) < 1e-10


def test_damping_is_no_convergence(water: Any) -> None:
    with CCSD(water, comm=None, memory="1GB", damping=0.9999999, max_cycle=2) as cc:
        cc.kernel()
        assert not cc.converged
        assert cc.iterations[-1].norm > 1e-2


def test_the_energy_is_that_of_the_orbitals_at_hand(water: Any) -> None:
    """Kohn-Sham orbitals in a Hartree-Fock object."""
    from pyscf import cc as peers

    other = water.mol.RKS(xc="pbe").run(conv_tol=1e-11)
    mf = water.copy()
    mf.mo_coeff, mf.mo_energy = other.mo_coeff, other.mo_energy
    peer = peers.CCSD(mf)
    peer.conv_tol, peer.conv_tol_normt = 1e-11, 1e-9
    peer.kernel()
    with CCSD(mf, comm=None, memory="1GB", **TIGHT) as cc:
        cc.kernel()
        assert "whose determinant has an energy of" in cc.summary()
    expected = mf.energy_tot(mf.make_rdm1())
    assert abs(expected - mf.e_tot) > 1e-3
    assert abs(cc.e_hf - expected) < 1e-9
    assert abs(cc.e_corr - peer.e_corr) < 1e-8


def test_products_of_an_iteration_move_what_was_planned(water: Any) -> None:
    with CCSD(water, frozen=1, comm=None, memory="1GB", block=3, storage="disk") as cc:
        cc.run(max_cycle=2)
        first, second = (each.moved for each in cc.iterations)
    assert first == second
    assert first.counted == first.planned > first.least > 0


@pytest.mark.parametrize("storage", ["auto", "disk"])
def test_an_iteration_tells_how_far_it_is(water: Any, storage: str) -> None:
    told: dict[str, list[float]] = {}
    with CCSD(water, frozen=1, comm=None, memory="1GB", block=3, storage=storage) as cc:
        cc.on_progress = lambda part, fraction: told.setdefault(part, []).append(fraction)
        cc.run(max_cycle=2)
    fractions = told["iteration 2"]
    assert fractions == sorted(fractions)
    assert 0 < fractions[0] < 0.5 and fractions[-1] == pytest.approx(1.0)
    assert len(fractions) > 20


def test_an_estimate_takes_all_virtual_orbitals(water: Any) -> None:
    with CCSD(water, fno=1e-3, comm=None, memory="1GB") as cc:
        assert cc.estimate().spaces[0].virtual == 8
        cc.kernel()
        assert cc.plan is not None and cc.plan.spaces[0].virtual < 8


def test_settings_after_an_estimate_count(water: Any) -> None:
    with CCSD(water, comm=None, memory="1GB") as cc:
        cc.estimate()
        cc.integrals = "ri"
        assert "auxiliary basis functions (cc-pvdz-ri" in cc.summary()


def test_orbitals_are_left_out_once_where_preparing_fails(
    water: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CCSD(water, fno=1e-3, comm=None, memory="1GB", **TIGHT) as cc:
        with monkeypatch.context() as patched:
            patched.setattr(CCSD, "_make_plan", _failing_once_truncated(CCSD._make_plan))
            with pytest.raises(OutcoreError, match="no room"):
                cc.kernel()
        cc.kernel()
    with CCSD(water, fno=1e-3, comm=None, memory="1GB", **TIGHT) as other:
        other.kernel()
    assert abs(cc.delta_mp2 - other.delta_mp2) < 1e-12


def _failing_once_truncated(right: Any) -> Any:
    def make(self: CCSD, source: Any, *what: Any) -> Any:
        if not what:
            raise OutcoreError(errno.ENOMEM, "no room")
        return right(self, source, *what)

    return make


def test_nothing_goes_on_after_integrals_that_failed(water: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with CCSD(water, comm=None, memory="1GB") as cc:
        cc.prepare()
        with monkeypatch.context() as patched:
            patched.setattr(Updates, "put_second_order", _failing)
            with pytest.raises(OutcoreError, match="a tile"):
                cc.kernel()
        with pytest.raises(OutcoreError, match="first amplitudes were not finished; make a new object"):
            cc.kernel()


def _failing(*_: Any) -> None:
    raise OutcoreError(errno.EIO, "a tile")


def test_vectors_begin_anew_after_an_error(water: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with CCSD(water, comm=None, memory="1GB", **TIGHT) as cc:
        cc.max_cycle = 4
        cc.kernel()
        with monkeypatch.context() as patched:
            patched.setattr(Updates, "change", _failing)
            with pytest.raises(OutcoreError, match="a tile"):
                cc.kernel()
        cc.max_cycle = 50
        cc.kernel()
        assert cc.converged
    with CCSD(water, comm=None, memory="1GB", **TIGHT) as other:
        assert abs(cc.e_corr - other.kernel()[0]) < 1e-9


def test_amplitudes_of_two_iterations_are_no_result(water: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with CCSD(water, comm=None, memory="1GB", max_cycle=2) as cc:
        cc.kernel()
        with monkeypatch.context() as patched:
            patched.setattr(Diis, "combine", _failing)
            with pytest.raises(OutcoreError, match="a tile"):
                cc.kernel()
        cc.set(conv_tol=0.9, conv_tol_normt=0.9)
        assert not cc.converged
        with pytest.raises(OutcoreError, match="amplitudes of two iterations; make a new object"):
            cc.kernel()
