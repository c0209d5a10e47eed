"""Duets from records: the verdict in a table and in a sentence, and duets without one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cotenant.report.duets import DuetLine, duet_lines, duet_sentence, duets_grid, over_launches
from cotenant.report.renderers import as_csv
from cotenant.results.record import DuetPart, Record, Side
from cotenant.stats.duet import DuetRatio
from cotenant.stats.verdict import Verdict
from report.making import summary_of, text_of
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


def test_a_duet_is_a_row_with_its_sentence_and_in_no_other_table() -> None:
    summary = summary_of(duet())
    assert summary.jobs == ()
    (found,) = duet_lines(summary.in_duets)
    assert (found.duet, found.ratio, found.interval, found.rounds) == ("vae.duet", 0.924, (0.876, 0.974), 41)
    assert (found.verdict, found.a_arguments, found.b_arguments) == ("SLOWER", "--batch-size 64", "--batch-size 128")
    assert (found.a or 0.0) > (found.b or 0.0) > 0
    said = text_of(duets_grid(summary.in_duets))
    assert "B is slower than A: it has 92.4 % (87.6 to 97.4 %) of the rate of A, over 41 rounds of one launch." in said
    assert "A: --batch-size 64; B: --batch-size 128" in said
    assert as_csv(duets_grid(summary.in_duets)).splitlines()[1].split(",")[5:9] == ["0.924", "0.876", "0.974", "41"]


def line(records: list[Record]) -> DuetLine:
    (found,) = duet_lines(summary_of(records).in_duets)
    return found


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
    said = duet_sentence(line(duet(DuetRatio(0.99, (0.95, 1.03), 20, verdict, settled_s))))
    assert said.startswith(begins)
    assert said.endswith(ends)


def launches(*ratios: float) -> list[Record]:
    """Launches of one duet, a minute apart, each with a ratio of its own."""
    return [
        msgspec.structs.replace(record, run_id=uid, start_time=f"2026-11-28T10:{uid:02}:00+00:00")
        for uid, ratio in enumerate(ratios)
        for record in duet(DuetRatio(ratio, (0.99 * ratio, 1.01 * ratio), 40, Verdict.SLOWER))
    ]


def test_several_launches_have_a_verdict_of_their_own_since_processes_differ() -> None:
    found = over_launches(duet_lines(summary_of(launches(0.916, 1.024, 1.036, 1.216, 0.991)).in_duets))
    assert [(one.launches, one.verdict) for one in found] == [(5, Verdict.UNCLEAR)]
    found = over_launches(duet_lines(summary_of(launches(0.94, 0.93, 0.95, 0.94, 0.935)).in_duets))
    assert [(one.launches, one.verdict) for one in found] == [(5, Verdict.SLOWER)]
    assert found[0].ratio == pytest.approx(0.939, abs=1e-4)
    said = text_of(duets_grid(summary_of(launches(0.94, 0.93, 0.95)).in_duets))
    assert "vae.duet: B is slower than A: it has 94.0 % (91.5 to 96.5 %) of the rate of A, over 3 launches." in said
    said = text_of(duets_grid(summary_of(launches(0.9, 0.91)).in_duets))
    assert "over 2 launches; from three launches on there is an interval." in said
    assert over_launches(duet_lines(summary_of(duet()).in_duets)) == []


def test_users_beside_one_process_with_all_their_work_are_another_question() -> None:
    records = [
        msgspec.structs.replace(record, name=record.name.replace("duet", "merged"))
        for record in duet()
        if record.tenant in (0, 1, 2)
    ]
    found = line(records)
    assert found.a == pytest.approx(2 * (line(duet()).a or 0.0), rel=0.01)
    said = "one process in all slices does 92.4 % (87.6 to 97.4 %) of what the users do together, over 41 rounds"
    assert duet_sentence(found) == f"Sharing wins: {said} of one launch."


def test_what_died_is_invalid_or_counts_in_another_unit_has_no_verdict() -> None:
    died = line(duet(None, lost=3))
    assert (died.verdict, died.ratio) == ("failed", None)
    assert duet_sentence(died) == "There is no ratio of B over A: failed."
    records = duet()
    other = [msgspec.structs.replace(record, unit="token" if record.tenant % 2 else "image") for record in records]
    assert line(other).verdict == "INVALID"
    assert "is INVALID: its number is none." in duet_sentence(line(other))
