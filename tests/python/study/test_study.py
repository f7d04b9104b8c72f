"""The studies: molecules, calibration, resumed runs, and the contents of the report."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

pytest.importorskip("pyscf")
pytest.importorskip("matplotlib")

from outcore.study.cases import INTERFACES, MOLECULES, Case, Device, Stream
from outcore.study.chemio_hf import BUDGETS
from outcore.study.passion import FULL, IO_SHARE, QUICK, SECTIONS, Passion, calibrated, corrected
from outcore.study.runner import Outcome, OutOfTime, Runner
from outcore.trace.report import Counter, ProcessCounters, Report


def study(*arguments, **options):
    command = [sys.executable, "-m", "outcore", "study", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, **options)


@pytest.mark.parametrize(
    ("size", "functions"), [("SMALL", 108), ("MEDIUM", 140), ("LARGE", 285), ("C14H8F6", 316), ("TINY", 37)]
)
def test_molecules_have_the_sizes_of_the_studies(size, functions):
    assert MOLECULES[size].functions == functions
    mol = MOLECULES[size].build()
    assert mol.nao == functions
    assert mol.spin == 0


def outcome(case, seconds, **operations):
    """One process; operations are (count, blocked seconds)."""
    counters = {
        name: Counter(count, 0, int(blocked * 1e9), int(blocked * 1e9))
        for name, (count, blocked) in operations.items()
    }
    report = Report((ProcessCounters(0, "a", seconds, {"file": counters}),))
    return Outcome(case, {"report": report.to_dict(), "energy_hartree": -1.0})


def test_plain_records_on_the_calibrated_storage_take_the_share_of_the_study():
    pilot = outcome(Case("LARGE"), 21.0, read_async=(10_000, 0.5), write_async=(1000, 0.5))
    overhead = 2e-5
    device = calibrated(pilot, overhead)
    moving = pilot.case.buffer_bytes / device.bandwidth_bytes_per_s
    each = device.latency_s + overhead
    io = 10_000 * (2 * each + moving) + 1000 * (3 * each + moving)
    assert io / (io + 20.0) == pytest.approx(IO_SHARE, abs=0.005)  # three digits are kept


@pytest.mark.parametrize("slowness", [0.7, 1.0, 1.4])
def test_a_trial_corrects_the_calibration(slowness):
    """If requests take longer than computed, the storage is made faster by the same factor."""
    overhead = 2e-5
    device = Device(1e9, 1e-4, 4)

    def io(on, moved=10_000, requests=2):
        each = on.latency_s + overhead
        return slowness * moved * (requests * each + 65536 / on.bandwidth_bytes_per_s)

    compute = 1.9
    trial = outcome(
        Case("LARGE", interface="fortran", device=device), compute + io(device), read=(10_000, io(device))
    )
    better = io(corrected(device, trial, overhead))
    assert better / (better + compute) == pytest.approx(IO_SHARE, abs=0.005)


def test_every_case_of_a_section_has_files_of_its_own():
    device = Device(1e9, 1e-4, 4)
    for plan in (FULL, QUICK):
        passion = Passion.__new__(Passion)
        passion.plan = plan
        named = {}
        for section in SECTIONS.values():
            for case in section(passion, device):
                assert named.setdefault(case.key, case) == case


def test_the_full_study_varies_what_the_study_varied():
    passion = Passion.__new__(Passion)
    passion.plan = FULL
    device = Device(1e9, 1e-4, 4)
    cases = [case for section in SECTIONS.values() for case in section(passion, device)]
    assert {case.molecule for case in cases} == {"SMALL", "MEDIUM", "LARGE"}
    assert {case.buffer_bytes >> 10 for case in cases} == {64, 128, 256}
    assert {case.processes for case in cases} == {1, 2, 4}
    assert {case.interface for case in cases} == set(INTERFACES)
    emulated = [case.device for case in cases if case.device]
    assert {each.disks for each in emulated} == {1, 2, 4, 8}
    assert {each.stripe_bytes >> 10 for each in emulated} == {16, 32, 64, 128}


def test_the_setting_of_a_device_is_read_back_by_the_engine(tmp_path):
    device = Device(2.5e8, 1.25e-4, 4, 32 << 10)
    code = "from outcore import _core; print(_core.emulation())"
    environment = os.environ | {"OUTCORE_THROTTLE": device.setting(tmp_path / "clock")}
    answer = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "4 disks of 250 MB/s, striped by 32768 bytes, latency 0.125 ms, shared" in answer.stdout


def test_a_run_on_an_emulated_storage_says_so(tmp_path):
    small = MOLECULES["TINY"]
    result = tmp_path / "result.json"
    answer = subprocess.run(
        [
            *(sys.executable, "-m", "outcore", "scf", str(small.path()), "--basis", small.basis),
            *("--scratch", str(tmp_path), "--json", str(result)),
        ],
        env=dict(os.environ, OUTCORE_THROTTLE="bandwidth=1GB,latency=1ms"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "EMULATED storage: a disk of 1000 MB/s" in answer.stdout
    assert "a disk of 1000 MB/s" in json.loads(result.read_text())["emulated"]


class Pretended(Runner):
    """A runner whose runs take given times."""

    def __init__(self, directory, seconds, **options):
        super().__init__(directory, None, **{"within_s": None, "repeats": 1, "say": print} | options)
        self.seconds = list(seconds)

    def _once(self, case, events):
        return outcome(case, self.seconds.pop(0), read_async=(1, 0.0))


def test_the_median_of_several_runs_counts(tmp_path):
    runner = Pretended(tmp_path, [3.0, 1.0, 2.0], repeats=3)
    assert runner.run(Case("TINY")).seconds == 2.0


def test_what_has_been_run_is_not_run_again(tmp_path):
    case = Case("TINY")
    assert Pretended(tmp_path, []).known(case) is None
    Pretended(tmp_path, [5.0]).run(case)
    again = Pretended(tmp_path, [])
    assert again.run(case).seconds == 5.0
    with pytest.raises(IndexError):  # another case is another run
        again.run(replace(case, processes=2))


def test_a_run_of_another_case_under_its_name_is_refused(tmp_path):
    from outcore.base.errors import OutcoreError

    few, many = Stream(components=2, records=64), Stream(components=2, records=128)
    assert few.key == many.key
    Pretended(tmp_path, [5.0]).run(few)
    with pytest.raises(OutcoreError, match="records = 64, now it is 128"):
        Pretended(tmp_path, []).known(many)


def test_runs_of_the_small_molecule_are_not_reported_as_those_of_the_large_one(tmp_path):
    from outcore.base.errors import OutcoreError
    from outcore.study.chemio_hf import ChemioHf

    small = ChemioHf(tmp_path, tmp_path, None, True, print)
    facts = {"run_seconds": 1.0, "energy_hartree": -1.0, "run": small._problem.as_json()}
    (tmp_path / "runs" / "direct.json").write_text(json.dumps(facts))
    assert [run.name for run in small.known()] == ["direct"]
    with pytest.raises(OutcoreError, match=r"file = .*, now it is .*\.xyz"):
        ChemioHf(tmp_path, tmp_path, None, False, print).known()


def test_no_run_begins_when_time_is_over(tmp_path):
    with pytest.raises(OutOfTime):
        Pretended(tmp_path, [1.0], within_s=-1.0).run(Case("TINY"))


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The quick study, in two calls; a time limit ends the first."""
    directory = tmp_path_factory.mktemp("study") / "report"
    first = study("passion", "--quick", "--out", directory, "--within", 0.01)
    assert first.returncode == 0, first.stderr
    assert "time is over" in first.stderr
    second = study("passion", "--quick", "--out", directory)
    assert second.returncode == 0, second.stderr
    return directory


