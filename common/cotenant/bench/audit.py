"""The audit: between observations some steps are watched as the warm-up's were, and have to be the same work.

They train on the warm-up's own batch, eager, also where the measured steps are compiled. Their changes are undone,
so that the same seed has the same losses, wherever the audit came. A program that recognises it is out of its reach.

Steps of an honest program may differ: parts of a network are left out at random, every eighth step evaluates, four
losses make one update. So an audit that sees something else goes on for some steps, and judges whether the
warm-up's work comes back in any of them, or lies no further from them than they lie from each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from cotenant.bench.loader import rows
from cotenant.bench.parallel import local
from cotenant.bench.saved import sample

LIKE = 0.01
"""The operations of two equal steps may differ by this share."""
MOST_STEPS = 16
"""Most steps of an audit, where something has changed."""
LONG_AUDIT_NS = 10_000_000_000
"""An audit that took so long goes on no further."""
FADED = 0.01
"""Weights whose gradients, times the learning rate, are less than this part of the warm-up's need not change."""
MOVED, MOVED_IN_TURNS = 0.8, 0.4
"""The least part of the warm-up's movement: where each of its steps moved all weights, and where they took turns."""
ELEMENTS = 4096
"""So many of a weight are looked at: one of them changes in a step that trains."""


@dataclass(frozen=True, slots=True)
class Step:
    """The facts of one watched step; None where a fact is unknown, or may differ from step to step."""

    flops: int | None = None
    asked: int = 1
    """How often an optimizer that decides by itself computed the loss."""
    dtype: str | None = None
    weights: tuple[str, ...] = ()
    updates: int | None = None
    moved: float | None = None
    """The part that changed of those weights that its gradients should have changed."""
    trained: bool | None = None
    """Did an optimizer step any of the weights that the warm-up's did?"""
    made: bool | None = None
    """Was its loss computed in it?"""
    items: float | None = None

    @property
    def flops_each(self) -> float | None:
        """The operations of one computation of the loss."""
        return None if self.flops is None else self.flops / self.asked


@dataclass(frozen=True, slots=True)
class Expected:
    """The work of the warm-up: its first step, the steps of an audit made in it, and how far it moved the weights."""

    first: Step = field(default_factory=Step)
    reference: tuple[Step, ...] = ()
    moved: float | None = None
    """The mean of the steps whose movement was looked at."""
    uneven: bool = False
    """Does the benchmark say that its steps differ?"""

    def is_met_by(self, step: Step) -> bool:
        """Return whether nothing of the first step is missing in this one."""
        first = self.first
        return (
            (not first.flops_each or step.flops_each is None or step.flops_each >= (1 - LIKE) * first.flops_each)
            and (first.dtype is None or step.dtype in (None, first.dtype))
            and (not first.updates or (step.updates or 0) >= first.updates)
            and (not self.moved or (step.trained is not False and (step.moved is None or step.moved >= MOVED)))
            and (not first.made or step.made is not False)
        )

    def unlike(self, steps: Sequence[Step]) -> list[str]:
        """Return the ways in which these steps, of all audits so far, are other work than the warm-up's."""
        differences, first = [], self.first
        counts = [step.flops_each for step in steps if step.flops_each is not None]
        if (whole := first.flops_each) and counts:
            known = [step.flops_each for step in self.reference if step.flops_each is not None]
            if falls_short([whole], [*known, *counts]) or falls_short([whole, *known], counts):
                most = max(counts)
                differences.append(f"{most:.4g} operations, not {whole:.4g}" if most else "no operations")
        dtypes = {step.dtype for step in steps if step.dtype and step.dtype != first.dtype}
        if first.dtype and dtypes:
            differences.append(f"products in {', '.join(sorted(dtypes))}, not {first.dtype}")
        trained = {dtype for step in (first, *self.reference) for dtype in step.weights}
        if trained and (stepped := {dtype for step in steps for dtype in step.weights} - trained):
            differences.append(f"weights in {', '.join(sorted(stepped))}, not {', '.join(sorted(trained))}")
        updates = max((step.updates or 0 for step in steps), default=0)
        if first.updates and updates < first.updates:
            differences.append(f"{updates} updates of weights, not {first.updates}")
        elif words := self._movement(steps):
            differences.append(words)
        made = [step.made for step in steps if step.made is not None]
        if first.made and made and not any(made):
            differences.append("a loss that was not computed in it")
        counted = [step.items for step in steps if step.items != first.items]
        if not self.uneven and counted:
            differences.append(f"{counted[0]:g} items, not {first.items:g}")
        return differences

    def _movement(self, steps: Sequence[Step]) -> str:
        if not self.moved:
            return ""
        moved = [step.moved for step in steps if step.moved is not None]
        if (moved and not any(moved)) or all(step.trained is False for step in steps):
            return "no change of the weights that it trained before"
        if not moved or fmean(moved) >= (MOVED if self.moved == 1 else MOVED_IN_TURNS * self.moved):
            return ""
        return f"change in {100 * fmean(moved):.0f} % of the weights that it trained, not {100 * self.moved:.0f} %"

    def is_even(self, steps: Sequence[Step]) -> bool:
        """Return whether all these steps had the operations of the first."""
        first, counts = self.first.flops, [step.flops for step in (*self.reference, *steps) if step.flops is not None]
        return not first or all(abs(count / first - 1) <= LIKE for count in counts)


