from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from cotenant.machine.load import (
    HostCounts,
    Load,
    Times,
    host_counts,
    load_now,
    load_over,
    memory_kills,
    processor_seconds,
    since,
    spent,
)
from cotenant.machine.nvidia import Slowed
from cotenant.machine.space import HostMemory, disks, host_memory, is_in_memory, shared_memory
from cotenant.machine.virtual import BATCH_SYSTEMS, Virtual, batch_system, virtual
from machine.fakehost import Board, FakeNvml, write

PAGE = os.sysconf("SC_PAGE_SIZE")


def test_memory_and_swap(tmp_path: Path) -> None:
    assert host_memory(tmp_path) == HostMemory(0, 0, 0, 0)
    assert shared_memory(tmp_path) is None
    meminfo = "MemTotal:  8 kB\nMemFree:  1 kB\nMemAvailable:  4 kB\nSwapTotal:  3 kB\nSwapFree:  2 kB"
    write(tmp_path, {"proc/meminfo": meminfo, "dev/shm/x": ""})
    assert host_memory(tmp_path) == HostMemory(8192, 4096, 3072, 2048)
    shared = shared_memory(tmp_path)
    assert shared is not None
    assert 0 <= shared.free_bytes <= shared.size_bytes


def test_directories_of_one_file_system_are_one_disk(tmp_path: Path) -> None:
    write(tmp_path, {"file": ""})
    assert disks({"records": tmp_path / "file/below"})[0].path == tmp_path
    (disk,) = disks({"records": tmp_path / "a/b/c", "data": tmp_path})
    assert disk.purposes == ("records", "data")
    assert disk.path == tmp_path
    assert disk.writable
    assert disk.free_bytes > 0


def test_places_that_cannot_be_written_stand_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    monkeypatch.setattr("cotenant.machine.space.os.access", lambda path, mode: path.name != "closed")
    one, other = disks({"records": tmp_path / "closed/a", "data": tmp_path})
    assert (one.purposes, one.path, one.writable) == (("records",), tmp_path / "closed", False)
    assert (other.purposes, other.writable) == (("data",), True)


def test_the_short_look_at_the_load(tmp_path: Path) -> None:
    assert load_now(tmp_path) == Load(None, None)
    write(tmp_path, {"proc/loadavg": "4.30 5.81 3.83 3/103 14066"})
    assert load_now(tmp_path) == Load(4.3, 2)
    write(tmp_path, {"proc/7/stat": "7 (a (b) c) R 1 7", "proc/8/stat": "8 (idle) S 1 8"})
    assert load_now(tmp_path) == Load(4.3, 2, seen=("a (b) c (pid 7)",))
    write(tmp_path, {"proc/loadavg": "0.00 0.00 0.00 0/103 14066"})
    assert load_now(tmp_path) == Load(0.0, 0)
    write(tmp_path, {"proc/loadavg": "what"})
    assert load_now(tmp_path).running is None


def test_who_was_busy_between_two_readings() -> None:
    init, spinner, idler = Times("init", 5), Times("spinner", 100), Times("idler", 9)
    before = 1000, {1: init, 2: spinner, 4: Times("gone", 7), 5: idler}
    after = 1150, {1: Times("init", 6), 2: Times("spinner", 200), 3: Times("new", 50), 5: idler}
    busy, busiest = spent(before, after, elapsed_s=100)
    assert busy == 1.5
    assert [(one.pid, one.name, one.share) for one in busiest] == [(2, "spinner", 1.0), (3, "new", 0.5)]


def test_what_came_and_went_is_named_by_who_waited_for_it() -> None:
    """Less the time that children already there had used before; a child's child counts for its grandparent."""
    before = 0.0, {2: Times("make", 1, 50, 1), 3: Times("sh", 2, 10, 2), 4: Times("cc", 20, 0, 3)}
    after = 0.0, {2: Times("make", 1, 50 + 2 + 10 + 20 + 60, 1)}
    (one,) = spent(before, after, elapsed_s=100)[1]
    assert (one.pid, one.name, one.share) == (2, "children of make", 0.6)


def test_a_spinner_on_this_host_is_seen_and_named() -> None:
    with subprocess.Popen([sys.executable, "-c", "print(1, flush=True)\nwhile True: pass"], stdout=-1) as spinner:
        assert spinner.stdout is not None
        spinner.stdout.readline()
        load = load_over(0.3)
        spinner.kill()
    assert load.busy is not None
    assert load.busy > 0.1
    assert os.getpid() not in {one.pid for one in load.busiest}


def test_our_own_look_is_nobody_elses_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.machine.load.processor_seconds", lambda: (0.0, time.process_time(), 0.0))
    assert load_over(0.0).busy == pytest.approx(0, abs=0.01)


HERTZ = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "proc"))
    return tmp_path


def test_processor_times_of_a_guest(proc: Path) -> None:
    assert processor_seconds() == (0, 0, 0)
    write(proc, {"proc/stat": "cpu  10 1 20 300 40 5 6 18 7 0\ncpu0 1 1 1 1"})
    assert processor_seconds() == pytest.approx((400 / HERTZ, 42 / HERTZ, 18 / HERTZ))


