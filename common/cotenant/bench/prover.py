"""A tenant in front of a buyer: each observation is a piece of training that a nonce of the buyer's decides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cotenant.bench.chrono import Observation
from cotenant.bench.loop import Loop
from cotenant.bench.outcome import UnsupportedError
from cotenant.bench.pieces import Pieces
from cotenant.bench.run import Run
from cotenant.challenge.messages import LEAST_PIECES, Ready
from cotenant.challenge.vendor import BuyerError, ChallengedRun
from cotenant.confidential import words_without
from cotenant.suite.task_source import task_name, version_of


class Prover:
    """Observes pieces and answers them, before the runner hears of them: the buyer's clock runs.

    In the words of interactive proofs a buyer is the verifier. The session of a tenant is given this one object.
    """

    def __init__(self, buyer: ChallengedRun) -> None:
        self._buyer = buyer
        self.seed = buyer.seed
        """The benchmark's seed, which the buyer has drawn."""

    @classmethod
    def join(cls, task: Path, argv: Sequence[str]) -> Prover:
        """Join the buyer that the environment names, for a benchmark with these words. Raises BuyerError."""
        return cls(ChallengedRun.join(task_name(task), version_of(task), tuple(words_without(argv))))

    def save(self, run: Run, loop: Loop) -> None:
        """Save the state behind the warm-up. Raises UnsupportedError for a benchmark that nonces do not decide."""
        self._pieces = Pieces(run, loop)

    def ready(self, number: int, repeat: int) -> None:
        """Commit to the saved state and to so many pieces. Raises UnsupportedError for too few."""
        if repeat < LEAST_PIECES:
            raise UnsupportedError(f"A challenge needs at least {LEAST_PIECES} observations.", "Use a larger --repeat.")
        software = self._pieces.software()
        self._buyer.ready(Ready(state=self._pieces.state, number=number, pieces=repeat, software=software))

    def observe(self, number: int) -> Observation:
        """Wait for a nonce, do its piece and answer. Raises BuyerError where the buyer wants no more."""
        nonce = self._buyer.nonce()
        if nonce is None:
            raise BuyerError("The buyer has ended the challenge before its last piece.")
        return self._answer(nonce, number)

    def go_on(self, number: int) -> None:
        """Answer further nonces, until the buyer has heard every tenant."""
        while (nonce := self._buyer.nonce()) is not None:
            self._answer(nonce, number)

    def facts(self) -> dict[str, object]:
        """Return the part of the tenant's record on the challenge."""
        return self._buyer.facts()

    def _answer(self, nonce: bytes, number: int) -> Observation:
        piece = self._pieces.make(nonce, number)
        self._buyer.answer(piece.observation.items, piece.losses, piece.weights)
        return piece.observation
