"""What getting a real set will fetch and write: said, and refused where it may not be, before a byte is written."""

from __future__ import annotations

from pathlib import Path

from cotenant.datasets.archive import Archive
from cotenant.datasets.local import Found, look
from cotenant.datasets.problems import UNASKED_BYTES, check_space
from cotenant.datasets.progress import say
from cotenant.datasets.real.order import RealOrder
from cotenant.datasets.real.real_set import ALL, VALIDATION
from cotenant.datasets.transfer.part import Part
from cotenant.errors import CotenantError
from cotenant.text import size_words


def plan(order: RealOrder) -> Found:
    """Say what will be fetched and written, and return what is there; raises CotenantError where it may not be."""
    found = _allowed(order)
    needed_bytes = _needed_bytes(order, found)
    if found.unpacked is not None:
        free_bytes = check_space(order.root, order.words, needed_bytes)
        say(f"{order.words}: taken from {found.unpacked}, to {order.folder} ({size_words(free_bytes)} free)")
        return found
    lacking = _lacking(order, found)
    fetched_bytes = sum(archive.size_bytes for archive in lacking)
    arrived_bytes = sum(_arrived_bytes(order, archive) for archive in lacking)
    free_bytes = check_space(order.root, order.words, needed_bytes, smaller(order))
    say(
        f"{order.words}: {size_words(fetched_bytes)} to fetch ({size_words(arrived_bytes)} there), about"
        f" {size_words(order.wanted.unpacked_bytes)} in {order.folder} ({size_words(free_bytes)} free)"
    )
    return found


def wanted_bytes(order: RealOrder) -> int:
    """Return what getting the set will write beside what is there; 0 of one that will be refused."""
    try:
        return _needed_bytes(order, _allowed(order))
    except CotenantError:
        return 0


def _allowed(order: RealOrder) -> Found:
    """Return what is there of the set; raises CotenantError where the rest may not be fetched, or not be written."""
    found = look(order.local, order.real, order.half)
    if found.unpacked is not None:
        _refuse_large(order, _adopted_bytes(order, found.unpacked))
        return found
    lacking = _lacking(order, found)
    if lacking and order.real.gated is not None:
        raise CotenantError(
            f"{order.real.name} is never downloaded: its owners give it to who asks them, and"
            f" {', '.join(archive.name for archive in lacking)} would be needed.",
            f"Ask at {order.real.gated}, then name the folder of these files with --from DIR (COTENANT_DATA_FROM).",
        )
    _refuse_large(order, sum(archive.size_bytes for archive in lacking) + order.wanted.unpacked_bytes)
    return found


def _needed_bytes(order: RealOrder, found: Found) -> int:
    if found.unpacked is not None:
        return _adopted_bytes(order, found.unpacked)
    fetched_bytes = sum(archive.size_bytes - _arrived_bytes(order, archive) for archive in _lacking(order, found))
    return max(fetched_bytes, 0) + order.wanted.unpacked_bytes - _left_bytes(order)


def _lacking(order: RealOrder, found: Found) -> list[Archive]:
    return [archive for archive in order.wanted.archives if archive.name not in found.archives]


def _adopted_bytes(order: RealOrder, source: Path) -> int:
    """Return what bringing an unpacked set here writes: nothing on the same disk."""
    here = order.root
    while not here.exists():
        here = here.parent
    same_disk = all((source / path).stat().st_dev == here.stat().st_dev for path in order.wanted.paths)
    return 0 if same_disk else order.wanted.unpacked_bytes


def _left_bytes(order: RealOrder) -> int:
    """Return what will be free once the remains of runs that were killed while they unpacked are gone."""
    return sum(path.lstat().st_blocks * 512 for left in order.leftovers() for path in left.rglob("*"))


def _arrived_bytes(order: RealOrder, archive: Archive) -> int:
    part = Part(order.arriving, archive.name)
    receipt = part.receipt()
    return receipt.bytes if receipt else part.size()


def _refuse_large(order: RealOrder, written_bytes: int) -> None:
    """Raise CotenantError where more would be written than may be without being asked."""
    if order.large or written_bytes <= UNASKED_BYTES:
        return
    less = smaller(order)
    instead = f" {less} takes the smaller half." if less else ""
    raise CotenantError(
        f"{order.words} writes {size_words(written_bytes)} below {order.root}, and no more than"
        f" {size_words(UNASKED_BYTES)} are written without being asked.",
        f"Ask with --size full, or DATASET_SIZE=full.{instead}",
    )


def smaller(order: RealOrder) -> str | None:
    """Return how less would be asked for, where that is possible."""
    return "USE_VALIDATION=1" if order.half == ALL and VALIDATION in order.real.halves else None
