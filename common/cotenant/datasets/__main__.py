"""`python -m cotenant.datasets NAME...`: makes the fake sets the benchmarks read.

Exit status: 0 all are there; 2 wrong usage or input, or the disk is in the way; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cotenant.datasets.maker import SIZES, Maker
from cotenant.datasets.makers import MAKERS, find_maker
from cotenant.datasets.making import ensure
from cotenant.datasets.manifest import read_manifest
from cotenant.datasets.problems import size_words
from cotenant.datasets.progress import say
from cotenant.errors import EXIT_INTERRUPTED, EXIT_PASSED, CotenantError, did_you_mean


def main(argv: Sequence[str] | None = None) -> int:
    """Make or list the sets that `argv` names and return the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        makers = [find_maker(name) for name in dict.fromkeys(arguments.names)]
        root = _root(arguments.root, os.environ)
        size = _size(arguments.size, os.environ)
        if arguments.list:
            _print_list(root, makers or list(MAKERS.values()))
            return EXIT_PASSED
        _refuse_real(os.environ)
        if not makers:
            raise CotenantError("No data set was named.", f"Name some of: {', '.join(MAKERS)}.")
        for maker in makers:
            ensure(root, maker, size)
    except CotenantError as error:
        say(f"error: {error}")
        return error.exit_status
    except KeyboardInterrupt:
        say("Interrupted. Complete files are kept: the same command goes on from there.")
        return EXIT_INTERRUPTED
    return EXIT_PASSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cotenant.datasets", description="Make the fake data sets.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a set: {', '.join(MAKERS)}")
    parser.add_argument(
        "--root",
        metavar="DIR",
        help="where the sets stand ($DATA_DIRECTORY, else $BASE/data, else ./workspace/data)",
    )
    parser.add_argument("--size", metavar="|".join(SIZES), help="the size class ($DATASET_SIZE, else small)")
    parser.add_argument("--list", action="store_true", help="show the sets, their sizes and which are there; make none")
    return parser


def _root(given: str | None, environment: Mapping[str, str]) -> Path:
    """Return where the sets stand."""
    if given == "":
        raise CotenantError("--root is empty.", "Give a folder, or leave the flag out.")
    base = environment.get("BASE") or "workspace"
    return Path(given or environment.get("DATA_DIRECTORY") or Path(base, "data"))


def _size(given: str | None, environment: Mapping[str, str]) -> str:
    """Return the size class asked for."""
    source, size = ("--size", given) if given is not None else ("DATASET_SIZE", environment.get("DATASET_SIZE"))
    size = size or "small"
    if size not in SIZES:
        remedy = f"{did_you_mean(size, SIZES)} The sizes: {', '.join(SIZES)}.".strip()
        raise CotenantError(f"{source} is '{size}', which is no size.", remedy)
    return size


def _refuse_real(environment: Mapping[str, str]) -> None:
    """Raise CotenantError where FAKE_DATASET asks for real sets, or for nothing we know."""
    fake = environment.get("FAKE_DATASET") or "1"
    if fake == "0":
        raise CotenantError(
            "FAKE_DATASET=0 asks for real sets, and only the fake ones can be made so far.", "Unset it."
        )
    if fake != "1":
        raise CotenantError(f"FAKE_DATASET is '{fake}'.", "Set it to 1 for fake sets, or unset it.")


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
