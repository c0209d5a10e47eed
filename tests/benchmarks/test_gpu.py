"""The acceptance run, benchmarks/gpu.py, as its users start it: what is kept, what is ended, what is refused."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.conftest import BENCHMARKS

GPU = BENCHMARKS / "gpu.py"
PARTS = ("facts", "probes", "meters", "tasks", "forms", "silent", "harness", "input", "cotenancy", "left")
BY_NAME = {"forms", "harness", "input", "cotenancy"}
DRIVER = """
import signal, sys
from pathlib import Path
sys.path.insert(0, {benchmarks!r})
import device.acceptance as acceptance
from device.plan import EVERY, Part, UsageError
acceptance.BENCHMARKS = Path({folder!r})
acceptance.look = lambda scratch: {{"device": {device!r}, "torch": "2.14.1", "python": "3.11.7", "kind": "cpu",
                                    "missing": [], "before": {{}}, "date": "2026-11-23"}}
acceptance.POLITE_S, acceptance.NATURAL_S = 1.0, 0.2
for name in EVERY:
    EVERY[name] = Part(1, "something")
acceptance.deadline_s = lambda seconds, quick: {deadline_s}
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
try:
    run = acceptance.Acceptance(Path({out!r}), True).run
    sys.exit(run(sys.argv[1:] or ["facts", "probes", "left"], bool(sys.argv[1:])))
except UsageError as error:
    print(error)
    sys.exit(2)
"""
PART = """
import json, os, subprocess, sys, time
from pathlib import Path
sys.path.insert(0, {benchmarks!r})
from device.book import Book
name, out = sys.argv[2], Path(sys.argv[4])
book, scratch = Book(out), Path(os.environ["GPU_SCRATCH"])
book.add(name, "numbers", value=7)
def passed():
    (scratch / "verdict.json").write_text(json.dumps({{"word": "PASS", "sentence": "All well."}}))
{body}
"""


class House:
    """A results folder, a driver whose parts do what a test says, and the rows that are kept."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "out"

    def start(self, body: str, *parts: str, deadline_s: float = 20, device: str = "H900") -> subprocess.Popen[str]:
        program = DRIVER.format(
            benchmarks=str(BENCHMARKS),
            folder=str(self.folder),
            device=device,
            deadline_s=deadline_s,
            out=str(self.out),
        )
        (self.folder / "gpu.py").write_text(PART.format(benchmarks=str(BENCHMARKS), body=body))
        # Only what a bare machine has: a part needs torch, the run itself nothing.
        environment = {"PATH": os.environ["PATH"], "TMPDIR": str(self.folder)}
        return subprocess.Popen(
            [sys.executable, "-c", program, *parts],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, body: str, *parts: str, deadline_s: float = 20, device: str = "H900") -> tuple[int, str]:
        process = self.start(body, *parts, deadline_s=deadline_s, device=device)
        said, _ = process.communicate(timeout=60)
        return process.returncode, said

    def rows(self, table: str) -> list[dict[str, object]]:
        lines = (self.out / "results.jsonl").read_text().splitlines()
        return [row for row in map(json.loads, lines) if row["table"] == table]

    @property
    def page(self) -> str:
        return (self.out / "h900-2026-11-23.md").read_text()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    yield House(tmp_path)
    # The results were absolute and everything else was in scratch, which is gone.
    assert not list(tmp_path.glob("gpu-*"))


def living(marker: str) -> list[str]:
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                words = (place / "cmdline").read_bytes().decode(errors="replace")
                if marker in words and place.name != str(os.getpid()):
                    found.append(words)
            except OSError:
                continue
    return found


def test_every_part_has_its_verdict_and_a_second_run_keeps_what_passed(house: House) -> None:
    first = """
if name == "probes":
    sys.exit("the products are wrong")
passed()"""
    status, said = house.run(first)
    assert status == 1
    assert "facts      PASS  All well." in said
    assert "probes     FAIL  It ended with status 1: the products are wrong" in said
    assert "| probes | FAIL |" in house.page
    assert "| tasks |  |  | did not run" in house.page
    assert {row["value"] for row in house.rows("numbers")} == {7}
    status, said = house.run("passed()")
    assert (status, said.count("kept from")) == (0, 2)
    assert "probes     PASS  All well." in said
    assert house.page.count("| PASS |") == 3
    # One that is named runs again.
    assert "kept from" not in house.run("passed()", "facts")[1]


