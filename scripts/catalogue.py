"""Makes docs/catalogue.md from the benchmarks' own sources and the job files, so that no benchmark is missing there:

python scripts/catalogue.py > docs/catalogue.md
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from cotenant.launch.command import resolve_command
from cotenant.suite.jobfile import load
from cotenant.suite.task_source import source_of, task_of

ROOT = Path(__file__).resolve().parents[1]
SUITES = ("baselines.json", *(f"profiles/{name}.json" for name in ("lambda", "modern", "scaling", "ceilings")))
HEAD = """# Benchmarks

The benchmarks that come with Cotenant: the work of each in its own words, the unit of its rate, and the jobs that run
it, by job file. Sizes, exact parameter counts and data stand on its page. `./run.sh list` has the jobs of one file,
with the seconds that they took here. `profiles/cpu.json` has the jobs of `baselines.json` in sizes for processors,
`profiles/16gb.json` has them in half the batches, for devices of 16 GB, `profiles/h100.json` those for a large device,
with their tf32 and bf16 twins, and `profiles/cotenancy.json` six small ones beside each other.

This page is made by `python scripts/catalogue.py`.
"""
ROW = "| benchmark | what it trains | item | jobs |\n|---|---|---|---|"


def main() -> None:
    print("\n".join([HEAD, *tables()]))


def tables() -> Iterator[str]:
    """Yield the lines of a table for each field of work."""
    jobs: dict[Path, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in SUITES:
        suite = load(ROOT / name)
        for job in suite.jobs:
            task = task_of(resolve_command(job.cmd, job.name, suite.path, ROOT))
            names = jobs[task or ROOT][Path(name).stem]
            if (family := job.family or job.name) not in names:
                names.append(family)
    field = ""
    for task in sorted((ROOT / "tasks").glob("*/*/pytorch/main.py")):
        if task.parts[-4] != field:
            field = task.parts[-4]
            yield f"\n## {field.replace('_', ' ').capitalize()}\n\n{ROW}"
        source = source_of(task)
        of_suites = "; ".join(f"{suite}: {', '.join(names)}" for suite, names in jobs[task].items())
        page = page_of(task, [family for names in jobs[task].values() for family in names])
        yield f"| [{task.parts[-3]}]({page}) | {source.trains} | {source.item} | {of_suites} |"


def page_of(task: Path, families: Sequence[str]) -> str:
    """Return the page that names a benchmark's directory, else the one of its field, else one with a row for a job."""
    pages = {page: page.read_text() for page in sorted((ROOT / "docs/tasks").glob("*.md"))}
    of_field = (page for page in pages if page.stem == task.parts[-4])
    by_row = (page for page, text in pages.items() if any(f"`{family}`" in text for family in families))
    by_path = (page for page, text in pages.items() if "/".join(task.parts[-4:-2]) in text)
    page = next(chain(by_path, of_field, by_row), None)
    if page is None:
        sys.exit(f"No page or row below docs/tasks is on {'/'.join(task.parts[-4:-2])}: write one.")
    return str(page.relative_to(ROOT / "docs"))


if __name__ == "__main__":
    main()
