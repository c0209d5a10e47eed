"""Records of invented suites as a report reads them."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from msgspec.structs import replace
from rich.console import Console

from cotenant.finding import Finding
from cotenant.report.renderers import as_csv, show, terminal
from cotenant.report.summary import Summary, summarise
from cotenant.report.view import View
from cotenant.results.columns import schema
from cotenant.results.rates import kept_by_blocks
from cotenant.results.read import read_records
from cotenant.results.record import Observed, Record, encode_record
from cotenant.results.table import Rows, Table, table_of_rows
from cotenant.stats.kept import Kept
from results.made import ARGUMENTS, ISOLATION, NOON, T0_NS, a_lost_record, a_part, a_record, observed, steady

FILES = tempfile.TemporaryDirectory()
MADE: dict[str, list[Record]] = {}
"""The launches made so far, by the words that asked for them: most tests want the same few."""
SEEN: dict[str, Any] = {"slowed_samples": None, "foreign_processes": [], "unseen_processes": 0, "hidden_processes": 0}
BUSY = Finding("foreign_load", "warning", "While users were timed other work kept 3 of 8 processors busy.", "End it.")

LEVELS = (25, 50, 75, 100)


def table(records: Sequence[Record | dict[str, Any]]) -> Table:
    """Write records, or their fields, to files that stay until the tests end, and return the table read from them."""
    place = Path(tempfile.mkdtemp(dir=FILES.name))
    for number, record in enumerate(records):
        content = encode_record(record) if isinstance(record, Record) else json.dumps(record).encode()
        (place / f"{number:06}.json").write_bytes(content)
    return read_records([place]).table


def exported(records: Sequence[Record]) -> Table:
    """Return the table that is read back from an export of the records."""
    return table_of_rows(table(records).frame.select(list(schema())).lazy())


def fields_of(record: Record) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.json.decode(encode_record(record))
    return fields


def launch(
    name: str,
    uid: int = 0,
    tenants: int = 2,
    mean_ms: float = 500.0,
    place: dict[str, Any] | None = None,
    part: dict[str, Any] | None = None,
    **common: Any,
) -> list[Record]:
    """A launch of a job: tenant i is 1 % slower than tenant i - 1, launch u 2 % than launch u - 1."""
    asked = repr((name, uid, tenants, mean_ms, place, part, common))
    if asked not in MADE:
        MADE[asked] = _launch(name, uid, tenants, mean_ms, place, part, common)
    return [*MADE[asked]]


def _launch(
    name: str,
    uid: int,
    tenants: int,
    mean_ms: float,
    place: dict[str, Any] | None,
    part: dict[str, Any] | None,
    common: dict[str, Any],
) -> list[Record]:
    started = NOON + timedelta(minutes=uid)
    common = {"started": started, "ended": started + timedelta(seconds=30)} | common
    found = []
    for tenant in range(tenants):
        slower = 1 + 0.01 * tenant + 0.02 * uid
        where = {"name": name, "tenant": tenant, "tenants": tenants, "vcd": str(tenant), "run_id": uid}
        where |= {"run_words": ["run", "--users", str(tenants)]}
        told = {"observations": steady(tenant + uid, mean_ms * slower), "part": part or a_part(item="image")}
        found.append(a_record(where | (place or {}), told, common))
    return found


def solo(name: str, uid: int = 0, tenants: int = 2, mean_ms: float = 450.0, **more: Any) -> list[Record]:
    """Launches of each tenant alone, with the numbers that `launch` gives tenants together."""
    place = {"solo": True, "tenants": 1} | more.pop("place", {})
    return launch(name, uid, tenants, mean_ms, place=place, **more)


def quick(name: str, uid: int = 0, mean_ms: float = 450.0, **more: Any) -> list[Record]:
    """A quick baseline: the first tenant alone, which stands for both."""
    place = {"baseline": "quick", "stands_for": [0, 1]} | more.pop("place", {})
    return solo(name, uid, 1, mean_ms, place=place, **more)


UNSLICED = {"isolation": replace(ISOLATION, backend="none")}


def frame(records: Sequence[Record]) -> pd.DataFrame:
    """The median rate of each tenant of each launch, from the raw observations."""
    rows = []
    for record in records:
        kept = pd.DataFrame([(seen.items, seen.end_ns - seen.start_ns) for seen in record.observations[record.skip :]])
        way = "alone" if record.solo else "unsliced" if record.isolation.backend == "none" else "sliced"
        rate = float((kept[0] / kept[1] * 1e9).median())
        rows.append((record.name, way, record.run_id, record.tenant, rate))
    return pd.DataFrame(rows, columns=["job", "way", "uid", "tenant", "rate"])


def scaling(
    devices: int,
    uid: int = 0,
    batch_size: int = 64,
    mean_ms: float | None = None,
    replicas: int | None = None,
    **arguments: Any,
) -> Record:
    """A launch of one scaling cell: k devices do k times the work of one in a little more time."""
    arguments = ARGUMENTS | {"batch_size": batch_size, "network": "resnet50"} | arguments
    seen = {"dtype": "fp32", "device": "cuda:0", "world_size": devices, "compiled": False}
    seen |= {} if replicas is None else {"replicas": replicas, "parallel": "dp"}
    duration_ms = (500 + 5 * devices if mean_ms is None else mean_ms) * (1 + 0.01 * uid)
    rows = [replace(one, items=one.items * devices) for one in steady(uid, duration_ms)]
    told = {"observations": rows, "part": a_part(item="image", arguments=arguments, observed=seen)}
    machine = {"group": "all", "tenants": 1, "vcd": "0,1,2,3,4,5,6,7", "devices": 8}
    place = {"name": f"scaling.c{devices}", "run_id": uid, "command": ["run.sh", "--devices", str(devices)]}
    return a_record(machine | place, told, {"started": NOON + timedelta(minutes=uid)})


def power(watts: Sequence[float]) -> dict[str, Any]:
    """The meters of a launch, with the mean power of each device."""
    devices = {
        f"GPU-{index}": SEEN | {"index": index, "power_w": {"n": 10, "min": watt - 20, "mean": watt, "max": watt + 10}}
        for index, watt in enumerate(watts)
    }
    return {"devices": devices, "memory": {"available_bytes": {"n": 3, "min": 2**30, "mean": 2**31, "max": 2**32}}}


def over_time(devices: int, looks: int = 30, slices: int = 2) -> dict[str, Any]:
    """The meters of a launch whose devices and slices were sampled once a second."""
    gib = 2**30
    course: dict[str, Any] = {
        "every_s": 1.0,
        "at_s": [0.5 + n for n in range(looks)],
        "host": {"available_bytes": [8 * gib - n for n in range(looks)]},
    }
    if devices:
        course["devices"] = {
            f"GPU-{i}": {"power_w": [200 + 10.0 * i + n for n in range(looks)], "memory_used_bytes": [gib] * looks}
            for i in range(devices)
        }
    if slices:
        course["tenants"] = {str(i): {"memory_used_bytes": [(i + 1) * gib] * looks} for i in range(slices)}
    return power([250.0] * devices) | {"series": course}


def everything() -> Summary:
    """Two jobs of five launches, one of one, one INVALID, one with one of two launches lost, and one wholly lost."""
    records: list[Record] = []
    for uid in range(5):
        records += launch("vae", uid, findings=(BUSY,) if uid == 1 else ())
        records += launch("convnet_distributed_fp16_on_all", uid, 8, 90_000)
    records += launch("toy_reg", 0, 1, 2.267)
    records += launch("wlm", 0, 2, load=(T0_NS, T0_NS + 10**10))
    records += [*launch("ssd", 0, 2), *lost("ssd", 1)]
    records += lost("[red]odd[/red] | job", 0)
    return summary_of(records)


def in_blocks(record: Record, kept: Kept) -> Record:
    """The record with a block alone behind each one beside the others, of whose rate it keeps so much."""
    factor = kept.value
    for _ in range(2):  # The first time shows how far the mean over rounds lies from the factor.
        start_ns, rows = T0_NS, list[Observed]()
        for index, row in enumerate(record.observations):
            for kind, took_ns in (("all", row.took_ns), ("only", round(row.took_ns * factor))):
                where = {"block": len(rows), "kind": kind, "kept": index >= record.skip}
                rows.append(replace(row, start_ns=start_ns, end_ns=start_ns + took_ns, **where))
                start_ns += took_ns
        found = kept_by_blocks(rows)
        assert found is not None
        factor *= kept.value / found.value
    return replace(record, observations=rows, kept=kept)


def lost(name: str, uid: int) -> list[Record]:
    """A launch whose second tenant ran out of memory."""
    outcomes = [("aborted", "User 1 ended."), ("out_of_memory", "It needed more.")]
    return [
        a_lost_record(outcome, message, {"name": name, "tenant": tenant, "vcd": str(tenant), "run_id": uid})
        for tenant, (outcome, message) in enumerate(outcomes)
    ]


def summary_of(records: Sequence[Record | dict[str, Any]]) -> Summary:
    return summarise(Rows.all(table(records)))


def rows_of(view: View) -> list[dict[str, str]]:
    """Return the rows of a view as programs read them from CSV."""
    return list(csv.DictReader(io.StringIO(as_csv(view))))


def jobs_in(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of jobs in the JSON form of a report, without those of their users."""
    return [row for row in document["rows"] if row["tenant"] is None]


