"""The cost of neighbours and the worth of slices, from records; the views against golden files.

After a wanted change: GOLDEN=write python -m pytest tests/report, and read the difference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from cotenant.report.answer import answer
from cotenant.report.interference import apart, interference_lines, interference_view
from cotenant.report.jobs import jobs_view
from cotenant.report.kept import kept_fields, kept_of, rate_fields
from cotenant.report.kept_table import RATIOS
from cotenant.report.page import page
from cotenant.report.renderers import markdown
from cotenant.report.sections.contents import PageContents
from cotenant.report.suite_end import suite_views
from cotenant.results.record import Record
from cotenant.stats.kept import Kept, joint
from golden import check_golden
from report.making import UNSLICED, fields_of, frame, in_blocks, launch, lost, quick, rows_of, solo, summary_of, text_of
from results.made import ARGUMENTS, ISOLATION, NOON, a_part

GOLDEN = Path(__file__).with_name("golden")
WAYS = ("alone", "sliced", "unsliced", "unsliced_alone")


def three_ways(name: str, uids: Sequence[int] = range(3), tenants: int = 2) -> list[Record]:
    """A job alone in slices, together in slices, and together without; slower from one to the next."""
    found: list[Record] = []
    for uid in uids:
        found += launch(name, uid, tenants, 500 + uid * 5 % 7)
        found += solo(name, uid, tenants, 450 + uid * 3 % 7)
        found += launch(name, uid, tenants, 1000 + uid * 4 % 7 * 10, place=UNSLICED)
    return found


def everything() -> list[Record]:
    """A job in all three ways, one that failed without slices, one that failed alone, and one of the whole machine."""
    records = [*three_ways("vae"), *launch("convnet", mean_ms=700), *solo("convnet", mean_ms=600)]
    records += [replace(one, isolation=UNSLICED["isolation"]) for one in lost("convnet", 0)]
    records += [*launch("wlm"), *(replace(one, solo=True, tenants=1, name="wlm.solo") for one in lost("wlm", 0))]
    return [*records, *launch("convnet_distributed", tenants=1, place={"group": "all"})]


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the view, with its ratios, and its rates as a rate, an interval and the number of launches."""

    kept: Kept | None
    unsliced_kept: Kept | None
    worth: Kept | None
    alone: Rate | None
    sliced: Rate | None
    unsliced: Rate | None
    unsliced_alone: Rate | None
    notes: list[str]
    baseline: str


class Rate(NamedTuple):
    rate: float
    low: float | None
    high: float | None
    n: int


def lines_of(records: list[Record]) -> dict[tuple[str, str | None], Line]:
    lines = interference_lines(summary_of(records))
    assert len(lines.select("suite", "host").unique()) == 1
    found = {}
    for row in lines.to_dicts():
        ratios = [kept_of(row, kept_fields(name)) for name in RATIOS]
        sides = ([row[field] for field in rate_fields(name)] for name in WAYS)
        rates = [None if side[0] is None else Rate(*side) for side in sides]
        found[row["job"], row["tenant"]] = Line(*ratios, *rates, row["notes"] or [], row["baseline"] or "")
    return found


def printed(records: list[Record], width: int) -> str:
    return text_of(interference_view(summary_of(records)), width=width) + "\n"


def test_every_number_is_what_pandas_and_scipy_say() -> None:
    records = three_ways("vae", range(5), 3)
    lines = lines_of(records)
    rates = frame(records)
    for tenant in (None, 0, 1, 2):
        own = rates if tenant is None else rates[rates["tenant"] == tenant]
        wide = np.log(own.groupby(["way", "uid"])["rate"].sum().unstack("way"))
        line = lines["vae", None if tenant is None else str(tenant)]
        for found, over, under in (
            (line.kept, "sliced", "alone"),
            (line.unsliced_kept, "unsliced", "alone"),
            (line.worth, "sliced", "unsliced"),
        ):
            logs = wide[over] - wide[under]
            assert found.value == pytest.approx(np.exp(logs.mean()))
            expected = stats.t.interval(0.95, 4, logs.mean(), logs.sem())
            assert found.interval == pytest.approx(tuple(np.exp(expected)))
            assert (found.n, found.over) == (5, "launches")
        assert line.alone.rate == pytest.approx(np.exp(wide["alone"].mean()))


