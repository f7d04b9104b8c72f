"""The command `outcore casscf`, against PySCF's CASSCF and NEVPT2."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem.ci import solver
from outcore.chem.ci.fci import FCI
from outcore.cli import main as cli
from outcore.keep import clock

pyscf = pytest.importorskip("pyscf")

from pyscf import fci, mcscf, mrpt  # noqa: E402

WATER = "3\nwater\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n"
LIH = "2\nlithium hydride\nLi 0 0 0\nH 0 0 1.6\n"
HNO = "3\nnitroxyl\nH 0.93 0 -0.45\nN 0 0 0\nO 0 0 1.21\n"
N2 = "2\nnitrogen\nN 0 0 0\nN 0 0 1.1\n"


@cache
def mean_field(text, fitted=False):
    mol = pyscf.M(atom="\n".join(text.splitlines()[2:]), basis="sto-3g", verbose=0)
    mf = mol.RHF()
    return (mf.density_fit() if fitted else mf).run(conv_tol=1e-12)


def of_pyscf(mf, orbitals, electrons, start=None, method="CASSCF"):
    mc = getattr(mcscf, method)(mf, orbitals, electrons)
    mc.verbose, mc.fcisolver = 0, fci.direct_spin0.FCI(mf.mol)
    mc.fcisolver.conv_tol = 1e-13
    if method == "CASSCF":
        mc.conv_tol, mc.conv_tol_grad = 1e-10, 1e-6
    mc.kernel(start)
    return mc


@pytest.mark.parametrize("integrals", [pytest.param("conventional", marks=pytest.mark.long), "ri"])
def test_energies_are_those_of_pyscf(run, integrals):
    found = run(LIH, "--cas", "2,2", "--nevpt2", "--integrals", integrals)
    mc = of_pyscf(mean_field(LIH, integrals == "ri"), 2, 2)
    assert found["energies_hartree"] == pytest.approx([mc.e_tot], abs=1e-8)
    nevpt2 = mc.e_tot + mrpt.NEVPT(mc).kernel()
    assert found["nevpt2_energies_hartree"] == pytest.approx([nevpt2], abs=1e-7)
    assert found["converged"] and found["group"] == "C2v" and found["electrons"] == [1, 1]
    assert sum(found["roots"][0]["occupations"]) == pytest.approx(2)
    (traffic,) = found["nevpt2_traffic"]
    for each in (traffic, traffic["moved_by_products"], found["moved_by_products"]):
        assert each.get("least_bytes", each.get("least")) == 0  # all is in memory
    assert found["energies_hartree"][0] - found["nevpt2_energies_hartree"][0] == pytest.approx(
        -sum(found["nevpt2_classes_hartree"][0].values())
    )


def test_vectors_on_disk_are_told_beside_the_least(run, monkeypatch, capsys):
    plan = solver.plan
    monkeypatch.setattr(
        solver, "plan", lambda *given, **more: replace(plan(*given, **more), kind="disk", cache_bytes=1 << 20)
    )
    found = run(LIH, "--cas", "2,2", "--nevpt2", "--integrals", "ri")
    output = capsys.readouterr().out
    of_perturbers = found["nevpt2_traffic"][0]["moved_by_products"]
    for title, moved in (("CASSCF", found["moved_by_products"]), ("perturbers", of_perturbers)):
        (told,) = re.findall(rf"products .*{title}: .* disk, (\S+) times the least", output)
        assert (moved["read"] + moved["added"]) / moved["least"] == pytest.approx(float(told), abs=6e-3)
        assert float(told) >= 1


def test_atomic_orbitals_choose_the_active_ones(run, tmp_path):
    from pyscf.mcscf import avas

    path = tmp_path / "natural.molden"
    found = run(N2, "--avas", "N 2p", "--casci", "--density", str(path))
    mf = mean_field(N2)
    orbitals, electrons, start = avas.avas(mf, ["N 2p"], verbose=0)[:3]
    assert found["orbitals"] == orbitals and sum(found["electrons"]) == electrons
    assert found["energies_hartree"] == pytest.approx(
        [of_pyscf(mf, orbitals, electrons, start, "CASCI").e_tot], abs=1e-8
    )
    assert path.read_text().count("Occup=") == 10


def test_densities_of_a_state_and_of_the_average_are_written(run, tmp_path):
    weights, found = (0.7, 0.3), {}
    for of in ("1", "2", "average"):
        path = tmp_path / f"density{of}.npz"
        given = (
            "--cas",
            "2,2",
            "--roots",
            "2",
            "--weights",
            "0.7,0.3",
            "--density",
            str(path),
            "--density-of",
            of,
        )
        run(LIH, *given)
        with np.load(path) as file:
            found[of] = {name: file[name] for name in file.files if file[name].ndim >= 2}
    for name, mean in found["average"].items():
        both = weights[0] * found["1"][name] + weights[1] * found["2"][name]
        np.testing.assert_allclose(mean, both, atol=1e-6)
    assert max(abs(each - found["2"][name]).max() for name, each in found["1"].items()) > 1e-2


@pytest.mark.parametrize("states", [pytest.param([], marks=pytest.mark.long), ["--states", "A1:2:1,A1:0:1"]])
def test_integrals_of_optimised_orbitals_have_the_first_state(run, states, tmp_path):
    dump, results = tmp_path / "FCIDUMP", tmp_path / "fci.json"
    found = run(LIH, "--cas", "2,2", *states, "--write-fcidump", str(dump))
    assert cli.run(["fci", "--fcidump", str(dump), "--threads", "1", "--json", str(results)]) == 0
    energies = json.loads(results.read_text())["energies_hartree"]
    assert energies == pytest.approx(found["energies_hartree"][:1], abs=1e-9)
    assert found["fcidump"] == str(dump) and "ORBSYM=1,1," in dump.read_text()


def test_listed_orbitals_are_active(run):
    found = run(WATER, "--active", "2,4,5", "--casci")
    mf = mean_field(WATER)
    mc = mcscf.CASCI(mf, 3, 4)
    start = mc.sort_mo([2, 4, 5], base=0)
    assert found["energies_hartree"] == pytest.approx([of_pyscf(mf, 3, 4, start, "CASCI").e_tot], abs=1e-8)


@cache
def symmetric_mean_field(text):
    mol = pyscf.M(atom="\n".join(text.splitlines()[2:]), basis="sto-3g", symmetry=True, verbose=0)
    return mol.RHF().run(conv_tol=1e-12)


@pytest.mark.parametrize(
    ("below", "core"),
    [
        pytest.param(["--cas", "4,4"], None, marks=pytest.mark.long),
        (["--core", "A1=2,B2=1"], None),
        (["--core", "A1=3"], {"A1": 3}),
    ],
)
def test_active_orbitals_are_counted_by_irreps(run, below, core):
    """As by PySCF's sort_mo_by_irrep, which also has the names B1 and B2."""
    found = run(WATER, "--active", "A1=1,B1=1,B2=2" if core else "A1=2,B1=1,B2=1", "--casci", *below)
    mf = symmetric_mean_field(WATER)
    mc = mcscf.CASCI(mf, 4, 4)
    mc.verbose, mc.fcisolver.wfnsym = 0, "A1"
    counts = {"A1": 1, "B1": 1, "B2": 2} if core else {"A1": 2, "B1": 1, "B2": 1}
    mc.kernel(mc.sort_mo_by_irrep(counts, core))
    assert found["energies_hartree"] == pytest.approx([mc.e_tot], abs=1e-8)


