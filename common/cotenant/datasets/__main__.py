"""`python -m cotenant.datasets NAME...`: makes the fake sets that the benchmarks read, or gets the real ones.

Environment: FAKE_DATASET (0: real sets), USE_VALIDATION (1: their smaller halves), DATASET_SIZE, DATA_DIRECTORY, BASE,
COTENANT_MIRROR, COTENANT_DATA_FROM. Exit status: 0 all sets are there; 2 wrong usage or input, or no space or
source; 97 foreign files are in a set's place; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cotenant.datasets.dataset import ALL, FAKE, SIZES, VALIDATION, Dataset
from cotenant.datasets.disk import check_space, explained
from cotenant.datasets.fetch import check_mirror
from cotenant.datasets.obtain import ForeignFilesError, added_bytes, obtain, standing
from cotenant.datasets.progress import say
from cotenant.datasets.real import UNASKED_BYTES
from cotenant.datasets.request import SetRequest
from cotenant.datasets.sets import NAMES, find_dataset
from cotenant.errors import EXIT_INTERRUPTED, EXIT_PASSED, EXIT_USAGE, CotenantError, did_you_mean
from cotenant.protocol.messages import RUN_VARIABLE
from cotenant.text import size_words

_PACKAGES = {"PIL": "pillow"}
_LOCAL = "COTENANT_DATA_FROM"


def main(argv: Sequence[str] | None = None) -> int:
    """Make, get or list the sets that `argv` names and return the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        requests = _requests(arguments)
        if arguments.list:
            _print_list(requests)
        elif arguments.check_room:
            names, root = ", ".join(request.dataset.name for request in requests), requests[0].root
            # Each maker would check the room for its own set alone.
            with explained(names, root):
                check_space(root, f"What is missing of {names}", sum(map(added_bytes, requests)))
        else:
            for request in requests:
                obtain(request)
    except CotenantError as error:
        # A runner reads a person's own files as they stand, and prints that itself.
        if not (isinstance(error, ForeignFilesError) and RUN_VARIABLE in os.environ):
            say(f"error: {error}")
        return error.exit_status
    except ImportError as error:
        package = _PACKAGES.get(error.name or "", error.name or str(error))
        say(f"error: The package '{package}' is missing. pip install {package}")
        return EXIT_USAGE
    except KeyboardInterrupt:
        say("Interrupted. What is complete or has arrived is kept: the same command goes on from there.")
        return EXIT_INTERRUPTED
    return EXIT_PASSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cotenant.datasets",
        description="Make the fake data sets, or get the real ones (FAKE_DATASET=0).",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a set: {', '.join(NAMES)}")
    parser.add_argument(
        "--root", metavar="DIR", help="where the sets stand ($DATA_DIRECTORY, else $BASE/data, else ./workspace/data)"
    )
    parser.add_argument(
        "--size",
        metavar="|".join(SIZES),
        help="the size of fake sets ($DATASET_SIZE; without it full beside an accelerator, else small); full also"
        " allows real sets of more than 2 GB",
    )
    parser.add_argument("--mirror", metavar="URL", help="real sets: a base URL that is tried first ($COTENANT_MIRROR)")
    parser.add_argument(
        "--from",
        dest="local",
        metavar="DIR",
        help="real sets: a folder with the archives, or with the unpacked sets ($COTENANT_DATA_FROM)",
    )
    parser.add_argument(
        "--check-room", action="store_true", help="only check whether there is room for all of them together"
    )
    parser.add_argument("--list", action="store_true", help="show the sets, their sizes and which are there; make none")
    return parser


