"""A buyer and vendors as commands over the loopback: real benchmarks in processes, replayed in others."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cotenant.challenge.transcript import Transcript, read
from cotenant.challenge.verdict import verdict
from cotenant.choices import TRANSCRIPT
from tenants.fixtures import loose
from tenants.suites import ROOT, Suites, until

__all__ = ["loose"]
RUN = [sys.executable, str(ROOT / "run.py")]
LIMIT_S = 500
LAUNCHES = 3
"""The most launches until floor and rate agree: other work on this machine moves the two differently."""
HONEST = "honest"
CHEATS = {
    "skipped": r"the losses agree up to step 1998, and the next is \S+, not \S+: a step before it was left out",
    "late": r"User 0, piece 3: the answer took [4-9]\.\d+ s, where [012]\.\d+ s are usual\.",
    "in-turn": r"All users worked in \d+% of the time of each: at least 90% are needed\.",
    "changed": r"the loss of its first step is \S+, and \S+ by replay\.",
}
"""A pattern of the buyer's reason to refuse each cheat of cheat.py."""
PIECES = 6


@pytest.mark.slow
def test_an_honest_vendor_passes_and_its_floor_is_within_a_tenth_of_its_rate(loose: Suites) -> None:
    flags = ["--isolation", "none", "--jobs", "cpu", "--name", "vae", "--users", 2, "--baseline", "none"]
    behind = ["--repeat", 12, "--skip", 2, "--number", 60]
    shares = []
    with listening(loose, 0) as (buyer, port):
        for uid in range(LAUNCHES):
            output = loose.folder / f"sold{uid}"
            said(loose, *flags, "--outdir", output, "--challenge", port, "--", *behind)
            reported = said(loose, "report", output)
            floor = r"vae: challenge: (?:at least|no lower bound can be) (\d\.\d+) of "
            against = re.search(f"{floor}its own, deterministic", reported)
            assert against is not None, reported
            assert re.search(f"{floor}the published rate", reported)
            shares.append(float(against[1]))
            if 0.9 <= shares[-1] <= 1.1:
                break
        buyer.send_signal(signal.SIGINT)
        assert buyer.wait(LIMIT_S) == 0
    bought = sorted(loose.folder.glob(f"bought/*{TRANSCRIPT}"))
    sold = sorted(loose.folder.glob(f"sold*/*{TRANSCRIPT}"), key=lambda path: path.parent)
    assert [path.read_bytes() for path in sold] == [path.read_bytes() for path in bought]
    for path in sold:
        transcript = read(path.read_bytes())
        assert verdict(transcript).exact, verdict(transcript).reasons
        # The rest is the cost of the challenge itself: input, saved state and digests of each piece.
        assert 0.9 <= inside(transcript, path.parent) <= 1
    assert "judged anew" in said(loose, "verify", bought[0])
    assert 0.9 <= shares[-1] <= 1.1, shares
    archive = loose.folder / "run.tar.zst"
    said(loose, "archive", sold[0].parent, "-o", archive)
    assert "challenge  -    1 transcript, judged anew" in said(loose, "verify", archive)


def inside(transcript: Transcript, output: Path) -> float:
    """Return the share of the buyer's time that lies inside a tenant's observations, of the tenant with the least."""
    records = [json.loads(path.read_text()) for path in output.glob("*.challenge.*.json")]
    shares = []
    for record in records:
        chain = transcript.chains[record["tenant"]]
        last = chain.exchanges[len(record["observations"]) - 1]
        own_ns = sum(seen["end_ns"] - seen["start_ns"] for seen in record["observations"])
        shares.append(own_ns / (last.came_ns - chain.exchanges[0].sent_ns))
    return min(shares)


@pytest.mark.slow
def test_a_skipped_step_a_late_answer_tenants_in_turn_and_another_loss_are_refused(loose: Suites) -> None:
    """The benchmark's source is the buyer's, and only the vendor's harness cheats: the answers have to show it."""
    args = {"--repeat": PIECES, "--number": 2000, "--skip": 1}
    cheat, shared = str(Path(__file__).with_name("cheat.py")), {"PIECES": str(PIECES), "TURNS": str(loose.folder)}
    jobs = [
        {"name": name, "cmd": cheat, "args": args, "cgroup": "student", "env": {"CHEAT": name} | shared}
        for name in (HONEST, *CHEATS)
    ]
    with listening(loose, len(jobs)) as (buyer, port):
        line = loose.line(jobs, "--users", 2, "--baseline", "none", "--challenge", port)
        printed = loose.typed(line, LIMIT_S, 0).stdout
        assert buyer.wait(LIMIT_S) == 1
    transcripts = {held.job: held for held in (read(path.read_bytes()) for path in loose.output.glob(f"*{TRANSCRIPT}"))}
    verdicts = {job: verdict(held) for job, held in transcripts.items()}
    assert verdicts.keys() == {HONEST, *CHEATS}
    assert verdicts[HONEST].exact, verdicts[HONEST].reasons
    assert verdicts[HONEST].floor > 0
    for name, sentence in CHEATS.items():
        reasons = {reason.kind for reason in verdicts[name].reasons}
        assert reasons >= {name.replace("-", " ")}, (name, verdicts[name].reasons)
        assert any(re.search(sentence, reason.sentence) for reason in verdicts[name].reasons), verdicts[name].reasons
        assert verdicts[name].floor == 0
        assert f"{name}: challenge REFUSED: " in printed


@contextmanager
def listening(suites: Suites, launches: int) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Yield a buyer that ends after `launches` launches (0: never), and its port; transcripts go to `bought`."""
    heard, bought = suites.folder / "heard", suites.folder / "bought"
    suites.environment["COTENANT_CHALLENGE_TOKEN"] = "known to both"
    line = [*RUN, "challenge", "--listen", "0", "--launches", str(launches), "--outdir", str(bought)]
    with heard.open("w") as file, subprocess.Popen(line, env=suites.environment, stderr=file) as buyer:
        try:
            yield buyer, until(lambda: re.search(r"Listening at \S+:(\d+);", heard.read_text()), "a port")[1]
        finally:
            buyer.kill()


def said(suites: Suites, *words: object) -> str:
    """Run a command that must end with 0, and return its standard output."""
    return suites.typed([*RUN, *map(str, words)], LIMIT_S, 0).stdout
