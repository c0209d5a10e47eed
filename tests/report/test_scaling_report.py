"""Scaling from records, in the three forms that other suites' readers know."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from scipy import stats

from commands.calling import refusal
from cotenant.report.published import published_curves
from cotenant.report.renderers import as_json, markdown
from cotenant.report.scaling import Curves, as_text, check_single, curves, doubtful, few, scaling_view
from cotenant.results.record import Record
from report.making import launch, scaling, summary_of

SPEEDS = {1: 1.0, 2: 0.9, 4: 0.4, 8: 1.3}
"""Efficiencies by number of devices."""
NOISY = {1: (500, 540, 470, 510, 480), 8: (470, 490, 430, 500, 440)}
"""Milliseconds of an observation in each launch: eight devices seem as fast as 8.6."""


def curves_of(records: list[Record]) -> Curves:
    return curves(summary_of(records).jobs)


def of_five() -> list[Record]:
    return [scaling(devices, uid) for uid in range(5) for devices in (1, 2, 8)]


def rates_of(record: Record) -> list[float]:
    """Return the rates of the observations that a record keeps."""
    return [of.items / (of.end_ns - of.start_ns) * 1e9 for of in record.observations[record.skip :]]


def medians(records: list[Record], devices: int) -> list[float]:
    return [float(np.median(rates_of(one))) for one in records if one.observed["world_size"] == devices]


def test_markdown_to_the_letter() -> None:
    records = of_five()
    found, middle = curves_of(records), {k: float(np.median(medians(records, k))) for k in (1, 2, 8)}
    assert markdown(scaling_view(found)).splitlines() == [
        "| node_num | gpu_num_per_node | batch_size_per_device | samples/s | speedup |",
        "| ---: | ---: | ---: | ---: | ---: |",
        *(f"| 1 | {k} | 64 | {middle[k]:.2f} | {middle[k] / middle[1]:.2f} |" for k in (1, 2, 8)),
    ]
    assert few(found) == doubtful(found) == []


def test_text_to_the_letter() -> None:
    records = [scaling(2, uid) for uid in range(5)]
    rates = np.array(medians(records, 2))
    half = stats.t.ppf(0.975, 4) * stats.sem(rates)
    assert as_text(curves_of(records)).splitlines() == [
        "Model: resnet50",
        "Batch size: 64",
        "Number of GPUs: 2",
        *(f"Iter #{index}: {rate / 2:.1f} img/sec per GPU" for index, rate in enumerate(rates)),
        f"Img/sec per GPU: {rates.mean() / 2:.1f} +-{half / 2:.1f} (1.96 sd: +-{1.96 * rates.std() / 2:.1f})",
        f"Total img/sec on 2 GPU(s): {rates.mean():.1f} +-{half:.1f} (1.96 sd: +-{1.96 * rates.std():.1f})",
    ]


def test_shipped_published_curves_have_the_published_rates() -> None:
    shootout, ray = published_curves(Path("shootout")), published_curves(Path("ray"))
    rates = {(str(series), point.key): point.rates[0] for series in shootout for point in shootout[series]}
    assert len(rates) == 4 * 5 + 6 * 4
    for series, key, rate in (
        ("ddp, files, 8 workers", "1n8g", 1070.37),
        ("ddp, DALI, 48 workers", "4n8g", 10032.72),
        ("ddp by OneFlow 0.1.9, files", "4n8g", 11711.18),
    ):
        assert rates[f"resnet50, batch 128 per device, fp32, {series}, foreign: shootout.csv", key] == rate
    speedups = {
        series.input: [round(point.speedup.value if point.speedup else 0, 2) for point in points]
        for series, points in shootout.items()
        if series.parallelism == "ddp"
    }
    assert speedups == {  # As published beside the rates.
        "files, 8 workers": [1.0, 3.52, 3.49, 6.83, 13.45],
        "files, 48 workers": [1.0, 3.52, 7.55, 14.67, 28.75],
        "DALI, 8 workers": [1.0, 3.86, 6.33, 12.34, 24.88],
        "DALI, 48 workers": [1.0, 3.73, 7.72, 14.81, 28.61],
    }
    assert {(series.precision, series.parallelism): [point.rates[0] for point in ray[series]] for series in ray} == {
        ("fp32", "dp"): [355.5, 656, 1289, 2521],
        ("fp32", "ddp by Ray"): [356, 701, 1401, 2795],
        ("fp16", "dp"): [776, 1303, 2606, 4795],
        ("fp16", "ddp by Ray"): [770, 1346, 2695, 5862],
        ("fp32", "horovod"): [2769.7, 5492.2, 10733.4, 21872.5],
        ("fp32", "ddp by Ray over nodes"): [2962.7, 5886.1, 11705.9, 23317.9],
        ("fp16", "horovod"): [5143, 9463, 18807, 36911.8],
        ("fp16", "ddp by Ray over nodes"): [6172, 10052.8, 20319.5, 38642],
    }
    text = as_text(curves_of(of_five()) | ray)
    assert "Model: resnet50 (foreign: ray.csv)\nBatch size: 128\nNumber of GPUs: 64\n" in text
    assert "Total img/sec on 64 GPU(s): 38642.0 +-too few runs\n" in text, "of one number there is no deviation"


def test_the_shoot_outs_own_result_file_is_read(tmp_path: Path) -> None:
    point = {"average_speed": 4328.9, "batch_size_per_device": 128, "median_speed": 4372.33, "speedup": 12.34}
    (tmp_path / "_result.json").write_text(json.dumps({"r50": {"2n8g": point}}))
    ((series, (found,)),) = published_curves(tmp_path / "_result.json").items()
    assert (str(series), found.key) == ("r50, batch 128 per device, foreign: _result.json", "2n8g")
    assert found.rates == (4372.33,)
    wrong = {"{}x": "no table of scaling", '{"r50": {"2n8": 1}}': "no table", "a,b\n1,2\n": "Its header"}
    wrong[json.dumps({"r50": {"1n0g": point}})] = "row 1: Expected `int` >= 1"
    for text, reason in wrong.items():
        (tmp_path / "x").write_text(text)
        assert reason in refusal(published_curves, tmp_path / "x")


def test_ranks_on_processors_are_called_so() -> None:
    text = as_text(curves_of([replace(scaling(2, uid), devices=0) for uid in range(5)]))
    assert "GPU" not in text
    assert "Total img/sec on 2 CPU(s): " in text


def test_of_a_single_launch_the_lines_are_its_observations() -> None:
    record = scaling(2)
    lines = as_text(curves_of([record])).splitlines()
    assert lines[3] == f"Iter #0: {rates_of(record)[0] / 2:.1f} img/sec per GPU"
    assert sum(line.startswith("Iter") for line in lines) == len(rates_of(record))


def test_without_one_device_there_is_no_speedup() -> None:
    found = curves_of([scaling(2), scaling(4)])
    assert few(found) == ["scaling.c2, 1n2g: 1 of 5 launches.", "scaling.c4, 1n4g: 1 of 5 launches."]
    assert [point.speedup for points in found.values() for point in points] == [None, None]
    assert [row["speedup"] for row in json.loads(as_json(scaling_view(found)))["rows"]] == [None, None]
    assert markdown(scaling_view(found)).splitlines()[2].endswith("| - |")


def test_two_configurations_or_machines_with_one_key_fail() -> None:
    other = [replace(one, unique_id="another") for one in [scaling(1), scaling(2)]]
    again = [replace(one, name=f"again.c{one.observed['world_size']}") for one in other]
    updated = [replace(scaling(1, uid), machine={"torch": {"version": f"2.{uid}"}}) for uid in (0, 1)]
    for records, reason in (
        ([*of_five(), *again], r"Two configurations stand under 1n1g .*different benchmarks or arguments"),
        (updated, "software"),
        ([scaling(1), replace(scaling(1), hostname="node2")], "Two machines"),
    ):
        assert re.search(reason, refusal(curves_of, records))


def test_two_batch_sizes_are_two_curves() -> None:
    large = [replace(scaling(devices, 0, 128), name=f"large.c{devices}") for devices in (1, 2)]
    lone = replace(scaling(8, 0, 256), name="dcgan_all")
    found = curves_of([*of_five(), *large, lone])
    assert [*map(str, found)] == [f"resnet50, batch {size} per device, fp32, ddp, resident" for size in (64, 128)]
    assert as_text(found).count("Model: resnet50") == 5
    assert len(curves_of([lone])) == 1
    shared = curves_of(launch("vae", 0, 2))
    assert "1n1g is the key of 2 configurations" in refusal(check_single, found)
    assert "no scaling cells" in refusal(scaling_view, shared)
    assert {(row["batch_size_per_device"], row["nodes"], row["devices"]) for row in scaling_view(found).rows} == {
        *((64, 1, devices) for devices in (1, 2, 8)),
        *((128, 1, devices) for devices in (1, 2)),
    }


def test_data_parallel_is_one_process_over_all_devices() -> None:
    whole = scaling(1, 0, 512, replicas=8)
    assert (whole.arguments["batch_size"], whole.arguments["batch_size_per_device"]) == (512, 64)
    (series,) = found = curves_of([whole])
    ((point,),) = found.values()
    assert (point.key, series.parallelism, series.batch_size_per_device) == ("1n8g", "dp", 64)


def test_implausible_efficiency_is_reported_across_suite_runs() -> None:
    """No record has a finding: each suite run has seen one number of devices."""
    records = [scaling(devices, uid, mean_ms=500 / times) for uid in range(5) for devices, times in SPEEDS.items()]
    assert not any(one.findings for one in records)
    first, second = doubtful(curves_of(records))
    assert first.startswith("scaling.c4, 1n4g: 4 devices ran 1.60 times as fast as one: an efficiency of 0.40. Check ")
    assert second.startswith("scaling.c8, 1n8g: 8 devices ran 10.40 times as fast as one: an efficiency of 1.30. Run ")
    assert doubtful(curves_of([scaling(8, mean_ms=1)])) == [], "nothing ran on one device"
    *_, once = doubtful(curves_of(records[: len(SPEEDS)]))
    assert once.endswith("an efficiency of 1.30. It is unclear below 3 launches on each side.")
    noisy = [scaling(devices, uid, mean_ms=ms) for devices, each in NOISY.items() for uid, ms in enumerate(each)]
    assert doubtful(curves_of(noisy)) == [], "both sides err by more than that"


def test_a_speedup_under_other_conditions_is_reported() -> None:
    machines = {devices: {"torch": {"version": f"2.{devices}"}} for devices in (1, 2)}
    records = [replace(scaling(devices, uid), machine=machines[devices]) for devices in machines for uid in range(5)]
    (said,) = doubtful(curves_of(records))
    begin = "scaling.c2, 1n2g: its speed-up is over one device under other conditions "
    assert said == f"{begin}(different software: 2.1 and 2.2)."
