"""Makes a Ray node's orders and keeps its news, for a fleet and for one job alike."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cotenant.checkout import CHECKOUT, INSTALLED, SOURCE_ROOT
from cotenant.fleet.agent import NodeNews, NodeOrder
from cotenant.fleet.cluster import ClusterNode
from cotenant.results.store import write_whole

FINISHED = (0, 1)
"""Statuses of a suite that came to its end, all jobs passed or not."""


@dataclass(frozen=True, slots=True)
class RunnerPlan:
    """The command that every node runs below its `base`; the records come to `output` here.

    `words` are flags of `run`, `extra` is for the benchmarks; `files` are those that nodes lack, such as a job file.
    """

    words: Sequence[str]
    extra: Sequence[str]
    base: Path
    output: Path
    files: Mapping[str, bytes]


def runner_order(
    plan: RunnerPlan,
    node: ClusterNode,
    base: Path,
    work: Path,
    words: Sequence[str],
    files: Mapping[str, bytes] | None = None,
    shown: bool = False,
) -> NodeOrder:
    """Return a node's order by the plan: `base` is the runner's BASE, `work` holds its output and the files.

    `words` and `files` are this node's, beside those of the plan.
    """
    # Nodes of one host are no machines of their own: each has a lock of its own, and one tenant.
    own = ["--users", "1", "--cgroup-base", f"cotenant-{node.name}"] if node.emulated else []
    lock = {"COTENANT_LOCK": str(base / "lock")} if node.emulated else {}
    extra = ["--", *plan.extra] if plan.extra else []
    return NodeOrder(
        base=str(work),
        words=("run", *plan.words, *words, *own, "--outdir", "{base}/output", *extra),
        variables={"BASE": str(base), **lock},
        python=sys.executable,
        source="" if INSTALLED else str(SOURCE_ROOT),
        files={**plan.files, **(files or {})},
        shown=shown,
    )


def job_file(path: Path, suite: str) -> tuple[str, dict[str, bytes]]:
    """Return the name for `--jobs` on a node, and the file where nodes lack it: those of the checkout are there."""
    if path.resolve().parent in (CHECKOUT, CHECKOUT / "profiles"):
        return path.name, {}
    return f"{{base}}/{suite}.json", {f"{suite}.json": path.read_bytes()}


def keep_files(folder: Path, news: NodeNews) -> None:
    """Write the files that a node has sent, and remove those that it has set aside. Raises CotenantError."""
    folder.mkdir(exist_ok=True)
    for file, content in news.files.items():
        write_whole(folder / file, content)
    for file in news.aside:
        (folder / file).unlink(missing_ok=True)


def failure_of(news: NodeNews) -> str:
    """Return how a runner has ended: the last line that it printed, or the signal that ended it."""
    lines = [line.strip() for line in news.tail.splitlines() if line.strip()]
    if news.status is not None and news.status < 0:
        return f"its runner was ended by {signal.Signals(-news.status).name}."
    return lines[-1] if lines else f"its runner ended with status {news.status}."
