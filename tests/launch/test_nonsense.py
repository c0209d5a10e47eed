"""Tenants that speak nonsense, as launches of one suite: they fail, with a sentence, and their neighbours do not."""

import pytest

from tenants.garbage import GARBAGE
from tenants.suites import ByJob, Suites, job

LATE = ["not-json", "hello-again", "go", "observation"]
FLOODS = {"done": ("say-for-ever", "done"), "unknown": ("say-for-ever", "unknown"), "endless": ("endless-line",)}


def rogue(name: str, place: str, *deed: str | int) -> dict[str, object]:
    return job("rogue.py", "--who", 0, "--at", place, "--do", *deed, name=name, args={"--repeat": 6})


@pytest.fixture(scope="module")
def spoken(shared: Suites) -> ByJob:
    jobs = [
        *(rogue(f"early-{words}", "hello", "say", words) for words in GARBAGE),
        *(rogue(f"late-{words}", "observed", "say", words) for words in [*LATE, "done"]),
        *(rogue(f"flood-early-{name}", "hello", *deed) for name, deed in FLOODS.items()),
        *(rogue(f"flood-late-{name}", "go", *deed) for name, deed in FLOODS.items()),
        rogue("connections", "hello", "connections", 300),
        rogue("twice", "hello", "twice"),
        rogue("hangs-up", "observed", "hang-up"),
        job("rogue.py", "--who", 0, "--as-tenant", 1, name="as-another"),
    ]
    assert shared.run(jobs, "--users", 2, limit_s=180).returncode == 1
    return shared.by_job()


def test_nonsense_fails_its_tenant_and_after_go_leaves_the_neighbour_its_record(spoken: ByJob) -> None:
    for name, records in spoken.items():
        late = "late" in name or name == "hangs-up"
        outcomes = [record["outcome"] for record in records]
        assert outcomes == ["failed", "completed" if late else "aborted"], name
        if name.startswith(("early-", "late-")):
            assert "does not speak the protocol" in records[0]["message"], name


def test_the_sentence_names_what_was_wrong(spoken: ByJob) -> None:
    for name, words in {
        "late-done": "done after 2 of 6 observations",
        "connections": "connections without a hello",
        "twice": "a second hello as rank 0",
        "as-another": "hello as tenant 1, which it is not",
        "hangs-up": "left the rendezvous before its record",
    }.items():
        assert words in spoken[name][0]["message"], name
