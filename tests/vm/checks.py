"""Checks of a suite that ran in the virtual machine. Each yields the differences that it found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from guest import Suite

from cotenant.isolation.slices import PEAK_ROOM
from cotenant.procfs import parse_list

Check = Callable[[Suite], Iterator[str]]
CORES = [[0, 1], [2, 3]]
"""The machine's two physical cores, one on each node: a slice each."""
UNHELD = ["nodes", "memory", "swap", "pids"]
"""The resources that affinity alone does not limit."""
EAGAIN = 11


def sliced(
    backend: str, processors: list[list[int]] = CORES, ended: tuple[str, ...] = ("completed", "completed")
) -> Check:
    """Every tenant was in the slice that was planned: by the record, by the kernel's files, by its own eyes."""

    def check(suite: Suite) -> Iterator[str]:
        yield from _equal("exit status", suite.status, int(set(ended) != {"completed"}))
        yield from seen_in_slices(suite, processors)
        records, notes = suite.records(), suite.notes()
        yield from _equal("records", [record["outcome"] for record in records], list(ended))
        for record, note in zip(records, notes, strict=False):
            isolation = record["isolation"]
            planned, back = isolation["planned"], isolation["read_back"]
            yield from _equal("backend", isolation["backend"], backend)
            yield from _equal("unenforced", isolation["unenforced"], [])
            for what in ("processors", "nodes", "memory_bytes"):
                yield from _equal(f"{what} read back", back[what], planned[what])
            yield from _equal("memory.max", note["files"]["memory.max"], str(planned["memory_bytes"]))
            changed = [found["sentence"] for found in record["findings"] if found["rule"] == "slice_changed"]
            yield from _equal("changes of a slice", changed, [])

    return check


def seen_in_slices(suite: Suite, processors: list[list[int]] = CORES) -> Iterator[str]:
    """The limits that the tenants themselves found in their cgroups: their core, its node, and limits."""
    notes = suite.notes()
    yield from _equal("what users saw", [note["processors"] for note in notes], processors)
    for note in notes:
        files = {name: text or "" for name, text in note["files"].items()}
        yield from _equal("cpuset.cpus.effective", [*parse_list(files["cpuset.cpus.effective"])], note["processors"])
        yield from _equal("cpuset.mems.effective", files["cpuset.mems.effective"], str(note["processors"][0] // 2))
        yield from _equal("memory.swap.max", files["memory.swap.max"], "0")
        for name in ("memory.max", "pids.max"):
            yield from _equal(f"a number in {name}", files[name].isdecimal(), True)


def seen_on_cores(suite: Suite) -> Iterator[str]:
    """Tenants without cgroups: each found itself on its core."""
    yield from _equal("what users saw", [note["processors"] for note in suite.notes()], CORES)


def hog_died_alone(backend: str) -> Check:
    """Tenant 0 took more than its memory; its neighbour finished."""

    def check(suite: Suite) -> Iterator[str]:
        yield from sliced(backend, ended=("out_of_memory", "completed"))(suite)
        for record in suite.records():
            counted = record["isolation"]["counters"]
            yield from _equal("processes killed for memory", (counted["oom_kills"] or 0) > 0, record["tenant"] == 0)
            held = (counted["memory_peak_bytes"] or 0) <= PEAK_ROOM * _memory(record)
            yield from _equal("peak within the slice", held, True)

    return check


def bomb_was_stopped(backend: str) -> Check:
    """Tenant 0 was refused a process at its own slice's limit; its neighbour never noticed."""

    def check(suite: Suite) -> Iterator[str]:
        yield from sliced(backend)(suite)
        limit = int(suite.notes()[0]["files"]["pids.max"])
        for bomb in suite.notes("bomb"):
            yield from _equal("the bomb's last fork", bomb["errno"], EAGAIN)
            if not 0.9 * limit <= bomb["made"] < limit:
                yield f"the bomb made {bomb['made']} processes, the slice's limit is {limit}"
        yield from _equal("bombs", len(suite.notes("bomb")), 1)

    return check


def refused(status: int, *said: str) -> Check:
    """Nothing ran; the remedy was printed."""

    def check(suite: Suite) -> Iterator[str]:
        yield from _equal("exit status", suite.status, status)
        yield from _equal("tenants", suite.notes(), [])
        for words in said:
            if words not in suite.said:
                yield f"'{words}' was not said"

    return check


def ended_well(*said: str, statuses: tuple[int, ...] = (0,)) -> Check:
    """It ended with one of these statuses, and said this."""

    def check(suite: Suite) -> Iterator[str]:
        yield from _equal(f"exit status {suite.status} is expected", suite.status in statuses, True)
        yield from (f"'{words}' was not said" for words in said if words not in suite.said)

    return check


def degraded(*said: str) -> Check:
    """It ran without cgroups, and every record says so and why."""

    def check(suite: Suite) -> Iterator[str]:
        yield from _less(suite, "affinity", UNHELD, said)

    return check


def in_part(*said: str) -> Check:
    """The kernel holds the delegated limits; processors are bound by affinity, and every record says so and why."""

    def check(suite: Suite) -> Iterator[str]:
        yield from _less(suite, "v2", ["processors", "nodes"], said)
        for record, note in zip(suite.records(), suite.notes(), strict=True):
            yield from _equal("memory.max", note["files"]["memory.max"], str(_memory(record)))

    return check


def _less(suite: Suite, backend: str, unenforced: list[str], said: tuple[str, ...]) -> Iterator[str]:
    yield from _equal("exit status", suite.status, 0)
    yield from _equal("what users saw", [note["processors"] for note in suite.notes()], CORES)
    yield from _on_record(suite, backend, unenforced, said)


def _on_record(suite: Suite, backend: str, unenforced: list[str], said: tuple[str, ...]) -> Iterator[str]:
    """Both records name the backend, the resources that it does not hold, and why there is no better one."""
    yield from _equal("records", len(suite.records()), 2)
    for record in suite.records():
        yield from _equal("backend", record["isolation"]["backend"], backend)
        yield from _equal("unenforced", record["isolation"]["unenforced"], unenforced)
        found = [finding for finding in record["findings"] if finding["rule"] == "degraded"]
        yield from _equal("findings 'degraded'", len(found), 1)
        text = " ".join(finding["sentence"] + finding["remedy"] for finding in found)
        yield from (f"'{words}' is in no finding" for words in said if words not in text)


def within(cgroup: str, processors: list[int], *said: str) -> Check:
    """Nobody left the limits of the cgroup in which the suite was started; records say which were not held, and why."""

    def check(suite: Suite) -> Iterator[str]:
        yield from _equal("exit status", suite.status, 0)
        yield from _equal("tenants", len(suite.notes()), 2)
        for note in suite.notes():
            if not (note["cgroup"] + "/").startswith(f"{cgroup}/") or not set(note["processors"]) <= set(processors):
                yield f"a user was in {note['cgroup']} on {note['processors']}"
        yield from _on_record(suite, "affinity", UNHELD, said)

    return check


def _equal(what: str, got: object, wanted: object) -> Iterator[str]:
    if got != wanted:
        yield f"{what}: {got}, not {wanted}"


def _memory(record: dict[str, Any]) -> int:
    return int(record["isolation"]["planned"]["memory_bytes"])
