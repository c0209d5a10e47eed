"""--graph: a whole training step, recorded once in a CUDA graph and replayed, in one launch instead of hundreds.

Values on the host are recorded as they were, so a step that keeps something there from one to the next is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils._pytree import tree_flatten, tree_map_only

from cotenant.bench.chrono import StepFunction
from cotenant.bench.lamb import LAMB
from cotenant.bench.outcome import UnsupportedError, reason_of
from cotenant.bench.run import Run

REMEDY = "Leave --graph out."
COUNT_NO_STEPS = (torch.optim.SGD, LAMB)


def refuse(run: Run) -> None:
    """Raise UnsupportedError where no step of this run can be recorded."""
    if run.device.type != "cuda":
        raise UnsupportedError(f"--graph needs a device of CUDA or ROCm, and this run is on {run.device.type}.", REMEDY)
    if run.world.size > 1:
        raise UnsupportedError(f"--graph records the step of one process, and here are {run.world.size}.", REMEDY)


class ReplayedStep:
    """Called as the step is: brings the batch to where the recorded one lies, replays, and returns a copy of the loss.

    Raises UnsupportedError for a step that cannot be recorded, and for a batch that is not like the recorded one.
    """

    def __init__(
        self, step: StepFunction, run: Run, batch: Any, optimizers: Sequence[Optimizer], resident: bool
    ) -> None:
        """Record `step` on `batch`, which trains on it a few times; `resident`: every batch is this very one."""
        if run.uneven:
            raise UnsupportedError("Steps that differ in their work cannot be replayed from one graph.", REMEDY)
        self._precision = run.precision
        self._batch = batch if resident else tree_map_only(Tensor, Tensor.clone, batch)
        self._resident = resident
        leaves, self._form = tree_flatten(self._batch)
        self._inputs = _tensors(leaves)
        self._like = _likeness(leaves)
        for optimizer in optimizers:
            _make_capturable(optimizer)
        attributes, settings = dict(vars(run.benchmark)), _settings(optimizers)
        counts: list[tuple[int, int]] = []

        def work() -> Tensor | None:
            counts.append((self._precision.updates, self._precision.stepped))
            for optimizer in optimizers:
                optimizer.zero_grad()  # So that gradients lie in the graph's own memory.
            loss = step(run, self._batch)
            return None if loss is None else loss.detach()

        try:
            self._recorded = run.chosen.recorded(work)
        except RuntimeError as error:
            sentence = f"This step cannot be recorded in a CUDA graph: {reason_of(error)}."
            raise UnsupportedError(sentence, REMEDY) from error
        self.memory = self._recorded.memory
        """Lets a step that is not replayed work in the memory of the recorded one: the device has no other for it."""
        # Work that was counted while the step was recorded did not run.
        before = counts[-1]
        self._updates, self._stepped = self._precision.updates - before[0], self._precision.stepped - before[1]
        self._precision.updates, self._precision.stepped = before
        names = sorted(name for name, value in vars(run.benchmark).items() if attributes.get(name, run) is not value)
        if names:
            raise UnsupportedError(
                f"Its steps keep {', '.join(names)} from one to the next, which a graph would not.", REMEDY
            )
        if _settings(optimizers) != settings:
            raise UnsupportedError("Its steps change an optimizer's settings, which a graph would not.", REMEDY)

    def __call__(self, run: Run, batch: Any) -> Tensor | None:
        if not self._resident:
            self._take(batch)
        self._recorded.graph.replay()
        self._precision.updates += self._updates
        self._precision.stepped += self._stepped
        # The next replay writes where this one's lies.
        loss = self._recorded.value
        return None if loss is None else loss.clone()

    def _take(self, batch: Any) -> None:
        leaves, form = tree_flatten(batch)
        # A copy of fewer rows would be spread over all of them.
        if form != self._form or _likeness(leaves) != self._like:
            raise UnsupportedError("A batch has other shapes than the recorded one, and a graph has one.", REMEDY)
        if inputs := _tensors(leaves):
            torch._foreach_copy_(self._inputs, inputs, non_blocking=True)


def _tensors(leaves: Sequence[Any]) -> list[Tensor]:
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _likeness(leaves: Sequence[Any]) -> list[Any]:
    """Return the equal properties of batches that one graph can train on; numbers of the host are part of the graph."""
    return [(leaf.shape, leaf.dtype) if isinstance(leaf, Tensor) else leaf for leaf in leaves]


def _make_capturable(optimizer: Optimizer) -> None:
    """Let an optimizer that has stepped count its steps on the device. Raises UnsupportedError where it cannot."""
    if not isinstance(optimizer, COUNT_NO_STEPS) and "capturable" not in optimizer.defaults:
        raise UnsupportedError(f"{type(optimizer).__name__} counts its steps on the host.", REMEDY)
    for group in optimizer.param_groups:
        if "capturable" in group:
            group["capturable"] = True
    for weight, state in optimizer.state.items():
        if isinstance(steps := state.get("step"), Tensor):
            state["step"] = steps.to(weight.device)


def _settings(optimizers: Sequence[Optimizer]) -> list[dict[str, Any]]:
    """Return the numbers by which optimizers step, as their learning rates."""
    groups = (group for optimizer in optimizers for group in optimizer.param_groups)
    return [{name: value for name, value in group.items() if name != "params"} for group in groups]