def test_a_missing_side_is_left_empty_and_noted() -> None:
    summary, lines = summary_of(everything()), lines_of(everything())
    (mean, *_) = (row for row in interference_view(summary).frame.to_dicts() if row["job"] == "geometric mean")
    vae, convnet = (lines[name, None] for name in ("vae", "convnet"))
    assert "wlm alone, repetition 0: user 1 out_of_memory." in summary.notes
    assert [loss.job for loss in summary.losses].count("wlm.solo") == 1
    assert mean["kept"] == pytest.approx((vae.kept.value * convnet.kept.value) ** 0.5)
    assert len([who for _, who in lines if who is None]) == 3
    rows = rows_of(interference_view(summary))
    assert [row["jobs"] for row in rows if row["job"] == "geometric mean"] == ["2", "1", "1"]
    assert apart(summary) == []


def test_one_lost_launch_alone_takes_no_other_tenants_ratio() -> None:
    lines = lines_of([*launch("vae"), *solo("vae")[:1]])
    assert [lines["vae", who].kept is None for who in (None, "0", "1")] == [True, False, True]
    assert lines["vae", None].alone is None  # the node's rate is the sum of all tenants'


OTHER_WORK: list[tuple[dict[str, Any], str]] = [
    ({"part": a_part(item="image", arguments=ARGUMENTS | {"batch_size": 64})}, "different batch size: 128 and 64"),
    ({"part": a_part(item="image", version="another")}, "different source or arguments of the benchmark"),
    ({"part": a_part(item="image", torch={"version": "9"})}, "different software: 2.14 and 9"),
    ({"place": {"devices": 1}}, "different devices: 0 and 1"),
    ({"place": {"isolation": replace(ISOLATION, planned={"processors": "1-3"})}}, "different slices"),
]


def test_a_baseline_of_other_work_is_no_denominator() -> None:
    known = {"part": a_part(item="image", torch={"version": "2.14"})}
    for change, reason in OTHER_WORK:
        records = [*launch("vae", **known), *solo("vae", **(known | change))]
        line = lines_of(records)["vae", None]
        assert (line.alone, line.kept) == (None, None)
        assert line.notes[0].startswith(f"alone: {reason}")
        assert None not in summary_of(records).jobs[0].kept
        place = change.get("place", {})
        isolation = replace(place.get("isolation", ISOLATION), backend="none")
        other = launch("vae", 0, 2, 1000, **(known | change | {"place": place | {"isolation": isolation}}))
        lines = lines_of([*launch("vae", **known), *solo("vae", **known), *other])
        first, second = [line for (_, tenant), line in lines.items() if tenant is None]
        assert first.kept is not None
        assert (first.unsliced, first.worth) == (None, None)
        assert first.notes[0].startswith(f"without slices: {reason}")
        assert (second.sliced, second.unsliced_kept, second.worth) == (None, None, None)
        assert second.unsliced is not None
        assert "nothing equal ran in slices" in second.notes


def test_default_numbers_of_workers_do_not_make_work_unequal() -> None:
    """The same command line has another default where a tenant finds all processors."""
    free = a_part(item="image", arguments=ARGUMENTS | {"workers": 2})
    for command, equal in ((["run.sh"], True), (["run.sh", "--workers", "2"], False)):
        records = [*launch("vae", place={"command": command}), *solo("vae", place={"command": command})]
        records += launch("vae", 0, 2, 1000, place=UNSLICED | {"command": command}, part=free)
        assert any(line.worth is not None for line in lines_of(records).values()) == equal


def test_tenants_of_two_devices_are_each_held_against_their_own() -> None:
    records = [replace(one, gpu="V100" if one.tenant else "H100") for one in three_ways("vae")]
    kept, same = (lines_of(of)["vae", None].kept for of in (records, three_ways("vae")))
    assert kept == same is not None


def test_alone_without_a_slice_is_no_denominator() -> None:
    """--baseline whole --isolation none: a tenant alone on the whole machine."""
    records = [*launch("vae", place=UNSLICED), *solo("vae", place=UNSLICED)]
    assert None not in summary_of(records).jobs[0].kept
    line = lines_of(records)["vae", None]
    assert (line.alone, line.unsliced_kept, line.worth) == (None, None, None)
    assert line.unsliced_alone is not None
    said = r"user 1 alone on the whole machine, without a slice: \S+ \(too few runs, n 1\); "
    assert re.search(said, printed(records, 160))
    both = lines_of([*records, *launch("vae"), *solo("vae", mean_ms=300)])["vae", None]
    assert both.alone.rate == pytest.approx(1.5 * both.unsliced_alone.rate)
    assert both.unsliced_kept.value == pytest.approx(300 / 500)


def test_a_baseline_in_a_different_slice_is_no_denominator() -> None:
    other = replace(ISOLATION, planned={"processors": "1-3"})
    affinity = replace(ISOLATION, backend="affinity")
    for isolations, without, reason in (
        ((ISOLATION, other), [True, False, True], "different slices (user 1)"),
        ((affinity, affinity), [True, True, True], "different isolation: affinity and v1"),
    ):
        alone = [replace(record, isolation=isolations[record.tenant]) for record in solo("vae")]
        lines = lines_of([*launch("vae"), *alone])
        assert [lines["vae", who].kept is None for who in (None, "0", "1")] == without
        assert lines["vae", None].notes == [f"alone: {reason}"]