@pytest.mark.parametrize(
    "below", [pytest.param(["--core", "Ag=3,B1u=2"], marks=pytest.mark.long), ["--cas", "4,4"]]
)
def test_active_orbitals_of_irreps_of_a_linear_molecule_are_whole_shells(run, below):
    """All orbitals of irreps without active ones are doubly occupied, also those above the lowest active one."""
    found = run(N2, "--active", "B2u=1,B3u=1,B2g=1,B3g=1", *below, "--casci")
    mf = symmetric_mean_field(N2)
    mc = mcscf.CASCI(mf, 4, 4)
    mc.verbose, mc.fcisolver.wfnsym = 0, "A1g"
    mc.kernel(mc.sort_mo_by_irrep(dict.fromkeys(("E1ux", "E1uy", "E1gx", "E1gy"), 1), {"A1g": 3, "A1u": 2}))
    assert found["energies_hartree"] == pytest.approx([mc.e_tot], abs=1e-8)


STATES = ("--cas", "4,4", "--states", "A1:0:2,B1:2:1")


def of_several_solvers(method, weights):
    mf = symmetric_mean_field(WATER)
    solvers = []
    for irrep, spin, roots in (("A1", 0, 2), ("B1", 2, 1)):
        each = (fci.direct_spin1_symm if spin else fci.direct_spin0_symm).FCI(mf.mol)
        each.wfnsym, each.spin, each.nroots, each.conv_tol = irrep, spin, roots, 1e-13
        solvers.append(each)
    mc = getattr(mcscf, method)(mf, 4, 4)
    mc.verbose = 0
    mc = mcscf.state_average_mix(mc, solvers, weights)
    if method == "CASSCF":
        mc.conv_tol, mc.conv_tol_grad = 1e-10, 1e-6
    mc.kernel()
    return mc


