"""scripts/picture.py: its errors where it cannot draw, and its limit on the size of pictures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from patience import HANG_S

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/picture.py"


def run(*words: object, path: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(SCRIPT), *map(str, words)]
    return subprocess.run(line, env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=HANG_S)


def browser(folder: Path, *lines: str) -> str:
    """Write a program under a browser's name, and return a PATH that begins with its folder."""
    program = folder / "chromium"
    program.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    program.chmod(0o755)
    return f"{folder}:/bin:/usr/bin"


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    ended = run("page.html", tmp_path / "x.png", path=str(tmp_path))
    assert (ended.returncode, "apt-get install chromium" in ended.stderr) == (2, True)
    ended = run(tmp_path / "none.html", tmp_path / "x.png", path=browser(tmp_path, "exit 0"))
    assert (ended.returncode, "there is no page" in ended.stderr) == (2, True)


@pytest.mark.parametrize("kilobytes", [1, 200])
def test_too_large_a_picture_is_refused(tmp_path: Path, kilobytes: int) -> None:
    """A stand-in for the browser copies a picture that was made before."""
    side = 40 if kilobytes == 1 else 700
    noise = np.random.default_rng(1).integers(0, 255, (side, side, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    (tmp_path / "page.html").write_text("<p>")
    copy = f'for word; do case $word in --screenshot=*) cp "{tmp_path}/noise.png" "${{word#*=}}";; esac; done'
    ended = run(tmp_path / "page.html", tmp_path / "made.png", "--mark", "20,20", path=browser(tmp_path, copy))
    assert ended.returncode == (0 if kilobytes == 1 else 2)
    assert ("bytes" in ended.stdout) == (kilobytes == 1)
    assert ("a smaller --height" in ended.stderr) == (kilobytes == 200)
    with Image.open(tmp_path / "made.png") as made:
        red, green, blue = made.convert("RGB").getpixel((20, 4))
    assert red > 2 * max(green, blue), "the disc of the mark, in a palette of noise"
