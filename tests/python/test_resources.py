"""Cores and memory given to the process, also inside control groups."""

import os

import pytest

from outcore import resources

GIB = 1 << 30


@pytest.fixture
def group(tmp_path, monkeypatch):
    """A control group of version 2 around this process, with files as the kernel writes them."""
    monkeypatch.setattr(resources, "_cgroups", lambda: iter([tmp_path]))

    def write(**files):
        for name, text in files.items():
            (tmp_path / name.replace("_", ".", 1)).write_text(text)

    return write


def test_cores_are_those_of_the_affinity_mask(monkeypatch):
    monkeypatch.setattr(resources, "_cgroups", lambda: iter([]))
    assert resources.cores() == len(os.sched_getaffinity(0))


def test_cores_are_cut_by_a_quota(group, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))
    group(cpu_max="250000 100000\n")
    assert resources.cores() == 3


def test_quota_without_a_limit(group, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))
    group(cpu_max="max 100000\n")
    assert resources.cores() == 16


def test_memory_left_in_a_group(group):
    group(
        memory_max=f"{GIB}\n",
        memory_current=f"{GIB // 2}\n",
        memory_stat=f"anon 5\ninactive_file {GIB // 8}\n",
    )
    assert resources.available_memory_bytes() == GIB - GIB // 2 + GIB // 8
    assert resources.total_memory_bytes() == GIB


def test_full_group_has_nothing_left(group):
    group(memory_max="1000\n", memory_current="2000\n")
    assert resources.available_memory_bytes() == 0


def test_memory_of_the_machine_without_limits(group):
    group(memory_max="max\n", memory_current="1000\n")
    assert GIB // 64 < resources.available_memory_bytes() <= resources.total_memory_bytes()


def test_own_control_groups_can_be_read():
    for path in resources._cgroups():
        assert path.is_dir()
