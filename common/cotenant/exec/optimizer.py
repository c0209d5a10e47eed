"""Counts the steps of the optimizer that stepped first in a process, by torch's own hook after each step."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import weakref
from collections.abc import Callable, Collection, Mapping
from typing import Any

from cotenant.exec.settings import Settings, address, this_interpreter
from cotenant.exec.steps import Steps
from cotenant.protocol.client import Rendezvous


class Optimizers:
    """The optimizers of this process: the first one's steps are reported to the runner, the others' only counted.

    Only rank 0 reports. No exception leaves this class: a program that cannot be counted goes on uncounted.
    """

    def __init__(self, torch: Any, settings: Settings, rows: RowCounter | None) -> None:
        self._torch, self._settings, self._rows = torch, settings, rows
        self._runner: Rendezvous | None = None
        self._steps: Steps | None = None
        self._first: Callable[[], Any] = _nobody
        self._others: dict[str, int] = {}
        self._skipped: Any = None
        """The items of the steps that the device has skipped since the last border, as a tensor on the device."""
        self._device = ""
        self._devices: set[Any] = set()
        self._is_off = False
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self._at_exit)

    def stepped(self, optimizer: Any) -> None:
        """Count an optimizer's step, unless a CUDA graph is being captured, which executes no step."""
        if self._is_off:
            return
        try:
            cuda = self._torch.cuda
            if cuda.is_initialized() and cuda.is_current_stream_capturing():
                return
            if self._first() is optimizer or self._takes(optimizer):
                self._step(optimizer)
        except Exception as error:
            self._is_off = True
            with contextlib.suppress(Exception):
                print(f"cotenant: steps are counted no longer: {error}", file=sys.stderr, flush=True)

    def _step(self, optimizer: Any) -> None:
        rows = 1.0 if self._rows is None else self._rows.since_last_step()
        items, skips = rows * self._settings.items, getattr(optimizer, "found_inf", None)
        if skips is not None:
            # A fused optimizer decides on the device whether to skip; waiting for that in each step would be slow.
            skipped = skips.detach() * items
            self._skipped = skipped if self._skipped is None else self._skipped + skipped
        assert self._steps is not None
        self._steps.step(items)

    def _takes(self, optimizer: Any) -> bool:
        """Return whether an optimizer becomes the reported one: it makes the first step of all, or the reported one is
        gone, as when another model follows. Else count its step."""
        if self._steps is None:
            self._begin(optimizer)
        elif self._first() is None:
            self._first = weakref.ref(optimizer)
        else:
            name = type(optimizer).__name__
            self._others[name] = self._others.get(name, 0) + 1
            return False
        return self._steps is not None

    def _begin(self, optimizer: Any) -> None:
        if not (is_first_rank() and self._settings.claim()):
            self._is_off = True
            return
        runner = Rendezvous(*address(), start=self._settings.start)
        self._first = weakref.ref(optimizer)
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self._device = parameters[0].device.type if parameters else "cpu"
        self._devices = {parameter.device for parameter in parameters if parameter.device.type in ("cuda", "xpu")}
        self._steps = Steps(runner, self._settings, self._settings.item or "step", self._facts, self._border)
        self._runner = runner

    def _border(self) -> float:
        wait_for_device(self._devices)
        if self._skipped is None:
            return 0.0
        skipped, self._skipped = float(self._skipped), None
        return skipped

    def _facts(self) -> dict[str, Any]:
        observed = {
            "device": self._device,
            "counted_by": "optimizer",
            "other_optimizers": self._others,
            "other_steppers": self._settings.others(),
            **self._settings.starts,
        }
        return {"observed": observed, "torch": this_interpreter()}

    def _forget(self) -> None:
        """Forget everything in a forked child: its steps are not its parent's."""
        if self._runner is not None:
            self._runner.close()
        self._runner = self._steps = self._skipped = None
        self._first, self._others, self._is_off = _nobody, {}, False

    def _at_exit(self) -> None:
        if self._steps is not None and not self._is_off:
            with contextlib.suppress(Exception):
                self._steps.ended(by_exception=hasattr(sys, "last_type"))


def is_first_rank() -> bool:
    """Return whether this process reports for all ranks of its program."""
    return all(os.environ.get(name, "0") == "0" for name in ("RANK", "LOCAL_RANK"))


def _nobody() -> None:
    """Stand for the reference to the first optimizer before there is one."""


def wait_for_device(devices: Collection[Any] = ()) -> None:
    """Wait for the work submitted to the current device, if this process uses one, and to `devices`: a program may
    train on `cuda:1`, or on several devices, while `cuda:0` stays the current one."""
    torch = sys.modules.get("torch")
    # Apple's MPS does not tell whether it is in use, and waiting for nothing costs nothing.
    for kind, in_use in (("cuda", "is_initialized"), ("xpu", "is_initialized"), ("mps", "is_available")):
        module: Any = getattr(torch, kind, None)
        if getattr(module, in_use, bool)():
            module.synchronize()
    for device in devices:
        getattr(torch, device.type).synchronize(device)


class RowCounter:
    """Counts rows of the batches that loaders hand over, for the data set that feeds training.

    That is the data set of the last batch before the first step, until it hands over no batch between two steps.
    """

    def __init__(self) -> None:
        self._taken: dict[int, float] = {}
        self._latest = self._feeding = 0

    def take(self, dataset: object, batch: Any) -> None:
        self._latest = id(dataset)
        self._taken[self._latest] = self._taken.get(self._latest, 0.0) + batch_length(batch)

    def since_last_step(self) -> float:
        if self._feeding not in self._taken:
            self._feeding = self._latest
        rows = self._taken.get(self._feeding, 0.0)
        self._taken.clear()
        return rows


def batch_length(batch: Any) -> float:
    """Return the length of the first tensor in a batch, however nested; 0 without one."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return float(shape[0]) if len(shape) else 0.0
    inner = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (list, tuple)) else ()
    return next((rows for rows in map(batch_length, inner) if rows), 0.0)


def count_rows(loading: Any, rows: RowCounter) -> None:
    """Make the iterators of torch.utils.data.dataloader report the batches that they hand over to `rows`."""
    hand_over = loading._BaseDataLoaderIter.__next__

    def counted(iterator: Any) -> Any:
        batch = hand_over(iterator)
        with contextlib.suppress(Exception):
            rows.take(iterator._dataset, batch)
        return batch

    loading._BaseDataLoaderIter.__next__ = counted
