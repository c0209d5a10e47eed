"""The compute rates of jobs, against the datasheet and against matrix products measured in the same slices."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from msgspec.structs import replace

from cotenant.report.ceilings import Compute
from cotenant.report.jobs import OF_CEILING, jobs_view
from cotenant.report.page import page
from cotenant.report.renderers import as_json, markdown
from cotenant.report.sections.contents import PageContents
from cotenant.report.summary import summarise
from cotenant.results.record import Record
from cotenant.results.table import Rows
from report.making import UNSLICED, exported, frame, jobs_in, launch, rows_of, solo, summary_of, text_of
from results.made import ARGUMENTS, T0_NS, a_part

PER_STEP = 64
"""Operations of a job's step. The 30 steps of half a second are half of a product's 3840 operations in that time."""
H200: dict[str, Any] = {"gpu": "NVIDIA H200"}


def sliced(records: list[Record]) -> list[Record]:
    """The records, each tenant in a slice of its own."""
    found = []
    for one in records:
        planned = one.isolation.planned | {"processors": str(one.tenant)}
        found.append(replace(one, isolation=replace(one.isolation, planned=planned)))
    return found


def job(name: str = "vae", uid: int = 0, flops: float = PER_STEP, precision: str = "fp32", **more: Any) -> list[Record]:
    """A launch whose steps have `flops` operations each."""
    seen = {"dtype": precision.replace("half", "fp16"), "device": "cpu", "flops_per_step": flops, "world_size": 1}
    part = a_part(item="image", arguments=ARGUMENTS | {"precision": precision}, observed=seen)
    return sliced(launch(name, uid, part=part, **more))


def product(name: str = "product", uid: int = 0, precision: str = "fp32", ranks: int = 1, **more: Any) -> list[Record]:
    """A launch of a ceiling: its items are operations."""
    seen = {"dtype": precision, "device": "cpu", "flops_per_step": 128, "world_size": ranks}
    part = a_part(item="FLOP", arguments=ARGUMENTS | {"precision": precision}, observed=seen)
    place = {"suite": "ceilings"} | more.pop("place", {})
    return sliced(launch(name, uid, part=part, place=place, **more))


def computed(records: list[Record], name: str = "vae") -> Compute:
    (found,) = [one.compute for one in summary_of(records).jobs if one.name == name]
    return found


def of_ceiling(records: list[Record]) -> float | None:
    return computed(records).of_ceiling


def test_a_tenant_is_held_against_the_product_in_its_own_slice() -> None:
    fast, slow = product(mean_ms=250)[0], product(mean_ms=1000)[1]
    found = computed([*job(), fast, slow])
    # Tenant 0 reaches a quarter of its ceiling. Tenant 1 and its ceiling are both 1 % slower: it reaches all of it.
    assert found.of_ceiling == pytest.approx((0.25 + 1) / 2, rel=1e-3)
    assert found.tflops == pytest.approx(PER_STEP * 30 / 0.5 / 1e12, rel=0.01)
    assert found.ceiling_tflops == pytest.approx((3840 / 0.25 + 3840 / 1.01) / 2 / 1e12, rel=1e-3)
    assert (found.mfu, found.above) == (None, "")


def test_of_several_launches_the_medians_count() -> None:
    jobs = [one for uid in range(3) for one in job(uid=uid)]
    products = [one for uid in range(5) for one in product(uid=uid)]
    rates = frame([*jobs, *products]).groupby(["job", "tenant"])["rate"].median()
    expected = (PER_STEP * 30 / 3840 * rates["vae"] / rates["product"]).median()
    assert of_ceiling([*jobs, *products]) == pytest.approx(expected, rel=1e-3)


def test_the_highest_of_several_products_is_the_ceiling() -> None:
    records = [*job(), *product("product_device", mean_ms=250), *product()]
    assert of_ceiling(records) == pytest.approx(0.25, rel=1e-3)
    own = computed(records, "product")
    assert own.tflops > 0
    assert (own.of_ceiling, own.ceiling_tflops) == (None, None)


UNLIKE: dict[str, list[Record]] = {
    "other precision": product(precision="bf16"),
    "other slice": [replace(one, isolation=replace(one.isolation, planned={})) for one in product()],
    "other isolation": product(place=UNSLICED),
    "other host": product(place={"hostname": "node2"}),
    "other device": product(place={"machine": {"model_name": "Another Processor", "accelerators": []}}),
    "INVALID": product(load=(T0_NS, T0_NS + 10**10)),
    "a missing user": product()[:1],
    "alone": sliced(solo("product", part=a_part(item="FLOP"), place={"suite": "ceilings"})),
    "several ranks": product(ranks=2),
}


def test_what_was_measured_otherwise_is_no_ceiling() -> None:
    assert {name: of_ceiling([*job(), *records]) for name, records in UNLIKE.items()} == dict.fromkeys(UNLIKE)
    assert summary_of([*launch("vae"), *product()]).jobs[0].compute is None, "nothing was counted"
    without = text_of(jobs_view(summary_of(job())), width=250)
    assert not any(words in without for words in ("MFU", "of ceiling", OF_CEILING))


def test_half_precision_is_compared_with_the_fp16_ceiling() -> None:
    assert of_ceiling([*job(precision="half"), *product(precision="fp16")]) == pytest.approx(0.5, rel=1e-3)
    invalid = job(uid=1, flops=50 * PER_STEP, load=(T0_NS, T0_NS + 10**10))
    assert of_ceiling([*job(), *invalid, *product()]) == pytest.approx(0.5, rel=1e-3)


def test_what_is_above_the_ceilings_interval_is_said() -> None:
    summary = summary_of([*job("ssd", flops=3 * PER_STEP), *job(), *product()])
    (said,) = summary.notes
    assert said.startswith("ssd: 11.41k FLOP/s")
    assert "are 1.5 times the ceiling measured in the same slice, 7604 FLOP/s (7634 FLOP/s at most)" in said
    assert "./run.sh --jobs ceilings" in said
    for text in (
        text_of(jobs_view(summary), width=250),
        as_json(jobs_view(summary)),
        page("A title", PageContents(summary)),
    ):
        assert said in text
    assert summary_of([*job(flops=2 * PER_STEP * 1.0001), *product()]).notes == (), "within the interval"


def test_every_view_has_the_shares() -> None:
    seen = {"dtype": "bf16", "device": "cuda", "flops_per_step": 10**12, "world_size": 1}
    part = a_part(item="image", observed=seen, arguments=ARGUMENTS | {"precision": "bf16"}, **H200)
    summary = summary_of([*launch("convnet", part=part), *job(), *product()])
    html = page("A title", PageContents(summary))
    grid = jobs_view(summary)
    for text in (text_of(grid, width=250), text_of(grid, width=80), markdown(grid), html):
        assert all(words in text for words in ("of ceiling", "MFU", "50.0 %", "6.0 %"))
    card = re.search(r"per user: ([\d.]+) FLOP/s, 50\.0 % of the ceiling of ([\d.]+) FLOP/s", html)
    assert [float(one) for one in card.groups()] == pytest.approx([3820, 7640], rel=0.01)
    convnet, vae, ceiling = [row for row in rows_of(grid) if not row["tenant"]]
    assert float(convnet["mfu"]) == pytest.approx(60 / 989.5, rel=0.01)
    assert (convnet["of_ceiling"], vae["mfu"], ceiling["of_ceiling"]) == ("", "", "")
    found = jobs_in(json.loads(as_json(grid)))[1]
    assert float(vae["of_ceiling"]) == found["of_ceiling"] == pytest.approx(0.5, rel=1e-3)


def test_exported_rows_say_the_same() -> None:
    records = [*job("ssd", flops=3 * PER_STEP), *job(), *product()]
    rows = summarise(Rows.all(exported(records)))
    assert [one.compute for one in rows.jobs] == [one.compute for one in summary_of(records).jobs]
