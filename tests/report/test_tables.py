"""Systems side by side."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from commands.calling import refusal
from cotenant.report.foreign import foreign_lines
from cotenant.report.renderers import as_csv, as_json
from cotenant.report.tables import (
    ColumnWork,
    Entry,
    Line,
    Tables,
    family,
    forms,
    other_works,
    sources_of_watt,
    speed_up_view,
    systems_view,
    tables,
)
from cotenant.results.record import Record
from cotenant.results.targets import System
from report.making import launch, power, rows_of, summary_of
from results.made import ARGUMENTS, ISOLATION, a_part, with_device

SYSTEMS = [
    System("V100", "*V100*", 1, 250, 8000),
    System("2x V100", "*V100*", 2, 500),
    System("T4", "*T4*", 2, 140, 4000),
]


def rows_in(*given: Any, **more: Any) -> dict[str, dict[str, str]]:
    """Return a table's rows by the names of their systems."""
    return {row.pop("name_gpu"): row for row in rows_of(systems_view(*given, **more))}


def header(*given: Any) -> str:
    return as_csv(systems_view(*given)).splitlines()[0]


def on(host: str, gpu: str, name: str, mean_ms: float, batch_size: int = 32, **common: Any) -> list[Record]:
    """One launch of a job on a host with two devices."""
    part = _part(gpu, "fp16" if name.endswith("fp16") else "fp32", batch_size)
    return launch(name, 0, 2, mean_ms, place={"hostname": host, "devices": 1}, part=part, **common)


def _part(gpu: str, precision: str = "fp32", batch_size: int = 32) -> dict[str, Any]:
    return a_part(
        item="image",
        gpu=gpu,
        arguments=ARGUMENTS | {"batch_size": batch_size, "precision": precision},
        observed={"dtype": precision, "device": "cuda:0", "world_size": 1, "compiled": False},
    )


def two_systems() -> list[Record]:
    return [
        *on("dgx", "Tesla V100", "resnet50_fp32", 500),
        *on("dgx", "Tesla V100", "ssd_fp32", 250, 8),
        *on("dgx", "Tesla V100", "bert_fp32", 800),
        *on("dgx", "Tesla V100", "resnet50_fp16", 200, 64),
        *on("small", "Tesla T4", "resnet50_fp32", 1000, 16),
    ]


def tables_of(records: list[Record]) -> Tables:
    return tables(summary_of(records).jobs, SYSTEMS)


def rate_of(records: list[Record]) -> float:
    return sum(one.statistics.median for one in records)


def test_table_headers_are_those_of_the_other_suite() -> None:
    found = tables_of(two_systems())
    assert list(found) == ["fp32", "fp16"]
    assert header(found["fp32"], "throughput") == "name_gpu,num_gpu,watt,price,ssd,bert,resnet50"
    assert header(found["fp16"], "throughput") == "name_gpu,num_gpu,watt,price,resnet50"
    rows = rows_in(found["fp32"], "throughput")
    assert list(rows) == ["2x V100", "T4"]
    ssd = rate_of(on("dgx", "Tesla V100", "ssd_fp32", 250, 8))
    assert float(rows["2x V100"]["ssd"]) == pytest.approx(ssd, rel=1e-12)
    known = {"num_gpu": "2", "watt": "140", "price": "4000", "resnet50": rows["T4"]["resnet50"]}
    assert rows["T4"] == {"ssd": "", "bert": ""} | known
    assert rows["2x V100"]["price"] == ""
    batches = {name: (row["ssd"], row["resnet50"]) for name, row in rows_in(found["fp32"], "batch-size").items()}
    assert batches == {"2x V100": ("8", "32"), "T4": ("", "16")}


def test_of_several_cells_the_fastest_counts_in_both_tables() -> None:
    slow = on("dgx", "Tesla V100", "resnet50_fp32.c1", 500, 16)
    fast = on("dgx", "Tesla V100", "resnet50_fp32.c2", 100, 48)
    (line,) = tables_of([*slow, *fast])["fp32"]
    ((work, entry),) = line.entries.items()
    assert (work.family, entry.batch_size) == ("resnet50", 48)


