"""Puts back the state that a benchmark changes in its process, and seeds each test's random numbers."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import clear_autocast_cache

from cotenant.protocol.messages import SOCKET_VARIABLE


@contextlib.contextmanager
def unchanged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # A test draws the same numbers, whichever tests ran before it in this process.
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    # After an error torch looks every 5 s by default whether a loader process has ended, and a test waits as long.
    for place in ("_utils", "_utils.worker"):
        monkeypatch.setattr(f"torch.utils.data.{place}.MP_STATUS_CHECK_INTERVAL", 0.1)
    monkeypatch.delenv(SOCKET_VARIABLE, raising=False)
    products, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    tuned = torch.backends.cudnn.benchmark
    yield
    clear_autocast_cache()
    gc.unfreeze()
    gc.enable()
    # A loader that an error's traceback keeps alive ends its processes when it is collected; if this process ends
    # first, torch waits 5 s for each of them.
    if multiprocessing.active_children():
        gc.collect()
    torch.set_float32_matmul_precision(products)
    torch.backends.cudnn.allow_tf32 = convolutions
    torch.backends.cudnn.benchmark = tuned
    if torch.are_deterministic_algorithms_enabled():  # The call imports torch's compiler.
        torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic = False
    torch.set_flush_denormal(False)


@pytest.fixture(autouse=True)
def state_unchanged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with unchanged(monkeypatch):
        yield


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Run torch on one thread: with so little work, two spend most of their time waiting for each other."""
    yield from threads(1)


def threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    yield
    torch.set_num_threads(before)