def test_states_of_several_irreps_and_spins_are_averaged(run):
    weights = [0.5, 0.2, 0.3]
    found = run(WATER, *STATES, "--weights", "0.5,0.2,0.3")
    mc = of_several_solvers("CASSCF", weights)
    assert found["average_energy_hartree"] == pytest.approx(mc.e_tot, abs=1e-8)
    assert found["energies_hartree"] == pytest.approx(mc.e_states, abs=1e-5)  # of first order in orbitals
    assert [each["irrep"] for each in found["roots"]] == ["A1", "A1", "B1"]
    assert [each["spin_square"] for each in found["roots"]] == pytest.approx([0, 0, 2], abs=1e-6)
    assert [each["irrep"] for each in found["spaces"]] == ["A1", "B1"]


def test_states_of_several_irreps_and_spins_of_one_set_of_orbitals(run):
    found = run(WATER, *STATES, "--casci", "--nevpt2")
    mc = of_several_solvers("CASCI", [0.5, 0.25, 0.25])
    assert found["energies_hartree"] == pytest.approx(mc.e_states, abs=1e-8)
    alone = run(WATER, "--cas", "4,4", "--states", "B1:2:1", "--casci", "--nevpt2")
    for name in ("energies_hartree", "nevpt2_energies_hartree"):
        assert found[name][2] == pytest.approx(alone[name][0], abs=1e-8)


def test_both_components_of_a_degenerate_state_are_averaged(run):
    """The orbitals are symmetric about the axis, though each state is not."""
    text = "2\nhydroxyl\nO 0 0 0\nH 0 0 0.97\n"
    first, second = run(text, "--cas", "5,4", "--states", "B1:1:1,B2:1:1")["energies_hartree"]
    assert first == pytest.approx(second, abs=1e-8)


def test_states_of_several_spins_of_orbitals_that_atomic_ones_span(run):
    given = ("--avas", "N 2p", "--casci")
    found = run(N2, *given, "--states", "A:0:1,A:2:1")
    alone = run(N2, *given, "--states", "A:2:1")
    assert found["energies_hartree"][1] == pytest.approx(alone["energies_hartree"][0], abs=1e-9)
    assert [round(each["spin_square"], 6) for each in found["roots"]] == [0, 2]


