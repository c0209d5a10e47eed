from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.machine.virtual import BATCH_SYSTEMS, batch_system


@pytest.mark.parametrize(("variable", "name"), BATCH_SYSTEMS.items())
def test_a_job_knows_whose_it_is(variable: str, name: str) -> None:
    assert batch_system({variable: "7"}) == name
    assert batch_system({variable: ""}) == ""


def test_nobody_gave_us_this_host() -> None:
    assert batch_system({"JOB_ID": "0", "PATH": "/bin"}) == ""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("5:memory:/slurm/uid_1000/job_77/step_0/task_0", "Slurm"),
        ("5:cpuset,cpu:/slurm_node7/uid_1000/job_77", "Slurm"),
        ("0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0", "Slurm"),
        ("0::/system.slice/slurmd.service", ""),
        ("0::/user.slice/user-1000.slice/job_77", ""),
        ("0::/", ""),
    ],
)
def test_a_job_of_slurm_is_known_by_its_cgroup(line: str, name: str, tmp_path: Path) -> None:
    """As in `sudo ./run.sh`, which leaves the variables behind."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"1:name=systemd:/init.scope\n{line}\n")
    assert batch_system({}, tmp_path) == name
