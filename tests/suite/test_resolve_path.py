"""`--jobs NAME`: a path, then a profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.suite.jobfile import resolve_path


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout that is not the working directory."""
    (tmp_path / "profiles").mkdir()
    for name in ("cpu.json", "lambda.json", "notes.txt"):
        (tmp_path / "profiles" / name).write_text("[]")
    return tmp_path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty directory the working one."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def test_a_profile_with_or_without_its_suffix_and_a_path_before_it(checkout, elsewhere):
    for name in ("cpu", "cpu.json"):
        assert resolve_path(name, [checkout]) == checkout / "profiles" / "cpu.json"
    (elsewhere / "cpu.json").write_text("[]")
    assert resolve_path("cpu.json", [checkout]) == Path("cpu.json")
    assert resolve_path("cpu", [checkout]) == checkout / "profiles" / "cpu.json"
    assert resolve_path(str(checkout / "profiles" / "lambda.json"), []).name == "lambda.json"


def test_a_directory_does_not_hide_a_profile(checkout, elsewhere):
    (elsewhere / "cpu").mkdir()
    assert resolve_path("cpu", [checkout]) == checkout / "profiles" / "cpu.json"


def test_the_first_base_wins(checkout, tmp_path):
    other = tmp_path / "other"
    (other / "profiles").mkdir(parents=True)
    (other / "profiles" / "cpu.json").write_text("[]")
    assert resolve_path("cpu", [other, checkout]) == other / "profiles" / "cpu.json"
    assert resolve_path("lambda", [other, checkout]) == checkout / "profiles" / "lambda.json"


def test_neither_a_file_nor_a_profile(checkout, elsewhere):
    for text, message in [
        ("cpus", "--jobs: 'cpus' is neither a file nor a profile. Did you mean 'cpu'? The profiles are cpu,"),
        ("profiles/lamda.json", "Did you mean 'lambda'?"),
        ("zzz", "a profile. The profiles are cpu, lambda."),
        ("", "'' is neither a file nor a profile."),
        ("../profiles/cpu", "Did you mean 'cpu'?"),
        ("..", "'..' is a directory."),
        ("x" * 300, "is neither a file nor a profile."),
        ("a\0b", "'a\\x00b' is neither a file nor a profile."),
    ]:
        with pytest.raises(CotenantError) as caught:
            resolve_path(text, [checkout])
        assert message in str(caught.value)
    with pytest.raises(CotenantError, match=r"'cpu' is neither .* There are no profiles\.$"):
        resolve_path("cpu", [elsewhere])


def test_what_may_not_be_looked_at_is_left_to_the_reader(checkout, monkeypatch):
    def deny(self: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "exists", deny)
    assert resolve_path("private/jobs.json", [checkout]) == Path("private/jobs.json")