def test_relative_to_a_reference_per_watt_and_per_price() -> None:
    lines = tables_of(two_systems())["fp32"]
    rows = rows_in(lines, "throughput", reference="T4")
    assert float(rows["T4"]["resnet50"]) == 1
    assert float(rows["2x V100"]["resnet50"]) == pytest.approx(2, rel=1e-6)
    assert rows["2x V100"]["ssd"] == ""  # the reference has none
    assert "There are 2x V100, T4" in refusal(rows_in, lines, "throughput", reference="A100")
    plain, watt, price = (rows_in(lines, "throughput", per) for per in (None, "watt", "price"))
    assert float(watt["T4"]["resnet50"]) == pytest.approx(float(plain["T4"]["resnet50"]) / 140)
    assert float(price["T4"]["resnet50"]) == pytest.approx(float(plain["T4"]["resnet50"]) / 4000)
    assert price["2x V100"]["resnet50"] == ""
    assert sources_of_watt(lines) == [
        "2x V100: watt is the constant 500 of its description.",
        "T4: watt is the constant 140 of its description.",
    ]


def test_measured_power_takes_precedence_over_the_constant() -> None:
    lines = tables_of(on("dgx", "Tesla V100", "ssd_fp32", 500, meters=power([300, 200, 999])))["fp32"]
    assert lines[0].usual_watt == pytest.approx(500)
    row = rows_in(lines, "throughput", "watt")["2x V100"]
    assert float(row["ssd"]) == pytest.approx(rate_of(on("dgx", "Tesla V100", "ssd_fp32", 500)) / 500)
    assert float(row["watt"]) == pytest.approx(500)
    assert sources_of_watt(lines) == ["2x V100: watt is measured."]
    (line,) = tables_of(on("dgx", "Tesla V100", "ssd_fp32", 500, meters=power([300])))["fp32"]
    (entry,) = line.entries.values()
    assert (entry.watt, line.usual_watt) == (None, 500)


def test_power_measured_in_blocks_is_not_used_for_the_table() -> None:
    def by_blocks(one: Record) -> Record:
        last = one.observations[-1]
        after = replace(last, start_ns=last.end_ns, end_ns=last.end_ns + last.took_ns, kind="only", kept=False)
        return replace(one, observations=[*one.observations, after])

    records = on("dgx", "Tesla V100", "ssd_fp32", 500, meters=power([300, 200]))
    lines = tables_of([by_blocks(one) for one in records])["fp32"]
    assert sources_of_watt(lines) == ["2x V100: watt is the constant 500 of its description."]


def test_power_of_some_families_keeps_the_system_constant() -> None:
    """Column and sentence say the constant; per watt each family has its own power."""
    records = on("dgx", "Tesla V100", "ssd_fp32", 500, meters=power([300, 310]))
    lines = tables_of([*records, *on("dgx", "Tesla V100", "resnet50_fp32", 500)])["fp32"]
    assert sources_of_watt(lines) == ["2x V100: watt is the constant 500 of its description; measured for ssd."]
    row, per_watt = (rows_in(lines, "throughput", per)["2x V100"] for per in (None, "watt"))
    assert float(row["watt"]) == 500
    assert float(row["ssd"]) / float(per_watt["ssd"]) == pytest.approx(610)
    assert float(row["resnet50"]) / float(per_watt["resnet50"]) == pytest.approx(500)


