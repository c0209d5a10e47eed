"""A fleet as grids: the verdicts, nodes by jobs, facts that only a few nodes have, groups side by side."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from cotenant.fleet.inventory import Minority
from cotenant.fleet.judgement import AGAIN, ORDER, SOUND, Grounds, Judged, JudgedClass, NodeJudgement, coverage
from cotenant.report.grid import Cell, Column, Grid, Row, RowGroup, Value, row, text_column
from cotenant.report.numbers import change
from cotenant.results.launches import grouped
from cotenant.stats.acceptance import NodeVerdict
from cotenant.stats.confirmation import ROUNDS
from cotenant.stats.fleet import Flags, Logs
from cotenant.text import joined, listed, many

STYLES = (
    dict.fromkeys(ORDER, "bold red")
    | dict.fromkeys((*AGAIN, NodeVerdict.UNSTABLE), "yellow")
    | dict.fromkeys(SOUND, "green")
)
FEW_NODES = 24
"""Most nodes that are all shown; with more, the accepted ones are only counted."""
MOST_ROWS, MOST_NOTES = 60, 12
FIELDS = (
    "node", "host", "verdict", "what", "ratio", "ratio_low", "ratio_high", "confirmed", "repeats", "reason", "record",
    "hardware", "launches", "shared",
)  # fmt: skip

ACCEPTED = Grounds(NodeVerdict.ACCEPT, "")


class NodeLine(NamedTuple):
    """A node and one reason against it, or ACCEPTED without any."""

    of: NodeJudgement
    reason: Grounds


def verdict_grid(judged: Judged, odd: Sequence[Minority] = ()) -> Grid:
    """Return a row for each reason against a node, and for each accepted node if these are few."""
    lines = [NodeLine(each, reason) for each in judged.nodes for reason in (each.reasons or (ACCEPTED,))]
    few = len(judged.nodes) <= FEW_NODES
    rows = [row(COLUMNS, line) if few or line.reason is not ACCEPTED else Row(values=_values(line)) for line in lines]
    return Grid(
        COLUMNS,
        [RowGroup(rows)],
        headline(judged),
        notes=[((sentence, ""),) for sentence in (*coverage(judged), *advice(judged), *commands(judged))],
        fields=FIELDS,
        document={
            "schema": "cotenant-fleet-report-1",
            "accepted": judged.accepted,
            "nodes": [each.record for each in rows],
            "inventory": [
                {"fact": each.fact, "usual": each.usual, "value": each.value, "nodes": list(each.nodes)} for each in odd
            ],
            "coverage": coverage(judged),
            "commands": commands(judged),
        },
    )


def headline(judged: Judged) -> str:
    """Return `3 nodes: NOT ACCEPTED (2 ACCEPT, 1 SLOW)`."""
    counts = Counter(each.verdict for each in judged.nodes)
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ORDER if counts[verdict])
    return f"{many(len(judged.nodes), 'node')}: {'ACCEPTED' if judged.accepted else 'NOT ACCEPTED'} ({parts})"


def advice(judged: Judged) -> Iterator[str]:
    """Yield sentences on nodes whose rates are shared, on those that should run again, and on what is left out."""
    if shared := sorted({each.node.host for each in judged.nodes if each.node.shared}):
        yield f"shared: several nodes are of one host ({listed(shared)}); their rates are of neighbours."
    if suspects := judged.suspects:
        yield (
            f"SUSPECT, UNTESTED: {listed(suspects)} should run again, {ROUNDS} times, each time beside three other "
            "nodes; `cotenant fleet run` does, and further repetitions (--uid) of the suite are such runs."
        )
    left_out = judged.gathered.notes
    yield from left_out[:MOST_NOTES]
    if len(left_out) > MOST_NOTES:
        yield f"and {len(left_out) - MOST_NOTES} more of what is left out"


def commands(judged: Judged) -> list[str]:
    """Return commands for an administrator to judge and paste; none of them is run here."""
    lines = []
    for each in judged.nodes:
        if each.verdict not in (*SOUND, *AGAIN):
            node, worst = shlex.quote(each.node.name), each.reasons[0]
            reason = shlex.quote(joined(" ", "cotenant:", worst.verdict, worst.what, _size(worst)))
            lines += [
                f"scontrol update nodename={node} state=drain reason={reason}",
                f"kubectl taint nodes {node} cotenant={each.verdict.lower()}:NoSchedule",
            ]
    return lines


def _size(reason: Grounds) -> str:
    return "" if reason.ratio is None else f"{change(reason.ratio)} %"


def _values(line: NodeLine) -> dict[str, Value]:
    of, reason = line
    node, (low, high) = of.node, reason.interval or (None, None)
    grounds: tuple[Value, ...] = (
        reason.what, reason.ratio, low, high, reason.rounds, reason.runs, reason.sentence, reason.record
    )  # fmt: skip
    if reason is ACCEPTED:
        grounds = (None,) * len(grounds)
    facts = (node.hardware, of.launches, str(node.shared).lower())
    return dict(zip(FIELDS, (node.name, node.host, str(reason.verdict), *grounds, *facts), strict=True))


def _reason(line: NodeLine) -> Cell:
    sentence, record = line.reason.sentence, line.reason.record
    return Cell(sentence, note=record) if sentence else Cell(record)


def _confirmed(line: NodeLine) -> Cell:
    reason = line.reason
    return Cell(f"{reason.rounds} of {reason.runs}" if reason.runs else "")


COLUMNS: Sequence[Column[NodeLine]] = (
    text_column("node", lambda line: line.of.node.name),
    Column("verdict", lambda line: Cell(line.reason.verdict, _values(line), STYLES[line.reason.verdict]), left=True),
    text_column("affected", lambda line: line.reason.what, optional=True),
    Column("rate", lambda line: Cell(_size(line.reason)), optional=True),
    Column("95 % interval", lambda line: Cell(" .. ".join(map(change, line.reason.interval or ()))), optional=True),
    Column("confirmed", _confirmed, optional=True),
    Column("launches", lambda line: Cell(str(line.of.launches))),
    text_column("shared", lambda line: "shared" if line.of.node.shared else "", optional=True),
    Column("reason, and a record that shows it", _reason, left=True, optional=True, words=True),
)


def matrix_grid(of: JudgedClass, judged: Judged) -> Grid:
    """Return nodes by jobs of one class, each rate in % of its job's median.

    Of many nodes these are the ones that are not ACCEPT or have an outlier.
    """
    members, low = of.members, of.screening.cells.low
    ranks = {each.node.name: ORDER.index(each.verdict) for each in judged.nodes}
    worst = [ranks[node.name] for node in members.nodes]
    shown = list(range(len(worst)))
    if len(worst) > FEW_NODES:
        marked = [n for n in shown if worst[n] < len(ORDER) - 1 or low[n].any()]
        shown = sorted(marked, key=worst.__getitem__)[:MOST_ROWS]
    columns: list[Column[int]] = [text_column("node", lambda n: members.nodes[n].name)]
    columns += [
        Column(f"{job} ({judged.gathered.resources[r]})" if r >= 0 else job, partial(_cell, ratios, outliers))
        for job, r, ratios, outliers in zip(members.jobs, members.resources, of.ratios.T, low.T, strict=True)
    ]
    facts = f"{many(len(worst), 'node')}; each rate in % of its job's median over them"
    if any(node.shared for node in members.nodes):
        facts += ", shared: of neighbours on one host"
    if len(shown) < len(worst):
        facts += f"; {len(shown)} not ACCEPT or with an outlier are shown"
    return Grid(columns, [RowGroup([row(columns, n) for n in shown], members.nodes[0].hardware, facts)])


def _cell(ratios: Logs, low: Flags, node: int) -> Cell:
    ratio = float(ratios[node])
    if not np.isfinite(ratio):
        return Cell()
    heat = round(min(100.0, max(0.0, (1 - ratio) / 0.15 * 100)))
    mark = "outlier" if low[node] else ""
    return Cell(f"{100 * ratio:.1f}", style="bold red" if mark else "", note=mark, heat=heat)


def cells(judged: Judged) -> pl.DataFrame:
    """Return a row for each node, job and repetition that has a rate; the screening gives `ratio` and `outlier`."""
    parts = []
    for of in judged.classes:
        members = of.members
        logs = np.concatenate([members.screening[None], members.rounds])
        at, node, job = np.nonzero(np.isfinite(logs))
        frame, rows, later = judged.gathered.frame, members.at[at, node, job], pl.Series(at > 0)
        parts.append(
            pl.DataFrame(
                {
                    "node": np.array([each.name for each in members.nodes])[node],
                    "host": np.array([each.host for each in members.nodes])[node],
                    "hardware": members.nodes[0].hardware,
                    "job": np.array(members.jobs)[job],
                    "resource": np.array([*judged.gathered.resources, ""])[members.resources[job]],
                    "repetition": frame["run_id"].gather(rows),
                    "rate_items_s": np.exp(logs[at, node, job]),
                    "ratio": pl.Series(of.ratios[node, job]).set(later, None),
                    "outlier": pl.Series(of.screening.cells.low[node, job]).set(later, None),
                    "path": frame["path"].gather(rows),
                }
            )
        )
    return pl.concat(parts) if parts else pl.DataFrame()


def inventory_grid(odd: Sequence[Minority]) -> Grid:
    """Return a row per fact and value that only a few nodes of a class have."""
    columns: list[Column[Minority]] = [
        text_column("fact", lambda each: each.fact),
        Column("most have", lambda each: Cell(each.usual, note=f"({each.usual_nodes})"), left=True),
        Column("others", lambda each: Cell(each.value, note=f"({len(each.nodes)})", style="yellow"), left=True),
        text_column("nodes", lambda each: listed(each.nodes, 8), words=True),
    ]
    groups = grouped(odd, lambda each: each.hardware)
    title = "Inventory: what differs between equal nodes" if odd else ""
    return Grid(
        columns, [RowGroup([row(columns, each) for each in of], hardware) for hardware, of in groups.items()], title
    )