def test_orbitals_of_other_states_are_refused(run, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    weights = ["--weights", "0.5,0.5", "--checkpoint", str(kept)]
    first = run(WATER, "--cas", "4,4", "--states", "A1:0:1,B1:2:1", *weights)
    again = run(WATER, "--cas", "4,4", "--states", "A1:0:1,B1:2:1", *weights)
    assert again["energies_hartree"] == pytest.approx(first["energies_hartree"], abs=1e-5)
    with pytest.raises(OutcoreError, match="states"):
        run(WATER, "--cas", "4,4", "--states", "A1:0:1,B1:0:1", *weights)


def test_states_mix_by_quasi_degenerate_nevpt2(run, capsys):
    plain = run(LIH, "--cas", "2,2", "--roots", "2", "--nevpt2")
    found = run(LIH, "--cas", "2,2", "--roots", "2", "--nevpt2", "--quasi-degenerate")
    assert "QD-NEVPT2 energy of root 2" in capsys.readouterr().out
    for name in ("nevpt2_energies_hartree", "nevpt2_classes_hartree"):
        np.testing.assert_equal(
            *(
                json.loads(json.dumps(each[name]), parse_float=lambda x: round(float(x), 6))
                for each in (plain, found)
            )
        )
    energies, vectors = np.linalg.eigh(found["qd_nevpt2_hamiltonian_hartree"])
    assert found["qd_nevpt2_energies_hartree"] == pytest.approx(energies, abs=1e-10)
    np.testing.assert_allclose(abs(np.array(found["qd_nevpt2_mixing"])), abs(vectors), atol=1e-8)
    assert energies[0] < min(plain["nevpt2_energies_hartree"]) - 1e-7


def test_an_estimate_has_each_space_of_states(run):
    found = run(WATER, *STATES, "--estimate")
    assert [each["irrep"] for each in found["spaces"]] == ["A1", "B1"]
    assert len(found["estimates"]) == 2 and found["estimate"] == found["estimates"][0]


def test_states_are_averaged_with_their_weights(run, capsys):
    found = run(LIH, "--cas", "2,2", "--roots", "2", "--weights", "0.7,0.3", "--nevpt2")
    first, second = found["energies_hartree"]
    assert found["average_energy_hartree"] == pytest.approx(0.7 * first + 0.3 * second, abs=1e-8)
    mf = mean_field(LIH)
    mc = mcscf.CASSCF(mf, 2, 2)
    mc.verbose, mc.fcisolver, mc.conv_tol = 0, fci.direct_spin0.FCI(mf.mol), 1e-10
    mc = mc.state_average([0.7, 0.3])
    mc.kernel()
    assert found["average_energy_hartree"] == pytest.approx(mc.e_tot, abs=1e-8)
    assert len(found["nevpt2_energies_hartree"]) == 2
    output = capsys.readouterr().out
    assert "CASSCF average" in output and "NEVPT2 energy of root 2" in output


@pytest.mark.parametrize("mixes", [[], ["--quasi-degenerate"]], ids=["states", "states that mix"])
def test_exact_integrals_of_nevpt2_are_decomposed_once_for_all_roots(run, monkeypatch, mixes):
    from outcore.chem.ri import cholesky

    made, search = [], cholesky.search
    monkeypatch.setattr(cholesky, "search", lambda *given: made.append(given) or search(*given))
    run(LIH, "--cas", "2,2", "--casci", "--roots", "2", "--nevpt2", *mixes)
    assert len(made) == 1


def test_a_run_goes_on_from_kept_orbitals(run, tmp_path, capsys):
    kept = tmp_path / "kept"
    kept.mkdir()
    arguments = ["--active", "1,2", "--checkpoint", str(kept)]
    with pytest.raises(NotConverged, match="raise --iterations"):
        run(LIH, *arguments, "--iterations", "1")
    found = run(LIH, *arguments)
    assert "begins with orbitals of iteration 1" in capsys.readouterr().out
    assert found["energies_hartree"] == pytest.approx([of_pyscf(mean_field(LIH), 2, 2).e_tot], abs=1e-8)
    with pytest.raises(OutcoreError, match="another choice of active orbitals"):
        run(LIH, "--cas", "2,2", "--checkpoint", str(kept))


def test_a_run_goes_on_from_the_states_of_a_long_ci(run, tmp_path, capsys, monkeypatch):
    """The run says so at once; a CASSCF solves again after that."""
    kept = tmp_path / "kept"
    kept.mkdir()
    # More determinants than the start has.
    arguments = ["--cas", "10,8", "--checkpoint", str(kept)]
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    with pytest.MonkeyPatch.context() as patched, pytest.raises(KeyboardInterrupt):
        told = FCI._told

        def stopped(self, iteration, states):
            told(self, iteration, states)
            if iteration.number == 2:
                raise KeyboardInterrupt

        patched.setattr(FCI, "_told", stopped)
        run(HNO, "--casci", *arguments)
    capsys.readouterr()
    found = run(HNO, "--casci", *arguments)
    assert "began with states of iteration 2 of another run" in capsys.readouterr().out
    mc = of_pyscf(mean_field(HNO), 8, 10, method="CASCI")
    assert found["energies_hartree"] == pytest.approx([mc.e_tot], abs=1e-8)
    with pytest.MonkeyPatch.context() as patched, pytest.raises(KeyboardInterrupt):
        solves, kernel = [], FCI.kernel

        def second(self, *given):
            solves.append(self)
            if len(solves) == 2:
                raise KeyboardInterrupt
            return kernel(self, *given)

        patched.setattr(FCI, "kernel", second)
        run(HNO, *arguments)
    assert "began with states of iteration" in capsys.readouterr().out


def test_nevpt2_goes_on_after_a_casscf_that_is_not_optimised_again(run, tmp_path, capsys, monkeypatch):
    from outcore.chem.nevpt2.perturbers import Perturbers

    kept = tmp_path / "kept"
    kept.mkdir()
    arguments = ["--cas", "6,5", "--nevpt2"]
    expected = run(WATER, *arguments)
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    moments, calls = Perturbers.moments, []

    def counted(self, *given):
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return moments(self, *given)

    monkeypatch.setattr(Perturbers, "moments", counted)
    with pytest.raises(KeyboardInterrupt):
        run(WATER, *arguments, "--checkpoint", str(kept))
    capsys.readouterr()
    found = run(WATER, *arguments, "--checkpoint", str(kept))
    output = capsys.readouterr().out
    assert "has converged in iteration" in output and "not used" not in output
    assert len(calls) == 2 + 2 - 1  # of core and virtual orbitals, but for the one that is kept
    for name in ("energies_hartree", "nevpt2_energies_hartree"):
        assert found[name] == pytest.approx(expected[name], abs=1e-7)


def test_a_part_of_a_degenerate_shell_is_refused(run):
    with pytest.raises(OutcoreError, match="a degenerate shell is active in part; take whole shells"):
        run(LIH, "--cas", "2,3")


def test_an_estimate_computes_no_energy(run):
    found = run(WATER, "--cas", "4,4", "--estimate")
    assert found["determinants"] == 10 and found["estimate"]["memory_bytes"] > 0
    assert "energies_hartree" not in found and found["least_memory_bytes"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --cas N,M, --active or --avas"),
        (["--cas", "4"], "two numbers are needed"),
        (["--cas", "3,4"], "3 of 10 electrons leave no pairs"),
        (["--cas", "6,2"], "--cas has 6 electrons, but the active orbitals of the SCF have 4"),
        (["--cas", "4,9"], "3 doubly occupied and 9 active orbitals, but there are 7"),
        (["--cas", "4,4", "--active", "3,4,5"], "--cas has 4 orbitals, --active 3"),
        (["--active", "4"], "give a list"),
        (["--active", "4,9"], "9"),
        (["--cas", "4,4", "--avas", "O 2p"], "--cas and --active have no effect with it"),
        (
            ["--cas", "4,4", "--estimate", "--write-fcidump", "F"],
            "--write-fcidump has no effect with --estimate",
        ),
        (["--avas", "O 2p,N 2p"], "'N 2p' is not among the atomic orbitals O 1s, O 2s, O 2p, H 1s"),
        (["--avas", "O 2p,"], "'' is not among"),
        (["--avas", "O 2(p"], "is not among"),
        (["--avas", "O 2p", "--avas-threshold", "0.9999"], "no orbital has a share of 0.9999"),
        (["--avas", "O 2p", "--estimate"], "--avas has no effect with --estimate"),
        (["--cas", "4,4", "--avas-threshold", "0.5"], "--avas-threshold has no effect without --avas"),
        (["--cas", "4,4", "--weights", "1.0"], "for each of several --roots"),
        (["--cas", "4,4", "--roots", "2", "--weights", "0.5,0.6"], "add up to 1"),
        (["--cas", "4,4", "--casci", "--iterations", "9"], "--iterations has no effect with --casci"),
        (["--cas", "4,4", "--frozen", "1"], "--frozen has no effect without --nevpt2"),
        (["--cas", "4,4", "--roots", "2", "--quasi-degenerate"], "no effect without --nevpt2"),
        (["--cas", "4,4", "--nevpt2", "--quasi-degenerate"], "one state, which mixes with none"),
        (["--cas", "4,4", "--density-of", "average"], "--density-of has no effect without --density"),
        (["--cas", "4,4", "--density", "a.npz", "--density-of", "2"], "a number from 1 to 1, or 'average'"),
        (["--cas", "4,4", "--jkbasis", "auto"], "--jkbasis has no effect without --integrals ri"),
        (["--cas", "4,4", "--integrals", "cholesky"], "it may be conventional or ri"),
        (["--cas", "4,4", "--irrep", "Ag"], "irrep"),
        (["--active", "A1=2,B1=1"], "needs either --cas N,M or --core"),
        (["--active", "A1=2,B1=1", "--cas", "4,4"], "--cas has 4 orbitals, --active 3"),
        (["--active", "A1=2,Q=1", "--cas", "4,3"], "irrep Q"),
        (
            ["--active", "A1=2,B1=1", "--core", "A1=2"],
            "doubly occupied orbitals of B2 beside .* the SCF has 1, not 0",
        ),
        (
            ["--active", "A1=1,B1=3", "--cas", "4,4"],
            "3 orbitals of B1, but the molecule has 1",
        ),
        (["--cas", "4,4", "--core", "A1=2"], "--core has no effect without --active of irreps"),
        (["--active", "A1=2", "--core", "2"], "--core 2: give a number for each irrep"),
        (["--avas", "O 2p", "--core", "A1=2"], "--core has no effect with --avas"),
        (["--cas", "4,4", "--states", "A1:0"], "is no irrep, 2S and number of states"),
        (["--cas", "4,4", "--states", "A1:0:1,A1:0:2"], "is named twice"),
        (["--cas", "4,4", "--states", "A1:1:1"], "10 electrons cannot have 2S = 1"),
        (["--cas", "4,4", "--states", "E:0:1"], "irrep E"),
        (["--cas", "4,4", "--states", "A1:0:1", "--roots", "2"], "--roots has no effect with --states"),
        (["--cas", "4,4", "--states", "A1:0:2", "--weights", "1"], "for each of several --roots or --states"),
        (["--cas", "4,4", "--memory", "20MB"], "is the least that is enough"),
    ],
)
def test_what_has_no_effect_or_cannot_be_is_refused(run, arguments, message):
    with pytest.raises(OutcoreError, match=message):
        run(WATER, *arguments)


