"""The acceptance run on a device: what holds on this machine and what does not, within ten minutes and without network.

python3 benchmarks/gpu.py --out DIR [--parts facts,probes] [--quick]

Each part ends with PASS, FAIL or SKIP and a sentence; what it measured lies in DIR at once, and DIR's page for
docs/gpu/ is written anew after each part. Started again with the same DIR it goes on: parts that passed stay, the
others run again, and a part that --parts names runs in any case. Exit status: 0 nothing failed, 1 a part failed,
2 wrong usage, 130 interrupted. docs/gpu/README.md says more.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036
    print(f"gpu.py needs Python 3.11 or newer, and this is {sys.version.split()[0]}.", file=sys.stderr)
    sys.exit(2)

import argparse
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent))

from device.acceptance import Acceptance, UsageError
from device.inside import inside
from device.plan import PARTS, chosen_parts


class Parser(argparse.ArgumentParser):
    """One whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[0].upper()}{message[1:]}. --help lists the flags.")


def parser() -> Parser:
    made = Parser(prog="gpu.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for results; made where missing")
    made.add_argument(
        "--parts",
        metavar="A,B",
        help=f"only these, in this order: {', '.join(PARTS)}; runs of their own are share, pressure and families, and "
        "`families:A,B` measures these families of models",
    )
    made.add_argument(
        "--quick",
        action="store_true",
        help="in small, some seconds a part; what takes longer only where --parts names it",
    )
    made.add_argument("--inside", help=argparse.SUPPRESS)
    made.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    return made


def main(argv: Sequence[str]) -> int:
    try:
        given = parser().parse_args(argv)
        parts, families = chosen_parts(given.parts)
        if given.inside:
            return inside(given.out, given.inside, given.quick, families, given.seconds)
        signal.signal(signal.SIGTERM, _interrupt)
        signal.signal(signal.SIGHUP, _interrupt)
        return Acceptance(given.out, given.quick, families).run(parts, named=given.parts is not None)
    except UsageError as error:
        print(f"gpu.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nInterrupted. What was found is kept; the same command goes on.", file=sys.stderr)
        return 130


def _interrupt(number: int, _: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
