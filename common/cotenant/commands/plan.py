"""`cotenant plan`: shows this machine and each user's part of it, as a picture or as JSON. It starts nothing."""

from __future__ import annotations

from collections.abc import Sequence

from cotenant.api.planning import plan
from cotenant.commands.flags import Parser, add_format, add_slice_flags
from cotenant.commands.given import SliceFlags
from cotenant.commands.output import tell_document
from cotenant.errors import EXIT_PASSED


def main(argv: Sequence[str]) -> int:
    """Show the plan. Returns 0; raises CotenantError if slices cannot be planned or isolated as asked."""
    given = parser().parse_words(argv)
    flags = SliceFlags.of(given)
    made = plan(
        flags.users,
        slices=flags.slices,
        share=flags.share,
        isolation=flags.isolation,
        policy=flags.plan,
        mems=flags.mems,
        reserve_bytes=flags.reserve,
        cgroup_base=flags.cgroup_base,
    )
    if given.format == "json":
        tell_document(made.document)
        return EXIT_PASSED
    from cotenant.report.plan_picture import print_plan

    print_plan(made.document)
    return EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `plan`."""
    parser = Parser("plan", "Show this machine and the slice of each user. Nothing is made, nothing is started.")
    add_slice_flags(parser)
    add_format(parser)
    return parser
