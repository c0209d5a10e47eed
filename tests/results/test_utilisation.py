"""From counted operations to a share of the device's peak."""

from __future__ import annotations

from typing import Any

import pytest

from cotenant.results.record import Record
from cotenant.stats.budget import Amount
from results.made import ARGUMENTS, a_part, a_record, observed, rules

H200 = {"gpu": "NVIDIA H200"}


def stepped(flops: object, seen: dict[str, Any] | None = None, number: object = 30, **told: Any) -> Record:
    """A record of 500 ms observations of 30 steps, each of so many operations."""
    seen = {"dtype": "bf16", "device": "cuda", "flops_per_step": flops} | (seen or {})
    part = a_part(observed=seen, arguments=ARGUMENTS | {"number": number}, **H200)
    return a_record(told={"part": part, "observations": observed([500.0] * 20), **told})


def test_operations_per_second_and_their_share_of_the_peak() -> None:
    compute = stepped(10**12).meters["compute"]
    assert compute["tflops"] == pytest.approx(60)
    assert compute["peak_tflops"] == 989.5
    assert compute["mfu"] == pytest.approx(60 / 989.5)
    assert "datasheet" in compute["peak_source"]


def test_skipped_observations_and_slow_ones_do_not_weigh() -> None:
    rows = observed([5000.0] * 5 + [500.0] * 9 + [2000.0])
    assert stepped(10**12, observations=rows).meters["compute"]["tflops"] == pytest.approx(60)


@pytest.mark.parametrize("seen", [{"device": "cpu"}, {"dtype": None}, {"dtype": "fp64"}, {"dtype": ["bf16"]}])
def test_without_a_known_peak_there_is_no_share(seen: dict[str, Any]) -> None:
    compute = stepped(10**12, seen).meters["compute"]
    assert compute["tflops"] == pytest.approx(60)
    assert (compute["peak_tflops"], compute["mfu"]) == (None, None)


@pytest.mark.parametrize("flops", [None, 0, -3, "many"])
def test_what_was_not_counted_is_not_said(flops: object) -> None:
    assert "compute" not in stepped(flops).meters


@pytest.mark.parametrize("number", [None, 0, "30"])
def test_without_a_number_of_steps_there_is_no_rate_of_them(number: object) -> None:
    assert "compute" not in stepped(10**12, number=number).meters


def test_a_record_that_did_not_complete_or_kept_nothing_has_none() -> None:
    assert "compute" not in stepped(10**12, skip=20).meters
    part = a_part(observed={"flops_per_step": 1, "device": "cuda"}, **H200)
    assert "compute" not in a_record(told={"part": part}, outcome="failed").meters


def test_the_steps_are_those_that_go_gave_and_not_those_asked_for() -> None:
    """A budget halves what a program does that names `number` among its arguments only."""
    asked, given = Amount(30, 20, 5), Amount(15, 20, 5)
    record = stepped(2 * 10**13, asked=asked, given=given)
    assert record.arguments["number"] == 15
    assert record.meters["compute"]["tflops"] == pytest.approx(600)
    assert "mfu_impossible" not in rules(record)
    assert "mfu_impossible" in rules(stepped(2 * 10**13, asked=asked, given=asked))


def test_convolutions_that_can_take_fewer_products_may_exceed_the_peak() -> None:
    """fp32 of 3 x 3 by Winograd's algorithm: an honest rate, and no error."""
    record = stepped(2 * 10**13, {"flops_reducible": 18 * 10**12})
    assert record.meters["compute"]["mfu_least"] == pytest.approx((1 - 0.75 * 0.9) * 1200 / 989.5)
    assert {"mfu_above_peak"} == {one for one in rules(record) if one.startswith("mfu")}
    assert "mfu_impossible" in rules(stepped(2 * 10**13, {"flops_reducible": 10**12}))


@pytest.mark.parametrize("reducible", [None, -1, "all", 10**20])
def test_a_part_that_is_none_is_not_taken_off(reducible: object) -> None:
    compute = stepped(10**12, {"flops_reducible": reducible}).meters["compute"]
    assert compute["mfu_least"] == pytest.approx(compute["mfu"] * (0.25 if reducible == 10**20 else 1))


def test_more_than_the_peak_is_no_number() -> None:
    record = stepped(2 * 10**13)
    assert "mfu_impossible" in rules(record)
    assert record.invalid
