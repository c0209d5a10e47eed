"""Errors that end with the remedy, and the exit statuses of the command line."""

from __future__ import annotations

import errno
import re
import resource
from collections.abc import Iterable

from cotenant.removed import removed

_CHOICE = re.compile(r"argument (.+?): invalid choice: (.+?) \(choose from (.*)\)", re.S)
_NUMBER = re.compile(r"argument (.+?): invalid (int|float) value: (.*)", re.S)
_MISSING = re.compile(r"the following arguments are required: (.*)")

EXIT_PASSED = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_SLOWER = 3
EXIT_NOT_ISOLATED = 4
EXIT_FOREIGN_FILES = 97
"""Exit status of data set commands only: foreign files stand in the place of a set."""
EXIT_NOT_MET = 69
"""Exit status of a launcher of ranks if nodes do not meet, or run different commands."""
EXIT_GONE_ON = 75
"""Exit status of a launcher of ranks if node 0 has gone on to a later launch."""
EXIT_INTERRUPTED = 130


class CotenantError(Exception):
    """A fault that a person can mend: one sentence that names it and its place, then the remedy."""

    exit_status = EXIT_USAGE

    def __init__(self, sentence: str, remedy: str = "") -> None:
        super().__init__(sentence, remedy)
        self.sentence = sentence
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.sentence} {self.remedy}".strip()


class UnwrittenError(CotenantError):
    """A suite that had begun could not write its files in their place."""

    exit_status = EXIT_FAILED


class IsolationError(CotenantError):
    """Isolation was required, and is not available."""

    exit_status = EXIT_NOT_ISOLATED


class ShortageError(CotenantError):
    """The kernel gives this user no more processes, threads or open files."""

    def __init__(self, sentence: str, limit: str = "RLIMIT_NPROC") -> None:
        most = resource.getrlimit(getattr(resource, limit))[0]
        now = "unlimited" if most == resource.RLIM_INFINITY else most
        which = "open files (ulimit -n" if limit == "RLIMIT_NOFILE" else "processes and threads (ulimit -u, pids.max"
        super().__init__(sentence, f"Raise the limit of {which}: {now}), or end other programs.")


def shortage(error: BaseException) -> ShortageError | None:
    """Return the sentence for an error by which the kernel refuses a process, a thread or an open file, else None."""
    if isinstance(error, ShortageError):
        return error
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return ShortageError("There are too many open files.", "RLIMIT_NOFILE")
    if (
        (isinstance(error, OSError) and error.errno == errno.EAGAIN and error.filename is None)
        or (isinstance(error, RuntimeError) and "can't start new thread" in str(error))
        or (type(error).__name__ == "PanicException" and "WouldBlock" in str(error))
    ):
        return ShortageError("No further process or thread can be started.")
    return None


def usage_error(message: str, remedy: str, usage: str = "") -> CotenantError:
    """Return argparse's complaint as a sentence; for missing words the remedy is the `usage`, if there is one."""
    if wrong := _CHOICE.fullmatch(message):
        flag, given, choices = wrong.groups()
        word = given.strip("'")
        if sentence := removed(word, flag):
            return CotenantError(f"{flag} {word} was removed.", sentence)
        options = choices.replace("'", "").split(", ")
        words = " or ".join(filter(None, [", ".join(options[:-1]), options[-1]]))
        return CotenantError(f"{flag} takes {words}, not {given}.", did_you_mean(word, options) or remedy)
    if wrong := _NUMBER.fullmatch(message):
        flag, kind, given = wrong.groups()
        return CotenantError(f"{flag}: {given} is no {'whole ' if kind == 'int' else ''}number.", remedy)
    if wrong := _MISSING.fullmatch(message):
        return CotenantError(f"{wrong[1]} {'are' if ',' in wrong[1] else 'is'} missing.", usage or remedy)
    message = message.removeprefix("argument ").replace("expected one argument", "a value is missing behind it")
    return CotenantError(f"{message[0].upper()}{message[1:]}.", remedy)


def refuse_removed(flag: str, *places: str) -> None:
    """Raise CotenantError for a flag that was removed, from all commands or from one of these places."""
    if sentence := removed(flag, *places):
        raise CotenantError(f"The flag '{flag}' was removed.", sentence)


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return `Did you mean 'x'?` for the closest candidate, or "" if none is close."""
    import difflib  # most commands meet no typo

    # All flags have dashes, which would make any two of them similar.
    bare = {candidate.lstrip("-"): candidate for candidate in candidates}
    close = difflib.get_close_matches(word.lstrip("-"), bare, n=1, cutoff=0.6)
    return f"Did you mean '{bare[close[0]]}'?" if close else ""