def test_a_system_is_named_by_its_description_or_devices() -> None:
    ours = [*on("a", "Tesla T4", "ssd_fp32", 500), *on("a", "Tesla T4", "vae_fp32", 500)]
    of_t4 = with_device("Tesla T4")
    place = of_t4 | {"hostname": "a", "isolation": replace(of_t4["isolation"], backend="none")}
    free = launch("ssd_fp32", 1, 2, 400, place=place, part=_part("Tesla T4"))
    for records, names, devices in (
        (on("x", "Some GPU", "ssd_fp32", 500), ["2x Some GPU"], 2),
        ([replace(one, devices=0) for one in on("x", "", "ssd_fp32", 500)], ["Some Processor"], 0),
        ([*ours, *on("b", "Tesla T4", "ssd_fp32", 600)], ["T4 (a)", "T4 (b)"], 2),
        ([*ours, *free], ["T4 (isolation v1)", "T4 (isolation none)"], 2),
    ):
        lines = tables_of(records)["fp32"]
        assert [(line.name, line.system.devices) for line in lines] == [(name, devices) for name in names]
        assert {work.family for work in lines[0].entries} == ({"ssd", "vae"} if len(names) > 1 else {"ssd"})
        assert {work.family for work in lines[-1].entries} == {"ssd"}
        assert lines[0].system.watt == (140 if "T4" in names[0] else None)


def test_a_family_is_a_job_without_cell_and_precision() -> None:
    jobs = {"resnet50_fp16": "resnet50", "resnet50_amp_bf16.c3": "resnet50", "wlmfp16": "wlm", "fp16": "fp16"}
    jobs |= {"bert_base_squad_tf32": "bert_base_squad", "scaling.c2": "scaling"}
    assert {job: family(job) for job in jobs} == jobs


def test_speedup_is_over_fp32_of_the_same_system() -> None:
    elsewhere = on("small", "Tesla T4", "resnet50_fp16", 100)  # There fp32 ran in other slices.
    unsliced = [replace(record, isolation=replace(ISOLATION, backend="none")) for record in elsewhere]
    smaller = [replace(one, arguments=one.arguments | {"size": 32}) for one in on("dgx", "Tesla V100", "ssd_fp16", 100)]
    by_precision = tables_of([*two_systems(), *unsliced, *smaller])
    (row,) = rows_of(speed_up_view(by_precision))
    assert (row["name_gpu"], row["precision"]) == ("2x V100", "fp16")
    assert float(row["resnet50"]) == pytest.approx(2.5, rel=0.01)
    assert row.keys() == {"name_gpu", "precision", "resnet50"}
    document = json.loads(as_json(speed_up_view(by_precision)))
    assert (document["view"], [*document["columns"]]) == ("speed-up", ["name_gpu", "precision", "resnet50"])
    assert [(each["name_gpu"], each["precision"]) for each in document["rows"]] == [("2x V100", "fp16")]
    (other,) = other_works(by_precision)
    assert other.startswith("2x V100: ssd did another work in fp16 than in fp32 (its arguments or its source differ)")
    said = refusal(speed_up_view, {"fp32": by_precision["fp32"]})
    assert re.search(r"No family did the same work in fp32 and in another.* There is fp32\.", said)


PUBLISHED = """\
name_gpu,num_gpu,watt,price,ssd,bert_base_squad,resnet50,vae
V100,1,300,11458,70.5,0,320,9
2x T4,2,140,,0.0,,,
"""
NEWEST = """\
,ssd,bert_base_squad,ncf
Lab_ENG04_8xH200_140GB_SXM_v2,5270.0,5200.0,11285634397.0
Lab_8x_Texas_H100_80GB_SXM5_v2,586.0,428.0,66639141.0
Lab_8x_Texas_4xH100_80GB_SXM5_v2,2324.0,1654.0,0.0
LambdaBM_ENG04_H200_140GB_SXM_h200_v2,683.0,514.0,84861509.0
"""


def as_theirs(backbone: str, **place: Any) -> list[Record]:
    """A launch of the detector with this backbone."""
    part = a_part(item="image", gpu="Tesla V100", arguments=ARGUMENTS | {"backbone": backbone, "precision": "fp32"})
    return launch("ssd_fp32" if backbone == "resnet50" else "ssd", 0, 2, place={"hostname": "dgx", **place}, part=part)


def test_works_differing_by_a_null_argument_have_own_columns() -> None:
    """An older record lacks an argument that a newer one has, with null."""
    shapes = {"old": '{"size": 300}', "new": '{"freeze": null, "size": 300}'}
    lines = [Line(System(of, "", 1), {}, {ColumnWork("ssd", shapes[of]): Entry(9.0, 1, None)}, of) for of in shapes]
    rows = rows_in(lines, "throughput")
    assert [(row["ssd"], row["ssd (freeze None)"]) for row in rows.values()] == [("9.0", ""), ("", "9.0")]