def _requests(arguments: argparse.Namespace) -> list[SetRequest]:
    """Return a request for each set, from flags or else the environment. Raises CotenantError if they make no sense."""
    fake = _switch("FAKE_DATASET", "1", "1 for fake sets, 0 for real ones")
    if fake and (arguments.mirror or arguments.local):
        flag = "--mirror" if arguments.mirror else "--from"
        raise CotenantError(f"{flag} is of use for real sets only.", "Set FAKE_DATASET=0, or leave it out.")
    half = VALIDATION if not fake and _switch("USE_VALIDATION", "0", "1 for the smaller halves") else ALL
    names = tuple(dict.fromkeys(arguments.names)) or (NAMES if arguments.list else ())
    if not names:
        raise CotenantError("No data set was named.", f"Name some of: {', '.join(NAMES)}.")
    below = os.environ.get("DATA_DIRECTORY") or Path(os.environ.get("BASE") or "workspace", "data")
    root, size = Path(arguments.root or below).absolute(), _size(arguments.size)
    datasets = map(find_dataset, names)
    if fake:
        return [SetRequest(root, dataset, size) if size else _usual(root, dataset) for dataset in datasets]
    named, folder = arguments.mirror or os.environ.get("COTENANT_MIRROR"), arguments.local or os.environ.get(_LOCAL)
    mirror, local = check_mirror(named) if named else None, Path(folder).absolute() if folder else None
    # A set that has no smaller half is taken whole.
    halves = ((dataset, half if half in dataset.halves else ALL) for dataset in datasets)
    return [SetRequest(root, dataset, size or SIZES[0], wanted, mirror, local) for dataset, wanted in halves]


def _size(flag: str | None) -> str | None:
    """Return the size that the flag or else the environment names, None if neither does. Raises CotenantError."""
    size = flag or os.environ.get("DATASET_SIZE") or None
    if size not in (None, *SIZES):
        remedy = f"{did_you_mean(size, SIZES)} The sizes: {', '.join(SIZES)}.".strip()
        raise CotenantError(f"There is no size '{size}' (--size, DATASET_SIZE).", remedy)
    return size


def _usual(root: Path, dataset: Dataset) -> SetRequest:
    """Return the request for a fake set of the default size: beside an accelerator `full`, which outgrows caches.

    At a suite's start a set whose full size is above UNASKED_BYTES is small.
    """
    from cotenant.machine.topology import discover

    small, full = (SetRequest(root, dataset, size) for size in SIZES)
    if not discover().accelerators:
        return small
    full_bytes = dataset.sizes[full.size].estimated_bytes
    if RUN_VARIABLE not in os.environ or full_bytes <= UNASKED_BYTES:
        return full
    if standing(small) is None:
        say(f"{dataset.name}: small; DATASET_SIZE=full asks for {size_words(full_bytes)}.")
    return small


def _switch(variable: str, default: str, meaning: str) -> bool:
    """Return whether a variable is 1; raises CotenantError if it is neither that nor 0."""
    value = os.environ.get(variable) or default
    if value not in ("0", "1"):
        raise CotenantError(f"{variable} is '{value}'.", f"Set it to {meaning}, or unset it.")
    return value == "1"


def _print_list(requests: Sequence[SetRequest]) -> None:
    print(f"{'set':<10} {'small':>8} {'full':>8} {'real':>8} {'to fetch':>8}  {f'in {requests[0].root}':<30} what")
    for request in requests:
        dataset = request.dataset
        half = request.wanted
        sizes = [dataset.sizes[size].estimated_bytes for size in SIZES] + [half.unpacked_bytes]
        columns = [
            *map(size_words, sizes),
            "no" if dataset.gated else size_words(sum(archive.size_bytes for archive in half.archives)),
        ]
        manifest = standing(replace(request, size=SIZES[0]))
        state = "not there" if manifest is None else manifest.size if request.kind == FAKE else manifest.half
        numbers = " ".join(f"{column:>8}" for column in columns)
        print(f"{dataset.name:<10} {numbers}  {f'{dataset.folder}: {state}':<30} {dataset.about}")


if __name__ == "__main__":
    # Each worker imports numpy, whose OpenBLAS would start a thread for every processor, up to 64.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