def test_a_part_over_its_deadline_is_ended_with_its_children(house: House) -> None:
    marker = f"marker-{os.getpid()}"
    body = f"""
# One child in the part's group, one that has left its session and parent; both ignore polite signals.
stay = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)  # {marker}"
subprocess.Popen([sys.executable, "-c", stay])
subprocess.run([sys.executable, "-c", "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]], "
                "start_new_session=True)", stay], check=True)
if name == "facts":
    time.sleep(300)
passed()"""
    began = time.monotonic()
    status, said = house.run(body, "facts", "probes", deadline_s=1)
    assert time.monotonic() - began < 20
    assert status == 1
    assert "facts      FAIL  It took longer than 1 s and was ended; what it found is kept." in said
    assert "probes     PASS" in said
    assert not living(marker)
    assert len(house.rows("numbers")) == 2
    # What outlived a part that ended by itself is what `left` judges.
    after = {(row["part"], row["after_deadline"]) for row in house.rows("leftovers")}
    assert after == {("facts", True), ("probes", False)}


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_is_killed_keeps_its_results(house: House, sign: signal.Signals) -> None:
    marker = f"other-{os.getpid()}-{sign}"
    body = f"""
if name == "probes":
    subprocess.run([sys.executable, "-c", "import time; time.sleep(300)  # {marker}"])
passed()"""
    # As inside.py does.
    prctl = "from device.processes import end_with_parent; end_with_parent(os.getppid())\n"
    process = house.start(prctl + body)
    deadline = time.monotonic() + 30
    while not living(marker) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(sign)
    process.communicate(timeout=30)
    for scratch in house.folder.glob("gpu-*") if sign is signal.SIGKILL else ():
        subprocess.run(["rm", "-rf", str(scratch)], check=True)
    assert [(row["part"], row["word"]) for row in house.rows("verdict")] == [("facts", "PASS")]
    assert "| facts | PASS |" in house.page
    # A line that was cut off swallows none of the next.
    with (house.out / "results.jsonl").open("a") as file:
        file.write('{"part": "probes", "tab')
    subprocess.run(["pkill", "-f", marker], check=False)
    status, said = house.run("passed()")
    assert (status, said.count("kept from")) == (0, 1)
    assert house.page.count("| PASS |") == 3


def test_a_part_that_is_killed_fails_with_its_signal(house: House) -> None:
    status, said = house.run("print('last words'); sys.stdout.flush(); os.kill(os.getpid(), 9)", "facts")
    assert status == 1
    assert "FAIL  It ended with signal SIGKILL: last words" in said


def test_results_of_another_machine_or_of_somebody_else_are_refused(house: House) -> None:
    assert house.run("passed()", "facts")[0] == 0
    status, said = house.run("passed()", "facts", device="H901")
    assert status == 2
    assert "holds results of another run (device: H900 there, H901 here): give a new folder to --out." in said
    (house.out / "machine.json").unlink()
    status, said = house.run("passed()")
    assert status == 2
    assert "holds other files" in said


@pytest.mark.parametrize(
    "words, sentence",
    [
        ([], "The following arguments are required: --out. --help lists the flags."),
        (["--out", "x", "--parts", "fact"], "There is no part 'fact'. The parts are facts, probes,"),
        (["--out", "x", "--parts", ","], "--parts names none."),
        (["--out", "x", "--fast"], "Unrecognized arguments: --fast."),
        (["--out", "/dev/null/x"], "/dev/null/x cannot be written: Not a directory."),
    ],
)
def test_wrong_arguments_are_one_sentence(words: list[str], sentence: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(GPU), *words], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"gpu.py: {sentence}")
    assert ended.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_what_passed_is_of_the_sources_that_it_passed_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    source_version = importlib.import_module("device.acceptance").source_version
    mended = tmp_path / "common" / "loop.py"
    mended.parent.mkdir()
    found = []
    for text in ("a", "b", "a"):
        mended.write_text(text)
        found.append(source_version(tmp_path))
    assert found[0] == found[2] != found[1]
    # A copy without its history.
    assert found[0].startswith("files ")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], check=True)
    clean = source_version(tmp_path)
    mended.write_text("b")
    assert source_version(tmp_path) == f"{clean}+{found[1].removeprefix('files ')}"


def judged(out: Path) -> dict[str, tuple[str, str]]:
    rows = map(json.loads, (out / "results.jsonl").read_text().splitlines())
    return {row["part"]: (row["word"], row["sentence"]) for row in rows if row["table"] == "verdict"}


def in_small(folder: Path, *words: str) -> dict[str, tuple[str, str]]:
    """Return the verdicts of --quick, by part."""
    command = [sys.executable, str(GPU), "--out", str(folder), "--quick", *words]
    # Other tests run suites of their own at the same time.
    alone = os.environ | {"COTENANT_LOCK": str(folder.with_name("lock"))}
    ended = subprocess.run(command, env=alone, capture_output=True, text=True, timeout=900, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr + (folder / "log.txt").read_text()[-4000:]
    return judged(folder)


def test_in_small_every_part_passes_or_says_why_it_was_left_out(tmp_path: Path) -> None:
    found = in_small(tmp_path / "o")
    assert list(found) == list(PARTS)
    assert {name for name, (word, _) in found.items() if word == "PASS"} >= {"facts", "probes", "tasks", "left"}
    reasons = {name: sentence for name, (word, sentence) in found.items() if word == "SKIP"}
    assert {name for name, sentence in reasons.items() if sentence.startswith("--quick leaves it out")} == BY_NAME
    assert all(reasons.values())
    assert all(word in ("PASS", "SKIP") for word, _ in found.values())


@pytest.mark.slow
def test_everything_in_small(tmp_path: Path) -> None:
    found = in_small(tmp_path / "o", "--parts", ",".join([*PARTS, "pressure", "families:resnet50_fp32,ncf"]))
    assert len(found) == 12
    assert {word for word, _ in found.values()} <= {"PASS", "SKIP"}
    assert all(sentence for _, sentence in found.values())
    measured = ("facts", "probes", "tasks", "forms", "harness", "input", "cotenancy", "left", "pressure", "families")
    assert all(found[name][0] == "PASS" for name in measured)
    records = [json.loads(line) for line in (tmp_path / "o" / "records.jsonl").read_text().splitlines()]
    assert {"toy_reg", "vae", "convnet", "vae K=2 slices", "resnet50_fp32", "ncf_fp32", "ncf_bf16"} <= {
        record["job"] for record in records
    }
