"""Tenants that speak nonsense, as launches of one suite: they fail, with a sentence, and their neighbours do not."""

import pytest

from tenants.garbage import GARBAGE
from tenants.suites import ByJob, Suites, errors, job, rogue

LATE = ["not-json", "hello-again", "go", "observation"]
FLOODS = {"done": ("say-for-ever", "done"), "unknown": ("say-for-ever", "unknown"), "endless": ("endless-line",)}


@pytest.fixture(scope="module")
def spoken(shared: Suites) -> ByJob:
    jobs = [
        *(rogue(f"early-{words}", "hello", "say", words) for words in GARBAGE),
        *(rogue(f"late-{words}", "observed", "say", words) for words in [*LATE, "done"]),
        *(rogue(f"flood-early-{name}", "hello", *deed) for name, deed in FLOODS.items()),
        *(rogue(f"flood-late-{name}", "go", *deed) for name, deed in FLOODS.items()),
        rogue("connections", "hello", "connections", 600),
        rogue("twice", "hello", "twice"),
        rogue("hangs-up", "observed", "hang-up"),
        job("rogue.py", "--who", 0, "--as-tenant", 1, name="as-another"),
    ]
    shared.run(jobs, "--users", 2, status=1)
    return shared.by_job()


@pytest.mark.slow
def test_nonsense_fails_its_tenant_not_a_measured_neighbour(spoken: ByJob) -> None:
    for name, records in spoken.items():
        late = "late" in name or name == "hangs-up"
        expected = ["completed", "completed"] if name == "twice" else ["failed", "completed" if late else "aborted"]
        assert [record["outcome"] for record in records] == expected, name
        if name.startswith(("early-", "late-")):
            assert "does not speak the protocol" in records[0]["message"], name


@pytest.mark.slow
def test_the_sentence_names_what_was_wrong(spoken: ByJob) -> None:
    for name, words in {
        "late-done": "done after 2 of 6 observations",
        "connections": "connections",
        "as-another": "hello as user 1, which it is not",
        "hangs-up": "left the rendezvous before its record",
    }.items():
        assert words in spoken[name][0]["message"], name


INVENTED = {
    "items": "different_items",
    "rate": "impossible_rate",
    "nanosecond": "pace",
    "at-the-end": "late_observations",
    **dict.fromkeys(WAITS := ("negative-wait", "long-wait"), "impossible_wait"),
}
"""Invented values of a tenant, each with the error that it causes."""


@pytest.mark.parametrize(
    "invented", [["items", "at-the-end"], pytest.param(["rate", "nanosecond", *WAITS], marks=pytest.mark.slow)]
)
def test_invented_observations_invalidate_only_their_own_record(invented: list[str], loose: Suites) -> None:
    jobs = [
        job("rogue.py", "--who", 0, "--invent", what, "--sleep", sleep_s, name=what, args={"--repeat": repeat})
        for what in invented
        # To be late an observation has to end a second and more before the last one.
        for sleep_s, repeat in [(0.05, 7) if what == "at-the-end" else (0.001, 14)]
    ]
    loose.run(jobs, "--users", 2, status=0)
    for name, records in loose.by_job().items():
        assert INVENTED[name] in errors(records[0]), name
        assert errors(records[1]) <= {"different_items"}, name


@pytest.mark.parametrize("suites", [pytest.param("loose", marks=pytest.mark.slow), "v1"], indirect=True)
def test_who_stands_between_a_neighbour_and_its_socket_is_seen(suites: Suites) -> None:
    suites.run([rogue("job", "start", "stand-between", "t1", "--others-late", 1)], "--users", 2, status=1)
    failed, aborted = suites.records()
    assert (failed["outcome"], aborted["outcome"]) == ("failed", "aborted")
    assert "has connected to the socket of user 1" in failed["message"]
