"""One job over several nodes of a Ray cluster: Ray places the runners, which meet as torchrun's do.

Not Ray Train's TorchTrainer: its ranks are Ray's own processes, and ours have to start inside slices.
"""

from __future__ import annotations

import math
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cotenant.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PASSED, CotenantError
from cotenant.fleet.cluster import RayCluster, keep_files
from cotenant.fleet.node import LOGS, News
from cotenant.results.journal import FILE as JOURNAL
from cotenant.text import endpoint, listed

ENDING_S = 90.0
"""The time for the other nodes once one has ended: node 0 hears of it within 60 s, and writes its record."""
STOPPING_S = 60.0
FINISHED = (EXIT_PASSED, EXIT_FAILED)
"""Statuses of a suite that came to its end, all jobs passed or not."""


@dataclass(frozen=True, slots=True)
class DistributedPlan:
    """The command that all nodes run together below `base`; node 0's records come to `output` here.

    `words` are flags of `run`, `extra` is for the benchmarks; `files` are files missing on nodes, such as a job file.
    `resume` says that `--resume` is among the words.
    """

    words: Sequence[str]
    extra: Sequence[str]
    base: Path
    output: Path
    files: Mapping[str, bytes]
    nodes: int
    resume: bool = False


class DistributedJob:
    """Runs one runner on each node until all have ended. Node 0, the first by name, keeps the records."""

    def __init__(
        self,
        plan: DistributedPlan,
        cluster: RayCluster,
        show: Callable[[bytes, bytes], None],
        tell: Callable[[str], None],
    ) -> None:
        """Prepare the job: `show` gets what node 0 wrote to standard output and error, `tell` our own lines.

        Raises CotenantError if fewer nodes answer than are asked for.
        """
        if len(cluster.nodes) < plan.nodes:
            raise CotenantError(
                f"Of the Ray cluster {len(cluster.nodes)} nodes answer, not {plan.nodes}.", "`ray status` shows them."
            )
        self._plan, self._cluster, self._show, self._tell = plan, cluster, show, tell
        self._names = list(cluster.nodes)[: plan.nodes]
        self._logs: dict[str, dict[str, bytes]] = {name: {} for name in self._names}
        self._folder, self._shown = Path(), dict.fromkeys(LOGS, 0)
        self._running: set[str] = set()
        self._status = EXIT_PASSED

    def run(self) -> int:
        """Run the job to its end; return node 0's exit status, or the first failure's. Raises CotenantError."""
        try:
            if self._start():
                self._watch(math.inf)
        except KeyboardInterrupt:
            self._status = EXIT_INTERRUPTED
        if self._running:
            self._tell(f"What still runs is ended: {listed(sorted(self._running), 12)}.")
            self._status = self._status or EXIT_FAILED
        # Node 0 first: it ends the launch on the others, but would count them as lost if they ended first.
        for names in (self._names[:1], self._names):
            if still := self._running.intersection(names):
                self._cluster.stop(frozenset(still))
                self._watch(STOPPING_S)
        for name in sorted(self._running):
            self._fail(name, " does not end.", EXIT_FAILED)
        return self._status

    def _start(self) -> bool:
        """Start all runners; return whether all were started."""
        self._tell(f"Ray nodes: {listed(self._names, 12)}. The records come to {self._plan.output}.")
        node0 = self._names[0]
        meeting = endpoint(self._cluster.nodes[node0], self._cluster.free_port(node0))
        at, history = time.strftime("%Y%m%d-%H%M%S"), self._known()
        self._folder = self._plan.base / "ray" / node0 / at
        behind = ["--", *self._plan.extra] if self._plan.extra else []
        for rank, name in enumerate(self._names):
            place = ["--nnodes", str(len(self._names)), "--node-rank", str(rank), "--rdzv-endpoint", meeting]
            folder, files = self._plan.base / "ray" / name / at, {**self._plan.files, **({} if rank else history)}
            words = ["run", *self._plan.words, "--launcher", "torchrun", *place, "--outdir", str(folder / "output")]
            if reason := self._cluster.start(name, folder, [*words, *behind], self._plan.base, files):
                self._fail(name, f": {reason}", EXIT_FAILED)
                return False
            self._running.add(name)
        return True

    def _known(self) -> dict[str, bytes]:
        """Return the files that node 0 goes on with: the journal of the directory, and with --resume its records."""
        paths = [*self._plan.output.glob(JOURNAL), *(self._plan.output.glob("*.json") if self._plan.resume else [])]
        return {f"output/{path.name}": path.read_bytes() for path in paths}

    def _watch(self, limit_s: float) -> None:
        """Take the nodes' news until all have ended, or the time is over: ENDING_S at most once one has ended."""
        until_s = time.monotonic() + limit_s
        while self._running and time.monotonic() < until_s:
            for name, news in self._cluster.news(frozenset(self._running)):
                if isinstance(news, str):
                    self._running.discard(name)
                    self._fail(name, f" is lost: {news}", EXIT_FAILED)
                else:
                    self._take(name, news)
            if len(self._running) < len(self._names):
                until_s = min(until_s, time.monotonic() + ENDING_S)

    def _take(self, name: str, news: News) -> None:
        (files, status), logs = news, self._logs[name]
        logs |= {log: files[log] for log in LOGS if log in files}
        if name == self._names[0]:
            keep_files(self._plan.output, {name: files[name] for name in files.keys() - LOGS})
            self._show(*(self._news_of(log, status is not None) for log in LOGS))
        if status is None:
            return
        self._running.discard(name)
        if status not in (*FINISHED, EXIT_INTERRUPTED):
            lines = [line.strip() for log in LOGS for line in logs[log].decode(errors="replace").splitlines()]
            said = [line for line in lines if line] or [f"its runner ended with status {status}."]
            self._fail(name, f": {said[-1]}", max(status, EXIT_FAILED))
        elif name == self._names[0]:
            self._status = self._status or status

    def _news_of(self, log: str, whole: bool) -> bytes:
        """Return node 0's lines not shown yet, an unfinished one only if `whole`; the records' directory here replaces
        the node's."""
        text, begin = self._logs[self._names[0]].get(log, b""), self._shown[log]
        end = self._shown[log] = len(text) if whole else max(begin, text.rfind(b"\n") + 1)
        lines = text[begin:end].decode(errors="surrogateescape")
        # Tenants' logs stay on the node.
        for written in (shlex.quote, str):
            place, output = written(str(self._folder / "output")), written(str(self._plan.output))
            lines = output.join(re.split(f"{re.escape(place)}(?!/logs)", lines))
        return lines.encode(errors="surrogateescape")

    def _fail(self, name: str, end: str, status: int) -> None:
        """Tell of a node's failure; the first decides the exit status."""
        self._tell(f"Node {self._names.index(name)} ({name}){end}")
        self._status = self._status or status
