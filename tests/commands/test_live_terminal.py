"""A suite on a pseudo-terminal: its live view, which is gone at the end, and which is drawn nowhere else."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time

import pytest

from patience import HANG_S
from report.screen import Screen
from tenants.suites import Suites, job, until

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
ENDLESS = ("--repeat", 100_000, "--sleep", 0.01, "--sums", 1)
"""Words of a benchmark that is measured until it is stopped, and hardly works."""


class Terminal:
    """A suite whose standard streams and controlling terminal are one pseudo-terminal, `width` columns wide."""

    def __init__(
        self, suites: Suites, jobs: list[dict[str, object]], *flags: object, width: int = 80, **env: str
    ) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        self.width, self.text = width, ""
        variables = {"TERM": "xterm-256color"} | suites.environment | env
        for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
            if name not in env:
                variables.pop(name, None)
        self.process = subprocess.Popen(
            suites.line(jobs, *flags),
            env=variables | env,
            cwd=suites.folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        os.set_blocking(self.ours, False)

    def read(self) -> str:
        """Return all text that was written so far."""
        with contextlib.suppress(BlockingIOError, OSError):
            while data := os.read(self.ours, 65536):
                self.text += data.decode()
        return self.text

    def ended(self, limit_s: float = 60) -> int:
        until(lambda: self.read() is not None and self.process.poll() is not None, "the suite ends", limit_s, self.read)
        self.read()
        os.close(self.ours)
        return self.process.returncode

    @property
    def shown(self) -> list[str]:
        screen = Screen(self.width)
        screen.feed(self.text.replace("\r\n", "\n"))
        assert screen.cursor_shown
        return screen.shown


def lines_of_launches(shown: list[str]) -> list[str]:
    return [line for line in shown if re.match(r"\d/\d ", line)]


@pytest.mark.parametrize("width", [60, pytest.param(120, marks=pytest.mark.slow)])
def test_a_suite_on_a_terminal_and_again_off_it(loose: Suites, width: int) -> None:
    jobs = [job("sums.py", name="vae"), job("plain.sh", "0", "3", name="odd")]
    terminal = Terminal(loose, jobs, "--users", 2, width=width)
    assert terminal.ended() == 1
    text = terminal.text
    assert text.count(HIDE) == text.count(SHOW) == 1
    for words in ("1/2 vae", "entering its slices", "measuring since ", "1 of 2 done"):
        assert words in text
    shown = terminal.shown
    # Nothing of the live view is left; a line for each launch stays, and the summary's lines stand in its file.
    assert not any(" of 2 done" in line or "measuring since" in line for line in shown)
    assert re.fullmatch(r"1/2 vae  (clean  |suspect) +\d+ s  \S+ \+ \S+ sum/s", lines_of_launches(shown)[0])
    assert re.fullmatch(r"2/2 odd  failed   +\d+ s  -", lines_of_launches(shown)[1])
    assert [line.partition("|")[0].strip() for line in loose.summary()[:2]] == [
        "[ 1/ 2][  /  ] PASSED",
        "[ 2/ 2][ 2/ 2] FAILED",
    ]
    ended = loose.run(jobs, "--users", 2, status=1, FORCE_COLOR="1", TTY_COMPATIBLE="1")
    assert HIDE not in ended.stdout
    lines = ended.stdout.splitlines()
    assert [line.split()[:2] for line in lines_of_launches(lines)] == [["1/2", "vae"], ["2/2", "odd"]]
    assert not any(" of 2 done" in line or line.startswith(("[", "Total")) for line in lines)
    assert any(re.fullmatch(r"expected: \d+ s, until \d\d:\d\d, by the last run here", line) for line in lines)


def test_nothing_is_written_to_the_terminal_while_measuring(loose: Suites) -> None:
    jobs = [job(name="first"), job("sums.py", *ENDLESS, name="second")]
    terminal = Terminal(loose, jobs, "--users", 1)
    until(lambda: "measuring since" in terminal.read().partition("2/2 ")[2], "GO", 30, terminal.read)
    time.sleep(0.3)
    before = len(terminal.read())
    end_s = time.monotonic() + 0.8
    while time.monotonic() < end_s:
        time.sleep(0.05)
        assert len(terminal.read()) == before
    os.write(terminal.ours, b"\x03")
    assert terminal.ended() == 130
    shown = terminal.shown
    first, second = lines_of_launches(shown)
    assert re.fullmatch(r"1/2 first   (clean  |suspect) .* sum/s", first)
    assert re.fullmatch(r"2/2 second  interrupted +\d+ s  -", second)
    assert any(line.startswith("Stopped by Ctrl-C;") for line in shown)
    assert any(line.startswith("second, repetition 0, user 0: interrupted") for line in shown)
    assert not any("measuring since" in line for line in shown)


def test_a_terminal_that_goes_away_costs_no_record(loose: Suites) -> None:
    terminal = Terminal(loose, [job("sums.py", *ENDLESS)], "--users", 1)
    until(lambda: "measuring since" in terminal.read(), "GO", 30, terminal.read)
    os.close(terminal.ours)
    assert terminal.process.wait(HANG_S) != 0
    assert loose.outcomes() == ["interrupted"]


@pytest.mark.slow
def test_what_a_terminal_does_not_want(loose: Suites) -> None:
    """Escapes on a dumb terminal, colours under NO_COLOR, and characters outside of its encoding."""
    dumb = Terminal(loose, [job()], "--users", 1, TERM="dumb")
    assert dumb.ended() == 0
    assert "\x1b" not in dumb.text
    assert re.search(r"^1/1 job  (clean|suspect) ", dumb.text, re.MULTILINE)
    jobs = [job(name="long_name" * 10), job(name="b")]
    plain = Terminal(loose, jobs, "--users", 1, "--uid", 1, width=60, NO_COLOR="1", PYTHONIOENCODING="ascii")
    assert plain.ended() == 0, plain.text
    assert not any(f"\x1b[{style}{colour}m" in plain.text for style in ("", "1;") for colour in range(30, 38))
    assert re.search(r"1/2 (long_name)+[long_ame]*\?", plain.text)
