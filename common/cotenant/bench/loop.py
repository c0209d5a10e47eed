"""The loop around observations: warm-up before READY, `repeat` observations, load until STOP."""

from __future__ import annotations

import contextlib
import gc
import itertools
import operator
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch

from cotenant.bench.audit import (
    LONG_AUDIT_NS,
    MOST_STEPS,
    Audits,
    Expected,
    Step,
    Weights,
    pushes_of,
    rows_or_none,
)
from cotenant.bench.chrono import Observation, Work, clock_ns, observe
from cotenant.bench.graph import ReplayedStep
from cotenant.bench.loader import constant_input, rows
from cotenant.bench.observed import FlopCount, compiled_graphs, described, watched_updates
from cotenant.bench.outcome import MissingDataError
from cotenant.bench.run import Run
from cotenant.bench.saved import sample, undone, weights_of
from cotenant.bench.sizes import Sizes, bytes_of, smaller
from cotenant.bench.steps import MarkedSteps
from cotenant.errors import CotenantError
from cotenant.finding import Finding
from cotenant.protocol.messages import STEPS_AN_AUDIT

if TYPE_CHECKING:
    from cotenant.bench.contract import Benchmark

WARM_UP_STEPS = 3
LONG_WARM_UP_NS = 60_000_000_000
"""What has warmed up for so long makes no further step: a batch of minutes would keep its launch from READY."""
COMPILING_STEPS = 5
"""Other shapes and a second call of a part are compiled anew: after so many steps that is what the benchmark does."""
MOST_UPDATES = 0.9
"""Of uneven steps: how often one has an update is only known about."""
WAIT_S = 0.01
SHORT_STEP_NS = 1_000_000
BOOKED_OF_SHORT = 10
"""Books on a batch cost some microseconds in the midst of real work: half a percent of a step of a millisecond."""