def test_published_systems_of_one_name_keep_their_own_rates(tmp_path: Path) -> None:
    lines: list[Line] = []
    for year, rate in (("2022", 100), ("2024", 300)):
        path = tmp_path / year / "theirs.csv"
        path.parent.mkdir()
        path.write_text(f"name_gpu,num_gpu,ssd\nV100,1,{rate}\n")
        lines += foreign_lines(path, "throughput")
    for reference, rates in ((None, ["100.0", "300.0"]), (lines[0].name, ["1.0", "3.0"])):
        rows = rows_of(systems_view(lines, "throughput", reference=reference))
        assert [row["ssd"] for row in rows] == rates


def test_published_rows_stand_beside_ours_and_are_labelled(tmp_path: Path) -> None:
    path = tmp_path / "theirs.csv"
    path.write_text("\ufeff" + PUBLISHED)
    ours = tables_of([*as_theirs("resnet50", hostname="other"), *two_systems()[2:4]])["fp32"]
    theirs = foreign_lines(path, "throughput", ours)
    rows = rows_in([*ours, *theirs], "throughput")
    assert list(rows)[-2:] == ["V100 (foreign: theirs.csv)", "2x T4 (foreign: theirs.csv)"]
    row = rows["V100 (foreign: theirs.csv)"]
    assert (row["num_gpu"], row["watt"], row["price"], row["vae"]) == ("1", "300.0", "11458.0", "9.0")
    # Ours trains the same detector, and another classifier than theirs.
    assert (row["ssd (backbone resnet50)"], row["resnet50"]) == ("70.5", "320.0")
    assert float(next(iter(rows.values()))["ssd (backbone resnet50)"]) > 0
    assert not any(rows["2x T4 (foreign: theirs.csv)"][name] for name in row.keys() - {"num_gpu", "watt"})
    assert sources_of_watt(theirs[1:]) == ["2x T4 (foreign: theirs.csv): watt is the constant 140 of its description."]
    relative = rows_in([*ours, *theirs], "throughput", reference=theirs[0].name)
    assert float(relative[theirs[0].name]["vae"]) == 1
    path.write_text("name_gpu,num_gpu,resnet50\nV100,1,128.0\n")
    assert rows_in(foreign_lines(path, "batch-size"), "batch-size")[theirs[0].name]["resnet50"] == "128"


def test_published_tables_have_a_line_per_name_and_device_count(tmp_path: Path) -> None:
    path = tmp_path / "pytorch-train-throughput-fp32.csv"
    path.write_text("name_gpu,num_gpu,ssd,ncf\nV100,1,9,0\nV100,8,70,nan\nV100,1,9,5\nT4,1,NaN,3\n")
    lines = foreign_lines(path, "throughput")
    assert [line.name for line in lines] == [f"{of} (foreign: {path.name})" for of in ("1x V100", "8x V100", "T4")]
    assert [[entry.rate for entry in line.entries.values()] for line in lines] == [[9, 5], [70], [3]]
    for name, kind, other in (
        (path.name, "batch-size", "throughput"),
        ("pytorch-train-bs-fp32.csv", "throughput", "batch-size"),
        ("batch_size.csv", "throughput", "batch-size"),
    ):
        said = refusal(foreign_lines, path.rename(path.with_name(name)), kind)
        assert f"{name} is a table of {other}, by its name. Use --table {other}" in said
        path = path.with_name(name)


