"""Keeps compilation out of the clock, and says where it was in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from cotenant.bench.observed import compiled_graphs
from cotenant.bench.run import Run
from cotenant.finding import Finding

COMPILING_STEPS = 5
"""Other shapes and a second call of a part are compiled anew: a benchmark that still compiles then always does."""


class Compiling:
    """The compilation of one run's steps."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def settle(self, step: Callable[[], object]) -> None:
        """Step until nothing is compiled any more: compiling may take minutes, and is part of no time that counts."""
        run = self._run
        for _ in range(COMPILING_STEPS):
            graphs = compiled_graphs()
            step()
            run.chosen.synchronize()
            if not run.world.any_says(compiled_graphs() != graphs, run.chosen):
                break

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Count the graphs that an observation compiles; any is a finding."""
        before = compiled_graphs()
        yield
        if graphs := compiled_graphs() - before:
            if "recompiled" not in self._run.observed:
                finding = Finding(
                    "recompiled",
                    "warning",
                    "Graphs were compiled inside observations: their time is no step's.",
                    "Let all batches have the same shapes (TORCH_LOGS=recompiles says what changed), or skip more "
                    "observations.",
                )
                self._run.findings.append(finding)
            self._run.observed["recompiled"] = self._run.observed.get("recompiled", 0) + graphs
