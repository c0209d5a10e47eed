"""What the data loaders of a launch may hold in shared memory: known from the commands, before anything is started."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from cotenant.launch.command import BATCH_FLAGS, WORKERS_FLAGS, number_asked
from cotenant.launch.start import Start

IMAGE_BYTES = 3 * 224 * 224 * 4
"""One sample as most of the suite's loaders hand it over: three channels of 224 x 224 in fp32."""
PREFETCHED = 2
"""Batches that torch's DataLoader keeps ready per worker, by default."""
_DECODES_IMAGES = re.compile(rb"^\s*(from|import) (torchvision|PIL|cotenant\.bench\.(images|decoders))\b", re.MULTILINE)


def loader_bytes(starts: Iterable[Start]) -> int:
    """Return what the loaders of the hungriest launch may hold in /dev/shm: workers x prefetched x batch x an image.

    An estimate by the commands' own numbers, for programs that import something that decodes images: what the others
    hand over is small.
    """
    return max((sum(_held(order.command) for order in start.orders) for start in starts if _reads(start)), default=0)


def _reads(start: Start) -> bool:
    return _held(start.orders[0].command) > 0 and _decodes_images(start.command.parent)


def _held(command: Sequence[str]) -> int:
    workers, batch = number_asked(command, *WORKERS_FLAGS), number_asked(command, *BATCH_FLAGS)
    return workers * PREFETCHED * batch * IMAGE_BYTES


@cache
def _decodes_images(folder: Path) -> bool:
    for file in folder.glob("*.py"):
        with contextlib.suppress(OSError):
            if _DECODES_IMAGES.search(file.read_bytes()):
                return True
    return False
