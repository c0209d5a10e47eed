"""Effects of the host on a launch: unenforced limits, other work, swapping, memory, and missing meters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from cotenant.finding import Finding, info, warning
from cotenant.findings import record_rule
from cotenant.results.record import Record
from cotenant.text import many

MOST_RUNNER, MOST_STOLEN, MOST_SWAPPED_BYTES = 0.01, 0.01, 1 << 20
MOST_OF_ALL, MOST_OF_ONE = 0.01, 0.1
LEAST_WINDOW_S = 1.0
"""The kernel counts in ticks of 10 ms: in a shorter time others may have as much time as in this one."""


@record_rule
def not_enforced(record: Record) -> Finding | None:
    """A slice with limits that the kernel did not enforce."""
    isolation = record.isolation
    return unenforced_limits(isolation.backend, isolation.unenforced) if isolation.unenforced else None


def unenforced_limits(backend: str, limits: Sequence[str]) -> Finding:
    """Return the finding on a backend that does not enforce these limits, also for `doctor`."""
    return warning(
        f"These limits of the slice are not enforced (isolation: {backend}): {', '.join(limits)}.",
        "Run where cgroups are writable, or demand it with --isolation require.",
        rule="not_enforced",
    )


def _of_slice(processors: float, record: Record) -> float:
    """Return the most that a tenant can have lacked of its own processors, as a share, if others had this many."""
    return min(1.0, processors / (len(record.isolation.planned.get("processors", ())) or 1))


@record_rule
def runner_share(record: Record) -> Finding | None:
    """The runner itself must not disturb the tenants that it measures."""
    share = record.meters.get("runner_processor_share")
    if share is None or share < MOST_RUNNER:
        return None
    return warning(
        f"The runner used {100 * share:.1f} % of a processor while users were timed.",
        "Make observations longer (--number): each one sends the runner a message.",
        value=share,
        effect=_of_slice(share, record),
    )


@record_rule
def shm_kept(record: Record) -> Finding | None:
    """Files that appeared in /dev/shm, from an unknown process, take room from the next launch."""
    leftover = record.meters.get("shm_kept")
    if leftover is None:
        return None
    return warning(
        f"{leftover['files']} files ({leftover['memory_bytes'] / 2**20:.1f} MiB) that appeared in /dev/shm during this "
        "launch are still there: nothing shows that its users made them.",
        "Remove those of benchmarks (ls -lt /dev/shm shows the owners): the next launch finds less memory.",
        value=float(leftover["memory_bytes"]),
        effect=0.0,
    )


@record_rule
def swapped(record: Record) -> Finding | None:
    """Swapping during a launch: memory was read from a disk while tenants were timed."""
    host = record.meters.get("host")
    if host is None or host["swapped_in_bytes"] + host["swapped_out_bytes"] <= MOST_SWAPPED_BYTES:
        return None
    into, out = host["swapped_in_bytes"] / 2**20, host["swapped_out_bytes"] / 2**20
    return warning(
        f"During this launch the host swapped {into:.0f} MiB in and {out:.0f} MiB out.",
        "Switch swap off (swapoff -a), or keep more memory back with --reserve.",
    )


@record_rule
def stolen(record: Record) -> Finding | None:
    """Processor time that the hypervisor of a virtual machine gave to others during a launch."""
    host = record.meters.get("host")
    if host is None or host["stolen_share"] <= MOST_STOLEN:
        return None
    return warning(
        f"During this launch the hypervisor took {100 * host['stolen_share']:.1f} % of processor time (steal).",
        "Use an instance with dedicated processors, or repeat at another hour.",
        value=host["stolen_share"],
        effect=host["stolen_share"],
    )


@record_rule
def memory_kills(record: Record) -> Finding | None:
    """Processes killed for memory outside of the slices: a full host squeezes all page cache."""
    host = record.meters.get("host")
    if host is None or not host["memory_kills_outside"]:
        return None
    return warning(
        f"During this launch the kernel killed {many(host['memory_kills_outside'], 'process')} outside of the "
        "slices for memory.",
        "Keep more memory back with --reserve, and see the kernel's log for what was killed.",
    )


@record_rule
def processes_refused(record: Record) -> Finding | None:
    """New processes and threads that a limit refused: workers that a tenant asked for may never have run."""
    refused = record.isolation.counters.get("pids_refused")
    if not refused:
        return None
    return warning(
        f"A limit on processes refused this user a new process or thread {many(refused, 'time')}.",
        "Ask for fewer workers and threads, or raise the runner's own limit: ulimit -u, TasksMax, pids.max.",
    )


UNCAUGHT = (
    "Most of it could not be attributed: processes that ended meanwhile and were not waited for, many small ones, or "
    "interrupts."
)
LOOK_FOR = "Find the program that starts processes or moves data here (top, execsnoop, /proc/interrupts), and end it."


@record_rule
def foreign_load(record: Record) -> Finding | None:
    """Processors that worked for others while tenants were timed: spinning threads slow a tenant many times over."""
    if not kept_busy(record):
        return None
    foreign = record.meters["foreign"]
    busy, total = foreign["processors"], foreign["host_processors"]
    busiest = ", ".join(
        f"{user['name']} (pid {user['pid']}, {100 * user['share']:.0f} %)" for user in foreign["busiest"]
    )
    names = f": {busiest}" if busiest else ""
    caught = sum(user["share"] for user in foreign["busiest"])
    uncaught = "" if caught >= busy / 2 else f" {UNCAUGHT}"
    return warning(
        f"While users were timed other work kept {busy_of(busy, total)} of {total} processors busy{names}.{uncaught}",
        "End it, or wait for it, and run the job again: it took processor time from the users."
        if busiest
        else f"{LOOK_FOR} Then run the job again: it took processor time from the users.",
        value=busy,
        effect=_of_slice(busy, record),
    )


@record_rule
def load_unread(record: Record) -> Finding | None:
    """Other work that could not be seen: a launch is not clean because nobody looked."""
    sampling = record.meters.get("sampling")
    if sampling is None or unnoticed(record) is not None:
        return None
    hidden = "foreign" in (record.meters.get("absent") or {})
    why = "this host hides /proc/stat" if hidden else f"{sampling['window_s']:.2g} s hold too few of the kernel's ticks"
    return warning(
        f"How busy other work kept the processors while users were timed could not be read: {why}.",
        "Run where /proc/stat can be read." if hidden else "Measure for a second or longer (--number, --repeat).",
        value=sampling["window_s"],
    )


def kept_busy(record: Record) -> bool:
    """Return whether others were seen to work on more processors than is tolerated."""
    most = unnoticed(record)
    return most is not None and bool(record.meters["foreign"]["processors"] > most)


def unnoticed(record: Record) -> float | None:
    """Return the number of processors that others may have kept busy without a finding; None if their load is unknown.

    In a short launch they may have the time that is tolerated in a second.
    """
    foreign, sampling = record.meters.get("foreign"), record.meters.get("sampling")
    if not foreign or not sampling:
        return None
    most = tolerated(foreign["host_processors"]) * max(1.0, LEAST_WINDOW_S / sampling["window_s"])
    return most if most < foreign["host_processors"] else None


def tolerated(processors: int) -> float:
    """Return the number of processors that others may keep busy: 0.1, as on any system, or 1 % of a large machine.

    `doctor` asks by the same measure beforehand.
    """
    return max(MOST_OF_ONE, MOST_OF_ALL * processors)


def busy_of(busy: float, processors: int) -> str:
    """Return `1.2`, or `120`: at most all processors, even if more threads want to run."""
    busy = min(busy, processors)
    return f"{busy:.2g}" if busy < 10 else f"{busy:.0f}"


@record_rule
def meters_absent(record: Record) -> Finding | None:
    """Meters and counters of the slice that this host does not have."""
    isolation = record.isolation
    enabled_by = {name: isolation.enabled_by[name] for name in isolation.uncounted if name in isolation.enabled_by}
    absent = record.meters.get("absent") or {}
    enabled_by |= {name: how for name, how in absent.items() if name != "foreign"}  # `load_unread` says so
    names = sorted({*enabled_by, *isolation.uncounted})
    if not record.completed or not names:
        return None
    alike: dict[str, list[str]] = defaultdict(list)
    for name, how in sorted(enabled_by.items()):
        alike[how].append(name)
    needed = "; ".join(f"{how} ({', '.join(enabled)})" for how, enabled in alike.items())
    return info(
        f"Not measured in this launch: {', '.join(names)}.",
        f"They would need {needed}." if needed else "",
    )
