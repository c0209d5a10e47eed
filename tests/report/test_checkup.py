"""The answers of `doctor` on a terminal and off it."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings import Answer, Check
from cotenant.report.checkup import checkup_view
from report.making import printed

SWAP = Finding("swap", "warning", "There are 2 GiB of swap that users may use.", "swapoff -a")
ODD = Finding("device_in_use", "error", "Other processes use it: \x1b[2Jevil\nname.", "End them.")
ANSWERS = [
    (Check("memory", "free memory", lambda facts: None), Answer("63 of 64 GiB")),
    (Check("memory", "swap", lambda facts: None), Answer("2 GiB", (SWAP,))),
    (Check("devices", "foreign processes", lambda facts: None), Answer("[red]1[/red] foreign", (ODD,))),
]
GRIDS = [checkup_view(ANSWERS)]


def test_every_check_has_a_line_and_every_finding_too() -> None:
    assert printed(GRIDS, on_terminal=False).splitlines() == [
        "memory",
        "  ok       free memory        63 of 64 GiB",
        "  warning  swap               2 GiB",
        "           There are 2 GiB of swap that users may use. swapoff -a",
        "devices",
        "  error    foreign processes  [red]1[/red] foreign",
        "           Other processes use it: evil name. End them.",
        "3 checks: 1 ok, 1 warning, 1 error",
    ]


def test_lines_are_folded_with_their_indent_on_a_terminal_only() -> None:
    assert max(map(len, printed(GRIDS, 40, on_terminal=False).splitlines())) > 40
    folded = printed(GRIDS, 40).splitlines()
    assert max(len(line.rstrip()) for line in folded) <= 40
    at = next(i for i, line in enumerate(folded) if "There are" in line)
    assert folded[at + 1].startswith(" " * 11)
    assert "\x1b[2J" not in printed(GRIDS)
