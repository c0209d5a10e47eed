"""Different jobs beside each other, from records: the table of a mix, the matrix of pairs, the sentence, the page."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from commands.calling import refusal
from cotenant.commands.report import main as report
from cotenant.findings.rules import with_findings
from cotenant.report.answer import answer, sentences, shares_of
from cotenant.report.beside import MixBlock, mix_blocks, mix_view
from cotenant.report.interference import interference_lines
from cotenant.report.meters import courses
from cotenant.report.page import page
from cotenant.report.pairs import outside_pairs, pair_matrices, pairs_sentence, pairs_view
from cotenant.report.renderers import markdown
from cotenant.report.sections.contents import PageContents
from cotenant.report.tables import tables
from cotenant.results.record import Record, SharedDevice
from cotenant.results.store import write_record
from cotenant.results.targets import System
from cotenant.stats.kept import Kept, Over
from report.making import BUSY, SEEN, UNSLICED, launch, power, quick, rows_of, summary_of, text_of
from results.made import ARGUMENTS, ISOLATION, NOON, a_part, a_record, steady

ALONE_MS = {"vae": 450.0, "wlm": 100.0, "loader": 800.0}
SIZES = {"vae": 128, "wlm": 8, "loader": 64}
UNITS = {"vae": "image", "wlm": "token", "loader": "sample"}


def part(job: str) -> dict[str, Any]:
    return a_part(item=UNITS[job], arguments=ARGUMENTS | {"batch_size": SIZES[job]}, version=f"{len(job):016x}")


def mix(
    progress: Sequence[tuple[str, float]], uid: int = 0, name: str = "", lost: int = -1, second: int = 0, **place: Any
) -> list[Record]:
    """A launch whose tenants run these jobs and keep these shares of their rates alone; the tenant `lost` fails."""
    cells = [job for job, _ in progress]
    began = NOON + timedelta(minutes=uid, seconds=second)
    common = {"started": began, "ended": began + timedelta(seconds=30)}
    records = []
    for tenant, (job, kept) in enumerate(progress):
        where = {"name": job, "tenant": tenant, "tenants": len(cells), "vcd": str(tenant), "run_id": uid}
        where |= {"mix": name or "+".join(cells), "neighbours": sorted(cells[:tenant] + cells[tenant + 1 :])}
        told = {"observations": steady(uid, ALONE_MS[job] * (1 + 0.03 * uid) / kept), "part": part(job)}
        ended = {"outcome": "failed", "message": "It died."} if tenant == lost else {}
        records.append(a_record(where | place, told, common, comparable=lost < 0, **ended))
    return records


def alone(job: str, uid: int = 0, **place: Any) -> list[Record]:
    """The quick baseline of a job for both tenants."""
    return quick(job, uid, ALONE_MS[job] * (1 + 0.03 * uid) / (1 + 0.02 * uid), place=place, part=part(job))


def baselines(*jobs: str, uids: Sequence[int] = (0,)) -> list[Record]:
    return [record for uid in uids for job in jobs for record in alone(job, uid)]


def only(records: Sequence[Record]) -> MixBlock:
    (block,) = mix_blocks(summary_of(records))
    return block


TWO = (("vae", 0.8), ("wlm", 0.5))
BOTH, OWN = SharedDevice("", "time", 2, None, None, "", None), SharedDevice("", "exclusive", 1, None, None, "", None)


def test_whom_a_neighbour_ended_is_counted_with_that_one() -> None:
    culprit, other = mix(TWO, lost=0)
    ended = replace(other, completed=False, outcome="aborted", message="User 0 failed.", statistics=None)
    (loss,) = summary_of([culprit, ended]).losses
    assert (loss.job, loss.tenant, loss.outcome, loss.aborted) == ("vae.in.vae+wlm", "0", "failed", 1)


def test_the_jobs_of_a_mix_are_one_launch_of_the_meters() -> None:
    def measured(uid: int) -> list[Record]:
        return [replace(one, meters=one.meters | power([100.0, 300.0])) for one in mix(TWO, uid, "lab")]

    assert courses(summary_of(measured(0)).records) == []
    two = courses(summary_of([*measured(0), *measured(1)]).records)
    (watts,) = (launches for _, quantity, launches in two if quantity == "power_w")
    assert [[meter.mean for meter in of] for of in watts] == [[100.0, 300.0]] * 2


def test_the_newest_of_merged_mixes_counts_despite_a_lost_user() -> None:
    """Its survivors do not stand beside the lost user's first run."""
    first, alone_too = mix(TWO), baselines("vae", "wlm")
    records = [*first, *mix((("vae", 0.4), ("wlm", 0.9)), lost=1, second=30), *alone_too]
    assert only([*first, *alone_too]).measures != {}
    assert only(records).measures == {}
    assert any("there are records of several runs; the newest count." in note for note in summary_of(records).notes)


