"""cgroup_setup.sh on a host that is only files, with a stand-in for sudo that writes down its command lines."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from patience import HANG_S
from tenants.suites import ROOT, script

SCRIPT = ROOT / "cgroup_setup.sh"
V1 = {"cpuset": "cpuset", "memory": "memory", "cpu,cpuacct": "cpuacct", "freezer": "freezer", "pids": "pids"}


def cgroup_setup(*words: str, host: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the script against `host`, or against this machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SUDO")}
    named = {} if host is None else {"HOST_ROOT": str(host)}
    return subprocess.run([SCRIPT, *words], env=kept | named | env, capture_output=True, text=True, timeout=HANG_S)


class FakeHost:
    """A directory, `root`, with files where a kernel has them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cgroups = root / "sys/fs/cgroup"
        self.mounts: list[str] = []
        self.asked = root.with_suffix(".asked")
        (root / "proc/self").mkdir(parents=True)
        # Commands that write files below `root` are run; those that need root or systemd are only noted.
        line = f'echo "$@" >> {self.asked}; case $1 in tee | mkdir | rm | rmdir) exec "$@" ;; esac'
        self.sudo = str(script(root.with_suffix(".sudo"), line))

    def mount(self, kind: str, place: str, options: str, shown: str = "/") -> Path:
        self.mounts.append(f"30 20 0:25 {shown} /sys/fs/cgroup{place} rw,nosuid - {kind} cgroup rw,{options}")
        (self.root / "proc/self/mountinfo").write_text(
            "\n".join(["21 1 8:1 / / rw - ext4 /dev/x rw", *self.mounts, ""])
        )
        (self.cgroups / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
        return self.cgroups / place.lstrip("/")

    def v1(self) -> None:
        for options, place in V1.items():
            self.mount("cgroup", f"/{place}", options)
        (self.cgroups / "cpuset/cpuset.cpus").write_text("0-3,8\n")
        (self.cgroups / "cpuset/cpuset.mems").write_text("0-1\n")
        self.mount("cgroup2", "/unified", "nsdelegate")

    def v2(self, enabled: str = "memory pids") -> None:
        self.mount("cgroup2", "", "nsdelegate")
        (self.cgroups / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
        (self.cgroups / "cgroup.subtree_control").write_text(f"{enabled}\n")

    def systemd(self) -> None:
        self.v2()
        (self.root / "run/systemd/system").mkdir(parents=True)

    def setup(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the script for the user `nobody`, with the stand-in as its sudo unless `env` says otherwise."""
        done = cgroup_setup("--user", "nobody", *words, host=self.root, **{"SUDO": self.sudo} | env)
        done.stdout = done.stdout.replace(self.sudo, "sudo").replace(f"{self.root}", "")
        done.stderr = done.stderr.replace(self.sudo, "sudo").replace(f"{self.root}", "")
        return done

    def requests(self) -> list[str]:
        """Return the command lines that the stand-in was given."""
        return self.asked.read_text().replace(f"{self.root}", "").splitlines() if self.asked.exists() else []

    def files(self) -> dict[str, str | None]:
        """Map each path of the host to its text, a directory's to None."""
        paths = sorted(self.root.rglob("*"))
        return {str(path.relative_to(self.root)): path.read_text() if path.is_file() else None for path in paths}
