"""Lists every sentence that the package prints, for editors: its place, its kind, and its text.

    python scripts/sentences.py [--kind error|finding|help|view] [WORDS ...]

The sources are read, and nothing is imported. Braces hold the expression that a sentence's value comes from.
With WORDS only sentences that hold them all.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "common" / "cotenant"
FINDINGS = {"Finding", "info", "warning", "error", "severity", "note"}
HELPS = {"add_argument", "add", "add_parser", "Parser", "suite_parser", "add_argument_group", "add_rare_group"}
LEAST_WORDS = 3
KINDS = ("error", "finding", "help", "view")


class Sentence(NamedTuple):
    """A text that is printed: `kind` says by which call, `view` is every other."""

    path: Path
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {self.kind}  {self.text}"


def sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of one file, in the order of their lines."""
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    found = _texts(ast.parse(path.read_text(encoding="utf-8")), "view")
    yield from (Sentence(shown, line, kind, text) for line, kind, text in sorted(found) if is_sentence(text))


def is_sentence(text: str) -> bool:
    """Whether a text has words between spaces, and is no code."""
    said = re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", text))
    words = re.findall(r"(?<![\w.])[A-Za-z][a-z]+(?=[\s.,:;?!)]|$)", said)
    return len(words) >= LEAST_WORDS and " " in text.strip()


def _texts(node: ast.AST, kind: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind and text of the literals below a node, but not of docstrings."""
    if isinstance(node, ast.Call):
        kind = _kind_of(node.func) or kind
    if isinstance(node, (ast.Constant, ast.JoinedStr)) and (text := _text(node)):
        yield node.lineno, kind, text
    elif not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        for part in ast.iter_child_nodes(node):
            yield from _texts(part, kind)


def _kind_of(called: ast.expr) -> str:
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    if name.endswith("Error") or name in ("usage_error", "error_of"):
        return "error"
    return "finding" if name in FINDINGS else "help" if name in HELPS else ""


def _text(node: ast.expr) -> str:
    """Return a literal as it is printed, on one line; "" for one that is no text."""
    match node:
        case ast.Constant(str(text)):
            return " ".join(text.split())
        case ast.JoinedStr(parts):
            return " ".join("".join(_part(part) for part in parts).split())
    return ""


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return f"{{{ast.unparse(part.value)}}}"
    return str(part.value) if isinstance(part, ast.Constant) else ""


def main(argv: Sequence[str] | None = None) -> None:
    """Print the sentences."""
    parser = argparse.ArgumentParser(description="List every sentence that the package prints.")
    parser.add_argument("--kind", choices=KINDS, help="only sentences of this kind")
    parser.add_argument("words", nargs="*", metavar="WORDS", help="only sentences that hold all of these")
    given = parser.parse_args(argv)
    for path in sorted(PACKAGE.rglob("*.py")):
        for sentence in sentences(path):
            if given.kind in (None, sentence.kind) and all(word in sentence.text for word in given.words):
                print(sentence)


if __name__ == "__main__":
    main()