def falls_short(before: Sequence[float], after: Sequence[float], tolerance: float = LIKE) -> bool:
    """Return whether nothing after comes near anything before: they are further from it than from each other."""
    most = max(after)
    gap = min(before) - most
    return gap > tolerance * min(before) and gap > most - min(after)


Elements = dict[int, Tensor]
"""Some elements of some of the weights that optimizers step, by the id of each weight, as they are at a moment."""


def elements_of(optimizers: Iterable[Optimizer]) -> Elements:
    return {id(weight): _some(weight).clone() for weight in sample(optimizers)}


def moved_part(
    before: Elements, now: Elements, pushes: Mapping[int, float], usual: Mapping[int, float]
) -> float | None:
    """Return the part that is other than `before` of those weights that were pushed as far as is `usual`.

    None where none was: their gradients have faded, or the learning rate has come down.
    """
    pushed = {weight for weight, size in pushes.items() if size > 0 and size >= FADED * usual.get(weight, 0)}
    changes = [not torch.equal(now[weight], before[weight]) for weight in pushed & now.keys() & before.keys()]
    return fmean(changes) if changes else None


def pushes_of(optimizers: Iterable[Optimizer], looked_at: Iterable[int]) -> dict[int, float]:
    """Return of each weight that is looked at its largest gradient times the learning rate; waits for the device."""
    chosen = set(looked_at)
    rates, largest = dict[int, float](), list[Tensor]()
    for group in (group for optimizer in optimizers for group in optimizer.param_groups):
        for weight in group["params"]:
            gradient = weight.grad
            if id(weight) not in chosen or gradient is None or gradient.layout != torch.strided:
                continue
            # Of a sharded weight that has fewer rows than there are ranks some hold nothing.
            if (part := _some(gradient)).numel():
                rates[id(weight)] = float(group.get("lr", 1.0))
                largest.append(part.abs().max().float())
    sizes = torch.stack(largest).tolist() if largest else []
    return {weight: rate * size for (weight, rate), size in zip(rates.items(), sizes, strict=True)}


def _some(tensor: Tensor) -> Tensor:
    """Return some elements of a tensor, from its first to its last."""
    flat = local(tensor.detach()).flatten()
    return flat[:: max(1, flat.numel() // ELEMENTS)]


def rows_or_none(batch: Any) -> int | None:
    """Return the rows of a batch, where it has any."""
    try:
        return rows(batch)
    except (TypeError, IndexError, KeyError, StopIteration):
        return None
