"""`help findings [NAME]` and `help records [NAME]`: the findings, and the fields of records, with their meanings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from cotenant.commands.output import tell
from cotenant.errors import EXIT_PASSED, CotenantError, did_you_mean

TOPICS = ("findings", "records")
ABOUT_FINDINGS = """\
Findings say whether a number is valid. Each stands in its record, in `report` and on its page; … stands for what a
launch fills in.
error: there is no number. A completed launch with one is INVALID: it has no rate, and no reader averages it.
warning: the number is suspect. A warning of a known effect stays one only above 2 % and half the number's interval.
info: good to know; a run prints it with --verbose."""

EQUAL = " Rates are compared only if it is equal."


def main(argv: Sequence[str]) -> int:
    """Print a topic, or the entry of one name in it. Returns 0; raises CotenantError for a name that it lacks."""
    topic, *names = argv
    if len(names) > 1:
        raise CotenantError(f"help {topic} takes one name.", f"It has {len(names)}.")
    name = names[0] if names else ""
    tell("\n".join(_findings(name) if topic == "findings" else _records(name)))
    return EXIT_PASSED


def _findings(name: str) -> Iterator[str]:
    from cotenant.findings.listing import entries

    found = entries(name)
    if not found:
        raise CotenantError(f"There is no finding '{name}'.", did_you_mean(name, {entry.rule for entry in entries()}))
    if not name:
        yield ABOUT_FINDINGS
    for entry in found:
        yield f"\n{entry.rule} ({' or '.join(entry.severities)})"
        yield from _folded(entry.sentence)
        yield from _folded(entry.remedy)


def _records(name: str) -> Iterator[str]:
    from cotenant.results.columns import COLUMNS, equal_columns
    from cotenant.results.schema import TYPES, meanings

    sections = {struct.__name__: meanings(struct) for struct in TYPES}
    equal = {column.name for column in equal_columns().values()}
    sections["columns of exported rows"] = {
        column.name: f"{column.meaning.rstrip('.')}.{EQUAL if column.name in equal else ''}" for column in COLUMNS
    }
    names = {field for fields in sections.values() for field in fields}
    if name and name not in names:
        raise CotenantError(f"No record has a field '{name}'.", did_you_mean(name, names))
    for title, fields in sections.items():
        chosen = {field: meaning for field, meaning in fields.items() if name in ("", field)}
        if chosen:
            yield f"\n{title}"
        for field, meaning in chosen.items():
            yield from _folded(f"{field}: {meaning}")


def _folded(text: str) -> list[str]:
    return textwrap.wrap(text, 110, initial_indent="    ", subsequent_indent="      ")
