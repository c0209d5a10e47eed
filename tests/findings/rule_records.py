"""Records of one trait each, for the rules that look at it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from cotenant.findings.rules import findings_of
from cotenant.isolation.choose import OF_V1
from cotenant.results.record import Blocks, Observed, Record, SharedDevice
from cotenant.stats.budget import Amount
from cotenant.stats.kept import Kept, Spent
from results.made import ARGUMENTS, ISOLATION, T0_NS, a_part, a_record, observed, steady

Made = Callable[[], Record]


def changed(record: Record, **changes: Any) -> Record:
    """Return the record with these changes, and with the findings that follow."""
    other = replace(record, **changes | {"findings": []})
    return replace(other, findings=findings_of(other))


def shared(record: Record) -> Record:
    """Return the record as of a tenant that shares its processors with another."""
    return changed(record, sharers=2)


def on_one_device(record: Record, mode: str) -> Record:
    """Return the record as of a tenant that shares its device with another."""
    return changed(record, share=SharedDevice(mode, mode, 2, None, None, "", None))


def among_pairs(record: Record) -> Record:
    """Return the record as of a tenant of a pair in a launch of six tenants."""
    return changed(record, blocks=Blocks(9, 41, 0, "freezer", 500_000, 3_000_000, residents=6))


def metered(**meters: Any) -> Record:
    return a_record(common={"meters": meters})


def seen(**observed: Any) -> Record:
    return a_record(told={"part": a_part(observed=observed)})


def in_precision(precision: str, **observed: Any) -> Record:
    """A record of a tenant that was asked for a precision, and was observed."""
    return a_record(told={"part": a_part(arguments=ARGUMENTS | {"precision": precision}, observed=observed)})


def with_events(factor: float, more: int = 0) -> Record:
    rows = [replace(one, event_ns=round((one.end_ns - one.start_ns) * factor) + more) for one in steady()]
    return a_record(told={"observations": rows})


def issued(lead: float) -> Record:
    """A record whose host is ahead of its device by this part of a batch at the end of every observation."""
    number = ARGUMENTS["number"]
    rows = [replace(row, issued_ns=row.end_ns - round((row.end_ns - row.start_ns) / number * lead)) for row in steady()]
    return a_record(told={"observations": rows})


def mixed(products: object) -> Record:
    """A record in bf16 whose step had matrix products of these dtypes."""
    return in_precision("bf16", dtype="bf16", products=products)


def inside(share: float) -> Record:
    """A record with this share of its kept time inside the common load."""
    kept = observed([1000.0] * 6)
    total_ns = sum(one.end_ns - one.start_ns for one in kept)
    return a_record(
        told={"observations": kept, "skip": 0},
        common={"load": (T0_NS, kept[-1].end_ns - round((1 - share) * total_ns))},
    )


def working(*tenants: tuple[float, float, float, float], foreign: float = 0.0) -> Record:
    """A record of a launch with the fields of `WorkBeside` for each tenant: own, beside, beside_s and observed_s.

    Other work kept `foreign` of two processors busy.
    """
    names = ("own", "beside", "beside_s", "observed_s")
    seen = [{"tenant": at, "by": "processors"} | dict(zip(names, of, strict=True)) for at, of in enumerate(tenants)]
    return metered(**beside(foreign, total=2).meters | {"beside": seen})


def unenforced(*names: str) -> Record:
    return a_record(place={"isolation": type(ISOLATION)("affinity", {}, {}, {}, list(names))})


def durations(*durations_ms: float, **told: Any) -> Record:
    return a_record(told={"observations": observed(durations_ms), "skip": 0, **told})


def on_host(**changes: Any) -> Record:
    """A record of a launch on a quiet host, with these changes to the host's meters."""
    quiet: dict[str, Any] = {"stolen_share": 0.0, "processor_throttles": None, "devices": []}
    quiet |= dict.fromkeys(("swapped_in_bytes", "swapped_out_bytes", "memory_kills_outside"), 0)
    return metered(host=quiet | changes)


def refused(times: int | None) -> Record:
    """A record of a tenant whose slice refused `times` forks."""
    return a_record(place={"isolation": replace(ISOLATION, counters={"pids_refused": times})})


def slowed(power_ns: int | None, thermal_ns: int | None) -> dict[str, Any]:
    return {"devices": [{"index": 3, "power_ns": power_ns, "thermal_ns": thermal_ns}]}


def beside(busy: float, window_s: float = 12.0, total: int = 8, **changes: Any) -> Record:
    """A record of a launch beside which others kept `busy` of `total` processors at work."""
    foreign = {"processors": busy, "host_processors": total, "busiest": [], **changes}
    return metered(foreign=foreign, sampling={"window_s": window_s})


def computed(flops_per_step: float, **seen: Any) -> Record:
    """A record of half-second observations of 30 steps in fp32 on a T4, whose peak is 8.1 TFLOP/s."""
    part = a_part(gpu="Tesla T4", observed={"dtype": "fp32", "device": "cuda", "flops_per_step": flops_per_step} | seen)
    return a_record(told={"part": part, "observations": observed([500.0] * 20)})


