"""The interference table as text, Markdown, CSV and JSON. What is absent is a dash, empty or null, never 0."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from cotenant.report.interference import Block, Line, Mean
from cotenant.report.numbers import ABSENT, interval, rate
from cotenant.report.whole import padded
from cotenant.stats.interference import Ratio
from cotenant.stats.launches import AcrossLaunches
from cotenant.text import printable

NAMED = ("job", "tenant")
SPAN = ("95 % interval", "n")
SLICED = ("alone", *SPAN, "together", *SPAN, "/ alone", *SPAN)
UNSLICED = ("no slices", *SPAN, "/ alone", *SPAN, "worth", *SPAN)
NUMBER = 1 + len(SPAN)
"""Columns of one number, which stay together."""
MEAN = "geometric mean"
LEGEND = (
    "alone: a tenant alone in its slice; together: all at once, each in its slice; no slices: all at once with "
    "--isolation none, over the same alone. worth: together in slices over together without. 1 - (/ alone) is what "
    "neighbours cost. n: launches, of ratios in pairs of one uid; of 3 and more the 95 % t interval of the logarithms."
)
_RATIOS = ("kept", "unsliced_kept", "worth")
_RATES = ("alone", "sliced", "unsliced", "unsliced_alone")
_COLUMNS = (
    *("suite", "host", "job", "tenant", "unit"),
    *(f"{name}{part}" for name in _RATES for part in ("", "_low", "_high", "_launches")),
    *(f"{name}{part}" for name in _RATIOS for part in ("", "_low", "_high", "_over", "_under", "_paired")),
    *("jobs", "note"),
)


def text_lines(blocks: Sequence[Block], width: int) -> Iterator[Text]:
    """Yield a table per block, or several below each other where `width` has no room for one; notes below them."""
    for block in blocks:
        yield Text.assemble((printable(block.suite) or "suite", "bold"), f"  {printable(block.host)}")
        header, rows = grid(block)
        for part in _parts([header, *rows], width):
            # Rates have no mean over jobs.
            shown = [row for row in rows if any(row[at] for at in part[len(NAMED) :])]
            yield from _table([header[at] for at in part], [[row[at] for at in part] for row in shown])
        yield from map(Text, notes_of(block))
        yield Text("")
    yield Text(LEGEND, "dim")


def as_markdown(blocks: Sequence[Block]) -> str:
    """Return a table of all blocks, with what is not said by numbers as its last column."""
    rows = []
    any_unsliced = any(map(_unsliced, blocks))
    for block in blocks:
        header, cells = grid(block, any_unsliced)
        notes = ["; ".join(line.notes) for line in block.lines]
        of_block = zip(cells, [*notes, *[""] * (len(cells) - len(notes))], strict=True)
        rows += [(block.suite, block.host, *row, note) for row, note in of_block]
    names = ("suite", "host", *header, "note")
    left = ("suite", "host", "job", "note")
    lines = [names, tuple("---" if name in left else "---:" for name in names), *rows]
    return (
        "\n".join("| " + " | ".join(printable(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
        + "\n"
    )


def as_csv(blocks: Sequence[Block]) -> str:
    """Return a row per job and per tenant of it, and the means of each block; numbers have all digits."""
    table = io.StringIO()
    writer = csv.DictWriter(table, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for block in blocks:
        named = {"suite": printable(block.suite), "host": printable(block.host)}
        writer.writerows(named | _flat(line) for line in block.lines)
        for name in _RATIOS:
            mean: Mean = getattr(block, name)
            if mean.ratio is not None:
                writer.writerow(named | {"job": MEAN, "jobs": mean.jobs} | _numbers(name, mean.ratio))
    return table.getvalue()


def as_json(blocks: Sequence[Block], notes: Sequence[str]) -> str:
    """Return everything the table says, with what was left out."""
    content = {"schema": "cotenant-interference-1", "blocks": [asdict(one) for one in blocks], "notes": list(notes)}
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def share(value: float) -> str:
    """Return a ratio: three digits behind the point, of large and small ones three in all."""
    return f"{value:.3f}" if 0.0995 <= value < 9.9995 else f"{value:.3g}"


def ratio_cells(found: Ratio | None) -> tuple[str, str, str]:
    """Return a ratio, its interval, and its launches as text."""
    if found is None:
        return (ABSENT, ABSENT, ABSENT)
    return (share(found.ratio), _interval(found), launches_cell(found))


def launches_cell(found: Ratio) -> str:
    """Return how many pairs of launches a ratio is of; of each side where they are no pairs."""
    return str(found.n[0]) if found.paired else f"{found.n[0]}, {found.n[1]}"


def rate_cells(found: AcrossLaunches | None) -> tuple[str, str, str]:
    """Return a rate, its interval, and its launches as text."""
    if found is None:
        return (ABSENT, ABSENT, ABSENT)
    return (rate(found.rate), interval(*found.interval) if found.interval else "n too small", str(found.n))


def _interval(found: Ratio) -> str:
    if found.interval is None:
        return "n too small"
    return f"{share(found.interval[0])}-{share(found.interval[1])}"


def grid(block: Block, unsliced: bool | None = None) -> tuple[list[str], list[list[str]]]:
    """Return header and rows as text, the means last; without the columns of what nobody ran without slices."""
    whole = _unsliced(block) if unsliced is None else unsliced
    header = [*NAMED, *SLICED, *(UNSLICED if whole else ())]
    rows = []
    for line in block.lines:
        row = [printable(line.job), "all"] if line.tenant is None else ["", printable(line.tenant)]
        row += [*rate_cells(line.alone), *rate_cells(line.sliced), *ratio_cells(line.kept)]
        rows.append([*row, *rate_cells(line.unsliced), *ratio_cells(line.unsliced_kept), *ratio_cells(line.worth)])
    means = [cell for one in (block.kept, block.unsliced_kept, block.worth) for cell in _mean_cells(one, block.jobs)]
    rows.append([MEAN, "", *[""] * 2 * NUMBER, *means[:NUMBER], *[""] * NUMBER, *means[NUMBER:]])
    return header, [row[: len(header)] for row in rows]


def _mean_cells(mean: Mean, jobs: int) -> tuple[str, str, str]:
    worth, span, _ = ratio_cells(mean.ratio)
    return (worth, span, f"{mean.jobs}/{jobs} jobs")


def _unsliced(block: Block) -> bool:
    return any(line.unsliced is not None or any("without" in note for note in line.notes) for line in block.lines)


def notes_of(block: Block) -> Iterator[str]:
    """Say why numbers are absent, and what --solo measured with --isolation none: no ratio here is of that."""
    for line in block.lines:
        yield from (f"{printable(line.job)}: {printable(note)}" for note in line.notes)
        if line.unsliced_alone is not None and line.tenant is not None:
            told = f"tenant {printable(line.tenant)} alone on the whole machine, without a slice"
            found, span, n = rate_cells(line.unsliced_alone)
            yield f"{printable(line.job)}: {told}: {found} ({span}, n {n}); no ratio here is of that."


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Text]:
    widths = [max(map(cell_len, column)) for column in zip(header, *rows, strict=True)]
    for index, row in enumerate((header, *rows)):
        first, *rest = zip(row, widths, strict=True)
        cells = [padded(*first), *(padded(cell, width, right=True) for cell, width in rest)]
        yield Text("  ".join(cells).rstrip(), "bold" if index == 0 else "")


def _parts(rows: Sequence[Sequence[str]], width: int) -> list[list[int]]:
    """Return which columns stand in each of as few tables as fit; the tables begin with the same two."""
    named, total = len(NAMED), len(rows[0])
    for ends in ([named, total], [named, named + len(SLICED), total]):
        parts = [[*range(named), *range(start, end)] for start, end in pairwise(ends)]
        if all(_width(rows, part) <= width for part in parts):
            return parts
    parts = []
    for start in range(named, total, NUMBER):
        number = [*range(start, start + NUMBER)]
        if parts and _width(rows, [*parts[-1], *number]) <= width:
            parts[-1] += number
        else:
            parts.append([*range(named), *number])
    return parts


def _width(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> int:
    return sum(max(cell_len(row[at]) for row in rows) for at in columns) + 2 * (len(columns) - 1)


def _flat(line: Line) -> dict[str, Any]:
    found: dict[str, Any] = {"job": printable(line.job), "tenant": printable(line.tenant or "")}
    found |= {"unit": printable(line.unit), "note": printable("; ".join(line.notes))}
    for name in _RATES:
        found |= _rates(name, getattr(line, name))
    for name in _RATIOS:
        found |= _numbers(name, getattr(line, name))
    return found


def _rates(name: str, found: AcrossLaunches | None) -> dict[str, Any]:
    if found is None:
        return {}
    low, high = found.interval or (None, None)
    return {name: found.rate, f"{name}_low": low, f"{name}_high": high, f"{name}_launches": found.n}


def _numbers(name: str, found: Ratio | None) -> dict[str, Any]:
    if found is None:
        return {}
    low, high = found.interval or (None, None)
    counts = {f"{name}_over": found.n[0], f"{name}_under": found.n[1], f"{name}_paired": int(found.paired)}
    return {name: found.ratio, f"{name}_low": low, f"{name}_high": high} | counts
