"""The run: one part after the other, each a process that is ended at its deadline, and its verdict at once."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from device.book import BEGIN, FAIL, PASS, SKIP, VERDICT, Book, Verdict, replace
from device.part import BENCHMARKS, ROOT, environment
from device.plan import EVERY, FAMILIES, SHARE, UsageError, deadline_s, planned_s
from device.processes import adopt_orphans, end_descendants
from device.table import page, page_name
from device.wheels import CARRIED, unpack_missing

POLITE_S = 8.0
"""So long a part at its deadline may undo what it did: end its tenants, remove their groups, stop a daemon."""
NATURAL_S = 2.0
SOURCES = ("benchmarks", "common", "tasks")
LOOK_LIMIT_S = 180.0
"""The first import of torch reads gigabytes from a disk that may be cold."""


class Acceptance:
    """One results folder and the parts that write there."""

    def __init__(self, out: Path, quick: bool, families: tuple[str, ...] = ()) -> None:
        self.out = out.absolute()
        self.quick = quick
        self.families = families
        self.book = Book(self.out)
        self.source = source_version()
        self.machine: dict[str, Any] = {}
        self.began_s = time.monotonic()

    def run(self, parts: Sequence[str], named: bool) -> int:
        """Run the parts and return the exit status. Raises UsageError for a folder that is none for this run."""
        lock = self._claim()
        adopt_orphans()
        # Not below the results: those are copied whole. Short, for the paths of sockets.
        scratch = Path(tempfile.mkdtemp(prefix="gpu-"))
        try:
            self._know_machine(scratch)
            try:
                words = [self._part(name, scratch, named, parts[at:]) for at, name in enumerate(parts, 1)]
            finally:
                self._write_page()
            print(f"Results: {self.out}; the page for docs/gpu/ is {page_name(self.machine)}.")
            return int(FAIL in words)
        finally:
            end_descendants()
            shutil.rmtree(scratch, ignore_errors=True)
            os.close(lock)

    def _claim(self) -> int:
        """Take the folder for this run alone."""
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.out, os.O_RDONLY)
            files = sorted(path.name for path in self.out.iterdir())
            if files and "machine.json" not in files:
                raise UsageError(f"{self.out} holds other files ({files[0]}): give a new folder to --out.")
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"Another run is writing to {self.out}.") from None
        except OSError as error:
            raise UsageError(f"{self.out} cannot be written: {error.strerror}.") from None
        return lock

    def _know_machine(self, scratch: Path) -> None:
        """Look what this machine is, and refuse a folder with results of another one."""
        if carried := unpack_missing(ROOT / "gpu-wheels", scratch / "site"):
            print(f"From gpu-wheels: {', '.join(carried)}.", flush=True)
            os.environ["PYTHONPATH"] = os.pathsep.join(
                filter(None, [os.environ.get("PYTHONPATH"), str(scratch / "site")])
            )
        found = look(scratch) | {"quick": self.quick, "carried": carried}
        path = self.out / "machine.json"
        if path.exists():
            try:
                known = json.loads(path.read_text())
            except ValueError:
                raise UsageError(f"{path} is no JSON: give a new folder to --out.") from None
            for name in ("device", "torch", "python", "quick"):
                if known.get(name) != found.get(name):
                    raise UsageError(
                        f"{self.out} holds results of another run ({name}: {known.get(name)} there, "
                        f"{found.get(name)} here): give a new folder to --out."
                    )
            found["date"] = known["date"]
            # What was there before the first part is what `left` compares with.
            found["before"] = known.get("before", found["before"])
        self.machine = found
        replace(path, json.dumps(found, indent=1))
        print(f"{found['device']}, torch {found['torch']}, Python {found['python']}.", flush=True)
        if self._first_of_several():
            print(f"There are {found['devices']} devices, and the first one is measured.", flush=True)
        if found["kind"] == "cpu" and not self.quick:
            print("torch sees no device here. All sizes are those of one: --quick is for processors.", flush=True)
        if found["missing"]:
            some = " `make gpu-wheels` carries some." if {*found["missing"]} & {*CARRIED} else ""
            print(f"Missing here: {', '.join(found['missing'])}.{some}", flush=True)

    def _part(self, name: str, scratch: Path, named: bool, later: Sequence[str]) -> str:
        before = self.book.verdict(name)
        if not named and before and (before["word"], before["source"]) == (PASS, self.source):
            print(f"{name:<10} {PASS}  (kept from {before['at']}) {before['sentence']}", flush=True)
            return PASS
        # These go on where they stopped: their earlier rows stay.
        if name not in (FAMILIES, SHARE):
            self.book.add(name, BEGIN, at=_now())
        began = time.monotonic()
        if self.quick and not named and EVERY[name].by_name:
            verdict = Verdict(SKIP, f"--quick leaves it out: --quick --parts {name} runs it in small.")
        else:
            planned = planned_s(name, self.quick, began - self.began_s, later)
            verdict = self._ended(name, scratch / name, planned)
        seconds = time.monotonic() - began
        self.book.add(
            name,
            VERDICT,
            word=verdict.word,
            sentence=verdict.sentence,
            seconds=round(seconds, 1),
            at=_now(),
            source=self.source,
        )
        print(f"{name:<10} {verdict.word}  {verdict.sentence} ({seconds:.0f} s)", flush=True)
        self._write_page()
        return verdict.word

    def _ended(self, name: str, scratch: Path, seconds: float) -> Verdict:
        """Run a part to its end or its deadline, and end whatever it left."""
        scratch.mkdir()
        told = scratch / "verdict.json"
        arguments = ["--inside", name, "--out", str(self.out), "--seconds", str(seconds)] + ["--quick"] * self.quick
        if name == FAMILIES and self.families:
            arguments += ["--parts", f"{FAMILIES}:{','.join(self.families)}"]
        limit_s = deadline_s(seconds, self.quick)
        with (self.out / "log.txt").open("ab") as log:
            log.write(f"\n===== {name}, {_now()}\n".encode())
            log.flush()
            from_byte = log.tell()
            process = subprocess.Popen(
                [sys.executable, str(BENCHMARKS / "gpu.py"), *arguments],
                env=environment() | self._variables(scratch),
                cwd=scratch,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            verdict = None
            try:
                process.wait(limit_s)
            except subprocess.TimeoutExpired:
                verdict = Verdict(FAIL, f"It took longer than {limit_s:.0f} s and was ended; what it found is kept.")
            finally:
                if process.poll() is None:
                    end_politely(process)
                left = end_descendants(NATURAL_S)
        self._note_leftovers(name, left, ended=verdict is not None)
        if verdict is None and told.exists():
            verdict = Verdict(**json.loads(told.read_text()))
        shutil.rmtree(scratch, ignore_errors=True)
        return verdict or Verdict(FAIL, crash(process.returncode, last_line(self.out / "log.txt", from_byte)))

    def _variables(self, scratch: Path) -> dict[str, str]:
        """Return what a part finds in its environment beside the caller's own."""
        caches = {"TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"), "TRITON_CACHE_DIR": str(scratch / "triton")}
        # Two threads on processors that others use wait for each other more than they work.
        threads = {"OMP_NUM_THREADS": "1"} if self.quick and self.machine["kind"] == "cpu" else {}
        first = {"CUDA_VISIBLE_DEVICES": "0"} if self._first_of_several() else {}
        return {"GPU_SCRATCH": str(scratch), "PYTHONUNBUFFERED": "1"} | caches | threads | first

    def _first_of_several(self) -> bool:
        """Tell whether one of several devices has to be chosen: who shares what is a question about one."""
        several = self.machine["kind"] == "cuda" and self.machine.get("devices", 1) > 1
        return several and "CUDA_VISIBLE_DEVICES" not in os.environ

    def _note_leftovers(self, name: str, left: dict[int, str], ended: bool) -> None:
        for pid, command in left.items():
            self.book.add(name, "leftovers", pid=pid, command=command, after_deadline=ended)

    def _write_page(self) -> None:
        replace(self.out / page_name(self.machine), page(self.machine, self.book))