def test_the_hypervisor_and_the_container(tmp_path: Path) -> None:
    guest, metal = ({"proc/cpuinfo": f"processor : 0\nflags : fpu vme {flag}lahf_lm"} for flag in ("hypervisor ", ""))
    amazon = {"sys/class/dmi/id/sys_vendor": "Amazon EC2", "sys/class/dmi/id/product_name": "p5.4xlarge"}
    pods = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    hosts: list[tuple[str, str, dict[str, object], dict[str, str]]] = [
        ("", "", {**metal, "sys/class/dmi/id/sys_vendor": "Dell Inc."}, {}),
        ("unnamed", "", {**guest}, {}),
        ("Amazon EC2 p5.4xlarge", "", {**guest, **amazon}, {}),
        ("xen", "", {**metal, "sys/hypervisor/type": "xen"}, {}),
        ("linux,kvm", "", {"proc/device-tree/hypervisor/compatible": "linux,kvm\0"}, {}),
        ("", "Docker", {".dockerenv": ""}, {}),
        ("", "Kubernetes", {}, pods),
        ("", "Podman", {"run/.containerenv": ""}, {}),
        ("", "lxc", {"run/systemd/container": "lxc"}, {}),
        ("", "oci", {}, {"container": "oci"}),
    ]
    for number, (hypervisor, container, files, environ) in enumerate(hosts):
        assert virtual(write(tmp_path / str(number), files), environ) == Virtual(hypervisor, container), files


def test_what_the_kernel_counts(proc: Path) -> None:
    assert host_counts([0], (), proc) == HostCounts(0, 0, 0, 0, None, ())
    files = {
        "proc/vmstat": "nr_free_pages 7\npswpin 3\npswpout 5\noom_kill 2",
        "proc/stat": "cpu  10 0 20 300 40 5 6 19 0 0",
        "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": 4,
    }
    write(proc, files)
    nvml = FakeNvml([Board("GPU-0", "00000000:01:00.0", slowed_ns=(10, 20)), Board("GPU-1", "00000000:02:00.0")])
    counts = host_counts([0], {"0000:01:00.0"}, proc, nvml)
    assert counts == HostCounts(3 * PAGE, 5 * PAGE, pytest.approx(400 / HERTZ), 19 / HERTZ, 4, (Slowed(0, 10, 20),))
    assert memory_kills(proc) == 2


def test_what_happened_between_two_readings() -> None:
    before = HostCounts(0, 100, 1000, 10, 7, (Slowed(0, 1, None), Slowed(1, 5, 5)))
    after = HostCounts(50, 100, 1200, 30, 8, (Slowed(0, 11, 4), Slowed(1, 5, 6)))
    assert since(before, after, killed_outside=1) == {
        "swapped_in_bytes": 50,
        "swapped_out_bytes": 0,
        "memory_kills_outside": 1,
        "stolen_share": 0.1,
        "processor_throttles": 1,
        "devices": [
            {"index": 0, "power_ns": 10, "thermal_ns": None},
            {"index": 1, "power_ns": 0, "thermal_ns": 1},
        ],
    }
    nothing = since(before, before, killed_outside=0)
    assert (nothing["memory_kills_outside"], nothing["stolen_share"]) == (0, 0.0)
    assert since(replace(before, processor_throttles=None), after, 0)["processor_throttles"] is None
    offline = since(replace(before, processor_throttles=500), replace(after, processor_throttles=200), 0)
    assert offline["processor_throttles"] == 0, "a processor was taken offline, and its count with it"


def test_a_job_knows_whose_it_is(tmp_path: Path) -> None:
    """Slurm's also by its cgroup: `sudo ./run.sh` leaves the variables behind."""
    for variable, name in BATCH_SYSTEMS.items():
        assert batch_system({variable: "7"}) == name
        assert batch_system({variable: ""}) == ""
    assert batch_system({"JOB_ID": "0", "PATH": "/bin"}) == ""
    for line, name in {
        "5:memory:/slurm/uid_1000/job_77/step_0/task_0": "Slurm",
        "5:cpuset,cpu:/slurm_node7/uid_1000/job_77": "Slurm",
        "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0": "Slurm",
        "0::/system.slice/slurmd.service": "",
        "0::/user.slice/user-1000.slice/job_77": "",
        "0::/": "",
    }.items():
        write(tmp_path, {"proc/self/cgroup": f"1:name=systemd:/init.scope\n{line}"})
        assert batch_system({}, tmp_path) == name, line


def test_a_directory_in_memory_has_no_disk_below(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    lines = ["1 0 8:1 / / rw - ext4 /dev/vda rw", "2 1 0:9 / /scratch rw - tmpfs tmpfs rw"]
    (tmp_path / "proc/self/mountinfo").write_text("\n".join(lines))
    assert is_in_memory(tmp_path / "scratch/tmp", tmp_path)
    assert not is_in_memory(tmp_path / "home/tmp", tmp_path)
