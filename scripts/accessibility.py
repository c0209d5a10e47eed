#!/usr/bin/env python3
"""Checks a report's page with axe-core, on a desk and on a phone, light and dark: exit status 1 for a serious fault.

A page that is wider than a phone is one, too.

    npm pack axe-core && tar xzf axe-core-*.tgz package/axe.min.js
    python scripts/accessibility.py page.html --axe package/axe.min.js

Needs Chromium or Chrome, which runs it without a window and without a network. axe-core is no part of this checkout.
"""

import argparse
import html
import itertools
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from picture import browser_found

SERIOUS = ("serious", "critical")
WIDTHS = {"desk": 1280, "phone": 390}
# A frame can be as narrow as a phone, a window only 500 pixels. Folded panels are opened, so that they are checked.
FRAME = """<!doctype html><html lang="en"><title>frame</title><iframe id="page" style="width:{width}px;height:900px">
</iframe><pre id="found"></pre><script>
const frame = document.getElementById("page");
frame.onload = async () => {{
  const inner = frame.contentWindow;
  for (const panel of inner.document.querySelectorAll("details")) panel.open = true;
  const script = inner.document.createElement("script");
  script.textContent = {axe};
  inner.document.head.append(script);
  const {{ violations }} = await inner.axe.run(inner.document, {{ resultTypes: ["violations"] }});
  const wide = inner.document.documentElement.scrollWidth;
  if (wide > {width}) violations.push({{ id: "width", impact: "serious", help: `${{wide}} pixels wide`, nodes: [] }});
  document.getElementById("found").textContent = JSON.stringify(violations.map(each =>
    ({{ id: each.id, impact: each.impact, help: each.help, nodes: each.nodes.map(node => node.html.slice(0, 160)) }})));
  frame.remove();
}};
frame.srcdoc = {page};
</script></html>"""


def violations(browser: str, page: Path, axe: Path, width: int, dark: bool) -> list[dict[str, Any]]:
    """Return axe-core's violations on the page, `width` CSS pixels wide. Raises CalledProcessError, ValueError."""
    # `</script>` in a text would end the script.
    words = {name: json.dumps(path.read_text()).replace("</", "<\\/") for name, path in (("page", page), ("axe", axe))}
    with tempfile.TemporaryDirectory() as place:
        frame = Path(place) / "frame.html"
        frame.write_text(FRAME.format(width=width, **words))
        line = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={place}/profile"]
        line += ["--blink-settings=preferredColorScheme=0"] if dark else []
        line += ["--window-size=1400,1000", "--virtual-time-budget=60000", "--dump-dom", frame.as_uri()]
        ended = subprocess.run(line, check=True, capture_output=True, text=True, timeout=300)
    found = re.search(r'<pre id="found">(.+?)</pre>', ended.stdout, re.DOTALL)
    if found is None:
        raise ValueError("axe-core gave no answer")
    answer: list[dict[str, Any]] = json.loads(html.unescape(found[1]))
    return answer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--axe", type=Path, required=True, metavar="FILE", help="axe.min.js of axe-core")
    given = parser.parse_args()
    if (browser := browser_found()) is None:
        parser.error("there is no Chromium: apt-get install chromium")
    serious = 0
    for (name, width), dark in itertools.product(WIDTHS.items(), (False, True)):
        print(f"{name}, {'dark' if dark else 'light'}:")
        for each in violations(browser, given.page, given.axe, width, dark):
            serious += each["impact"] in SERIOUS
            print(f"  {each['impact']}: {each['id']}: {each['help']} ({len(each['nodes'])} places)")
            for node in each["nodes"][:3]:
                print(f"    {node}")
    print(f"{serious} serious")
    return 1 if serious else 0


if __name__ == "__main__":
    sys.exit(main())