def look(scratch: Path) -> dict[str, Any]:
    """Return what this machine is, as a process of its own sees it: importing torch may crash or hang."""
    found: dict[str, Any] = {"device": "unknown", "torch": "unknown", "kind": "cpu", "missing": [], "before": {}}
    result = scratch / "machine.json"
    # -P: files beside it have names that packages of others have, too.
    command = [sys.executable, "-P", str(BENCHMARKS / "device" / "look.py"), str(result)]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(command, env=environment(), timeout=LOOK_LIMIT_S, check=False, stdin=subprocess.DEVNULL)
    if result.exists():
        found |= json.loads(result.read_text())
    return found | {"date": datetime.now(UTC).date().isoformat(), "python": ".".join(map(str, sys.version_info[:3]))}


def end_politely(process: subprocess.Popen[bytes]) -> None:
    """Ask a part to end, and give it a moment to undo what it did."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(POLITE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def last_line(log: Path, from_byte: int) -> str:
    """Return the last line with words that a part wrote."""
    with log.open("rb") as file:
        file.seek(from_byte)
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")


def crash(status: int, line: str) -> str:
    """Return how a part ended that came to no verdict."""
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    return f"It ended with {how}: {line or 'it wrote nothing'}"


def source_version(root: Path = ROOT) -> str:
    """Return the commit of this checkout; where files differ from it, or git is missing, what they hold as well."""
    git = ["git", "-C", str(root)]
    try:
        commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return f"files {_digest(root)}"
    return commit.stdout.strip() + (f"+{_digest(root)}" if changed.stdout.strip() else "")


def _digest(root: Path) -> str:
    """Return twelve digits of a hash over the sources: what passed is not kept where one was mended since."""
    found = hashlib.sha256()
    for path in sorted(path for folder in SOURCES for path in (root / folder).rglob("*.py")):
        found.update(f"{path.relative_to(root)} ".encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:12]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
