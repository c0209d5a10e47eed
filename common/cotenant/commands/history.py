"""`cotenant history`: launches kept over months, and where their rates moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from cotenant.checkout import base_directory
from cotenant.commands.flags import Parser, chosen_names
from cotenant.commands.output import tell, tell_grid, warn
from cotenant.errors import EXIT_PASSED, CotenantError, did_you_mean
from cotenant.report.history import history_grid, series_of
from cotenant.results.decoded import Skipped, skipped_sentences
from cotenant.results.history import History, HistoryEntry, add_to_history, entries_of, read_history
from cotenant.results.read import records_in
from cotenant.results.table import Table, joined, tables
from cotenant.stats.comparison import LEAST_MARGIN

FILE = "history.jsonl"
NAMED = 5


def main(argv: Sequence[str]) -> int:
    """Add to a history, or show it. Returns 0; raises CotenantError for wrong input."""
    deeds: dict[str, Callable[[Sequence[str]], int]] = {"add": _add, "show": _show}
    if not argv or argv[0] in ("-h", "--help"):
        tell("usage: cotenant history add DIR... | show [flags]      (each has --help)")
        return EXIT_PASSED
    if argv[0] not in deeds:
        hint = did_you_mean(argv[0], deeds) or "It is `history add DIR...` or `history show`."
        raise CotenantError(f"A history has no '{argv[0]}'.", hint)
    return deeds[argv[0]](argv[1:])


def _add(argv: Sequence[str]) -> int:
    parser = _parser("add", "Append the launches of these records that the history does not hold yet.")
    parser.add_argument("places", metavar="DIR", type=Path, nargs="+", help="where records are; searched recursively")
    given = parser.parse_words(argv)
    found = list(tables(records_in(given.places)))
    entries, unkept = entries_of(joined([part for part in found if isinstance(part, Table)]))
    skipped = [part for part in found if isinstance(part, Skipped)]
    for line in (*skipped_sentences(skipped), *(f"{sentence} Not added." for sentence in unkept)):
        warn(line)
    if not entries and not unkept:
        places = ", ".join(map(str, given.places))
        raise CotenantError(f"There is no record in {places}.", "Name a directory that a suite wrote its records to.")
    added, history = add_to_history(given.store, entries)
    _warn_of_damage(given.store, history)
    known = len(entries) - added
    tell(f"{added} launches added to {given.store}, {known} were there; {len(history.entries) + added} in all.")
    return EXIT_PASSED


def _show(argv: Sequence[str]) -> int:
    parser = _parser(
        "show", "Per job, host and device: level, trend, and where the rate changed, with what changed then."
    )
    add = parser.add_argument
    add("--job", metavar="NAME", action="append", default=[], help="only these jobs: a name, a glob; may be repeated")
    add("--device", metavar="NAME", action="append", default=[], help="only these devices: a name, a glob")
    add("--margin", type=float, default=LEAST_MARGIN, metavar="SHARE", help="a change is more than this (default 0.02)")
    add("--format", choices=("text", "md", "csv", "json"), default="text", help="how to say it (default text)")
    given = parser.parse_words(argv)
    if not 0 < given.margin < 1:
        raise CotenantError(f"A margin of {given.margin:g} makes no sense.", "--margin 0.02 is two percent.")
    history = read_history(given.store)
    _warn_of_damage(given.store, history)
    entries = _chosen(history.entries, given.job, lambda one: one.job, "job")
    entries = _chosen(entries, given.device, lambda one: one.device, "device")
    found = series_of(entries, given.margin)
    if not found and given.format == "text":
        tell("The history is empty.")
    tell_grid(history_grid(found), given.format)
    return EXIT_PASSED


def _parser(deed: str, description: str) -> Parser:
    parser = Parser(prog=f"cotenant history {deed}", allow_abbrev=False, description=description)
    parser.add_argument(
        "--store",
        type=Path,
        metavar="FILE",
        default=base_directory() / FILE,
        help=f"the history's file (default $BASE/{FILE})",
    )
    return parser


def _chosen(
    entries: list[HistoryEntry], patterns: Sequence[str], of: Callable[[HistoryEntry], str], what: str
) -> list[HistoryEntry]:
    """Return the entries that any pattern matches. Raises CotenantError for a pattern that matches none."""
    names = list(dict.fromkeys(map(of, entries)))
    chosen = chosen_names(names, patterns, f"The history has no {what} '{{}}'.")
    return [one for one in entries if of(one) in chosen] if patterns else entries


def _warn_of_damage(path: Path, history: History) -> None:
    for line in history.damaged[:NAMED]:
        warn(str(line))
    if len(history.damaged) > NAMED:
        warn(f"{path}: {len(history.damaged) - NAMED} more of its lines are damaged; skipped.")
