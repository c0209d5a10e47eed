"""Whose processor time it was: the slices', the runner's, or somebody else's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from cotenant.meters import foreign
from cotenant.meters.foreign import ForeignLoad
from machine.fakehost import write
from meters.seen import CountedSlice

SECOND = 1_000_000_000
TICK_NS = SECOND // os.sysconf("SC_CLK_TCK")


class Host:
    """A root with a /proc, and the clocks that go with it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.now_ns, self.own_ns = root, 0, 0
        monkeypatch.setattr(psutil, "PROCFS_PATH", str(root / "proc"))
        monkeypatch.setattr(foreign.time, "perf_counter_ns", lambda: self.now_ns)
        monkeypatch.setattr(foreign.time, "process_time_ns", lambda: self.own_ns)
        self.at(0, busy_ns=0)

    def at(self, now_ns: int, busy_ns: int, stolen: int = 0) -> None:
        """From here on it is now, and two processors were busy for so long since boot."""
        self.now_ns = now_ns
        idle = (2 * now_ns - busy_ns) // TICK_NS
        times = f"cpu  {busy_ns // TICK_NS} 0 0 {idle} 0 0 0 {stolen} 0 0"
        write(self.root, {"proc/stat": f"{times}\nbtime 1"})

    def process(self, pid: int, name: str, parent: int, ticks: int, waited: int = 0) -> None:
        words = f"S {parent} 0 0 0 0 0 0 0 0 0 {ticks} 0 {waited} 0 20 0 1 0 9{' 0' * 30}"
        write(self.root, {f"proc/{pid}/stat": f"{pid} ({name}) {words}", f"proc/{pid}/status": f"Tgid:\t{pid}"})


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    psutil.process_iter.cache_clear()
    invented = Host(tmp_path, monkeypatch)
    invented.process(1, "init", 0, ticks=50)
    invented.process(os.getpid(), "runner", 1, ticks=10, waited=3)
    return invented


def test_what_slices_and_runner_did_not_use_is_foreign(host: Host) -> None:
    slices = [CountedSlice(5), CountedSlice(7)]
    meter = ForeignLoad(2)
    meter.start(slices)
    host.at(SECOND, busy_ns=SECOND)
    slices[0].processor_ns, host.own_ns = 5 + SECOND // 2, SECOND // 4
    meter.sample()
    host.at(4 * SECOND, busy_ns=SECOND, stolen=40)
    meter.sample()
    assert meter.result() == {
        "processors": pytest.approx(0.25 / 4),
        "most_processors": pytest.approx(0.25),
        "busy_processors": pytest.approx(0.25),
        "host_processors": 2,
        "stolen_share": pytest.approx(40 / 840),
        "busiest": [],
        "own_time_by": "slices",
    }
    assert meter.absent() == {}
    # Ticks are coarse: less than nothing is none.
    host.at(5 * SECOND, busy_ns=SECOND)
    host.own_ns += SECOND
    assert meter.sample() == {("host", "foreign_processors"): 0.0}


def test_a_look_right_behind_another_tells_no_load_by_itself(host: Host) -> None:
    meter = ForeignLoad(2)
    meter.start([CountedSlice(5)])
    host.at(SECOND, busy_ns=0)
    meter.sample()
    host.at(SECOND + SECOND // 1000, busy_ns=TICK_NS)
    assert meter.sample() == {}
    assert meter.result()["most_processors"] == 0, "not a tick in a millisecond, ten processors"
    assert meter.result()["processors"] == pytest.approx(TICK_NS / (SECOND + SECOND // 1000))
    host.at(2 * SECOND, busy_ns=TICK_NS)
    assert meter.sample() == {("host", "foreign_processors"): pytest.approx(TICK_NS / SECOND)}


def test_processes_stand_in_for_slices_that_count_no_time(host: Host) -> None:
    own = os.getpid()
    host.process(101, "user) odd", own, ticks=100)
    host.process(102, "worker", 101, ticks=5)
    host.process(200, "backup", 1, ticks=7)
    meter = ForeignLoad(2)
    meter.start([CountedSlice(None)])
    # A worker has ended, and its parent has waited for it; another process has worked for 40 ticks.
    host.process(101, "user) odd", own, ticks=180, waited=25)
    shutil.rmtree(host.root / "proc/102")
    host.process(200, "backup", 1, ticks=47)
    host.at(SECOND, busy_ns=140 * TICK_NS)
    meter.sample()
    result = meter.result()
    assert result["processors"] == pytest.approx((140 - 100) * TICK_NS / SECOND)
    assert result["most_processors"] is None
    assert result["busiest"] == [{"pid": 200, "name": "backup", "share": pytest.approx(40 * TICK_NS / SECOND)}]
    assert result["own_time_by"] == "processes"


def test_a_host_that_hides_its_processors_times(host: Host) -> None:
    (host.root / "proc/stat").unlink()
    meter = ForeignLoad(2)
    meter.start([CountedSlice()])
    meter.sample()
    assert meter.result() == {}
    assert meter.absent() == {"foreign": "/proc/stat, which this host hides"}


def test_a_child_of_ours_is_not_foreign_on_this_host() -> None:
    with subprocess.Popen([sys.executable, "-c", "print(1, flush=True)\nwhile True: pass"], stdout=-1) as spinner:
        assert spinner.stdout is not None
        spinner.stdout.readline()
        meter = ForeignLoad(os.cpu_count() or 1)
        counting = ForeignLoad(os.cpu_count() or 1)
        meter.start([CountedSlice(None)])
        counting.start([CountedSlice(0)])
        spun = psutil.Process(spinner.pid)
        until_s = spun.cpu_times().user + 0.3
        while spun.cpu_times().user < until_s:
            time.sleep(0.01)
        meter.sample()
        counting.sample()
        loose, counted = meter.result(), counting.result()
        spinner.kill()
    assert not {one["pid"] for one in loose["busiest"]} & {spinner.pid, os.getpid()}
    # To slices that counted nothing the spinner is a stranger.
    assert counted["processors"] > loose["processors"]
