"""Comparisons as pages, and a report's page of several hosts, failures and duets."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Sequence
from datetime import timedelta

import pytest

from cotenant.finding import Finding
from cotenant.report.answer import answer
from cotenant.report.comparison import Conditions, compare_launches
from cotenant.report.hosts import jobs_on_hosts
from cotenant.report.problems import first_steps
from cotenant.report.view_pages import comparison_page
from cotenant.results.drawn import spans_of
from cotenant.results.launches import launches_of
from cotenant.results.record import Record, record_of
from report.making import fields_of, launch, lost, solo, summary_of, table
from report.test_duets import duet
from report.test_page import Reader, page_of
from results.made import NOON, observed


def on(host: str, mean_ms: float = 500.0, jobs: Sequence[str] = ("vae", "wlm")) -> list[Record]:
    records, place = [], {"hostname": host}
    for name, uid in itertools.product(jobs, range(3)):
        records += launch(name, uid, mean_ms=mean_ms, place=place) + solo(name, uid, place=place)
    return records


@pytest.mark.usefixtures("unpictured")
def test_two_hosts_have_a_column_each_and_no_sentence_in_common() -> None:
    summary = summary_of([*on("one"), *on("two", mean_ms=600)])
    assert re.fullmatch(r"one: .* two: .*", answer(summary))
    assert "over 4 jobs" not in answer(summary)
    grid = jobs_on_hosts(summary)
    assert [column.heading for column in grid.columns] == ["job", "unit", "one", "two"]
    small = summary_of([*on("one", jobs=["vae"]), *on("two", mean_ms=600, jobs=["vae"])])
    shown = Reader(page_of(small)).text
    for words in ("Hosts side by side", "Jobs clean, one", "Jobs clean, two", "two: Each user's rate", "vae on two"):
        assert words in shown
    assert not jobs_on_hosts(summary_of(on("one"))).shown
    many_hosts = summary_of([one for host in "abcde" for one in launch("vae", place={"hostname": host})])
    assert not answer(many_hosts)


@pytest.mark.usefixtures("unpictured")
def test_failures_are_at_the_top_with_their_reason() -> None:
    text = Reader(page_of(summary_of([*launch("vae"), *solo("vae"), *lost("wlm", 0)]))).text
    assert text.index("wlm, repetition 0, user 1: out_of_memory: It needed more.") < text.index("Results")
    assert "4 launches, 2 of them of one user alone" in text
    assert "each measured once" in text
    assert "0 users" not in Reader(page_of(summary_of([]))).text


@pytest.mark.usefixtures("unpictured")
def test_a_page_of_one_duet_shows_its_verdict_but_no_users() -> None:
    text = Reader(page_of(summary_of(duet()))).text
    assert text.index("B is slower than A: it has 92.4 %") < text.index("Is B slower than A?")
    assert text.count("B is slower than A: it has 92.4 %") == 2
    assert "0 users" not in text
    assert "Show rows with" not in text


LATE = Finding("slow_start", "warning", "The first 2 are slow.", "Skip them.", value=7.0, effect=0.05)


RUN = "--jobs mine/j.json --users 4 --isolation require --outdir out --uid 3"


@pytest.mark.parametrize(
    ("run", "place", "command"),
    [
        ("", {}, "--name vae,wlm -- --skip 7"),
        (RUN, {}, f"{RUN} --name vae,wlm -- --skip 7"),
        (f"{RUN} --baseline blocks --resume", {}, f"{RUN} --baseline blocks --name vae,wlm -- --skip 7"),
        ("--name=vae,wlm,ssd -- --skip 2 --lr 1", {}, "--name vae,wlm -- --lr 1 --skip 7"),
        ("--users 2", {"name": "vae.c2"}, "--users 2 --name vae -- --skip 7"),
        ("--mix vae,wlm", {"name": "vae.in.lab"}, "--mix vae,wlm -- --skip 7"),
        ("--duet vae -- --- --lr 1", {"name": "vae.duet.A"}, None),  # one side after --
        ("exec --users 2 -- python s.py", {"suite": "exec"}, None),
    ],
)
@pytest.mark.usefixtures("unpictured")
def test_a_remedy_is_the_recorded_run_with_its_change(run: str, place: dict[str, str], command: str | None) -> None:
    wild = Finding("same_seed", "warning", "One seed.", "Give another.")
    place |= {"run_words": shlex.split(run if run.startswith("exec") else f"run {run}")}
    late = launch("vae", findings=(LATE, wild), place=place) + launch("wlm", findings=(LATE,), place=place)
    summary = summary_of(late)
    wanted = [f"./run.sh {command}"] if command else []
    assert [step.command for step in first_steps(summary.findings)] == wanted
    if not run:
        assert wanted[0] in Reader(page_of(summary)).text


def test_a_program_of_exec_is_started_again_as_it_was() -> None:
    busy, run = (
        Finding("foreign_load", "warning", "Others ran.", value=0.5, effect=0.1),
        "exec --users 2 -- python s.py",
    )
    place = {"suite": "exec", "run_words": shlex.split(run)}
    (step,) = first_steps(summary_of(launch("s", findings=(busy,), place=place)).findings)
    assert step.command == f"./run.sh {run}"


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("drift", "--settle 10s"),
        ("few_observations", "--budget 30s"),
        # A container or a job of Slurm has no use for cgroup_setup.sh.
        ("not_enforced", "--isolation require"),
    ],
)
def test_a_flag_of_ours_stands_before_the_dashes(rule: str, change: str) -> None:
    found = launch("vae", findings=(Finding(rule, "warning", "It is so.", effect=0.1),))
    (step,) = first_steps(summary_of(found).findings)
    assert step.command == f"./run.sh --users 2 --name vae {change}"


def test_records_without_their_run_have_no_command() -> None:
    assert not first_steps(summary_of(launch("vae", findings=(LATE,), place={"run_words": []})).findings)


def test_skipping_preloaded_observations_raises_the_repeats() -> None:
    """The job's own 20 observations would all be skipped, which it refuses."""
    ahead = Finding("loaded_ahead", "warning", "The first 15 of 15.", "Skip them: --skip 32.", value=32.0, effect=0.1)
    (step,) = first_steps(
        summary_of(launch("vae", findings=(ahead,), place={"run_words": ["run", "--users", "2"]})).findings
    )
    assert step.command == "./run.sh --users 2 --name vae -- --skip 32 --repeat 96"


