"""Nodes of one machine: a base, a lock and an output of its own for each, and one tenant."""

import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tenants.fixtures import suites_in
from tenants.suites import Suites, until

CLEARED_S = 20.0


class Nodes:
    """`start` starts the same command on all of them; `prefixes` are the words before it on each."""

    def __init__(self, suites: Sequence[Suites], prefixes: Sequence[Sequence[str]], host: str) -> None:
        self.suites, self.prefixes, self.host = suites, prefixes, host
        self.running: list[subprocess.Popen[str]] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    @property
    def leader(self) -> Suites:
        return self.suites[0]

    def start(self, jobs: list[dict[str, Any]], *flags: object) -> None:
        """Start node 0 last: the others wait for it."""
        self.running = [self.start_one(node, jobs, *flags) for node in reversed(range(len(self.suites)))][::-1]

    def start_one(self, node: int, jobs: list[dict[str, Any]], *flags: object) -> "subprocess.Popen[str]":
        suites = self.suites[node]
        place = ["--nnodes", len(self.suites), "--node-rank", node, "--rdzv-endpoint", f"{self.host}:{self.port}"]
        line = suites.line(jobs, "--users", 1, *place, *flags)
        with (suites.folder / "stdout").open("w") as out, (suites.folder / "stderr").open("w") as err:
            return subprocess.Popen(
                [*self.prefixes[node], *line],
                env=suites.environment,
                cwd=suites.folder,
                stdout=out,
                stderr=err,
                text=True,
            )

    def ended(self, limit_s: float) -> list[int]:
        """Wait for all of them; return their exit statuses."""
        return [process.wait(limit_s) for process in self.running]

    def said(self) -> str:
        return "\n".join(f"--- {suites.folder.name}\n{suites.said()}" for suites in self.suites)


@contextmanager
def nodes(
    folder: Path, prefixes: Sequence[Sequence[str]], host: str = "127.0.0.1", isolation: str = "none"
) -> Iterator[Nodes]:
    """Yield as many nodes as there are prefixes; whatever happens, nothing of them is left."""
    with ExitStack() as places:
        suites = []
        for node in range(len(prefixes)):
            place = folder / f"node{node}"
            place.mkdir()
            suites.append(places.enter_context(contextmanager(suites_in)(place, isolation)))
        made = Nodes(suites, prefixes, host)
        try:
            yield made
        finally:
            for process in made.running:
                process.kill()
                process.wait()
            with suppress(AssertionError):  # Each place says what is left in it.
                until(lambda: not any(one.leftovers() for one in suites), "reapers have cleared all", CLEARED_S)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Nodes]:
    with nodes(tmp_path, [[], []]) as made:
        yield made
