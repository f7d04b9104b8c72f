"""The hosts themselves: they are separate, and nothing of them stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from outcore.cli.bench import load


def test_hosts_have_networks_and_directories_of_their_own(hosts):
    said = hosts.run(
        """
        import os
        import socket
        import mpi4py.MPI

        (directory / "scratch" / socket.gethostname()).touch()
        mpi4py.MPI.COMM_WORLD.Barrier()
        names = sorted(name for _, name in socket.if_nameindex() if name in ("eth0", "bridge"))
        tell(socket.gethostname(), names, os.listdir(directory / "scratch"))
        """,
        processes=2,
    )
    hosts.clear()
    assert said == ["host0 ['eth0'] ['host0']", "host1 ['eth0'] ['host1']"]


ROUND_TRIPS = """
import time
from mpi4py import MPI
comm, word = MPI.COMM_WORLD, bytearray(8)
comm.Barrier()
taken = []
for _ in range(10):
    begun = time.perf_counter()
    if comm.rank == 0:
        comm.Send(word, 1)
        comm.Recv(word, 1)
    else:
        comm.Recv(word, 0)
        comm.Send(word, 0)
    taken.append(time.perf_counter() - begun)
if comm.rank == 0:
    tell(min(taken))
"""


def test_a_relay_holds_what_goes_between_hosts(hosts, tmp_path):
    relay = load("_workers").compile_worker("_relay.cpp", tmp_path)

    def seconds() -> float:
        return float(hosts.run(ROUND_TRIPS, processes=2)[0])

    with hosts.delayed(relay, 0.05):
        assert seconds() >= 0.1
    assert seconds() < 0.1


def test_a_program_that_fails_or_hangs_is_ended(hosts):
    with pytest.raises(AssertionError, match="ValueError: wrong"):
        hosts.run("raise ValueError('wrong')", processes=2)
    with pytest.raises(AssertionError, match="not done after 1 s"):
        hosts.run("import time\ntime.sleep(1000)", processes=2, limit_s=1)
    assert hosts.run("tell('next')", processes=2) == ["next"] * 2


def test_nothing_stays_of_hosts_whose_maker_is_killed(hosts, tmp_path):
    code = (
        "from pathlib import Path\nimport several\n"
        f"made = several.Hosts(2, Path({str(tmp_path)!r}))\n"
        "print(*[place.pid for place in made._made], flush=True)\ninput()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as maker:
        assert maker.stdout is not None
        pids = [int(word) for word in maker.stdout.readline().split()]
        assert len(pids) == 3
        os.kill(maker.pid, signal.SIGKILL)
    until = time.monotonic() + 20
    while any(_has_network(pid) for pid in pids):
        assert time.monotonic() < until
        time.sleep(0.02)


def _has_network(pid: int) -> bool:
    """Whether a process has a network; a process that ends may not be inspected."""
    try:
        return Path(f"/proc/{pid}/ns/net").exists()
    except PermissionError:
        return True
