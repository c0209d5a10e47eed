"""The number of users that a machine carries: a sentence, a table over numbers of users, and how far to trust it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cotenant.report.kept import n_text
from cotenant.report.numbers import rate
from cotenant.report.progress import duration_words
from cotenant.report.view import Column, Row, RowGroup, View, Words, with_ends
from cotenant.results.record import UNAUDITED
from cotenant.stats.capacity import NOBODY, NOISE, Carried, CrowdEstimate, Kind, Requirement, Standing
from cotenant.stats.kept import Over
from cotenant.text import gib, in_words, joined, many, ordinal, verb


class Shown(NamedTuple):
    """The form of a requirement's values: the verb before them, their factor, digits and unit."""

    verb: str
    scale: float
    digits: str
    unit: str

    def text(self, value: float) -> str:
        return f"{self.scale * value:{self.digits}}"


SHOWN: Mapping[Kind, Shown] = {
    "keep": Shown("keeps", 100.0, ".3g", " %"),
    "rate": Shown("has", 1.0, ".4g", " items/s"),
    "p95": Shown("takes", 1000.0, ".4g", " ms"),
}
BINDING = {
    "memory": "Memory binds: it holds no more users.",
    "processors": "Processors bind: no more of them are idle.",
}


def capacity_sentences(found: Carried) -> list[str]:
    """Return the answer: how many users, each user's share, the share with one more, and the result under pressure."""
    if not found.settled:
        return [_no_answer(found)]
    users, label = found.users, found.label
    together = f"{in_words(users).capitalize()} users run {label} at once" if users > 1 else f"One user runs {label}"
    prefix = "each " if users > 1 else ""
    sentence = f"{together} and {prefix}{_has(found.requirement)} (lower limits); {_next(found)}."
    sentences = [sentence, *_beside(found)]
    # No limit was met if more users were not tried.
    if found.binding or users + found.step in found.confirmed:
        sentences.append(BINDING.get(found.binding) or _unbound(found))
    return sentences


def _no_answer(found: Carried) -> str:
    if found.why == NOBODY:
        return f"No answer: not even one user {_has(found.requirement)}."
    if found.why != NOISE:
        return f"No answer: {found.why}"
    least, open_ = found.requirement.log, found.users + found.step
    held = found.confirmed.get(found.users)
    if held is not None and held.standing(least) is Standing.UNCLEAR:
        open_ = found.users
    estimate = found.confirmed.get(open_)
    seen = "" if estimate is None else f": the worst of them {_shown(estimate, found.requirement)}"
    tried = (*found.searched, *found.confirmed.values())
    carried = (trial.users for trial in tried if trial.users < open_ and trial.standing(least) is Standing.HELD)
    sure = max(carried, default=0)
    beyond = f" {in_words(sure).capitalize()} {verb(sure)} carried beyond doubt." if sure else ""
    longer = "more than an hour" if found.missing_s is None else f"about {duration_words(found.missing_s)} more"
    return (
        f"No answer yet: whether {in_words(open_)} users fit, of whom each {_has(found.requirement)}, is not known"
        f"{seen}.{beyond} {longer.capitalize()} would settle it (--budget), or a machine with less other work."
    )


def _has(requirement: Requirement) -> str:
    if requirement.kind == "rate":
        return f"has at least {rate(requirement.least)} items/s"
    shown = SHOWN[requirement.kind]
    least = f"{shown.text(requirement.least)}{shown.unit}"
    if requirement.kind == "p95":
        return f"makes 95 % of its steps within {least}"
    return f"keeps at least {'half' if requirement.least == 0.5 else least} of what it has alone"


def _unbound(found: Carried) -> str:
    busy = "" if found.busy is None or found.alone is None else f"{found.busy:.1f} of {found.alone.processors} "
    kept = f"They kept {busy}processors busy: " if busy else "Nobody counted what they kept busy: "
    return f"{kept}the limit may be bandwidth, caches, a disk (--pressure tells), or other work on this machine."


def _next(found: Carried) -> str:
    following = found.users + found.step
    users = f"the {ordinal(following)}" if found.step == 1 else f"{many(found.step, 'user')} more"
    if found.by_memory:
        return f"{users} {verb(found.step, 'fails', 'fail')} on memory"
    estimate = found.confirmed.get(following)
    if estimate is None:
        return f"more than {found.users} were not to be tried (--users)"
    return f"with {users} the worst {_shown(estimate, found.requirement)}"


def _beside(found: Carried) -> Iterator[str]:
    held = [pressed for pressed in found.pressures if pressed.standing is Standing.HELD]
    short = [
        f"beside one that takes all it can of {trial.resource} the worst {_shown(trial.estimate, found.requirement)}"
        for trial in found.pressures
        if trial not in held
    ]
    if short:
        yield f"That is among users like these: {', '.join(short)}."
    if held:
        yield f"It held beside a user that takes all it can of {' and of '.join(trial.resource for trial in held)}."
    if found.untried:
        yield f"Beside a user that takes all it can it was not tried: {found.untried}."


def _shown(estimate: CrowdEstimate, requirement: Requirement) -> str:
    """Return `keeps 31 % (28 to 34 %)` for the user that has least."""
    shown = SHOWN[requirement.kind]
    logs = (estimate.worst, *(estimate.interval or ()))
    worst, *ends = (shown.text(requirement.shown(log)) for log in logs)
    span = f" ({' to '.join(sorted(ends, key=float))}{shown.unit})" if ends else ""
    return f"{shown.verb} {worst}{shown.unit}{span}"


