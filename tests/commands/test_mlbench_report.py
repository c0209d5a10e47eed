"""`mlbench-report` as people call it, on records of all three formats."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.calling import Capture, call, check_refusals, write
from cotenant.checkout import CHECKOUT
from cotenant.commands.other_work import other_arguments
from cotenant.commands.records import expected_jobs
from cotenant.results.read import read_records
from cotenant.results.store import write_record
from cotenant.results.table import Rows
from cotenant.suite.cells import arguments, expand
from cotenant.suite.jobfile import load
from cotenant.suite.variables import VARIABLES
from report.making import launch
from report.test_duets import duet
from results.made import ISOLATION, NOON, a_lost_record, a_record, steady

JOBS = ("vae", "toy_reg")


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """Five repetitions of two jobs on two devices, in output0 .. output4."""
    write_of(tmp_path, 1.0, "node1")
    return tmp_path


def write_of(place: Path, pace: float, host: str) -> int:
    """Write the records of a host, and return their number."""
    for uid in range(5):
        for job in JOBS:
            write(place / f"output{uid}", launch(job, uid, mean_ms=500 / pace, place={"hostname": host}))
    return 5 * 2 * len(JOBS)


def run(capsys: Capture, *words: object) -> tuple[int, str, str]:
    return call(capsys, "mlbench-report", *words)


def suite(directory: Path, *names: str) -> Path:
    path = directory / "two.json"
    path.write_text(json.dumps([{"name": name, "cmd": "true", "args": {}} for name in names]))
    return path


def test_two_jobs_of_one_name_are_not_one_counted_twice(reports: Path, capsys: Capture) -> None:
    status, said, errors = run(capsys, "--reports", reports, "--jobs", suite(reports, "vae", "vae"))
    assert (status, errors.splitlines()[-1]) == (0, "cotenant: no target for vae-2.")
    results = said.partition("Failures")[0].splitlines()
    assert [line.split()[:2] for line in results if line.startswith("vae")] == [["vae", "10"]]


def test_the_page_and_the_table_hold_the_same_numbers(reports: Path, capsys: Capture) -> None:
    page, table = reports / "page.html", reports / "table.csv"
    run(capsys, "--reports", reports, "--gpu-model", "RTX", "--html", page, "--csv", table, "--title", "<script>")
    lines = list(csv.DictReader(table.read_text().splitlines()))
    vae = next(line for line in lines if line["job"] == "vae")
    assert vae["n"] == "10"
    assert float(vae["perf"]) == pytest.approx(float(vae["mean"]) / 7500)
    text = page.read_text()
    assert "<title>&lt;script&gt;" in text
    assert "<script>" not in text
    assert f"{float(vae['mean']):,.0f}<" in text
    assert "http" not in text


def test_two_hosts_of_one_directory_both_count(reports: Path, capsys: Capture) -> None:
    """The launches of one host are no re-runs of the other's launches under the same uids."""
    other = write_of(reports / "other", 0.5, "node2")
    status, said, errors = run(capsys, "--reports", reports)
    assert (status, errors) == (0, "")
    assert f"{20 + other} records, 5 repetitions, on node1, node2" in said
    assert all(f"Dnode{host}:{device}" in said for host in (1, 2) for device in (0, 1))


def test_older_records_count_and_damaged_ones_are_named(reports: Path, capsys: Capture) -> None:
    rates = {"train": {"avg": 1.0, "count": 5, "sd": 0.1}, "train_item": {"avg": 2100.0, "max": 2200.0, "min": 2000.0}}
    old = {"name": "cart", "vcd": "0"} | rates
    text = "[" + ",".join(json.dumps(old | {"uid": uid}) for uid in range(4)) + "," + json.dumps(old)[:30]
    (reports / "baselines_0.json").write_text(text)
    again = replace(a_record(told={"observations": steady(mean_ms=250)}), start_time=(NOON + timedelta(1)).isoformat())
    write_record(reports, again, NOON + timedelta(1))
    status, said, errors = run(capsys, "--reports", reports, "--name", "baselines")
    assert status == 0
    assert "baselines_0.json: it is cut off or damaged after 4 records; skipped." in errors
    assert "vae, repetition 0: there are records of several runs; the newest count." in errors
    cart = next(line.split() for line in said.splitlines() if line.startswith("cart "))
    assert cart[1:3] == ["4", "2,000"]


def test_failures_of_the_original_count_named_or_not(reports: Path, capsys: Capture) -> None:
    """Two failures stand beside a launch that passed; nothing tells which came later."""
    for number, (name, file) in enumerate(
        ((None, "None.R0.D0.FAIL"), (None, "None.R0.D0"), ("vae", "vae.R0.D1.FAIL"), (None, "recom.c2.R3.D1.FAIL"))
    ):
        failure = {"completed": False, "suite": "baselines", "name": name, "run_id": 0, "vcd": "0"}
        path = reports / f"output{number}" / f"baselines.{file}.json"
        path.write_text(json.dumps(failure))
    status, said, errors = run(capsys, "--reports", reports, "--name", "baselines")
    assert (status, errors) == (0, "")
    assert "4 of 24 records failed (16.7 %); at most 1 % may: NO" in said
    failed = said.partition("Failures")[2].partition("Score")[0]
    assert [failed.count(f"\n{job} ") for job in ("(unnamed)", "vae", "recom.c2")] == [2, 1, 1]
    assert "BF 0 " in said
    status, said, _ = call(capsys, "report", reports, "--format", "json")
    assert status == 0
    assert said.count('"(unnamed)"') > 0


