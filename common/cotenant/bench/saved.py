"""The state of a training run at a moment, to put it back after steps that are to leave nothing behind.

A benchmark may keep anything from one step to the next: queues, averages, schedulers, losses that are held for a later
update. All that hangs on it is found by going through its attributes; state that hangs on nothing of it (a closure's
variables, an iterator's place, the other end of a socket) is not.
"""

from __future__ import annotations

import collections
import contextlib
import random
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial, wraps
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from cotenant.bench.parallel import is_sharded, local
from cotenant.bench.precision import weights_of
from cotenant.bench.run import Run

WEIGHTS, MOST_BYTES = 16, 1 << 24
"""This many weights, none of more bytes, are looked at in some elements: a step that trains changes one of them."""
MOST_HELD_BYTES = 1 << 26
"""A larger tensor that no model and no optimizer has is a data set: there is no room for a copy."""
MOST_MEMBERS = 10_000
"""A longer list is a store of samples: its members stay, and nobody writes into them."""

Containers = (dict, list, set, collections.deque)
_FOREIGN = sys.stdlib_module_names | {"cotenant", "numpy", "torch"}
_OF_TORCH = (Optimizer, torch.optim.lr_scheduler.LRScheduler)
_MANAGED = ("torch.nn.parallel.", "torch.distributed.", "torch._dynamo.")
"""These modules keep accounts with parts of torch that nothing puts back; their members are looked at all the same."""


class Reached:
    """Collects all that can be reached from a benchmark's attributes and from `more`, each thing once."""

    def __init__(self, run: Run, more: Iterable[Any] = ()) -> None:
        self.containers: list[Any] = []
        self.objects: list[Any] = []
        self.modules: list[nn.Module] = []
        self.optimizers: list[Optimizer] = []
        self.tensors: dict[int, Tensor] = {}
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.generators: list[Any] = []
        self.holds_graph = False
        """Does a tensor wait for a backward that is still to come?"""
        self._frozen = run.frozen
        self._seen: set[int] = {id(run), id(run.benchmark)}
        left: list[Any] = [*vars(run.benchmark).values(), *run.modules, run.precision.overflowed, *more]
        while left:
            value = left.pop()
            if id(value) not in self._seen:
                self._seen.add(id(value))
                left += self._take(value)

    def _take(self, value: Any) -> Iterable[Any]:
        """Note a thing, and return the things that it refers to."""
        if isinstance(value, Tensor):
            self.tensors[id(value)] = value
            self.holds_graph |= value.grad_fn is not None
        elif isinstance(value, np.ndarray):
            self.arrays.append(value)
        elif isinstance(value, (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)):
            self.generators.append(value)
        elif isinstance(value, Containers):
            self.containers.append(value)
            if len(value) <= MOST_MEMBERS:
                return (*value, *(value.values() if isinstance(value, dict) else ()))
        elif isinstance(value, (tuple, frozenset)):
            return tuple(value) if len(value) <= MOST_MEMBERS else ()
        elif isinstance(value, nn.Module):
            return self._take_module(value)
        elif _is_own(value):
            self.objects.append(value)
            if isinstance(value, Optimizer):
                self.optimizers.append(value)
            return (*vars(value).values(),)
        return ()

    def _take_module(self, module: nn.Module) -> Iterable[Any]:
        if module in self._frozen:
            return ()
        self.modules.append(module)
        if type(module).__module__.startswith(_MANAGED):
            return (*module.children(), *_placed(module))
        self.objects.append(module)
        return vars(module).values()


def _is_own(value: Any) -> bool:
    """Return whether a thing's attributes are the program's: not those of a class, a function or a library."""
    if isinstance(value, type) or not isinstance(getattr(value, "__dict__", None), dict):
        return False
    return isinstance(value, _OF_TORCH) or type(value).__module__.partition(".")[0] not in _FOREIGN


def _placed(module: nn.Module) -> tuple[Tensor, ...]:
    return (*module.parameters(recurse=False), *module.buffers(recurse=False))


