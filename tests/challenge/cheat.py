#!/usr/bin/env python3
"""A vendor's benchmark with the source that the buyer demands, in a harness with the cheat that CHEAT names."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cotenant.bench.contract import Benchmark
from cotenant.bench.pieces import Made, Pieces
from cotenant.bench.prover import Prover
from cotenant.bench.replay import benchmark_in
from cotenant.bench.session import main as run_as_main
from cotenant.choices import BUYER_VARIABLE

TASK = Path(__file__).resolve().parents[2] / "tasks/regression/polynome/pytorch/main.py"
LATE_PIECE, LATE_S = 3, 4.0
WAIT_S = 120.0


def main(how: str) -> None:
    """Run the benchmark with this cheat, or honestly without one."""
    benchmark = benchmark_in(TASK)
    CHEATS.get(how, lambda _: None)(benchmark)
    run_as_main(benchmark)


def leave_a_step_out(_: type[Benchmark]) -> None:
    """Train one step fewer in each piece, and report the last loss twice."""
    make = Pieces.make

    def one_less(pieces: Pieces, nonce: bytes, number: int) -> Made:
        made = make(pieces, nonce, number - 1)
        items = made.observation.items * number / (number - 1)
        return replace(made, observation=replace(made.observation, items=items), losses=made.losses + made.losses[-8:])

    Pieces.make = one_less


def be_late(_: type[Benchmark]) -> None:
    """Sleep before one piece."""
    before_answers(lambda buyer: time.sleep(LATE_S) if buyer.answers == LATE_PIECE else None)


def take_turns(_: type[Benchmark]) -> None:
    """Let the second tenant begin after the first one's last piece; the first then waits for the second one's last."""
    pieces = int(os.environ["PIECES"])
    first, second = Path(os.environ["TURNS"], "first"), Path(os.environ["TURNS"], "second")

    def wait(buyer: Any) -> None:
        if os.environ["JOB_ID"] == "1":
            await_file(first)
            if buyer.answers == pieces - 1:
                second.touch()
        elif buyer.answers == pieces:
            first.touch()
            await_file(second)

    before_answers(wait)


def train_another_loss(benchmark: type[Benchmark]) -> None:
    """Halve the loss of every step."""
    step = benchmark.step
    benchmark.step = lambda *given: step(*given) / 2


def before_answers(act: Callable[[Any], None]) -> None:
    """Call `act` between the arrival of each nonce and the work on its piece, only after GO."""
    answer = Prover._answer

    def later(prover: Prover, nonce: bytes, number: int) -> Any:
        act(prover._buyer)
        return answer(prover, nonce, number)

    Prover._answer = later


def await_file(path: Path) -> None:
    deadline = time.monotonic() + WAIT_S
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)


CHEATS: dict[str, Callable[[type[Benchmark]], None]] = {
    "skipped": leave_a_step_out,
    "late": be_late,
    "in-turn": take_turns,
    "changed": train_another_loss,
}

if __name__ == "__main__":
    # Without a buyer the benchmark runs unchanged.
    main(os.environ["CHEAT"] if BUYER_VARIABLE in os.environ else "")
