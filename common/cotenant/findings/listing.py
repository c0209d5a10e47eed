"""Lists every finding that the package can make, read from the calls in its own source: `help findings`."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
SEVERITIES = ("info", "warning", "error")
UNKNOWN = "…"
OF_ERRORS = {
    "no_plan": "No slices can be planned as asked: …",
    "not_isolated": "Isolation is required, and cannot be had: …",
    "job_not_startable": "A chosen job cannot be started here: …",
}
"""Sentences for findings that quote an error, which has many texts."""
_MADE = re.compile(rf"\b(Finding|note|severity|{'|'.join(SEVERITIES)})\(")
"""The beginning of each call that makes a finding; a file without one is not parsed."""


@dataclass(frozen=True, slots=True)
class ListedFinding:
    """One place in the source where a finding is made."""

    rule: str
    severities: tuple[str, ...]
    sentence: str
    remedy: str


def entries(name: str = "") -> list[ListedFinding]:
    """Return the findings of this name, or all of them, sorted by name."""
    return [entry for entry in _all() if name in ("", entry.rule)]


@functools.cache
def _all() -> list[ListedFinding]:
    sources = [path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))]
    made = {entry for source in sources if _MADE.search(source) for entry in made_in(source)}
    return sorted(made, key=lambda entry: (entry.rule, entry.sentence))


def made_in(source: str) -> Iterator[ListedFinding]:
    """Yield an entry for each call of `Finding`, of a run's `note`, or of a severity of finding.py, in a module's
    functions."""
    module = ast.parse(source)
    for function in (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)):
        # The summary of a rule stands in for a sentence that another function makes.
        summary = (ast.get_docstring(function) or "").partition("\n")[0]
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            if (entry := _entry(function, call, summary)) is not None:
                yield entry


def _entry(function: ast.FunctionDef, call: ast.Call, summary: str) -> ListedFinding | None:
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
    return ListedFinding(
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
