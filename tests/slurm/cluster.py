"""A Slurm cluster of two nodes on this machine: the real daemons, without root or systemd.

Everything of it lies in one folder. The daemons are children of this process and die with it.
"""

import ctypes
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

NODES = ("n1", "n2")
CPUS = 2
MEMORY_MB = 6000
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch")
# Debian's daemons lie where only root looks.
PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])

# A node that is silent for 10 s is down; a job over its memory is killed within a second or two.
# MinJobAge: there is no accounting, so that finished jobs must stay in the queue to be seen.
# cred_expire: a job of a dead node waits for this long before it starts on another.
CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket,cred_expire=10
CredType=cred/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
SwitchType=switch/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={root}/jobs.txt
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory,CR_LLN
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_interval=1
ReturnToService=2
MinJobAge=3600
SlurmdTimeout=10
KillWait=2
CompleteWait=0
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cpus} RealMemory={memory}
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cpus} RealMemory={memory}
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    return [name for name in NEEDED if shutil.which(name, path=PATH) is None]


def wait_for(condition: Callable[[], object], what: str, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"after {seconds} s: {what}")
        time.sleep(0.2)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


@dataclass(frozen=True)
class Job:
    """A job in Slurm's own log: one line for each end, so for each node that failed it too."""

    number: str
    state: str
    node: str
    folder: str
    asked: dict[str, str]


@dataclass
class Cluster:
    root: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to speak with this cluster."""
        path = os.pathsep.join([str(self.root / "bin"), PATH])
        return {"SLURM_CONF": str(self.root / "slurm.conf"), "PATH": path}

    def ask(self, *command: str) -> str:
        """Run a client of Slurm; return what it printed."""
        environment = os.environ | self.environment
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=20
        )
        return done.stdout

    def start_node(self, node: str) -> None:
        (self.root / "spool" / node).mkdir(parents=True, exist_ok=True)
        self._start(node, "slurmd", "-D", "-f", str(self.root / "slurm.conf"), "-N", node)

    def _start(self, name: str, *command: str) -> None:
        with (self.root / f"{name}.out").open("a") as out:
            self.daemons[name] = subprocess.Popen(
                command,
                env=os.environ | self.environment,
                stdout=out,
                stderr=out,
                preexec_fn=_die_with_parent,
                start_new_session=True,
            )

    def start(self) -> None:
        """Start the daemons; return when both nodes take jobs."""
        key = self.root / "munge" / "key"
        key.parent.mkdir(mode=0o700)
        key.touch(mode=0o400)
        key.chmod(0o600)
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        (self.root / "state").mkdir()
        (self.root / "bin").mkdir()
        host = socket.gethostname().split(".")[0]
        facts = {"root": self.root, "host": host, "user": getpass.getuser()}
        sizes = {"ports": _free_ports(3), "cpus": CPUS, "memory": MEMORY_MB}
        conf = self.root / "slurm.conf"
        conf.write_text(CONF.format(**facts, **sizes), encoding="utf-8")
        # The plugin takes SLURM_CONF out of the environment of the srun within a job; on a real
        # cluster the file lies where every program of Slurm looks for it.
        srun = self.root / "bin" / "srun"
        real = shutil.which("srun", path=PATH)
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={conf} exec {real} "$@"\n', encoding="utf-8")
        srun.chmod(0o755)
        names = {"key": str(key), "seed": str(self.root / "munge" / "seed")}
        files = [f"--{name}-file={path}" for name, path in names.items()]
        files += [f"--pid-file={self.root}/munged.pid", f"--log-file={self.root}/munged.log"]
        place = f"--socket={self.root}/munge.socket"
        self._start("munged", "munged", "--foreground", "--force", place, *files)
        wait_for((self.root / "munge.socket").exists, "munged did not start")
        self._start("slurmctld", "slurmctld", "-D", "-f", str(conf))
        for node in NODES:
            self.start_node(node)
        self.wait_for_nodes()

    def wait_for_nodes(self) -> None:
        """Wait until both nodes take jobs."""

        def ready() -> bool:
            return self.ask("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * len(NODES)

        wait_for(ready, f"the nodes did not come up: {self.ask('sinfo', '-N', '-l')}")

    def kill_node(self, node: str) -> None:
        """Let a node die as by a power cut: its daemon and every process of its jobs."""
        self.daemons.pop(node).kill()
        cluster = f"SLURM_CONF={self.root / 'slurm.conf'}".encode()
        on_node = f"SLURMD_NODENAME={node}".encode()
        log = str(self.root / f"slurmd.{node}.log")
        for process in Path("/proc").glob("[0-9]*"):
            try:
                variables = (process / "environ").read_bytes().split(b"\0")
                open_files = [str(file.readlink()) for file in (process / "fd").iterdir()]
            except OSError:
                continue
            # The keepers of its jobs are known by the log that they write into.
            if {cluster, on_node} <= set(variables) or log in open_files:
                os.kill(int(process.name), signal.SIGKILL)

    def finished(self) -> list[Job]:
        """Return the jobs that have ended, from Slurm's own log, in their order."""
        log = self.root / "jobs.txt"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        jobs = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in lines]
        return [
            Job(
                job["JobId"],
                job["JobState"],
                job["NodeList"],
                job["WorkDir"],
                dict(pair.split("=") for pair in job["Tres"].split(",")),
            )
            for job in jobs
        ]

    def stop(self) -> None:
        """Stop the jobs and the daemons, whatever state they are in."""
        self.ask("scancel", "--user", getpass.getuser())
        try:
            wait_for(lambda: not self.ask("squeue", "-h"), "jobs", 10)
        except TimeoutError:
            for node in NODES:
                if node in self.daemons:
                    self.kill_node(node)
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


@contextmanager
def cluster(root: Path) -> Iterator[Cluster]:
    running = Cluster(root)
    try:
        running.start()
        yield running
    finally:
        running.stop()
