"""`verify`: checks an archive from somebody else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from cotenant.commands.flags import Parser
from cotenant.commands.output import tell
from cotenant.errors import EXIT_FAILED, EXIT_PASSED
from cotenant.proof.archive import unpack
from cotenant.proof.check import ProofCheck
from cotenant.proof.signature import SUFFIX, wrong_signature
from cotenant.proof.verify import checks_of
from cotenant.suite.task_source import shipped_versions
from cotenant.text import printable

SHOWN = 20


def main(argv: Sequence[str]) -> int:
    """Print every check. Returns 0 if all hold, else 1; raises CotenantError for a file that is no archive."""
    given = parser().parse_words(argv)
    path: Path = given.archive
    checks = [*checks_of(unpack(path), set(shipped_versions().values())), _signature(path, given.key)]
    for check in checks:
        tell("\n".join(_lines(check)))
    refused = [check.name for check in checks if check.wrong]
    tell(f"REFUSED: {', '.join(refused)}." if refused else "All of it holds.")
    return EXIT_FAILED if refused else EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `verify`."""
    parser = Parser("verify", "Check an archive: hashes, journal, every number from raw observations, every rule.")
    parser.add_argument("archive", metavar="FILE", type=Path, help="what `archive` has written")
    parser.add_argument("--key", metavar="PEM", type=Path, help="the public key that has to have signed it")
    return parser


def _signature(archive: Path, key: Path | None) -> ProofCheck:
    if key is not None:
        wrong = wrong_signature(archive, key)
        return ProofCheck("signature", f"by {key}", (wrong,) if wrong else ())
    there = archive.with_name(archive.name + SUFFIX).exists()
    note = (
        "There is one; --key checks it."
        if there
        else "There is none: whoever changed it may have made all hashes anew."
    )
    return ProofCheck("signature", "not checked", note=note)


def _lines(check: ProofCheck) -> Iterator[str]:
    yield f"{check.name:10} {'NO ' if check.wrong else 'yes' if not check.note else '-  '}  {check.looked_at}"
    yield from (f"           {printable(sentence)}" for sentence in check.wrong[:SHOWN])
    if len(check.wrong) > SHOWN:
        yield f"           and {len(check.wrong) - SHOWN} more"
    if check.note:
        yield f"           {printable(check.note)}"