class Loop:
    """THE loop: the same for every benchmark, alone and beside others; `updates` counts those in observations."""

    def __init__(self, benchmark: Benchmark, run: Run) -> None:
        self._benchmark = benchmark
        self._run = run
        self.observed_dtype: str | None = None
        self.observed_optimizers: list[dict[str, Any]] = []
        self.counted = FlopCount()
        self.audits = Audits()
        self.steps_ns: list[list[int]] = []
        """Of each observation the time of every step, of a benchmark that serves."""
        self.updates = 0
        self._batches = 0
        self._updates_of_batch = 0
        self._before = (0, 0)
        self._resident = False
        self._number = 1
        self._observations = 0
        self._expected = Expected()
        self._optimizers: list[torch.optim.Optimizer] = []
        self._memory: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
        """Where a step that is watched allocates: in a recorded one's memory, if there is one."""
        self._updated: list[torch.optim.Optimizer] = []
        self._usual_pushes: dict[int, float] = {}
        self._pushed: dict[int, torch.Tensor] = {}
        self._warm = False
        self._warm_up_sizes, self._sizes = Sizes(), list[Sizes]()
        freeze_imports()
        benchmark.build(run)
        batches: Iterator[Any] = itertools.chain.from_iterable(self._inputs())
        first = next(batches)
        if (finding := constant_input(first)) is not None:
            run.findings.append(finding)
        batches = itertools.chain([first], batches)
        if benchmark.cached_batch and not self._resident:
            run.heeded.add("cached_batch")
            # Nothing holds what makes input any more: its processes end before READY.
            batches = itertools.repeat(first)
            run.uneven = False
            run.observed.pop("loaded_ahead", None)
            run.findings.append(
                Finding(
                    "cached_batch",
                    "warning",
                    "Every step trained on the first batch: this is the rate of the step without its input.",
                    "Leave --cached-batch out for the rate of the task.",
                )
            )
        resident = self._resident or benchmark.cached_batch
        self._batch = first
        self._step = run.precision.around(benchmark.step)
        self._work = Work(
            batches=batches,
            step=self._step,
            items=counter(benchmark, first, resident),
            run=run,
            device=run.chosen,
            resident=resident,
            batch_bytes=bytes_of(first),
        )

    def try_out(self) -> None:
        """Do the step in which convolutions are tried, eagerly, and forget what memory that took."""
        with torch.compiler.set_stance("force_eager"):
            self._work.step(self._run, next(self._work.batches))
        self._run.chosen.synchronize()
        self._run.chosen.forget_memory()

    def warm_up(self) -> list[int]:
        """Do the first steps, watch what the first one does, and switch the garbage collector off.

        Returns the nanoseconds of each step: of fewer than WARM_UP_STEPS where they were long, which is a finding.
        Raises CotenantError for a loss that is not a scalar.
        """
        work, times_ns, counts, updates = self._work, [], set(), set()
        first, movement = Step(), list[float]()
        for index in range(WARM_UP_STEPS):
            if index == 1 and self._benchmark.compile:
                self._compile()
            if index == 1 and self._benchmark.graph:
                work.step = ReplayedStep(self._step, self._run, self._batch, self._optimizers, work.resident)
                self._memory = work.step.memory
            before = Weights.of(self._optimizers)
            updated = self._run.updates
            start_ns = clock_ns()
            batch = next(work.batches)
            if index == 0:
                loss, first, _ = self._watched(batch, self.counted)
            else:
                loss = work.step(self._run, batch)
            items = work.items(batch)
            counts.add(items)
            if loss is not None and loss.dim() != 0:
                raise CotenantError(f"The step returned a loss of shape {tuple(loss.shape)}, not a scalar.")
            # It holds its step's graph, whose gradients go to that step's stream: no other could record them.
            del loss
            self._run.chosen.synchronize()
            times_ns.append(clock_ns() - start_ns)
            updates.add(self._run.updates - updated)
            self._warm_up_sizes.take(self._benchmark, batch, items)
            if index > 0 and (moved := self._moved(before, pushes_of(self._optimizers, before.ids))) is not None:
                movement.append(moved)
            # All ranks or none: one step more on some of them would hang their collectives.
            if self._run.world.any_says(sum(times_ns) > LONG_WARM_UP_NS, self._run.chosen):
                break
        self._updates_of_batch = updates.pop() if len(updates) == 1 else 0
        self._expected = Expected(
            first=replace(first, flops=None if self._lasts_a_time() else first.flops, updates=self._updates_of_batch),
            moved=fmean(movement) if movement else None,
            uneven=self._run.uneven,
        )
        self._refer(sum(times_ns))
        self._warm = True
        self._before = (self._run.updates, self._run.precision.skipped or 0)
        if len(times_ns) < WARM_UP_STEPS:
            self._run.findings.append(
                Finding(
                    "short_warm_up",
                    "warning",
                    f"Warm-up ended after {len(times_ns)} of {WARM_UP_STEPS} steps and {sum(times_ns) / 1e9:.0f} s.",
                    "Use a smaller batch, or give it the time to skip its first observations.",
                )
            )
        # Of loaded input every wait counts: what was fetched ahead would make its steps look short.
        if max(times_ns[1:] or times_ns) < SHORT_STEP_NS and len(counts) == 1 and not self._run.loads:
            work.every = BOOKED_OF_SHORT
        gc.collect()
        gc.disable()
        return times_ns

    def _lasts_a_time(self) -> bool:
        """Return whether steps do in a time what they can: none that trains does."""
        trains = any(weight.requires_grad for module in self._run.modules for weight in module.parameters())
        return self._benchmark.timed and not trains and not self._optimizers

    def _refer(self, warm_up_ns: int) -> None:
        """Make an audit that later ones are compared with, too: one step does not tell how steps differ."""
        run, before = self._run, self._expected
        # A graph's steps are the same every time.
        if self._benchmark.acts or self._benchmark.graph or self._lasts_a_time():
            return
        if run.world.any_says(warm_up_ns > LONG_AUDIT_NS, run.chosen):
            return
        steps = self._audit_steps(MOST_STEPS if run.uneven else STEPS_AN_AUDIT)
        movement = [step.moved for step in steps if step.moved is not None]
        moved = before.moved if before.moved is not None else fmean(movement) if movement else None
        self._expected = replace(before, reference=tuple(steps), moved=moved)

    def _moved(self, before: Weights, pushes: dict[int, float]) -> float | None:
        """Return the part of the weights that moved since `before`; in the warm-up remember how far they are pushed.

        Weights that the optimizers have lost, and that are trained none the less, have not moved.
        """
        moved = Weights.of(self._optimizers).moved_since(before, pushes, self._usual_pushes)
        if self._warm:
            stepped = {id(weight) for weight in weights_of(self._optimizers)}
            left = sum(weight.requires_grad for each, weight in self._pushed.items() if each not in stepped)
            return moved if moved is None else moved * (1 - left / len(self._pushed))
        for weight in sample(self._optimizers):
            if (size := pushes.get(id(weight))) is not None:
                self._pushed[id(weight)] = weight
                self._usual_pushes[id(weight)] = max(size, self._usual_pushes.get(id(weight), 0))
        return moved

    def _compile(self) -> None:
        """Step until nothing is compiled any more: compiling may take minutes, and is part of no time that counts."""
        run = self._run
        for _ in range(COMPILING_STEPS):
            graphs = compiled_graphs()
            self._work.step(run, next(self._work.batches))
            run.chosen.synchronize()
            if not run.world.any_says(compiled_graphs() != graphs, run.chosen):
                break

    def _recompiled(self, graphs: int) -> None:
        """Take down that an observation has compiled so many graphs."""
        if "recompiled" not in self._run.observed:
            self._run.findings.append(
                Finding(
                    "recompiled",
                    "warning",
                    "Graphs were compiled inside observations: their time is no step's.",
                    "Let all batches have the same shapes (TORCH_LOGS=recompiles says what changed), or skip more "
                    "observations.",
                )
            )
        self._run.observed["recompiled"] = self._run.observed.get("recompiled", 0) + graphs

    def settle(self, until_ns: int, number: int) -> None:
        """Load the device as observations of `number` batches do, unmeasured, until this moment of the clock."""
        run = self._run
        # All ranks or none, as in the warm-up.
        while clock_ns() < until_ns if run.world.size == 1 else run.world.any_says(clock_ns() < until_ns, run.chosen):
            for _ in range(number):
                self._work.step(run, next(self._work.batches))
            run.chosen.synchronize()
            gc.collect()

    def observe(self, number: int) -> Observation:
        """Make one observation; what became garbage in it is collected after its clock has stopped."""
        self._benchmark.before_observation(self._run)
        self._number = number
        work, updated = self._work, self._run.updates
        compiled = compiled_graphs()
        marked = MarkedSteps(work.step, work.device) if self._benchmark.serves else None
        observation = observe(work if marked is None else replace(work, step=marked), number)
        if marked is not None:
            self.steps_ns.append(marked.times_ns())
        if graphs := compiled_graphs() - compiled:
            self._recompiled(graphs)
        self.updates += self._run.updates - updated
        self._batches += number
        self._observations += 1
        self._sizes.append(Sizes())
        for batch in {id(batch): batch for batch in observation.held}.values():
            self._sizes[-1].take(self._benchmark, batch, work.items(batch))
        observation.held.clear()
        gc.collect()
        if work.every > 1 and not observation.even:
            work.every = 1
            self._run.findings.append(
                Finding(
                    "items_estimated",
                    "warning",
                    "Batches did not count equally while books were kept on some of them only.",
                    "Let every batch hold as many items, or make steps longer than a millisecond.",
                )
            )
        return observation

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        """Those that the first step of the warm-up stepped."""
        return self._optimizers

    def begin_anew(self, seed: int) -> Any:
        """Let input and every random number come of this seed from here on, and book every batch by itself.

        Returns the first batch.
        """
        self._run.seed_with(seed)
        batches: Iterator[Any] = itertools.chain.from_iterable(self._inputs())
        first = next(batches)
        self._work.batches = itertools.chain([first], batches)
        self._work.items = counter(self._benchmark, first, self._resident)
        self._work.every = 1
        return first

    def rehearse(self, number: int) -> list[torch.Tensor | None]:
        """Do so many steps that no observation holds, and return their losses."""
        return [self._work.step(self._run, next(self._work.batches)) for _ in range(number)]

    def audit(self, requested: int) -> None:
        """Make an audit step where more are `requested` than were made; all ranks make it where one has heard of it.

        What a step does in an environment cannot be put back: it is audited after the last observation.
        """
        if not self._benchmark.acts and self._run.world.any_says(requested > len(self.audits.after), self._run.chosen):
            self._audit()

    def _audit(self) -> None:
        """Make steps on the first batch, watched, and compare those of all audits with the warm-up.

        No batch is fetched for it: the next observation would find that one ready, and be credited what it did not wait
        for.
        """
        run, start_ns = self._run, clock_ns()
        self.audits.steps += self._audit_steps(STEPS_AN_AUDIT)
        differences = self._expected.unlike(self.audits.steps)
        if run.world.any_says(bool(differences), run.chosen) and not differences:
            differences = ["other work on another rank"]
        run.chosen.synchronize()
        gc.collect()
        self.audits.add(self._observations, clock_ns() - start_ns, differences)

    def _audit_steps(self, least: int) -> list[Step]:
        """Return what some steps did, which are undone: more of them than `least` where one missed expected work."""
        run, steps, start_ns = self._run, list[Step](), clock_ns()
        acts = self._benchmark.acts
        with contextlib.nullcontext() if acts else undone(run, self._optimizers, self._updated):
            while len(steps) < MOST_STEPS:
                skipped, before = run.precision.skipped, Weights.of(self._optimizers)
                usual = self._usual_pushes.keys()
                _, step, pushes = self._watched(self._batch, FlopCount())
                moved = self._moved(before, pushes) if run.precision.skipped == skipped else None
                steps.append(replace(step, moved=moved, trained=bool(usual & pushes.keys()) if usual else None))
                wanted = least if all(map(self._expected.is_met_by, steps)) else MOST_STEPS
                goes_on = len(steps) < wanted and clock_ns() - start_ns < LONG_AUDIT_NS
                # All ranks or none, as in the warm-up.
                if not run.world.any_says(goes_on, run.chosen):
                    break
        return steps

    def audited(self) -> dict[str, Any]:
        """Return what a record holds of the audits, and what an item is of a row of the batch."""
        warm_up, seen = self._warm_up_sizes, self._observed_sizes()
        counted, batch_rows = self._work.items(self._batch), rows_or_none(self._batch)
        return {
            "rows": batch_rows,
            "items_per_row": counted / batch_rows if batch_rows else None,
            **self._words(seen if seen.batches else warm_up),
            "size_per_item": {"warm_up": warm_up.mean, "observed": seen.mean, "batches": seen.batches},
            "audit": {
                "steps": len(self.audits.after),
                "watched": len(self.audits.steps),
                "even": self._expected.is_even(self.audits.steps),
                "uneven": self._run.uneven,
                "after": self.audits.after,
                "cost_ns": self.audits.cost_ns,
                "eager": self._benchmark.graph or (self._benchmark.compile and "compile" in self._run.heeded),
                "differences": [*self.audits.differences, *smaller(warm_up, seen)],
            },
        }

    def _observed_sizes(self) -> Sizes:
        """Return the sizes in the observations that are kept, as far as is known here: a budget may keep more."""
        skip = min(self._benchmark.skip or 0, len(self._sizes) // 3)
        return sum(self._sizes[skip:], Sizes())

    def _words(self, seen: Sizes) -> dict[str, Any]:
        """Return what batches count on the mean beside their words that are no padding; empty where they have none."""
        if not seen.places:
            return {}
        each = {"items_per_step": seen.items / seen.batches, "words_per_step": seen.words / seen.batches}
        return each | {"padding": 1 - seen.words / seen.places}

    def operations(self) -> dict[str, Any]:
        """Return the operations of one step, as counted on the first one and by the benchmark's own closed form."""
        # Of replicas the threads of some are seen, and of others not.
        one_model = self._run.observed.get("replicas", 1) == 1
        even = not self._run.uneven and self._expected.is_even(self.audits.steps)
        counted = self.counted.total if one_model and even else None
        return {
            "flops_per_step": counted,
            "flops_closed": self._benchmark.flops(self._batch),
            "flops_reducible": counted and self.counted.reducible,
            "flops_uncounted": sorted(self.counted.uncounted),
        }

    @property
    def promised(self) -> int | None:
        """The updates there should have been, as many a batch as in each step of the warm-up.

        None where these had none or not equally many, as of a task that waits for an episode's end. Of uneven steps
        most of those that the audit of the warm-up saw: some may have none.
        """
        each: float = self._updates_of_batch
        if self._run.uneven and self._expected.reference:
            each = min(each, MOST_UPDATES * fmean(step.updates or 0 for step in self._expected.reference))
        return int(each * self._batches) or None

    def scaled(self) -> dict[str, int]:
        """Return the updates since the warm-up, and how many of them changed nothing; empty without a gradient scaler.

        Waits for the device.
        """
        skipped = self._run.precision.skipped
        if skipped is None:
            return {}
        return {"updates_scaled": self._run.updates - self._before[0], "updates_skipped": skipped - self._before[1]}

    @property
    def books_every(self) -> int:
        """Of how many batches one is booked for all."""
        return self._work.every

    def load_until(self, stopped: Callable[[], bool], requested: Callable[[], int] = lambda: 0) -> int:
        """Go on stepping, unmeasured, until `stopped()`; return the clock at the end of the last whole step.

        Several ranks only wait: one more step on some of them would hang their collectives. Audit steps that are
        `requested` are made first: all ranks hear of the same ones before they hear of the end.
        """
        # Nobody knows how long: without its collector this tenant might outgrow its slice.
        gc.enable()
        end_ns = clock_ns()
        steps = 0
        while True:
            ended = stopped()
            while requested() > len(self.audits.after):
                self._audit()
            if ended:
                break
            if self._run.world.size > 1:
                time.sleep(WAIT_S)
                continue
            self._work.step(self._run, next(self._work.batches))
            steps += 1
            # As often as the measured load: a neighbour's observation must not find a lighter one.
            if steps % self._number == 0:
                self._run.chosen.synchronize()
        if steps:
            self._run.chosen.synchronize()
            end_ns = clock_ns()
        return end_ns

    def _watched(self, batch: Any, counted: FlopCount) -> tuple[torch.Tensor | None, Step, dict[int, float]]:
        """Do a step; return its loss, what it did, and how far it pushed the weights that are looked at."""
        run, updated, looked_at = self._run, self._run.updates, Weights.of(self._optimizers).ids
        eager = torch.compiler.set_stance("force_eager")  # In compiled code nobody sees the products.
        with self._memory(), watched_updates(run, looked_at) as seen, eager, counted:
            loss = self._step(run, batch)
        stepped = list(dict.fromkeys([*seen.given, *seen.stepped]))
        descriptions = [described(optimizer, run.precision) for optimizer in stepped]
        if counted is self.counted:
            self._optimizers, self._updated = stepped, seen.given
            self.observed_dtype, self.observed_optimizers = counted.dtype, descriptions
        # Of replicas the threads of some are seen, and of others not.
        known = run.observed.get("replicas", 1) == 1 and not counted.uncounted
        step = Step(
            flops=counted.flops if known else None,
            asked=max(1, seen.asked),
            dtype=counted.dtype,
            weights=tuple(description["weights"] for description in descriptions),
            updates=run.updates - updated,
            made=None if loss is None else loss.data_ptr() in counted.scalars,
            items=self._work.items(batch),
        )
        return loss, step, seen.pushes

    def _inputs(self) -> Iterator[Iterator[Any]]:
        """Yield the benchmark's batches, and once more wherever they end, which is a finding."""
        for start in itertools.count():
            if start == 1:
                self._run.findings.append(
                    Finding(
                        "input_restarted",
                        "warning",
                        "The input ended and was started again inside the measured loop.",
                        "Let `batches` go on without end, as run.loader does.",
                    )
                )
            batches = iter(self._benchmark.batches(self._run))
            # One batch for ever; a `repeat` that is limited has a length.
            self._resident = isinstance(batches, itertools.repeat) and operator.length_hint(batches, -1) == -1
            for first in batches:
                yield itertools.chain([first], batches)
                break
            else:
                raise MissingDataError("The benchmark's input holds no batch.")


def freeze_imports() -> None:
    """Keep the garbage collector from what is imported: it lives as long as the process.

    These are 300,000 objects, nearly all of torch's. Going through them takes some tenths of a second each time, and
    the interpreter does so several times as it ends. torch._dynamo is a quarter of them; the first step of any
    optimizer imports it.
    """
    import torch._dynamo  # noqa: F401 # It is here to be frozen with the rest.

    gc.freeze()


def counter(benchmark: Benchmark, batch: Any, resident: bool) -> Callable[[Any], float]:
    """Return the benchmark's `items`, or the cheapest equal of the default one for batches of this type.

    `resident`: every batch is this very one. Raises CotenantError where that says no plain number for `batch`.
    """
    try:
        counted = benchmark.items(batch)
    except (TypeError, IndexError, KeyError) as error:
        raise CotenantError(f"The items of a batch cannot be counted: {error}.", "Define `items(batch)`.") from error
    if not isinstance(counted, (int, float)):
        raise CotenantError(f"`items` returned {counted!r:.60}.", "Let it return a plain number, known on the host.")
    if not benchmark.item_is_row:
        return benchmark.items
    if resident:
        return lambda batch: counted
    if isinstance(batch, torch.Tensor):
        return _size
    if isinstance(batch, (tuple, list)) and isinstance(batch[0], torch.Tensor):
        return _size_of_first
    return rows


# torch.Tensor's own len() is written in Python around this one, and takes three times as long.
_size: Callable[[Any], int] = super(torch.Tensor, torch.Tensor).__len__


def _size_of_first(batch: Any) -> int:
    return _size(batch[0])
