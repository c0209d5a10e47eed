"""`challenge`: the buyer's side. Listens for a vendor's launches, challenges them and repeats pieces of them."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cotenant.challenge.listener import ChallengeListener
from cotenant.challenge.replay import replayed
from cotenant.challenge.transcript import Transcript, written
from cotenant.challenge.vendor import address_of, token_of
from cotenant.challenge.verdict import summary, verdict
from cotenant.checkout import PROGRAM, output_directory
from cotenant.choices import TOKEN_VARIABLE, TRANSCRIPT
from cotenant.commands.flags import Parser, place, share
from cotenant.commands.output import note, tell
from cotenant.errors import EXIT_FAILED, EXIT_PASSED, CotenantError
from cotenant.proof.signature import check_key, sign
from cotenant.results.store import prepare_directory, write_whole
from cotenant.suite.task_source import shipped_versions
from cotenant.text import joined, many, printable

LOOPBACK = ("127.0.0.1", "::1", "localhost")
BOUGHT = "bought"
"""The default directory of transcripts, apart from this machine's records, with which a report would compare them."""


def main(argv: Sequence[str]) -> int:
    """Listen. Returns 0 if all launches hold, else 1; raises CotenantError if it cannot listen or write."""
    given = parser().parse_words(argv)
    host, port = address_of(given.listen)
    if given.key is not None:
        check_key(given.key)
    known = token_of(given.token, os.environ)
    token = known or secrets.token_urlsafe(16)
    directory: Path = given.outdir or output_directory() / BOUGHT
    prepare_directory(directory)
    transcripts: list[Transcript] = []

    def keep(transcript: Transcript) -> None:
        transcripts.append(transcript)
        time = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
        path = directory / f"challenge.{time}{TRANSCRIPT}"
        write_whole(path, written(transcript))
        tell("\n".join([*_lines(transcript), f"transcript: {path}"]))
        if given.key is not None:
            tell(f"{sign(path, given.key)}: signed.")

    listener = ChallengeListener(shipped_versions(), replayed, keep, given.replays, given.tolerance, token=token)
    said = "" if known else token
    try:
        asyncio.run(listener.serve(host, port, given.launches, lambda port: _announce(host, port, said)))
    except KeyboardInterrupt:
        note(f"{many(len(transcripts), 'launch', 'es')} challenged.")
    except OSError as error:
        raise CotenantError(f"Nothing can listen at {host}:{port}: {error.strerror}.", "Name another port.") from error
    return EXIT_PASSED if all(verdict(each).holds for each in transcripts) else EXIT_FAILED


def parser() -> Parser:
    """Return the parser of `challenge`."""
    parser = Parser(
        "challenge",
        "Challenge a vendor's launches: nonces that decide their work, answers by this machine's clock, replays.",
        f"The vendor runs {PROGRAM} --challenge HOST:PORT. docs/challenge.md has what it shows, and what it does not.",
    )
    add = parser.add_argument
    where = "where to listen; without a host on the loopback alone"
    add("--listen", metavar="[HOST:]PORT", required=True, help=where)
    add("--launches", type=_whole, default=0, metavar="N", help="end after so many (default: go on until Ctrl-C)")
    add("--replays", type=_positive, default=2, metavar="K", help="pieces of each user to make again (default 2)")
    tolerance = "relative, for losses of a replay on other software or another device (default 0.001)"
    add("--tolerance", type=share, default=1e-3, metavar="SHARE", help=tolerance)
    add("--outdir", type=place, help="where transcripts go (default $BASE/output/bought)")
    token = (
        f"what the vendor has to say (default: ${TOKEN_VARIABLE}, else drawn and printed); @FILE reads it from a file"
    )
    add("--token", metavar="TOKEN", help=token)
    add("--key", metavar="PEM", type=Path, help="sign transcripts with this Ed25519 private key")
    return parser


def _announce(host: str, port: int, token: str) -> None:
    """Print the vendor's command for the buyer, with the `token` if it is new."""
    note(f"Listening at {host}:{port}; the vendor runs {PROGRAM} --challenge {host}:{port}. Ctrl-C ends it.")
    note(f"Its token: {TOKEN_VARIABLE}={token}" if token else f"Its token is that of {TOKEN_VARIABLE} or --token.")
    if host not in LOOPBACK:
        note("Who has the token has benchmarks of this checkout run here, at sizes of their choice.")


def _lines(transcript: Transcript) -> list[str]:
    """Return the lines of a transcript for a person: each tenant's claimed work, and its result."""
    lines = [summary(transcript)]
    for chain in transcript.chains:
        tenant, software = chain.join.tenant, chain.ready.software if chain.ready else {}
        lines.append(f"claimed by user {tenant}: {chain.join.task} {printable(' '.join(chain.join.words))}")
        lines.append(f"user {tenant}: {printable(joined(', ', *software.values()))}")
    reasons = verdict(transcript).reasons
    return [*lines, *(f"refused, {reason.kind}: {printable(reason.sentence)}" for reason in reasons)]


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number")
    return int(text)


def _positive(text: str) -> int:
    if not _whole(text):
        raise argparse.ArgumentTypeError("it must be at least 1")
    return int(text)
