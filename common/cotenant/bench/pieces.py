"""Pieces of training that a nonce decides: a saved state, input and random numbers of the nonce, so many steps.

Every piece begins from the state behind the warm-up, so that one alone can be made again elsewhere, and nothing of one
can be computed before its nonce is known. Steps within a piece depend on each other: each trains on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from cotenant.bench.audit import elements_of
from cotenant.bench.chrono import Observation
from cotenant.bench.loader import tensors_in
from cotenant.bench.loop import Loop
from cotenant.bench.outcome import UnsupportedError
from cotenant.bench.run import Run
from cotenant.bench.saved import Reached, Saved
from cotenant.challenge.messages import MOST_STEPS, seed_of
from cotenant.machine.topology import model_name

TRIED_STEPS = 2
NONCES = b"one".ljust(32), b"two".ljust(32)


@dataclass(frozen=True, slots=True)
class Made:
    """One piece: how it was observed, its losses as doubles, little-endian, and the weights' digest behind it."""

    observation: Observation
    losses: bytes
    weights: bytes


class Pieces:
    """Makes pieces. `state` is the digest of the saved state, of which every one of them begins."""

    def __init__(self, run: Run, loop: Loop) -> None:
        """Save the state. Raises UnsupportedError for a benchmark whose pieces its nonces would not decide."""
        _refuse(run)
        self._run = run
        self._loop = loop
        self._saved = Saved(run, Reached(run, loop.auditor.optimizers))
        self.state = self._weights()
        tried = [self._tried(nonce) for nonce in (*NONCES, NONCES[0])]
        if tried[0][0] == tried[1][0]:
            raise UnsupportedError("Its input is the same whatever its seed, so no nonce decides it.", _REMEDY)
        if tried[0] != tried[2]:
            raise UnsupportedError("Its steps keep what cannot be put back, so no piece can be made again.", _REMEDY)
        self._saved.restore()

    def make(self, nonce: bytes, number: int) -> Made:
        """Make a piece of `number` steps, observed as any. Raises UnsupportedError for steps without a loss."""
        if number > MOST_STEPS:
            raise UnsupportedError(f"A piece of {number} steps is longer than {MOST_STEPS}.", "Use a smaller --number.")
        self._saved.restore()
        self._loop.begin_anew(seed_of(nonce))
        observation = self._loop.observe(number)
        return Made(observation, _doubles(observation.losses, number), self._weights())

    def software(self) -> dict[str, str]:
        """Return the software and the device that bits depend on: where they are equal elsewhere, so are the losses."""
        return {
            "device": self._run.chosen.name if self._run.chosen.is_accelerator else model_name(),
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "threads": str(torch.get_num_threads()),
            "torch": str(torch.__version__),
            "cudnn": str(torch.backends.cudnn.version()) if self._run.chosen.is_accelerator else "",
            "deterministic": str(torch.are_deterministic_algorithms_enabled()),
        }

    def _tried(self, nonce: bytes) -> tuple[bytes, bytes]:
        """Return the digest of a nonce's first batch, and the losses of its first steps."""
        self._saved.restore()
        batch = _digest(tensors_in(self._loop.begin_anew(seed_of(nonce))))
        losses = [loss.data for _ in range(TRIED_STEPS) if (loss := self._loop.rehearse()) is not None]
        return batch, _doubles(losses, TRIED_STEPS)

    def _weights(self) -> bytes:
        return _digest(elements_of(self._loop.auditor.optimizers).values())


_REMEDY = "Leave this benchmark out of the challenge (--exclude)."


def _refuse(run: Run) -> None:
    """Raise UnsupportedError for a benchmark of which no piece can be made, or made again."""
    benchmark = run.benchmark
    flags = [name for name in ("compile", "cached_batch") if getattr(benchmark, name)]
    reasons = {
        f"--{'-'.join(flags).replace('_', '-')} keeps what a piece has to begin without": bool(flags),
        "Its steps act in an environment, which cannot be put back": benchmark.acts,
        "Its input is read from files or loaded ahead, so no nonce decides it": run.loads or benchmark.data is not None,
        "A challenge is of users of one process each": run.world.size > 1,
        "It does not run with --deterministic, so no replay could have its bits": not benchmark.deterministic,
    }
    for reason, holds in reasons.items():
        if holds:
            raise UnsupportedError(f"{reason}.", _REMEDY)


def _doubles(losses: Sequence[torch.Tensor], number: int) -> bytes:
    """Return the losses of `number` steps as doubles, little-endian. Raises UnsupportedError where one has none."""
    if len(losses) != number:
        raise UnsupportedError("Some of its steps have no loss, so nothing shows that they were made.", _REMEDY)
    return torch.stack(list(losses)).cpu().double().numpy().astype("<f8").tobytes()


def _digest(tensors: Iterable[Any]) -> bytes:
    """Return a SHA-256 of the tensors' bytes."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.digest()
