"""What a child says of torch, and that nothing it may do reaches the runner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotenant.findings.facts import SelfTest
from cotenant.launch.needs import SELF_TEST, self_test

WHOLE = {
    "vision": "0.29.2",
    "torch": "2.14.1+cu130",
    "built_for": "cu130",
    "vision_error": "",
    "lapack_error": "",
    "devices": ["", "its product is wrong"],
}


def program(folder: Path, text: str) -> Path:
    path = folder / "program.py"
    path.write_text(text)
    return path


def test_a_report_behind_what_packages_print(tmp_path: Path) -> None:
    path = program(tmp_path, f"print('hello')\nprint({json.dumps(WHOLE)!r})")
    assert self_test(path) == SelfTest(**WHOLE | {"devices": ("", "its product is wrong")})


@pytest.mark.parametrize(
    ("text", "died"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "ended (killed by SIGILL)"),
        ("raise SystemExit('no libc')", "ended (exit status 1): no libc"),
        ("import time; time.sleep(60)", "did not end within 0.5 s"),
        ("", "printed no report"),
        ("print('[1]')", "printed no report"),
        ("print('{\"devices\": 3}')", "printed no report"),
    ],
)
def test_a_child_that_does_not_come_so_far(tmp_path: Path, text: str, died: str) -> None:
    assert self_test(program(tmp_path, text), limit_s=0.5 if "sleep" in text else 30) == SelfTest(died=died)


def test_modules_beside_the_program_are_not_taken_for_packages(tmp_path: Path) -> None:
    """The real one stands among files named `device.py` and `loader.py`, which may shadow no package."""
    (tmp_path / "beside.py").write_text("")
    text = "import importlib.util, json\nprint(json.dumps({'torch': str(importlib.util.find_spec('beside'))}))"
    assert self_test(program(tmp_path, text)) == SelfTest(torch="None")
    assert SELF_TEST.is_file()
