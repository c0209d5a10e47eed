"""Every command in a process of its own, as a person starts it: its output, and the modules that it imports.

Other tests call commands in their own process, where another test may have imported a module that a command forgot.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from commands.calling import write
from cotenant.commands import COMMANDS
from pages import PAGE_OF, launches, runs
from patience import HANG_S
from report.making import launch, solo
from tenants.suites import RUN, job

HEAVY = ("torch", "scipy", "polars", "matplotlib")
OF_TABLES = ("torch", "scipy.stats", "matplotlib")
PROGRAM = """
import atexit, runpy, sys
_, names, program, *words = sys.argv
atexit.register(lambda: open(names, "w").write("\\n".join(sys.modules)))
sys.argv = [program, *words]
runpy.run_path(program, run_name="__main__")
"""
"""Runs a program, and writes down at its end which modules it has imported."""


@dataclass(frozen=True)
class Shown:
    """Patterns of what a command prints, its exit status, and the modules that it may not import."""

    patterns: tuple[str, ...]
    without: tuple[str, ...]
    status: int = 0


SUITE = "--jobs sums.json --isolation none --users 2"
TABLE = {
    "--version": Shown((r"^cotenant \d+\.\d+\.\d+$",), HEAVY),
    "--help": Shown((r"--name NAMES", *(rf"^  {name} +\w" for name in COMMANDS if name != "run")), HEAVY),
    "help --all": Shown((r"--nnodes N", r"--settle S"), HEAVY),
    "exec --help": Shown((r"--count-line REGEX", r"^The command comes after --: "), HEAVY),
    "capacity --help": Shown((r"--keep SHARE", r"^Nothing is applied: "), HEAVY),
    "help report": Shown((r"--html FILE", r"--table \{throughput,"), HEAVY),
    "tune --help": Shown((r"--out FILE", r"--budget S"), ("torch", "polars", "matplotlib")),
    "list": Shown((r"^job +cells +item ", r"^vae +1 +image "), HEAVY),
    "plan --users 4": Shown((r"^ *B +3 ", r"^memory: .* 4 x "), HEAVY),
    "doctor --quick --jobs sums.json": Shown((r"^  ok +jobs +1 of 1 can be started", r"^\d\d checks: "), HEAVY),
    f"{SUITE} --dry": Shown((r"^sums: 2 users, ", r"sums\.py --repeat 8 --seed 100$"), HEAVY),
    "--dry": Shown((r"^vae: ", r"/run\.sh .*--seed 100$"), HEAVY),
    f"{SUITE} --show": Shown((r"^sums +student +1 cell ",), HEAVY),
    SUITE: Shown((r"^1/1 sums +\w+ +\d+ s ", r"^sums  ", r"^As a page, with pictures: "), ("torch", "matplotlib")),
    f"{SUITE} --resume -- --x": Shown((r"^cotenant: Repetition 0 began with other conditions: arg",), HEAVY, 2),
    "status": Shown(
        (r"^No suite runs on this machine\.$", r"^sums, repetition 0, in .*: 1 of 1 launch done"), HEAVY, 1
    ),
    "status --json": Shown((r'"schema": "cotenant-status-1"', r'"launches": 1,'), HEAVY, 1),
    "stop": Shown((r"^No suite runs on this machine\.$",), HEAVY),
    "report": Shown((r"^convnet +7533 7457 +image/s +90 % \(",), OF_TABLES),
    "report --html page.html": Shown((r"^cotenant: page\.html is written\.$",), ("torch", "scipy.stats")),
    "compare A B --fail-on slower": Shown((r"^convnet .* 1\.0000 .* UNCLEAR ",), OF_TABLES),
    "mlbench-report --gpu-model V100": Shown((r"^convnet +6 +215 ", r"^Score "), OF_TABLES),
    "export --out rows.parquet": Shown((r"\d\d rows in rows\.parquet\.$",), ("torch", "scipy", "matplotlib")),
    "archive -o run.tar.zst; verify run.tar.zst": Shown(
        (r"^run\.tar\.zst: \d+ files, journal ", r"^numbers +yes ", r"^All checks passed\.$"),
        ("torch", "scipy", "matplotlib"),
    ),
    "new my_field/my_model": Shown((r"^my_field/my_model/pytorch/main\.py$", r"--jobs my_model\.json$"), HEAVY),
    "completion bash": Shown((r"_report_option_strings=.*--html", r"^complete .* run\.sh$"), OF_TABLES),
}
"""Words behind `./run.sh`, with `;` between two lines of which the second needs the first."""
LONG = ("completion bash",)
"""Lines that take a second, and are tested by their command in process, too."""
ELSEWHERE = {
    "exec --users 2 -- python train.py": "tests/launch/test_exec.py",
    "exec --duet --users 1 -- python before/train.py --- python train.py": "tests/launch/test_exec.py",
    "capacity --keep 0.4 --budget 6m -- python train.py": "minutes: tests/commands/test_capacity_command.py",
    "doctor": "with its seconds by tests/commands/test_doctor.py, on a bad host, too",
    "fleet run --jobs cpu": "tests/fleet",
    "tune --jobs cpu --out tweaked.json": "half an hour: tests/questions/test_tune.py",
}
"""Lines of README that are not run here as they stand, with the reason; tests/launch/test_pages.py has the launches."""


class Place:
    """A directory with a workspace, in which command lines are run."""

    def __init__(self, folder: Path) -> None:
        ours = ("BASE", "DATA_DIRECTORY", "OUTPUT_DIRECTORY")
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if name not in ours}
        self.environment |= {"COTENANT_LOCK": str(folder / "lock"), "NO_COLOR": "1"}
        self._names = folder / "modules"
        self._typed: dict[str, tuple[int, str, set[str]]] = {}

    def types(self, line: str) -> tuple[int, str, set[str]]:
        """Return the exit status, the output and the imported modules of `./run.sh LINE`; each line runs once."""
        if line not in self._typed:
            words = [sys.executable, "-c", PROGRAM, str(self._names), RUN[1], *shlex.split(line)]
            ended = subprocess.run(
                words, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=HANG_S
            )
            modules = set(self._names.read_text().split())
            self._typed[line] = ended.returncode, ended.stdout + ended.stderr, modules
        return self._typed[line]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A directory with invented records, and those of a suite that ran there."""
    place = Place(tmp_path_factory.mktemp("place"))
    records = [record for uid in range(3) for record in launch("convnet", uid)]
    # Without a journal, as `archive` takes the files that one names.
    output = write(place.folder / "workspace/output", [*records, *solo("convnet")], journal=False)
    for name in "AB":
        (place.folder / name).symlink_to(output)
    (place.folder / "sums.json").write_text(json.dumps([job("sums.py", "--repeat", 8, name="sums")]))
    place.types(SUITE)
    return place


@pytest.mark.parametrize("lines", [pytest.param(lines, marks=[pytest.mark.slow] * (lines in LONG)) for lines in TABLE])
def test_a_command_shows_what_it_should_and_imports_no_more(lines: str, place: Place) -> None:
    row, said, modules = TABLE[lines], "", set[str]()
    for line in lines.split("; "):
        status, printed, imported = place.types(line)
        assert status == row.status, (line, printed)
        said, modules = said + printed, modules | imported
    for pattern in row.patterns:
        assert re.search(pattern, said, re.M), (pattern, said)
    assert "cotenant.cli" in modules
    assert sorted(modules.intersection(row.without)) == []


def test_every_command_of_the_readme_and_of_the_help_is_typed() -> None:
    typed = {line for lines in TABLE for line in lines.split("; ")}
    of_readme = [line for line, page in PAGE_OF.items() if str(page) == "README.md" and "./run.sh" in line]
    assert len(of_readme) > 15
    for line in of_readme:
        words = shlex.join(runs(line))
        assert words in typed or words in ELSEWHERE or launches(line), line
    first = {line.split()[0] for line in (*typed, *ELSEWHERE)}
    assert {*COMMANDS} - {"run"} <= first
