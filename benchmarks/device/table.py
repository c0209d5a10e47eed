"""The page of a run, in Markdown: the machine, a line for each part, and each part's tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from device.book import BEGIN, CHECKS, VERDICT, Book
from device.plan import EVERY, PARTS

ROWS_SHOWN = 80
"""Of one table; results.jsonl has them all."""


def page_name(machine: dict[str, Any]) -> str:
    """Return the page's file name, the device and the day: `nvidia-h100-80gb-hbm3-2026-11-23.md`."""
    return f"{re.sub(r'[^a-z0-9]+', '-', str(machine['device']).lower()).strip('-')}-{machine['date']}.md"


def page(machine: dict[str, Any], book: Book) -> str:
    """Return the whole page as it stands now."""
    verdicts = {name: book.verdict(name) for name in EVERY}
    lines = [
        f"# {machine['device']}, {machine['date']}",
        "",
        *_about(machine),
        "",
        "| part | | s | what |",
        "|---|---|---|---|",
    ]
    for name, row in verdicts.items():
        if row is not None:
            lines.append(markdown_row([name, row["word"], f"{row['seconds']:.0f}", row["sentence"]]))
        elif name in PARTS:
            state = "was not finished" if book.rows(name) else "did not run"
            lines.append(markdown_row([name, "", "", f"{state} ({EVERY[name].shows})"]))
    sources = sorted({row["source"] for row in verdicts.values() if row is not None})
    lines += ["", f"Source: {', '.join(sources) or 'no part has ended'}."]
    for name in EVERY:
        tables: dict[str, list[dict[str, Any]]] = {}
        for row in book.rows(name):
            if row["table"] not in (BEGIN, VERDICT):
                tables.setdefault(row["table"], []).append(row)
        if tables:
            lines += ["", f"## {name}: {EVERY[name].shows}"]
        for table, rows in sorted(tables.items(), key=lambda each: each[0] != CHECKS):
            lines += ["", f"### {table}", "", *markdown(rows)]
    return "\n".join(lines) + "\n"


def _about(machine: dict[str, Any]) -> list[str]:
    known = {
        "torch": machine["torch"],
        "Python": machine["python"],
        "devices": machine.get("devices", 0),
        "compute capability": machine.get("capability"),
        "processors of the host": machine.get("host_processors"),
        "size": "quick: in small, no numbers to keep" if machine.get("quick") else "full",
        "packages missing": ", ".join(machine["missing"]),
        "packages carried along": ", ".join(machine.get("carried", ())),
        "torch's error": machine.get("device_error"),
    }
    return [f"- {name}: {value}" for name, value in known.items() if value not in (None, "")]


def markdown(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return rows as a table whose columns are all their fields, in the order in which they appear."""
    columns = list(dict.fromkeys(name for row in rows for name in row if name not in ("part", "table")))
    shown = [markdown_row([row.get(name) for name in columns]) for row in rows[:ROWS_SHOWN]]
    more = [f"\n{len(rows) - ROWS_SHOWN} more in results.jsonl."] if len(rows) > ROWS_SHOWN else []
    return [markdown_row([name.replace("_", " ") for name in columns]), "|---" * len(columns) + "|", *shown, *more]


def markdown_row(values: Sequence[Any]) -> str:
    return "| " + " | ".join(cell(value) for value in values) + " |"


def cell(value: Any) -> str:
    """Return a value as a table shows it: four digits of a number, nothing for none, no bars or line ends."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    if isinstance(value, (list, tuple)):
        return ", ".join(cell(each) for each in value)
    return " ".join(str(value).replace("|", "\\|").split())
