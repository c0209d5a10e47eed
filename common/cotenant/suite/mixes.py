"""Mixes: launches of different cells of one job file beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from cotenant.errors import CotenantError, did_you_mean
from cotenant.suite.cells import Job, labels_of
from cotenant.suite.decode import kind
from cotenant.suite.fields import check_keys, checked_name, name_of, positive_of
from cotenant.text import quoted

KEYS = ("name", "mix", "cgroup", "timeout")
JOINED = "+"


@dataclass(frozen=True, slots=True)
class Mix:
    """A launch in which tenant i runs label i modulo the number of `labels`, cells of one job file.

    With `pairs` two tenants run at a time, else all run beside each other. `family` is the name of the entry or flag
    that made a mix of two tenants, or of pairs; else "".
    """

    name: str
    labels: tuple[str, ...]
    timeout_s: float | None = None
    family: str = ""
    pairs: tuple[tuple[int, int], ...] = ()

    @property
    def stem(self) -> str:
        return self.name

    @property
    def apart(self) -> tuple[Mix, ...]:
        """The pairs as launches of their own."""
        labels = [(self.labels[first], self.labels[second]) for first, second in self.pairs]
        return tuple(Mix(JOINED.join(pair), pair, self.timeout_s, self.family) for pair in labels)

    def of_tenants(self, tenants: int) -> tuple[str, ...]:
        """Return the cell of each tenant."""
        return tuple(self.labels[tenant % len(self.labels)] for tenant in range(tenants))


def mix_of(entry: Mapping[str, object]) -> Mix:
    """Return the mix of a job file's entry, with its cells yet to be looked up. Raises CotenantError."""
    _check_keys(entry, KEYS)
    if entry.get("cgroup", "student") != "student":
        raise CotenantError("'cgroup' of a mix is 'student': its users have a slice each.", "Leave it out.")
    return Mix(name_of(entry), tuple(_texts_of(entry, "mix")), positive_of(entry, "timeout"))


def pairs_of(entry: Mapping[str, object]) -> Mix:
    """Return every pair of different jobs of a job file's entry; a job beside itself is the job's own entry.

    The cells are not yet looked up. Raises CotenantError.
    """
    _check_keys(entry, ("name", "pairs", "timeout"))
    name, timeout_s = name_of(entry), positive_of(entry, "timeout")
    labels = dict.fromkeys(_texts_of(entry, "pairs"))
    if len(labels) < 2:
        raise CotenantError("'pairs' names one job.", "A job beside itself is the job's own entry: name others.")
    return _paired(name, tuple(labels), timeout_s, name, itself=False)


def _paired(name: str, labels: tuple[str, ...], timeout_s: float | None, family: str, itself: bool) -> Mix:
    """Return the pairs of these cells, if `itself` also each cell beside itself.

    Raises CotenantError, as `checked_pairs` does.
    """
    count = len(labels)
    twins = [(at, count + at) for at in range(count)] if itself else []
    pairs = tuple(sorted([*combinations(range(count), 2), *twins], key=lambda pair: (pair[0], pair[1] % count)))
    return checked_pairs(Mix(name, labels + labels[: len(twins)], timeout_s, family, pairs))


def checked_pairs(mix: Mix) -> Mix:
    """Return the mix unchanged. Raises CotenantError if the cells' names give a pair no valid name."""
    for pair in mix.apart:
        checked_name(pair.name)
    return mix


def _check_keys(entry: Mapping[str, object], keys: Sequence[str]) -> None:
    """Raise CotenantError for a key that an entry without `cmd` cannot have, and for a missing name."""
    check_keys(entry, keys, ("name",), f"an entry with '{keys[1]}' has no", "Its")


def _texts_of(entry: Mapping[str, object], key: str) -> list[str]:
    """Return the texts of a list in an entry. Raises CotenantError for any other value, and for an empty list."""
    value = entry[key]
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise CotenantError(f"'{key}' is {kind(value)}.", 'It is a list of texts: ["convnet", "wlm"].')
    return value


def mix_named(text: str) -> Mix:
    """Return the mix of `--mix a,b`, called `a+b`. Raises CotenantError for fewer than two names."""
    labels = _labels_named(text, "--mix")
    if len(labels) == 1:
        raise CotenantError(
            f"--mix: all users would run {quoted(labels[0])}, as without it.",
            f"Use --name {labels[0]}, or name others.",
        )
    return Mix(checked_name(JOINED.join(labels)), tuple(labels))


def pairs_named(text: str) -> Mix:
    """Return every pair of the cells of `--pairs a,b,c`, also each cell beside itself. Raises CotenantError."""
    return _paired("pairs", tuple(dict.fromkeys(_labels_named(text, "--pairs"))), None, "--pairs", itself=True)


def check_mixes(jobs: Sequence[Job], mixes: Iterable[Mix]) -> None:
    """Raise CotenantError for a mix with a label that is no cell of these jobs, a cell that owns the machine, or a name
    in use."""
    labels = {job: labels_of(job) for job in jobs}
    cells = {label: job.group for job, of_job in labels.items() for label in of_job}
    several = {job.stem: of_job for job, of_job in labels.items() if len(of_job) > 1}
    names: set[str] = set()
    for mix in chain.from_iterable((mix, *mix.apart) for mix in mixes):
        if mix.name in names or mix.name in cells or mix.name in several:
            raise CotenantError(f"{quoted(mix.name)} is the name of a mix and of another entry.", "Rename one.")
        names.add(mix.name)
        # A name made from the jobs' names does not help a person who typed these.
        where = "" if mix.family or mix.name == JOINED.join(mix.labels) else f"mix {quoted(mix.name)}: "
        for label in mix.labels:
            if label in several:
                remedy = f"Name one of them: {', '.join(several[label][:4])}."
                raise CotenantError(f"{where}{quoted(label)} has several cells.", remedy)
            if label not in cells:
                remedy = did_you_mean(label, cells) or f"The jobs are {', '.join(cells)}."
                raise CotenantError(f"{where}there is no job {quoted(label)}.", remedy)
            if cells[label] == "all":
                raise CotenantError(
                    f"{where}{quoted(label)} is of the group 'all' and owns the machine.",
                    "Only jobs of the group 'student' have others beside them.",
                )


def _labels_named(text: str, flag: str) -> list[str]:
    """Return the names of a comma list. Raises CotenantError for an empty one."""
    labels = [label.strip() for label in text.split(",") if label.strip()]
    if not labels:
        raise CotenantError(f"{flag} names no job.", f"As {flag} convnet,wlm.")
    return labels
