#!/usr/bin/env python3
"""Draws a report's page as a picture that is small enough for a checkout, such as docs/pictures/report.png.

    python scripts/picture.py page.html docs/pictures/report.png [--height 1500] [--dark] [--mark 1090,145 ...]

Needs Chromium or Chrome, which draws the page without a window and without a network.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MOST_BYTES = 150_000
COLOURS = 200
MARK, MARK_RADIUS = "#8b2a2a", 22


def browser_found() -> str | None:
    """Return the first browser on PATH that draws without a window."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def screenshot(browser: str, page: Path, into: Path, width: int, height: int, dark: bool) -> None:
    """Draw the upper part of the page, `width` by `height` CSS pixels. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as profile:
        # Run by root, Chromium demands --no-sandbox; the page is our own and has no script.
        line = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
        ]
        line += [f"--screenshot={into}", f"--window-size={width},{height}"]
        line += ["--blink-settings=preferredColorScheme=0"] if dark else []
        subprocess.run([*line, page.resolve().as_uri()], check=True, capture_output=True, timeout=120)


def numbered(path: Path, places: Sequence[tuple[int, int]]) -> None:
    """Draw a disc with its number, from 1 on, around each place (x, y) of the picture."""
    with Image.open(path) as picture:
        drawn = picture.convert("RGB")
    pen = ImageDraw.Draw(drawn)
    for number, place in enumerate(places, 1):
        pen.circle(place, MARK_RADIUS, fill=MARK)
        pen.text(place, str(number), fill="white", anchor="mm", font=ImageFont.load_default(MARK_RADIUS))
    drawn.save(path)


def point(text: str) -> tuple[int, int]:
    """Return x and y of `x,y`. Raises ValueError."""
    x, y = map(int, text.split(","))
    return x, y


def shrink(path: Path) -> int:
    """Reduce the picture to 200 colours, which hardly changes a page of few colours; return its size in bytes."""
    with Image.open(path) as picture:
        flat = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    flat.save(path, optimize=True)
    return path.stat().st_size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=1500)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--mark", type=point, action="append", default=[], metavar="X,Y", help="a numbered disc there")
    given = parser.parse_args()
    browser = browser_found()
    if browser is None:
        parser.error(f"there is none of {', '.join(BROWSERS)}: apt-get install chromium")
    if not given.page.is_file():
        parser.error(f"there is no page {given.page}: ./run.sh report output --html {given.page}")
    given.picture.parent.mkdir(parents=True, exist_ok=True)
    try:
        screenshot(browser, given.page, given.picture.resolve(), given.width, given.height, given.dark)
    except subprocess.CalledProcessError as error:
        parser.error(f"{browser} could not draw it: {error.stderr.decode(errors='replace').strip()[-300:]}")
    numbered(given.picture, given.mark)
    if (size := shrink(given.picture)) > MOST_BYTES:
        parser.error(f"{given.picture} takes {size} bytes, more than {MOST_BYTES}: a smaller --height makes it less")
    print(f"{given.picture}: {size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
