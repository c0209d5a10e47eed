"""Views of tenants beside each other: a table of each mix, the matrix of pairs, and both in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from statistics import fmean

from cotenant.report import numbers
from cotenant.report.beside import MixBlock, PairMatrix, TenantBeside, pair_matrices
from cotenant.report.grid import (
    BLANK,
    Cell,
    Column,
    Grid,
    Row,
    RowGroup,
    Words,
    number,
    place_columns,
    row,
    text_column,
    word,
)
from cotenant.report.kept import (
    OF_ENERGY,
    OF_N,
    OF_STEPS,
    QUICK,
    QUICKLY,
    SINGLE,
    STEP_FIELDS,
    STEPS,
    baseline_cell,
    explained,
    kept_columns,
    kept_fields,
    kept_values,
    percents,
    rate_fields,
    rates_over_launches,
    shaded,
    shown,
)
from cotenant.report.summary import Summary
from cotenant.results.record import SUSPECT
from cotenant.stats.evenness import differences_by_intervals
from cotenant.stats.kept import joint

OF_MIXES = (
    "/ alone: a user's rate beside the others over its rate alone in its slice; slowdown: its inverse. STP: the sum "
    "of / alone, how many slices those of the mix are worth; ANTT: the mean slowdown; fairness: the least / alone over "
    "the greatest; tax: 1 - STP / slices."
)
MEASURES = ("stp", "antt", "worst_slowdown", "fairness", "tax")
MIX_FIELDS = (
    *("suite", "host", "mix", "isolation", "tenant", "job", "unit", *kept_fields("progress"), "share_kept", "slowdown"),
    *(*rate_fields("together")[:3], *rate_fields("alone")[:3], "baseline", "verdict"),
    *(*STEP_FIELDS, "measure", *kept_fields("value")),
)


def _share_kept(tenant: TenantBeside) -> Cell:
    """Return the kept share over the entitlement, the tenant's part of a shared device or of shared processors."""
    if tenant.progress is None:
        return Cell()
    share_kept = tenant.progress.value / tenant.entitlement
    return Cell(numbers.ratio(share_kept) if tenant.sharers > 1 else "", {"share_kept": share_kept})


MIX_PLACE: Sequence[Column[MixBlock]] = place_columns(lambda block: block, "suite", "host", "mix", "isolation")
OF_TENANT: Sequence[Column[TenantBeside]] = (
    Column("user", lambda tenant: word(tenant.tenant, "tenant")),
    text_column("job", lambda tenant: tenant.job, "job"),
    *kept_columns("/ alone", lambda tenant: tenant.progress, "progress"),
    Column("share kept", _share_kept, optional=True),
    Column("slowdown", lambda tenant: number(tenant.slowdown, numbers.ratio, "slowdown")),
    *rates_over_launches("together", lambda tenant: tenant.together, "together")[:1],
    *rates_over_launches("alone", lambda tenant: tenant.alone, "alone")[:1],
    Column("unit", lambda tenant: Cell(f"{tenant.unit or 'item'}/s", {"unit": tenant.unit}), left=True),
    *STEPS,
    Column("baseline", lambda tenant: baseline_cell(tenant.baseline if tenant.alone else ""), left=True, optional=True),
    text_column("verdict", lambda tenant: tenant.verdict, "verdict"),
)


def mix_grid(blocks: Sequence[MixBlock]) -> Grid:
    """Return a row per tenant of each mix, and its measures below, which are rows of their own for programs."""
    groups = [
        RowGroup([*_mix_rows(block)], f"{block.mix}: {len(block.tenants)} users", _facts(block), [*_mix_notes(block)])
        for block in blocks
    ]
    texts = {
        OF_MIXES: True,
        OF_N: True,
        QUICK: any(block.quick for block in blocks),
        OF_ENERGY: any(block.energy for block in blocks),
        OF_STEPS: any(tenant.steps for block in blocks for tenant in block.tenants),
    }
    document = {"schema": "cotenant-mix-1", "mixes": [asdict(block) for block in blocks]}
    return Grid((*MIX_PLACE, *OF_TENANT), groups, notes=explained(texts), fields=MIX_FIELDS, document=document)


def _facts(block: MixBlock) -> str:
    of_device = max((tenant.sharers for tenant in block.tenants), default=1)
    shared = f", {of_device} of them have the same device" if of_device > 1 else ""
    shared = f", {block.sharers} of them have the same processors" if block.sharers > 1 else shared
    return f"{block.suite} on {block.host}, isolation {block.isolation}{shared}"


def _mix_rows(block: MixBlock) -> Iterator[Row]:
    place = row(MIX_PLACE, block)
    for tenant in block.tenants:
        yield Row({**place.cells, **row(OF_TENANT, tenant).cells})
    if block.measures is not None:
        measures = {name: getattr(block.measures, name) for name in MEASURES} | {"energy": block.energy}
        for name, measure in measures.items():
            if measure is not None:
                yield Row(values={**place.record, "measure": name, **kept_values(measure, "value")})


def _mix_notes(block: MixBlock) -> Iterator[Words]:
    if (measures := block.measures) is not None:
        worst = next(tenant for tenant in block.tenants if tenant.tenant == measures.worst)
        parts = [
            f"STP {shown(measures.stp)} of {measures.slices:g} slices",
            f"ANTT {shown(measures.antt)}",
            f"worst slowdown {shown(measures.worst_slowdown)}, user {worst.tenant} ({worst.job})",
            f"fairness {shown(measures.fairness)}",
            f"tax {percents(measures.tax)}",
            *([f"energy {shown(block.energy)}"] if block.energy else []),
        ]
        yield (("; ".join(parts), "bold"),)
    yield from (((note, "yellow"),) for note in block.notes)