def padded(items: float, words: float, *, item_is_row: bool = False) -> Record:
    """A record whose batch has 75 places for words, `words` of them filled, and counts `items`."""
    return seen(items_per_step=items, words_per_step=words, padding=1 - words / 75, item_is_row=item_is_row)


def sized(after: float, batches: int, before: float = 1.0) -> Record:
    """A record of `batches` batches, an item of which held `after` numbers, and `before` in the warm-up."""
    return seen(size_per_item={"warm_up": before, "observed": after, "batches": batches})


def unmeasured(absent: dict[str, str], uncounted: list[str], outcome: str = "completed") -> Record:
    """A record on v1 without these meters and counters, of which an older kernel lacks `pids_peak`."""
    known = {name: how for name, how in OF_V1.items() if name in uncounted}
    isolation = replace(ISOLATION, uncounted=uncounted, enabled_by=known)
    return a_record({"isolation": isolation}, common={"meters": {"absent": absent}}, outcome=outcome)


def on_devices(
    own: list[str],
    users: dict[str, list[tuple[int, str]]] | None = None,
    slowed: dict[str, dict[str, int] | None] | None = None,
    hidden: dict[str, int] | None = None,
) -> Record:
    """A record of a tenant that has `own` of two devices, with foreign processes and reasons of slowing by device."""
    devices = {
        uuid: {
            "index": index,
            "foreign_processes": [{"pid": pid, "name": name} for pid, name in (users or {}).get(uuid, [])],
            "hidden_processes": (hidden or {}).get(uuid, 0),
            "slowed_samples": (slowed or {}).get(uuid, {}),
        }
        for index, uuid in enumerate(("GPU-a", "GPU-b"))
    }
    isolation = replace(ISOLATION, planned={"accelerators": own})
    return a_record(place={"isolation": isolation}, common={"meters": {"devices": devices}})


def computing_on(uuid: str, own: list[str]) -> Record:
    """A record of a tenant that has `own` of two devices and two instances, and whose torch reports `uuid`."""
    isolation = replace(ISOLATION, planned={"accelerators": own})
    indexes = {"GPU-a": 0, "GPU-b": 1, "MIG-1": 2, "MIG-2": 2}
    devices = [{"uuid": name, "index": index, "name": "V100"} for name, index in indexes.items()]
    machine = {"model_name": "Some Processor", "accelerators": devices}
    part = a_part(observed={"dtype": "fp32", "device": "cuda:0", "device_share": {"uuid": uuid}})
    return a_record(place={"isolation": isolation, "machine": machine, "devices": len(own)}, told={"part": part})


def shared_by(asked: str, seen: str) -> Record:
    return a_record(place={"share": SharedDevice(asked, seen, 4, 0.25, 1 << 30, "", None)})


def scaled(efficiency: float) -> Record:
    return metered(scaling={"devices": 8, "efficiency": efficiency})


def owning(devices: int, ranks: int, *words: str, group: str = "all", **seen: Any) -> Record:
    """A record of a tenant of `ranks` ranks, whose slice has `devices` devices."""
    isolation = replace(ISOLATION, planned={"accelerators": [f"GPU-{index}" for index in range(devices)]})
    vcd = ",".join(map(str, range(devices)))
    command = ["run.sh", *words]
    place = {"group": group, "devices": devices, "vcd": vcd, "command": command, "isolation": isolation}
    part = a_part(observed={"dtype": "fp32", "device": "cuda:0", "world_size": ranks} | seen)
    return a_record(place=place, told={"part": part})


def numbers(durations_ms: Sequence[float], waits_ms: Sequence[float] = (), **seen: Any) -> Record:
    """A record of kept observations with these durations and these waits for data."""
    rows = observed(durations_ms)
    waits = [*waits_ms, *[0.0] * (len(rows) - len(waits_ms))]
    rows = [replace(one, data_wait_ns=round(wait * 1e6)) for one, wait in zip(rows, waits, strict=True)]
    part = a_part(observed={"dtype": "fp32", "device": "cpu"} | seen)
    return a_record(told={"observations": rows, "skip": 0, "part": part})


def with_skipped(skipped_ms: Sequence[float], kept_ms: Sequence[float]) -> Record:
    """A record whose first observations, which are skipped, took so long, and the kept ones so long."""
    return a_record(told={"observations": observed([*skipped_ms, *kept_ms]), "skip": len(skipped_ms)})


def wobbling(n: int = 20) -> list[float]:
    """Durations around half a second without a trend."""
    return [500 + (i * 7) % 11 - 5 for i in range(n)]


def trained(expected: object, ran: object) -> Record:
    return seen(updates_credited=expected, updates=ran)


def scaled_by(updates: object, skipped: object) -> Record:
    return in_precision("fp16", dtype="fp16", updates_scaled=updates, updates_skipped=skipped)


def rows_of(items: float, item_is_row: bool = True, first: int | None = None) -> Record:
    part = a_part(observed={"dtype": "fp32", "item_is_row": item_is_row, "rows": first})
    return a_record(told={"observations": observed([500.0] * 20, items), "part": part})


