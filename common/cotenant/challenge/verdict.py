"""Judges a transcript: reasons to refuse it, or a lower bound of the rate.

The bound is of the items of all answers over the time from the first nonce to the last answer, by the buyer's clock:
neither the vendor's clock nor its code is part of it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Literal

from cotenant.challenge.messages import LOSS_BYTES, first_link, link, seed_of
from cotenant.challenge.transcript import Chain, Exchange, Replay, Transcript
from cotenant.text import many, printable

LATE_TIMES, LATE_NS = 3, 500_000_000
"""An answer is late that took more than so many times its chain's median, and this much more."""
TOGETHER = 0.9
"""The part of each chain's working time in which all chains have to work."""
POWER = 10
"""The losses of different pieces have to differ by so many tolerances, or a replay within tolerance tells nothing."""
PAIRS = 20
MOST_OF_RATE = 1.1
"""So much of the rate a floor may be: that is the median of some observations, and this of every answer."""


Kind = Literal["broken", "claim", "chain", "late", "in turn", "skipped", "changed", "unchecked", "no power"]


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a challenge is refused.

    `broken`: it did not come to its end. `claim`: the users do not say the same of their work. `chain`: an answer is
    not chained to the one before it. `late`: an answer came late. `in turn`: users worked one after the other.
    `skipped`: a step was left out, or was another. `changed`: the work is another from its first step on. `unchecked`:
    nothing of it was made again. `no power`: the tolerance is too wide to tell pieces apart.
    """

    kind: Kind
    sentence: str


@dataclass(frozen=True, slots=True)
class ChallengeVerdict:
    """The result of a challenge. Rates are items per second; `floors` is by tenant, 0 where nothing is shown."""

    reasons: tuple[Objection, ...]
    floors: tuple[float, ...]
    pieces: int
    replayed: int
    exact: bool
    """Every replay was on the same device and software, and compared bit for bit."""
    together: float
    """The part of the chains' working time in which all worked, of the chain with the smallest."""
    seconds: float

    @property
    def holds(self) -> bool:
        return not self.reasons

    @property
    def floor(self) -> float:
        """The lower bound of all tenants' rate together; 0 of a challenge that is refused."""
        return sum(self.floors) if self.holds else 0.0


def verdict(transcript: Transcript) -> ChallengeVerdict:
    """Judge a transcript: the same of the same, whoever asks."""
    chains = transcript.chains
    complete = bool(chains) and all(chain.ready is not None and chain.exchanges for chain in chains)
    reasons = [Objection("broken", sentence) for sentence in transcript.broken]
    together = _together(chains) if complete else 0.0
    if complete:
        reasons += [*_of_claims(transcript), *_of_chains(chains), *_of_times(chains, together)]
        reasons += _of_replays(transcript)
    elif not reasons:
        reasons = [Objection("broken", "Not every user has answered a piece.")]
    return ChallengeVerdict(
        reasons=tuple(reasons),
        floors=tuple(_floor(chain) for chain in chains),
        pieces=sum(len(chain.exchanges) for chain in chains),
        replayed=len(transcript.replays),
        exact=bool(transcript.replays) and all(_is_exact(chains, replay) for replay in transcript.replays),
        together=together,
        seconds=max((chain.span_ns for chain in chains), default=0) / 1e9,
    )


def _floor(chain: Chain) -> float:
    if not chain.in_order or not chain.span_ns:
        return 0.0
    return sum(each.items for each in chain.exchanges) * 1e9 / chain.span_ns


def _of_claims(transcript: Transcript) -> Iterator[Objection]:
    """Tenants of one launch do one work, each with the seed of its own that the nonce gives."""
    chains = transcript.chains
    works = {(chain.join.task, chain.join.version, chain.join.tenants) for chain in chains}
    numbers = sorted(chain.join.tenant for chain in chains)
    if len(works) > 1 or numbers != list(range(chains[0].join.tenants)):
        yield Objection("claim", "The users are not all those of one launch of one benchmark.")
    if len({without_seed(chain.join.words) for chain in chains}) > 1:
        yield Objection("claim", "The users say different words: they did not do the same work.")
    for chain in chains:
        if chain.seed != seed_of(transcript.nonce, chain.join.tenant):
            yield Objection("claim", f"User {chain.join.tenant} has another seed than the buyer's nonce gives.")


