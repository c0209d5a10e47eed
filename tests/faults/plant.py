"""Plants the faults of faults.toml, one at a time, and says which test catches each: does the suite still see them?

python tests/faults/plant.py [--only ID ...] [--named] [--tree DIR] [--results FILE]

A fault is one changed text in one file of a copy of the checkout, so that the checkout stays whole however this ends.
A test that fails with the fault and passes without it has caught it. Slow tests are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FAULTS = Path(__file__).with_name("faults.toml")
LIMIT_S = 600
UNRELATED = 3
"""Most tests that are left out since they fail without the fault, too: a tree with more is not fit for this."""


def known_faults() -> list[dict[str, Any]]:
    """Return the faults with their ids and rooms: a fault names its room, or its id begins with it."""
    faults = tomllib.loads(FAULTS.read_text())
    return [{"id": name, "room": name.rpartition("-")[0]} | fault for name, fault in faults.items()]


def place_of(tree: Path, fault: dict[str, Any]) -> Path:
    """Return the file that holds the fault's old text once: the file that it names, or the one that holds it now."""
    named = tree / fault["file"]
    if named.is_file() and named.read_text().count(fault["old"]) == 1:
        return named
    files = (path for folder in ("common", "tasks") for path in (tree / folder).rglob("*.py"))
    holders = [path for path in files if fault["old"] in path.read_text()]
    if len(holders) != 1 or holders[0].read_text().count(fault["old"]) != 1:
        sys.exit(f"{fault['id']}: {fault['old']!r} is not found once: bring tests/faults/faults.toml up to date.")
    return holders[0]


def planted(path: Path, fault: dict[str, Any]) -> AbstractContextManager[None]:
    return planted_text(path, path.read_text().replace(fault["old"], fault["new"]))


@contextmanager
def planted_text(path: Path, text: str) -> Iterator[None]:
    """Give a file another text for a while."""
    before = path.read_text()
    path.write_text(text)
    try:
        yield
    finally:
        path.write_text(before)


def run_tests(tree: Path, tests: list[str], left_out: list[str]) -> tuple[str, str]:
    """Return the first test that fails, empty where none does, and its message or pytest's last lines."""
    line = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestWarning"]
    line += [f"--deselect={test}" for test in left_out]
    environment = os.environ | {"PYTHONPATH": str(tree / "common"), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [*line, *tests], cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        output = process.communicate(timeout=LIMIT_S)[0]
    except subprocess.TimeoutExpired:
        return "(the tests hang)", ""
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    found = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - (.*))?$", output, re.MULTILINE)
    if found is not None:
        return found[1], found[2] or ""
    return ("" if process.returncode in (0, 5) else "(pytest cannot run)"), output[-500:]


def fails_for_it(tree: Path, fault: dict[str, Any], path: Path, test: str) -> bool:
    """Return whether a test passes without the fault and fails with it again, as a failure by chance would not."""
    if run_tests(tree, [test], [])[0]:
        return False
    with planted(path, fault):
        return bool(run_tests(tree, [test], [])[0])


def catcher(tree: Path, fault: dict[str, Any], path: Path, everywhere: bool) -> str:
    """Return the test that catches a fault, empty where none does; those that it does not name only if `everywhere`."""
    named = [test for test in fault.get("tests", ()) if (tree / test).exists()]
    room = [f"tests/{name}" for name in dict.fromkeys((fault["room"], "commands")) if (tree / "tests" / name).exists()]
    left_out: list[str] = []
    for tests in (named, room if everywhere else []):
        while tests and len(left_out) < UNRELATED:
            with planted(path, fault):
                test, _ = run_tests(tree, tests, left_out)
            if not test:
                break
            if test.startswith("(") or fails_for_it(tree, fault, path, test):
                return test
            left_out.append(test)
    return ""


@contextmanager
def copy_of(tree: Path) -> Iterator[Path]:
    """Give a copy of a checkout's tracked files and of its untracked files that git does not ignore."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    line = ["git", "-C", str(tree), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(line, check=True, capture_output=True, text=True).stdout.split("\0")
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        for name in names:
            if (tree / name).is_file():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(tree / name, Path(folder) / name, follow_symlinks=False)
        yield Path(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="ID", help="these faults only")
    parser.add_argument("--named", action="store_true", help="the tests that a fault names only")
    parser.add_argument("--tree", type=Path, default=ROOT, help="another checkout to plant them in")
    parser.add_argument("--results", type=Path, metavar="FILE", help="a JSON file to which results are added")
    given = parser.parse_args()
    faults = [one for one in known_faults() if not given.only or one["id"] in given.only]
    caught = 0
    with copy_of(given.tree.resolve()) as tree:
        places = {one["id"]: place_of(tree, one) for one in faults}
        for one in faults:
            test = catcher(tree, one, places[one["id"]], everywhere=not given.named)
            caught += bool(test)
            print(f"{one['id']:12} {'caught by ' + test if test else 'SURVIVED'}: {one['what']}", flush=True)
            if given.results is not None:
                known = json.loads(given.results.read_text()) if given.results.exists() else {}
                given.results.write_text(json.dumps(known | {one["id"]: test}, indent=1) + "\n")
    print(f"{caught} of {len(faults)} faults are caught.")
    return 0 if caught == len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())
