"""Tables and plots from results of benchmarks."""

import json
import re

import pytest
from blocks import script

from outcore.cli.bench import Claim, at_least, at_most

plots, results = script("plots"), script("results")
front, memory = script("front"), script("memory")
MACHINE = {
    "processor": "A processor",
    "cores": 2,
    "memory_bytes": 8 << 30,
    "kernel": "6.1.0-name-of-a-host",
    "scratch": {"file_system": "ext4"},
}
CLAIMS = [
    Claim("integrals on disk against NWChem's", 2.5, "times faster", at_least(1.0), "NWChem | 7", "in turns"),
    Claim("waiting", 4.0, "%", at_most(2.0), "", "in turns", interval=(3.0, 5.0), reason="the disk is slow"),
    Claim("what a peer does", None, "x", at_least(1.0), "", "not installed"),
]


@pytest.fixture
def root(tmp_path):
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    found = {"bench": "scf", "date": "2026-01-02T03:04:05+00:00", "machine": MACHINE, "quick": False}
    found |= {"commit": "abc1234", "claims": [claim.as_json() for claim in CLAIMS]}
    (tmp_path / "benchmarks" / "results" / "scf.json").write_text(json.dumps(found))
    return tmp_path


def test_a_result_says_when_where_and_of_which_commit(root):
    text = results.result(root, "scf ../measure/")
    assert "2026-01-02, commit abc1234; A processor, 2 cores, 8 GiB, Linux 6.1.0, scratch on ext4." in text
    assert "name-of-a-host" not in text
    assert "](../measure/plots/scf.svg)" in text


def test_a_result_says_which_cases_are_of_another_day_or_commit(root):
    file = root / "benchmarks" / "results" / "scf.json"
    found = json.loads(file.read_text())
    days = [
        ("a", "2026-01-02T04:00", "abc1234"),
        ("b", "2026-01-01T23:00", "abc1234"),
        ("c", "2026-01-01T22:00", "abc1234"),
    ]
    found["cases"] = [{"name": name, "date": date, "commit": commit} for name, date, commit in days]
    file.write_text(json.dumps(found))
    assert "scratch on ext4. Measured 2026-01-01, commit abc1234: b, c.\n" in results.result(root, "scf")


def test_a_result_has_all_claims(root):
    text = results.result(root, "scf")
    assert "| integrals on disk against NWChem's | 2.5 times faster | >= 1 | yes | NWChem \\| 7 |" in text
    assert "| waiting | 4 % (3 to 5) | <= 2 | **no** |  |" in text
    assert "| what a peer does | not measured | >= 1 |  |  |" in text
    assert "- waiting: missed, the disk is slow." in text
    assert "integrals on disk against NWChem's, and 1 more: in turns" in text


def test_what_is_not_measured_is_told(root):
    assert results.result(root, "eaf").startswith("Not measured yet: run `outcore bench eaf --json")


def test_numbers_without_a_bar_are_folded_away(root):
    change(root, claims=[*CLAIMS, Claim("bytes stored", 3.0, "GB", None, "", "")])
    text = results.result(root, "scf")
    assert text.index('??? note "Other numbers"') < text.index("    | bytes stored | 3 GB |  |")


def test_a_row_of_the_front_says_how_much_faster_and_in_how_much_memory(root):
    change(root, claims=[Claim("time over a peer's", 0.25, "", None, "", "1 s in 500MB, 4 s in 8 GB")])
    row = front.Row("HF", "scf", ("time over .*",), front.time_over, "a peer", r"in (\S+), .* in (8 GB)")
    assert front._line(root, row) == "| HF | **4 times faster** | a peer | 500 MB against 8 GB | 2026-01-02 |"


def test_a_row_of_the_front_says_slower(root):
    assert front.ratio(0.8) == "1.2 times slower"


def test_the_front_refuses_a_short_form(root):
    change(root, quick=True)
    row = front.Row("HF", "scf", ("integrals on disk.*",), front.faster, "NWChem")
    with pytest.raises(front.Refused, match="'HF' is of a short form: run outcore bench scf --json"):
        front._line(root, row)