def test_blocks_of_others_and_audits_are_known_of_a_timeline() -> None:
    rows = [
        {"start_ns": 10 * at, "end_ns": 10 * at + 8, "items": 1, "data_wait_ns": 0, "block": block, "kind": kind}
        for at, (block, kind) in enumerate([(0, "all"), (None, ""), (2, "all"), (None, ""), (3, "only")])
    ]
    plain = fields_of(launch("vae")[0])
    spans = spans_of(record_of(plain | {"observations": rows, "skip": 0, "observed": {"audit": {"after": [2]}}}))
    assert spans.held.tolist() == [False, True, False, False, False]
    assert spans.alone.tolist() == [False, False, False, False, True]
    assert spans.audits == [(18, 20)]
    assert not spans_of(record_of(plain)).held.any()
    assert observed([1.0])[0].block is None


def test_a_comparison_is_a_page_that_works_offline() -> None:
    sides = []
    for hour, mean_ms in enumerate((500, 700)):
        started = [NOON + timedelta(hours=hour, minutes=2 * uid) for uid in range(5)]
        records = [one for uid in range(5) for one in launch("vae", uid, mean_ms=mean_ms, started=started[uid])]
        sides.append(launches_of(table(records).frame)[0])
    lines = compare_launches(*sides, Conditions())
    text = comparison_page("A", "B", lines)
    seen = Reader(text)
    assert "vae is SLOWER in B: 0.7" in seen.text
    assert "<svg" in text
    assert len(seen.ids) == len(set(seen.ids))
    assert all(link.startswith("#") for link in seen.links)
