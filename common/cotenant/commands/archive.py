"""`archive`: packs all files of the runs in a directory into one that others can verify."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cotenant.checkout import output_directory, version
from cotenant.commands.flags import Parser, given_path
from cotenant.commands.output import tell, warn
from cotenant.errors import EXIT_PASSED
from cotenant.proof.archive import make_archive
from cotenant.text import listed, many


def main(argv: Sequence[str]) -> int:
    """Write the archive. Returns 0; raises CotenantError if there are no files, or the archive cannot be written."""
    given = parser().parse_words(argv)
    manifest, left_out = make_archive(given.directory or output_directory(), given.out, version())
    if left_out:
        why = "as no launch in the journal wrote them"
        warn(f"Not archived, {why}: {listed(left_out)}. If a suite still runs, archive again after its end.")
    tell(f"{given.out}: {many(len(manifest.members), 'file')}, journal {manifest.journal_head[:16]}.")
    return EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `archive`."""
    parser = Parser("archive", "Put the records, logs and journal of a directory into one file: tar and zstandard.")
    where = "a directory of records (default: the workspace's output)"
    parser.add_argument("directory", metavar="DIR", type=given_path, nargs="?", help=where)
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, required=True, help="the archive, FILE.tar.zst")
    return parser