def text_of(*views: View, width: int = 200) -> str:
    """Return the text of views on a terminal of this width."""
    return "\n".join(line.plain for view in views for line in terminal(view, width))


def printed(views: Iterable[View], width: int = 80, on_terminal: bool = True, colours: str | None = None) -> str:
    """Return the characters with which views are printed on a terminal of this width, or to a file."""
    stream = io.StringIO()
    show(views, Console(file=stream, width=width, force_terminal=on_terminal, color_system=colours))
    return stream.getvalue()


def beside_dram(
    uid: int = 0,
    kept: Sequence[float] = (1, 0.9, 0.8, 0.7),
    job: str = "vae",
    full: float = 10.0,
    rounds: int = 20,
    **place: Any,
) -> list[Record]:
    """Pairs by blocks of a job that keeps these shares and a neighbour that moves `level` % of `full` GB/s."""
    made = []
    for level, share in zip(LEVELS, kept, strict=True):
        names = (job, f"pressure_dram_{level}")
        for number, items, of in ((0, 384.0, share), (1, 0.03 * full * level, 1.0)):
            unit = {"part": a_part(item="GB")} if number else {}
            told = {"observations": observed([3000.0] * 12, items), "skip": 0, **unit}
            record = a_record(told=told, place=place, common={"started": NOON + timedelta(minutes=uid)})
            ends = (0.98 * of, 1.02 * of) if rounds > 2 else None
            mix = "+".join(names)
            record = replace(record, name=f"{names[number]}.in.{mix}", mix=mix, neighbours=[names[1 - number]])
            record = in_blocks(record, Kept(of, ends, rounds))
            made.append(replace(record, tenants=2, tenant=number, run_id=uid, findings=[]))
    return made