@pytest.mark.long
@pytest.mark.launcher
def test_the_report_is_complete(done):
    text = (done / "report.md").read_text()
    assert "Not run yet" not in text
    for title in ("What was run", "Direct against disk", "Interfaces", "I/O summaries and request sizes"):
        assert f"## {title}" in text
    for title in ("over time", "Buffer size", "Number of processes", "Stripe factor", "Effects"):
        assert title in text
    for name in ("| read |", "| write |", "| open |", "| all |"):
        assert name in text
    drawn = sorted(path.name for path in done.glob("*.png"))
    assert all(f"]({name})" in text for name in drawn)
    assert {"interfaces.png", "buffers.png", "processes.png", "stripes.png", "effects.png"} <= set(drawn)
    assert {f"tiny-{i}-{q}.png" for i in INTERFACES for q in ("durations", "sizes")} <= set(drawn)


@pytest.mark.long
@pytest.mark.launcher
def test_emulated_results_are_marked_and_only_they(done):
    results = json.loads((done / "results.json").read_text())
    assert results["device"]["latency_s"] > 0
    for run in results["runs"].values():
        assert ("storage:" in run["emulated"]) == (run["case"]["device"] is not None)
    text = (done / "report.md").read_text()
    sections = text.split("\n## ")[1:]
    for section in sections:
        assert section.startswith("What was run") or "mulated" in section or "of this machine" in section