def test_every_cell_of_the_newest_form_and_of_json_is_read(tmp_path: Path) -> None:
    """In the newest files the first column has no heading; the number at a device's name counts, not a machine's."""
    path = tmp_path / "v2-fp32.csv"
    path.write_text(NEWEST)
    lines = foreign_lines(path, "throughput")
    assert [(line.system.devices, line.whole) for line in lines] == [(8, True), (1, False), (4, True), (1, False)]
    rates = [{work.family: entry.rate for work, entry in line.entries.items()} for line in lines]
    assert rates == [
        {"ssd": 5270.0, "bert_base_squad": 5200.0, "ncf": 11285634397.0},
        {"ssd": 586.0, "bert_base_squad": 428.0, "ncf": 66639141.0},
        {"ssd": 2324.0, "bert_base_squad": 1654.0},
        {"ssd": 683.0, "bert_base_squad": 514.0, "ncf": 84861509.0},
    ]
    listed = [{"name_gpu": "4x RTX A6000", "num_gpu": 8.0, "watt": 1200.0, "ssd": 530.0, "waveglow": 0.0}]
    (tmp_path / "x.json").write_text(json.dumps(listed))
    (line,) = foreign_lines(tmp_path / "x.json", "throughput")
    assert (line.system.devices, line.system.watt, [entry.rate for entry in line.entries.values()]) == (4, 1200, [530])


def test_different_work_is_never_in_one_column() -> None:
    """The reference suite's detector and the vendors' have one name: each has a column that says the difference."""
    (line,) = tables_of([*as_theirs("resnet34"), *as_theirs("resnet50")])["fp32"]
    assert header([line], "throughput").endswith(",price,ssd (backbone resnet34),ssd (backbone resnet50)")
    assert len(line.entries) == 2


def test_other_copy_counts_have_their_own_rows_and_speedups() -> None:
    def of(copies: int, name: str) -> list[Record]:
        place = {"hostname": "dgx", "devices": 0, "suite": f"of-{copies}"}
        return launch(name, 0, copies, place=place, part=_part("Xeon", name[-4:]))

    one, four = of(1, "resnet50_fp32"), of(4, "resnet50_fp32")
    found = tables(summary_of([*one, *four, *of(4, "resnet50_fp16")]).jobs, [])
    rates = {name: float(row["resnet50"]) for name, row in rows_in(found["fp32"], "throughput").items()}
    assert rates == pytest.approx({"Xeon (1 copy)": rate_of(one), "Xeon (4 copies)": rate_of(four)})
    assert speed_up_view(found).frame["resnet50"].to_list() == [pytest.approx(1.0)]


def test_copies_and_one_model_over_devices_are_kept_apart() -> None:
    part = _part("Tesla V100") | {"observed": {"dtype": "fp32", "device": "cuda:0", "world_size": 2}}
    place = {"hostname": "dgx", "group": "all", "vcd": "0,1", "devices": 2}
    whole = launch("resnet50_all_fp32", 0, 1, 300, place=place, part=part)
    lines = tables_of([*on("dgx", "Tesla V100", "resnet50_fp32", 500), *whole])["fp32"]
    rows = rows_in(lines, "throughput")
    assert list(rows) == ["2x V100", "2x V100 (one model over 2 devices)"]
    known = [(row["resnet50"] != "", row["resnet50 (one model)"] != "") for row in rows.values()]
    assert known == [(True, False), (False, True)]
    assert forms(lines) == [
        "2x V100: 2 copies, each trained by itself.",
        "2x V100 (one model over 2 devices): one model over 2 devices.",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("gpu,ssd\nV100,1\n", "has no column name_gpu. Its header is name_gpu,num_gpu,watt,price,<families>."),
        ("", "has no column name_gpu"),
        ("name_gpu,ssd\n", "has no system."),
        ("name_gpu,ssd\nV100,1\nT4,fast\n", "line 3: ssd is 'fast', no number."),
        ("name_gpu,ssd\n\nV100,1\n\nT4,fast\n", "line 5: ssd is 'fast', no number."),
        ("name_gpu,ssd\nV100,-1\n", "line 2: ssd is '-1', no number."),
        ("name_gpu,ssd\nV100,inf\n", "line 2: ssd is 'inf', no number."),
        (b"name_gpu,ssd\nV\xff,1\n", "cannot be read"),
    ],
)
def test_what_is_no_published_table_is_refused(tmp_path: Path, text: str | bytes | None, message: str) -> None:
    path = tmp_path / "theirs.csv"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    said = refusal(foreign_lines, path, "throughput")
    assert message in said
    assert str(path) in said
