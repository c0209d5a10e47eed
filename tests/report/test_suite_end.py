"""The text at a suite's end, from records that were just made."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cotenant.finding import Finding
from cotenant.report.suite_end import suite_views
from cotenant.results.record import Record
from cotenant.stats.kept import Kept
from golden import check_golden
from report import making
from results.made import ISOLATION, T0_NS, a_lost_record, a_part, a_record, observed, steady
from results.test_identity import point

GOLDEN = Path(__file__).with_name("golden")
DEGRADED = Finding("degraded", "warning", "Slices are not enforced by cgroups here: no mounts.", "Run as root.")
HOST_BOUND = [[Finding("host_bound", "info", "host-bound: it is.")]] * 2 + [[]]
ODD = "tail [bold]x[/bold] :smile: \x1b[31mred\x1b[0m \x1b[2J\r\nand \x07a \u202ebell"


def launch(name: str, tenants: int, mean_ms: float = 500.0, unit: str = "example") -> list[Record]:
    records = []
    for tenant in range(tenants):
        told = {"observations": steady(tenant, mean_ms + 3 * tenant), "part": a_part(item=unit)}
        records.append(a_record({"name": name, "tenant": tenant, "tenants": tenants, "vcd": str(tenant)}, told))
    return records


def lost(name: str, outcome: str, message: str, tenant: int = 0) -> Record:
    return a_lost_record(outcome, message, {"name": name, "tenant": tenant, "vcd": str(tenant)})


def everything() -> list[Record]:
    affinity = type(ISOLATION)("affinity", {}, {}, {}, ["memory", "swap", "pids"])
    nan = a_record(place={"name": "dcgan", "tenant": 1}, outcome="nan", message="3 of 750 losses were not finite.")
    of_six = {"name": "sliced", "isolation": affinity, "tenants": 6}
    few = {"observations": observed([4.0] * 8)}
    return [
        *launch("vae", 2),
        *launch("toy_reg", 1, 2.267),
        *launch("convnet_distributed_fp16_on_every_device", 8, 90_000, "image"),
        *[a_record(place={"name": "wlm", "tenant": i}, common={"load": (T0_NS, T0_NS + 10**10)}) for i in (0, 1)],
        a_record(place={"name": "dcgan"}, comparable=False),
        nan,
        a_record(place={"name": "cart", "tenants": 1}, told=few, common={"findings": (DEGRADED,)}),
        a_record(place={"name": "any_program", "tenants": 1}, told={"observations": [], "part": {}}),
        *[a_record(place=of_six | {"tenant": i, "vcd": str(i)}) for i in range(6)],
        lost("[red]odd[/red] :smile: job", "failed", f"It ended with exit status 1. Its log ends: {ODD}"),
        lost("reso", "device_out_of_memory", "CUDA out of memory. Use a smaller --batch-size."),
        lost("reso", "host_out_of_memory", "", 1),
    ]


UNITS = {
    "toy_reg": ("example", 2.267),
    "toy_lstm": ("optimizer step", 90_000),
    "recom": ("(user, item) sample", 45),
    "convnet_distributed_fp16": ("image", 900),
    "convnet_distributed": ("image", 1000),
}


def of_four_users() -> list[Record]:
    """A suite by blocks of four users, with a warning, a job that lost a user, and one that owns the machine."""
    records = []
    for name, (unit, mean_ms) in UNITS.items():
        kept = Kept(0.97, (0.93, 1.01), 12)
        records += [making.in_blocks(record, kept) for record in launch(name, 4, mean_ms, unit)]
    records[8:12] = [replace(record, findings=[making.BUSY]) for record in records[8:12]]
    return [*records, *making.lost("ssd", 0), *launch("dcgan_all", 1, 700, "real image")]


def printed(records: list[Record], width: int = 80, terminal: bool = False, **asked: Any) -> str:
    """Return a suite's end; `asked`: findings that were printed before, and whether to be verbose."""
    grids = suite_views(making.summary_of(records), **asked)
    return making.printed(grids, width, terminal, "standard" if terminal else None)


