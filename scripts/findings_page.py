"""Makes docs/findings.md from the source, so that no finding is missing there:

python scripts/findings_page.py > docs/findings.md
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "common/cotenant"
SEVERITIES = ("info", "warning", "error")
UNKNOWN = "…"
OF_ERRORS = {
    "no_plan": "No slices can be planned as asked: …",
    "not_isolated": "Isolation is required, and cannot be had: …",
    "job_not_startable": "A chosen job cannot be started here: …",
}
"""Findings whose sentence is the text of an error, which has many."""

BY_TENANT = """Seen where it trains, outside of the clock, and stated by the benchmark in its record: the words are that
program's, whichever it is. So each is named `benchmark:…`, its sentence begins with *The benchmark says*, its remedy
with *Its advice*; no control characters are left in them. A record keeps the first 50."""

SECTIONS = (
    ("Of one record", "Asked of every record when its launch has ended.", ("findings/rules", "results", "launch")),
    (
        "Of several records",
        "Asked of the tenants of a launch, and of it beside earlier ones.",
        ("findings/rules/launches.py",),
    ),
    ("By the tenant itself", BY_TENANT, ("bench",)),
    ("Before a suite", "Asked by `cotenant doctor`, and cheap ones at every suite's start.", ("findings/checks",)),
    (
        "Of plans and isolation",
        "Slices that cannot be made as asked, and isolation that cannot be had here.",
        ("isolation", "commands"),
    ),
)

HEAD = """# Findings

Findings say whether a number is valid. Every finding has a severity, a sentence and a remedy; all stand in the
record, in `./run.sh report` and on its page.

- **error**: the number is none. A completed launch with one is INVALID: it has no rate, no reader averages it, and
  `--strict` makes the suite's exit status 1.
- **warning**: look before quoting it. The number is `suspect`; `--strict=suspect` makes the exit status 1.
  Where a warning knows how much it can have moved the number at the most (`effect`), it is one only beyond both 2 % and
  half the number's interval; else it stands in the record as info.
- **info**: good to know. On the terminal only with `--verbose`.

This page is made from the source (`python scripts/findings_page.py`); … stands for what a launch fills in.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One place in the source where a finding is made."""

    rule: str
    severities: tuple[str, ...]
    sentence: str
    remedy: str


def entries(room: str) -> list[Entry]:
    """Return every finding that a file or a directory of the package makes, sorted by rule, then by file.

    Files that have their own section are left out of their directory.
    """
    place = PACKAGE / room
    own = {PACKAGE / other for _, _, rooms in SECTIONS for other in rooms}
    files = [place] if place.is_file() else sorted(set(place.rglob("*.py")) - own)
    made = [entry for path in files for entry in made_in(path.read_text())]
    return sorted(dict.fromkeys(made), key=lambda entry: entry.rule)


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for title, about, rooms in SECTIONS:
        label = "benchmark:" if about is BY_TENANT else ""
        lines = [
            f"| `{label}{entry.rule}` | {' or '.join(entry.severities)} | {_cell(entry.sentence)} "
            f"| {_cell(entry.remedy)} |"
            for room in rooms
            for entry in entries(room)
        ]
        head = ["| finding | severity | says | remedy |", "|---|---|---|---|"]
        parts.append("\n".join([f"## {title}", "", about, "", *head, *lines, ""]))
    return "\n".join(parts)


def made_in(source: str) -> Iterator[Entry]:
    """Yield an entry for each call of `Finding`, of a run's `note`, or of a severity of findings/__init__.py, in a
    module's functions."""
    module = ast.parse(source)
    for function in (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)):
        # The summary of a rule stands for a sentence that another function makes.
        summary = (ast.get_docstring(function) or "").partition("\n")[0]
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            if (entry := _entry(function, call, summary)) is not None:
                yield entry


def _entry(function: ast.FunctionDef, call: ast.Call, summary: str) -> Entry | None:
    noted = isinstance(call.func, ast.Attribute) and call.func.attr == "note"
    if (noted or _is(call.func, "Finding")) and len(call.args) > 2:
        rules, severity, *texts = _texts(function, call.args[0]), *call.args[1:]
    elif any(_is(call.func, name) for name in (*SEVERITIES, "severity")):
        named = [text for keyword in call.keywords for text in _texts(function, keyword.value)]
        rules, severity, texts = named or [function.name] * bool(function.decorator_list), call.func, call.args
    else:
        return None
    if not rules:
        return None
    severities = {text for text in _texts(function, severity) if text in SEVERITIES}
    sentences = _texts(function, texts[0])
    # A remedy that another function makes is shown as UNKNOWN.
    remedies = [""] if len(texts) == 1 else _texts(function, texts[1]) or [UNKNOWN]
    return Entry(
        rules[0],
        tuple(severity for severity in SEVERITIES[::-1] if severity in severities),
        " ".join(sentences) or OF_ERRORS.get(rules[0], summary),
        " ".join(text for text in remedies if text),
    )


def _texts(function: ast.FunctionDef, node: ast.expr) -> list[str]:
    """Return the literal texts that `node` can be; for a name, the texts that the function assigns to it."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(part.value) if isinstance(part, ast.Constant) else UNKNOWN for part in node.values)]
    if isinstance(node, ast.IfExp):
        return [*_texts(function, node.body), *_texts(function, node.orelse)]
    if isinstance(node, ast.Name):
        if node.id in SEVERITIES:
            return [node.id]
        assignments = [part for part in ast.walk(function) if isinstance(part, (ast.Assign, ast.AnnAssign))]
        named = [part.value for part in assignments if any(_is(target, node.id) for target in _targets(part))]
        return [text for value in named if value is not None for text in _texts(function, value)]
    return []


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