@pytest.mark.long
@pytest.mark.launcher
def test_all_runs_of_a_molecule_agree_on_the_energy(done):
    results = json.loads((done / "results.json").read_text())
    energies = [run["energy_hartree"] for run in results["runs"].values()]
    assert len(energies) > 20
    assert max(energies) - min(energies) < 1e-8
    mol = MOLECULES["TINY"].build()
    from pyscf import scf

    assert energies[0] == pytest.approx(scf.RHF(mol).run(conv_tol=1e-10, verbose=0).e_tot, abs=1e-8)


@pytest.mark.long
@pytest.mark.launcher
def test_plain_records_are_blocked_longer_than_the_library_with_prefetch(done):
    runs = json.loads((done / "results.json").read_text())["runs"]
    io = {i: runs[f"tiny-disk-{i}-64k-p1-d4-u64k"]["io_seconds"] for i in INTERFACES}
    assert io["fortran"] > io["blocking"]  # two requests for one
    assert io["fortran"] > io["asynchronous"]


def test_chemio_hf_goes_from_direct_to_disk(tmp_path):
    answer = study("chemio-hf", "--quick", "--out", tmp_path / "report")
    assert answer.returncode == 0, answer.stderr
    text = (tmp_path / "report" / "report.md").read_text()
    runs = json.loads((tmp_path / "report" / "results.json").read_text())["runs"]
    names = ["direct", *(f"mixed-{share:g}" for share in BUDGETS), "disk", "auto"]
    assert list(runs) == names
    assert all(f"| {name} |" in text for name in names)
    energies = [run["energy_hartree"] for run in runs.values()]
    assert max(energies) - min(energies) < 1e-8
    stored = [runs[name]["stored"]["bytes"] for name in names[1:-1]]
    assert stored == sorted(stored)
    assert (tmp_path / "report" / "budgets.png").is_file()


def test_wrong_names_are_refused(tmp_path):
    answer = study("ression", cwd=tmp_path)
    assert answer.returncode == 2
    assert "passion, chemio-hf" in answer.stderr
    answer = study("passion", "--only", "interfaces,nothing", cwd=tmp_path)
    assert answer.returncode == 2
    assert "nothing" in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_failing_run_is_named_with_what_it_said(tmp_path):
    runner = Runner(tmp_path, str(tmp_path / "gone"), None, 1, print)
    from outcore.base.errors import OutcoreError

    with pytest.raises(OutcoreError, match="run tiny-disk-asynchronous-64k-p1-machine") as caught:
        runner.run(Case("TINY"))
    assert "gone" in str(caught.value)
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_device_survives_its_file(tmp_path):
    device = Device(2e9, 1e-4, 4)
    (tmp_path / "device.json").write_text(json.dumps({"device": asdict(device)}))
    passion = Passion(Pretended(tmp_path, []), QUICK)
    assert passion.known_device() == device
    assert passion.device() == device
    assert Path(tmp_path / "runs").is_dir()