def mix_sentence(block: MixBlock) -> str:
    """Return the kept shares of a mix's users, and the user that keeps least; or why they are not known."""
    if block.measures is None:
        return f"what the users of {block.mix} keep beside each other is not known: {'; '.join(block.notes)}"
    measures, parts = block.measures, [*block.measures.progress.values()]
    least = next(tenant.job for tenant in block.tenants if tenant.tenant == measures.worst)
    differ = measures.differences or differences_by_intervals(parts)
    notable = differ is not None and differ.notable
    worst = f"; least: {least}, {percents(measures.progress[measures.worst])}" if notable else ""
    return (
        f"beside each other the {len(block.tenants)} users of {block.mix} keep {percents(joint(parts))} of what each "
        f"has alone{QUICKLY if block.quick else ''}{worst}{'; measured once' if measures.stp.n == 1 else ''}"
    )


# The matrix of pairs

SUM = "sum (noisy)"
OF_PAIRS = (
    "A row is a job, a column its neighbour: the rate beside it over the rate alone. The sum of a row is low for a "
    "sensitive job, that of a column for a noisy one; the less is kept the darker is a cell."
)
UNSURE, DOUBTED = "~", "?"
MARKS = {
    UNSURE: f"{UNSURE}: its interval holds 1, or it has none.",
    DOUBTED: f"{DOUBTED}: suspect, beside the other or alone: its findings tell why.",
}
PAIR_FIELDS = ("suite", "host", "isolation", "victim", "neighbour", *kept_fields("kept"), "doubts")
Line = tuple[PairMatrix, str]
PAIR_PLACE: Sequence[Column[Line]] = place_columns(lambda line: line[0], "suite", "host", "isolation")


def pairs_grid(summary: Summary) -> Grid:
    """Return a row per job and a column per neighbour; programs have a row for each direction of each pair."""
    matrices = pair_matrices(summary)
    jobs = list(dict.fromkeys(job for matrix in matrices for job in matrix.jobs))
    columns: list[Column[Line]] = [
        *PAIR_PLACE,
        text_column("job", lambda line: line[1]),
        *(Column(job, partial(_cell, job), optional=True) for job in jobs),
        Column("sum (sensitive)", _row_sum),
    ]
    groups = [
        RowGroup(
            [*(Row(row(columns, (matrix, victim)).cells, {}) for victim in (*matrix.jobs, SUM)), *_records(matrix)],
            f"pairs of {matrix.suite or 'suite'}",
            f"{matrix.host}, isolation {matrix.isolation}",
            _pair_notes(matrix),
        )
        for matrix in matrices
    ]
    records = [dict(row.record) for group in groups for row in group.rows if row.record]
    seen = "".join(cell.text for group in groups for line in group.rows for cell in line.cells.values())
    marks = {words: mark in seen for mark, words in MARKS.items()}
    notes = explained({OF_PAIRS: True, **marks, QUICK: any(matrix.quick for matrix in matrices)})
    document = {"schema": "cotenant-pairs-1", "pairs": records}
    return Grid(columns, groups, notes=notes, fields=PAIR_FIELDS, document=document)


def _cell(neighbour: str, line: Line) -> Cell:
    matrix, victim = line
    if victim == SUM:
        return _total(matrix.noise(neighbour))
    if (share := matrix.shares.get((victim, neighbour))) is None:
        return Cell()
    cell, unsure = shaded(share.kept), UNSURE if share.kept.is_unsure else ""
    return replace(cell, text=f"{unsure}{cell.text}{DOUBTED if share.doubts else ''}")


def _row_sum(line: Line) -> Cell:
    matrix, victim = line
    return BLANK if victim == SUM else _total(matrix.sensitivity(victim))


def _total(of: float | None) -> Cell:
    return Cell() if of is None else Cell(numbers.ratio(of), style="bold")


def _records(matrix: PairMatrix) -> Iterator[Row]:
    for (victim, neighbour), (kept, doubts) in matrix.shares.items():
        pair = {"victim": victim, "neighbour": neighbour, **kept_values(kept, "kept"), "doubts": ",".join(doubts)}
        yield Row(values={**row(PAIR_PLACE, (matrix, victim)).record, **pair})


def _pair_notes(matrix: PairMatrix) -> list[Words]:
    single = any(share.kept.n == 1 for share in matrix.shares.values())
    return [*([((SINGLE, "dim"),)] if single else []), *(((note, "yellow"),) for note in matrix.notes)]


def pairs_sentence(matrix: PairMatrix) -> str:
    """Return the mean of the kept shares, and the pair of the least one if noise does not explain it."""
    parts = [share.kept for share in matrix.shares.values()]
    differ, mean = differences_by_intervals(parts), 100 * fmean(part.value for part in parts)
    once = "; measured once" if any(part.n == 1 for part in parts) else ""
    worst = ""
    if differ is not None and differ.notable:
        (victim, neighbour), share = min(matrix.shares.items(), key=lambda pair: pair[1].kept.value)
        beside = "itself" if victim == neighbour else neighbour
        suspect = f" ({SUSPECT})" if share.doubts else ""
        worst = f"; the worst is {victim} beside {beside}, which keeps {percents(share.kept)}{suspect}"
    return (
        f"in pairs these {len(matrix.jobs)} jobs keep {mean:.0f} % of what each has "
        f"alone{QUICKLY if matrix.quick else ''}{worst}{once}"
    )
