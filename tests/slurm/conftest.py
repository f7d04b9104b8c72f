"""A Slurm of one controller and two nodes, both of them this machine, started as root for these tests alone.

    make test-slurm            needs Debian's slurm-wlm and munge

`node1` and `node2` have two cores and 3000 MB each, as far as Slurm knows. Its plug-ins bind no process and
make no control groups: Outcore must keep to the limits in the environment variables of Slurm.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

CONFIGURATION = """
ClusterName=outcore
SlurmctldHost=localhost
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool.%n
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.%n.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
JobRequeue=1
ReturnToService=2
SchedulerParameters=sched_interval=1
KillWait=20
NodeName=node1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={port1} CPUs=2 RealMemory=3000
NodeName=node2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={port2} CPUs=2 RealMemory=3000
PartitionName=all Nodes=node1,node2 Default=YES MaxTime=10 State=UP
"""

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "srun", "scontrol", "sinfo")
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
BIN = Path(sys.executable).parent


class Cluster:
    def __init__(self, place: Path) -> None:
        self.place = place
        first = 17000 + os.getpid() % 1000
        (place / "state").mkdir()
        (place / "slurm.conf").write_text(
            CONFIGURATION.format(place=place, port=first, port1=first + 1000, port2=first + 2000)
        )
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMP_"))}
        self.environment = clean | {"SLURM_CONF": str(place / "slurm.conf"), "PATH": f"{BIN}:{PATH}"}
        key = place / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        place.chmod(0o755)
        names = {"socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        files = [f"--{option}={place}/munge.{name}" for option, name in names.items()]
        self.call("munged", "--force", f"--key-file={key}", *files)
        self.call("slurmctld", "-c")
        for node in ("node1", "node2"):
            (place / f"spool.{node}").mkdir()
            self.call("slurmd", "-N", node)
        self.wait_for(lambda: self.call("sinfo", "-h", "-o", "%T %D") == "idle 2\n", "two idle nodes")

    def call(self, *command: str | Path, check: bool = True) -> str:
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.place,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        assert done.returncode == 0 or not check, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def wait_for(self, condition, what: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"waited {seconds} s for {what}"
            time.sleep(0.2)

    def submit(self, script: str, *options: str) -> str:
        """Submits a job; returns its number."""
        file = self.place / "job.sh"
        file.write_text("#!/bin/bash\n" + script)
        return self.call(
            "sbatch", "--parsable", "--output=%j.out", "--open-mode=append", *options, file
        ).strip()

    def state(self, job: str) -> str:
        return self.call("scontrol", "show", "job", job).partition("JobState=")[2].split()[0]

    def send(self, job: str, program: str, command: str, number: int) -> None:
        """Sends a signal to the processes of the job that run a command; not to the `srun` that started them."""
        words, mark = f"/{program}\0{command}\0".encode(), f"\0SLURM_JOB_ID={job}\0".encode()
        found = 0
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if words in (place / "cmdline").read_bytes() and mark in (place / "environ").read_bytes():
                    os.kill(int(place.name), number)
                    found += 1
        assert found, f"no process of job {job} runs {program} {command}"

    def start_again(self, job: str) -> None:
        """Starts a requeued job, which Slurm delays by two minutes."""

        def started() -> bool:
            self.call("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)
            return self.state(job) in ("RUNNING", "COMPLETED")

        self.wait_for(started, "the second start", 150)

    def said(self, job: str) -> str:
        """The output of the job, once it has ended."""
        ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY")
        self.wait_for(lambda: self.state(job) in ended, f"the end of job {job}", 180)
        return (self.place / f"{job}.out").read_text()

    def close(self) -> None:
        self.call("scontrol", "shutdown", check=False)
        self.call("munged", "--stop", f"--socket={self.place}/munge.socket", check=False)
        for file in self.place.glob("*.pid"):
            self.call("kill", file.read_text().strip(), check=False)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory, record_testsuite_property):
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if missing or os.getuid():
        pytest.skip(f"root and {', '.join(missing) or 'Slurm'} are needed (apt install slurm-wlm munge)")
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    record_testsuite_property("with", cluster.call("sinfo", "--version").strip())
    yield cluster
    cluster.close()
