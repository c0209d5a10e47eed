"""Different jobs beside each other: each user's share in a mix of jobs, and the measures of all users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cotenant.frames import pl
from cotenant.report import numbers
from cotenant.report.kept import (
    BASELINE,
    OF_ENERGY,
    OF_N,
    OF_STEPS,
    QUICK,
    QUICKLY,
    STEP_FIELDS,
    STEPS,
    kept_columns,
    kept_fields,
    kept_meanings,
    kept_of,
    legend_of,
    percents,
    rates_over_launches,
    with_interval,
)
from cotenant.report.kept_rows import ALONE, FIELDS, KEPT, MIX, PAIR, TOGETHER, VALUE
from cotenant.report.kept_table import kept_table
from cotenant.report.summary import Summary
from cotenant.report.view import Column, Row, RowGroup, View, Words, place_columns
from cotenant.results.record import SUSPECT
from cotenant.stats.evenness import differences_by_intervals
from cotenant.stats.kept import Kept, joint

OF_MIXES = (
    "/ alone: a user's rate beside the others over its rate alone in its slice; slowdown: its inverse. STP: the sum "
    "of / alone, how many slices those of the mix are worth; ANTT: the mean slowdown; fairness: the least / alone over "
    "the greatest; tax: 1 - STP / slices."
)
PROGRESS, MEASURED = kept_fields("progress"), kept_fields("value")
PLACE = ("suite", "host", "mix", "isolation")
MIX_FIELDS = {
    **{name: FIELDS[name] for name in (*PLACE, "tenant", "job", "unit")},
    **kept_meanings("progress", "the rate together over the rate alone"),
    "share_kept": "progress over the entitlement, its part of a shared device or of shared processors",
    "slowdown": "1 / progress",
    **{name: FIELDS[name] for name in (*TOGETHER[:3], *ALONE[:3], "baseline", "verdict", *STEP_FIELDS)},
    "measure": "a measure of all users of the mix",
    **kept_meanings("value", "the measure"),
}
MIX_COLUMNS = (
    *place_columns(*PLACE),
    Column("user", "tenant"),
    Column("job", left=True),
    *kept_columns("/ alone", PROGRESS),
    Column(
        "share kept", ("share_kept", "sharers"), lambda kept, k: numbers.ratio(kept) if k > 1 else "", optional=True
    ),
    Column("slowdown", show=numbers.ratio),
    *rates_over_launches("together", "together")[:1],
    *rates_over_launches("alone", "alone")[:1],
    Column("unit", show=lambda unit: f"{unit or 'item'}/s", left=True),
    *STEPS,
    BASELINE,
    Column("verdict", left=True),
)


@dataclass(frozen=True, eq=False)
class MixBlock:
    """A mix of one suite on one host under one isolation, with its rows of the table, its users and its measures.

    If a user's share is unknown, there are no measures, and `notes` say why.
    """

    suite: str
    host: str
    mix: str
    isolation: str
    rows: pl.DataFrame
    users: Sequence[Row]
    measures: Mapping[str, Kept]
    notes: Sequence[str]

    @property
    def place(self) -> tuple[str, str, str]:
        """Suite, host and isolation: all pairs of one place form a matrix."""
        return self.suite, self.host, self.isolation

    @property
    def quick(self) -> bool:
        """True if a rate alone comes from few observations."""
        return any(user["baseline"] == "quick" for user in self.users)

    @property
    def is_pair(self) -> bool:
        """True if it has two users, and no name but the names of their jobs."""
        return any(user["company"] == PAIR for user in self.users)

    @property
    def worst(self) -> Row:
        """The user that keeps least."""
        return min(self.users, key=lambda user: user["value"])

    @property
    def shares(self) -> list[Kept]:
        """The known shares of its users."""
        return [kept for user in self.users if (kept := kept_of(user, VALUE)) is not None]


@lru_cache(maxsize=1)
def mix_blocks(summary: Summary) -> Sequence[MixBlock]:
    """Return a block for each mix, in the order in which they first appear."""
    if not any(job.mix for job in summary.jobs):
        return ()
    mixed = kept_table(summary).filter(pl.col("company").is_in([MIX, PAIR]))
    return [_block(rows) for _, rows in mixed.group_by(PLACE, maintain_order=True)]


def _block(rows: pl.DataFrame) -> MixBlock:
    users, measures = rows.filter(pl.col("tenant").is_not_null()), rows.filter(pl.col("measure") != KEPT)
    values = {row["measure"]: kept for row in measures.to_dicts() if (kept := kept_of(row, VALUE)) is not None}
    suite, host, mix, isolation = rows.select(PLACE).row(0)
    of_block = pl.concat([users, measures])
    return MixBlock(suite, host, mix, isolation, of_block, users.to_dicts(), values, [*rows["notes"][0]])


def mix_view(blocks: Sequence[MixBlock]) -> View:
    """Return a row per user of each mix, and below them its measures; programs read the measures as rows."""
    groups = [
        RowGroup(
            _mix_frame(block.rows).filter(pl.col("measure").is_null()),
            f"{block.mix}: {len(block.users)} users",
            _facts(block),
            [*_mix_notes(block)],
        )
        for block in blocks
    ]
    texts = {
        OF_MIXES: True,
        OF_N: True,
        QUICK: any(block.quick for block in blocks),
        OF_ENERGY: any("energy" in block.measures for block in blocks),
        OF_STEPS: any(user[STEP_FIELDS[0]] is not None for block in blocks for user in block.users),
    }
    rows = pl.concat([_mix_frame(block.rows).select(*MIX_FIELDS) for block in blocks]) if blocks else ()
    notes = [f"{block.mix}: {note}" for block in blocks for note in block.notes]
    return View("mix", MIX_FIELDS, rows, MIX_COLUMNS, groups, lines=legend_of(texts), notes=notes)


def _mix_frame(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the table's rows of a mix with users' shares as their progress, verdicts with doubts on rates alone."""
    of_user = pl.col("measure") == KEPT
    progress = pl.when(of_user).then("value")
    suspect = pl.when(pl.col("alone_doubts").list.len() > 0).then(pl.lit(f", {SUSPECT} alone")).otherwise(pl.lit(""))
    return rows.with_columns(
        *(pl.when(of_user).then(name).alias(field) for name, field in zip(VALUE, PROGRESS, strict=True)),
        *(pl.when(~of_user).then(name).alias(field) for name, field in zip(VALUE, MEASURED, strict=True)),
        share_kept=progress / pl.col("entitlement"),
        slowdown=1 / progress,
        verdict=pl.col("verdict") + suspect,
        measure=pl.when(~of_user).then("measure"),
    )


