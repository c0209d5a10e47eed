"""Has pieces made again by the buyer's own copy of the benchmark, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cotenant.challenge.messages import Digest
from cotenant.challenge.transcript import Chain, Replay
from cotenant.checkout import CHECKOUT, SOURCE_ROOT
from cotenant.errors import CotenantError
from cotenant.text import printable

PROGRAM = "cotenant.bench.replay"
SLOWER, START_S = 20, 900
"""A replay may take so many times as long as the answers, and this long to start, build and warm up."""
TAIL = 300


class ReplayRequest(msgspec.Struct, frozen=True):
    """An order to repeat a launch in a process: the benchmark's words with the buyer's seed, and the pieces' nonces."""

    tenant: int
    words: list[str]
    seed: int
    number: int
    nonces: dict[int, Digest]


def replayed(chain: Chain, indices: Sequence[int]) -> list[Replay]:
    """Make pieces of a tenant again. Raises CotenantError where the benchmark does not run here."""
    assert chain.ready is not None
    request = ReplayRequest(
        tenant=chain.join.tenant,
        words=list(chain.join.words),
        seed=chain.seed,
        number=chain.ready.number,
        nonces={index: chain.exchanges[index].nonce for index in indices},
    )
    seconds = START_S + SLOWER * sum(chain.exchanges[index].took_ns for index in indices) / 1e9
    threads = chain.ready.software.get("threads", "1")
    with tempfile.TemporaryDirectory(prefix="cotenant-replay-") as place:
        request_file, replays_file = Path(place, "request"), Path(place, "replays")
        request_file.write_bytes(msgspec.msgpack.encode(request))
        paths = CHECKOUT / "tasks" / chain.join.task, request_file, replays_file
        command = [sys.executable, "-m", PROGRAM, *map(str, paths)]
        try:
            ended = subprocess.run(
                command, env=_environment(threads, place), capture_output=True, timeout=seconds, check=False, cwd=place
            )
        except subprocess.TimeoutExpired as error:
            raise CotenantError(f"It did not end within {seconds:.0f} s.") from error
        if ended.returncode:
            last = printable(ended.stderr.decode(errors="replace")[-TAIL:])
            raise CotenantError(f"{chain.join.task} ended with status {ended.returncode}: {last}")
        return msgspec.msgpack.decode(replays_file.read_bytes(), type=list[Replay])


def _environment(threads: str, place: str) -> dict[str, str]:
    """Return the buyer's environment with the vendor's threads, as sums depend on them, and a place that goes."""
    own = {"PYTHONPATH": os.pathsep.join(filter(None, [str(SOURCE_ROOT), os.environ.get("PYTHONPATH")]))}
    own["TMPDIR"] = place
    if threads.isdecimal():
        own |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads)
    return os.environ | own
