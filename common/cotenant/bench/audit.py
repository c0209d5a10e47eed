"""The audit step: between observations a step is watched as the warm-up's first one was, and has to be the same work.

It trains on the warm-up's own batch, eager, also where the measured steps are compiled. What it changes is put back, so
that the same seed has the same losses, wherever the audit came: optimizers step the weights alone that are looked at,
since of all of them there is no room for copies. A program that recognises it is out of its reach.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from cotenant.bench.loader import rows
from cotenant.bench.parallel import local

if TYPE_CHECKING:
    from cotenant.bench.run import Run

LIKE = 0.01
"""By what share the operations of two equal steps may differ."""
LESS = 0.5
"""Batches of one set differ in their size, but not by so much where those of the warm-up were equal."""
FADED = 0.01
"""What is learned by heart changes no more: its gradients have come down to a part of the warm-up's."""
WEIGHTS, ELEMENTS, MOST_BYTES = 16, 4096, 1 << 24
"""Of so many weights, none of more bytes, so many elements are looked at: one of them changes in a step that trains."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one watched step did; None is what nobody knows, or what may differ from step to step."""

    flops: int | None = None
    dtype: str | None = None
    weights: tuple[str, ...] = ()
    updates: int | None = None
    moved: bool | None = None
    """Did weights change?"""
    made: bool | None = None
    """Was its loss computed in it?"""
    items: float | None = None
    elements: int | None = None
    """Of the largest tensor of the batch that was observed last."""

    def unlike(self, first: Step, uneven: bool) -> list[str]:
        """Return in what this step is other work than `first`; of `uneven` steps one may do more than another."""
        differences = []
        if self.flops and first.flops:
            ratio = self.flops / first.flops
            if ratio < 1 - LIKE or (ratio > 1 + LIKE and not uneven):
                differences.append(f"{self.flops:.4g} operations, not {first.flops:.4g}")
        elif first.flops:
            differences.append("no operations")
        if first.dtype and self.dtype and self.dtype != first.dtype:
            differences.append(f"products in {self.dtype}, not {first.dtype}")
        if self.weights and self.weights != first.weights:
            differences.append(f"weights in {', '.join(self.weights)}, not {', '.join(first.weights)}")
        if first.updates and self.updates != first.updates:
            differences.append(f"{self.updates} updates of weights, not {first.updates}")
        elif first.moved and self.moved is False:
            differences.append("no change of the weights that it trained before")
        if first.made and self.made is False:
            differences.append("a loss that was not computed in it")
        if not uneven and self.items != first.items:
            differences.append(f"{self.items:g} items, not {first.items:g}")
        if first.elements and self.elements is not None and self.elements < LESS * first.elements:
            differences.append(f"batches of {self.elements} elements, not {first.elements}")
        return differences


@dataclass(slots=True)
class Audits:
    """The audit steps of a run: after how many observations each was made, what it took, and what was other work."""

    after: list[int] = field(default_factory=list)
    cost_ns: list[int] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def add(self, after: int, cost_ns: int, differences: Sequence[str]) -> None:
        self.after.append(after)
        self.cost_ns.append(cost_ns)
        self.differences += [words for words in differences if words not in self.differences]


