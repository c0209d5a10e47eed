"""Which jobs of a suite run: `--name` and `--exclude`."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from cotenant.errors import CotenantError, did_you_mean
from cotenant.suite.jobfile import Job


def select(jobs: Sequence[Job], names: Sequence[str] = (), excludes: Sequence[str] = ()) -> tuple[Job, ...]:
    """Return the jobs that `names` choose (all without any), less those of `excludes`, in the file's order.

    Each text is a name or a stem, a glob over them, or several of these behind commas.
    Raises CotenantError where one of them matches no job, or no job is left.
    """
    wanted = _matched(jobs, "--name", names) if names else set(range(len(jobs)))
    unwanted = _matched(jobs, "--exclude", excludes)
    chosen = tuple(job for place, job in enumerate(jobs) if place in wanted - unwanted)
    if not chosen:
        raise CotenantError("--exclude leaves no job to run.", f"The jobs are {_listed(jobs)}.")
    return chosen


def _matched(jobs: Sequence[Job], flag: str, texts: Sequence[str]) -> set[int]:
    matched: set[int] = set()
    for pattern in (pattern for text in texts for pattern in _patterns(jobs, text)):
        found = {place for place, job in enumerate(jobs) if _matches(job, pattern)}
        if not found:
            remedy = f"{did_you_mean(pattern, _titles(jobs))} The jobs are {_listed(jobs)}.".strip()
            raise CotenantError(f"{flag}: no job matches {pattern!r}.", remedy)
        matched |= found
    return matched


def _patterns(jobs: Sequence[Job], text: str) -> list[str]:
    """Split at commas, unless a job is called exactly so; an empty text is a pattern that matches nothing."""
    if text in _titles(jobs):
        return [text]
    return [piece.strip() for piece in text.split(",") if piece.strip()] or [text]


def _matches(job: Job, pattern: str) -> bool:
    return any(pattern == title or fnmatchcase(title, pattern) for title in _titles([job]))


def _titles(jobs: Sequence[Job]) -> list[str]:
    """Names and stems, each once."""
    return list(dict.fromkeys(title for job in jobs for title in (job.name, job.stem) if title))


def _listed(jobs: Sequence[Job]) -> str:
    return ", ".join(job.stem or job.name for job in jobs)
