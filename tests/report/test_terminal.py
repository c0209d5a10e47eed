"""The table at the end of a suite and the lines below it, against golden files.

After a wanted change: GOLDEN=write python -m pytest tests/report, and read the difference.
"""

from __future__ import annotations

import io
import math
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from cotenant.finding import Finding
from cotenant.report.terminal import finding_lines, print_suite, table_lines
from cotenant.results.record import Record
from golden import check_golden
from results.made import ISOLATION, NOON, T0_NS, a_lost_record, a_part, a_record, observed, steady

GOLDEN = Path(__file__).with_name("golden")
DEGRADED = Finding("degraded", "warning", "Slices are not enforced by cgroups here: no mounts.", "Run as root.")
ODD = "tail [bold]x[/bold] :smile: \x1b[31mred\x1b[0m \x1b[2J\r\nand \x07a \u202ebell"


def launch(name: str, tenants: int, mean_ms: float = 500.0, unit: str = "example") -> list[Record]:
    return [
        a_record(
            place={"name": name, "tenant": tenant, "tenants": tenants, "vcd": str(tenant)},
            told={"observations": steady(tenant, mean_ms + 3 * tenant), "part": a_part(item=unit)},
        )
        for tenant in range(tenants)
    ]


def lost(name: str, outcome: str, message: str, tenant: int = 0) -> Record:
    return a_lost_record(outcome, message, {"name": name, "tenant": tenant, "vcd": str(tenant)})


def everything() -> list[Record]:
    affinity = type(ISOLATION)("affinity", {}, {}, {}, ["memory", "swap", "pids"])
    nan = a_record(place={"name": "dcgan", "tenant": 1}, outcome="nan", message="3 of 750 losses were not finite.")
    return [
        *launch("vae", 2),
        *launch("toy_reg", 1, 2.267),
        *launch("convnet_distributed_fp16_on_every_device", 8, 90_000, "image"),
        *[a_record(place={"name": "wlm", "tenant": i}, common={"load": (T0_NS, T0_NS + 10**10)}) for i in (0, 1)],
        a_record(place={"name": "dcgan"}, comparable=False),
        nan,
        a_record(place={"name": "cart"}, told={"observations": observed([4.0] * 8)}, common={"findings": (DEGRADED,)}),
        a_record(place={"name": "any_program"}, told={"observations": [], "part": {}}),
        *[a_record(place={"name": "sliced", "isolation": affinity, "tenant": i}) for i in range(6)],
        lost("[red]odd[/red] :smile: job", "failed", f"It ended with exit status 1. Its log ends: {ODD}"),
        lost("reso", "device_out_of_memory", "CUDA out of memory. Use a smaller --batch-size."),
        lost("reso", "host_out_of_memory", "", 1),
    ]


def printed(records: list[Record], width: int, terminal: bool, verbose: bool = False) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=terminal, color_system="standard" if terminal else None)
    print_suite(records, verbose, console)
    return stream.getvalue()


def test_off_a_terminal() -> None:
    text = printed(everything(), 80, terminal=False)
    check_golden(GOLDEN / "file.txt", text)
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_on_a_terminal(width: int) -> None:
    text = printed(everything(), width, terminal=True)
    check_golden(GOLDEN / f"terminal-{width}.txt", text)
    assert "\x1b[1;31mINVALID\x1b[0m" in text
    assert "device_out_of_memory\x1b[0m\n" in text


def test_verbose_tells_information_too() -> None:
    records = [a_record(told={"part": a_part(losses_checked=0)})]
    assert "info: " not in printed(records, 80, terminal=False)
    assert "info: This benchmark returns no loss" in printed(records, 80, terminal=False, verbose=True)


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_rows_fit_every_width(width: int) -> None:
    for line in table_lines(everything(), width):
        name = "convnet_distributed_fp16_on_every_device"
        assert max(map(len, line.plain.split("\n"))) <= width or name in line.plain


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    text = printed(everything(), 80, terminal=True)
    assert "\x1b[1m" in text  # bold is no colour
    assert not any(f"\x1b[{before}{colour}m" in text for before in ("", "1;") for colour in range(30, 38))


def test_by_itself_it_prints_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    print_suite(everything())
    assert capsys.readouterr().out == printed(everything(), 80, terminal=False)