def test_another_host_is_another_machine() -> None:
    records = [*launch("vae"), *solo("vae"), *launch("vae", place=UNSLICED | {"hostname": "node2"})]
    assert {*interference_lines(summary_of(records))["host"]} == {"node1"}
    said = "vae: in slices it ran as baselines on node1, without as baselines on node2; those are never compared."
    assert apart(summary_of(records)) == [said]


def test_slices_are_worth_something_without_anybody_alone() -> None:
    line = lines_of([*launch("vae"), *launch("vae", 0, 2, 1000, place=UNSLICED)])["vae", None]
    assert line.kept is None
    assert line.worth.value == pytest.approx(2)
    assert interference_lines(summary_of([*launch("vae"), *launch("cart", place=UNSLICED)])).is_empty()


def test_the_table() -> None:
    text = printed(everything(), 80)
    check_golden(GOLDEN / "interference-80.txt", text)
    assert all(len(line) <= 80 for line in text.splitlines()[:-1] if not line.startswith("  "))
    check_golden(GOLDEN / "interference.md", markdown(interference_view(summary_of(everything()))))
    heading = printed([*launch("vae"), *solo("vae")], 80).splitlines()[1]
    assert not any(word in heading for word in ("worth", "no slices")), "nothing ran without slices"


def test_the_report_has_a_column_where_tenants_ran_alone() -> None:
    records = three_ways("vae")
    summary = summary_of(records)
    assert [job.label for job in summary.jobs] == ["vae (isolation v1)", "vae (isolation none)"]
    nodes = [kept for job in summary.jobs if (kept := job.kept.get(None))]
    assert [kept.value for kept in nodes] == pytest.approx([450 / 500, 450 / 1000], abs=0.02)
    shares = [joint(job.shares) for job in summary.jobs if job.shares]
    spans = [[100 * end for end in (kept.value, *kept.interval)] for kept in shares if kept.interval]
    assert len(spans) == 2
    for width in (80, 200):
        text = text_of(jobs_view(summary), width=width)
        assert all("  {:.0f} % ({:.0f}-{:.0f})  ".format(*span) in text for span in spans)
    assert "kept: the rate over the rate alone, in brackets its 95 % interval, of 3 launches." in text
    once = summary_of([*launch("vae"), *solo("vae", mean_ms=450)])
    assert re.search(
        r"  90 % \(\d\d-\d\d\)  .* of 20 observations of one launch\.", text_of(jobs_view(once)), re.DOTALL
    )
    assert "kept" not in text_of(jobs_view(summary_of(launch("vae"))))
    first = rows_of(jobs_view(summary))[0]
    assert float(first["interference_low"]) <= 0.1 <= float(first["interference_high"])
    alone = [one for uid in (3, 4, 5, 6) for one in solo("vae", uid, mean_ms=450)]
    unpaired = summary_of([*(one for uid in range(3) for one in launch("vae", uid)), *alone])
    row = rows_of(jobs_view(unpaired))[0]
    assert (row["interference_n"], row["interference_over"]) == ("3", "launches")


def test_the_page_shows_table_and_picture() -> None:
    text = page("A page", PageContents(summary_of(everything())))
    for words in ('id="interference"', "Kept of the rate alone", "convnet: without slices: out_of_memory"):
        assert words in text
    assert '<th scope="col" class="l">kept</th>' in text
    assert "NaN" not in text
    assert "nterference" not in page("A page", PageContents(summary_of(launch("vae"))))


def test_solo_launches_count_in_no_rate() -> None:
    together, with_solo = summary_of(launch("vae")), summary_of([*launch("vae"), *solo("vae", mean_ms=1)])
    assert (with_solo.jobs[0].node, with_solo.jobs[0].tenants) == (together.jobs[0].node, together.jobs[0].tenants)
    assert with_solo.records.frame.drop("path").equals(together.records.frame.drop("path"))


