"""Keeps compilation out of the clock, and says where it was in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from cotenant.bench.observed import compiled_graphs
from cotenant.bench.run import Run

COMPILING_STEPS = 5
"""Other shapes and a second call of a part are compiled anew: a benchmark that still compiles then always does."""


def step_until_compiled(run: Run, step: Callable[[], object]) -> None:
    """Step until nothing is compiled any more: compiling may take minutes, and is part of no time that counts."""
    for _ in range(COMPILING_STEPS):
        graphs = compiled_graphs()
        step()
        run.chosen.synchronize()
        if not run.any_says(compiled_graphs() != graphs):
            break


@contextlib.contextmanager
def compilations_noted(run: Run) -> Iterator[None]:
    """Count the graphs that an observation compiles; any is a finding."""
    before = compiled_graphs()
    yield
    if graphs := compiled_graphs() - before:
        if "recompiled" not in run.observed:
            run.note(
                "recompiled",
                "warning",
                "Graphs were compiled inside observations: their time is no step's.",
                "Let all batches have the same shapes (TORCH_LOGS=recompiles says what changed), or skip more "
                "observations.",
            )
        run.observed["recompiled"] = run.observed.get("recompiled", 0) + graphs
