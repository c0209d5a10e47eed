"""The command lines of README and docs, each with the page that has it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from cotenant.commands import COMMANDS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
COMMAND = re.compile(r"^(\$ )?((sudo|srun|docker|make|python3?|git) |[A-Z_]+=\S+ .*\./|\./|[\w/]+\.py )")
READING = ("plan", "doctor", "compare", "report", "export", "mlbench-report", "list", "completion")
"""Commands that test_docs.py runs as they stand, on records that it makes."""


def command_lines(page: Path) -> Iterator[str]:
    """Yield the command lines of a page's code blocks, without their explanations, one for each of their choices."""
    for language, block in FENCE.findall(page.read_text()):
        for line in block.splitlines():
            if language in ("", "sh", "bash") and COMMAND.match(line):
                words = re.split(r"  +|\s#", line.removeprefix("$ "), maxsplit=1)[0]
                for command in re.split(r"\s*(?:;|&&)\s*", words):
                    yield from choices(command)


def choices(command: str) -> Iterator[str]:
    """Yield `--format md` and `--format csv` for `--format md|csv`."""
    several = next((word for word in command.split() if "|" in word and "'" not in word), None)
    if several is None:
        yield command
        return
    for choice in several.split("|"):
        yield from choices(command.replace(several, choice, 1))


PAGE_OF = {line: page.relative_to(ROOT) for page in reversed(PAGES) for line in command_lines(page)}
LINES = {f"{page}: {line}": line for line, page in PAGE_OF.items()}


def runs(line: str) -> list[str]:
    """Return the words behind `./run.sh` or `./run_10.sh` in a line; none if it has neither."""
    words = shlex.split(line)
    return next((words[at + 1 :] for at, word in enumerate(words) if word in ("./run.sh", "./run_10.sh")), [])


def launches(line: str) -> bool:
    """Return whether a line launches a suite."""
    words = runs(line)
    return "./run" in line and not ({*words[:1]} & {*COMMANDS} or {"--help", "--version", "--show", "--dry"} & {*words})


def reads(line: str) -> bool:
    """Return whether a line only reads records or the properties of the machine."""
    return bool({*runs(line)[:1]} & {*READING})


LAUNCHING = {place: line for place, line in LINES.items() if launches(line)}
OTHERS = {
    place: line
    for place, line in LINES.items()
    if "./run.sh" in line and not launches(line) and (not reads(line) or "doctor" in line)
}
"""Other commands, which launch no suite. The fast tests run `doctor` without the child that imports torch."""
ELSEWHERE = {
    "./test.sh": "these tests",
    "PYTHON=": "these tests, or an environment: tests/test_install.py",
    "VENV=": "these tests, or an environment: tests/test_install.py",
    "make ": "these tests, or hours of measuring",
    "python tests/faults/": "these tests, a hundred times",
    "sudo tests/vm/": "brings a virtual machine",
    "sudo ./cgroup_setup.sh": "changes the machine: tests/commands/test_cgroup_setup_real.py",
    "FAKE_DATASET=0 ": "needs archives of the real sets",
    "./download_datasets.sh": "gigabytes: tests/datasets has each maker in small",
    "python scripts/image.py": "tests/launch/test_containers.py has what it prints",
    "podman build": "gigabytes, from a registry of images",
    "apptainer build": "gigabytes, from a registry of images",
    "git clone": "needs a place to clone from",
    "cd ": "does nothing",
}
"""The beginnings of lines that no test runs as they stand, and the reasons."""
