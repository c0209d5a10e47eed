"""`new`: writes the skeleton of a benchmark, which already trains, with its test and a job file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template

from cotenant.checkout import PROGRAM
from cotenant.commands.flags import Parser
from cotenant.commands.output import tell
from cotenant.errors import EXIT_PASSED, CotenantError
from cotenant.results.store import write_named

SKELETON = Path(__file__).with_name("skeleton")
RUN = '#!/usr/bin/env bash\nexec python "$(dirname "${BASH_SOURCE[0]}")/main.py" "$@"\n'
_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


def main(argv: Sequence[str]) -> int:
    """Write the files. Returns 0; raises CotenantError for an impossible name, and for files that exist."""
    given = parser().parse_words(argv)
    task, _, model = given.name.partition("/")
    if not (_NAME.fullmatch(task) and _NAME.fullmatch(model)):
        raise CotenantError(
            f"'{given.name}' is no name of a benchmark.",
            "It is task/model in small letters, digits and _: image_classification/mixer",
        )
    directory: Path = given.into
    files = dict(_files(task, model))
    if there := [name for name in files if (directory / name).exists()]:
        raise CotenantError(f"{directory / there[0]} is there already.", "Choose another name, or move it away.")
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_named(path, content.encode(), "--into names another directory.")
        if path.suffix == ".sh":
            path.chmod(0o755)
        tell(str(path))
    tell(f"Try it: {PROGRAM} --jobs {directory / f'{model}.json'}")
    return EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `new`."""
    parser = Parser("new", "Write the skeleton of a benchmark, its test and a job file.")
    parser.add_argument("name", metavar="TASK/MODEL", help="its task, and the model it trains")
    where = "the directory of the job file, with the benchmark below it (default: where you are)"
    parser.add_argument("--into", metavar="DIR", type=Path, default=Path(), help=where)
    return parser


def _files(task: str, model: str) -> Iterator[tuple[str, str]]:
    """Yield names and contents."""
    place = f"{task}/{model}/pytorch"
    names = {"name": "".join(word.capitalize() for word in model.split("_")), "title": model}
    for name in ("main.py", "test_main.py"):
        yield f"{place}/{name}", Template((SKELETON / f"{name}.txt").read_text()).substitute(names)
    yield f"{place}/run.sh", RUN
    args = {"--repeat": 20, "--number": 100, "--batch-size": 64, "--report": "$OUTPUT_DIRECTORY", "--cuda": ""}
    job = {"name": model, "cmd": f"./{place}/run.sh", "cgroup": "student", "args": args}
    yield f"{model}.json", json.dumps([job], indent=1) + "\n"
