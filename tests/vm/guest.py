"""Run suites inside the virtual machine, from wherever a user could start one, and list everything that they leave."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CGROUPS = Path("/sys/fs/cgroup")
MARK = "COTENANT_TEST"
USER = "user"
PATIENCE_S = 900.0
"""The end of every wait for something that has to come: an emulated processor beside load is 50 times slower."""
PLAIN = CGROUPS / "plain"
HIDE = "mount -t tmpfs none /run/systemd"
"""A command that hides systemd as init from the processes of a mount namespace."""
SHARE = Path(os.environ.get("SHARE", "/share"))
"""The host's packages."""
VENV = Path("/var/tmp/venv")
Start = Callable[[list[str], dict[str, str]], list[str]]
"""How a command line is started: wraps it, given the environment that it shall have."""


def in_service(*properties: str) -> Start:
    """A transient system service, as cron jobs and agents have one; by default nothing is delegated to it."""

    def start(line: list[str], env: dict[str, str]) -> list[str]:
        words = [f"--property={word}" for word in properties] + [f"--setenv={name}={env[name]}" for name in env]
        return ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", *words, *line]

    return start


def _alone(line: list[str], before: str, place: Path = PLAIN, namespaces: str = "") -> list[str]:
    """Alone in a cgroup of no service; `before` is a shell command that root runs there first."""
    inside = f"unshare --mount {namespaces} sh -c '{before} && exec \"$@\"' sh"
    return ["sh", "-c", f'echo 0 > {place}/cgroup.procs && exec {inside} "$@"', "sh", *line]


def make_plain() -> None:
    """Have that cgroup, as a fresh one."""
    if PLAIN.exists():
        PLAIN.rmdir()
    PLAIN.mkdir()


def _environment(env: dict[str, str]) -> list[str]:
    return ["env", "-i", *(f"{name}={value}" for name, value in env.items())]


def without_systemd(line: list[str], env: dict[str, str]) -> list[str]:
    """Root on a host whose init is not systemd."""
    return _alone(_environment(env) + line, HIDE)


def in_container(option: str) -> Start:
    """Root in a container: a cgroup namespace, no systemd, and cgroups mounted `ro` or `rw` as the engine pleases."""

    def start(line: list[str], env: dict[str, str]) -> list[str]:
        mounts = f"umount {CGROUPS} && mount -t cgroup2 -o {option} none {CGROUPS}"
        return _alone(_environment(env) + line, f"{HIDE} && {mounts}", namespaces="--cgroup")

    return start


def in_allocation(line: list[str], env: dict[str, str]) -> list[str]:
    """The user in a batch system's cgroup, which belongs to root: one core, some memory; with a session elsewhere."""
    return _alone(as_user(line, env), f"echo 0-1 > {PLAIN}/cpuset.cpus && echo 1000M > {PLAIN}/memory.max")


def as_cgroup_setup_says(line: list[str], env: dict[str, str]) -> list[str]:
    """The user on a host without systemd, put by root into the cgroup that the script has made."""
    return _alone(without_session(line, env), HIDE, CGROUPS / f"cotenant.{USER}")


def logged_in(line: list[str], env: dict[str, str]) -> list[str]:
    """The user behind a login: PAM asks systemd for a session."""
    return ["su", "--login", USER, "--command", shlex.join(["env", *(f"{name}={env[name]}" for name in env), *line])]


def in_user_scope(*properties: str) -> Start:
    """The user in a scope that the user's manager has made for something else, with these properties."""

    def start(line: list[str], env: dict[str, str]) -> list[str]:
        words = [f"--property={word}" for word in properties]
        return as_user(["systemd-run", "--user", "--scope", "--quiet", *words, *line], env)

    return start


def as_user(line: list[str], env: dict[str, str]) -> list[str]:
    """The user beside a session of theirs, with its bus."""
    uid = pwd.getpwnam(USER).pw_uid
    bus = {"XDG_RUNTIME_DIR": f"/run/user/{uid}", "DBUS_SESSION_BUS_ADDRESS": f"unix:path=/run/user/{uid}/bus"}
    return without_session(line, env | bus)


def without_session(line: list[str], env: dict[str, str]) -> list[str]:
    """The user without a session, as a daemon that changes its user id would start it."""
    uid = str(pwd.getpwnam(USER).pw_uid)
    return ["setpriv", "--reuid", uid, "--regid", uid, "--init-groups", *_environment(env), *line]


def add_user() -> None:
    """Make the user, with a session that lingers."""
    if subprocess.run(["id", USER], capture_output=True).returncode:
        subprocess.run(["useradd", "--create-home", USER], check=True)
    subprocess.run(["loginctl", "enable-linger", USER], check=True)
    bus = Path(f"/run/user/{pwd.getpwnam(USER).pw_uid}/bus")
    until(bus.exists)