def test_a_mix_of_different_units_has_its_known_measures() -> None:
    """Each repetition is slower than the one before it, together and alone: ratios within one uid cancel that."""
    uids = range(4)
    records = [record for uid in uids for record in mix(TWO, uid)] + baselines("vae", "wlm", uids=uids)
    block = only(records)
    found = block.measures
    users = [(user["job"], user["tenant"], user["unit"], round(user["value"], 2)) for user in block.users]
    assert users == [("vae", "0", "image", 0.8), ("wlm", "1", "token", 0.5)]
    assert (found["stp"].value, found["antt"].value) == pytest.approx((1.3, (1 / 0.8 + 1 / 0.5) / 2), rel=0.01)
    assert (found["fairness"].value, found["tax"].value) == pytest.approx((0.625, 0.35), rel=0.01)
    assert (block.worst["tenant"], found["stp"].n) == ("1", 4)
    low, high = found["stp"].interval
    assert low <= 1.3 * 1.001
    assert high >= 1.3 * 0.999
    assert high / low < 1.01, "the machine's state cancels"
    summary = summary_of(records)
    assert answer(summary).startswith("Beside each other the 2 users of vae+wlm keep 63 % (")
    assert "of what each has alone (quick baseline); least: wlm, 50 % (" in answer(summary)
    grid = mix_view(mix_blocks(summary))
    shown = text_of(grid)
    assert all(words in shown for words in ("STP 1.30", "user 1 (wlm)"))
    assert " 1 launch " not in shown
    rows = rows_of(grid)
    measures = {row["measure"]: float(row["value"]) for row in rows if row["measure"]}
    assert measures["stp"] == pytest.approx(found["stp"].value)
    assert set(measures) == {"stp", "antt", "worst_slowdown", "fairness", "tax"}


def test_a_mix_launched_once_is_labelled_as_measured_once() -> None:
    summary = summary_of([*mix(TWO, sharers=2), *baselines("vae", "wlm")])
    assert mix_blocks(summary) is mix_blocks(summary), "made once"
    (block,) = mix_blocks(summary)
    assert block.measures["tax"].value == pytest.approx(-0.3, abs=0.01)
    kept = block.shares[1]
    assert block.measures["worst_slowdown"] == kept.inverse(), "what is kept is one number with one interval"
    assert kept.within
    grid = mix_view([block])
    assert all(words in text_of(grid) for words in ("share kept", " 20 observations "))
    assert "; measured once" in answer(summary)
    assert float(rows_of(grid)[0]["share_kept"]) == pytest.approx(1.6, rel=0.01)


def test_users_of_a_shared_device_are_each_entitled_to_a_part() -> None:
    """Two users share a device; a third user has a device of its own."""
    block = only([*mix(TWO, share=BOTH), *baselines("vae", "wlm")])
    assert block.measures["tax"].value == pytest.approx(-0.3, abs=0.01)
    assert " of 1 slices;" in text_of(mix_view([block]))
    assert [user["entitlement"] for user in block.users] == [0.5, 0.5]
    assert "2 of them have the same device" in text_of(mix_view([block]))
    shared, apart = (mix([*TWO, ("loader", 1.0)], share=share) for share in (BOTH, OWN))
    of_all = {"stands_for": [0, 1, 2]}
    lone = [record for job in ALONE_MS for record in quick(job, 0, ALONE_MS[job], place=of_all, part=part(job))]
    uneven = only([*shared[:2], apart[2], *lone])
    assert " of 2 slices;" in text_of(mix_view([uneven]))
    assert [user["sharers"] for user in uneven.users] == [2, 2, 1]


def on_device(record: Record, watts: float) -> Record:
    """Return the record on device 0, whose energy counter goes up by `watts` joules a second."""
    meters = {"devices": {"GPU-0": SEEN | {"index": 0, "energy_j": 15 * watts, "energy_window_s": 15.0}}}
    return replace(record, vcd="0", meters=meters, observed=record.observed | {"device": "cuda:0"})


