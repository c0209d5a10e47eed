"""What tenants leave behind becomes ours, and ends."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import os, subprocess, sys, time
from cotenant.isolation.orphans import adopt_orphans, children, end_orphans

adopt_orphans()
kept = subprocess.Popen(["sleep", "1000"])
daemon = "import os, time; os.fork() and os._exit(0); os.setsid(); os.fork(); os.fork(); time.sleep(1000)"
subprocess.run([sys.executable, "-c", daemon], env={}, check=True)
quick = "import os; os.fork() and os._exit(0)"
subprocess.run([sys.executable, "-c", quick], check=True)
while len(children()) < 3:
    time.sleep(0.01)
end_orphans({kept.pid})
assert children() == {kept.pid}, children()
assert kept.poll() is None
kept.kill()
kept.wait()
end_orphans(set())
print("ended")
"""


def test_daemons_without_a_marker_end_and_own_children_live() -> None:
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
