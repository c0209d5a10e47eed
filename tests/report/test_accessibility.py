"""Everybody can read the page: its colours have the WCAG's contrast, and axe-core finds nothing serious."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cotenant.report.page import page
from cotenant.report.scaling import curves
from cotenant.report.sections.contents import PageContents
from patience import HANG_S
from report.making import everything, launch, summary_of

CHECKOUT = Path(__file__).resolve().parents[2]
STYLE = (CHECKOUT / "common/cotenant/report/templates/style.css.j2").read_text()
AA = 4.5
"""The least contrast of text (WCAG 2.2, 1.4.3)."""
SCRIPT = CHECKOUT / "scripts/accessibility.py"
THEMES = [dict(re.findall(r"--(\w+): (#\w+)", block)) for block in re.findall(r":root \{([^}]*)\}", STYLE)]


def luminance(colour: str) -> float:
    """The relative luminance of `#rgb` or `#rrggbb` (WCAG 2.2)."""
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def mixed(colour: str, share: float, ground: str) -> str:
    """Return the colour that color-mix in sRGB makes of a share of a colour on a ground."""
    digits = [f"{each[1] * 2}{each[2] * 2}{each[3] * 2}" if len(each) == 4 else each[1:] for each in (colour, ground)]
    parts = ([int(each[at : at + 2], 16) for at in (0, 2, 4)] for each in digits)
    return "#" + "".join(f"{round(share * one + (1 - share) * other):02x}" for one, other in zip(*parts, strict=True))


@pytest.mark.parametrize("theme", range(3), ids=["light", "dark", "print"])
def test_text_stands_out_from_its_ground(theme: int) -> None:
    assert len(THEMES) == 3
    colours = THEMES[0] | THEMES[theme]
    for text in ("ink", "soft", "accent", "good", "warn", "bad"):
        for ground in ("paper", "ground"):
            assert contrast(colours[text], colours[ground]) >= AA, (text, ground)
    heat = re.search(r"calc\(var\(--s\) \* \.(\d+)%\)", STYLE)
    strongest = mixed(colours["accent"], float(f"0.{heat[1]}"), colours["paper"])
    assert contrast(colours["ink"], strongest) >= AA


@pytest.mark.slow
def test_axe_finds_nothing_serious(tmp_path: Path) -> None:
    axe = os.environ.get("AXE", "")
    if not Path(axe).is_file():
        pytest.skip("AXE names no axe.min.js (npm pack axe-core)")
    summary = everything()
    (tmp_path / "page.html").write_text(page("A title", PageContents(summary, curves(summary.jobs))))
    line = [sys.executable, str(SCRIPT), str(tmp_path / "page.html"), "--axe", axe]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=HANG_S)
    if "there is no Chromium" in ended.stderr:
        pytest.skip("there is no Chromium")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("light:") == 2


MOVES = """<script>
const told = [], table = document.querySelector(".filtered table"), field = document.querySelector(".filtered input");
const column = at => [...table.tBodies[0].rows].filter(row => !row.hidden).map(row => row.cells[at].innerText.trim());
const heads = table.tHead.rows[0].cells;
const press = at => { heads[at].querySelector("button").click(); return heads[at].ariaSort; };
const seek = words => { field.value = words; field.dispatchEvent(new Event("input")); };
told.push(press(0), column(0), press(0), column(0), press(1), column(0));
seek("wlm"); told.push(column(0), document.querySelector(".filtered [role=status]").innerText);
seek("nothing of that name"); told.push(column(0), document.querySelector(".filtered [role=status]").innerText);
document.body.innerHTML = `<pre id="told">${JSON.stringify(told)}</pre>`;
</script>"""


@pytest.mark.slow
def test_headings_sort_and_a_filter_without_a_match_says_so(tmp_path: Path) -> None:
    """Headings hold buttons, which a browser presses by Enter and by Space."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("there is no Chromium")
    records = [*launch("wlm", mean_ms=100), *launch("vae", mean_ms=500), *launch("dcgan", mean_ms=200)]
    text = page("A title", PageContents(summary_of(records)))
    (tmp_path / "page.html").write_text(text.replace("</body>", f"{MOVES}</body>"))
    line = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile", "--dump-dom"]
    ended = subprocess.run([*line, (tmp_path / "page.html").as_uri()], capture_output=True, text=True, timeout=HANG_S)
    up, rising, down, falling, numbers, fastest, found, said, none, missing = json.loads(
        html.unescape(re.search(r'id="told">(.+?)</pre>', ended.stdout)[1])
    )
    assert (up, rising) == ("ascending", ["dcgan", "vae", "wlm"])
    assert (down, falling) == ("descending", ["wlm", "vae", "dcgan"])
    assert numbers == "descending"
    assert fastest == ["wlm", "dcgan", "vae"]
    assert (found, said) == (["wlm"], "")
    assert (none, missing) == ([], "No row has these words.")
