"""The processes of a tenant without a cgroup: none is counted twice, none that ended is lost, no stranger is taken."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

from cotenant.isolation.family import Family
from isolation.entering import eventually, in_python

TRUNCATED_NS = 40_000_000
"""The kernel says what was waited for in ticks of 10 ms, of the user and of the system."""
RESTARTS = """
import resource, subprocess, sys
spin = "import time\\nwhile time.process_time() < 0.1: pass"
for _ in range(4):
    subprocess.run([sys.executable, "-I", "-S", "-c", spin])
spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(sum(one.ru_utime + one.ru_stime for one in spent), flush=True)
input()
"""


def test_a_process_is_read_with_all_its_threads() -> None:
    family = Family([os.getpid()])
    begin_ns, own_ns = family.processor_ns(), time.process_time_ns()
    worker = threading.Thread(target=lambda: sum(range(300_000)))
    worker.start()
    worker.join()
    used_ns, own_ns = family.processor_ns() - begin_ns, time.process_time_ns() - own_ns
    assert 0 < used_ns <= own_ns + 1_000_000


def test_processor_time_of_ended_children_counts_once() -> None:
    """One family looks all the time, the other one only at the end."""
    line = [sys.executable, "-I", "-S", "-c", RESTARTS]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as leader:
        assert leader.stdin is not None
        assert leader.stdout is not None
        often, once = Family([leader.pid]), Family([leader.pid])
        seen, read_ns = 0, [0]
        os.set_blocking(leader.stdout.fileno(), False)
        while not (said := leader.stdout.read()):
            seen += len(often.look())
            read_ns.append(often.processor_ns())
            time.sleep(0.01)
        used_ns = float(said) * 1e9
        for family in (often, once):
            family.look()
            assert abs(family.processor_ns() - used_ns) < TRUNCATED_NS
        leader.communicate(b"\n")
    assert seen > 0
    assert read_ns == sorted(read_ns)
    assert used_ns > 400_000_000


def test_a_child_that_nobody_waits_for_keeps_its_last_reading() -> None:
    program = "import os, signal, time; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nif os.fork(): time.sleep(1000)\n"
    program += "while time.process_time() < 0.3: pass\n"
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", program]) as leader:
        family = Family([leader.pid])
        last_ns = 0
        try:
            eventually(family.look, "a child")
            while family.look() or len(family.living()) == 2:
                last_ns = family.processor_ns()
        finally:
            leader.kill()
        assert last_ns > 0
        assert family.processor_ns() >= last_ns


ADOPTED = """
import os, subprocess, time
from cotenant.isolation.backend import SliceEntry
from cotenant.isolation.family import Family
from cotenant.isolation.processes import adopt_orphans, children, end_orphans, is_of
from cotenant.isolation.runs import RunName
from cotenant.isolation.unenforced import UnenforcedSlice
from cotenant.procfs import process_of
from cotenant.protocol.messages import RUN_VARIABLE, TENANT_VARIABLE

adopt_orphans()
subprocess.run(["sh", "-c", "setsid yes >/dev/null &"])
(stranger,) = children()
line = "read go; (env -i yes >/dev/null &); (setsid yes >/dev/null &); exec sleep 1000"
marks = {RUN_VARIABLE: str(RunName()), TENANT_VARIABLE: "3"}
leader = subprocess.Popen(["sh", "-c", line], stdin=-1, env=os.environ | marks, start_new_session=True)
family = Family([leader.pid], lambda pid: is_of(pid, leader.pid, str(RunName()), 3))
live = UnenforcedSlice(RunName(), 3, SliceEntry())
live.begin(family)
leader.stdin.write(b"go\\n")
leader.stdin.close()
used_ns = lambda pid: time.clock_gettime_ns(~pid << 3 | 2)
while len(ours := children() - {leader.pid, stranger}) < 2 or min(map(used_ns, ours)) < 50_000_000:
    time.sleep(0.01)
try:
    live.freeze()
    while not live.frozen():
        time.sleep(0.001)
    states = [process_of(pid).state for pid in (leader.pid, *ours)]
    assert states == ["T"] * 3, states
    assert process_of(stranger).state != "T"
    assert sorted(family.living()) == sorted([leader.pid, *ours])
    assert family.processor_ns() >= sum(map(used_ns, ours))
    live.thaw()
    assert not live.frozen()
finally:
    end_orphans(set(), 0)
print("held")
"""


def test_only_own_adopted_orphans_are_held_still_and_counted() -> None:
    """One without a marker is of its leader's session, another one of its own session has the marker."""
    ended = in_python(ADOPTED)
    assert ended.stdout == "held\n", ended.stderr
