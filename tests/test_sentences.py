"""scripts/sentences.py: every printed sentence in one list, and what holds for all of them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = '''"""A docstring is not printed at all."""
def check(path, left):
    """Neither is this one here."""
    if left:
        raise CotenantError(f"{path} has {many(left, 'file')} too many.", "Remove some of them.")
    name = "a_word"
    add("--all", help="all of them at once")
    return warning("Too little was " "seen of it.", rule="seen"), f"{left} of them are left"
'''


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sentences", ROOT / "scripts/sentences.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def listed(script: ModuleType) -> list[str]:
    return [str(one) for path in sorted(script.PACKAGE.rglob("*.py")) for one in script.sentences(path)]


def test_sentences_stand_there_with_their_kind_and_values(script: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "checked.py"
    path.write_text(SOURCE)
    assert [(one.line, one.kind, one.text) for one in script.sentences(path)] == [
        (5, "error", "Remove some of them."),
        (5, "error", "{path} has {many(left, 'file')} too many."),
        (7, "help", "all of them at once"),
        (8, "finding", "Too little was seen of it."),
        (8, "view", "{left} of them are left"),
    ]


OF_KINDS = {
    "error": "--uid {given.uid} is negative.",
    "finding": "Compare launches of equal seeds.",
    "help": "only these jobs: names, globs, comma lists",
    "view": "No difference between users of a job was detected",
}


def test_the_list_can_be_searched(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "checked.py").write_text(SOURCE)
    monkeypatch.setattr(script, "PACKAGE", tmp_path)
    script.main(["--kind", "error", "--", "of", "them."])
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("checked.py:5  error  Remove some of them.")


def test_sentences_of_every_kind_are_in_the_list(listed: list[str]) -> None:
    for kind, text in OF_KINDS.items():
        assert any(f"  {kind}  " in line and text in line for line in listed), text


def test_sentences_avoid_who_and_form_plurals_in_one_place(listed: list[str]) -> None:
    assert len(listed) > 1500
    plain = [re.sub(r"\{[^}]*\}", "", line.partition("  ")[2]) for line in listed]
    assert [line for line in plain if re.search(r"\b[Ww]ho\b", line)] == []
    assert [line for line in plain if re.search(r"\w\((s|es)\)", line)] == []
    assert [line for line in listed if re.search(r"'e?s' if ", line)] == [], "text.many and text.noun know the plural"
