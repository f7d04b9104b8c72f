"""The place of scratch files."""

import errno
import os
from types import SimpleNamespace

import pytest

from outcore.base.errors import OutcoreError
from outcore.job import scratch
from outcore.job.scratch import find_scratch


def test_given_scratch_is_used(tmp_path):
    assert find_scratch(tmp_path) == str(tmp_path)


def test_default_scratch_is_writable():
    assert os.access(find_scratch(), os.W_OK)


@pytest.mark.parametrize(("name", "code"), [("none", errno.ENOENT), ("file", errno.ENOTDIR)])
def test_unusable_scratch_is_refused(tmp_path, name, code):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutcoreError, match=str(tmp_path / name)) as caught:
        find_scratch(tmp_path / name)
    assert caught.value.errno == code


class World:
    """The second of two nodes, with two of three processes."""

    size, node_size = 3, 2


@pytest.mark.parametrize(("network", "here"), [(False, 2001), (True, 3001)])
def test_bytes_of_all_processes_are_shared_by_local_disks(monkeypatch, tmp_path, network, here):
    system = SimpleNamespace(network=network)
    monkeypatch.setattr(scratch, "_core", SimpleNamespace(file_system=lambda _: system))
    assert scratch.bytes_here(World(), tmp_path, 3001) == here
