"""Says how many users a machine carries: a sentence, a table over numbers of users, and how far to trust it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from cotenant.report.grid import Cell, Column, Grid, RowGroup, number, row, text_column
from cotenant.report.kept import counted
from cotenant.report.numbers import rate
from cotenant.report.progress import duration_words
from cotenant.results.record import UNAUDITED
from cotenant.stats.capacity import NOBODY, NOISE, Carried, CrowdEstimate, Kind, Requirement, Standing
from cotenant.text import gib, in_words, joined, many, ordinal, verb


class Shown(NamedTuple):
    """How values of a requirement are shown: the user's verb before them, their factor, their unit."""

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
    """Return the answer: how many users, each one's share, the share with one more, and the result beside pressure."""
    if not found.settled:
        return [_no_answer(found)]
    users, label = found.users, found.label
    together = f"{in_words(users).capitalize()} users run {label} at once" if users > 1 else f"One user runs {label}"
    each = "each " if users > 1 else ""
    sentence = f"{together} and {each}{_has(found.requirement)} (lower limits); {_next(found)}."
    sentences = [sentence, *_beside(found)]
    # If no more were to be tried, no limit was met.
    if found.binding or users + found.step in found.confirmed:
        sentences.append(BINDING.get(found.binding) or _unbound(found))
    return sentences


def capacity_grids(answers: Sequence[Carried]) -> Iterator[Grid]:
    """Yield the table over numbers of users, and below it the answer of each."""
    if any(found.searched or found.confirmed for found in answers):
        yield capacity_grid(answers)
    for found in answers:
        text = " ".join(capacity_sentences(found))
        yield Grid((), (), notes=[((f"{found.share}: {text}" if found.share else text, "bold"),)])


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
    carried = (each.users for each in tried if each.users < open_ and each.standing(least) is Standing.HELD)
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
    who = f"the {ordinal(following)}" if found.step == 1 else f"{many(found.step, 'user')} more"
    if found.by_memory:
        return f"{who} {verb(found.step, 'fails', 'fail')} on memory"
    estimate = found.confirmed.get(following)
    if estimate is None:
        return f"more than {found.users} were not to be tried (--users)"
    return f"with {who} the worst {_shown(estimate, found.requirement)}"


def _beside(found: Carried) -> Iterator[str]:
    held = [pressed for pressed in found.pressures if pressed.standing is Standing.HELD]
    short = [
        f"beside one that takes all it can of {each.resource} the worst {_shown(each.estimate, found.requirement)}"
        for each in found.pressures
        if each not in held
    ]
    if short:
        yield f"That is among users like these: {', '.join(short)}."
    if held:
        yield f"It held beside a user that takes all it can of {' and of '.join(each.resource for each in held)}."
    if found.untried:
        yield f"Beside a user that takes all it can it was not tried: {found.untried}."


def _shown(estimate: CrowdEstimate, requirement: Requirement) -> str:
    """Return `keeps 31 % (28 to 34 %)` of the user that has least."""
    shown = SHOWN[requirement.kind]
    logs = (estimate.worst, *(estimate.interval or ()))
    worst, *ends = (shown.text(requirement.shown(log)) for log in logs)
    span = f" ({' to '.join(sorted(ends, key=float))}{shown.unit})" if ends else ""
    return f"{shown.verb} {worst}{shown.unit}{span}"


def capacity_grid(answers: Sequence[Carried]) -> Grid:
    """Return a table for each answer: the value of the user that has least, by number of users."""
    groups = []
    for found in answers:
        alone = found.alone
        facts = [found.share]
        if alone is not None:
            facts += [
                f"alone {rate(alone.rate)} {alone.unit or 'item'}/s",
                "" if alone.audited else UNAUDITED,
                "" if alone.peak_bytes is None else f"{gib(alone.peak_bytes)} at the peak",
                "" if alone.processes is None else many(alone.processes, "task"),
            ]
        facts.append("" if found.memory_users is None else f"memory holds {found.memory_users}")
        made = {estimate.users: (found, estimate, "rounds") for estimate in found.searched}
        made |= {users: (found, estimate, "launches") for users, estimate in found.confirmed.items()}
        rows = [row(COLUMNS, made[users]) for users in sorted(made)]
        groups.append(RowGroup(rows, found.label, joined("; ", *facts)))
    note = "n: rounds of blocks of one launch, or launches of so many users. least: of the user that has least."
    return Grid(COLUMNS, groups, notes=[((note, "dim"),)])


Line = tuple[Carried, CrowdEstimate, str]


def _least(line: Line) -> Cell:
    requirement = line[0].requirement
    return number(requirement.shown(line[1].worst), SHOWN[requirement.kind].text, "least")


def _interval(line: Line) -> Cell:
    requirement, interval = line[0].requirement, line[1].interval
    if interval is None:
        return Cell("n too small")
    low, high = sorted(map(requirement.shown, interval))
    show = SHOWN[requirement.kind].text
    return Cell(f"{show(low)}-{show(high)}", {"least_low": low, "least_high": high})


COLUMNS: Sequence[Column[Line]] = (
    Column("users", lambda line: number(line[1].users, str, "users")),
    Column("least", _least),
    Column("95 % interval", _interval),
    Column("n", lambda line: Cell(counted(line[1].n, line[2]), {"n": line[1].n})),
    text_column("", lambda line: line[1].standing(line[0].requirement.log), "standing"),
)


def capacity_document(answers: Sequence[Carried]) -> dict[str, Any]:
    """Return the answers for programs."""
    return {
        "schema": "cotenant-capacity-1",
        "answers": [asdict(found) | {"sentences": capacity_sentences(found)} for found in answers],
    }