def make_environment() -> None:
    """Have the environment that run.sh would make, with the host's packages in it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(VENV)], check=True)
    (packages,) = VENV.glob("lib/python*/site-packages")
    (packages / "share.pth").write_text(f"{SHARE}\n")
    pins = subprocess.run(["sha256sum", "requirements.txt"], cwd=ROOT, capture_output=True, check=True)
    (VENV / ".cotenant-run").write_bytes(pins.stdout)


def until(true: Callable[[], Any], limit_s: float = PATIENCE_S) -> float | None:
    """Poll; return after how many seconds it was true, or None where the time ran out."""
    begin_s = time.monotonic()
    while not true():
        if time.monotonic() - begin_s > limit_s:
            return None
        time.sleep(0.05)
    return time.monotonic() - begin_s


@dataclass
class Suite:
    """One suite of witnesses in a folder of its own, or another command there."""

    name: str
    start: Start
    command: tuple[str, ...] = ()
    """Words that are run in the checkout in the place of a suite of witnesses."""
    flags: tuple[str, ...] = ()
    words: dict[str, Any] = field(default_factory=dict)
    said: str = ""
    status: int | None = None
    gone_s: float | None = None
    """How long after its end, or its runner's, nothing of it was left."""
    was_frozen: bool = False
    """Whether somebody was held still when it was ended."""

    def __post_init__(self) -> None:
        self.folder = Path("/var/tmp") / self.name
        shutil.rmtree(self.folder, ignore_errors=True)
        for part in ("notes", "tmp"):
            (self.folder / part).mkdir(parents=True)
        program = str(ROOT / "tests/vm/witness.py")
        args = {str(self.folder / "notes"): "", "--number": 1, "--repeat": 8} | self.words
        job = {"name": "witness", "cmd": program, "args": args, "cgroup": "student"}
        (self.folder / "jobs.json").write_text(json.dumps([job]))
        for path in (self.folder, *self.folder.iterdir()):
            shutil.chown(path, USER, USER)

    @property
    def jobs(self) -> tuple[str, ...]:
        """The flags that choose its job, and its tenants' memory."""
        return "--jobs", str(self.folder / "jobs.json"), "--reserve", "384M"

    @property
    def output(self) -> Path:
        return self.folder / "base/output"

    def line(self) -> list[str]:
        env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.environ["PYTHONPATH"],
            "HOME": str(self.folder),
            "BASE": str(self.folder / "base"),
            "TMPDIR": str(self.folder / "tmp"),
            "VENV": str(VENV),
            "COTENANT_LOCK": str(self.folder / "lock"),
            MARK: self.name,
        }
        words = self.command or (sys.executable, str(ROOT / "run.py"), *self.jobs)
        return self.start([*words, *self.flags], env)

    @contextlib.contextmanager
    def started(self) -> Iterator[subprocess.Popen[str]]:
        with (
            (self.folder / "said").open("w+") as said,
            subprocess.Popen(
                self.line(), stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd="/", text=True
            ) as process,
        ):
            yield process
            self.status = process.wait(PATIENCE_S)
            said.seek(0)
            self.said = said.read()

    def kill_runner(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send every process that is the runner, or about to become it, this signal."""
        for pid in self.processes():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if bytes(ROOT / "run.py") in words:
                    os.kill(pid, number)

    def records(self) -> list[dict[str, Any]]:
        paths = self.output.glob("jobs.witness.*.json")
        return sorted((json.loads(path.read_text()) for path in paths), key=lambda record: record["tenant"])

    def notes(self, kind: str = "witness") -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted((self.folder / "notes").glob(f"{kind}*.json"))]

    def processes(self) -> list[int]:
        """Living processes that carry our mark, whatever they became."""
        marker = f"{MARK}={self.name}".encode()
        found = []
        for path in Path("/proc").iterdir():
            if path.name.isdecimal():
                with contextlib.suppress(OSError):
                    if marker in (path / "environ").read_bytes().split(b"\0"):
                        found.append(int(path.name))
        return found

    def temporaries(self) -> list[str]:
        """Return the files that are left in the run's own directories."""
        return [str(path) for part in ("tmp", "base/tmp") for path in (self.folder / part).glob("*")]

    def destroy(self) -> None:
        """Kill the processes that are left, so that the next row begins on a quiet machine."""
        until(lambda: not [os.kill(pid, signal.SIGKILL) for pid in self.processes()])


def cgroups() -> set[Path]:
    """Every cgroup there is, without the slices and services that systemd makes and keeps as it likes."""
    # Not rglob: a directory that vanishes on the way would be an error.
    found = (Path(top, name) for top, below, _ in os.walk(CGROUPS) for name in below)
    return {path for path in found if path.suffix not in (".slice", ".service")}
