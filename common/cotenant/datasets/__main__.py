"""`python -m cotenant.datasets NAME...`: makes the fake sets that the benchmarks read, or gets the real ones.

Environment: FAKE_DATASET (0: real sets), USE_VALIDATION (1: their smaller halves), DATASET_SIZE, DATA_DIRECTORY, BASE,
COTENANT_MIRROR, COTENANT_DATA_FROM. Exit status: 0 all are there; 2 wrong usage or input, or the disk or all sources
are in the way; 97 files that nobody here made stand in a set's place; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cotenant.datasets.dataset import ALL, FAKE, SIZES, VALIDATION
from cotenant.datasets.disk import check_space
from cotenant.datasets.fake import FakeRequest
from cotenant.datasets.fetch import check_mirror
from cotenant.datasets.obtain import ForeignFilesError, Request, needed_bytes, obtain, standing
from cotenant.datasets.progress import say
from cotenant.datasets.real import UNASKED_BYTES, RealRequest
from cotenant.datasets.sets import NAMES, find_dataset
from cotenant.errors import EXIT_INTERRUPTED, EXIT_PASSED, EXIT_USAGE, CotenantError, did_you_mean
from cotenant.protocol.messages import RUN_VARIABLE
from cotenant.text import size_words

_PACKAGES = {"PIL": "pillow"}


def main(argv: Sequence[str] | None = None) -> int:
    """Make, get or list the sets that `argv` names and return the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        requests = _requests(arguments)
        if arguments.list:
            _print_list(requests)
        elif arguments.check_room:
            what = f"What is missing of {', '.join(request.dataset.name for request in requests)}"
            # None of their makers would see that they do not find room together.
            check_space(requests[0].root, what, sum(map(needed_bytes, requests)))
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
        "--root",
        metavar="DIR",
        help="where the sets stand ($DATA_DIRECTORY, else $BASE/data, else ./workspace/data)",
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
    parser.add_argument("--check-room", action="store_true", help="only see whether all of them together find room")
    parser.add_argument("--list", action="store_true", help="show the sets, their sizes and which are there; make none")
    return parser


def _requests(arguments: argparse.Namespace) -> list[Request]:
    """Return what is asked for by the flags, else by the environment; raises CotenantError for what makes no sense."""
    fake = _switch("FAKE_DATASET", "1", "1 for fake sets, 0 for real ones")
    if fake:
        for flag, value in (("--mirror", arguments.mirror), ("--from", arguments.local)):
            if value is not None:
                raise CotenantError(f"{flag} is of use for real sets only.", "Set FAKE_DATASET=0, or leave it out.")
    half = VALIDATION if not fake and _switch("USE_VALIDATION", "0", "1 for the smaller halves") else ALL
    names = tuple(dict.fromkeys(arguments.names)) or (NAMES if arguments.list else ())
    if not names:
        raise CotenantError("No data set was named.", f"Name some of: {', '.join(NAMES)}.")
    root, size = _root(arguments.root), _size(arguments.size)
    mirror_from, mirror = _given("--mirror", arguments.mirror, "COTENANT_MIRROR")
    _, local = _given("--from", arguments.local, "COTENANT_DATA_FROM")
    requests: list[Request] = []
    for dataset in map(find_dataset, names):
        if fake:
            requests.append(_unsurprising(FakeRequest(root, dataset, size or _usual_size()), asked=size is not None))
            continue
        requests.append(
            RealRequest(
                root,
                dataset,
                size or SIZES[0],
                # A set that has no smaller half is taken whole.
                half if half in dataset.halves else ALL,
                mirror=check_mirror(mirror, mirror_from) if mirror else None,
                local=Path(local).absolute() if local else None,
            )
        )
    return requests


def _root(given: str | None) -> Path:
    """Return where the sets stand."""
    if given == "":
        raise CotenantError("--root is empty.", "Give a folder, or leave the flag out.")
    base = os.environ.get("BASE") or "workspace"
    return Path(given or os.environ.get("DATA_DIRECTORY") or Path(base, "data")).absolute()


def _usual_size() -> str:
    """Return the size of fake sets where nobody asks for one: beside an accelerator the one that outgrows caches."""
    from cotenant.machine.topology import discover

    return SIZES[-1] if discover().accelerators else SIZES[0]


def _unsurprising(request: FakeRequest, asked: bool) -> FakeRequest:
    """Return the request of a suite's start, which writes no more than UNASKED_BYTES of a set unless it is asked to."""
    size_bytes = request.dataset.sizes[request.size].estimated_bytes
    if asked or RUN_VARIABLE not in os.environ or size_bytes <= UNASKED_BYTES:
        return request
    smaller = replace(request, size=SIZES[0])
    if standing(smaller) is None:
        asking = f"DATASET_SIZE={request.size}"
        say(f"{request.dataset.name}: {SIZES[0]}, as nobody has asked for {size_words(size_bytes)}: {asking} does.")
    return smaller


def _size(given: str | None) -> str | None:
    """Return the size asked for, if any is."""
    source, size = _given("--size", given, "DATASET_SIZE")
    if size and size not in SIZES:
        remedy = f"{did_you_mean(size, SIZES)} The sizes: {', '.join(SIZES)}.".strip()
        raise CotenantError(f"{source} is '{size}', which is no size.", remedy)
    return size or None


def _given(flag: str, value: str | None, variable: str) -> tuple[str, str | None]:
    """Return what gives a setting, the flag or the variable, and its value."""
    return (flag, value) if value is not None else (variable, os.environ.get(variable))


def _switch(variable: str, default: str, meaning: str) -> bool:
    """Return whether a variable is 1; raises CotenantError where it is neither that nor 0."""
    value = os.environ.get(variable) or default
    if value not in ("0", "1"):
        raise CotenantError(f"{variable} is '{value}'.", f"Set it to {meaning}, or unset it.")
    return value == "1"


def _print_list(requests: Sequence[Request]) -> None:
    print(f"{'set':<10} {'small':>8} {'full':>8} {'real':>8} {'to fetch':>8}  {f'in {requests[0].root}':<30} what")
    for request in requests:
        dataset = request.dataset
        half = request.wanted if isinstance(request, RealRequest) else dataset.halves[ALL]
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
    sys.exit(main())