def _facts(block: MixBlock) -> str:
    # The largest number of users on one device, or on the same processors, counts.
    of_device = max((user["sharers"] for user in block.users), default=1)
    of_processors = max(block.rows["processor_sharers"].drop_nulls(), default=1)
    shared = f", {of_device} of them have the same device" if of_device > 1 else ""
    shared = f", {of_processors} of them have the same processors" if of_processors > 1 else shared
    return f"{block.suite} on {block.host}, isolation {block.isolation}{shared}"


def _mix_notes(block: MixBlock) -> Iterator[Words]:
    if measures := block.measures:
        slices, worst = sum(1 / user["sharers"] for user in block.users), block.worst
        parts = [
            f"STP {with_interval(measures['stp'])} of {slices:g} slices",
            f"ANTT {with_interval(measures['antt'])}",
            f"worst slowdown {with_interval(measures['worst_slowdown'])}, user {worst['tenant']} ({worst['job']})",
            f"fairness {with_interval(measures['fairness'])}",
            f"tax {percents(measures['tax'])}",
            *([f"energy {with_interval(measures['energy'])}"] if "energy" in measures else []),
        ]
        yield (("; ".join(parts), "bold"),)
    yield from (((note, "yellow"),) for note in block.notes)


def mix_sentence(block: MixBlock) -> str:
    """Return the kept shares of a mix's users, and the user that keeps least; or why they are unknown."""
    if not block.measures:
        return f"what the users of {block.mix} keep beside each other is not known: {'; '.join(block.notes)}"
    least, over_launches = block.worst, block.rows["notable"].drop_nulls()
    differ = differences_by_intervals(block.shares)
    notable = over_launches[0] if len(over_launches) else differ is not None and differ.notable
    worst = f"; least: {least['job']}, {percents(block.shares[block.users.index(least)])}" if notable else ""
    once = "; measured once" if block.measures["stp"].n == 1 else ""
    return (
        f"beside each other the {len(block.users)} users of {block.mix} keep {percents(joint(block.shares))} of what "
        f"each has alone{QUICKLY if block.quick else ''}{worst}{once}"
    )
