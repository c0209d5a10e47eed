"""A real Slurm of two emulated nodes on this machine: sbatch, srun by our own runner, an interruption and a requeue."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patience import HANG_S
from tenants.suites import ROOT, job, script, until

pytestmark = pytest.mark.slow
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")
CONF = """
ClusterName=emulated
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthInfo=socket={place}/munge.socket
StateSaveLocation={place}/state
SlurmctldPidFile={place}/slurmctld.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdPidFile={place}/slurmd.%n.pid
SlurmdLogFile={place}/slurmd.%n.log
SlurmdSpoolDir={place}/spool.%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog={place}/prolog.sh
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
KillWait=10
MinJobAge=300
SchedulerParameters=sched_interval=1,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=e1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cpus} RealMemory=1000
NodeName=e2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cpus} RealMemory=1000
PartitionName=all Nodes=e1,e2 Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """The daemons, below one directory; each node has a base, an output and a lock of its own there."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.environment = os.environ | {"SLURM_CONF": str(place / "slurm.conf")}
        (place / "state").mkdir()
        key = place / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        files = {"key-file": key, "socket": place / "munge.socket", "pid-file": place / "munged.pid"}
        files |= {"log-file": place / "munged.log", "seed-file": place / "munge.seed"}
        self.run("munged", "--force", *(f"--{name}={path}" for name, path in files.items()))
        probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        ports = [probe.getsockname()[1] for probe in probes]
        for probe in probes:
            probe.close()
        host = socket.gethostname().partition(".")[0]
        conf = CONF.format(host=host, place=place, ports=ports, cpus=os.cpu_count())
        (place / "slurm.conf").write_text(conf)
        own = f"{place}/$SLURMD_NODENAME"
        script(
            place / "prolog.sh",
            f"mkdir -p {own}",
            f"echo export BASE={own}",
            f"echo export OUTPUT_DIRECTORY={own}/output",
            f"echo export COTENANT_LOCK={own}/lock",
        )
        self.run("slurmctld")
        for node in ("e1", "e2"):
            self.run("slurmd", "-N", node)
        until(lambda: self.run("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == "2", "both nodes are idle", 60)

    def run(self, *line: object) -> str:
        words = list(map(str, line))
        ended = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=HANG_S)
        assert ended.returncode == 0, (words, ended.stdout, ended.stderr)
        return ended.stdout

    def batch(self, words: str, *flags: str) -> str:
        """Submit a run of our suite; return the job's number. Its output is in `out`."""
        run = f"{sys.executable} {ROOT / 'run.py'} --launcher slurm --users 1 --isolation affinity {words}"
        path = script(
            self.place / "job.sh",
            run,
            "status=$?",
            "[ $status = 130 ] && scontrol requeue $SLURM_JOB_ID",
            "exit $status",
        )
        flags = ("--parsable", "--nodes=2", "--exclusive", "--requeue", "--open-mode=append", *flags)
        return self.run("sbatch", f"--output={self.out}", *flags, path).strip()

    @property
    def out(self) -> Path:
        return self.place / "out"

    def said(self) -> str:
        logs = (self.out, *self.place.glob("slurm*.log"))
        return "\n".join(path.read_text()[-3000:] for path in logs if path.exists())

    def state(self, job_id: str) -> str:
        words = self.run("scontrol", "show", "job", job_id).split()
        return next(word.partition("=")[2] for word in words if word.startswith("JobState="))

    def records(self) -> list[dict[str, Any]]:
        """Those of node 0, which keeps all of them."""
        assert list(self.place.glob("e2/output/*.json")) == []
        return [json.loads(path.read_text()) for path in sorted(self.place.glob("e1/output/*.json"))]

    def stop(self) -> None:
        subprocess.run(["scancel", "--quiet", "--user=root"], env=self.environment, capture_output=True, timeout=HANG_S)
        for name in ("slurmd.e1.pid", "slurmd.e2.pid", "slurmctld.pid", "munged.pid"):
            if (self.place / name).exists():
                pid = int((self.place / name).read_text())
                os.kill(pid, 15)
                until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), f"{name} is gone", 30)


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Slurm]:
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root and slurm-wlm, slurmd, slurmctld, munge of Debian (missing: {', '.join(missing)})")
    tmp_path.chmod(0o755)
    made: Slurm | None = None
    try:
        made = Slurm(tmp_path)
        yield made
    finally:
        if made is not None:
            made.stop()


def jobs(place: Path, *names: str, **args: int) -> Path:
    path = place / "jobs.json"
    flags = {f"--{name}": value for name, value in args.items()}
    path.write_text(json.dumps([job("ddp.sh", name=name, group="all", args=flags) for name in names]))
    return path


def test_srun_runners_on_all_nodes_form_one_launch(slurm: Slurm) -> None:
    job_id = slurm.batch(f"--jobs {jobs(slurm.place, 'both', repeat=6, number=3)}")
    until(lambda: slurm.state(job_id) in ("COMPLETED", "FAILED", "NODE_FAIL"), "the job ends", 150, slurm.said)
    assert slurm.state(job_id) == "COMPLETED", slurm.said()
    (record,) = slurm.records()
    assert (record["outcome"], sorted(record["rank_observations"])) == ("completed", ["0", "1"])
    (node,) = record["meters"]["nodes"]
    assert (node["node"], node["isolation"]["backend"], node["shared"]) == (1, "affinity", True)
    # The processors that Slurm gave are read from it, on both nodes.
    for given in (record["meters"]["slurm"], node["slurm"]):
        assert (given["job"], given["step"], given["nodes"]) == (job_id, "0", "e[1-2]")
        assert int(given["processors"]) == os.cpu_count()


def test_a_requeued_job_resumes_after_a_signal(slurm: Slurm) -> None:
    """The signal of --signal is sent by hand, once the first launch has its record and the second one runs."""
    job_id = slurm.batch(f"--resume --jobs {jobs(slurm.place, 'a', 'b', repeat=60, number=200)}")
    begun = [slurm.place / f"{node}/output/logs" for node in ("e1", "e2")]
    until(lambda: all(list(logs.glob("b.*")) for logs in begun), "the second launch has begun", 150, slurm.said)
    (first,) = slurm.records()
    slurm.run("scancel", "--signal=TERM", job_id)
    until(lambda: "Stopped by SIGTERM" in slurm.out.read_text(), "it is interrupted", 60, slurm.said)
    until(lambda: slurm.state(job_id) in ("COMPLETED", "FAILED"), "the requeued job ends", 240, slurm.said)
    assert slurm.state(job_id) == "COMPLETED", slurm.said()
    ended = slurm.records()
    assert [(record["name"], record["outcome"]) for record in ended] == [("a", "completed"), ("b", "completed")]
    assert ended[0]["start_time"] == first["start_time"]
    assert ended[1]["meters"]["slurm"]["restarts"] == "1"
    assert "1 launch done, 1 to come." in slurm.out.read_text()


def test_a_job_too_short_for_a_launch_is_not_requeued(slurm: Slurm) -> None:
    job_id = slurm.batch(f"--resume --jobs {jobs(slurm.place, 'a', repeat=600, number=200)}")
    until(lambda: list(slurm.place.glob("e2/output/logs/a.*")), "the launch has begun", 150, slurm.said)
    slurm.run("scancel", "--signal=TERM", job_id)
    until(lambda: slurm.state(job_id) in ("PENDING", "FAILED"), "the job ends", 150, slurm.said)
    assert slurm.state(job_id) == "FAILED", slurm.said()
    assert "No launch came to its end in the time of this Slurm job" in slurm.out.read_text()
