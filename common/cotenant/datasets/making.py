"""Makes sets: beside their place, manifest last, then swapped in. Interruptions lose no complete file."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from cotenant.datasets.files import (
    complete_size,
    make_folder,
    remove_temporaries,
    settle,
    swap_in,
    sync_folder,
)
from cotenant.datasets.lock import give_up, locked
from cotenant.datasets.maker import Maker, Part
from cotenant.datasets.manifest import FAKE, Manifest, read_manifest, write_manifest
from cotenant.datasets.order import Order
from cotenant.datasets.problems import check_space, explained, refuse_foreign
from cotenant.datasets.progress import say, shown
from cotenant.protocol.messages import RUN_VARIABLE
from cotenant.text import size_words


def ensure(root: Path, maker: Maker, size: str, *, seed: int = 0, processes: int | None = None) -> None:
    """Make the set of `maker` below `root` in `size`, unless it is there in that size or larger.

    `processes` is by default the processors it may use. Raises CotenantError for what a person can mend.
    """
    order = Order(root.absolute(), maker, size, seed)
    if _standing(order) is not None:
        return
    with explained(maker.name, order.root):
        # Before anything is written: a person's own files may lie where nobody may write.
        refuse_foreign(order.folder, maker.name, read_manifest(order.folder), FAKE)
        if not os.path.lexists(order.staging):
            _check_space(order, maker.sizes[size].estimated_bytes)
        order.root.mkdir(parents=True, exist_ok=True)
        make_folder(order.lock.parent)
        with locked(order.lock, lambda: say(f"{maker.name}: another process is making it, waiting ...")):
            # The process that held the lock may have made it.
            if _standing(order) is None:
                _make(order, processes or len(os.sched_getaffinity(0)))


def wanted_bytes(order: Order) -> int:
    """Return what making the set will write beside what is there."""
    manifest = read_manifest(order.folder)
    if manifest is not None and manifest.satisfies(order.maker, order.size):
        return 0
    made_bytes = sum(complete_size(path) or 0 for path in order.staging.rglob("*"))
    return max(order.maker.sizes[order.size].estimated_bytes - made_bytes, 0)


def _standing(order: Order) -> Manifest | None:
    """Say that the set stands there, if it does and serves, and return its manifest."""
    manifest = read_manifest(order.folder)
    if manifest is None or not manifest.satisfies(order.maker, order.size):
        return None
    # A runner asks once per benchmark, and several read the same set: that it is there is no news then.
    if RUN_VARIABLE not in os.environ:
        say(f"{order.maker.name}: present ({manifest.size}) in {order.folder}")
    if order.leftovers(manifest.size):
        # Not ours to insist on: another process may be at them, or the disk may be read-only.
        with suppress(OSError), locked(order.lock, give_up):
            _clear(order, manifest.size)
    return manifest


def _check_space(order: Order, needed_bytes: int) -> int:
    smaller = None if order.size == "small" else "--size small"
    return check_space(order.root, f"{order.maker.name} ({order.size})", needed_bytes, smaller)


def _clear(order: Order, size: str, spare: Path | None = None) -> None:
    for path in order.leftovers(size):
        if path != spare:
            shutil.rmtree(path)
    with suppress(OSError):
        order.staging.parent.rmdir()


def _make(order: Order, processes: int) -> None:
    """Make what is missing in the staging folder, complete it with its manifest, and swap it in."""
    start_s = time.monotonic()
    refuse_foreign(order.folder, order.maker.name, read_manifest(order.folder), FAKE)
    _clear(order, order.size, spare=order.staging)
    _remove_outgoing(order)
    recipe = order.maker.sizes[order.size]
    parts = tuple(recipe.parts())
    _make_folders(order.staging, parts)
    remove_temporaries(order.staging)
    sizes = {part.path: complete_size(order.staging / part.path) for part in parts}
    missing = [part for part in parts if sizes[part.path] is None]
    bytes_before = sum(size or 0 for size in sizes.values())
    free_bytes = _check_space(order, recipe.estimated_bytes - bytes_before)
    say(
        f"{order.maker.name}: making {order.size}, {len(parts):,} files,"
        f" about {size_words(recipe.estimated_bytes)} in {order.folder} ({size_words(free_bytes)} free)"
        + (f"; {len(parts) - len(missing):,} files are there already" if len(missing) < len(parts) else "")
    )
    total_bytes = bytes_before + _make_missing(order, missing, len(parts), processes)
    _complete(order, parts, total_bytes)
    say(f"{order.maker.name}: made {size_words(total_bytes)} in {time.monotonic() - start_s:.1f} s")


def _remove_outgoing(order: Order) -> None:
    """Remove another set from the staging folder.

    A maker that was killed as it swapped leaves the one it replaced there, with its manifest; its files are not ours.
    """
    manifest, wanted = read_manifest(order.staging), (order.size, order.maker.version, order.seed)
    if manifest is not None and (manifest.size, manifest.version, manifest.seed) != wanted:
        shutil.rmtree(order.staging)


def _complete(order: Order, parts: Sequence[Part], total_bytes: int) -> None:
    """Write the manifest once all else is on the disk, then put the set in its place."""
    # The worker of a maker that was just killed may have been at a file when we began.
    remove_temporaries(order.staging)
    settle(order.staging)
    manifest = Manifest(
        name=order.maker.name,
        size=order.size,
        kind=FAKE,
        seed=order.seed,
        version=order.maker.version,
        files=len(parts),
        bytes=total_bytes,
        splits=_items_per_split(parts),
    )
    write_manifest(order.staging, manifest)
    sync_folder(order.staging)
    swap_in(order.staging, order.folder)
    _clear(order, order.size)


def _items_per_split(parts: Sequence[Part]) -> dict[str, int]:
    items = dict.fromkeys((part.split for part in parts), 0)
    for part in parts:
        items[part.split] += part.items
    return items


def _make_folders(staging: Path, parts: Sequence[Part]) -> None:
    """Make every folder of the parts, none of them through a symbolic link."""
    make_folder(staging.parent)
    make_folder(staging)
    for name in sorted({part.path.rpartition("/")[0] for part in parts}):
        folder = staging
        for step in filter(None, name.split("/")):
            assert step != "..", f"a part's path leads out of its set: {name}"
            folder /= step
            make_folder(folder)


def _make_missing(order: Order, missing: Sequence[Part], total: int, processes: int) -> int:
    """Make these parts and return their bytes."""
    from cotenant.datasets.workers import make_parts

    made_bytes = 0
    if not missing:
        return made_bytes
    with shown(order.maker.name, total - len(missing), total) as advance:

        def made(size: int) -> None:
            nonlocal made_bytes
            made_bytes += size
            advance()

        workers = min(processes, len(missing))
        make_parts(missing, order.staging, order.maker.content, order.seed, workers, made)
    return made_bytes