@dataclass(frozen=True, slots=True)
class Weights:
    """Some elements of some of the weights that optimizers step, as they are at a moment."""

    values: list[torch.Tensor]
    gradient: float
    """The largest of their gradients, as the last update left them."""

    @classmethod
    def of(cls, optimizers: Sequence[torch.optim.Optimizer]) -> Weights:
        some = sample(optimizers)
        flat = [local(weight.detach()).flatten() for weight in some]
        gradients = [local(weight.grad) for weight in some if weight.grad is not None]
        sizes = [
            gradient.abs().max().float()
            for gradient in gradients
            if gradient.numel() and gradient.layout == torch.strided
        ]
        gradient = float(torch.stack(sizes).max()) if sizes else 0.0
        return cls([part[:: max(1, part.numel() // ELEMENTS)].clone() for part in flat], gradient)

    def changed(self, before: Weights) -> bool:
        """Return whether any element is another than it was."""
        return not all(torch.equal(*pair) for pair in zip(before.values, self.values, strict=True))


def weights_of(optimizers: Iterable[torch.optim.Optimizer]) -> list[torch.Tensor]:
    return [weight for optimizer in optimizers for group in optimizer.param_groups for weight in group["params"]]


def sample(optimizers: Iterable[torch.optim.Optimizer]) -> list[torch.Tensor]:
    """Return the weights that are looked at: from first to last, without large ones where there are others."""
    every = weights_of(optimizers)
    small = [weight for weight in every[:: max(1, len(every) // WEIGHTS)] if weight.nbytes <= MOST_BYTES]
    return small or sorted(every, key=lambda weight: weight.nbytes)[:1]


def steps_each_alone(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether one weight's step depends on its own gradient and state alone: known of torch's and apex's."""
    return type(optimizer).__module__.rpartition(".")[0] in ("torch.optim", "apex.optimizers")


@contextlib.contextmanager
def stepping(optimizer: torch.optim.Optimizer, chosen: Collection[int]) -> Iterator[None]:
    """Let the optimizer step, of all its weights, those alone whose ids are chosen."""
    groups = [(group, group["params"]) for group in optimizer.param_groups]

    def step(*args: Any, **options: Any) -> Any:
        try:
            for group, weights in groups:
                group["params"] = [weight for weight in weights if id(weight) in chosen]
            return type(optimizer).step(optimizer, *args, **options)
        finally:
            for group, weights in groups:
                group["params"] = weights

    optimizer.step = step  # type: ignore[method-assign]
    try:
        yield
    finally:
        del optimizer.step


class Saved:
    """The state of a training run at a moment: weights, buffers, optimizers, scaler, generators, own attributes.

    The copies lie in the host's memory: a device may be full. Weights whose ids are in `still` do not change, nor does
    what optimizers keep of them: these are not copied.
    """

    def __init__(
        self, run: Run, optimizers: Sequence[torch.optim.Optimizer], still: Collection[int] = frozenset()
    ) -> None:
        self._run = run
        states = [
            state for optimizer in optimizers for weight, state in optimizer.state.items() if id(weight) not in still
        ]
        placed = (tensor for module in run.modules for tensor in (*module.parameters(), *module.buffers()))
        stepped = (value for state in states for value in state.values())
        every = (*weights_of(optimizers), *placed, *stepped, run.precision.overflowed)
        changing = (value for value in every if isinstance(value, torch.Tensor) and id(value) not in still)
        tensors = {id(value): local(value.detach()) for value in changing}
        self._copies = [(tensor, tensor.to("cpu", copy=True)) for tensor in tensors.values()]
        self._plain = [
            (state, {key: value for key, value in state.items() if not isinstance(value, torch.Tensor)})
            for state in states
        ]
        precision = run.precision
        self._attributes = dict(vars(run.benchmark))
        self._counts = precision.updates, precision.stepped, precision.overflowed
        self._scaler = None if precision.scaler is None else precision.scaler.state_dict()
        self._generators = random.getstate(), np.random.get_state(), torch.get_rng_state()
        self._device = torch.get_device_module(run.device) if run.chosen.is_accelerator else None
        self._on_device = None if self._device is None else self._device.get_rng_state(run.device)

    def restore(self) -> None:
        """Put all of it back in place."""
        with torch.no_grad():
            for tensor, copy in self._copies:
                tensor.copy_(copy)
        for state, values in self._plain:
            state.update(values)
        vars(self._run.benchmark).update(self._attributes)
        precision = self._run.precision
        precision.updates, precision.stepped, precision.overflowed = self._counts
        if precision.scaler is not None and self._scaler is not None:
            precision.scaler.load_state_dict(self._scaler)
        random.setstate(self._generators[0])
        np.random.set_state(self._generators[1])
        torch.set_rng_state(self._generators[2])
        if self._device is not None:
            self._device.set_rng_state(self._on_device, self._run.device)


@contextlib.contextmanager
def undone(run: Run, optimizers: Sequence[torch.optim.Optimizer]) -> Iterator[None]:
    """Put back what a step changes; of optimizers whose weights step each alone those move that are looked at."""
    alone = [optimizer for optimizer in optimizers if steps_each_alone(optimizer)]
    chosen = {id(weight) for weight in sample(optimizers)}
    saved = Saved(run, optimizers, still={id(weight) for weight in weights_of(alone)} - chosen)
    try:
        with contextlib.ExitStack() as stack:
            for optimizer in alone:
                stack.enter_context(stepping(optimizer, chosen))
            yield
    finally:
        saved.restore()


def rows_or_none(batch: Any) -> int | None:
    """Return the rows of a batch, where it has any."""
    try:
        return rows(batch)
    except (TypeError, IndexError, KeyError, StopIteration):
        return None