def test_energy_of_a_mix_is_compared_with_sequential_runs() -> None:
    """Together each job makes half of its items; alone, one after another, they take as long, at 100 W and at 300 W."""
    records = [on_device(one, 260.0) for one in mix([("vae", 0.5), ("wlm", 0.5)], share=BOTH)]
    records += [on_device(*of) for of in zip(baselines("vae", "wlm"), (100.0, 300.0), strict=True)]
    block = only(records)
    assert block.measures["energy"].value == pytest.approx(260 / 200, rel=0.01)
    assert "energy 1.3" in text_of(mix_view([block]))
    measures = {row["measure"]: row["value"] for row in rows_of(mix_view([block]))}
    assert float(measures["energy"]) == pytest.approx(1.3, rel=0.01)
    assert only([*mix(TWO), *baselines("vae", "wlm")]).measures.get("energy") is None
    # One of two devices counts no energy.
    unknown = replace(records[1], vcd="1", meters={})
    assert "energy" not in only([records[0], unknown, *records[2:]]).measures


OTHER = {"isolation": replace(ISOLATION, backend="affinity")}


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([*mix(TWO), *baselines("vae")], "wlm.in.vae+wlm: wlm was not measured alone: --baseline blocks, or whole"),
        ([*mix(TWO, lost=1), *baselines("vae", "wlm")], "wlm.in.vae+wlm: no launch counts (failed)"),
        ([*mix(TWO), *baselines("vae"), *alone("wlm", **OTHER)], "wlm.in.vae+wlm: wlm alone: different isolation: "),
        ([mix(TWO)[0], *baselines("vae", "wlm")], "there are records of 1 of its 2 users"),
        ([*mix(TWO), *alone("vae", 1), *alone("wlm", 2)], "no repetition has all users together and each of their"),
        (
            [*mix(TWO), *mix([*TWO, ("vae", 0.7)], 1, name="vae+wlm"), *baselines("vae", "wlm", uids=(0, 1))],
            "its launches did different work",
        ),
    ],
)
def test_unknown_measures_show_their_reason_and_no_number(records: list[Record], why: str) -> None:
    block = only(records)
    assert block.measures == {}
    assert any(why in note for note in block.notes), block.notes
    assert block.shares == []
    assert answer(summary_of(records)).startswith("What the users of vae+wlm keep beside each other is not known: ")
    lines = text_of(mix_view([block])).splitlines()
    assert not any("STP " in line for line in lines if "of / alone" not in line)


def test_a_tenant_that_lost_its_neighbour_has_no_rate() -> None:
    summary = summary_of([*mix(TWO, lost=1), *baselines("vae", "wlm")])
    verdicts = {job.name: job.verdict for job in summary.jobs}
    assert verdicts == {"vae.in.vae+wlm": "INVALID", "wlm.in.vae+wlm": "failed"}
    assert any("user 0 is INVALID (neighbour_lost" in note for note in summary.notes)


def test_rates_of_different_jobs_have_no_sum_or_evenness() -> None:
    three = (*TWO, ("vae", 0.6))
    summary = summary_of([*mix(three), *baselines("vae", "wlm")])
    lines = {job.cell: job for job in summary.jobs}
    assert sorted(lines["vae"].tenants) == ["0", "2"]
    assert lines["wlm"].evenness is None, "Jain's index of a job with itself alone"
    assert lines["vae"].evenness.worst_over_best == pytest.approx(0.75, rel=0.01)
    assert shares_of(summary) == []
    assert interference_lines(summary).is_empty()
    assert tables(summary.jobs, [System("any", "Some Processor", 1)]) == {}
    # A program that calls different work by one name has no sum either.
    alike = [replace(record, mix="", neighbours=[], name="lab") for record in mix(TWO)]
    (job,) = summary_of(alike).jobs
    assert (job.node, job.evenness) == (None, None)


def rules(records: Sequence[Record]) -> set[tuple[str, str]]:
    return {(record.name, finding.rule) for record in with_findings(records) for finding in record.findings}


def test_rules_compare_the_tenants_of_one_job_alone() -> None:
    assert {rule for _, rule in rules(mix(TWO))} & {"different_work", "slow_user", "different_items"} == set()
    slow = rules(mix([("vae", 0.9), ("wlm", 0.5), ("vae", 0.5)]))
    assert {name for name, rule in slow if rule == "slow_user"} == {"vae.in.vae+wlm+vae"}
    other = mix([("vae", 0.9), ("wlm", 0.5), ("vae", 0.9)])
    other[2] = replace(other[2], version="another")
    assert {name for name, rule in rules(other) if rule == "different_work"} == {"vae.in.vae+wlm+vae"}


