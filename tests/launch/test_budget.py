"""Launches that are given less than they asked for, and launches that have shown enough, through the real runner."""

import re

import pytest

from tenants.suites import ROOT, Suites, found, job, rogue

USUAL = {"number": 50, "repeat": 40, "skip": 5}


def sentence(record: dict, rule: str) -> str:
    """The sentence of the only finding of this rule."""
    (finding,) = found(record, rule)
    return finding["sentence"]


def load_s(record: dict) -> float:
    return (record["observations"][-1]["end_ns"] - record["observations"][0]["start_ns"]) / 1e9


def test_a_budget_gives_all_tenants_the_same_and_less(loose: Suites) -> None:
    """Of `cut` all would take more than 40 s; of `slow` more than 5 s, unlike its warm-up; of `short` far less."""
    jobs = [
        job("rogue.py", "--repeat", 40, "--number", 50, "--sleep", 0.02, "--sums", 20, name="cut"),
        job("rogue.py", "--repeat", 100, "--number", 1, "--sleep", 0.05, "--warm-up-ns", 10_000_000, name="slow"),
        job(name="short"),
    ]
    loose.run(jobs, "--users", 2, "--budget", "1s", status=0)
    records = loose.by_job()
    given = records["cut"][0]["given"]
    assert 1 <= given["number"] < 4
    assert (given["repeat"], given["skip"]) == (40, 5)
    for record in records["cut"]:
        assert (record["asked"], record["given"]) == (USUAL, given)
        made = len(record["observations"])
        assert (record["number"], record["repeat"], record["skip"]) == (given["number"], made, 5)
        assert 11 <= made <= 40
        assert load_s(record) < 4
        assert record["isolation"]["policies"]["budget_s"] == 1
        average = record["train"]["avg"]
        assert record["train_item"]["avg"] == pytest.approx(record["batch_size"] * record["number"] / average)
        cut = f"cut 40 observations of 50 batches to 40 of {given['number']}: {40 * given['number']} of 2000 batches"
        assert cut in sentence(record, "budget")
    for record in records["slow"]:
        made = len(record["observations"])
        assert 11 <= made <= 60
        assert (record["repeat"], record["given"]["repeat"], record["statistics"]["n"]) == (made, 100, made - 5)
        assert record["rendezvous"]["overlap"] >= 0.99
        assert "cut nothing. They were ended after" in sentence(record, "budget")
    for record in records["short"]:
        assert record["asked"] == record["given"] == {"number": 5, "repeat": 6, "skip": 2}
        assert not found(record, "budget")


@pytest.mark.slow
def test_steps_longer_than_the_budget_end_the_launch_early(loose: Suites) -> None:
    """By their warm-up 40 observations fit; of those that are made, each lasts 4 s."""
    words = ["--repeat", 40, "--number", 1, "--sleep", 4, "--warm-up-ns", 50_000_000]
    loose.run([job("rogue.py", *words, name="slow")], "--users", 2, "--budget", "2s", status=0)
    for record in loose.records():
        made = len(record["observations"])
        assert 2 <= made <= 4
        assert (record["repeat"], record["skip"], record["statistics"]["n"]) == (made, made // 3, made - made // 3)
        assert load_s(record) < 12 + 4.5


def test_enough_ends_all_tenants_before_their_last_observation(loose: Suites) -> None:
    """Rates of a sleeping tenant are within a half of their median at the first look.

    A program that knows no `enough` makes all observations, ranks stay in step, and nobody else may end early.
    """
    sleeping = ["--number", 1, "--sleep", 0.05]
    jobs = [
        job("rogue.py", "--repeat", 400, *sleeping, name="sleeps"),
        job("rogue.py", "--repeat", 30, *sleeping, "--deaf", "--who", 0, name="deaf"),
        job("ranks.sh", 2, "--repeat", 12, "--number", 2, name="ranks", group="all"),
        rogue("early", "observed", "say", "done", who=None),
    ]
    loose.run(jobs, "--users", 2, "--until-interval", "50%", status=1)
    records = loose.by_job()
    for record in records["sleeps"]:
        made = len(record["observations"])
        assert 5 + 6 <= made < 60
        assert (record["repeat"], record["given"]["repeat"], record["skip"]) == (made, 400, 5)
        assert record["statistics"]["n"] == made - 5
        assert record["rendezvous"]["overlap"] >= 0.99
        assert record["isolation"]["policies"]["until_interval"] == 0.5
        (finding,) = found(record, "until_interval")
        assert finding["severity"] == "warning"
        assert f"ended them after {made} of 400" in finding["sentence"]
    deaf, other = records["deaf"]
    assert len(other["observations"]) < len(deaf["observations"]) == 30
    assert "did not end its observations before the last of 30." in sentence(deaf, "until_interval")
    assert deaf["rendezvous"]["overlap"] >= 0.99
    (ranks,) = records["ranks"]
    assert {len(rows) for rows in ranks["rank_observations"].values()} == {12}
    assert "has no effect here" in sentence(ranks, "until_interval")
    # Of its two short observations the client may not have sent the second.
    assert re.search("done after [12] of 6 observations", records["early"][0]["message"])


@pytest.mark.slow
def test_load_settles_before_observations_that_last_long_enough(loose: Suites) -> None:
    loose.run([job()], "--users", 2, "--settle", "0.5", "--at-least", "1s", status=0)
    assert loose.outcomes() == ["completed"] * 2
    for record in loose.records():
        assert record["observations"][0]["start_ns"] >= record["rendezvous"]["t0_ns"] + 500_000_000
        assert record["asked"] == {"number": 5, "repeat": 6, "skip": 2}
        assert record["given"]["repeat"] == record["repeat"] == len(record["observations"]) > 6
        policies = record["isolation"]["policies"]
        assert (policies["settle_s"], policies["at_least_s"]) == (0.5, 1.0)
        assert record["rendezvous"]["overlap"] >= 0.99


BARE = """
import sys
sys.path.insert(0, {common!r})
from cotenant.__main__ import start
from cotenant.commands import suite_options
suite_options.MOST_S = 61.0
suite_options._is_bare = lambda *_: True
sys.exit(start(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_bare_run_short_of_time_shortens_its_launches(loose: Suites) -> None:
    line = loose.line(
        [job("sums.py", "--sleep", 0.01, "--sums", 20, group="all")], "--users", 2, "--baseline", "blocks"
    )
    line[1:2] = ["-c", BARE.format(common=str(ROOT / "common"))]
    ended = loose.typed(line, 60, 0)
    assert re.search(r"^expected: \d+ s, until \d\d:\d\d, by a calibration of half a second$", ended.stdout, re.M)
    (record,) = loose.records()
    # Two fifths of 7.5 s.
    assert record["isolation"]["policies"]["budget_s"] == pytest.approx(3.0)
