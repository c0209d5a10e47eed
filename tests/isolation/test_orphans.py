"""What tenants leave behind becomes ours, and ends."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cotenant.isolation import processes
from cotenant.isolation.backend import NotIsolatedError

PROGRAM = """
import os, subprocess, sys, time
from cotenant.isolation.processes import adopt_orphans, children, end_orphans, now_ticks

earlier = subprocess.Popen(["sleep", "1000"])
assert adopt_orphans() == {earlier.pid}
kept = subprocess.Popen(["sleep", "1000"])
orphan = "import subprocess; print(subprocess.Popen(['sleep', '1000'], stdout=-3).pid)"
stranger = int(subprocess.run([sys.executable, "-c", orphan], stdout=-1, check=True).stdout)
assert stranger in children()
time.sleep(0.05)
since_ticks = now_ticks()
daemon = "import os, time; os.fork() and os._exit(0); os.setsid(); os.fork(); os.fork(); time.sleep(1000)"
subprocess.run([sys.executable, "-c", daemon], env={}, check=True)
quick = "import os; os.fork() and os._exit(0)"
subprocess.run([sys.executable, "-c", quick], check=True)
while len(children()) < 5:
    time.sleep(0.01)
end_orphans({earlier.pid, kept.pid}, since_ticks)
assert children() == {earlier.pid, kept.pid, stranger}, children()
assert earlier.poll() is kept.poll() is None
for process in (earlier, kept):
    process.kill()
    process.wait()
end_orphans(set(), 0)
assert not children()
print("ended")
"""


def test_daemons_without_a_marker_end_and_who_was_there_before_lives() -> None:
    """In a process of its own: a subreaper stays one, and the test run has children enough."""
    path = os.pathsep.join(sys.path)
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stdout == "ended\n", ended.stderr


def test_many_are_waited_for_while_they_become_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork bomb's thousands take a slow host longer than a few do."""
    left = [{9, 8, 7}, {9, 8}, {9}, {9}]
    monkeypatch.setattr(processes, "KILL_WAIT_S", -1.0)
    monkeypatch.setattr(processes, "children", lambda: left.pop(0))
    monkeypatch.setattr(processes, "_is_older", lambda pid, ticks: False)
    monkeypatch.setattr(os, "kill", lambda pid, number: None)
    with pytest.raises(NotIsolatedError, match=r"processes \[9\], which tenants left, cannot be killed"):
        processes.end_orphans(set(), 0)
    assert left == []
