"""Words behind `--` that a program refuses end the suite at its first launch; a wrong argument in the file does not."""

import re
import sys
from pathlib import Path

import pytest

from cotenant.launch.outcome import LaunchResult, TenantResult, refused_word
from tenants.fakes import launched, specs
from tenants.once import once
from tenants.suites import Suites, job, script

POLYNOME = "regression/polynome/pytorch/run.sh"
NONSENSE = {"name": "wrong", "cmd": POLYNOME, "args": {"--batch-sise": 1}, "cgroup": "student"}
RIGHT = {"name": "right", "cmd": POLYNOME, "args": {"--number": 3}, "cgroup": "student"}


def ended(loose: Suites) -> dict[str, str]:
    """The outcome of each job that was launched, with its one user."""
    return {record["name"]: record["outcome"] for record in loose.records()}


def test_a_refused_typed_word_ends_the_suite(loose: Suites) -> None:
    run = loose.run([job(name="first"), job(name="next")], "--users", 1, "--", "--repat", 6, status=2)
    assert re.search(r"^cotenant: first: It ended with exit status 2\. .* arguments: --repat 6$", run.stderr, re.M)
    assert ended(loose) == {"first": "failed"}
    assert "Total" in loose.summary()[-1]


def test_a_wrong_argument_in_the_file_fails_its_own_cells(loose: Suites) -> None:
    """Another program prints the typed words, and fails of something else."""
    crashes = script(loose.folder / "crashes.sh", 'echo "$@"', "exit 1")
    jobs = [
        job("sums.py", "--nonsense", 1, name="wrong"),
        {"name": "crashes", "cmd": str(crashes), "args": {}, "cgroup": "student"},
        job(name="next"),
    ]
    loose.run(jobs, "--users", 1, "--", "--repeat", 6, status=1)
    assert ended(loose) == {"wrong": "failed", "crashes": "failed", "next": "completed"}


def test_a_message_before_ready_refuses_a_typed_word(tmp_path: Path) -> None:
    """Behind READY it is no refusal."""
    fails = "runner.failed('failed', '--number is too small')\nsys.exit(1)"
    for program, said in ((once(joined=fails), "--number is too small"), (once(work=fails), "")):
        result = launched(specs(tmp_path, sys.executable, "-c", program, tenants=1))
        assert result.tenants[0].message.startswith("--number is too small")
        assert refused_word(result, ["--number", "5"]) == said


@pytest.mark.slow
def test_benchmarks_of_torch_refuse_by_a_message(loose: Suites) -> None:
    run = loose.run([RIGHT, job(name="next")], "--users", 1, "--", "--repat", 5, status=2)
    said = "cotenant: right: This benchmark has no argument '--repat'. Did you mean '--repeat'?"
    assert run.stderr.splitlines()[-1] == said
    loose.run([NONSENSE, RIGHT, job(name="next")], "--users", 1, "--", "--repeat", 6, status=1)
    assert ended(loose) == {"wrong": "failed", "right": "completed", "next": "completed"}
    (wrong,) = (record for record in loose.records() if record["name"] == "wrong")
    assert "'--batch-sise'" in wrong["message"]


@pytest.mark.slow
def test_a_rank_and_a_side_of_a_duet_refuse(loose: Suites) -> None:
    whole = {"name": "whole", "cmd": "image_classification/scaling/pytorch/run.sh", "args": {}, "cgroup": "all"}
    run = loose.run([whole, job(name="next")], "--users", 2, "--", "--network", "no", status=2)
    assert re.search(
        r"^cotenant: whole: Rank \d of 2: --network no: torchvision has no such classifier\.$", run.stderr, re.M
    )
    duet = ("--duet", "right", "--", "--repeat", 5, "---", "--repat", 5)
    run = loose.run([RIGHT], "--users", 1, "--repetitions", 3, *duet, status=2)
    assert run.stderr.splitlines()[-1].endswith("has no argument '--repat'. Did you mean '--repeat'?")


@pytest.mark.parametrize(
    ("typed", "message", "named"),
    [
        ("--latent many", "--latent: 'many' is no whole number.", True),
        ("-b 0", "--batch-size must be at least 1, not 0.", True),
        ("--lr=x", "--lr: 'x' is no number.", True),
        ("nonsense", "This benchmark has no argument 'nonsense'.", True),
        ("--repeat 3", "--skip 9 leaves none of 3 observations. Give a --skip smaller than --repeat.", True),
        ("--repeat 3", "This benchmark has no argument '--repeat-all'.", False),
        ("--repeat 3", "It ended with exit status 2. Its log ends: usage: x [--repeat N] | x: wrong: --size", False),
        ("", "This benchmark has no argument '--repat'.", False),
    ],
)
def test_a_refusal_names_a_typed_word(typed: str, message: str, named: bool) -> None:
    for refused in (True, False):
        tenant = TenantResult(None, "failed", message, refused=refused)  # type: ignore[arg-type]
        result = LaunchResult((tenant,), None, None)  # type: ignore[arg-type]
        assert refused_word(result, typed.split()) == (message if named and refused else "")
