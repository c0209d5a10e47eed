"""Executes a notebook's cells in this process, and stores their outputs in the notebook:

    python scripts/notebook.py docs/notebook.ipynb [--without launches]

Cells with the tag of `--without` are skipped and keep their outputs. If a cell fails, nothing is written.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

Cell = dict[str, Any]


def execute(cells: Sequence[Cell], without: str = "") -> None:
    """Execute the code cells in order, each with the names of the cells before it, and set their outputs."""
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for cell in cells:
        if cell["cell_type"] != "code" or without in cell["metadata"].get("tags", ()):
            continue
        count += 1
        cell["execution_count"], cell["outputs"] = count, _outputs("".join(cell["source"]), names, count)


def _outputs(source: str, names: dict[str, Any], count: int) -> list[Cell]:
    """Execute one cell; return its printed text and the value of an expression at its end as outputs."""
    module, value, printed = ast.parse(source), None, io.StringIO()
    last = module.body.pop() if isinstance(module.body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(module, f"cell {count}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), names)
    outputs: list[Cell] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        outputs.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return outputs


def main(argv: Sequence[str]) -> int:
    """Execute a notebook and write it back. Returns 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--without", default="", metavar="TAG")
    given = parser.parse_args(argv)
    document = json.loads(given.notebook.read_text())
    execute(document["cells"], given.without)
    given.notebook.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