def test_off_a_terminal() -> None:
    text = printed(everything())
    check_golden(GOLDEN / "file.txt", text)
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())
    assert re.search(r"\n\[red\]odd\[/red\] :smile: job +- +- +failed\n", text)
    assert "Its log ends: tail [bold]x[/bold] :smile: red and ?a ?bell\n" in text


def test_on_a_terminal_with_colours_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(everything(), 80, terminal=True)
    check_golden(GOLDEN / "terminal-80.txt", text)
    assert "\x1b[1;31mINVALID overlap\x1b[0m" in text
    assert re.search(r"device_out_of_\S+\x1b\[0m\n", text)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    text = printed(everything(), 80, terminal=True)
    assert "\x1b[1m" in text  # bold is no colour
    assert not any(f"\x1b[{before}{colour}m" in text for before in ("", "1;") for colour in range(30, 38))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_row_per_job_of_four_users(width: int) -> None:
    text = printed(of_four_users(), width, terminal=True)
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    check_golden(GOLDEN / f"end-{width}.txt", plain)
    lines = plain.splitlines()
    assert all(len(line) <= width or "./run.sh" in line for line in lines)
    rows = lines[1 : lines.index(next(line for line in lines if line.startswith("each user: ")))]
    if width >= 80:
        assert [row[:3] for row in rows] == [name[:3] for name in (*UNITS, "ssd", "dcgan_all")]
        assert all(re.search(r"  (clean|suspect fore(ign load|i…)|out_of_memory)$", row) for row in rows)
    assert not re.search(r"\d[orLj]\b", plain), "an n is said in words"


def test_what_was_told_before_stands_there_only_if_asked_for() -> None:
    records = [a_record(told={"part": a_part(losses_checked=0)}, common={"findings": (DEGRADED,)})]
    assert f"warning: {DEGRADED.sentence}" in printed(records)
    assert DEGRADED.sentence not in printed(records, printed=(DEGRADED,))
    assert "info: " not in printed(records)
    whole = printed(records, printed=(DEGRADED,), verbose=True)
    assert "info: This benchmark returns no loss" in whole
    assert DEGRADED.sentence in whole


def test_a_rate_of_the_host_is_labelled() -> None:
    records = [replace(record, findings=rules) for record, rules in zip(launch("vae", 3), HOST_BOUND, strict=True)]
    assert "  clean host-bound\n" in printed(records)
    assert "host-bound" not in printed([records[0], *launch("vae", 3)[1:]])


def test_tenants_alone_say_what_neighbours_cost() -> None:
    records = [*making.launch("vae"), *making.solo("vae", mean_ms=400)]
    text = printed(records, 200)
    assert re.search(r"  80 % \(\d\d-\d\d\)  clean", text)
    assert "in brackets its 95 % interval, of 20 observations of one launch. Another launch may differ." in text
    assert re.search(r"each user keeps 80 % \(\d\d to \d\d % within one launch\) of what it has alone", text)
    assert "alone: a user alone in its slice" not in text
    assert "alone: a user alone in its slice" in printed(records, 200, verbose=True)


def test_several_numbers_of_devices_are_a_curve() -> None:
    text = printed([point(1, 100), point(2, 190), point(4, 300)])
    found = [line.split() for line in text.splitlines() if line.startswith("1n")]
    assert [(row[0], row[1]) for row in found] == [("1n1g", "100.0"), ("1n2g", "190.0"), ("1n4g", "300.0")]
    assert all(efficiency in row for row, efficiency in zip(found, ("1.000", "0.950", "0.750"), strict=True))
    assert "1n2g" not in printed([point(2, 190)])


def test_a_reader_that_has_left_is_no_failure() -> None:
    code = f"import sys; sys.path[:0] = {sys.path!r}\nfrom cotenant.report.renderers import show\n"
    code += "from cotenant.report.view import View\nshow([View('jobs', lines=[[('job', '')]] * 4096)])"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "pipesize": 4096}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:
        assert process.stdout.readline().startswith(b"job")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
