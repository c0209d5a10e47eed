"""Watches steps: the first one of the warm-up, and those of audits, which are compared with it and undone."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from dataclasses import replace
from statistics import fmean
from typing import Any

import torch
from torch.optim import Optimizer

from cotenant.bench.audit import LONG_AUDIT_NS, MOST_STEPS, Elements, Expected, Step, elements_of, moved_part
from cotenant.bench.chrono import StepFunction, clock_ns
from cotenant.bench.contract import Benchmark
from cotenant.bench.observed import FlopCount, described, watched_updates
from cotenant.bench.precision import weights_of
from cotenant.bench.run import Run
from cotenant.bench.saved import sample, undone
from cotenant.protocol.messages import STEPS_AN_AUDIT

MOST_UPDATES = 0.9
"""The part of the warm-up's updates that uneven steps must show: how often a step has one is known only roughly."""


class Auditor:
    """Knows the warm-up's work, and compares that of audits with it.

    `step` is the benchmark's own, eager one, `batch` the first of the input, `items` counts those of a batch. `dtype`
    and `described` are of the products and the optimizers that the first step was seen to use.
    """

    def __init__(
        self, benchmark: Benchmark, run: Run, batch: Any, step: StepFunction, items: Callable[[Any], float]
    ) -> None:
        self._benchmark, self._run = benchmark, run
        self._batch, self._step, self._items = batch, step, items
        self.dtype: str | None = None
        self.described: list[dict[str, Any]] = []
        self.counted = FlopCount()
        self.after: list[int] = []
        """After how many observations each audit was made."""
        self._cost_ns: list[int] = []
        self._steps: list[Step] = []
        """The steps of all audits."""
        self.differences: list[str] = []
        self.optimizers: list[Optimizer] = []
        """Those that the first step of the warm-up stepped."""
        self._expected = Expected()
        self._updated: list[Optimizer] = []
        self._usual_pushes: dict[int, float] = {}
        self._pushed: dict[int, torch.Tensor] = {}
        self._warm = False

    def watch_first(self, batch: Any) -> tuple[torch.Tensor | None, Step]:
        """Do the first step of the warm-up; return its loss and its facts."""
        loss, step, _ = self._watched(batch, self.counted)
        return loss, step

    def expect(self, first: Step, movement: list[float], warm_up_ns: int) -> None:
        """Take the warm-up for the work that audits have to find; `movement` is of those of its steps that moved
        weights.

        An audit is made of it that later ones are compared with, too: one step does not tell how steps differ.
        """
        run = self._run
        if self.lasts_a_time:
            first = replace(first, flops=None)
        self._expected = Expected(first, moved=fmean(movement) if movement else None, uneven=run.uneven)
        self._refer(warm_up_ns)
        self._warm = True

    @property
    def lasts_a_time(self) -> bool:
        """Whether steps do as much as they can in a time: none that trains does."""
        trains = any(weight.requires_grad for module in self._run.modules for weight in module.parameters())
        return self._benchmark.timed and not trains and not self.optimizers

    def _refer(self, warm_up_ns: int) -> None:
        run, before, benchmark = self._run, self._expected, self._benchmark
        if benchmark.acts or self.lasts_a_time:
            return
        if run.any_says(warm_up_ns > LONG_AUDIT_NS):
            return
        steps = self._audited(MOST_STEPS if run.uneven else STEPS_AN_AUDIT)
        movement = [step.moved for step in steps if step.moved is not None]
        moved = before.moved if before.moved is not None else fmean(movement) if movement else None
        self._expected = replace(before, reference=tuple(steps), moved=moved)

    def moved(self, before: Elements, pushes: dict[int, float]) -> float | None:
        """Return the part of the weights that moved since `before`; in the warm-up remember how far they are pushed.

        Weights that the optimizers have lost, and that are trained none the less, have not moved.
        """
        part = moved_part(before, elements_of(self.optimizers), pushes, self._usual_pushes)
        if self._warm:
            stepped = {id(weight) for weight in weights_of(self.optimizers)}
            left = sum(weight.requires_grad for each, weight in self._pushed.items() if each not in stepped)
            # Of gradients that are cleared behind each step the warm-up has seen none.
            return part if part is None or not left else part * (1 - left / len(self._pushed))
        for weight in sample(self.optimizers):
            if (size := pushes.get(id(weight))) is not None:
                self._pushed[id(weight)] = weight
                self._usual_pushes[id(weight)] = max(size, self._usual_pushes.get(id(weight), 0))
        return part

    def audit(self, observations: int) -> None:
        """Make steps on the first batch, watched, and compare those of all audits with the warm-up.

        No batch is fetched for it: the next observation would find that one ready, and be credited a wait that it did
        not have. `observations` is how many there were before it.
        """
        run, start_ns = self._run, clock_ns()
        self._steps += self._audited(STEPS_AN_AUDIT)
        # Of all steps so far: a later one may explain an earlier one.
        self.differences = self._expected.unlike(self._steps)
        if run.any_says(bool(self.differences)) and not self.differences:
            self.differences = ["other work on another rank"]
        run.chosen.synchronize()
        gc.collect()
        self.after.append(observations)
        self._cost_ns.append(clock_ns() - start_ns)

    def _audited(self, least: int) -> list[Step]:
        """Return the facts of some steps, which are undone: more than `least` where one missed expected work."""
        run, steps, start_ns = self._run, list[Step](), clock_ns()
        with contextlib.nullcontext() if self._benchmark.acts else undone(run, self.optimizers, self._updated):
            while len(steps) < MOST_STEPS:
                skipped, before = run.precision.skipped, elements_of(self.optimizers)
                usual = self._usual_pushes.keys()
                _, step, pushes = self._watched(self._batch, FlopCount())
                part = self.moved(before, pushes) if run.precision.skipped == skipped else None
                steps.append(replace(step, moved=part, trained=bool(usual & pushes.keys()) if usual else None))
                wanted = least if all(map(self._expected.is_met_by, steps)) else MOST_STEPS
                goes_on = len(steps) < wanted and clock_ns() - start_ns < LONG_AUDIT_NS
                # All ranks or none, as in the warm-up.
                if not run.any_says(goes_on):
                    break
        return steps

    def _watched(self, batch: Any, counted: FlopCount) -> tuple[torch.Tensor | None, Step, dict[int, float]]:
        """Do a step; return its loss, its facts, and how far it pushed the weights that are looked at."""
        run, updated, looked_at = self._run, self._run.updates, list(map(id, sample(self.optimizers)))
        eager = torch.compiler.set_stance("force_eager")  # In compiled code nobody sees the products.
        with watched_updates(run, looked_at) as seen, eager, counted:
            loss = self._step(run, batch)
        stepped = list(dict.fromkeys([*seen.given, *seen.stepped]))
        descriptions = [described(optimizer, run.precision) for optimizer in stepped]
        if counted is self.counted:
            self.optimizers, self._updated = stepped, seen.given
            self.dtype, self.described = counted.dtype, descriptions
        known = self._is_one_model and not counted.uncounted
        step = Step(
            flops=counted.flops if known else None,
            asked=max(1, seen.asked),
            dtype=counted.dtype,
            weights=tuple(description["weights"] for description in descriptions),
            updates=run.updates - updated,
            made=None if loss is None else loss.data_ptr() in counted.scalars,
            items=self._items(batch),
        )
        return loss, step, seen.pushes

    @property
    def _is_one_model(self) -> bool:
        """Whether all operations are seen: of replicas the threads of some are, and of others not."""
        return self._run.observed.get("replicas", 1) == 1

    def results(self) -> dict[str, Any]:
        """Return the part of a record on the audits."""
        benchmark = self._benchmark
        return {
            "steps": len(self.after),
            "watched": len(self._steps),
            "even": self._expected.is_even(self._steps),
            "uneven": self._run.uneven,
            "after": self.after,
            "cost_ns": self._cost_ns,
            "eager": bool(benchmark.compile) and "compile" in self._run.heeded,
            "differences": self.differences,
        }

    def operations(self) -> dict[str, Any]:
        """Return the operations of one step, as counted on the first one and by the benchmark's own closed form."""
        even = not self._run.uneven and self._expected.is_even(self._steps)
        counted = self.counted.total if self._is_one_model and even else None
        return {
            "flops_per_step": counted,
            "flops_closed": self._benchmark.flops(self._batch),
            "flops_reducible": counted and self.counted.reducible,
            "flops_uncounted": sorted(self.counted.uncounted),
        }

    @property
    def updates_of_batch(self) -> float:
        """The updates that a batch should have, as in each step of the warm-up.

        0 where these had none or not equally many, as of a task that waits for an episode's end. Of uneven steps most
        of those that the audit of the warm-up saw: some may have none.
        """
        each: float = self._expected.first.updates or 0
        if self._run.uneven and self._expected.reference:
            each = min(each, MOST_UPDATES * fmean(step.updates or 0 for step in self._expected.reference))
        return each