class Saved:
    """Weights, buffers, optimizers, schedulers, scaler, generators, and whatever a benchmark keeps beside them.

    The copies lie in the host's memory: a device may be full. Tensors whose ids are in `still` do not change, nor does
    the optimizers' state of them: these are not copied. Nor are gradients: those of `cleared` optimizers begin anew
    with each `run.update`, and the others' are set aside.
    """

    def __init__(
        self, run: Run, reached: Reached, still: Collection[int] = frozenset(), cleared: Iterable[Optimizer] = ()
    ) -> None:
        self._run = run
        owned = {id(weight) for weight in weights_of(reached.optimizers)}
        owned |= {id(tensor) for module in reached.modules for tensor in _placed(module)}
        owned |= {id(value) for one in reached.optimizers for state in one.state.values() for value in state.values()}
        changing = [
            tensor
            for tensor in reached.tensors.values()
            if id(tensor) not in still and (id(tensor) in owned or tensor.nbytes <= MOST_HELD_BYTES)
        ]
        self._copies = [(tensor, local(tensor.detach()).to("cpu", copy=True), _version(tensor)) for tensor in changing]
        self._arrays = [(array, array.copy()) for array in reached.arrays if array.nbytes <= MOST_HELD_BYTES]
        self._containers = [(container, container.copy()) for container in reached.containers]
        self._objects = [(vars(each), dict(vars(each))) for each in (run.benchmark, *reached.objects)]
        anew = {id(weight) for weight in weights_of(cleared)}
        weights = (tensor for tensor in reached.tensors.values() if tensor.is_leaf and tensor.requires_grad)
        self._gradients = [(weight, weight.grad) for weight in weights if id(weight) not in anew]
        self._restorers: list[Callable[[], object]] = [
            *map(_generator, reached.generators),
            partial(random.setstate, random.getstate()),
            partial(np.random.set_state, np.random.get_state()),
            partial(torch.set_rng_state, torch.get_rng_state()),
        ]
        if run.chosen.is_accelerator:
            module = run.chosen.module
            self._restorers.append(partial(module.set_rng_state, module.get_rng_state(run.device), run.device))
        precision = run.precision
        self._counts = precision.updates, precision.stepped, precision.overflowed
        if precision.scaler is not None:
            self._restorers.append(partial(precision.scaler.load_state_dict, precision.scaler.state_dict()))

    def set_gradients_aside(self) -> None:
        """Let gradients begin anew from here on, so that nothing is added to the gradients that wait."""
        for weight, _ in self._gradients:
            weight.grad = None

    def restore(self) -> None:
        """Put all of it back in place, so that a graph that was held before is as good as it was."""
        for attributes, values in self._objects:
            attributes.clear()
            attributes.update(values)
        for container, members in self._containers:
            container.clear()
            (container.update if isinstance(container, (dict, set)) else container.extend)(members)
        for tensor, copy, version in self._copies:
            local(tensor.detach()).data.copy_(copy)
            if version is not None:
                torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))
        for array, numbers in self._arrays:
            array[...] = numbers
        for weight, gradient in self._gradients:
            weight.grad = gradient
        for restorer in self._restorers:
            restorer()
        precision = self._run.precision
        precision.updates, precision.stepped, precision.overflowed = self._counts


def _version(tensor: Tensor) -> int | None:
    """Return how often a tensor was written, which a graph that holds it remembers."""
    return None if tensor.is_inference() or is_sharded(tensor) else tensor._version


def _generator(generator: Any) -> Callable[[], None]:
    """Return a function that puts a generator of random numbers back to where it is now."""
    if isinstance(generator, np.random.Generator):
        bits, state = generator.bit_generator, generator.bit_generator.state
        return lambda: setattr(bits, "state", state)
    if isinstance(generator, random.Random):
        return partial(generator.setstate, generator.getstate())
    return partial(generator.set_state, generator.get_state())


def sample(optimizers: Iterable[Optimizer]) -> list[Tensor]:
    """Return the weights that are looked at: from first to last, without large ones where there are others."""
    every = weights_of(optimizers)
    small = [weight for weight in every[:: max(1, len(every) // WEIGHTS)] if weight.nbytes <= MOST_BYTES]
    return small or sorted(every, key=lambda weight: weight.nbytes)[:1]


def steps_each_alone(optimizer: Optimizer) -> bool:
    """Return whether one weight's step depends on its own gradient and state alone: known of torch's and apex's.

    LBFGS goes along one direction with all weights at once.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        return False
    return type(optimizer).__module__.rpartition(".")[0] in ("torch.optim", "apex.optimizers")


@contextlib.contextmanager
def stepping(optimizer: Optimizer, chosen: Collection[int]) -> Iterator[None]:
    """Let the optimizer step, of all its weights, those alone whose ids are chosen."""
    groups = [(group, group["params"]) for group in optimizer.param_groups]
    before = optimizer.step  # A scheduler may have put one of its own there, which counts.

    @wraps(before)
    def step(*args: Any, **options: Any) -> Any:
        try:
            for group, weights in groups:
                group["params"] = [weight for weight in weights if id(weight) in chosen]
            return before(*args, **options)
        finally:
            for group, weights in groups:
                group["params"] = weights

    with patch.object(optimizer, "step", step):
        yield


@contextlib.contextmanager
def graphs_kept() -> Iterator[None]:
    """Let no backward free its graph: one that was held before is needed once more."""
    backward = torch.autograd.backward

    def keeping(tensors: Any, grad_tensors: Any = None, retain_graph: Any = None, *args: Any, **options: Any) -> None:
        backward(tensors, grad_tensors, True, *args, **options)

    with patch.object(torch.autograd, "backward", keeping):
        yield


@contextlib.contextmanager
def undone(run: Run, watched: Sequence[Optimizer], cleared: Iterable[Optimizer] = ()) -> Iterator[None]:
    """Put back the values that steps change; of optimizers whose weights step each alone those move that are looked at.

    Of all weights there is no room for copies. `watched`: whose weights are looked at; `cleared`: see `Saved`.
    """
    reached = Reached(run, watched)
    alone = [optimizer for optimizer in reached.optimizers if steps_each_alone(optimizer)]
    moving = {id(weight) for weight in sample(watched)}
    moving |= {id(weight) for weight in weights_of(each for each in reached.optimizers if each not in alone)}
    resting = [weight for weight in weights_of(alone) if id(weight) not in moving]
    still = {id(weight) for weight in resting}
    still |= {id(kept) for one in alone for weight in resting for kept in one.state.get(weight, {}).values()}
    state = Saved(run, reached, still, cleared)
    try:
        with contextlib.ExitStack() as stack:
            for optimizer in alone:
                stack.enter_context(stepping(optimizer, moving))
            if reached.holds_graph:
                stack.enter_context(graphs_kept())
            state.set_gradients_aside()
            yield
    finally:
        state.restore()