def warmed_up(*warm_up_ns: int, duration_ms: float = 500.0, last_ms: float | None = None, **arguments: Any) -> Record:
    part, durations_ms = a_part(arguments=ARGUMENTS | arguments), [duration_ms] * 19 + [last_ms or duration_ms]
    return a_record(told={"observations": observed(durations_ms), "warm_up_ns": list(warm_up_ns), "part": part})


def seeded(asked: str, seen: object) -> Record:
    part = a_part(arguments=ARGUMENTS | {"seed": seen})
    return a_record(place={"command": ["run.sh", "--seed", "1", "--seed", asked]}, told={"part": part})


def with_pauses(pause_ms: float) -> Record:
    """A record of observations of a tenth of a second with pauses between them."""
    starts = [T0_NS + round(index * (100 + pause_ms) * 1e6) for index in range(20)]
    rows = [Observed(start_ns, start_ns + 100_000_000, 3840, 0) for start_ns in starts]
    return a_record(told={"observations": rows})


def with_one_pause(pause_ms: float) -> Record:
    """A record of observations of a hundredth of a second, one after the other but for one pause."""
    starts = [T0_NS + round((index * 10 + (pause_ms if index > 12 else 0)) * 1e6) for index in range(20)]
    return a_record(told={"observations": [Observed(start_ns, start_ns + 10_000_000, 384, 0) for start_ns in starts]})


def audit_part(differences: object, after: object = 20, cost_ns: object = 10**9) -> dict[str, Any]:
    audit = {"differences": differences, "after": [after], "cost_ns": [cost_ns]}
    return a_part(observed={"dtype": "fp32", "audit": audit})


def audited(differences: object, after: object = 20, cost_ns: object = 10**9, pause_ms: float = 0.0) -> Record:
    """A record of twenty observations with pauses, and of an audit step after `after` of them."""
    return a_record(
        told={"observations": with_pauses(pause_ms).observations, "part": audit_part(differences, after, cost_ns)}
    )


def budgeted(
    budget_s: float, asked: Amount, given: Amount, each_ms: float, baseline: str | None = None, **more: Any
) -> Record:
    """A record of a launch with this budget, of observations of `each_ms`."""
    isolation = replace(ISOLATION, policies={"budget_s": budget_s})
    rows = observed([each_ms] * given.repeat)
    told = {"observations": rows, "asked": asked, "given": given, "skip": given.skip, **more}
    return a_record(place={"isolation": isolation, "baseline": baseline}, told=told)


def until(share: float, made: int, repeat: int, budget_s: float | None = None, **more: Any) -> Record:
    """A record with `made` of `repeat` observations of a launch that was to end at an interval of `share`."""
    policies = {"until_interval": share} | ({} if budget_s is None else {"budget_s": budget_s})
    isolation = replace(ISOLATION, policies=policies)
    amount = Amount(30, repeat, 5)
    told = {"observations": observed([100.0] * made), "asked": amount, "given": amount, **more}
    return a_record(place={"isolation": isolation}, told=told)


def counting(items: list[float]) -> Record:
    """A record whose observations count these items."""
    made = [replace(row, items=count) for row, count in zip(observed([1000.0] * len(items)), items, strict=True)]
    return a_record(told={"observations": made, "skip": 0})


def by_blocks(together: float = 1.0, alone: float = 1.0, rest: float = 0.0, kept: float = 0.9, **more: Any) -> Record:
    """A record of a launch by blocks, with the number of processors that its slice used in blocks of each kind.

    Blocks of a kind lasted 1 s, or `lasted_s`, where 20 observations took 10 s; `starts` are those of a command. An
    observation across a border holds the rest and a pause of `pause_s`, if there is one. `rested_ns` of a processor are
    used at rest beside `rest`.
    """
    lasted_ns = round(more.pop("lasted_s", 1.0) * 1e9)
    loads = {"all": together, "only": alone, "rest": rest}
    spent = {kind: Spent(round(load * lasted_ns), lasted_ns) for kind, load in loads.items()}
    spent["rest"].processor_ns += more.pop("rested_ns", 0)
    sharers, starts, pause_s = more.pop("sharers", 1), more.pop("starts", 1), more.pop("pause_s", 0)
    blocks = Blocks(9, 41, more.pop("void", 0), "freezer", 500_000, 3_000_000, spent, **more)
    rows = [replace(row, block=index // 5, kept=True) for index, row in enumerate(steady()[5:])]
    if pause_s:
        across_ns, end_ns = round((0.5 + pause_s) * 1e9) + lasted_ns, rows[-1].end_ns
        rows.append(replace(rows[-1], start_ns=end_ns, end_ns=end_ns + across_ns, block=None, kind="", kept=False))
    part = a_part()
    part["observed"] |= {"starts": starts}
    told = {"observations": rows, "skip": 0, "blocks": blocks, "kept": Kept(kept, (0.8, 1.0), 9), "part": part}
    return a_record({"sharers": sharers}, told)
