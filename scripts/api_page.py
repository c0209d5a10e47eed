"""Makes docs/api.md from the docstrings of the names that `import cotenant` offers:

python scripts/api_page.py > docs/api.md
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

PACKAGE = Path(__file__).resolve().parents[1] / "common/cotenant"
NO_HEADING = ("| | |", "|---|---|")
SELF = re.compile(r"(?<=\()self(, )?")
TYPES = {
    "IsolationKind": "choices",
    "BaselineKind": "choices",
    "Policy": "isolation.plan",
    "Mems": "isolation.memory_shares",
    "TableName": "api.tables",
    "Trust": "api.result",
    "Over": "stats.kept",
    "Severity": "finding",
    "Tell": "api.records",
}
"""The named types, and the module of each."""

HEAD = """# From Python

```python
import cotenant

result = cotenant.run("cpu", name="vae", users=2)
print(result)  # the answer in a sentence
result.kept, result.verdict  # a share with its interval, and whether to trust it
result.table("interference").to_polars()
```

The functions are those that the commands call, so both say the same. `import cotenant` takes no time and needs no
torch: each name is imported when it is first used. All results are frozen and typed (`py.typed`); in a notebook they
show themselves, [as here](notebook.ipynb). Errors are `CotenantError`: one sentence that says what is wrong, and the
remedy. `pip install .` makes the package ([commands](commands.md)); in a checkout `common` stands on `PYTHONPATH`.

The examples with `>>>` are run by the tests, on records that they make in `output`, `A` and `B`. This page is made from
the docstrings (`python scripts/api_page.py`).
"""


def places() -> dict[str, str]:
    """Return the names that the package offers, in their order, and the module of each."""
    module = ast.parse((PACKAGE / "__init__.py").read_text())
    (found,) = (
        node.value for node in module.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_PLACES"
    )
    made: dict[str, str] = ast.literal_eval(found)
    return made


def page() -> str:
    """Return the page."""
    sections = (part for name, module in places().items() for part in _section(name, module))
    types = [f"| `{name}` | `{_cell(_meaning(name, module))}` |" for name, module in TYPES.items()]
    return "\n".join([HEAD, *sections, "## Types\n", *NO_HEADING, *types, ""])


def _source(module: str) -> str:
    return (PACKAGE / f"{module.replace('.', '/')}.py").read_text()


def _meaning(name: str, module: str) -> str:
    """Return the expression that a named type stands for."""
    assigned = (node for node in ast.parse(_source(module)).body if isinstance(node, ast.Assign))
    (value,) = (node.value for node in assigned if ast.unparse(node.targets[0]) == name)
    return ast.unparse(value).replace("'", '"')


def _section(name: str, module: str) -> Iterator[str]:
    """Yield the parts of a name's section: its signature, its docstring, and the members of a class."""
    source = _source(module)
    (node,) = (
        each
        for each in ast.parse(source).body
        if isinstance(each, (ast.FunctionDef, ast.ClassDef)) and each.name == name
    )
    yield f"## {name}\n"
    if isinstance(node, ast.FunctionDef):
        yield f"```python\ncotenant.{_signature(node, source)}\n```\n"
    yield _text(node)
    if isinstance(node, ast.ClassDef):
        members = [*_members(node, source)]
        if plain := [of for of, said in members if not said]:
            yield "\n".join(["```python", *plain, "```", ""])
        if rows := [f"| `{_cell(of)}` | {_cell(said)} |" for of, said in members if said]:
            yield "\n".join([*NO_HEADING, *rows, ""])


def _members(node: ast.ClassDef, source: str) -> Iterator[tuple[str, str]]:
    """Yield the public fields, properties and methods of a class, each with its own docstring."""
    for member, below in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(member, ast.Assign):
            yield ast.unparse(member).replace("'", '"'), ""
        elif isinstance(member, ast.AnnAssign):
            own = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            said = str(ast.literal_eval(below.value)) if own else ""
            yield f"{ast.unparse(member.target)}: {ast.unparse(member.annotation)}", said
        elif isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
            kinds = [ast.unparse(decorator) for decorator in member.decorator_list]
            is_value = any(kind.endswith("property") for kind in kinds)
            named = f"{member.name}: {ast.unparse(member.returns)}" if is_value else _signature(member, source)
            yield named, ast.get_docstring(member) or ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _signature(function: ast.FunctionDef, source: str) -> str:
    """Return a function's first lines as they stand in the source, without `def`, the colon and `self`."""
    lines = source.splitlines()[function.lineno - 1 : function.body[0].lineno - 1]
    return SELF.sub("", dedent("\n".join(lines)).removeprefix("def ").rstrip().removesuffix(":"), count=1)


def _text(node: ast.FunctionDef | ast.ClassDef) -> str:
    """Return a docstring as Markdown: an indented paragraph becomes a block of Python."""
    parts = []
    for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
        code = paragraph.startswith("    ")
        parts.append(f"```python\n{dedent(paragraph)}\n```" if code else paragraph)
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
