"""A tenant's first process under `cotenant exec`: starts the program, and counts if no hook within it can.

Run as `python -I -S supervise.py COMMAND...`, with the count's settings in the environment. A program with torch
optimizers counts its own steps, and this process only waits for it, or restarts it. With a pattern this process reads
the program's output. A program that ends without a step was a warm-up: further runs of the command are observed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cotenant.exec.lines import Lines
from cotenant.exec.settings import EXEC_VARIABLE, Settings, address
from cotenant.protocol.client import Rendezvous, RunnerGoneError
from cotenant.protocol.meter import Meter

LOOK_S = 0.05
NOT_EXECUTABLE, NOT_FOUND = 126, 127


class Supervisor:
    """Starts a command in a process group of its own, and passes the signals that end it on to the group."""

    def __init__(self, command: Sequence[str], settings: Settings) -> None:
        self._command, self._settings = command, settings
        self._child: subprocess.Popen[bytes] | None = None
        self._is_asked = False
        signal.signal(signal.SIGTERM, self._asked)

    def run(self) -> int:
        """Run the command to its end, or as often as observations need; return the exit status for this process."""
        if self._settings.count_line:
            return self._as_it_ended(Lines(self._settings, self.start, lambda: self._is_asked).follow())
        begin_ns = time.perf_counter_ns()
        status = self.start().wait()
        while not status and not self._is_asked and self._settings.starts_again():
            status = self.start().wait()
        if status or self._is_asked or self._settings.claimed():
            return self._as_it_ended(status)
        return self._measure_runs(time.perf_counter_ns() - begin_ns)

    def start(self, output: int | None = None) -> subprocess.Popen[bytes]:
        """Start the command; its `output` goes to a descriptor, by default to our own."""
        self._child = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=os.environ | {EXEC_VARIABLE: self._settings.encoded()},
            process_group=0,
        )
        return self._child

    def _measure_runs(self, first_ns: int) -> int:
        item, torch = self._settings.item or "run", self._settings.noted_interpreter()
        meter = Meter(Rendezvous(*address()), {"item": item})
        meter.ready(1, self._settings.runs, 0, [first_ns])
        for _ in meter.observations():
            start_ns = time.perf_counter_ns()
            for _ in range(meter.number):
                if status := self.start().wait():
                    return self._as_it_ended(status)
            meter.observed(start_ns, time.perf_counter_ns(), meter.number * self._settings.items)
        self._go_on(meter)
        record = {"item": item, "observed": {"counted_by": "runs"}, "torch": torch}
        meter.record(time.perf_counter_ns(), record)
        return 0

    def _go_on(self, meter: Meter) -> None:
        """Run the command repeatedly until STOP, then end the current run."""
        while not meter.stopped():
            child = self.start()
            while child.poll() is None and not meter.stopped():
                time.sleep(LOOK_S)
        self._end_child()

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self._is_asked = True
        self._end_child()

    def _end_child(self) -> None:
        if self._child is not None and self._child.poll() is None:
            os.killpg(self._child.pid, signal.SIGTERM)

    def _as_it_ended(self, status: int) -> int:
        """Return the program's exit status, or die of the signal that the program died of."""
        if status < 0 and not self._is_asked:
            # The kernel allows no handler for SIGKILL and SIGSTOP.
            with contextlib.suppress(OSError):
                signal.signal(-status, signal.SIG_DFL)
            os.kill(os.getpid(), -status)
        return max(0, status)


def main(command: Sequence[str]) -> int:
    settings = Settings.from_environment()
    assert settings is not None
    try:
        return Supervisor(command, settings).run()
    except RunnerGoneError as error:
        print(f"cotenant: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cotenant: {command[0]} could not be executed: {error.strerror}", file=sys.stderr)
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
