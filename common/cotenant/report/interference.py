"""The cost of neighbours and the value of slices: jobs alone in a slice, together in slices, together without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from cotenant.frames import pl
from cotenant.report import numbers
from cotenant.report.alone import NO_SLICES, sliced
from cotenant.report.kept import (
    BASELINE,
    BLOCKS,
    OF_N,
    QUICK,
    kept_columns,
    kept_fields,
    kept_meanings,
    legend_of,
    rate_fields,
    rate_meanings,
    rates_over_launches,
)
from cotenant.report.kept_rows import ALONE, COPIES, FIELDS, KEPT, TOGETHER, UNSLICED_ALONE, UNSLICED_KEPT, VALUE, WORTH
from cotenant.report.kept_table import RATIOS, kept_table
from cotenant.report.summary import JobSummary, Summary
from cotenant.report.view import Column, Row, RowGroup, View, Words, common, place_columns
from cotenant.results.launches import grouped

MEAN = "geometric mean"
LEGEND = (
    "alone: a user alone in its slice; together: all at once, each in its slice; no slices: all at once with "
    "--isolation none, over the same alone. worth: together in slices over together without. 1 - (/ alone) is what "
    "neighbours cost."
)
INTERFERENCE_FIELDS = {
    **common("suite", "host", "job", "tenant", "unit"),
    **rate_meanings("alone", "alone in the slice"),
    **rate_meanings("sliced", "together in slices"),
    **rate_meanings("unsliced", "together without slices"),
    **rate_meanings("unsliced_alone", "alone on the whole machine, which is in no ratio"),
    **kept_meanings("kept", "together in slices over alone: 1 minus this is the interference"),
    **kept_meanings("unsliced_kept", "together without slices over alone in the slice"),
    **kept_meanings("worth", "together in slices over together without"),
    "baseline": FIELDS["baseline"],
    "jobs": f"in a row of the {MEAN}, the jobs that it is over",
    "note": FIELDS["notes"],
}
_OF_RATIOS = [field for name in RATIOS for field in kept_fields(name)]
LINE = ("suite", "host", "job", "difference")
"""The columns of the long table that are equal in the rows of a job in all three ways."""
COLUMNS = (
    *place_columns("suite", "host"),
    Column("job", ("job", "tenant"), lambda job, tenant: job if tenant is None else "", left=True),
    Column("user"),
    *kept_columns("/ alone", kept_fields("kept")),
    *kept_columns("worth", kept_fields("worth"), optional=True),
    *rates_over_launches("alone", "alone"),
    BASELINE,
    *rates_over_launches("together", "sliced"),
    *rates_over_launches("no slices", "unsliced", optional=True),
    *kept_columns("no slices / alone", kept_fields("unsliced_kept"), optional=True),
    Column("note", left=True, seen="files"),
)


@lru_cache(maxsize=1)
def interference_lines(summary: Summary) -> pl.DataFrame:
    """Return a row per job and user with the three ways side by side, for each job measured in two of them.

    The columns are INTERFERENCE_FIELDS (`jobs` is null), `difference`, `user`, and `notes`, a list.
    """
    rows = kept_table(summary).filter(
        pl.col("company") == COPIES, pl.col("job").is_not_null(), pl.col("isolation") != ""
    )
    measure = pl.col("measure")
    in_slices = (measure == KEPT) & (pl.col("isolation") != NO_SLICES)
    of_node = pl.col("notes").filter(measure == KEPT, pl.col("tenant").is_null()).list.len() > 0
    is_compared = pl.col("alone").is_not_null().any() | (measure == UNSLICED_KEPT).any() | of_node.any()
    has_alone = in_slices | (measure == UNSLICED_KEPT)

    def taken(chosen: pl.Expr, names: Sequence[str], fields: Sequence[str]) -> Iterator[pl.Expr]:
        yield from (pl.col(name).filter(chosen).first().alias(field) for name, field in zip(names, fields, strict=True))

    lines = rows.filter(is_compared.over(LINE), measure.is_in([*RATIOS, UNSLICED_ALONE]))
    found = lines.group_by(*LINE, "tenant", maintain_order=True).agg(
        pl.col("unit").filter(pl.col("unit") != "").first().fill_null(""),
        *taken(has_alone, (*ALONE, "baseline"), (*rate_fields("alone"), "baseline")),
        *taken(in_slices, (*TOGETHER, *VALUE), (*rate_fields("sliced"), *kept_fields("kept"))),
        *taken(
            measure == UNSLICED_KEPT, (*TOGETHER, *VALUE), (*rate_fields("unsliced"), *kept_fields("unsliced_kept"))
        ),
        *taken(measure == WORTH, VALUE, kept_fields("worth")),
        *taken(measure == UNSLICED_ALONE, ALONE, rate_fields("unsliced_alone")),
        *taken((measure == KEPT) & pl.col("tenant").is_null(), ["notes"], ["notes"]),
    )
    return found.with_columns(
        job=pl.when(pl.col("difference") != "").then(pl.format("{} ({})", "job", "difference")).otherwise("job"),
        user=pl.col("tenant").fill_null("all"),
        note=pl.col("notes").list.join("; ").fill_null(""),
        jobs=pl.lit(None, pl.Int64),
    )


def interference_view(summary: Summary) -> View:
    """Return a row per job and user, and the means of each suite on each host.

    Columns without slices are left out if no job ran so. The means are one row for people, three for programs.
    """
    lines = interference_lines(summary)
    groups, rows = list[RowGroup](), list[Row]()
    for (suite, host), of_suite in lines.group_by("suite", "host", maintain_order=True):
        means = _means(summary, of_suite)
        of_people = {"suite": suite, "host": host, "job": MEAN} | dict.fromkeys(_OF_RATIOS)
        of_people |= {name: value for mean in means for name, value in mean.items() if name in _OF_RATIOS}
        rows += [*of_suite.to_dicts(), *means]
        groups.append(RowGroup([*of_suite.to_dicts(), of_people], suite or "suite", host, [*_notes(of_suite)]))
    kinds = set(lines["baseline"])
    explanations = legend_of({LEGEND: True, OF_N: True, BLOCKS: "blocks" in kinds, QUICK: "quick" in kinds})
    notes = [*summary.notes, *apart(summary)]
    return View("interference", INTERFERENCE_FIELDS, rows, COLUMNS, groups, lines=explanations, notes=notes)


def _means(summary: Summary, lines: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the geometric means over the jobs of one suite on one host, a row each."""
    suite, host = lines.select("suite", "host").row(0)
    table = kept_table(summary).filter(
        pl.col("company") == COPIES, pl.col("job").is_null(), pl.col("suite") == suite, pl.col("host") == host
    )
    nodes = lines.filter(pl.col("tenant").is_null())
    return [
        {
            "suite": suite,
            "host": host,
            "job": MEAN,
            "jobs": len(nodes) - nodes[row["measure"]].null_count(),
            **dict(zip(kept_fields(row["measure"]), (row[name] for name in VALUE), strict=True)),
        }
        for row in table.iter_rows(named=True)
    ]


