"""A C compiler, and the headers of this Python: found where Triton finds them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.machine.compiler import compiler_lacks


@pytest.mark.parametrize(
    ("programs", "variables", "headers", "lacking"),
    [
        ((), {}, True, "C compiler"),
        (("gcc",), {}, False, "Python.h"),
        (("gcc",), {}, True, ""),
        (("clang",), {}, True, ""),
        (("gcc",), {"CC": "icx"}, True, "C compiler"),
        (("icx",), {"CC": "icx"}, True, ""),
    ],
)
def test_what_is_missing_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    programs: tuple[str, ...],
    variables: dict[str, str],
    headers: bool,
    lacking: str,
) -> None:
    for name in programs:
        (tmp_path / name).touch(0o755)
    if headers:
        (tmp_path / "Python.h").touch()
    monkeypatch.delenv("CC", raising=False)
    for name, value in {"PATH": str(tmp_path), **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    assert compiler_lacks() == lacking
