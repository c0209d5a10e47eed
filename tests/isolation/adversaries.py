"""Programs that do not want to end. Each gets a file to note its pids in, then the directories of its slice."""

_NOTE = """
import os, signal, sys, time
notes = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
tops = sys.argv[2:]
def note():
    os.write(notes, f"{os.getpid()} ".encode())
def write(path, text):
    os.write(os.open(path, os.O_WRONLY), text.encode())
"""

DAEMON = """
if os.fork():
    sys.exit()
os.setsid()
if os.fork():
    sys.exit()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
note()
time.sleep(1000)
"""

FORK_BOMB = """
for _ in range(200):
    if not os.fork():
        note()
        time.sleep(1000)
time.sleep(1000)
"""

STOPPED = """
note()
os.kill(os.getpid(), signal.SIGSTOP)
"""

IN_ITS_OWN_CGROUPS = """
for top in tops:
    for upper, lower in ((top, top + "/a"), (top + "/a", top + "/a/b")):
        os.mkdir(lower)
        for name in ("cpuset.cpus", "cpuset.mems"):
            if os.path.exists(f"{lower}/{name}"):
                write(f"{lower}/{name}", open(f"{upper}/{name}").read())
    write(top + "/a/b/cgroup.procs", "0")
os.fork()
note()
time.sleep(1000)
"""

FROZEN_BY_ITSELF = """
top = next(top for top in tops if os.path.exists(top + "/freezer.state"))
os.mkdir(top + "/a")
if not os.fork():
    write(top + "/a/cgroup.procs", "0")
    note()
    write(top + "/a/freezer.state", "FROZEN")
time.sleep(1000)
"""

MEMORY_HOG = """
held = []
for _ in range(64):
    held.append(bytearray(b"x") * (4 << 20))
"""

ADVERSARIES = {
    "daemon that ignores SIGTERM": (1, _NOTE + DAEMON),
    "fork bomb": (200, _NOTE + FORK_BOMB),
    "stopped": (1, _NOTE + STOPPED),
    "in its own cgroups": (2, _NOTE + IN_ITS_OWN_CGROUPS),
    "frozen by itself": (1, _NOTE + FROZEN_BY_ITSELF),
}
"""How many processes it notes before it is at its worst, and the program."""