def test_the_front_refuses_what_is_not_measured(root):
    row = front.Row("HF", "scf", ("what a peer does",), front.faster, "a peer")
    with pytest.raises(front.Refused, match="no measured claim what a peer does"):
        front._line(root, row)


def change(root, bench="scf", claims=CLAIMS, **facts):
    file = root / "benchmarks" / "results" / f"{bench}.json"
    found = json.loads(file.read_text()) | facts | {"claims": [claim.as_json() for claim in claims]}
    file.write_text(json.dumps(found))


def test_a_plot_shows_how_far_a_claim_is_from_its_bar(root):
    (path, text), *others = plots.all_plots(root).items()
    assert path.name == "scf.svg" and not others
    assert text.count("<rect") == 2, "not the claim without a value"
    assert 'class="missed"' in text and 'class="good"' in text
    assert plots.margin(CLAIMS[0].as_json()) == 2.5
    assert plots.margin(CLAIMS[1].as_json()) == 0.5


def test_curves_of_a_benchmark_are_drawn_and_shown(root):
    assert plots.images(root, "ccsd_ladder ../measure/") == ""
    lines = {
        f"1 thread, {way}, {rate} MB/s: an iteration": seconds
        for way, rate, seconds in [
            ("on disk measured", 100, 4.0),
            ("on disk measured", 400, 1.0),
            ("made again measured", 100, 2.0),
            ("made again measured", 400, 2.0),
        ]
    }
    claims = [Claim(name, value, "s", None, "", "") for name, value in lines.items()]
    found = {"bench": "ccsd_ladder", "date": "2026-01-02", "machine": MACHINE, "quick": False, "commit": ""}
    found["claims"] = [claim.as_json() for claim in claims]
    path = root / "benchmarks" / "results" / "ccsd_ladder.json"
    path.write_text(json.dumps(found))
    assert "](../measure/plots/ccsd_ladder_one_thread.svg)" in plots.images(root, "ccsd_ladder ../measure/")
    bench, drawn = plots.drawn(root)["ccsd_ladder_one_thread"]
    assert bench == "ccsd_ladder"
    assert drawn.count("<polyline") == 2
    assert len(set(re.findall(r'class="line (c\d)"', drawn))) == 2, "lines can be told apart"
    assert "speed of the disk, MB/s" in drawn
    assert ">on disk measured<" in drawn


def test_the_table_of_memory_takes_what_claims_have_and_a_dash_else(root):
    name, how = "naphthalene/cc-pVDZ", "once each, with the SCF: 377.2 s in 500MB, 957.4 s in 8 GB"
    given = [
        Claim(f"{name}: CCSD(T), whole run, time over PySCF's", 0.4, "", None, "", how),
        Claim(f"{name}: peak memory over --memory", 0.9, "", None, "", ""),
    ]
    (root / "benchmarks/results/scf.json").rename(root / "benchmarks/results/ccsd_peers.json")
    change(root, "ccsd_peers", given)
    row = "| CCSD(T) | naphthalene/cc-pVDZ | - | 500 MB | 450 MB | - | 6 min | 2026-01-02 |"
    assert memory.memory_table(root, "").splitlines()[2:] == [row]


def test_the_table_of_memory_prefers_what_a_run_says_of_itself(root):
    (root / "benchmarks/results/scf.json").rename(root / "benchmarks/results/ccsd_peers.json")
    sizes = {"memory_budget_bytes": 500e6, "peak_memory_bytes": 450e6, "peak_disk_bytes": 12.3e9}
    run = {"name": "naphthalene/cc-pVDZ", "functions": 180, "run_seconds": 3600.0} | sizes
    change(root, "ccsd_peers", [], runs=[run])
    row = (
        "| CCSD(T) | naphthalene/cc-pVDZ | 180 functions | 500 MB | 450 MB | 12.3 GB | 60 min | 2026-01-02 |"
    )
    assert memory.memory_table(root, "").splitlines()[2:] == [row]


def test_the_table_of_memory_has_no_short_forms(root):
    change(root, claims=CLAIMS, quick=True)
    assert len(memory.memory_table(root, "").splitlines()) == 2
