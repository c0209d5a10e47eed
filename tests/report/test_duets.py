"""Duets from records: the verdict in a table and in a sentence, and duets without one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from cotenant.report.duets import DuetLine, duet_lines, duets_view, over_launches, sentences_of
from cotenant.report.renderers import as_json, html
from cotenant.report.view import View
from cotenant.results.columns import LAUNCH
from cotenant.results.launches import launches_of
from cotenant.results.record import DuetPart, Record, Side
from cotenant.stats.duet import DuetRatio
from cotenant.stats.verdict import Verdict
from report.making import launch, rows_of, summary_of, table, text_of
from results.made import a_part, a_record, steady

SLOWER = DuetRatio(0.924, (0.876, 0.974), 41, Verdict.SLOWER)


def duet(ratio: DuetRatio | None = SLOWER, lost: int = -1, **told: Any) -> list[Record]:
    """Two slices, and a tenant of each side in both."""
    records = []
    for tenant in range(4):
        side: Side = "B" if tenant % 2 else "A"
        part = DuetPart(side, tenant // 2, ["--batch-size", "64" if side == "A" else "128"], ratio)
        where = {"name": f"vae.duet.{side}", "tenant": tenant, "tenants": 4, "vcd": str(tenant), "sharers": 2}
        ended = {"outcome": "failed", "message": "It died."} if tenant == lost else {}
        said = {"observations": steady(tenant, 500 if side == "A" else 540), "part": a_part(**told)}
        records.append(a_record(place=where | {"duet": part}, told=said, comparable=lost < 0, **ended))
    return records


def test_a_duet_is_a_row_in_its_own_table_only() -> None:
    summary = summary_of(duet())
    assert summary.jobs == ()
    (found,) = duet_lines(summary.in_duets)
    assert (found.duet, found.ratio, found.interval, found.rounds) == ("vae.duet", 0.924, (0.876, 0.974), 41)
    assert (found.verdict, found.a_arguments, found.b_arguments) == ("SLOWER", "--batch-size 64", "--batch-size 128")
    assert found.a > found.b > 0
    said = text_of(duets_view(summary.in_duets))
    assert "B is slower than A: it has 92.4 % (87.6 to 97.4 %) of the rate of A, over 41 rounds of one launch." in said
    assert "A: --batch-size 64; B: --batch-size 128" in said
    assert '<span class="bad">SLOWER</span>' in html(duets_view(summary.in_duets))
    (row,) = rows_of(duets_view(summary.in_duets))
    assert [*row.values()][5:9] == ["0.924", "0.876", "0.974", "41"]
    assert [*row.values()][12:17] == ["SLOWER", "1", "", "'--batch-size 64", "'--batch-size 128"]


def test_a_duet_is_one_launch_and_in_no_comparison() -> None:
    assert summary_of(duet()).in_duets.columns(launch=LAUNCH)["launch"].unique().to_list() == ["vae.duet"]
    compared, left_out = launches_of(table([*duet(), *launch("vae")]).frame)
    assert ([*compared], left_out) == (["vae"], [])


def test_a_file_of_a_duet_has_the_seconds_that_would_settle_it() -> None:
    unclear = duet(DuetRatio(0.99, (0.95, 1.03), 20, Verdict.UNCLEAR, 142.0))
    (row,) = rows_of(duets_view(summary_of(unclear).in_duets))
    assert (row["verdict"], row["settled_s"]) == ("UNCLEAR", "142.0")
    assert [name for name, value in row.items() if not value] == ["robust", "mean", "differs"]


def test_a_duet_of_self_counting_programs_is_unaudited() -> None:
    for audited in (True, False):
        records = summary_of(duet(audited=audited)).in_duets
        assert ("SLOWER unaudited" in " ".join(text_of(duets_view(records)).split())) is not audited
        assert [row["audited"] for row in rows_of(duets_view(records))] == [str(int(audited))]


def line(records: list[Record]) -> DuetLine:
    (found,) = duet_lines(summary_of(records).in_duets)
    return found


def test_the_newest_of_merged_duets_counts_despite_a_lost_user() -> None:
    again = [replace(one, start_time="2026-11-28T10:00:00+00:00") for one in duet(None, lost=1)]
    merged = summary_of([*duet(), *again])
    (failed,) = duet_lines(merged.in_duets)
    assert (failed.ratio, failed.verdict) == (None, "failed")
    assert any("there are records of several runs; the newest count." in note for note in merged.notes)


@pytest.mark.parametrize(
    ("verdict", "settled_s", "begins", "ends"),
    [
        (Verdict.FASTER, None, "B is faster than A: it has 99.0 %", "one launch."),
        (Verdict.SAME, None, "B is as fast as A, within 2 %: it has 99.0 %", "one launch."),
        (Verdict.UNCLEAR, 142.0, "It is not clear whether B is slower than A: it has", "--budget 150."),
        (Verdict.UNCLEAR, None, "It is not clear whether B is slower than A: it has", "an hour would not settle it."),
    ],
)
def test_each_verdict_is_a_sentence(verdict: Verdict, settled_s: float | None, begins: str, ends: str) -> None:
    (said,) = sentences_of([line(duet(DuetRatio(0.99, (0.95, 1.03), 20, verdict, settled_s)))])
    assert said.startswith(begins)
    assert said.endswith(ends)


def launches(*ratios: float) -> list[Record]:
    """Launches of one duet, a minute apart, each with a ratio of its own."""
    return [
        replace(record, run_id=uid, start_time=f"2026-11-28T10:{uid:02}:00+00:00")
        for uid, ratio in enumerate(ratios)
        for record in duet(DuetRatio(ratio, (0.99 * ratio, 1.01 * ratio), 40, Verdict.SLOWER))
    ]


def over_several(view: View) -> list[dict[str, Any]]:
    """The verdicts over several launches, as JSON has them."""
    rows: list[dict[str, Any]] = json.loads(as_json(view))["parts"]["duets_over_launches"]["rows"]
    return rows


def test_several_launches_of_a_duet_have_one_verdict() -> None:
    unclear, slower = (0.916, 1.024, 1.036, 1.216, 0.991), (0.94, 0.93, 0.95)
    summary = summary_of(launches(*slower))
    said = text_of(duets_view(summary.in_duets))
    assert said.count("A: --batch-size 64; B: --batch-size 128") == 1
    assert "\nB is slower than A: it has 94.0 % (91.5 to 96.5 %) of the rate of A, over 3 launches." in said
    assert "rounds of one launch" not in said
    (over,) = over_several(duets_view(summary.in_duets))
    assert (over["duet"], over["launches"], over["verdict"]) == ("vae.duet", 3, "SLOWER")
    assert over["low"] < over["value"] < over["high"] < 1
    (said,) = sentences_of(duet_lines(summary_of(launches(*unclear)).in_duets))
    assert said.startswith("It is not clear whether B is slower than A: it has 103.2 % (")
    assert said.endswith("The difference is near 2 %, or launches differ much: 50 would not settle it.")
    (said,) = sentences_of(duet_lines(summary_of(launches(0.9, 0.91)).in_duets))
    assert said.endswith("over 2 launches; from three launches on there is an interval.")
    assert over_launches(duet_lines(summary_of(duet()).in_duets)) is None
    one = [*launches(0.9), *(replace(one, run_id=1) for one in duet(None, lost=3))]
    said, _ = sentences_of(duet_lines(summary_of(one).in_duets))
    assert said.startswith("It is not clear whether B is slower than A: it has 90.0 % of the rate of A, over 1 launch;")


def of_torch(version: str, records: list[Record]) -> list[Record]:
    return [replace(of, machine=of.machine | {"torch": {"version": version}}) for of in records]


def test_launches_of_an_earlier_torch_belong_to_another_duet() -> None:
    """A run of six launches, whose first three a shorter one has replaced after an upgrade."""
    records = launches(0.94, 0.93, 0.95, 0.80, 0.81, 0.82)
    newer = of_torch("2.4", [record for record in records if record.run_id < 3])
    older = of_torch("2.3", [record for record in records if record.run_id > 2])
    grid = duets_view(summary_of([*newer, *older]).in_duets)
    said = text_of(grid)
    slower = "B is slower than A: it has 94.0 % (91.5 to 96.5 %) of the rate of A, over 3 launches."
    assert f"With software 2.4: {slower}" in said
    assert "With software 2.3: B is slower than A: it has 81.0 %" in said
    differ = [(over["differs"], over["launches"]) for over in over_several(grid)]
    assert differ == [("software 2.4", 3), ("software 2.3", 3)]
    (alike,) = over_several(duets_view(summary_of(of_torch("2.4", records)).in_duets))
    assert (alike["differs"], alike["launches"]) == ("", 6)


def test_the_number_of_launches_that_would_settle_it_is_given() -> None:
    records = [*launches(0.94, 0.95, 0.98), *(replace(one, run_id=3) for one in duet(None, lost=3))]
    said, lost = sentences_of(duet_lines(summary_of(records).in_duets))
    assert lost == "The launch of uid 3 does not count: failed."
    assert said.endswith("over 3 launches. About 6 launches would settle it: --repetitions 6.")


def test_a_lost_tenant_or_unequal_units_void_a_duet() -> None:
    died = line(duet(None, lost=3))
    assert (died.verdict, died.ratio) == ("failed", None)
    assert sentences_of([died]) == ["There is no ratio of B over A: failed."]
    records = duet()
    other = [replace(record, unit="token" if record.tenant % 2 else "image") for record in records]
    assert line(other).verdict == "INVALID"
    (said,) = sentences_of([line(other)])
    assert said.endswith("is INVALID: its number is none.")
