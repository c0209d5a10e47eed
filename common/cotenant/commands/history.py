"""`cotenant history`: keeps launches over months, and shows changes of their rates."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from cotenant.api.records import chosen_names, no_record
from cotenant.checkout import base_directory
from cotenant.choices import FORMS
from cotenant.commands.flags import Parser, add_format, add_job_names, add_places, place, share, subcommand
from cotenant.commands.output import tell, tell_grid, warn, write_page
from cotenant.commands.records import spooled
from cotenant.errors import EXIT_PASSED
from cotenant.report.history import history_grid, series_of
from cotenant.results.decoded import Skipped, skipped_sentences
from cotenant.results.history import History, add_to_history, entries_of, read_history
from cotenant.results.record_files import records_in
from cotenant.results.table import Table, joined, tables
from cotenant.stats.verdict import LEAST_MARGIN

FILE = "history.jsonl"
NAMED = 5


def main(argv: Sequence[str]) -> int:
    """Add to a history, or show it. Returns 0; raises CotenantError for wrong input."""
    command = subcommand("history", {"add": "[flags] [DIR ...]", "show": "[flags]"}, argv)
    if command is None:
        return EXIT_PASSED
    given = parsers()[command].parse_words(argv[1:])
    return _add(given) if command == "add" else _show(given)


def parsers() -> dict[str, Parser]:
    """Return the parsers of `history add` and `history show`."""
    add = _parser("add", "Append the launches of these records that the history does not hold yet.")
    add_places(add)
    show = _parser(
        "show", "Per job, host and device: level, trend, and where the rate changed, with what changed then."
    )
    add_job_names(show)
    devices = "only these devices: a name, a glob; may be repeated"
    show.add_argument("--device", metavar="NAME", action="append", default=[], help=devices)
    margin = "a change is more than this, as 2%% or 0.02 (default 0.02)"
    show.add_argument("--margin", type=share, default=LEAST_MARGIN, metavar="SHARE", help=margin)
    what = "write one page that works offline: each job's rates over time, with the changes of its level"
    show.add_argument("--html", type=place, metavar="FILE", help=what)
    add_format(show, FORMS)
    return {"add": add, "show": show}


def _add(given: argparse.Namespace) -> int:
    parts = list(tables(records_in(spooled(given.places))))
    entries, unkept = entries_of(joined([part for part in parts if isinstance(part, Table)]))
    skipped = [part for part in parts if isinstance(part, Skipped)]
    warn(*skipped_sentences(skipped), *(f"{sentence} Not added." for sentence in unkept))
    if not entries and not unkept:
        raise no_record(given.places)
    added, history = add_to_history(given.store, entries)
    _warn_of_damage(given.store, history)
    known = len(entries) - added
    tell(f"{added} launches added to {given.store}, {known} were there; {len(history.entries) + added} in all.")
    return EXIT_PASSED


def _show(given: argparse.Namespace) -> int:
    history = read_history(given.store)
    _warn_of_damage(given.store, history)
    entries = history.entries
    for name in ("job", "device"):
        names = dict.fromkeys(getattr(entry, name) for entry in entries)
        chosen = chosen_names(names, getattr(given, name), f"The history has no {name} '{{}}'.")
        entries = [entry for entry in entries if getattr(entry, name) in chosen]
    series = series_of(entries, given.margin)
    if not series and given.format == "text":
        tell("The history is empty.")
    if given.html is not None:
        from cotenant.report.view_pages import history_page  # matplotlib takes a second to import

        write_page(given.html, history_page(str(given.store), series))
    tell_grid(history_grid(series), given.format)
    return EXIT_PASSED


def _parser(deed: str, description: str) -> Parser:
    parser = Parser(f"history {deed}", description)
    default = base_directory() / FILE
    text = f"the history's file (default $BASE/{FILE})"
    parser.add_argument("--store", type=Path, metavar="FILE", default=default, help=text)
    return parser


def _warn_of_damage(path: Path, history: History) -> None:
    warn(*map(str, history.damaged[:NAMED]))
    if len(history.damaged) > NAMED:
        warn(f"{path}: {len(history.damaged) - NAMED} more of its lines are damaged; skipped.")