OF_N = "n: rounds of blocks of one launch, or launches of so many users. least: of the user that has least."
OF_ALONE = {
    "rate": "items per second of a user alone",
    "unit": "the items of its rate",
    "busy": "processors that it keeps busy",
    "processors": "the processors of all slices together",
    "peak_bytes": "its memory at the peak",
    "processes": "its processes and threads",
    "device_bytes": "its memory on devices",
    "audited": "whether our loop watched some of its steps",
}
PLACE = {"job": "the job, or command", "share": "how users share a device; may be empty"}
FIELDS = {
    **PLACE,
    "kind": "what each user has to have: keep, a share of its rate alone; rate, items per second; p95, seconds",
    "required": "how much of it",
    "users": "how many users the machine carries",
    "step": "how many more are too many",
    "settled": "whether launches of so many users, and of more, confirmed it",
    "why": "why there is no answer",
    "missing_s": "about how many seconds would give one",
    "binding": "the resource of which there is no more",
    "busy": "processors that all users kept busy together",
    "memory_users": "the most users that memory holds",
    "memory_bytes": "the memory of each user in its slice",
    "by_memory": "whether memory alone does not hold more of them",
    "untried": "why no user beside pressure was tried",
    "seconds": "how long it took",
    **{f"alone_{name}": meaning for name, meaning in OF_ALONE.items()},
    "answer": "the answer in words",
}
ESTIMATE_FIELDS = {
    **PLACE,
    "users": "users at once",
    **with_ends("least", "the value of the user that has least, in the unit of the requirement"),
    "n": "how many rounds or launches",
    "over": "rounds or launches",
    "standing": "held, failed or unclear",
    "logs": "a list of the logarithm of each user's value, of which more is better",
    "half": "half the 95 % interval of a user's logarithm",
    "mean_half": "half the 95 % interval of the mean of all users' logarithms",
    "spread": "the standard deviation of a user's logarithm between rounds, or launches",
}


def capacity_view(answers: Sequence[Carried]) -> View:
    """Return a row per answer; for people a table for each, with the value of the user that has least."""
    rows, estimates, pressures, groups, lines = [], list[Row](), list[Row](), list[RowGroup](), list[Words]()
    for found in answers:
        said = " ".join(capacity_sentences(found))
        rows.append(_row(found) | {"answer": said})
        lines.append(((f"{found.share}: {said}" if found.share else said, "bold"),))
        searched = {estimate.users: _estimate(found, estimate, "rounds") for estimate in found.searched}
        confirmed = {users: _estimate(found, estimate, "launches") for users, estimate in found.confirmed.items()}
        estimates += [*searched.values(), *confirmed.values()]
        pressures += [
            _estimate(found, trial.estimate, "launches")
            | {"resource": trial.resource, "standing": trial.standing.value}
            for trial in found.pressures
        ]
        groups.append(RowGroup([row for _, row in sorted((searched | confirmed).items())], found.label, _facts(found)))
    parts = [
        View("estimates", ESTIMATE_FIELDS, estimates),
        View("pressures", {"resource": "the resource that one user takes all it can of"} | ESTIMATE_FIELDS, pressures),
    ]
    if not estimates:
        return View("capacity", FIELDS, rows, lines=lines, parts=parts)
    return View("capacity", FIELDS, rows, COLUMNS, groups, lines=[((OF_N, "dim"),), *lines], parts=parts)


def _row(found: Carried) -> dict[str, Any]:
    row = {name: getattr(found, name) for name in FIELDS if hasattr(found, name)}
    row |= {"job": found.label, "kind": found.requirement.kind, "required": found.requirement.least}
    return row | {f"alone_{name}": getattr(found.alone, name, None) for name in OF_ALONE}


def _estimate(found: Carried, estimate: CrowdEstimate, over: Over) -> dict[str, Any]:
    requirement = found.requirement
    low, high = sorted(map(requirement.shown, estimate.interval)) if estimate.interval else (None, None)
    return {
        "job": found.label,
        "share": found.share,
        "users": estimate.users,
        "least": requirement.shown(estimate.worst),
        "least_low": low,
        "least_high": high,
        "n": estimate.n,
        "over": over,
        "standing": estimate.standing(requirement.log).value,
        "logs": [*estimate.means.values()],
        **{name: getattr(estimate, name) for name in ("half", "mean_half", "spread")},
        "kind": requirement.kind,
    }


def _facts(found: Carried) -> str:
    facts, alone = [found.share], found.alone
    if alone is not None:
        facts += [
            f"alone {rate(alone.rate)} {alone.unit or 'item'}/s",
            "" if alone.audited else UNAUDITED,
            "" if alone.peak_bytes is None else f"{gib(alone.peak_bytes)} at the peak",
            "" if alone.processes is None else many(alone.processes, "task"),
        ]
    return joined("; ", *facts, "" if found.memory_users is None else f"memory holds {found.memory_users}")


def _least(value: float, kind: Kind) -> str:
    return SHOWN[kind].text(value)


def _interval(_: float, kind: Kind, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "n too small"
    show = SHOWN[kind].text
    return f"{show(low)}-{show(high)}"


COLUMNS = (
    Column("users"),
    Column("least", ("least", "kind"), _least),
    Column("95 % interval", ("least", "kind", "least_low", "least_high"), _interval),
    Column("n", ("n", "over"), n_text),
    Column("", "standing", left=True),
)
