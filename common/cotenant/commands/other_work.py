"""Finds jobs that differ in work from the reference suite, to which the targets of device models apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cotenant.checkout import CHECKOUT
from cotenant.results.read import again
from cotenant.results.table import Rows
from cotenant.suite.fields import Args
from cotenant.suite.jobfile import load
from cotenant.text import listed

OF_NO_WORK = frozenset(
    [
        *("--repeat", "--number", "--skip", "--report", "--cuda", "--no-cuda", "--seed", "--workers"),
        *("--devices", "--ngpu", "--data", "--dataset-dir", "--dataroot"),
    ]
)
"""Flags for the amount of measurement, the number of devices, and the places of files: they change no work."""
SHOWN = 2


def other_arguments(records: Rows) -> dict[str, str]:
    """Return for each job the arguments that differ from the reference suite's; `records` has one record of each.

    Jobs that are not in that suite, and records without their command, are left out.
    """
    reference = {job.name: job for job in load(CHECKOUT / "baselines.json").jobs}
    found = {}
    for row, record in again(records):
        if not record.command or row["name"] not in reference:
            continue
        job = reference[row["name"]]
        flags_here, asked = _of_command(_behind(job.cmd, record.command)), _of_file(job.args)
        flags = [flag for flag in dict.fromkeys([*asked, *flags_here]) if flags_here.get(flag) != asked.get(flag)]
        if flags:
            found[row["name"]] = listed((_difference(flag, flags_here, asked) for flag in flags), SHOWN)
    return found


def _difference(flag: str, flags_here: Mapping[str, str], asked: Mapping[str, str]) -> str:
    here, there = (f"{flag} {flags[flag]}".rstrip() if flag in flags else "" for flags in (flags_here, asked))
    return f"{here}, not {asked[flag]}" if here and there else here or f"without {there}"


def _of_file(args: Args) -> dict[str, str]:
    return {
        flag: " ".join(map(str, values)) for flag, values in args if flag.startswith("-") and flag not in OF_NO_WORK
    }


def _behind(cmd: str, command: Sequence[str]) -> Sequence[str]:
    """Return the words after the program of a job; the words of an image's engine may precede it."""
    programs = (at for at, word in enumerate(command) if word.endswith(cmd.removeprefix(".")))
    return command[next(programs, 0) + 1 :]


def _of_command(words: Sequence[str]) -> dict[str, str]:
    """Return the flags of a command with the words after each, without places of files.

    The place of a job's input can be an operand after any flag's value: `--batch-size 64 /data/ImageNet/train`.
    """
    flags: dict[str, str] = {}
    flag = ""
    for word in words:
        if word.startswith("-") and not word[1:2].isdigit():
            flag, _, value = word.partition("=")
            flags[flag] = value
        elif flag and not word.startswith("/"):
            flags[flag] = f"{flags[flag]} {word}".lstrip()
    return {flag: value for flag, value in flags.items() if flag not in OF_NO_WORK}
