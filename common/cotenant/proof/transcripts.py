"""Judges the transcripts of challenges anew, and holds them against the records of their launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

import msgspec

from cotenant.challenge.transcript import Transcript, read
from cotenant.challenge.verdict import MOST_OF_RATE, summary, verdict, without_seed
from cotenant.confidential import words_without
from cotenant.proof.check import SHOWN, ProofCheck, chain_of, name_of
from cotenant.results.record import Record
from cotenant.text import listed, many, quoted


def challenges(held: Mapping[str, bytes], records: Sequence[Record] | None = None) -> ProofCheck:
    """Judge transcripts of challenges anew, and compare them with their tenants' `records`, where there are any.

    Whether nonces were new, and replays the buyer's, is known to the buyer alone, or by its signature.
    """
    wrong, shown, heads = list[str](), list[str](), set[str]()
    for name, content in held.items():
        try:
            transcript = read(content)
        except msgspec.MsgspecError as error:
            wrong.append(f"{name} is no transcript of this version: {error}.")
            continue
        shown.append(summary(transcript))
        heads |= {chain.head for chain in transcript.chains}
        wrong += [f"{transcript.job}: {reason.kind}: {reason.sentence}" for reason in verdict(transcript).reasons]
        if records is not None:
            wrong += [f"{transcript.job}: {sentence}" for sentence in _unlike_records(transcript, records)]
    without = [name_of(record) for record in records or () if (chain := chain_of(record)) and chain not in heads]
    if without:
        shown.append(f"Challenged, and without a transcript here: {listed(without, SHOWN)}.")
    return ProofCheck("challenge", f"{many(len(held), 'transcript')}, judged anew", tuple(wrong), " ".join(shown))


def _unlike_records(transcript: Transcript, records: Sequence[Record]) -> Iterator[str]:
    """Yield the differences between the records of a challenged launch and its transcript."""
    by_chain = {chain_of(record): record for record in records}
    heads = [chain.head for chain in transcript.chains]
    for chain in transcript.chains:
        record = by_chain.get(chain.head)
        if not chain.head or record is None:
            yield f"no record has the end of user {chain.join.tenant}'s chain."
        elif record.tenant != chain.join.tenant or record.arguments.get("seed") != chain.seed:
            yield f"the record of user {chain.join.tenant} is of another user or seed."
        elif not _is_said(without_seed(chain.join.words), without_seed(words_without(record.command))):
            said = quoted(" ".join(chain.join.words))
            yield f"user {chain.join.tenant} claims {said}, and its record has other arguments."
    rates = [record.train_item.avg for record in map(by_chain.get, heads) if record and record.train_item]
    floor = verdict(transcript).floor
    if len(rates) == len(heads) and floor > MOST_OF_RATE * sum(rates):
        yield f"no lower bound can be {floor:.4g} items/s of a rate of {sum(rates):.4g}: it is of other work."


def _is_said(words: Sequence[str], command: Sequence[str]) -> bool:
    """Return whether a benchmark's words are those of its command, in front of which its script may put some more."""
    pairs = zip(reversed(words), reversed(command), strict=False)
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return alike == len(words) or (alike < len(command) and command[-alike - 1].endswith((".sh", ".py")))
