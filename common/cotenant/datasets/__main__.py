"""`python -m cotenant.datasets NAME...`: makes the fake sets that the benchmarks read, or gets the real ones.

Environment: FAKE_DATASET (0: real sets), USE_VALIDATION (1: their smaller halves), DATASET_SIZE, DATA_DIRECTORY, BASE,
COTENANT_MIRROR, COTENANT_DATA_FROM. Exit status: 0 all are there; 2 wrong usage or input, or the disk or all sources
are in the way; 97 files that nobody here made stand in a set's place; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cotenant.datasets.maker import SIZES, Maker
from cotenant.datasets.makers import MAKERS, find_maker
from cotenant.datasets.making import ensure, wanted_bytes
from cotenant.datasets.manifest import read_manifest
from cotenant.datasets.order import Order
from cotenant.datasets.problems import UNASKED_BYTES, ForeignFilesError, check_space
from cotenant.datasets.progress import say
from cotenant.errors import EXIT_INTERRUPTED, EXIT_PASSED, CotenantError, did_you_mean
from cotenant.protocol.messages import RUN_VARIABLE
from cotenant.text import size_words

if TYPE_CHECKING:
    from cotenant.datasets.real.order import RealOrder


def main(argv: Sequence[str] | None = None) -> int:
    """Make, get or list the sets that `argv` names and return the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        root = _root(arguments.root, os.environ)
        size = _size(arguments.size, os.environ)
        names = tuple(dict.fromkeys(arguments.names))
        if _switch("FAKE_DATASET", os.environ, default="1"):
            _make(arguments, names, root, size)
        else:
            _get(arguments, names, root, size or SIZES[0])
    except CotenantError as error:
        # A runner reads a person's own files as they stand, and says so itself.
        if not (isinstance(error, ForeignFilesError) and RUN_VARIABLE in os.environ):
            say(f"error: {error}")
        return error.exit_status
    except KeyboardInterrupt:
        say("Interrupted. What is complete or has arrived is kept: the same command goes on from there.")
        return EXIT_INTERRUPTED
    return EXIT_PASSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cotenant.datasets",
        description="Make the fake data sets, or get the real ones (FAKE_DATASET=0).",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a set: {', '.join(MAKERS)}; real: also others")
    parser.add_argument(
        "--root",
        metavar="DIR",
        help="where the sets stand ($DATA_DIRECTORY, else $BASE/data, else ./workspace/data)",
    )
    parser.add_argument(
        "--size",
        metavar="|".join(SIZES),
        help="the size class of fake sets ($DATASET_SIZE; unsaid full beside an accelerator, else small); full, said, "
        "also allows real sets of more than 2 GB",
    )
    parser.add_argument("--mirror", metavar="URL", help="real sets: a base URL that is tried first ($COTENANT_MIRROR)")
    parser.add_argument(
        "--from",
        dest="local",
        metavar="DIR",
        help="real sets: a folder with the archives, or with the unpacked sets ($COTENANT_DATA_FROM)",
    )
    parser.add_argument("--check-room", action="store_true", help="only see whether all of them together find room")
    parser.add_argument("--list", action="store_true", help="show the sets, their sizes and which are there; make none")
    return parser


def _make(arguments: argparse.Namespace, names: Sequence[str], root: Path, asked: str | None) -> None:
    """Make, or list, the fake sets of these names, in the size asked for."""
    for flag, value in (("--mirror", arguments.mirror), ("--from", arguments.local)):
        if value is not None:
            raise CotenantError(f"{flag} is of use for real sets only.", "Set FAKE_DATASET=0, or leave it out.")
    _refuse_real_names([name for name in names if name not in MAKERS])
    makers = [find_maker(name) for name in names]
    if arguments.list:
        _print_list(root, makers or list(MAKERS.values()))
        return
    _refuse_nothing(names, MAKERS)
    usual = asked or _usual_size()
    if arguments.check_room:
        _check_room(root, names, sum(wanted_bytes(Order(root, maker, usual, 0)) for maker in makers))
        return
    for maker in makers:
        ensure(root, maker, asked or _unsurprising(maker, usual, root))


def _refuse_real_names(unknown: Sequence[str]) -> None:
    """Raise CotenantError for a set that nobody makes, but that can be had."""
    if unknown:
        from cotenant.datasets.real import REAL_SETS

        for name in unknown:
            if name in REAL_SETS:
                raise CotenantError(f"There is no fake set '{name}'.", "FAKE_DATASET=0 gets the real one.")


