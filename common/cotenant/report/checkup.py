"""The answers of `doctor`, by group: every check with what it found, and below it what is to be done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from cotenant.findings import Answer, Check
from cotenant.report.reader import may_leave
from cotenant.report.terminal import STYLES
from cotenant.text import printable

FINE = "ok"

Answers = Sequence[tuple[Check, Answer]]


def print_checkup(answers: Answers, console: Console | None = None) -> None:
    """Print all answers, and how many are of which kind."""
    console = console or Console()
    with may_leave():
        for indent, line in checkup_lines(answers):
            # Off a terminal there is no width to fit: a line of a file is as long as what it says.
            if console.is_terminal:
                console.print(Padding(line, (0, 0, 0, indent), expand=False))
            else:
                console.print(Text(" " * indent).append_text(line), soft_wrap=True)


def checkup_lines(answers: Answers) -> Iterator[tuple[int, Text]]:
    """Yield indented lines: per group, check and finding, and one that counts. The answers come ordered by group."""
    width = max((len(check.name) for check, _ in answers), default=0)
    for group, members in groupby(answers, key=lambda pair: pair[0].group):
        yield 0, Text(group, "bold")
        for check, answer in members:
            word = answer.severity or FINE
            style = STYLES.get(word, "green")
            yield 2, Text.assemble((f"{word:7}", style), f"  {check.name:{width}}  {printable(answer.text)}")
            for finding in answer.findings:
                yield 11, Text(printable(f"{finding.sentence} {finding.remedy}".strip()), "dim")
    words = [answer.severity or FINE for _, answer in answers]
    counts = (f"{words.count(word)} {word}" for word in (FINE, "info", "warning", "error") if word in words)
    yield 0, Text(f"{len(words)} checks: {', '.join(counts)}")