def test_no_number_is_made_of_one_that_is_none() -> None:
    records = launch("vae", 2)
    numbers, meeting = records[1].statistics, records[1].rendezvous
    assert numbers is not None
    assert meeting is not None
    nothing = dict.fromkeys(["median", "robust_spread", "iqr", "best", "p95_s", "mean", "sd", "min", "max"], math.nan)
    nan = type(numbers)(n=20, interval=(math.nan, math.nan), **nothing)
    records[1] = replace(records[1], statistics=nan, rendezvous=replace(meeting, overlap=math.nan))
    header, heading, _, row = [line.plain for line in table_lines(records)]
    assert row.split() == ["1", "-", "-", "20", "-", "-", "PASSED"]
    assert heading == "vae  example/s  isolation v1  fairness -"
    assert header.split("  ")[-1] == "outcome"


@pytest.mark.parametrize("tenants", [1, 2, 8])
def test_the_slowest_tenant_is_named(tenants: int) -> None:
    heading = [line.plain for line in table_lines(launch("vae", tenants))][1]
    assert ("fairness" in heading) == (tenants > 1)
    assert heading.endswith(f"(tenant {tenants - 1})") == (tenants > 1)


def test_fairness_is_only_of_tenants_measured_beside_each_other() -> None:
    one, other = launch("vae", 2)
    for bad in (a_record(place={"tenant": 1}, outcome="nan"), a_record(place={"tenant": 1}, common={"load": (0, 0)})):
        assert list(table_lines([one, bad]))[1].plain.endswith("fairness -")
    assert "fairness 1.0000" in list(table_lines([one, other]))[1].plain


def test_cells_of_one_job_are_launches_of_their_own() -> None:
    first, second = launch("vae", 2), [replace(one, start_time="later") for one in launch("vae", 2)]
    plain = [line.plain for line in table_lines([*first, *second])]
    assert sum(line.startswith("vae") for line in plain) == 2


def solo(name: str, mean_ms: float, tenants: int = 2) -> list[Record]:
    return [
        a_record(
            place={"name": name, "tenant": tenant, "tenants": 1, "vcd": str(tenant), "solo": True},
            told={"observations": steady(tenant, mean_ms + 3 * tenant), "part": a_part(item="example")},
            common={"started": NOON + timedelta(minutes=1 + tenant)},
        )
        for tenant in range(tenants)
    ]


def test_tenants_alone_stand_below_each_other_with_what_they_kept() -> None:
    lines = [line.plain for line in table_lines([*launch("vae", 2), *solo("vae", 400), *launch("toy_reg", 1)], 120)]
    assert [line.split()[0] for line in lines] == ["tenant", "vae", "0", "1", "vae.solo", "0", "1", "toy_reg", "0"]
    heading = "vae.solo  example/s  isolation v1  together/alone 0.801  worst 0.800 (tenant 0)"
    assert lines[4] == heading


def test_of_a_lost_neighbour_nothing_was_kept() -> None:
    whole, alone = launch("vae", 2), solo("vae", 400)
    bad = a_record(place={"tenant": 1, "solo": True, "tenants": 1}, outcome="nan")
    for records in ([whole[0], *alone], [*whole, alone[0]], [*whole, alone[0], bad], [*launch("cart", 2), *alone]):
        assert any(line.plain.endswith("together/alone -") for line in table_lines(records, 120))


def test_findings_are_said_once_and_errors_first() -> None:
    lines = [line.plain for line in finding_lines(everything()[::-1])]
    severities = [word for line in lines if (word := line.split(":")[0]) in ("error", "warning")]
    assert severities == ["error"] * 2 + ["warning"] * 4
    shared = [line for line in lines if "memory, swap, pids" in line]
    assert len(shared) == 1
    assert shared[0].endswith("  [sliced/5, sliced/4, sliced/3, sliced/2 and 2 more]")


def test_nothing_interprets_a_name_or_a_message() -> None:
    text = printed(everything(), 200, terminal=False)
    assert "\n[red]odd[/red] :smile: job  isolation v1\n" in text
    assert "Its log ends: tail [bold]x[/bold] :smile: red and ?a ?bell\n" in text


def test_a_reader_that_has_left_is_no_failure() -> None:
    code = f"import sys; sys.path[:0] = {sys.path!r}; from test_terminal import *; print_suite(everything() * 500)"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=GOLDEN.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"tenant")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_no_records_make_no_trouble() -> None:
    assert printed([], 80, terminal=False) == "tenant  rate  95 % interval  n  spread  overlap  outcome\n"