def kept(victim: str, neighbour: str) -> float:
    """Return the share that a victim keeps on a device of known contention."""
    row, column = ([*ALONE_MS].index(job) for job in (victim, neighbour))
    return 1 / (1 + 0.1 * (1 + row) + 0.05 * column)


def pairs(*left_out: str, keeps: Callable[[str, str], float] = kept) -> list[Record]:
    """Every pair of the three jobs but those left out, and each job alone."""
    found = baselines(*ALONE_MS)
    for number, (one, other) in enumerate(itertools.combinations_with_replacement(ALONE_MS, 2)):
        if f"{one}+{other}" not in left_out:
            found += mix([(one, keeps(one, other)), (other, keeps(other, one))], second=number)
    return found


def test_the_matrix_of_pairs_recovers_known_contention() -> None:
    (matrix,) = pair_matrices(summary_of(pairs()))
    for victim, neighbour in itertools.product(ALONE_MS, ALONE_MS):
        assert matrix.shares[victim, neighbour].kept.value == pytest.approx(kept(victim, neighbour), rel=0.01)
    assert matrix.sensitivity("vae") == pytest.approx(sum(kept("vae", other) for other in ALONE_MS), rel=0.01)
    assert matrix.noise("vae") == pytest.approx(sum(kept(other, "vae") for other in ALONE_MS), rel=0.01)
    grid = pairs_view(summary_of(pairs()))
    cells = [column.cell(row) for group in grid.groups for row in group.rows for column in grid.columns]
    shades = [cell.heat for cell in cells if cell.heat is not None]
    assert len(shades) == 9
    assert shades[0] == min(shades) < max(shades) == shades[-1], "the less is kept the darker"
    assert len(rows_of(grid)) == 9
    sentence = answer(summary_of(pairs()))
    assert "In pairs these 3 jobs keep " in sentence
    assert "the worst" not in sentence, "observations of one launch do not tell how launches differ"


def test_the_worst_pair_is_named_only_beyond_noise() -> None:
    (matrix,) = pair_matrices(summary_of(pairs()))

    def sentence(width: float, over: Over = "launches") -> str:
        shares = {}
        for pair, share in matrix.shares.items():
            value = share.kept.value
            shares[pair] = share._replace(kept=Kept(value, (value - width, value + width), 20, over))
        return pairs_sentence(dataclasses.replace(matrix, shares=shares))

    assert sentence(0.02).endswith("; the worst is loader beside itself, which keeps 71 % (69 to 73 %)")
    assert "worst" not in sentence(0.5)
    assert "worst" not in sentence(0.02, "rounds"), "another launch may have another worst pair"


def test_what_may_be_all_and_what_is_suspect_is_marked() -> None:
    shares = {("vae", "wlm"): (1.0, 0.85), ("vae", "loader"): (0.5, 0.9), ("wlm", "loader"): (0.6, 0.7)}
    records = baselines(*ALONE_MS)
    records[1] = replace(records[1], findings=[*records[1].findings, BUSY])
    for number, ((one, other), (first, second)) in enumerate(shares.items()):
        records += mix([(one, first), (other, second)], second=number)
    view = pairs_view(summary_of(records))
    cells = {
        (row["job"], column.heading): column.cell(row).text
        for row in view.groups[0].rows
        for column in view.columns
        if {row["job"], column.heading} < {*ALONE_MS} and column.heading != row["job"]
    }
    assert len(cells) == 6
    assert [pair for pair, cell in cells.items() if cell[0] == "~"] == [("vae", "wlm")]
    # The baseline of wlm is suspect.
    assert {pair for pair, cell in cells.items() if cell[-1] == "?"} == {("wlm", "vae"), ("wlm", "loader")}
    lines = rows_of(pairs_view(summary_of(records)))
    rows = {(line["victim"], line["neighbour"]): line["doubts"] for line in lines}
    assert (rows["wlm", "vae"], rows["vae", "wlm"]) == ("foreign_load", "")
    shown = text_of(mix_view(mix_blocks(summary_of(records))))
    assert "clean, suspect alone" in shown
    assert "~" not in text_of(pairs_view(summary_of(pairs())))


