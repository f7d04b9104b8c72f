"""Several hosts on one machine: namespaces of Linux, each with network, name, processes and directories of its own.

A host is a process that sleeps in new namespaces; what they hold goes when it ends, and it ends when the tests do,
however they end. Nothing is changed on the machine itself. One more of them is the switch: it has the bridge that
the cables of the hosts are put into, and the launcher runs in its network.

Under `Hosts.directory` there are, at the same paths on all hosts:

    shared     one directory that all see
    scratch    a directory of its own on each host
    first      seen by the first host only; elsewhere it is empty and cannot be written to

Tests have them, too.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from outcore.job import launch

NEW = ("--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
START_LIMIT_S = 10
_BURST_BYTES = 1 << 20  # of a token bucket: more than a packet that the kernel cuts later has
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
    """Why there can be no hosts here; empty if there can."""
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
    """A process that sleeps in namespaces of its own, made ready by shell commands."""

    def __init__(self, name: str, commands: str) -> None:
        prepared = f"echo {name} >/proc/sys/kernel/hostname && ip link set lo up && {commands}"
        self._outer = subprocess.Popen(
            ["unshare", *NEW, "sh", "-ec", f"{prepared}\necho ready; exec cat >/dev/null"],
            stdin=subprocess.PIPE,  # closed when this process ends: then cat does, and with it all processes
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
        """What is put before a command that is to run here."""
        return ["nsenter", "-t", str(self.pid), *namespaces, "--"]

    def run(self, commands: str) -> None:
        command = [*self.within("-a"), "sh", "-ec", commands]
        subprocess.run(command, check=True, capture_output=True, timeout=START_LIMIT_S, env=ENVIRONMENT)

    def __enter__(self) -> Namespaces:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._outer.kill()  # takes its child along, which is process 1 of its namespace: all others go with it
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
        """What each host sends leaves it at this rate, by a token bucket; None: as fast as it can."""
        rate = f"tbf rate {bits_per_s:.0f}bit burst {_BURST_BYTES} latency 50ms"
        for host in self._made[1:]:
            host.run("tc qdisc del dev eth0 root 2>/dev/null || true")
            if bits_per_s is not None:
                host.run(f"tc qdisc add dev eth0 root {rate}")

    @staticmethod
    def address(host: int) -> str:
        return f"10.0.0.{host + 1}"

    @property
    def count(self) -> int:
        return len(self._made) - 1

    def run(self, program: str, processes: int, limit_s: float = 60, **environment: str) -> list[str]:
        """Runs Python code in so many processes, equally many on each host, and gives what they have told, sorted.
        The code finds `directory`, `tell(*values)` and `held(place)`: bytes on disk of files below a directory,
        with a name or without, that the process has open."""
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
        # UCX would find out that all of this is one machine.
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
