"""Tenants that speak nonsense: they fail, with a sentence, and their neighbours do not suffer."""

import pytest

from tenants.garbage import GARBAGE
from tenants.suites import Suites, job

EARLY = sorted(GARBAGE)
LATE = ["not-json", "hello-again", "go", "observation"]


def rogue(place: str, *deed: str | int) -> list[dict[str, object]]:
    return [job("rogue.py", "--who", 0, "--at", place, "--do", *deed, args={"--repeat": 6})]


@pytest.mark.parametrize("words", EARLY)
def test_nonsense_before_go_fails_its_tenant(loose: Suites, words: str) -> None:
    assert loose.run(rogue("hello", "say", words), "--users", 2).returncode == 1
    assert loose.outcomes() == ["failed", "aborted"]
    assert "does not speak the protocol" in loose.records()[0]["message"]


@pytest.mark.parametrize("words", LATE)
def test_nonsense_after_go_leaves_the_neighbour_its_record(loose: Suites, words: str) -> None:
    assert loose.run(rogue("observed", "say", words), "--users", 2).returncode == 1
    assert loose.outcomes() == ["failed", "completed"]
    assert "does not speak the protocol" in loose.records()[0]["message"]


def test_done_before_the_last_observation_is_nonsense(loose: Suites) -> None:
    assert loose.run(rogue("observed", "say", "done"), "--users", 1).returncode == 1
    assert "done after 2 of 6 observations" in loose.records()[0]["message"]


@pytest.mark.parametrize("deed", [("say-for-ever", "done"), ("say-for-ever", "unknown"), ("endless-line",)])
@pytest.mark.parametrize("place", ["hello", "go"])
def test_a_flood_ends_in_its_own_tenant(loose: Suites, deed: tuple[str, ...], place: str) -> None:
    assert loose.run(rogue(place, *deed), "--users", 2, limit_s=40).returncode == 1
    assert loose.outcomes() == ["failed", "aborted" if place == "hello" else "completed"]


def test_connections_without_a_word_end_in_their_own_tenant(loose: Suites) -> None:
    assert loose.run(rogue("hello", "connections", 300), "--users", 2, limit_s=40).returncode == 1
    assert loose.outcomes() == ["failed", "aborted"]
    assert "connections without a hello" in loose.records()[0]["message"]


def test_a_second_hello_of_one_rank_is_refused_by_name(loose: Suites) -> None:
    assert loose.run(rogue("hello", "twice"), "--users", 2, limit_s=40).returncode == 1
    assert loose.outcomes() == ["failed", "aborted"]
    assert "a second hello as rank 0" in loose.records()[0]["message"]


def test_nobody_speaks_under_another_tenants_number(loose: Suites) -> None:
    jobs = [job("rogue.py", "--who", 0, "--as-tenant", 1)]
    assert loose.run(jobs, "--users", 2).returncode == 1
    assert loose.outcomes() == ["failed", "aborted"]
    assert "hello as tenant 1, which it is not" in loose.records()[0]["message"]


def test_a_process_that_hangs_up_and_lives_on_is_ended(loose: Suites) -> None:
    assert loose.run(rogue("observed", "hang-up"), "--users", 2, limit_s=40).returncode == 1
    assert loose.outcomes() == ["failed", "completed"]
    assert "left the rendezvous before its record" in loose.records()[0]["message"]