def test_slices_and_no_slices_give_two_matrices_of_pairs() -> None:
    unsliced = mix([("vae", 0.6), ("wlm", 0.4)], name="vae+wlm", **UNSLICED)
    unsliced += mix([("vae", 0.7), ("vae", 0.7)], name="vae+vae", second=9, **UNSLICED)
    summary = summary_of([*pairs(), *unsliced])
    sliced, naive = pair_matrices(summary)
    head, _, *lines = markdown(pairs_view(summary)).splitlines()
    assert head.startswith("| suite | host | isolation | job |")
    assert {line.split(" | ")[2] for line in lines} == {"v1", "none"}, "as a file they are one table"
    assert (sliced.isolation, naive.isolation) == ("v1", "none")
    shares = [naive.shares[victim, "vae"].kept.value for victim in ("wlm", "vae")]
    assert shares == pytest.approx([0.4, 0.7], rel=0.01)
    assert sliced.shares["wlm", "vae"].kept.value == pytest.approx(kept("wlm", "vae"), rel=0.01)


def test_sums_over_a_missing_pair_are_none() -> None:
    (matrix,) = pair_matrices(summary_of(pairs("vae+wlm")))
    assert (matrix.sensitivity("vae"), matrix.sensitivity("wlm")) == (None, None)
    assert matrix.sensitivity("loader") is not None
    assert matrix.noise("vae") is None
    assert pair_matrices(summary_of([*mix(TWO), *baselines("vae", "wlm")])) == []
    (of_two,) = pair_matrices(summary_of([*mix(TWO), *baselines("vae", "wlm"), *equals()]))
    of_vae = sorted(pair for pair in of_two.shares if pair[0] == "vae")
    assert of_vae == [("vae", "vae"), ("vae", "wlm")], "with a job beside itself it is one"


def test_a_launch_of_two_equals_fills_the_matrix_of_pairs() -> None:
    """As in job files: jobs also run beside themselves, `pairs` has different jobs, and `lab` is a mix of its own."""
    summary = summary_of([*pairs("vae+vae"), *equals(), *mix(TWO, name="lab", second=20)])
    (matrix,) = pair_matrices(summary)
    assert matrix.shares["vae", "vae"].kept.value == pytest.approx(0.75, rel=0.01)
    assert matrix.shares["vae", "wlm"].kept.value == pytest.approx(kept("vae", "wlm"), rel=0.01)
    assert [block.mix for block in outside_pairs(summary)] == ["lab"]
    assert answer(summary).startswith("Beside each other the 2 users of lab keep 63 % (")
    assert "In pairs these 3 jobs keep" in answer(summary)
    assert "Beside copies" not in answer(summary)


def test_sentences_on_mixes_and_copies_state_trust_once() -> None:
    others = [*launch("gpt", findings=(BUSY,)), *quick("gpt", 0, 420), *launch("vit"), *quick("vit", 0, 420)]
    users, copies, trust = sentences(summary_of([*mix(TWO), *baselines("vae", "wlm"), *others]))
    assert users.startswith(
        "Beside each other the 2 users of vae+wlm keep 63 % (63 to 64 % within one launch) of what each has alone ("
    )
    typical = "No reliable answer yet: too few launches; typical: beside copies of its own job each user"
    assert copies.startswith(typical)
    assert trust == "1 of 4 jobs is suspect, by other programs."


def equals() -> list[Record]:
    """A launch of two users of one job, which keep the same."""
    told = {"observations": steady(0, ALONE_MS["vae"] / 0.75), "part": part("vae")}
    places = ({"name": "vae", "tenant": tenant, "tenants": 2, "vcd": str(tenant)} for tenant in range(2))
    return [a_record(place=place, told=told) for place in places]


@pytest.mark.parametrize("table", ["mix", "pairs"])
def test_a_table_of_nothing_is_refused_with_what_to_run(tmp_path: Path, table: str) -> None:
    write_record(tmp_path, alone("vae")[0], NOON)
    said = refusal(report, ["--table", table, str(tmp_path)])
    assert said.startswith("No ")
    assert "--mix convnet,wlm" in said


def test_the_page_has_bars_for_each_mix() -> None:
    records = [*mix(TWO), *baselines("vae", "wlm")]
    records[0] = replace(records[0], findings=[*records[0].findings, BUSY])
    html = page("Mixes", PageContents(summary_of(records)))
    assert 'id="beside"' in html
    assert "Beside each other the 2 users of vae+wlm keep 63 %" in html
    assert html.count('id="mix0-') > 0
    assert "80 %</text>" in html.replace("\n", "")
    assert "suspect" in answer(summary_of(records))