def without_seed(words: Iterable[str]) -> tuple[str, ...]:
    """Return a benchmark's words without their seed, which is the buyer's."""
    kept, waiting = list[str](), False
    for word in words:
        if waiting or word.startswith("--seed="):
            waiting = False
        elif word in ("--seed", "-s"):
            waiting = True
        else:
            kept.append(word)
    return tuple(kept)


def _of_chains(chains: Sequence[Chain]) -> Iterator[Objection]:
    for chain in chains:
        assert chain.ready is not None
        tenant, number, head = chain.join.tenant, chain.ready.number, first_link(chain.join, chain.seed, chain.ready)
        if len({each.nonce for each in chain.exchanges}) < len(chain.exchanges) or not chain.in_order:
            yield Objection("chain", f"User {tenant}: pieces overlap, or have one nonce.")
        if len(chain.exchanges) < chain.ready.pieces:
            sentence = f"User {tenant} answered {len(chain.exchanges)} of {chain.ready.pieces} pieces."
            yield Objection("broken", sentence)
        for index, each in enumerate(chain.exchanges):
            steps = len(each.losses) / LOSS_BYTES
            if steps != number:
                yield Objection("skipped", f"User {tenant}, piece {index}: {steps:g} losses of {number} steps.")
            head = link(head, each.nonce, each.losses, each.weights)
            if head != each.chain:
                yield Objection("chain", f"User {tenant}, piece {index}: its digest does not match the answers.")
                break


def _of_times(chains: Sequence[Chain], together: float) -> Iterator[Objection]:
    for chain in chains:
        usual = median(each.took_ns for each in chain.exchanges)
        for index, each in enumerate(chain.exchanges):
            if each.took_ns > LATE_TIMES * usual + LATE_NS:
                took = f"{each.took_ns / 1e9:.2f} s, where {usual / 1e9:.2f} s are usual"
                yield Objection("late", f"User {chain.join.tenant}, piece {index}: the answer took {took}.")
    if together < TOGETHER:
        sentence = f"All users worked in {together:.0%} of the time of each: at least {TOGETHER:.0%} are needed."
        yield Objection("in turn", sentence)


def _together(chains: Sequence[Chain]) -> float:
    """Return the smallest part of a chain's working time in which all chains worked.

    A chain's work begins one usual piece before its first answer: until then it may have waited for its turn. A piece
    at the end is nobody's fault, as the last answers come at different moments.
    """
    usual = [median(each.took_ns for each in chain.exchanges) for chain in chains]
    begins = [chain.exchanges[0].came_ns - each for chain, each in zip(chains, usual, strict=True)]
    ends = [chain.exchanges[-1].came_ns for chain in chains]
    common, border = min(ends) - max(begins), max(usual)
    spans = [end - begin for begin, end in zip(begins, ends, strict=True)]
    return min([1.0, *(max(0.0, min(common + border, span)) / span for span in spans if span > 0)])


def _of_replays(transcript: Transcript) -> Iterator[Objection]:
    """Compare answers with the buyer's own results of the same nonces."""
    chains = {chain.join.tenant: chain for chain in transcript.chains}
    missing = sorted(chains.keys() - {replay.tenant for replay in transcript.replays})
    if missing:
        yield Objection("unchecked", f"No piece of {many(len(missing), 'user')} was made again.")
    for replay in transcript.replays:
        chain = chains.get(replay.tenant)
        if chain is None or not 0 <= replay.index < len(chain.exchanges):
            yield Objection("unchecked", "A piece was made again that nobody answered.")
            continue
        exact = _is_exact(transcript.chains, replay)
        difference = _difference(chain, chain.exchanges[replay.index], replay, 0.0 if exact else transcript.tolerance)
        if difference is not None:
            kind, sentence = difference
            yield Objection(kind, f"User {replay.tenant}, piece {replay.index}: {sentence}")
        if not exact and _spread(chain) < POWER * transcript.tolerance:
            yield Objection(
                "no power",
                f"User {replay.tenant}: losses of different pieces differ by {_spread(chain):.2g}, and a replay on "
                f"other software or another device may by {transcript.tolerance:g}.",
            )


