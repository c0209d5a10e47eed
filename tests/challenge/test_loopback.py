"""A buyer and a vendor as they are typed, over the loopback: a real benchmark, in slices, replayed in a process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cotenant.challenge.transcript import SUFFIX, read
from cotenant.challenge.verdict import verdict
from tenants.fixtures import loose
from tenants.suites import ROOT, Suites, until

__all__ = ["loose"]
RUN = [sys.executable, str(ROOT / "run.py")]
LIMIT_S = 500


@pytest.mark.slow
def test_an_honest_vendor_passes_and_its_floor_is_within_a_tenth_of_its_rate(loose: Suites) -> None:
    bought, printed = loose.folder / "bought", loose.folder / "printed"
    listen = [*RUN, "challenge", "--listen", "0", "--launches", "1", "--outdir", str(bought)]
    with printed.open("w") as file, subprocess.Popen(listen, env=loose.environment, stderr=file) as buyer:
        port = until(lambda: re.search(r"Listening at \S+:(\d+);", printed.read_text()), "a port")[1]
        words = loose.line(None, "--jobs", "cpu", "--name", "vae", "--users", 2, "--baseline", "none")
        words += ["--challenge", port, "--", "--repeat", "8", "--number", "60"]
        ended = subprocess.run(
            words, env=loose.environment, cwd=loose.folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert ended.returncode == 0, ended.stderr
        assert buyer.wait(LIMIT_S) == 0
    (theirs,), (ours,) = loose.output.glob(f"*{SUFFIX}"), bought.glob(f"*{SUFFIX}")
    assert theirs.read_bytes() == ours.read_bytes()
    found = verdict(read(ours.read_bytes()))
    assert found.exact, found.reasons
    reported = said(loose, "report", loose.output)
    against = re.search(r"vae: challenge: at least (\d\.\d+) of its own, deterministic", reported)
    assert against is not None, reported
    assert 0.9 <= float(against[1]) <= 1.1
    assert re.search(r"vae: challenge: at least \d\.\d+ of the published rate", reported)
    archive = loose.folder / "run.tar.zst"
    said(loose, "archive", loose.output, "-o", archive)
    assert "challenge  -    1 transcript, judged anew" in said(loose, "verify", archive)
    assert "judged anew" in said(loose, "verify", ours)


def said(suites: Suites, *words: str | Path) -> str:
    """Run a command, which ends well, and return what it printed."""
    line = [*RUN, *map(str, words)]
    return subprocess.run(line, env=suites.environment, capture_output=True, text=True, check=True).stdout