def _get(arguments: argparse.Namespace, names: Sequence[str], root: Path, size: str) -> None:
    """Get, or list, the real sets of these names."""
    from cotenant.datasets.obtaining import obtain, standing
    from cotenant.datasets.real import REAL_SETS, find_real
    from cotenant.datasets.real.order import RealOrder
    from cotenant.datasets.real.plan import wanted_bytes as wanted_real_bytes
    from cotenant.datasets.real.real_set import ALL, VALIDATION
    from cotenant.datasets.transfer.source import check_mirror

    half = VALIDATION if _switch("USE_VALIDATION", os.environ, default="0") else ALL
    mirror_from, mirror = _given("--mirror", arguments.mirror, "COTENANT_MIRROR", os.environ)
    _, local = _given("--from", arguments.local, "COTENANT_DATA_FROM", os.environ)
    orders = [
        RealOrder(
            root.absolute(),
            real,
            real.half(half),
            large=size == SIZES[-1],
            mirror=check_mirror(mirror, mirror_from) if mirror else None,
            local=Path(local).absolute() if local else None,
        )
        for real in (find_real(name) for name in names or (REAL_SETS if arguments.list else ()))
    ]
    if arguments.list:
        print(f"{'set':<12} {'half':<10} {'to fetch':>8} {'on disk':>8}  {'in ' + str(root):<30} what")
        for order in orders:
            print(_row(order))
        return
    _refuse_nothing(names, REAL_SETS)
    if arguments.check_room:
        _check_room(root, names, sum(wanted_real_bytes(order) for order in orders if standing(order) is None))
        return
    for order in orders:
        obtain(order)


def _check_room(root: Path, names: Sequence[str], needed_bytes: int) -> None:
    """Raise CotenantError where the sets do not find room together, which none of their makers would see."""
    check_space(root.absolute(), f"What is missing of {', '.join(names)}", needed_bytes)


def _row(order: RealOrder) -> str:
    """Return the line of a real set in the list."""
    manifest = read_manifest(order.folder)
    there = "not there" if manifest is None else f"{manifest.kind}, {manifest.half}"
    state = f"{order.real.folder}: {there}"
    fetched = "no" if order.real.gated else size_words(order.wanted.archive_bytes)
    unpacked = size_words(order.wanted.unpacked_bytes)
    return f"{order.real.name:<12} {order.half:<10} {fetched:>8} {unpacked:>8}  {state:<30} {order.real.about}"


def _root(given: str | None, environment: Mapping[str, str]) -> Path:
    """Return where the sets stand."""
    if given == "":
        raise CotenantError("--root is empty.", "Give a folder, or leave the flag out.")
    base = environment.get("BASE") or "workspace"
    return Path(given or environment.get("DATA_DIRECTORY") or Path(base, "data"))


def _usual_size() -> str:
    """Return the size of fake sets where nobody says it: beside an accelerator the original's, which no cache holds."""
    from cotenant.machine.topology import discover

    return "full" if discover().accelerators else "small"


def _unsurprising(maker: Maker, size: str, root: Path) -> str:
    """Return the size for a set that a suite's start makes: nobody has asked that for as much as a full one may be."""
    size_bytes = maker.sizes[size].estimated_bytes
    if RUN_VARIABLE not in os.environ or size_bytes <= UNASKED_BYTES:
        return size
    if read_manifest(root / maker.folder) is None:
        say(f"{maker.name}: {SIZES[0]}, as nobody has asked for {size_words(size_bytes)}: DATASET_SIZE={size} does.")
    return SIZES[0]


def _size(given: str | None, environment: Mapping[str, str]) -> str | None:
    """Return the size class asked for, if any is."""
    source, size = _given("--size", given, "DATASET_SIZE", environment)
    if size and size not in SIZES:
        remedy = f"{did_you_mean(size, SIZES)} The sizes: {', '.join(SIZES)}.".strip()
        raise CotenantError(f"{source} is '{size}', which is no size.", remedy)
    return size or None


def _given(flag: str, value: str | None, variable: str, environment: Mapping[str, str]) -> tuple[str, str | None]:
    """Return what says it, the flag or the variable, and what that is."""
    return (flag, value) if value is not None else (variable, environment.get(variable))


def _switch(variable: str, environment: Mapping[str, str], default: str) -> bool:
    """Return whether a variable is 1; raises CotenantError where it is neither that nor 0."""
    value = environment.get(variable) or default
    if value not in ("0", "1"):
        meaning = {"FAKE_DATASET": "1 for fake sets, 0 for real ones", "USE_VALIDATION": "1 for the smaller halves"}
        raise CotenantError(f"{variable} is '{value}'.", f"Set it to {meaning[variable]}, or unset it.")
    return value == "1"


def _refuse_nothing(names: Sequence[str], known: Mapping[str, object]) -> None:
    if not names:
        raise CotenantError("No data set was named.", f"Name some of: {', '.join(known)}.")


def _print_list(root: Path, makers: Sequence[Maker]) -> None:
    print(f"{'set':<10} {'small':>8} {'full':>8}  {'in ' + str(root):<30} what")
    for maker in makers:
        small, full = (size_words(maker.sizes[size].estimated_bytes) for size in SIZES)
        manifest = read_manifest(root / maker.folder)
        there = manifest is not None and manifest.satisfies(maker, SIZES[0])
        state = f"{maker.folder}: {manifest.size if manifest is not None and there else 'not there'}"
        print(f"{maker.name:<10} {small:>8} {full:>8}  {state:<30} {maker.about}")


if __name__ == "__main__":
    sys.exit(main())
