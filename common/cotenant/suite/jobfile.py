"""The job file: a JSON list of jobs, read and checked before anything runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeVar

from cotenant.checkout import CHECKOUT
from cotenant.errors import CotenantError, did_you_mean
from cotenant.files import content_of
from cotenant.suite import fields
from cotenant.suite.cells import Job, labels_of, with_values
from cotenant.suite.decode import JsonEntry, at, decode_list, kind
from cotenant.suite.fields import PRECISION
from cotenant.suite.mixes import Mix, check_mixes, mix_of, pairs_of
from cotenant.text import quoted


@dataclass(frozen=True, slots=True)
class Suite:
    """The contents of one job file; `name` is the stem of `path`, which is absolute."""

    name: str
    path: Path
    jobs: tuple[Job, ...]
    mixes: tuple[Mix, ...] = ()

    @property
    def entries(self) -> tuple[Job | Mix, ...]:
        """The jobs, then the mixes."""
        return (*self.jobs, *self.mixes)


Entry = TypeVar("Entry", bound=Job | Mix)
_BESIDE: dict[str, Callable[[dict[str, Any]], Mix]] = {"mix": mix_of, "pairs": pairs_of}
"""The readers of entries of several jobs, by the key that tells such an entry from a job's own."""


def load(path: Path) -> Suite:
    """Read a job file and check all of it.

    Raises CotenantError that names the file and, as far as they are known, line, column, job and flag.
    """
    entries = decode_list(_read(path), str(path))
    items = [item for number, entry in enumerate(entries, start=1) for item in _read_entry(entry, number)]
    jobs = _with_stems([item for item in items if isinstance(item, Job)])
    mixes = tuple(item for item in items if isinstance(item, Mix))
    with at(str(path)):
        _check_labels(jobs)
        check_mixes(jobs, mixes)
    return Suite(path.stem, path.absolute(), jobs, mixes)


ALIASES = {"fast": "baselines", "16go": "16gb"}
"""The reference suite's names of profiles, and our names of the same jobs."""


def resolve_path(text: str, base_dirs: Sequence[Path]) -> Path:
    """Return the file that `--jobs` names: a path, else a profile, else a suite, in the first of `base_dirs` that has
    it; ALIASES count as names.

    Raises CotenantError with the existing profiles.
    """
    path = Path(text)
    if text and _stands(path) == "file":
        return path
    folders = [base / "profiles" for base in base_dirs]
    if text and path.name == text:
        for profile in (folder / name for folder in [*folders, *base_dirs] for name in (text, f"{text}.json")):
            if _stands(profile) == "file":
                return profile
    if path.name == text and (ours := ALIASES.get(path.name.removesuffix(".json"))):
        return resolve_path(ours, base_dirs)
    profiles = sorted({file.stem for folder in folders for file in folder.glob("*.json")})
    is_folder = text and _stands(path) == "directory"
    wrong = "is a directory" if is_folder else "is neither a file nor a profile"
    choice = f"The profiles are {', '.join(profiles)}." if profiles else "There are no profiles."
    raise CotenantError(f"--jobs: {quoted(text)} {wrong}.", f"{did_you_mean(path.stem, profiles)} {choice}".strip())


def _stands(path: Path) -> Literal["file", "directory", "nothing"]:
    """Return the kind of `path`. A path without permission counts as a file, so that reading it raises the error."""
    try:
        if not path.exists():
            return "nothing"
        return "directory" if path.is_dir() else "file"
    except PermissionError:
        return "file"
    except (OSError, ValueError):
        return "nothing"


def _read(path: Path) -> str:
    try:
        data = content_of(path, follow=True)
    except FileNotFoundError:
        siblings = sorted(file.name for file in path.parent.glob("*.json"))
        raise CotenantError(f"{path}: there is no such job file.", did_you_mean(path.name, siblings)) from None
    except IsADirectoryError:
        raise CotenantError(f"{path}: this is a directory.", "Name a job file in it.") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise CotenantError(f"{path}: the job file cannot be read: {why}.", "Check its path and its mode.") from None
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise CotenantError(f"{path}:{line}:{column}: this byte is not UTF-8.", "Save the file as UTF-8.") from None


def _read_entry(entry: JsonEntry, number: int) -> tuple[Job | Mix, ...]:
    """Return the mix, the pairs or the job of an entry; if its `--precision` is a list, a job for each precision."""
    raw = entry.value
    if not isinstance(raw, dict):
        raise CotenantError(f"{entry.place}: entry {number} is {kind(raw)}, not an object.", "Write {...} for a job.")
    name = raw.get("name")
    with at(f"{entry.place}: job {quoted(name)}" if isinstance(name, str) else f"{entry.place}: job {number}"):
        if "cmd" not in raw and (key := next((key for key in _BESIDE if key in raw), None)):
            return (_BESIDE[key](raw),)
        return _jobs(raw)


def _jobs(raw: dict[str, Any]) -> tuple[Job, ...]:
    """Return the job of an entry; if its `--precision` is a list, one for each, named `<name>_<precision>`."""
    fields.check_keys(raw, fields.KEYS, ("name", "cmd"), "unknown", "A job's")
    job = Job(
        name=fields.name_of(raw),
        cmd=fields.cmd_of(raw),
        args=fields.args_of(raw),
        group=fields.group_of(raw),
        weight=fields.positive_of(raw, "weight") or 1.0,
        timeout_s=fields.positive_of(raw, "timeout"),
        env=fields.env_of(raw),
    )
    args = raw.get("args")
    is_axis = isinstance(args, dict) and isinstance(args.get(PRECISION), list)
    return _in_each_precision(job) if is_axis else (job,)


