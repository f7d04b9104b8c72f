"""Procedure calls between hosts."""

from __future__ import annotations


def test_calls_with_payloads_of_all_sizes(hosts):
    said = hosts.run(
        """
        import numpy as np
        import outcore

        with outcore.World() as world:
            world.register("twice", lambda caller, header, payload: payload.view(np.int64) * 2)
            good = True
            for size in (0, 1, 300, 5000, 700_000):
                values = np.arange(size) + world.rank
                for process in range(world.size):
                    reply = world.call(process, "twice", payload=values, max_reply_bytes=8 * size).wait()
                    good = good and np.array_equal(reply.view(np.int64), 2 * values)
            tell(good)
            world.barrier()
        """,
        processes=4,
    )
    assert said == ["True"] * 4


def test_many_calls_from_all_to_one(hosts):
    said = hosts.run(
        """
        import outcore

        with outcore.World() as world:
            seen = []
            world.register("note", lambda caller, header, payload: seen.append((caller, header)))
            target = world.size - 1
            requests = [world.call(target, "note", str(i).encode()) for i in range(1000)]
            for request in requests:
                request.wait()
            world.barrier()
            if world.rank == target:
                tell(sorted(seen) == sorted((p, str(i).encode()) for p in range(4) for i in range(1000)))
        """,
        processes=4,
    )
    assert said == ["True"]


def test_served_while_the_target_computes(hosts):
    said = hosts.run(
        """
        import time
        import numpy as np
        import outcore

        with outcore.World() as world:
            world.register("who", lambda caller, header, payload: b"%d" % world.rank)
            world.barrier()
            end = time.monotonic() + 3
            if world.rank == 1:
                while time.monotonic() < end:
                    np.linalg.eigh(np.eye(60))
            else:
                replies = {world.call(1, "who").wait().tobytes() for _ in range(50)}
                tell(replies, time.monotonic() < end)
            world.barrier()
        """,
        processes=2,
    )
    assert said == ["{b'1'} True"]


def test_error_reaches_the_caller(hosts):
    said = hosts.run(
        """
        import socket
        import outcore

        def fails(caller, header, payload):
            raise outcore.OutcoreError(2, "read integrals", path=f"/scratch/of/{socket.gethostname()}")

        with outcore.World() as world:
            world.register("fails", fails)
            if world.rank == 0:
                try:
                    world.call(1, "fails").wait()
                except outcore.OutcoreError as error:
                    tell(error.errno, error.path, error.rank)
            world.barrier()
        """,
        processes=2,
    )
    assert said == ["2 /scratch/of/host1 1"]


def test_who_is_quiet_is_rung_through_the_network(hosts):
    said = hosts.run(
        """
        import time
        import outcore

        def datagrams():  # that have come to this host
            with open("/proc/net/snmp") as file:
                names, numbers = (line.split() for line in file if line.startswith("Udp:"))
            return int(numbers[names.index("InDatagrams")])

        with outcore.World() as world:
            world.register("datagrams", lambda caller, header, payload: b"%d" % datagrams())
            world.barrier()
            if world.rank == 0:
                seen = []
                for _ in range(5):
                    time.sleep(0.2)  # a busy machine lets it look for messages for longer
                    seen.append(int(bytes(world.call(1, "datagrams", max_reply_bytes=20).wait())))
                tell(all(after > before for before, after in zip(seen, seen[1:])))
            world.barrier()
        """,
        processes=2,
    )
    assert said == ["True"]


def test_calls_to_a_process_of_a_host_that_goes_on_without_it_are_errors_soon(hosts):
    said = hosts.run(
        """
        import os
        import signal
        import subprocess
        import sys
        import time

        done = directory / "shared" / "done"
        if "CHILD" not in os.environ:  # the launcher would end the job if its own child died
            child = subprocess.Popen([sys.executable, __file__], env={**os.environ, "CHILD": "1"}, close_fds=False)
            child.wait()
            until = time.monotonic() + 30
            while not done.exists() and time.monotonic() < until:
                time.sleep(0.05)
            sys.exit(0)

        import outcore

        world = outcore.World(scratch=directory / "scratch", memory="100MB")
        world.register("here", lambda caller, header, payload: header)
        world.register("die", lambda caller, header, payload: os.kill(os.getpid(), signal.SIGKILL))
        world.barrier()
        if world.rank == 0:
            world.call(1, "here", b"x").wait()
            time.sleep(0.1)
            begin = time.monotonic()
            for name in ("die", "here"):
                try:
                    world.call(1, name, b"x").wait()
                except outcore.OutcoreError as error:
                    tell(error)
            tell(time.monotonic() - begin < 6)
            done.touch()
            os._exit(0)
        time.sleep(30)
        """,
        processes=2,
    )
    assert said == ["True", *["rank 0: call process 1: Connection reset by peer (it has died)"] * 2]
