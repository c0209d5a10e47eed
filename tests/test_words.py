"""Words of the sources: docstrings begin with their subject or a verb, no two classes share a name, names are short."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "common" / "cotenant"
HOLDERS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.If)
OPENINGS = re.compile(r"\s*(What|Who|Whose|By|Of)\b")
COMMENT = re.compile(r"^(?:.*\s)?# (.+)$", re.M)
READ = re.compile(r"\btenants?\b (?!=)|(?<=[^\W_] )tenants?\b", re.IGNORECASE)
"""The word "tenant" within a longer text; "tenant" alone or before "=" is a name."""
MOST_WHATS = 0.003
"""Three in a thousand words of docstrings and comments: more of them hide the noun that a reader looks for."""

Definition = tuple[str, str]
"""A file and line, and the docstring or class name there."""


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield a body's statements, and those nested in its classes, functions and branches: docstrings are among them."""
    for statement in body:
        yield statement
        if isinstance(statement, HOLDERS):
            for part in (statement.body, *((statement.orelse,) if isinstance(statement, ast.If) else ())):
                yield from statements(part)


@pytest.fixture(scope="module")
def modules() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


@pytest.fixture(scope="module")
def found(modules: dict[Path, ast.Module]) -> tuple[list[Definition], list[Definition]]:
    """Return the docstrings, also those under constants and fields, and the classes at the top of modules."""
    docstrings, classes = [], []
    for path, module in modules.items():
        for statement in statements(module.body):
            match statement:
                case ast.Expr(ast.Constant(str(text))):
                    docstrings.append((f"{path}:{statement.lineno}", text))
                case ast.ClassDef(name) if statement in module.body:
                    classes.append((f"{path}:{statement.lineno}", name))
    return docstrings, classes


def test_a_docstring_begins_with_its_subject_or_a_verb(found: tuple[list[Definition], list[Definition]]) -> None:
    docstrings, _ = found
    assert len(docstrings) > 1000
    assert [(place, text) for place, text in docstrings if OPENINGS.match(text)] == []


def test_nouns_stand_where_what_could(found: tuple[list[Definition], list[Definition]]) -> None:
    comments = [text for path in PACKAGE.rglob("*.py") for text in COMMENT.findall(path.read_text())]
    words = [word.lower() for text in (*comments, *(text for _, text in found[0])) for word in re.findall(r"\w+", text)]
    assert len(comments) > 500
    assert words.count("what") / len(words) < MOST_WHATS


def test_a_class_name_is_defined_once(found: tuple[list[Definition], list[Definition]]) -> None:
    _, classes = found
    times = Counter(name for _, name in classes)
    assert times["Record"] == 1
    assert [(place, name) for place, name in classes if times[name] > 1] == []


def test_the_name_of_a_test_is_below_sixty_characters() -> None:
    names = [name for path in TESTS.rglob("*.py") for name in re.findall(r"def (test_\w+)", path.read_text())]
    assert len(names) > 1000
    assert [name for name in names if len(name) >= 60] == []


def test_people_read_users(modules: dict[Path, ast.Module]) -> None:
    """Texts for people say "user"; records and their columns say "tenant", as the code does."""
    of_records = {PACKAGE / "results" / name for name in ("columns.py", "openmetrics.py")}
    read = []
    for path in modules.keys() - of_records:
        nodes = list(ast.walk(modules[path]))
        explained = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        texts = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in explained]
        read += [(f"{path}:{node.lineno}", node.value) for node in texts if READ.search(str(node.value))]
    assert read == []
