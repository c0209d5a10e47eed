"""The original suite's report as text: its four sections, every absent number as a dash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from cotenant.report.matrix import MatrixRow, colour
from cotenant.report.mlbench import CLASSIC_QUANTILE, CLASSIC_SPREAD, Classic, ClassicTotal, Failure, Result, Score
from cotenant.report.numbers import ABSENT, percent
from cotenant.text import printable

DEVICE_WIDTH = len("  100.0 (100.0 .. 100.0)")
RESULT_COLUMNS = ("job", "n", "target", "perf_tgt", "sd%_tgt", "mean", "perf", "perf_pass", "sd%", "sd%_pass")


def result_cells(line: Result) -> tuple[str, ...]:
    """Return a job's line, in the order of RESULT_COLUMNS."""
    return (
        line.job,
        str(line.n),
        number(line.target.rate),
        f"{line.target.least_share:.2f}",
        percent(line.target.most_spread),
        number(line.mean),
        ABSENT if line.perf is None else f"{line.perf:.4f}",
        verdict(line.perf_pass),
        ABSENT if line.spread is None else percent(line.spread),
        verdict(line.spread_pass),
    )


def results_table(lines: Sequence[Result]) -> Table:
    table = _table("Results", RESULT_COLUMNS)
    for line in lines:
        table.add_row(*map(Text, result_cells(line)))
    return table


def classic_table(lines: Sequence[Classic]) -> Table:
    table = _table("Results", ("job", "target", "result", "sd", "sd%", "diff"))
    for line in lines:
        cells = (line.job, number(line.target), number(line.result), number(line.sd))
        table.add_row(*map(Text, (*cells, percent(line.spread), f"{line.share:.4f}")))
    return table


def classic_lines(total: ClassicTotal | None, short: Sequence[str]) -> Iterator[str]:
    """The older table's last lines. Performance is the mean of result / target - 1, a true percentage."""
    if short:
        yield f"Fewer than 4 repetitions, so no line: {', '.join(short)}"
    if total is None:
        return
    yield f"Bench Passes              : {total.passes}"
    limit = f"(below {100 * CLASSIC_SPREAD:.0f} %: {verdict(total.quantile < CLASSIC_SPREAD)})"
    yield f"Deviation Quantile ({100 * CLASSIC_QUANTILE:.0f}%)  : {100 * total.quantile:+.2f} % {limit}"
    yield f"Performance               : {100 * (total.performance - 1):+.2f} %"


def failure_lines(found: Sequence[Failure], total: int, passed: bool) -> Iterator[str]:
    share = f"{len(found)} of {total} records failed ({percent(len(found) / total if total else 1.0)})"
    yield f"{share}; at most 1 % may: {verdict(passed)}"
    for one in found:
        yield "  " + printable(f"{one.job} R{one.run_id} D{one.vcd}: {one.reason}")


def score_lines(found: Score, price: float | None) -> Iterator[str]:
    yield f"BF {int(found.failures_pass)}   PM {found.pm:.4f}   ST {found.st:.4f}   PG {number(found.pg)}"
    if found.missing:
        yield f"Score {ABSENT}: without {', '.join(found.missing)} it is none of the suite"
        if found.present_only is not None:
            yield f"Of the other jobs alone: {found.present_only:.4f}"
    else:
        yield f"Score = BF (2 PM + ST + 5 PG) = {number(found.value)}"
    if price is not None:
        yield f"RPP = price / score = {number(found.price_per_score(price))}"


def matrix_tables(devices: Sequence[str], rows: Sequence[MatrixRow], width: int) -> Iterator[Table]:
    """Yield the matrix in as many tables as it takes for each to be at most `width` wide, one device each at least."""
    job = max((len(printable(row.job)) for row in rows), default=0)
    each = max(1, (width - job) // DEVICE_WIDTH)
    for first in range(0, len(devices), each):
        yield _matrix_table(devices[first : first + each], rows)


def _matrix_table(devices: Sequence[str], rows: Sequence[MatrixRow]) -> Table:
    title = "Relative device performance: mean (min .. max), % of each job's best device"
    table = _table(title, ("job", *(printable(f"D{device}") for device in devices)))
    for row in rows:
        cells = []
        for device in devices:
            if device not in row.shares:
                cells.append(Text(ABSENT))
                continue
            mean, low, high = row.shares[device]
            cells.append(Text(f"{100 * mean:.1f} ({100 * low:.1f} .. {100 * high:.1f})", colour(mean)))
        table.add_row(Text(printable(row.job)), *cells)
    return table


def number(value: float | None) -> str:
    """Return six significant digits, or a dash."""
    return ABSENT if value is None else f"{value:,.6g}"


def verdict(passed: bool) -> str:
    return "yes" if passed else "NO"


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in columns:
        table.add_column(Text(name), justify="left" if name == "job" else "right", no_wrap=True)
    return table