def _notes(lines: pl.DataFrame) -> Iterator[Words]:
    """Yield why numbers are absent, and rates alone without slices, which no ratio here uses."""
    for line in lines.iter_rows(named=True):
        if line["tenant"] is None:
            yield from (((f"{line['job']}: {note}", ""),) for note in line["notes"] or ())
        elif line["unsliced_alone"] is not None:
            rate, low, high, n = (line[name] for name in rate_fields("unsliced_alone"))
            span = numbers.span(None if low is None else (low, high))
            words = f"user {line['tenant']} alone on the whole machine, without a slice"
            yield ((f"{line['job']}: {words}: {numbers.rate(rate)} ({span}, n {n}); no ratio here is of that.", ""),)


def apart(summary: Summary) -> list[str]:
    """Return sentences on jobs that were measured with slices and without, but not in one suite on one host."""
    sentences = []
    shared = [job for job in summary.jobs if job.group != "all" and job.isolation and not job.mix]
    for name, jobs in grouped(shared, lambda job: job.name).items():
        inside, outside = ({_place(job) for job in jobs if sliced(job.isolation) == way} for way in (True, False))
        if inside and outside and not inside & outside:
            ran = f"in slices it ran as {', '.join(sorted(inside))}, without as {', '.join(sorted(outside))}"
            sentences.append(f"{name}: {ran}; those are never compared.")
    return sentences


def _place(job: JobSummary) -> str:
    return f"{job.suite or 'a suite'} on {job.host or 'an unnamed host'}"
