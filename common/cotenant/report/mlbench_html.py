"""The original suite's report as one HTML file: offline, printable, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader

from cotenant.report.matrix import MatrixRow
from cotenant.report.mlbench import Failure, Result, Score
from cotenant.report.mlbench_text import RESULT_COLUMNS, number, result_cells, verdict
from cotenant.report.numbers import ABSENT


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that the page shows."""

    title: str
    subtitle: str
    results: Sequence[Result]
    failed: Sequence[Failure]
    total: int
    score: Score
    price: float | None
    devices: Sequence[str]
    matrix: Sequence[MatrixRow]
    skipped: Sequence[str]


def mlbench_html(page: Page) -> str:
    """Return the page. What comes from files stands in it as text: everything is escaped."""
    environment = Environment(
        loader=PackageLoader("cotenant.report"), autoescape=True, trim_blocks=True, keep_trailing_newline=True
    )
    return environment.get_template("mlbench.html.j2").render(
        title=page.title,
        subtitle=page.subtitle,
        cards=_cards(page.score, page.price),
        missing=page.score.missing,
        columns=RESULT_COLUMNS,
        results=[result_cells(line) for line in page.results],
        failed=page.failed,
        failures_pass=verdict(page.score.failures_pass),
        total=page.total,
        devices=page.devices,
        matrix=[(row.job, [_cell(row, device) for device in page.devices]) for row in page.matrix],
        skipped=page.skipped,
    )


def _cards(score: Score, price: float | None) -> list[tuple[str, str, str]]:
    cards = [
        ("Score", number(score.value), "BF (2 PM + ST + 5 PG)"),
        ("BF", str(int(score.failures_pass)), "failures pass"),
        ("PM", f"{score.pm:.3f}", "jobs at their target share"),
        ("ST", f"{score.st:.3f}", "jobs steady enough"),
        ("PG", number(score.pg), "geometric mean of mean / target"),
    ]
    if price is not None:
        cards.append(("RPP", number(score.price_per_score(price)), f"price {price:,.6g} / score"))
    return cards


def _cell(row: MatrixRow, device: str) -> tuple[str, str]:
    if device not in row.shares:
        return ABSENT, ""
    mean, low, high = row.shares[device]
    step = next(name for least, name in ((0.9, "c90"), (0.8, "c80"), (0.7, "c70"), (0.0, "c0")) if mean >= least)
    return f"{100 * mean:.1f} ({100 * low:.1f} .. {100 * high:.1f})", step
