"""Tables on a terminal that may be too narrow for them: it folds their lines, and no number is cut."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

_WIDEST = 100_000


def natural_width(table: Table) -> int:
    """Return the columns of a terminal in which nothing of a table wraps that may stand in one line."""
    return Console(width=_WIDEST).measure(table).maximum


def print_whole(table: Table, console: Console) -> None:
    """Print a table; where it needs more columns than the terminal has, the terminal folds its lines."""
    needed = natural_width(table)
    wide = console if needed <= console.width else Console(file=console.file, width=needed)
    wide.print(table, highlight=False)


def padded(text: str, columns: int, right: bool = False) -> str:
    """Return text as wide as so many columns of a terminal, in which some characters take two."""
    space = " " * (columns - cell_len(text))
    return space + text if right else text + space
