"""A tenant's observations as answers to a buyer: each is a piece that a nonce of the buyer's decides."""

from __future__ import annotations

from cotenant.bench.chrono import Observation
from cotenant.bench.outcome import UnsupportedError
from cotenant.bench.pieces import Pieces
from cotenant.challenge.messages import LEAST_PIECES, Ready
from cotenant.challenge.vendor import BuyerError, ChallengedRun


class Answers:
    """Observes pieces and answers them, before the runner hears of them: the buyer's clock runs."""

    def __init__(self, buyer: ChallengedRun, pieces: Pieces) -> None:
        self._buyer = buyer
        self._pieces = pieces

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
        """Answer what the buyer still asks for: until it has heard every tenant."""
        while (nonce := self._buyer.nonce()) is not None:
            self._answer(nonce, number)

    def _answer(self, nonce: bytes, number: int) -> Observation:
        piece = self._pieces.make(nonce, number)
        self._buyer.answer(piece.observation.items, piece.losses, piece.weights)
        return piece.observation