def test_a_tenant_alone_is_no_record_of_its_job(reports: Path, capsys: Capture) -> None:
    before = run(capsys, "--reports", reports)[1]
    alone = a_record(place={"solo": True, "tenants": 1}, told={"observations": steady(mean_ms=1)})
    write_record(reports, alone, NOON)
    write_record(reports, replace(a_lost_record("failed", "x", {"solo": True}), run_id=3), NOON)
    assert run(capsys, "--reports", reports)[1] == before


def test_a_duet_is_no_record_of_its_job(reports: Path, capsys: Capture) -> None:
    alone = run(capsys, "--reports", reports)
    write(reports / "output0", duet(lost=1))
    assert run(capsys, "--reports", reports) == alone


def test_failures_are_a_share_of_all_records(reports: Path, capsys: Capture) -> None:
    """Records of older work have no place in a mean, but they did not fail."""
    later = NOON + timedelta(days=1)
    free = a_record(place={"isolation": replace(ISOLATION, backend="none")}, common={"started": later})
    write_record(reports, free, later)
    write_record(reports, replace(a_lost_record("failed", "x"), run_id=7), later)
    said, errors = run(capsys, "--reports", reports)[1:]
    assert "10 records are of other work than the newest (isolation v1, not none)" in errors
    assert "1 of 22 records failed (4.5 %)" in said


def test_the_classic_table_passes_where_every_job_has_a_line(reports: Path, capsys: Capture) -> None:
    words = ["--reports", reports, "--classic", "--jobs", suite(reports, *JOBS)]
    said = run(capsys, *words)[1]
    assert "Bench Passes              : True" in said
    assert "Deviation Quantile (80%)" in said
    assert "Fewer than 4 repetitions" in run(capsys, "--reports", reports / "output0", "--classic")[1]


def test_jobs_without_a_score_or_a_target_are_named(reports: Path, capsys: Capture) -> None:
    write(reports, launch("mine", 0, mean_ms=500))
    jobs = "convnet_distributed, convnet_distributed_fp16, dcgan_all"
    said = run(capsys, "--reports", reports, "--jobs", "baselines")[1]
    assert f"The original's default score leaves out {jobs}; so does --original-score." in " ".join(said.split())
    page = reports / "page.html"
    words = ("--reports", reports, "--original-score", "--gputotal", 4, "--html", page)
    status, said, errors = run(capsys, *words)
    assert status == 0
    assert f"Without {jobs}, as the original's default score." in " ".join(said.split())
    assert jobs in page.read_text()
    assert next(line.split()[:3] for line in said.splitlines() if line.startswith("mine")) == ["mine", "2", "-"]
    assert "There are records of 2 devices of node1, not of 4." in errors
    assert "Measured, but without a target: mine" in run(capsys, *words, "--classic")[1]


def test_a_page_of_one_device_compares_none(tmp_path: Path, capsys: Capture) -> None:
    write_record(tmp_path, a_record(place={"group": "all", "vcd": "0,1"}), NOON)
    assert run(capsys, "--reports", tmp_path, "--html", tmp_path / "x.html")[0] == 0
    assert "Relative device performance" not in (tmp_path / "x.html").read_text()


def test_expected_cells_share_the_weight_of_their_job(tmp_path: Path) -> None:
    sizes = {"args": {"--batch-size": [64, 128]}}
    jobs = [{"name": "vae", "weight": 3}, {"name": "wlm"} | sizes, {"name": "scaling"} | sizes, {"name": "vae"}]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([{"cmd": "./vae/run.sh", "cgroup": "student"} | job for job in jobs]))
    expected = {"vae": 3.0, "wlm.c1": 0.5, "wlm.c2": 0.5, "scaling": 1.0, "vae-2": 1.0}
    assert expected_jobs(str(path), {"scaling": 1.0, "vae": 1.0}) == expected


ENGINE = ("apptainer", "exec", "--bind", "/elsewhere", "/an.sif")


def differing(place: Path, extra: tuple[str, ...], before: tuple[str, ...] = ()) -> dict[str, str]:
    """The differences of the reference suite's own jobs, run with further arguments, on a host with other places."""
    variables = dict.fromkeys(VARIABLES, "/elsewhere")
    for job in load(CHECKOUT / "baselines.json").jobs:
        (cell,) = expand(job)
        program = str(CHECKOUT / "tasks" / job.cmd)
        command = [*before, program, *arguments(cell, variables, extra, seed=100)]
        write(place, launch(job.name, tenants=1, place={"command": command}))
    return other_arguments(Rows.all(read_records([place]).table))


@pytest.mark.parametrize("before", [(), ENGINE])
def test_the_reference_is_no_other_work_wherever_its_data_lies(tmp_path: Path, before: tuple[str, ...]) -> None:
    assert differing(tmp_path, (), before) == {}


def test_another_batch_is_named_however_it_was_written(tmp_path: Path) -> None:
    works = differing(tmp_path, ("--batch-size=64",))
    assert works["convnet_fp16"] == "--batch-size 64, not 128"
    assert "convnet" not in works, "64 is its own"


REFUSED = {
    "--name nothing": "There are no records of nothing there. There are records of: baselines.",
    "--price -1": "--price has to be a positive number.",
    "--html /proc/none/x.html": "--html names another file.",
    "--csv /proc/none/x.csv": "--csv names another file.",
    "--reports ''": "--reports: it is empty.",
}


def test_wrong_usage_is_a_sentence(reports: Path, capsys: Capture) -> None:
    check_refusals(capsys, "mlbench-report", REFUSED, "--reports", reports)