def _difference(chain: Chain, answered: Exchange, replay: Replay, tolerance: float) -> tuple[Kind, str] | None:
    """Return how an answer differs from its replay: the kind of the reason and a sentence; None where they agree."""
    assert chain.ready is not None
    theirs, ours = _doubles(answered.losses), _doubles(replay.losses)
    if answered.items != replay.items:
        return "changed", f"{answered.items:g} items were answered, and it holds {replay.items:g}."
    if len(theirs) != len(ours):
        return "skipped", f"{len(theirs)} losses were answered, and it has {len(ours)}."
    for step, (their_loss, our_loss) in enumerate(zip(theirs, ours, strict=True)):
        if not _alike(their_loss, our_loss, tolerance):
            if step == 0:
                return "changed", f"the loss of its first step is {their_loss!r}, and {our_loss!r} by replay."
            how = f"the losses agree up to step {step - 1}, and the next is {their_loss!r}, not {our_loss!r}"
            return "skipped", f"{how}: a step before it was left out, or was another."
    if not tolerance and (answered.weights != replay.weights):
        return "skipped", "the losses agree, and the weights behind the last step do not."
    if not tolerance and chain.ready.state != replay.state:
        return "changed", "the state it began from is not that of its seed."
    return None


def _alike(loss: float, other: float, tolerance: float) -> bool:
    """Whether two losses are the same: without a tolerance bit for bit, NaN included."""
    if not tolerance:
        return struct.pack("<d", loss) == struct.pack("<d", other)
    return abs(loss - other) <= tolerance * max(abs(loss), abs(other))


def _is_exact(chains: Sequence[Chain], replay: Replay) -> bool:
    """Whether a replay has to have the same bits: nothing differs that they depend on."""
    return any(
        chain.join.tenant == replay.tenant and chain.ready is not None and chain.ready.software == replay.software
        for chain in chains
    )


def _spread(chain: Chain) -> float:
    """Return the usual relative difference between losses of the same step of different pieces."""
    pieces = [_doubles(each.losses) for each in chain.exchanges[:PAIRS]]
    differences = [
        abs(loss - other) / max(abs(loss), abs(other), 1e-300)
        for first, second in combinations(pieces, 2)
        for loss, other in zip(first, second, strict=False)
    ]
    return median(differences) if differences else 0.0


def _doubles(losses: bytes) -> tuple[float, ...]:
    count = len(losses) // LOSS_BYTES
    return struct.unpack(f"<{count}d", losses[: count * LOSS_BYTES])


def summary(transcript: Transcript) -> str:
    """Return the result of a challenge in one line; of a refused one the first reason and the number of others.

    Its job and the reason for its end may be a stranger's words.
    """
    ruling, job = verdict(transcript), printable(transcript.job)
    if not ruling.holds:
        more = f" ({len(ruling.reasons) - 1} more)" if len(ruling.reasons) > 1 else ""
        return f"{job}: challenge REFUSED: {printable(ruling.reasons[0].sentence)}{more}"
    how = "bit for bit" if ruling.exact else f"within {transcript.tolerance:g}, on another device or software"
    replays = f"{ruling.replayed} of {many(ruling.pieces, 'piece')} replayed {how}"
    return (
        f"{job}: challenge: at least {ruling.floor:.4g} items/s of {many(len(ruling.floors), 'user')} in "
        f"{ruling.seconds:.1f} s by the buyer's clock; {replays}."
    )
