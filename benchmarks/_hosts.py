"""Several hosts on one machine: Linux namespaces, each with its own network, name, processes and directories.

A host is a process that sleeps in new namespaces. When it ends, the kernel removes them; it ends with the process
that started it, even if that is killed. The machine itself does not change. One more such process is the switch:
its bridge connects the cables of all hosts, and the launcher runs in its network.

Under `Hosts.directory` all hosts see these directories at the same paths:

    shared     one directory for all hosts
    scratch    a separate directory on each host
    first      a directory of the first host; on the others it is empty and read-only

Tests use these hosts, too.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from outcore.job import launch

NEW = ("--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
START_LIMIT_S = 10
_BURST_BYTES = 1 << 20  # of the token bucket: larger than a packet that the kernel segments later
ENVIRONMENT = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}

# Lines of several processes are mixed up by the time they come out of the launcher.
PRELUDE = """
import os, pathlib, socket
directory = pathlib.Path({directory!r})
def tell(*values):
    with open(directory / "said" / f"{{socket.gethostname()}}-{{os.getpid()}}", "a") as file:
        print(*values, file=file)
def held(place):
    found = {{}}  # by file, which may have two descriptors
    for fd in os.listdir("/proc/self/fd"):
        try:
            if str(place) in os.readlink(f"/proc/self/fd/{{fd}}"):
                status = os.fstat(int(fd))
                found[status.st_ino] = status.st_blocks * 512
        except OSError:  # the descriptor of the list
            pass
    return sum(found.values())
