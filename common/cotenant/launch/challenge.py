"""Launches in front of a buyer: the orders to their tenants, and the transcript that comes back."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace

import msgspec

from cotenant.challenge import transcript
from cotenant.challenge.transcript import Transcript
from cotenant.challenge.vendor import (
    BUYER_VARIABLE,
    LAUNCH_VARIABLE,
    Buyer,
    BuyerError,
    transcript_of,
)
from cotenant.choices import TOKEN_VARIABLE
from cotenant.launch.output import Output
from cotenant.launch.start import Start


def in_front_of(start: Start, buyer: Buyer) -> tuple[Start, str]:
    """Return the start with the buyer's address and token in its tenants' environment, and the launch's random name."""
    launch = secrets.token_hex(16)
    variables = {BUYER_VARIABLE: buyer.address, LAUNCH_VARIABLE: launch, TOKEN_VARIABLE: buyer.token}
    specs = tuple(replace(spec, environment=spec.environment | variables) for spec in start.specs)
    return replace(start, specs=specs), launch


def keep_transcript(
    address: str, launch: str, beginning: str, output: Output, interrupted: Callable[[], object]
) -> tuple[dict[str, str], Transcript]:
    """Write the buyer's transcript of a launch, whose file's name starts with `beginning`.

    Return the SHA-256 of the file by its name, and its contents.
    Waits for the buyer's replays. Raises BuyerError where none comes, and CotenantError where it cannot be written.
    """
    content = transcript_of(address, launch, interrupted)
    try:
        held = transcript.read(content)
    except msgspec.MsgspecError as error:
        raise BuyerError(f"The buyer has sent no transcript: {error}.") from error
    return output.write(f"{beginning}.{launch}{transcript.SUFFIX}", content), held
