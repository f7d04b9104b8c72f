"""Cores and memory given to the process, also inside control groups and under limits of the process."""

import os

import pytest

import outcore
from outcore.job import resources

GIB = 1 << 30


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of 16 cores and 64 GiB, this process in a control group of version 2; files under a root."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))
    for name in ("SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE"):
        monkeypatch.delenv(name, raising=False)
    proc, group = tmp_path / "proc/self", tmp_path / "groups/job"
    proc.mkdir(parents=True)
    group.mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 67108864 kB\nMemAvailable: 41943040 kB\n")
    (proc / "status").write_text("VmSize:\t1048576 kB\nVmRSS:\t1024 kB\nVmData:\t4096 kB\n")
    (proc / "cgroup").write_text("0::/job\n")
    (proc / "mountinfo").write_text("30 23 0:28 / /groups rw - cgroup2 cgroup rw\n")

    def write(limits="", **files):
        for name, text in files.items():
            (group / name.replace("_", ".", 1)).write_text(text)
        (proc / "limits").write_text(limits)
        return tmp_path

    return write


def test_cores_are_those_of_the_affinity_mask(machine):
    assert resources.cores(root=machine()) == 16


def test_cores_are_cut_by_a_quota(machine):
    assert resources.cores(root=machine(cpu_max="250000 100000\n")) == 3


def test_quota_without_a_limit(machine):
    assert resources.cores(root=machine(cpu_max="max 100000\n")) == 16


def test_slurm_gives_less_than_the_mask(machine, monkeypatch):
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "3")
    assert resources.cores(root=machine()) == 3
    assert resources.bound_cores(root=machine()) == 16


def test_memory_left_in_a_group_is_shared_by_its_processes(machine):
    root = machine(
        memory_max=f"{GIB}\n",
        memory_current=f"{GIB // 2}\n",
        memory_stat=f"anon 5\ninactive_file {GIB // 8}\n",
    )
    assert resources.allowance(root=root).bytes == GIB - GIB // 2 + GIB // 8
    assert resources.allowance(5, root=root).bytes == (GIB - GIB // 2 + GIB // 8) // 5
    assert resources.total_memory_bytes(root=root) == GIB
    assert "memory.max" in resources.allowance(root=root).reason
    assert str(root / "groups/job") in resources.allowance(root=root).reason


def test_memory_of_the_machine_without_limits(machine):
    root = machine(memory_max="max\n", memory_current="1000\n")
    assert resources.allowance(2, root=root).bytes == 20 * GIB
    assert resources.hard_allowance(root=root) is None


def test_address_space_is_of_each_process_and_threads_take_some(machine):
    root = machine("Max address space         2147483648           unlimited            bytes\n")
    alone = resources.allowance(root=root)
    assert GIB - (64 << 20) < alone.bytes < GIB  # one is mapped
    assert resources.allowance(8, root=root) == alone
    assert resources.allowance(8, threads=4, root=root).bytes <= alone.bytes - 4 * (32 << 20)
    assert "ulimit -v" in alone.reason and "/proc/self/limits" in alone.reason
    assert resources.hard_allowance(root=root) == alone


def test_own_limits_can_be_read():
    assert 0 < resources.available_memory_bytes() <= resources.total_memory_bytes()
    assert resources.resident_bytes() <= resources.peak_resident_bytes()


def test_budget_that_was_not_chosen_names_what_limits_it():
    with outcore.World("self") as world:
        assert world.budget.origin.startswith("half of the memory left by ")
        with pytest.raises(outcore.OutcoreError, match=r"\(half of the memory left by .* bytes in /"):
            world.budget.reserve(world.budget.limit_bytes + 1, "all")


def test_budget_that_was_chosen_is_that():
    with outcore.World("self", memory="10MB") as world:
        assert world.budget.limit_bytes == 10_000_000
        assert world.budget.origin == ""