def _in_each_precision(job: Job) -> tuple[Job, ...]:
    return tuple(
        replace(
            with_values(job, PRECISION, precision),
            name=fields.checked_name(f"{job.name}_{precision}"),
            family=job.name,
        )
        for precision in dict(job.args)[PRECISION]
    )


def _with_stems(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Give every job a stem of its own; the first job of a name always keeps that name."""
    taken = {job.name for job in jobs}
    seen: set[str] = set()
    done: list[Job] = []
    for job in jobs:
        stem = job.name
        if stem in seen:
            stem = next(new for k in itertools.count(2) if (new := f"{job.name}-{k}") not in taken)
        seen.add(job.name)
        taken.add(stem)
        done.append(replace(job, stem=stem))
    return tuple(done)


def _check_labels(jobs: Sequence[Job]) -> None:
    """Refuse a job with the name of another job's cell: both would write the same files."""
    stems = {job.stem for job in jobs}
    for job in jobs:
        for label in labels_of(job):
            if label != job.stem and label in stems:
                raise CotenantError(f"job {quoted(label)} has the name of a cell of {quoted(job.stem)}.", "Rename one.")


def select(
    jobs: Sequence[Entry],
    names: Sequence[str] = (),
    excludes: Sequence[str] = (),
    say: Callable[[str], object] = lambda _: None,
) -> tuple[Entry, ...]:
    """Return the jobs and mixes that `names` choose (all without any), without `excludes`, in the file's order.

    Each text is a comma list of names, stems, families, or globs over them. In `names` it may also hold the start of a
    name, which `say` then reports. Raises CotenantError if a pattern matches no job, or no job is left.
    """
    meant = [_whole_names(jobs, text, say) for text in names]
    wanted = _matched(jobs, "--name", meant) if names else set(range(len(jobs)))
    unwanted = _matched(jobs, "--exclude", excludes)
    chosen = tuple(job for index, job in enumerate(jobs) if index in wanted - unwanted)
    if not chosen:
        raise CotenantError("--exclude leaves no job to run.", f"The jobs are {_listed(jobs)}.")
    return chosen


LEAST_START = 3
"""The fewest letters from which a name is completed."""


def matches(name: str, pattern: str) -> bool:
    """Return whether a pattern is this name, or a glob that matches it."""
    return name == pattern or fnmatchcase(name, pattern)


def _matched(jobs: Sequence[Job | Mix], flag: str, texts: Sequence[str]) -> set[int]:
    matched: set[int] = set()
    for pattern in (pattern for text in texts for pattern in _patterns(jobs, text)):
        chosen = {index for index, job in enumerate(jobs) if any(matches(title, pattern) for title in _titles([job]))}
        if not chosen:
            begun = any(title.startswith(pattern) for title in _titles(jobs)) and bool(pattern)
            meant = f"'{pattern}*' chooses all that begin so." if begun else did_you_mean(pattern, _titles(jobs))
            remedy = f"{meant} The jobs are {_listed(jobs)}.".strip()
            raise CotenantError(f"{flag}: no job matches {pattern!r}.", remedy)
        matched |= chosen
    return matched


def _whole_names(jobs: Sequence[Job | Mix], text: str, say: Callable[[str], object]) -> str:
    """Return the text with each start of a single job's name, or family, completed; `say` which."""
    words = _patterns(jobs, text)
    titles = list(dict.fromkeys((job.family if isinstance(job, Job) else "") or job.stem or job.name for job in jobs))
    for place, word in enumerate(words):
        begun = sorted((title for title in titles if title.startswith(word)), key=len)
        matched = any(matches(title, word) for title in _titles(jobs))
        if not matched and begun and all(title.startswith(begun[0]) for title in begun) and len(word) >= LEAST_START:
            say(f"--name {word}: taken for {begun[0]}.")
            words[place] = begun[0]
    return ",".join(words)


def _patterns(jobs: Sequence[Job | Mix], text: str) -> list[str]:
    """Split a text at commas, unless it is the name of a job; an empty text is a pattern that matches nothing."""
    if text in _titles(jobs):
        return [text]
    return [piece.strip() for piece in text.split(",") if piece.strip()] or [text]


def _titles(jobs: Sequence[Job | Mix]) -> list[str]:
    """Return names, stems and families, each once."""
    return list(dict.fromkeys(title for job in jobs for title in (job.name, job.stem, job.family) if title))


def _listed(jobs: Sequence[Job | Mix]) -> str:
    return ", ".join(job.stem or job.name for job in jobs)


def shipped_suites() -> list[str]:
    """Return the names that `--jobs` takes for shipped files."""
    return sorted([path.stem for path in (CHECKOUT / "profiles").glob("*.json")] + ["baselines"])


def shipped_jobs() -> list[str]:
    """Return the names of all jobs in shipped files, each once, the reference suite's first.

    An invalid file, such as one that is being written, is left out: running it shows the error.
    """
    places = [CHECKOUT / "baselines.json", *sorted((CHECKOUT / "profiles").glob("*.json"))]
    return list(dict.fromkeys(name for place in places for name in _names_in(place)))


def _names_in(path: Path) -> list[str]:
    try:
        entries = [entry.value for entry in decode_list(_read(path), str(path))]
    except CotenantError:
        return []
    names = [entry.get("name") for entry in entries if isinstance(entry, dict)]
    return [name for name in names if isinstance(name, str)]