"""


def missing() -> str:
    """The reason why this machine cannot have such hosts; empty if it can."""
    if os.geteuid() != 0:
        return "NO SEVERAL HOSTS: making network namespaces needs root"
    tools = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
    for tool, package in tools.items():
        if not shutil.which(tool, path=ENVIRONMENT["PATH"]):
            return f"NO SEVERAL HOSTS: '{tool}' is missing (apt install {package})"
    try:
        with Namespaces("test", "ip link add first type bridge && ip link add second type veth"):
            return ""
    except OSError as error:
        return f"NO SEVERAL HOSTS: namespaces are not allowed here: {error}"


class Namespaces:
    """A process that sleeps in its own namespaces. Shell commands prepare them."""

    def __init__(self, name: str, commands: str) -> None:
        prepared = f"echo {name} >/proc/sys/kernel/hostname && ip link set lo up && {commands}"
        self._outer = subprocess.Popen(
            ["unshare", *NEW, "sh", "-ec", f"{prepared}\necho ready; exec cat >/dev/null"],
            stdin=subprocess.PIPE,  # closes when this process ends: then cat ends, and all processes with it
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        assert self._outer.stdout is not None
        if self._outer.stdout.readline() != "ready\n":
            raise OSError(f"{name}: {self._outer.communicate(timeout=START_LIMIT_S)[1].strip()}")
        children = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children")
        self.pid = int(children.read_text())

    def within(self, *namespaces: str) -> list[str]:
        """The words before a command that make it run in these namespaces."""
        return ["nsenter", "-t", str(self.pid), *namespaces, "--"]

    def run(self, commands: str) -> None:
        command = [*self.within("-a"), "sh", "-ec", commands]
        subprocess.run(command, check=True, capture_output=True, timeout=START_LIMIT_S, env=ENVIRONMENT)

    def __enter__(self) -> Namespaces:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._outer.kill()  # ends its child too: process 1 of the namespace, with which all its processes end
        self._outer.communicate()


class Hosts:
    """Starts programs on hosts called host0, host1 and so on."""

    def __init__(self, count: int, directory: Path) -> None:
        self.directory = directory
        self._made: list[Namespaces] = []
        for name in ("said", "shared", "scratch", "first", *(f"host{i}" for i in range(count))):
            (directory / name).mkdir()
        try:
            self._make(count)
        except BaseException:
            self.close()
            raise

    def _make(self, count: int) -> None:
        where = shlex.quote(str(self.directory))
        bridge = (
            "ip link add bridge type bridge && ip addr add 10.0.0.254/24 dev bridge && ip link set bridge up"
        )
        switch = Namespaces("switch", bridge)
        self._made.append(switch)
        for i in range(count):
            hide = "" if i == 0 else f"&& mount -t tmpfs -o ro none {where}/first"
            own = f"mount --bind {where}/host{i} {where}/scratch && mount -t tmpfs none /dev/shm {hide}"
            host = Namespaces(f"host{i}", own)
            self._made.append(host)
            cable = ["ip", "link", "add", f"host{i}", "type", "veth", "peer", "eth0", "netns", str(host.pid)]
            subprocess.run([*switch.within("-n"), *cable], check=True, timeout=START_LIMIT_S, env=ENVIRONMENT)
            switch.run(f"ip link set host{i} master bridge up")
            host.run(f"ip addr add {self.address(i)}/24 dev eth0 && ip link set eth0 up")
        self._remote_shell = self.directory / "remote_shell"
        cases = "".join(
            f'{self.address(i)}) exec {shlex.join(host.within("-a"))} sh -c "$*";;\n'
            for i, host in enumerate(self._made[1:])
        )
        self._remote_shell.write_text(
            f'#!/bin/sh\nwhile [ "${{1#-}}" != "$1" ]; do shift; done\nhost=$1; shift\ncase $host in\n{cases}esac\n'
        )
        self._remote_shell.chmod(0o755)

    def limit(self, bits_per_s: float | None) -> None:
        """Limits the rate at which each host sends, with a token bucket. None: no limit."""
        rate = f"tbf rate {bits_per_s:.0f}bit burst {_BURST_BYTES} latency 50ms"
        for host in self._made[1:]:
            host.run("tc qdisc del dev eth0 root 2>/dev/null || true")
            if bits_per_s is not None:
                host.run(f"tc qdisc add dev eth0 root {rate}")

    @contextmanager
    def delayed(self, relay: Path, seconds: float) -> Iterator[None]:
        """Inside the block all that goes from host 0 to another host, or back, arrives so much later. relay: the
        program of `_relay.cpp`, which holds it."""
        switch = self._made[0]
        others = [f"host{i}" for i in range(1, self.count)]
        command = [*switch.within("-n"), str(relay), "near", "far", f"{1e6 * seconds:.0f}"]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # closes when this process ends: then the relay ends
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        ) as process:
            try:
                assert process.stdout is not None
                if process.stdout.readline() != "ready\n":
                    raise OSError(f"{relay}: ended with {process.wait()}")
                switch.run("ip link add behind type bridge && ip link set behind up")
                for name, bridge in (
                    ("near", "bridge"),
                    ("far", "behind"),
                    *((each, "behind") for each in others),
                ):
                    switch.run(f"ip link set {name} master {bridge} up")
                yield
            finally:
                process.kill()
                process.wait()
                for each in others:
                    switch.run(f"ip link set {each} master bridge")
                switch.run("ip link delete behind 2>/dev/null || true")

    @staticmethod
    def address(host: int) -> str:
        return f"10.0.0.{host + 1}"

    @property
    def count(self) -> int:
        return len(self._made) - 1

    def run(self, program: str, processes: int, limit_s: float = 60, **environment: str) -> list[str]:
        """Runs Python code in so many processes, equally many on each host. Returns the lines that they told,
        sorted. The code can use `directory`, `tell(*values)`, and `held(place)`: the bytes on disk of open files of
        the process below a directory, also of files without a name."""
        file = self.directory / "program.py"
        file.write_text(PRELUDE.format(directory=str(self.directory)) + textwrap.dedent(program))
        hosts = ",".join(f"{self.address(i)}:{processes // self.count}" for i in range(self.count))
        launcher = [
            str(launch.find_launcher()),
            "-launcher",
            "ssh",
            "-launcher-exec",
            str(self._remote_shell),
        ]
        command = [*self._made[0].within("-n"), *launcher, "-localhost", "10.0.0.254"]
        command += ["-hosts", hosts, "-n", str(processes), sys.executable, str(file)]
        # Without these settings UCX detects that all hosts are one machine.
        network = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0", "OMP_NUM_THREADS": "1"}
        job = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**ENVIRONMENT, **network, **environment},
        )
        try:
            output, _ = job.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            job.kill()
            for host in self._made[1:]:
                host.run("kill -KILL -1 || true")  # all but process 1, which is the host
            output = f"not done after {limit_s:g} s\n{job.communicate()[0]}"
        said = sorted(line for file in (self.directory / "said").iterdir() for line in _taken(file))
        assert job.returncode == 0, output[-8000:]
        return said

    def clear(self) -> None:
        """Empties the directories."""
        for name in ("shared", "first", *(f"host{i}" for i in range(self.count))):
            for entry in (self.directory / name).iterdir():
                if entry.is_dir():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()

    def close(self) -> None:
        for place in self._made:
            place.close()
        self._made.clear()


def _taken(file: Path) -> list[str]:
    lines = file.read_text().splitlines()
    file.unlink()
    return lines
