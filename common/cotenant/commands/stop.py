"""`stop`: ends the suite that runs on this machine by SIGTERM, as Ctrl-C in its terminal does by SIGINT."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

from cotenant.commands.flags import Parser, duration
from cotenant.commands.output import tell
from cotenant.errors import EXIT_PASSED, CotenantError
from cotenant.isolation.lock import described_holder, lock_holder, lock_path

WAIT_S = 60.0


def main(argv: Sequence[str]) -> int:
    """Interrupt the suite, and wait for its end. Returns 0; raises CotenantError if it cannot be ended."""
    given = parser().parse_words(argv)
    holder = lock_holder(lock_path())
    if holder is None:
        tell("No suite runs on this machine.")
        return EXIT_PASSED
    if not holder:
        raise CotenantError("A suite runs, but its process cannot be seen from here.", "Stop it where it was started.")
    suite = described_holder(holder)
    try:
        os.kill(holder, signal.SIGTERM)
    except ProcessLookupError:
        pass
    except PermissionError:
        raise CotenantError(f"The suite that runs is another user's: {suite}.", f"sudo kill {holder}") from None
    tell(f"Stopping {suite}.")
    deadline = time.monotonic() + given.timeout
    while lock_holder(lock_path()) == holder:
        if time.monotonic() > deadline:
            raise CotenantError(
                f"It has not ended within {given.timeout:g} s.", f"kill -KILL {holder} loses no record."
            )
        time.sleep(0.1)
    tell("It has ended; its records stay. A suite goes on with --resume, `tune` by the same command.")
    return EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `stop`."""
    parser = Parser(
        "stop", "Interrupt the suite that runs on this machine. Its records stay; --resume goes on with it."
    )
    wait = "how long to wait for its end (default 60)"
    parser.add_argument("--timeout", type=duration, default=WAIT_S, metavar="S", help=wait)
    return parser
