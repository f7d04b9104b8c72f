"""DCSD, CC2, CCD and LCCD of closed shells: energies beside those of other programs, and of spin orbitals."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import IMIDOGEN, WATER, mean_field, open_mean_field

from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.chem.cc.equations import methods
from outcore.chem.cc.plan import assembly
from outcore.cli import main as cli
from outcore.keep import clock

Values = np.ndarray[Any, np.dtype[Any]]

TIGHT = {"conv_tol": 1e-10, "conv_tol_normt": 1e-8}
PLACES = pytest.mark.parametrize(
    "settings",
    [{}, {"block": 3, "storage": "disk", "ladder": "disk"}, {"block": 3, "ladder": "rebuild"}],
    ids=["memory", "disk", "rebuild"],
)


@pytest.fixture(scope="module")
def water() -> Any:
    return mean_field(WATER, "6-31g")


@pytest.fixture(scope="module")
def of_spin_orbitals(water: Any) -> dict[str, float]:
    return {name: doubles_of_spin_orbitals(water, 1, name == "ccd") for name in ("ccd", "lccd")}


def doubles_of_spin_orbitals(mf: Any, frozen: int, squares: bool) -> float:
    """The correlation energy of CCD, or of LCCD without products of amplitudes, from antisymmetric integrals."""
    from pyscf import ao2mo

    c, e = mf.mo_coeff[:, frozen:], np.repeat(mf.mo_energy[frozen:], 2)
    n = c.shape[1]
    g = ao2mo.restore(1, ao2mo.kernel(mf.mol, c), n).repeat(2, 0).repeat(2, 1).repeat(2, 2).repeat(2, 3)
    same = np.arange(2 * n)[:, None] % 2 == np.arange(2 * n) % 2
    g = (g * same[:, :, None, None] * same).transpose(0, 2, 1, 3)
    g = g - g.transpose(0, 1, 3, 2)  # <pq||rs>
    o, v = slice(2 * (mf.mol.nelectron // 2 - frozen)), slice(2 * (mf.mol.nelectron // 2 - frozen), None)
    gaps = e[o, None, None, None] + e[o, None, None] - e[v, None] - e[v]
    t = g[o, o, v, v] / gaps
    oovv = g[o, o, v, v]

    def both(x: Values) -> Values:
        x = x - x.transpose(1, 0, 2, 3)
        return x - x.transpose(0, 1, 3, 2)

    for _ in range(200):
        r = oovv + 0.5 * np.einsum("abcd,ijcd->ijab", g[v, v, v, v], t)
        r += 0.5 * np.einsum("klij,klab->ijab", g[o, o, o, o], t)
        r += both(np.einsum("kbcj,ikac->ijab", g[o, v, v, o], t))
        if squares:
            r += 0.25 * np.einsum("klcd,ijcd,klab->ijab", oovv, t, t, optimize=True)
            r += 0.5 * both(np.einsum("klcd,ikac,jlbd->ijab", oovv, t, t, optimize=True))
            x = 0.5 * np.einsum("klcd,ijac,klbd->ijab", oovv, t, t, optimize=True)
            r -= x - x.transpose(0, 1, 3, 2)
            x = 0.5 * np.einsum("klcd,ikab,jlcd->ijab", oovv, t, t, optimize=True)
            r -= x - x.transpose(1, 0, 2, 3)
        new = r / gaps
        done = abs(new - t).max() < 1e-11
        t = new
        if done:
            return 0.25 * float(np.vdot(oovv, t))
    raise AssertionError("not converged")


def cc2_of_spin_orbitals(mf: Any, frozen: int) -> float:
    """The correlation energy of CC2 of canonical orbitals: singles of CCSD, and doubles that are integrals dressed
    with singles over differences of orbital energies."""
    from pyscf import ao2mo

    c, e = mf.mo_coeff[:, frozen:], np.repeat(mf.mo_energy[frozen:], 2)
    n, count = c.shape[1], 2 * (mf.mol.nelectron // 2 - frozen)
    g = ao2mo.restore(1, ao2mo.kernel(mf.mol, c), n).repeat(2, 0).repeat(2, 1).repeat(2, 2).repeat(2, 3)
    same = np.arange(2 * n)[:, None] % 2 == np.arange(2 * n) % 2
    g = (g * same[:, :, None, None] * same).transpose(0, 2, 1, 3)
    g = g - g.transpose(0, 1, 3, 2)  # <pq||rs>
    o, v = slice(count), slice(count, None)
    core = np.diag(e) - np.einsum(
        "pkqk->pq", g[:, o, :, o]
    )  # without the repulsion of the correlated electrons
    gaps = e[o, None] - e[v]
    both = gaps[:, None, :, None] + gaps[None, :, None, :]
    t1, t2 = np.zeros_like(gaps), g[o, o, v, v] / both
    for _ in range(200):
        x, y = np.eye(2 * n), np.eye(2 * n)
        x[v, o], y[v, o] = -t1.T, t1.T  # exp(-T1) and exp(T1) of orbitals
        h = np.einsum("pr,rs,sq->pq", x, core, y)
        u = np.einsum("pt,qu,tuvw,vr,ws->pqrs", x, x, g, y, y, optimize=True)
        f = h + np.einsum("pkqk->pq", u[:, o, :, o])
        r1 = f[v, o].T + np.einsum("kc,ikac->ia", f[o, v], t2)
        r1 += 0.5 * np.einsum("akcd,ikcd->ia", u[v, o, v, v], t2)
        r1 -= 0.5 * np.einsum("klic,klac->ia", u[o, o, o, v], t2)
        new1, new2 = t1 + r1 / gaps, u[v, v, o, o].transpose(2, 3, 0, 1) / both
        done = max(abs(new1 - t1).max(), abs(new2 - t2).max()) < 1e-11
        t1, t2 = new1, new2
        if done:
            return float(
                0.25 * np.vdot(g[o, o, v, v], t2) + 0.5 * np.einsum("ijab,ia,jb", g[o, o, v, v], t1, t1)
            )
    raise AssertionError("not converged")


def energy(mf: Any, frozen: int, **settings: Any) -> float:
    with CCSD(mf, frozen, comm=None, memory="1GB", threads=1, **TIGHT, **settings) as cc:
        found = cc.kernel()[0]
        assert cc.converged
        return found


@PLACES
@pytest.mark.parametrize("name", ["ccd", "lccd"])
def test_doubles_alone_have_the_energy_of_spin_orbitals(
    water: Any, of_spin_orbitals: dict[str, float], name: str, settings: dict[str, Any]
) -> None:
    found = energy(water, 1, method=name, integrals="conventional", **settings)
    assert abs(found - of_spin_orbitals[name]) < 1e-8


@pytest.mark.parametrize("settings", [{}, {"block": 3, "storage": "disk"}], ids=["memory", "disk"])
def test_cc2_is_that_of_spin_orbitals(water: Any, settings: dict[str, Any]) -> None:
    found = energy(water, 1, method="cc2", integrals="conventional", **settings)
    assert abs(found - cc2_of_spin_orbitals(water, 1)) < 1e-8


def test_cc2_is_that_of_another_program(water: Any) -> None:
    """-76.112583151045 of Psi4 1.3.2, with an SCF of -75.983978960889: energy("cc2") of these atoms in 6-31G,
    scf_type pk, freeze_core, e_convergence 1e-11, d_convergence and r_convergence 1e-10."""
    found = energy(water, 1, method="cc2", integrals="conventional")
    assert abs(found - (75.983978960889 - 76.112583151045)) < 1e-8


def test_lccd_is_that_of_another_program(water: Any) -> None:
    """-0.133978491341 of Psi4 1.3.2, energy("lccd") with cc_type conv, scf_type pk, freeze_core true,
    e_convergence and d_convergence 11, r_convergence 9."""
    found = energy(water, 1, method="lccd", integrals="conventional")
    assert abs(found + 0.133978491341) < 1e-8


@pytest.mark.memory
@pytest.mark.parametrize(
    "name", ["cc2", *(pytest.param(each, marks=pytest.mark.long) for each in ("dcsd", "ccd", "lccd"))]
)
def test_a_method_runs_in_the_least_memory(name: str, tmp_path: Path) -> None:
    """In fresh processes, which hold nothing else yet."""
    path, found = tmp_path / "water.xyz", tmp_path / "found.json"
    path.write_text("3\nwater\n" + WATER.replace("; ", "\n") + "\n")
    command = [sys.executable, "-m", "outcore", "ccsd", path, "--method", name, "--basis", "cc-pvdz"]
    command += ["--frozen", "1", "--threads", "1", "--scratch", tmp_path]
    command += ["--json", found, "--cc-tol", "1e-9", "--amplitude-tol", "1e-7"]

    def run(*more: str) -> str:
        ended = subprocess.run([*map(str, command), *more], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    least = re.search(r"least memory: (\d+) MB", run("--estimate"))
    assert least is not None
    energies, results = [], dict[str, Any]()
    for memory in ("2GB", f"{least[1]}MB"):
        run("--memory", memory)
        results = json.loads(found.read_text())
        energies.append(results[f"{name}_correlation_hartree"])
    assert abs(energies[1] - energies[0]) < 1e-8
    assert results["peak_memory_bytes"] <= results["memory_budget_bytes"] == int(least[1]) * 10**6


def test_ccd_is_that_of_pyscf(water: Any) -> None:
    from pyscf.cc.ccd import CCD

    peer = CCD(water, frozen=1)
    peer.conv_tol, peer.conv_tol_normt = 1e-11, 1e-9
    peer.kernel()
    assert abs(energy(water, 1, method="ccd", integrals="conventional") - peer.e_corr) < 1e-8


@pytest.mark.parametrize(
    "settings",
    [
        {},
        *(
            pytest.param({"block": 3, **each}, marks=pytest.mark.long)
            for each in ({"storage": "disk", "ladder": "disk"}, {"ladder": "rebuild"})
        ),
    ],
    ids=["memory", "disk", "rebuild"],
)
def test_dcsd_of_water_is_that_of_another_program(settings: dict[str, Any]) -> None:
    """-0.219150244853825 of ElemCo.jl's tests, whose reference is 1.5e-8 Hartree above this one's."""
    import pyscf

    atoms = "O 0 0 -0.130186067; H 0 1.489124508 1.033245507; H 0 -1.489124508 1.033245507"
    mol = pyscf.M(atom=atoms, unit="bohr", basis="cc-pvdz", verbose=0)
    mf = mol.RHF().density_fit(auxbasis="cc-pvtz-jkfit").run(conv_tol=1e-12)
    found = energy(mf, 1, method="dcsd", integrals="ri", auxbasis="cc-pvdz-ri", **settings)
    assert abs(found + 0.219150244853825) < 1e-8


def test_dcsd_of_two_electrons_is_exact() -> None:
    from pyscf import fci

    mf = mean_field("H 0 0 0; H 0 0 1.4", "6-31g")
    exact = fci.FCI(mf).kernel()[0] - mf.e_tot
    assert abs(energy(mf, 0, method="dcsd", integrals="conventional") - exact) < 1e-8


def test_dcsd_of_two_molecules_is_twice_that_of_one() -> None:
    one, two = (
        energy(mean_field(atoms, "6-31g"), 0, method="dcsd", integrals="conventional")
        for atoms in ("H 0 0 0; H 0 0 1.4", "H 0 0 0; H 0 0 1.4; H 0 500 0; H 0 500 1.4")
    )
    assert abs(two - 2 * one) < 1e-8


@pytest.mark.parametrize(
    "name",
    [
        "dcsd",
        "cc2",
        pytest.param("ccd", marks=pytest.mark.long),
        pytest.param("lccd", marks=pytest.mark.long),
    ],
)
def test_a_method_goes_on_from_its_own_amplitudes_alone(
    water: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    common = {"comm": None, "memory": "1GB", "threads": 1, "checkpoint": tmp_path / "kept"}
    equations, stopped = assembly.OF_CLOSED_SHELLS[name], 0
    right = equations._add_pairs

    def stop(*given: Any, **options: Any) -> None:
        nonlocal stopped
        stopped += 1
        if stopped == 3:
            raise KeyboardInterrupt
        right(*given, **options)

    with monkeypatch.context() as patched:
        first = CCSD(water, 1, method=name, block=8, **TIGHT, **common)
        first.prepare()
        patched.setattr(equations, "_add_pairs", stop)
        with pytest.raises(KeyboardInterrupt):
            first.kernel()
        first.close()
    title, other = methods.of(name).title, "ccsd"
    with pytest.raises(OutcoreError, match=f"of {title}"):
        CCSD(water, 1, method=other, **TIGHT, **common).kernel()
    with CCSD(water, 1, method=name, block=3, **TIGHT, **common) as second:
        assert abs(second.kernel()[0] - energy(water, 1, method=name)) < 1e-8
        assert second.found == 2


def test_singles_are_zero_where_there_are_none(water: Any, tmp_path: Path) -> None:
    with CCSD(water, 1, comm=None, memory="1GB", threads=1) as cc:
        cc.kernel()
        cc.save_amplitudes(tmp_path / "ccsd.h5")
    given = {"method": "ccd", "from_amplitudes": tmp_path / "ccsd.h5", **TIGHT}
    with CCSD(water, 1, comm=None, memory="1GB", threads=1, **given) as cc:
        found = cc.kernel()[0]
        assert not cc.t1.any()
    assert abs(found - energy(water, 1, method="ccd")) < 1e-8


def test_what_a_method_has_not_is_refused_by_name(water: Any) -> None:
    with pytest.raises(OutcoreError, match="method 'cc3' is none of ccsd, dcsd, cc2, ccd, lccd"):
        CCSD(water, method="cc3", comm=None)
    with pytest.raises(OutcoreError, match=r"^DCSD: .*it is of closed shells"):
        CCSD(open_mean_field("UHF", IMIDOGEN, "sto-3g"), method="dcsd", comm=None)
    with pytest.raises(OutcoreError, match=r"^CC2: .*it is of closed shells"):
        CCSD(open_mean_field("UHF", IMIDOGEN, "sto-3g"), method="cc2", comm=None)
    with pytest.raises(OutcoreError, match="CC2 has no ladder"):
        CCSD(water, method="cc2", ladder="disk", comm=None)
    with pytest.raises(OutcoreError, match="not for LCCD"):
        CCSD(water, method="lccd", fno=1e-4, comm=None)
    with (
        CCSD(water, 1, method="ccd", comm=None, conv_tol=0.9, conv_tol_normt=0.9, memory="1GB") as cc,
        pytest.raises(OutcoreError, match=r"\(T\) is of CCSD, not of CCD"),
    ):
        cc.kernel()
        cc.ccsd_t()
    with CCSD(water, 1, method="cc2", comm=None, conv_tol=0.9, conv_tol_normt=0.9, memory="1GB") as cc:
        cc.kernel()
        for words, step in (
            ("states are of CCSD, not of CC2", cc.eomee_ccsd_singlet),
            ("of CCSD, not of CC2", cc.ccsd_t),
            ("of CCSD, not of CC2", cc.solve_lambda),
        ):
            with pytest.raises(OutcoreError, match=words):
                step()


def test_amplitudes_of_another_method_are_not_written_as_those_of_ccsd(water: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    with CCSD(water, 1, method="ccd", comm=None, conv_tol=0.9, conv_tol_normt=0.9, memory="1GB") as cc:
        cc.kernel()
        with pytest.raises(OutcoreError, match="the file is of CCSD, not of CCD"):
            cc.save_amplitudes(path)
    assert not path.exists()


def test_a_method_is_its_equations() -> None:
    folder = Path(methods.__file__).parent
    lengths = {path.stem: len(path.read_text().splitlines()) for path in folder.glob("[!_]*.py")}
    assert set(lengths) == set(methods.METHODS) - {"ccsd"}
    assert set(assembly.OF_CLOSED_SHELLS) == set(methods.METHODS)
    assert max(lengths.values()) <= 60


def test_the_command_has_methods(tmp_path: Path, capsys: Any) -> None:
    path, found = tmp_path / "water.xyz", tmp_path / "found.json"
    path.write_text("3\nwater\n" + WATER.replace("; ", "\n") + "\n")
    command = ["ccsd", str(path), "--basis", "6-31g", "--integrals", "conventional", "--frozen", "1"]
    command += ["--threads", "1", "--memory", "1GB", "--scratch", str(tmp_path), "--json", str(found)]
    limits = ["--cc-tol", "1e-9", "--amplitude-tol", "1e-7"]
    assert cli.run([*command, *limits, "--method", "dcsd"]) == 0
    results = json.loads(found.read_text())
    assert (
        abs(results["dcsd_correlation_hartree"] - energy(mean_field(WATER, "6-31g"), 1, method="dcsd")) < 1e-8
    )
    assert "ccsd_energy_hartree" not in results
    output = capsys.readouterr().out
    assert output.startswith("DCSD/6-31g") and "DCSD energy" in output and "T1 diagnostic" in output
    assert cli.run([*command, "--method", "lccd", "--estimate"]) == 0
    assert "LCCD" in capsys.readouterr().out
    assert cli.run([*command, "--method", "cc2", "--estimate"]) == 0
    output = capsys.readouterr().out
    assert "CC2" in output and "ladder" not in output
    with pytest.raises(OutcoreError, match="--ladder has no effect with --method cc2"):
        cli.run([*command, "--method", "cc2", "--ladder", "disk"])
    with pytest.raises(OutcoreError, match="--triples has no effect with --method ccd"):
        cli.run([*command, "--method", "ccd", "--triples"])
    with pytest.raises(OutcoreError, match="--amplitudes has no effect with --method dcsd"):
        cli.run([*command, "--method", "dcsd", "--amplitudes", "t.h5"])
    with pytest.raises(OutcoreError, match=r"--method dcsd: .*it is of closed shells"):
        cli.run([*command, "--method", "dcsd", "--charge", "1", "--spin", "1"])