def test_a_quick_baseline_stands_for_all_equal_slices() -> None:
    records = [*launch("vae"), *quick("vae", mean_ms=400)]
    summary, lines = summary_of(records), lines_of(records)
    rate_alone, own = rates_of(quick("vae", mean_ms=400)), rates_of(launch("vae"))
    for who in ("0", "1"):
        line = lines["vae", who]
        assert line.alone.rate == pytest.approx(rate_alone[0])
        assert line.kept.value == pytest.approx(own[int(who)] / rate_alone[0])
        assert line.kept.interval[0] < line.kept.value < line.kept.interval[1]
        assert line.kept.over == "observations"
    assert {line.baseline for line in lines.values()} == {"quick"}
    node = lines["vae", None].kept
    assert node.value == pytest.approx(sum(own) / (2 * rate_alone[0]))
    for text in (printed(records, 200), page("A page", PageContents(summary))):
        assert "quick: few observations alone" in text
    text = text_of(*suite_views(summary))
    assert re.search(r"80 % \(\d\d-\d\d\)  clean\n", text)
    assert "over the rate alone (quick baseline), in brackets its 95 % interval, of 20 observations" in text
    expected = (
        r"image/s; each user keeps 80 % \(\d\d to \d\d % within one launch\) of what it has alone \(quick baseline\)"
    )
    assert re.search(expected, answer(summary))


def test_quick_and_whole_baselines_are_never_mixed() -> None:
    later = {"started": NOON + timedelta(hours=1)}
    records = [*launch("vae"), *solo("vae", mean_ms=450), *quick("vae", mean_ms=100, **later)]
    line = lines_of(records)["vae", "1"]
    assert line.baseline == "whole"
    assert line.kept.value == pytest.approx(0.9)
    # Another repetition has a quick baseline only: it is of another kind, and does not count.
    more = [*records, *launch("vae", 1), *quick("vae", 1)]
    assert lines_of(more)["vae", "0"].alone.n == 1
    # A whole baseline of other work does not count, so the quick one does.
    other = solo("vae", part=a_part(item="image", arguments=ARGUMENTS | {"batch_size": 1}))
    assert lines_of([*launch("vae"), *other, *quick("vae")])["vae", "0"].baseline == "quick"


def rates_of(records: list[Record]) -> list[float]:
    return [record.statistics.median for record in records if record.statistics is not None]


def by_blocks(name: str, uid: int, kept: float = 0.9) -> list[Record]:
    """A launch by blocks whose first tenant keeps this share of its rate alone, and whose second keeps 0.1 less."""
    shares = [Kept(share, (share - 0.02, share + 0.02), 9) for share in (kept, kept - 0.1)]
    return [in_blocks(one, share) for one, share in zip(launch(name, uid), shares, strict=True)]


def test_what_is_kept_by_blocks_needs_no_launch_alone() -> None:
    lines = lines_of(by_blocks("vae", 0))
    first, second = (lines["vae", who].kept for who in "01")
    assert (first.interval, first.n, first.over) == (pytest.approx((0.88, 0.92)), 9, "rounds")
    assert (first.value, second.value) == pytest.approx((0.9, 0.8))
    (job,) = summary_of(by_blocks("vae", 0)).jobs
    assert job.alone.of("0")[0] == pytest.approx(job.together.of("0")[0] / 0.9)
    assert answer(summary_of(by_blocks("vae", 0))).startswith(
        "vae: each user gets 7688 and 7604 image/s; each user keeps 85 % (83 to 87 % within one launch) of what it has"
    )
    text = page("A title", PageContents(summary_of(by_blocks("vae", 0))))
    for shown in (text, printed(by_blocks("vae", 0), 120)):
        assert "blocks: alone and beside each other by turns" in shown
    assert "n: of rounds (of taking turns) or observations, which are of one launch" in text
    older = [fields_of(one) for one in by_blocks("vae", 0)]
    for one in older:
        one["kept"]["rounds"] = one["kept"].pop("n")
        del one["kept"]["over"]
    assert summary_of(older).jobs[0].kept == job.kept


def test_blocks_count_first_unless_launches_alone_are_more() -> None:
    records = [*by_blocks("vae", 0), *solo("vae", 0, 2, 400)]
    assert lines_of(records)["vae", "0"].baseline == "blocks"
    # Two repetitions are by blocks; the third, beside launches alone, takes no part.
    mixed = [*by_blocks("vae", 0), *by_blocks("vae", 1), *launch("vae", 2), *solo("vae", 2, 2, 400)]
    line = lines_of(mixed)["vae", "0"]
    assert line.baseline == "blocks"
    assert (line.kept.value, line.kept.n) == (pytest.approx(0.9), 2)
    mixed = [*by_blocks("vae", 0), *launch("vae", 1), *(one for uid in (0, 1) for one in solo("vae", uid, 2, 400))]
    assert lines_of(mixed)["vae", "0"].baseline == "whole"


def test_blocks_without_slices_measure_the_whole_machine() -> None:
    records = [replace(one, isolation=UNSLICED["isolation"]) for one in by_blocks("vae", 0)]
    (job,) = summary_of(records).jobs
    assert job.alone is None
    assert job.unsliced_alone.baseline == "blocks"
