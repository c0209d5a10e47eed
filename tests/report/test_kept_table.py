"""The long table of what is kept: a row per job, user, company and measure, from records of known shares."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.calling import Capture, call, write
from cotenant.frames import pl
from cotenant.report.kept_rows import FIELDS, MEASURES, SCHEMA
from cotenant.report.kept_table import kept_table, kept_view
from cotenant.report.renderers import markdown
from cotenant.results.record import Record
from report.making import UNSLICED, beside_dram, launch, quick, rows_of, solo, summary_of, text_of
from report.test_interference import everything, three_ways
from report.test_mixes import ALONE_MS, TWO, baselines, mix, pairs, part


def table_of(records: list[Record]) -> pl.DataFrame:
    return kept_table(summary_of(records))


def shares(table: pl.DataFrame, **chosen: str) -> list[tuple[str | None, float | None]]:
    rows = table.filter(**chosen, measure="kept").select("tenant", "value").rows()
    return [(who, None if value is None else round(value, 2)) for who, value in rows]


def test_every_column_has_a_type_even_without_rows() -> None:
    empty = table_of(launch("vae", place={"group": "all"}))
    assert (empty.height, list(empty.schema)) == (0, [*FIELDS])
    assert empty.schema == SCHEMA == table_of(everything()).schema


def test_each_user_has_a_row_with_the_rates_behind_its_share() -> None:
    records = [*launch("gpt"), *solo("gpt"), *mix(TWO), *baselines("vae", "wlm"), *beside_dram(job="vae")]
    table = table_of(records)
    assert shares(table, company="copies", job="gpt") == [(None, 0.9), ("0", 0.9), ("1", 0.9)]
    assert shares(table, company="pair") == [("0", 0.8), ("1", 0.5)]
    assert shares(table, company="pressure") == [("0", 1.0), ("0", 0.9), ("0", 0.8), ("0", 0.7)]
    for row in table.filter(pl.col("measure") == "kept", pl.col("job").is_not_null()).to_dicts():
        assert row["value"] == pytest.approx(row["together"] / row["alone"]), row
        assert row["baseline"] in ("whole", "quick", "blocks")
        assert row["low"] is None or row["low"] <= row["value"] <= row["high"]
    first = table.filter(company="pair", tenant="0").row(0, named=True)
    assert (first["mix"], first["neighbours"], first["unit"], first["mode"]) == ("vae+wlm", "wlm", "image", "slices")
    pressed = table.filter(company="pressure")
    assert pressed["level"].to_list() == [25, 50, 75, 100]
    assert (set(pressed["resource"]), set(pressed["achieved_unit"])) == ({"dram"}, {"GB"})


def test_node_measures_follow_from_the_shares_of_its_users() -> None:
    table = table_of(three_ways("vae", range(5), 3))
    for isolation in ("v1", "none"):
        rows = table.filter(isolation=isolation, company="copies")
        kept = rows.filter(pl.col("measure") == "kept", pl.col("tenant").is_not_null())["value"]
        of_all = dict(rows.filter(pl.col("tenant").is_null()).select("measure", "value").rows())
        assert of_all["kept"] == pytest.approx(math.prod(kept) ** (1 / len(kept)), rel=0.001)
        assert of_all["stp"] == pytest.approx(kept.sum(), rel=0.001)
        assert of_all["antt"] == pytest.approx((1 / kept).mean(), rel=0.001)
        assert of_all["worst_slowdown"] == pytest.approx(1 / kept.min())
        assert of_all["tax"] == pytest.approx(1 - of_all["stp"] / 3)
        assert {*MEASURES} < {*of_all}


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([*ALONE_MS]), st.floats(0.3, 1.0)), min_size=2, max_size=4))
def test_the_shares_of_any_mix_are_found_again(progress: list[tuple[str, float]]) -> None:
    everybody = {"stands_for": [*range(len(progress))]}
    jobs = dict.fromkeys(job for job, _ in progress)
    alone = [one for job in jobs for one in quick(job, 0, ALONE_MS[job], place=everybody, part=part(job))]
    table = table_of([*mix(progress), *alone])
    known = [kept for _, kept in progress]
    users = table.filter(measure="kept")
    assert users["tenant"].to_list() == [str(user) for user in range(len(progress))]
    assert users["job"].to_list() == [job for job, _ in progress]
    assert users["value"].to_list() == pytest.approx(known, rel=0.01)
    of_all = dict(table.filter(pl.col("tenant").is_null()).select("measure", "value").rows())
    assert of_all["stp"] == pytest.approx(sum(known), rel=0.01)
    assert of_all["worst_slowdown"] == pytest.approx(1 / min(known), rel=0.01)
    assert of_all["fairness"] == pytest.approx(min(known) / max(known), rel=0.02)
    assert of_all["tax"] == pytest.approx(1 - sum(known) / len(known), abs=0.01)


def test_without_slices_over_with_them_is_the_worth_of_slices() -> None:
    table = table_of([*three_ways("vae"), *three_ways("wlm")]).filter(pl.col("tenant").is_null())
    values = {(row["job"], row["measure"], row["isolation"]): row["value"] for row in table.to_dicts()}
    for job in ("vae", "wlm"):
        found = [values[job, "kept", "v1"], values[job, "unsliced_kept", "none"], values[job, "worth", "none"]]
        assert found[2] == pytest.approx(found[0] / found[1])
        assert values[job, "kept", "none"] == pytest.approx(found[1])
    means = {measure: value for (job, measure, _), value in values.items() if job is None}
    for measure, isolation in (("kept", "v1"), ("unsliced_kept", "none"), ("worth", "none")):
        of_jobs = [values[job, measure, isolation] for job in ("vae", "wlm")]
        assert means[measure] == pytest.approx(math.prod(of_jobs) ** 0.5)


def test_an_unknown_value_is_null_with_its_reason_in_the_row() -> None:
    alone = table_of(launch("vae"))
    assert shares(alone) == [(None, None), ("0", None), ("1", None)]
    assert set(alone["notes"].explode().drop_nulls()) == {"vae was not measured alone: --baseline blocks, or whole"}
    lost = table_of([*mix(TWO, lost=1), *baselines("vae", "wlm")])
    assert shares(lost, company="mix") == [(None, None), (None, None)]
    assert lost["verdict"].to_list() == ["INVALID", "failed"]
    assert all("no launch counts" in note for notes in lost["notes"] for note in notes)


def test_a_rate_alone_without_a_slice_is_in_no_ratio() -> None:
    table = table_of([*launch("vae", place=UNSLICED), *solo("vae", place=UNSLICED)])
    lone = table.filter(measure="unsliced_alone")
    assert (lone.height, lone["value"].null_count(), lone["alone"].null_count()) == (3, 3, 0)
    assert table.filter(measure="kept")["value"].null_count() == 3


def test_the_table_is_shown_and_written_whole(tmp_path: Path, capsys: Capture) -> None:
    records = [*three_ways("vae"), *pairs(), *beside_dram(job="gpt")]
    summary = summary_of(records)
    view = kept_view(summary)
    assert len(rows_of(view)) == kept_table(summary).height == sum(len(group.rows) for group in view.groups)
    assert [*rows_of(view)[0]] == [*FIELDS]
    text = text_of(view, width=240)
    assert all(words in text for words in ("dram 100 %", "vae+wlm", "all jobs", "unsliced_kept", " 20 rounds"))
    assert markdown(view).startswith("| suite | host | isolation | job |")
    status, printed, _ = call(capsys, "report", write(tmp_path, records), "--table", "kept", "--format", "csv")
    assert (status, printed.count("\n")) == (0, len(rows_of(view)) + 1)
