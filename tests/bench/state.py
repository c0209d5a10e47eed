"""What a benchmark changes in its own process, put back for the next test, which draws the same numbers always."""

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
    # Whichever tests went before in this process.
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    # How often torch looks whether a loader process has ended after an error: at its 5 s, that is what a test takes.
    for place in ("_utils", "_utils.worker"):
        monkeypatch.setattr(f"torch.utils.data.{place}.MP_STATUS_CHECK_INTERVAL", 0.1)
    monkeypatch.delenv(SOCKET_VARIABLE, raising=False)
    products, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    tuned = torch.backends.cudnn.benchmark
    yield
    clear_autocast_cache()
    gc.unfreeze()
    gc.enable()
    # A loader that the traceback of an error holds ends its processes when it is collected: at this process' own end
    # torch waits 5 s for each of them.
    if multiprocessing.active_children():
        gc.collect()
    torch.set_float32_matmul_precision(products)
    torch.backends.cudnn.allow_tf32 = convolutions
    torch.backends.cudnn.benchmark = tuned
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic = False
    torch.set_flush_denormal(False)


@pytest.fixture(autouse=True)
def state_unchanged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with unchanged(monkeypatch):
        yield


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Two threads on so little work wait for each other more than they work."""
    yield from threads(1)


def threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    yield
    torch.set_num_threads(before)