def test_the_group_that_stands_for_that_of_a_linear_molecule_is_named(run):
    with pytest.raises(OutcoreError, match=r"Sigma_g-.*\(D2h, which stands for Dooh, has Ag, B1g"):
        run(N2, "--cas", "6,6", "--irrep", "Sigma_g-")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cas", "4,4", "--irrep", "Ag"], r"irrep Ag: .*point group C2v has A1, A2, B1, B2"),
        (["--cas", "2,2", "--roots", "5"], "find 5 roots: .*there are at most 4 determinants"),
        (["--cas", "2,2", "--active", "A1=2", "--irrep", "B1"], "have no determinant of irrep B1"),
        (["--cas", "2,2", "--active", "A1=2", "--states", "A1:4:1"], "2 electrons cannot have 2S = 4"),
        (["--active", "A1=2", "--core", "A1=2,B1=2"], "2 orbitals of B1, but the molecule has 1"),
        (["--active", "A1=1", "--core", "A1=4,B1=1,B2=2"], "there are 10 electrons"),
        (["--cas", "10,8"], "0 doubly occupied and 8 active orbitals, but there are 7"),
    ],
)
def test_what_no_orbitals_have_is_refused_before_the_scf(run, monkeypatch, arguments, message):
    monkeypatch.delattr("outcore.chem.casscf.command._Run._mean_field")
    monkeypatch.delattr("outcore.chem.casscf.command._Run._first")
    with pytest.raises(OutcoreError, match=message):
        run(WATER, *arguments)


def test_a_list_of_frozen_orbitals_is_refused_before_the_scf(run, monkeypatch):
    monkeypatch.delattr("outcore.chem.casscf.command._Run._mean_field")
    with pytest.raises(OutcoreError, match="a list of frozen orbitals"):
        run(WATER, "--cas", "4,4", "--nevpt2", "--frozen", "0,1")


def test_open_shells_are_active(run):
    with pytest.raises(OutcoreError, match="orbital 4 is singly occupied, and must be active"):
        run(WATER, "--spin", "2", "--active", "3,5")
    found = run(WATER, "--spin", "2", "--cas", "2,2")
    assert found["roots"][0]["spin_square"] == pytest.approx(2)
    assert np.allclose(found["roots"][0]["occupations"], 1)
