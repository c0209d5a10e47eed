"""The command line: dispatch and common errors; no logic."""

from __future__ import annotations

import contextlib
import errno
import importlib
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from cotenant.checkout import INSTALLED, PROGRAM
from cotenant.commands import COMMANDS
from cotenant.commands.help import TOPICS
from cotenant.commands.output import mute, settle_streams
from cotenant.errors import EXIT_INTERRUPTED, EXIT_PASSED, EXIT_USAGE, CotenantError, did_you_mean, shortage
from cotenant.removed import removed
from cotenant.text import sender_of, visible


def main(argv: Sequence[str]) -> int:
    """Run one command and return its exit status (docs: 0, 1, 2, 3, 4, 130); bad input never shows a traceback.

    If the first word is a flag or missing, the command is `run`.
    """
    settle_streams()
    if argv[:1] == ["help"] and argv[1:2] not in [[topic] for topic in TOPICS]:
        argv = [*(word for word in argv[1:] if word != "--all"), "--help-all" if "--all" in argv else "--help"]
    if not argv or argv[0].startswith("-"):
        argv = ["run", *argv]
    try:
        return _answered(argv)
    except KeyboardInterrupt as error:
        with contextlib.suppress(OSError):
            print(f"cotenant: Stopped by {sender_of(str(error) or 'SIGINT')}.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BaseException as error:  # polars's panic is no Exception.
        if (short := shortage(error)) is None:
            raise
        print(f"cotenant: {short}", file=sys.stderr)
        return short.exit_status


def _answered(argv: Sequence[str]) -> int:
    """Run one command and return its exit status; print errors that it expects."""
    try:
        _check_text(argv)
        if sentence := removed(argv[0]):
            raise CotenantError(f"The command '{argv[0]}' was removed.", sentence)
        if argv[0] not in (*COMMANDS, "help"):
            raise CotenantError(f"There is no command '{argv[0]}'.", _meant(argv[0]))
        module = importlib.import_module(f"cotenant.commands.{argv[0].replace('-', '_')}")
        _take_signals()
        return int(module.main(argv[1:]))
    except CotenantError as error:
        # It may quote a file, or the command of another user's process.
        print(visible(f"cotenant: {error}"), file=sys.stderr)
        return error.exit_status
    except ModuleNotFoundError as error:
        if error.name in LEFT_OUT:
            print(f"cotenant: {_room_left_out(error.name)}", file=sys.stderr)
            return EXIT_USAGE
        if error.name is None or error.name.partition(".")[0] == "cotenant":
            raise
        remedy = (
            "pip install --force-reinstall WHEEL" if INSTALLED else "pip install -r requirements.txt, or use ./run.sh"
        )
        print(f"cotenant: The package '{error.name}' is missing. {remedy}.", file=sys.stderr)
        return EXIT_USAGE
    except BrokenPipeError:
        mute()
        return EXIT_PASSED
    except OSError as error:
        if shortage(error):
            raise
        if error.errno == errno.EIO and error.filename is None:  # the terminal is closed
            mute()
            return EXIT_INTERRUPTED
        where = f": {error.filename}" if error.filename else ""
        print(visible(f"cotenant: {error.strerror or error}{where}."), file=sys.stderr)
        return EXIT_USAGE


LEFT_OUT = {
    "cotenant.fleet": "Fleets, and runs over the nodes of a Ray cluster, need",
}
"""The packages that may be left out, and the commands that need them."""


def _room_left_out(room: str) -> CotenantError:
    folder = room.replace(".", "/")
    remedy = "pip install --force-reinstall WHEEL" if INSTALLED else f"git checkout common/{folder}"
    return CotenantError(f"{LEFT_OUT[room]} {folder}, which this installation leaves out.", f"{remedy} brings it back.")


def _meant(word: str) -> str:
    """Return the remedy for a word that is no command; most often it is a benchmark."""
    from cotenant.suite.jobfile import shipped_jobs

    jobs = shipped_jobs()
    if word in jobs:
        return f"It is a benchmark: {PROGRAM} --name {word}"
    if meant := did_you_mean(word, jobs):
        meant = f"{meant} It is a benchmark: {PROGRAM} --name NAME"
    return did_you_mean(word, COMMANDS) or meant or f"Commands: {', '.join(COMMANDS)}."


def _take_signals() -> None:
    """Let in signals held back during imports; a closed terminal and SIGTERM end a command as Ctrl-C does.

    Their default actions would leave half-written files and child processes behind.
    """
    for number in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_DFL:  # under nohup SIGHUP is ignored
            signal.signal(number, _end)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _end(number: int, frame: FrameType | None) -> None:
    """Handle a signal as Python handles Ctrl-C, and say which it was."""
    raise KeyboardInterrupt(signal.Signals(number).name)


def _check_text(argv: Sequence[str]) -> None:
    """Raise CotenantError for arguments that a record cannot hold."""
    for word in argv:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise CotenantError(f"The argument {word!r} is not UTF-8.", "Rename the file that it names.") from None
