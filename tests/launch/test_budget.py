"""Launches that are given less than they asked for, and launches that have shown enough, through the real runner."""

import pytest

from tenants.suites import Suites, job

USUAL = {"number": 50, "repeat": 40, "skip": 5}


def rules(record: dict) -> dict[str, dict]:
    return {one["rule"]: one for one in record["findings"]}


def load_s(record: dict) -> float:
    return (record["observations"][-1]["end_ns"] - record["observations"][0]["start_ns"]) / 1e9


def test_a_budget_gives_all_tenants_the_same_and_less(loose: Suites) -> None:
    """40 observations of 50 batches of 20 ms and more would take more than 40 s."""
    jobs = [job("rogue.py", "--repeat", 40, "--number", 50, "--sleep", 0.02)]
    assert loose.run(jobs, "--users", 2, "--budget", "3s").returncode == 0
    records = loose.records()
    assert len(records) == 2
    given = records[0]["given"]
    assert 1 <= given["number"] < 4
    assert (given["repeat"], given["skip"]) == (40, 5)
    for record in records:
        assert (record["asked"], record["given"]) == (USUAL, given)
        made = len(record["observations"])
        assert (record["number"], record["repeat"], record["skip"]) == (given["number"], made, 5)
        assert 7 <= made <= 40
        assert load_s(record) < 5
        assert record["isolation"]["policies"]["budget_s"] == 3
        average = record["train"]["avg"]
        assert record["train_item"]["avg"] == pytest.approx(record["batch_size"] * record["number"] / average)
        cut = f"cut 40 observations of 50 batches to 40 of {given['number']}: {40 * given['number']} of 2000 batches"
        assert cut in rules(record)["budget"]["sentence"]


def test_a_load_slower_than_its_warm_up_is_ended_soon_after_its_budget(loose: Suites) -> None:
    """All 100 observations would take more than 5 s: as with input that was fetched ahead of the warm-up."""
    jobs = [job("rogue.py", "--repeat", 100, "--number", 1, "--sleep", 0.05, "--warm-up-ns", 10_000_000)]
    assert loose.run(jobs, "--users", 2, "--budget", "1s").returncode == 0
    for record in loose.records():
        made = len(record["observations"])
        assert 7 <= made <= 30
        assert (record["repeat"], record["given"]["repeat"], record["statistics"]["n"]) == (made, 100, made - 5)
        assert record["rendezvous"]["overlap"] >= 0.99
        assert "cut nothing. They were ended after" in rules(record)["budget"]["sentence"]


def test_a_batch_longer_than_the_budget_is_one_observation_and_a_finding(loose: Suites) -> None:
    jobs = [job("rogue.py", "--repeat", 9, "--number", 3, "--sleep", 1)]
    assert loose.run(jobs, "--users", 1, "--budget", "0.5").returncode == 0
    (record,) = loose.records()
    assert (record["asked"], record["given"]) == (
        {"number": 3, "repeat": 9, "skip": 3},
        {"number": 1, "repeat": 1, "skip": 0},
    )
    assert (len(record["observations"]), record["statistics"]["n"]) == (1, 1)
    assert rules(record)["budget"]["severity"] == "warning"
    assert "1 of 27 batches. One batch alone took 1." in rules(record)["budget"]["sentence"]
    assert rules(record)["few_observations"]["remedy"].startswith("Use a larger --budget")


def test_a_budget_that_is_no_limit_changes_nothing(loose: Suites) -> None:
    assert loose.run([job()], "--users", 2, "--budget", "1h").returncode == 0
    for record in loose.records():
        assert record["asked"] == record["given"] == {"number": 5, "repeat": 6, "skip": 2}
        assert "budget" not in rules(record)


def test_enough_ends_all_tenants_before_their_last_observation(loose: Suites) -> None:
    """Rates of a sleeping tenant are within a half of their median at the first look."""
    jobs = [job("rogue.py", "--repeat", 400, "--number", 1, "--sleep", 0.05)]
    assert loose.run(jobs, "--users", 2, "--until-interval", "50%").returncode == 0
    for record in loose.records():
        made = len(record["observations"])
        assert 5 + 6 <= made < 60
        assert (record["repeat"], record["given"]["repeat"], record["skip"]) == (made, 400, 5)
        assert record["statistics"]["n"] == made - 5
        assert record["rendezvous"]["overlap"] >= 0.99
        assert record["isolation"]["policies"]["until_interval"] == 0.5
        assert rules(record)["until_interval"]["severity"] == "warning"
        assert f"ended them after {made} of 400" in rules(record)["until_interval"]["sentence"]


def test_who_knows_no_enough_makes_all_observations(loose: Suites) -> None:
    jobs = [job("rogue.py", "--repeat", 60, "--number", 1, "--sleep", 0.05, "--deaf", "--who", 0)]
    assert loose.run(jobs, "--users", 2, "--until-interval", "0.5").returncode == 0
    deaf, told = loose.records()
    assert len(told["observations"]) < len(deaf["observations"]) == 60
    assert "did not end its observations before the last of 60." in rules(deaf)["until_interval"]["sentence"]
    assert deaf["rendezvous"]["overlap"] >= 0.99


def test_an_interval_that_is_never_so_narrow_ends_nothing(loose: Suites) -> None:
    assert loose.run([job("sums.py", "--repeat", 12)], "--users", 1, "--until-interval", "0.0000001%").returncode == 0
    (record,) = loose.records()
    assert len(record["observations"]) == 12


def test_done_too_early_stays_nonsense_where_nobody_said_enough(loose: Suites) -> None:
    jobs = [job("rogue.py", "--at", "observed", "--do", "say", "done", args={"--repeat": 6})]
    assert loose.run(jobs, "--users", 1, "--until-interval", "1%").returncode == 1
    assert "done after 2 of 6 observations" in loose.records()[0]["message"]


def test_ranks_stay_in_step_whatever_their_intervals(loose: Suites) -> None:
    jobs = [job("ranks.sh", 2, "--repeat", 12, "--number", 2, group="all")]
    assert loose.run(jobs, "--users", 2, "--until-interval", "90%").returncode == 0
    (record,) = loose.records()
    assert {len(rows) for rows in record["rank_observations"].values()} == {12}
    assert "has no effect here" in rules(record)["until_interval"]["sentence"]


def test_who_is_never_ready_is_told_how_to_give_it_longer(loose: Suites) -> None:
    jobs = [job("rogue.py", "--at", "hello", "--do", "hang")]
    assert loose.run(jobs, "--users", 1, "--ready-timeout", "1s").returncode == 1
    (record,) = loose.records()
    assert record["outcome"] == "timeout"
    assert record["message"] == "It was not ready within 1 s. Give it longer with --ready-timeout."
    assert (record["asked"], record["given"]) == (None, None)
