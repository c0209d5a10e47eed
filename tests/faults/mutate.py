"""Changes one operator or number at a time in rooms whose code only computes, and names the changes that no test sees.

python tests/faults/mutate.py [--sample N] [--seed N] [--tree DIR] [FILE ...]

A mutant is one changed operator, number or condition of a copy of the checkout (DeMillo, Lipton and Sayward, 1978). The
tests of its room run against it. A survivor is either equal to the original, or a test is missing. All mutants take a
night: `--sample` draws some of all files evenly.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plant import ROOT, copy_of, planted_text, run_tests

ROOMS = {
    "common/cotenant/stats": ["tests/stats", "tests/report/test_interference.py"],
    "common/cotenant/isolation/plan.py": [
        *("tests/isolation/test_plan.py", "tests/isolation/test_plan_laws.py", "tests/isolation/test_device_modes.py"),
    ],
    "common/cotenant/launch/design": [
        *("tests/launch/test_design.py", "tests/launch/test_turns.py", "tests/launch/test_conductor.py"),
        *("tests/launch/test_pairs.py", "tests/launch/test_duets.py", "tests/launch/test_capacity.py"),
    ],
    "common/cotenant/results": ["tests/results", "tests/report/test_mixes.py", "tests/report/test_summary.py"],
}
"""The files that are mutated, by their folder or path, with the tests that are to see it."""
OPERATORS: dict[type[ast.AST], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "/",
    ast.Mod: "*",
    ast.And: "or",
    ast.Or: "and",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """The text of a line from `begin` to `end`, in bytes, is replaced by `new`."""

    path: str
    line: int
    begin: int
    end: int
    new: str

    def of(self, text: str) -> str:
        """Return the text of the file with this change."""
        lines = text.encode().splitlines(keepends=True)
        line = lines[self.line - 1]
        lines[self.line - 1] = line[: self.begin] + self.new.encode() + line[self.end :]
        return b"".join(lines).decode()

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.begin + 1}: {self.new}"


def mutants_of(path: str, text: str) -> Iterator[Mutant]:
    """Yield the mutants of a file. Annotations, docstrings and texts are left alone."""
    lines = text.encode().splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            yield from _between(path, lines, sides, [OPERATORS[type(op)] for op in node.ops])
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            yield from _between(path, lines, [node.left, node.right], [OPERATORS[type(node.op)]])
        elif isinstance(node, ast.BoolOp):
            new = OPERATORS[type(node.op)]
            yield from _between(path, lines, node.values, [new] * (len(node.values) - 1))
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.end_col_offset is not None:
            yield Mutant(path, node.lineno, node.col_offset, node.end_col_offset, repr(node.value + 1))
        elif isinstance(node, ast.If | ast.IfExp) and node.test.lineno == node.test.end_lineno:
            test = node.test
            yield Mutant(path, test.lineno, test.col_offset, test.end_col_offset or 0, f"not ({ast.unparse(test)})")


def _between(path: str, lines: Sequence[bytes], sides: Sequence[ast.expr], news: Sequence[str]) -> Iterator[Mutant]:
    """Yield the mutants of operators between operands of one line."""
    for left, right, new in zip(sides, sides[1:], news, strict=False):
        begin, end = left.end_col_offset, right.col_offset
        if left.end_lineno != right.lineno or begin is None:
            continue
        between = lines[right.lineno - 1][begin:end]
        # Parentheses around an operand stay.
        opened, closed = len(between) - len(between.rstrip(b" (")), len(between) - len(between.lstrip(b" )"))
        if between.strip(b" ()"):
            yield Mutant(path, right.lineno, begin + closed, end - opened, new)


def files_of(tree: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the tests of each file that is to be mutated. Raises SystemExit for a file of no known room."""
    found = {}
    for place, tests in ROOMS.items():
        paths = sorted((tree / place).rglob("*.py")) if (tree / place).is_dir() else [tree / place]
        found |= {str(path.relative_to(tree)): tests for path in paths}
    if unknown := [name for name in names if name not in found]:
        sys.exit(f"{unknown[0]} is no file of {', '.join(ROOMS)}.")
    return {name: tests for name, tests in found.items() if not names or name in names}


def parts(tree: Path, path: Path, tests: Mapping[str, list[str]]) -> Iterator[list[str]]:
    """Yield the tests of a file's own name, which see most mutants, and then all that are to see it."""
    places = tests[str(path.relative_to(tree))]
    if own := [place for name in places if (place := f"{name}/test_{path.stem}.py") and (tree / place).exists()]:
        yield own
    yield places


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILE", help="these files only")
    parser.add_argument("--sample", type=int, metavar="N", help="so many mutants, drawn by chance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tree", type=Path, default=ROOT, help="another checkout")
    given = parser.parse_args()
    with copy_of(given.tree.resolve()) as tree:
        tests = files_of(tree, given.files)
        mutants = [mutant for path in tests for mutant in mutants_of(path, (tree / path).read_text())]
        if given.sample is not None:
            mutants = random.Random(given.seed).sample(mutants, min(given.sample, len(mutants)))
        survivors = []
        for at, mutant in enumerate(mutants, 1):
            path = tree / mutant.path
            with planted_text(path, mutant.of(path.read_text())):
                test = next(filter(None, (run_tests(tree, part, [])[0] for part in parts(tree, path, tests))), "")
            print(f"{at}/{len(mutants)} {mutant}  {test or 'SURVIVED'}", flush=True)
            if not test:
                survivors.append(mutant)
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants are killed.")
    for mutant in survivors:
        print(f"SURVIVED {mutant}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
