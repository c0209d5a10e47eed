"""In the cgroup that Slurm has given a job, as this kernel makes one: slices lie below it, within its limits."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from patience import HANG_S
from tenants.suites import CGROUPS, Suites, has_v1, job, script, until

pytestmark = pytest.mark.slow
MIB = 1 << 20
MEMORY = 2048 * MIB
PIDS = 300
HIERARCHIES = ["cpuset", "memory", "cpu", "cpuacct", "freezer", "pids"]
GIVEN = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "1", "SLURM_CPUS_ON_NODE": "1", "SLURM_MEM_PER_NODE": "2048"}


@pytest.fixture
def job_cgroup() -> Iterator[str]:
    """A cgroup of one processor, 2 GiB and 300 processes in each hierarchy, as slurmd makes them for a job."""
    if not has_v1():
        pytest.skip("needs root and v1 cgroups")
    name = f"cotenant-test.{os.getpid()}.slurm"
    levels = (name, f"{name}/job_7")
    for hierarchy in HIERARCHIES:
        for level in levels:
            (CGROUPS / hierarchy / level).mkdir()
    last = max(os.sched_getaffinity(0))
    for level in levels:
        for file in ("cpuset.cpus", "cpuset.mems"):
            given = str(last) if file == "cpuset.cpus" else (CGROUPS / "cpuset/cpuset.mems").read_text()
            (CGROUPS / "cpuset" / level / file).write_text(given)
    (CGROUPS / "memory" / levels[1] / "memory.limit_in_bytes").write_text(str(MEMORY))
    (CGROUPS / "pids" / levels[1] / "pids.max").write_text(str(PIDS))
    yield levels[1]
    for hierarchy in HIERARCHIES:
        for level in reversed(levels):
            (CGROUPS / hierarchy / level).rmdir()


def test_slices_stay_in_the_cgroup_and_limits_of_the_slurm_job(job_cgroup: str, v1: Suites) -> None:
    inside = script(
        v1.folder / "inside.sh",
        *(f"echo $$ > {CGROUPS}/{hierarchy}/{job_cgroup}/cgroup.procs" for hierarchy in HIERARCHIES),
        'exec "$@"',
    )
    line = [str(inside), *v1.line([job("sums.py", "--repeat", 5, "--number", 5, "--sleep", 0.2)], "--users", 1)]
    with subprocess.Popen(line, env=v1.environment | GIVEN, cwd=v1.folder, text=True, stdout=subprocess.PIPE) as run:
        for hierarchy in HIERARCHIES:
            below = CGROUPS / hierarchy / job_cgroup
            until(lambda at=below: list(at.glob(f"{v1.name}/*/t0")), f"a slice in {hierarchy}", 30)
        # Elsewhere there is none of this run: limits and accounts of the job hold for it.
        assert v1.cgroups() == []
        out, _ = run.communicate(timeout=HANG_S)
    assert run.returncode == 0, out
    (record,) = v1.records()
    assert record["meters"]["slurm"] == {"job": "7", "processors": "1", "memory_mib": "2048"}
    back = record["isolation"]["read_back"]
    assert back["processors"] == str(max(os.sched_getaffinity(0)))
    # The host's reserve is subtracted from the job's memory.
    assert back["memory_bytes"] == MEMORY - 1024 * MIB
    assert int(back["pids_max"]) < PIDS
    for hierarchy in HIERARCHIES:
        assert [path.name for path in (CGROUPS / hierarchy / job_cgroup).iterdir() if path.is_dir()] == []
