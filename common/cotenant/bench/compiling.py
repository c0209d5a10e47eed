"""Keeps compilation outside of the clock, and reports graphs that were compiled inside."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from cotenant.bench.chrono import StepFunction
from cotenant.bench.observed import compiled_graphs
from cotenant.bench.run import Run

COMPILING_STEPS = 5
"""Other shapes, and a part's second call, are compiled again; a benchmark that compiles after these always does."""

RECORDING = frozenset({"reduce-overhead", "max-autotune"})
"""The modes in which torch records compiled code in CUDA graphs."""


def keeping_no_output(step: StepFunction) -> StepFunction:
    """Return the step made to return a copy of its loss: a recorded model's next outputs overwrite its previous ones.

    torch cannot tell by itself where a step that calls several models begins.
    """

    def stepping(run: Any, batch: Any) -> Tensor | None:
        torch.compiler.cudagraph_mark_step_begin()
        loss = step(run, batch)
        return None if loss is None else loss.detach().clone()

    return stepping


def step_until_compiled(run: Run, step: Callable[[], object]) -> None:
    """Step until nothing is compiled any more: compiling may take minutes, and no measured time includes it."""
    for _ in range(COMPILING_STEPS):
        graphs = compiled_graphs()
        step()
        run.chosen.synchronize()
        if not run.any_says(compiled_graphs() != graphs):
            break


@contextlib.contextmanager
def compilations_noted(run: Run) -> Iterator[None]:
    """Count the graphs compiled inside this context, an observation; one is enough for a finding."""
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
