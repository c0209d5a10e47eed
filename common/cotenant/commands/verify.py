"""`verify`: checks an archive from another person."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cotenant.commands.flags import Parser
from cotenant.commands.output import tell
from cotenant.errors import EXIT_FAILED, EXIT_PASSED
from cotenant.proof.archive import unpacked
from cotenant.proof.verify import checks_of
from cotenant.text import printable

SHOWN = 20


def main(argv: Sequence[str]) -> int:
    """Print every check. Returns 0 if all hold, else 1; raises CotenantError for a file that is no archive."""
    checks = checks_of(*unpacked(parser().parse_words(argv).archive))
    for check in checks:
        more = len(check.wrong) - SHOWN
        sentences = [*check.wrong[:SHOWN], f"and {more} more" if more > 0 else "", check.note]
        tell(f"{check.name:10} {'NO' if check.wrong else 'yes':3}  {check.looked_at}")
        for sentence in filter(None, sentences):
            tell(f"{'':16}{printable(sentence)}")
    refused = [check.name for check in checks if check.wrong]
    tell(f"REFUSED: {', '.join(refused)}." if refused else "All checks passed.")
    return EXIT_FAILED if refused else EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `verify`."""
    parser = Parser("verify", "Check an archive: hashes, journal, and every number from raw observations.")
    parser.add_argument("archive", metavar="FILE", type=Path, help="what `archive` has written")
    return parser
