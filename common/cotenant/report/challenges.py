"""Results of challenges, beside the rates that records have of the same jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from cotenant.challenge.transcript import read
from cotenant.challenge.verdict import MOST_OF_RATE, verdict
from cotenant.challenge.verdict import summary as words_of
from cotenant.choices import TRANSCRIPT
from cotenant.files import content_of
from cotenant.report.summary import Summary
from cotenant.suite.cells import CHALLENGE


def challenge_lines(summary: Summary, places: Iterable[Path]) -> Iterator[str]:
    """Yield a sentence for each transcript that lies in these places, and for each file that is no transcript."""
    for path in (path for place in places for path in sorted(place.glob(f"*{TRANSCRIPT}"))):
        try:
            transcript = read(content_of(path))
        except (OSError, msgspec.MsgspecError) as error:
            yield f"{path.name} is no transcript of a challenge: {error}"
            continue
        yield words_of(transcript)
        judged = verdict(transcript)
        if judged.holds:
            yield from _beside(transcript.job, judged.floor, summary)


def _beside(challenged: str, floor: float, summary: Summary) -> Iterator[str]:
    """Yield the floor as a share of the published rate, and of the rate of the deterministic launch itself.

    A lower bound above the rate is an error: the challenge was about other work.
    Several jobs of one name each get a sentence, since a transcript does not say which of them it belongs to.
    """
    for name, what in ((challenged, "the published rate"), (challenged + CHALLENGE, "its own, deterministic")):
        lines = [(job, job.node.rate) for job in summary.jobs if job.name == name and job.node is not None]
        for job, rate in lines:
            which = f" of {job.label}, {job.suite} on {job.host}" if len(lines) > 1 else ""
            beside = f"{floor / rate:.2f} of {what}{which} ({rate:.4g} {job.unit}/s)"
            if floor > MOST_OF_RATE * rate:
                yield f"error: {challenged}: challenge: no lower bound can be {beside}: it is of other work."
            else:
                yield f"{challenged}: challenge: at least {beside}."
