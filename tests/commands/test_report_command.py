"""`cotenant report` as people call it."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.calling import Capture, call, check_refusals, write
from cotenant.cli import main
from cotenant.commands import views
from cotenant.results.targets import Target, save_targets, targets_named
from report.making import UNSLICED, jobs_in, launch, lost, scaling, solo
from report.test_mixes import mix


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    return write(tmp_path / "out", [one for uid in range(3) for name in ("vae", "cart") for one in launch(name, uid)])


@pytest.fixture
def targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of targets instead of the checkout's."""
    directory = tmp_path / "targets"
    directory.mkdir()
    save_targets(directory / "v100.csv", {"vae": Target(7500, 0.6, 0.1), "dcgan": Target(250)})
    monkeypatch.setattr(views, "TARGETS", directory)
    return directory


def run(capsys: Capture, *words: object) -> tuple[int, str, str]:
    return call(capsys, "report", *words)


@pytest.mark.usefixtures("unpictured")
def test_a_mix_that_failed_is_no_failure_of_the_originals_score(tmp_path: Path, capsys: Capture) -> None:
    records = write(tmp_path / "records", [*launch("ssd"), *mix((("vae", 0.8), ("wlm", 0.5)), lost=0)])
    save_targets(tmp_path / "mine.csv", {"ssd": Target(9.0)})
    page = tmp_path / "page.html"
    assert run(capsys, records, "--html", page, "--targets", tmp_path / "mine.csv")[0] == 0
    assert "BF 1; of mean rates" in page.read_text()


def test_data_goes_to_standard_output_and_remarks_to_errors(reports: Path, capsys: Capture) -> None:
    write(reports, lost("vae", 3))
    (reports / "torn.json").write_text('{"name": ')
    _, said, errors = run(capsys, reports, "--format", "csv")
    assert {row["job"] for row in csv.DictReader(io.StringIO(said))} == {"vae", "cart"}
    assert "torn.json: it is not JSON, or cut off; skipped." in errors
    assert "vae, repetition 3: user 0 aborted." in errors
    assert run(capsys, reports, "--format", "md")[1].startswith("| suite |")
    content = json.loads(run(capsys, reports, "--format", "json", "--job", "v*")[1])
    assert [job["job"] for job in jobs_in(content)] == ["vae"]


def test_jobs_are_chosen_by_the_words_of_a_run(reports: Path, capsys: Capture) -> None:
    write(reports, [*launch("scaling.c1"), *launch("scaling.c2")])

    def jobs(*words: str) -> list[str]:
        content = json.loads(run(capsys, reports, "--format", "json", *words)[1])
        return sorted(job["job"] for job in jobs_in(content))

    assert jobs("--name", "vae,cart") == ["cart", "vae"]
    assert jobs("--name", "v*", "--name", "cart") == ["cart", "vae"]
    assert jobs("--name", "scaling") == ["scaling.c1", "scaling.c2"]
    assert jobs("--name", "vae", "--suite", "baselines") == ["vae"]


@pytest.mark.usefixtures("unpictured")
def test_the_page_and_its_score(reports: Path, targets: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "page.html"
    (reports / "foreign.json").write_text('{"hello": "<b>"}')
    status, said, _ = run(capsys, reports, "--html", path, "--targets", "V100", "--title", "A <title>")
    assert (status, "vae" in said) == (0, True)
    for text in ("<title>A &lt;title&gt; · ", "1 of 2 jobs", "foreign.json: it has no `name`; skipped."):
        assert text in path.read_text()


@pytest.mark.usefixtures("unpictured")
def test_the_original_score_is_that_of_mlbench_report(
    reports: Path, tmp_path: Path, targets: Path, capsys: Capture
) -> None:
    """The score of a suite without `scaling` needs no efficiency."""
    path = targets / "v100.csv"
    save_targets(path, {"vae": Target(1e3), "cart": Target(1e5), "scaling": Target(1, 0.85)})
    assert run(capsys, reports, "--html", tmp_path / "page.html", "--targets", "V100")[0] == 0
    assert main(["mlbench-report", "--reports", str(reports), "--gpu-model", str(path)]) == 0
    (score,) = re.findall(r"^Score = .* = (\S+)$", capsys.readouterr().out, re.MULTILINE)[:1]
    assert float(score) > 0
    assert score in (tmp_path / "page.html").read_text()


@pytest.mark.usefixtures("unpictured")
def test_the_score_has_the_weights_of_the_job_file(
    reports: Path, tmp_path: Path, targets: Path, capsys: Capture
) -> None:
    save_targets(targets / "v100.csv", {"vae": Target(1e3), "cart": Target(1e5), "dcgan": Target(1.0)})
    jobs = [{"name": name, "cmd": "true", "args": {}} for name in ("vae", "cart")]
    found = []
    for weight in ({}, {"weight": 3}):
        (tmp_path / "jobs.json").write_text(json.dumps([jobs[0] | weight, jobs[1]]))
        page = tmp_path / "page.html"
        assert run(capsys, reports, "--html", page, "--targets", "V100", "--jobs", tmp_path / "jobs.json")[0] == 0
        (score,) = re.findall(r">(\d+\.\d{3})<", page.read_text())[:1]
        found.append(float(score))
    rate = jobs_in(json.loads(run(capsys, reports, "--format", "json")[1]))
    vae, cart = (one["rate"] / 2 for one in sorted(rate, key=lambda one: one["job"], reverse=True))
    assert found == pytest.approx([(vae / 1e3 * cart / 1e5) ** 0.5, ((vae / 1e3) ** 3 * cart / 1e5) ** 0.25], rel=0.01)


@pytest.mark.usefixtures("unpictured")
def test_two_configurations_of_one_cell_leave_the_page_whole(tmp_path: Path, capsys: Capture) -> None:
    cells = [scaling(1), scaling(2)]
    other = [scaling(1, 1, workers=3), scaling(2, 1, workers=3)]
    place = write(tmp_path / "out", [*cells, *other])
    assert run(capsys, place, "--html", tmp_path / "x.html")[0] == 0
    assert "No scaling curves: Two configurations" in (tmp_path / "x.html").read_text()


def test_targets_are_saved_and_read_back(reports: Path, targets: Path, capsys: Capture) -> None:
    status, said, errors = run(capsys, reports, "--save-target", "Mine-2")
    assert (status, said) == (0, "")
    assert f"2 targets in {targets / 'mine-2.csv'}." in errors
    content = json.loads(run(capsys, reports, "--format", "json")[1])
    saved = targets_named("MINE-2", targets)
    assert saved.keys() == {"vae", "cart"}
    assert (saved["vae"].least_share, saved["vae"].most_spread) == (0.6, 0.1)  # the shipped limits of this job
    assert (saved["cart"].least_share, saved["cart"].most_spread) == (0.5, 0.05)
    (vae,) = [job for job in jobs_in(content) if job["job"] == "vae"]
    assert saved["vae"].rate == pytest.approx(vae["rate"] / 2, rel=0.02)  # of one device
    names = ("V100", "mi50")
    lines = {f"--save-target {name}": f"{name} is a target of the reference suite." for name in names}
    check_refusals(capsys, "report", lines, reports)
    assert sorted(path.name for path in targets.iterdir()) == ["mine-2.csv", "v100.csv"]


def test_a_target_is_of_one_device(reports: Path, targets: Path, capsys: Capture) -> None:
    run(capsys, reports, "--save-target", "before")
    old = [replace(one, gpu="MI50", hostname="node2") for one in launch("vae", mean_ms=100)]
    new = [replace(one, gpu="MI50") for one in launch("cart", 3)]
    write(reports, [*old, *new])
    errors = run(capsys, reports, "--save-target", "mine")[2]
    assert re.search(r"vae: 2 records are of other work than the newest \(device MI50, not .*\); they do not", errors)
    assert re.search(r"cart: 6 records are of other work than the newest \(device .*, not MI50\); they do not", errors)
    assert targets_named("mine", targets)["vae"] == targets_named("before", targets)["vae"]


def test_tables_of_systems_and_of_scaling(tmp_path: Path, capsys: Capture) -> None:
    place = write(tmp_path / "out", [one for name in ("ssd_a", "ssd_b") for one in launch(name, place={"devices": 1})])
    _, said, errors = run(capsys, place, "--table", "throughput")
    (row,) = csv.DictReader(io.StringIO(said))
    assert (row["name_gpu"], row["num_gpu"], row["watt"]) == ("2x Some Processor", "2", "")
    assert "2x Some Processor: watt is unknown." in errors
    status, said, _ = run(capsys, place, "--table", "batch-size", "--outdir", tmp_path / "tables")
    assert (status, said) == (0, "")
    assert (tmp_path / "tables/batch-size-fp32.csv").read_text().splitlines()[1] == "2x Some Processor,2,,,128,128"
    theirs = tmp_path / "theirs.csv"
    theirs.write_text("name_gpu,num_gpu,ssd\nV100,1,70\n")
    words = ("--table", "throughput", "--foreign", theirs)
    assert "\nV100 (foreign: theirs.csv),1,,,70.0,,\n" in run(capsys, place, *words)[1]
    assert "stands twice in the table" in run(capsys, place, *words, "--foreign", theirs)[2]
    theirs.write_text("name_gpu,num_gpu,ssd\nV100,1,70\n8xH200,8,900\n")
    for systems, left in {
        (): ["2x Some Processor", "V100", "8xH200"],
        ("single",): ["V100"],
        ("multiple",): ["2x Some Processor", "8xH200"],
        ("single", "multiple"): ["2x Some Processor", "V100", "8xH200"],
    }.items():
        chosen = [word for one in systems for word in ("--systems", one)]
        rows = csv.DictReader(io.StringIO(run(capsys, place, *words, *chosen)[1]))
        assert [row["name_gpu"].partition(" (foreign")[0] for row in rows] == left
    copies = write(tmp_path / "copies", launch("ssd_a"))
    assert "Some Processor,0," in run(capsys, copies, "--table", "throughput", "--systems", "multiple")[1]
    assert "No row is left" in run(capsys, copies, "--table", "throughput", "--systems", "single")[2]
    failed = write(tmp_path / "failed", lost("ssd_a", 0))
    assert "No record has a rate to compare." in run(capsys, failed, "--table", "throughput")[2]
    half = [
        replace(record, arguments=record.arguments | {"precision": "bf16"})
        for record in launch("ssd_bf16", mean_ms=100)
    ]
    both = write(tmp_path / "both", [*launch("ssd_fp32", mean_ms=200), *half])
    assert "--precision says beside which of them it stands." in run(capsys, both, *words)[2]
    assert run(capsys, both, "--table", "speed-up")[1].split()[-3:] == ["Processor", "bf16", "2.000"]
    document = json.loads(run(capsys, both, "--table", "speed-up", "--format", "json")[1])
    assert [up["ssd"] for up in document["rows"]] == [pytest.approx(2, rel=1e-3)]
    points = write(tmp_path / "points", [scaling(k, uid) for k in (1, 4) for uid in range(3)])
    assert "scaling.c4, 1n4g: 3 of 5 launches." in run(capsys, points, "--table", "scaling", "--format", "json")[2]


@pytest.fixture
def three_ways(tmp_path: Path) -> tuple[Path, Path]:
    """Two suite runs under the same uids: with --baseline whole, and without isolation."""
    isolated = [one for uid in range(3) for one in (*launch("vae", uid), *solo("vae", uid), *launch("cart", uid))]
    free = [one for uid in range(3) for one in launch("vae", uid, 2, 900, place=UNSLICED)]
    return write(tmp_path / "isolated", isolated), write(tmp_path / "free", free)


def test_a_job_is_chosen_with_its_solo_launches(three_ways: tuple[Path, Path], capsys: Capture) -> None:
    assert " 0.900 " in run(capsys, *three_ways, "--table", "interference", "--job", "vae")[1]


def test_targets_are_saved_to_the_named_csv_file(three_ways: tuple[Path, Path], capsys: Capture) -> None:
    path = three_ways[0] / "own.csv"
    assert run(capsys, three_ways[0], "--save-target", path)[0] == 0
    assert targets_named(str(path), three_ways[0]).keys() == {"vae", "cart"}


@pytest.mark.usefixtures("unpictured")
def test_the_heat_map_tells_configurations_apart(three_ways: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["report", *map(str, three_ways), "--html", str(page), "--format", "csv"]) == 0
    heat = page.read_text().partition("best device; the farther")[2].partition("</table>")[0]
    assert [heat.count(f"vae (isolation {name})") for name in ("v1", "none")] == [1, 1]


def test_what_is_skipped_is_counted_and_a_flood_of_it_is_short(reports: Path, capsys: Capture) -> None:
    (reports / "numbers.json").write_text(json.dumps(list(range(1000))))
    (reports / "torn.json").write_text('{"name": "vae", "tr')
    _, _, errors = run(capsys, reports)
    assert errors.count("it is no JSON object; skipped.") == 20
    assert "numbers.json: 980 more parts of it are no records; skipped." in errors
    assert "22 files or parts of files are skipped." in errors


REFUSED = {
    "--table throughput --per price": "No system has a price in",
    "--table interference --job cart": "No job was measured in two ways: alone in its slice, ",
    "--table interference --precision fp32": "--precision is for --table throughput and batch-size.",
    "--table scaling": "There are no scaling cells there.",
    "--table throughput --format md": "--table throughput is CSV or JSON.",
    "--table throughput --precision fp8": "There are no records of fp8. There are fp32.",
    "--table throughput --reference H100": "There is no system 'H100'.",
    "--table speed-up": "No family did the same work in fp32 and in another precision on one system. There is fp32.",
    "--table throughput --foreign none.csv": "none.csv cannot be read",
    "--foreign none.csv": "--foreign is for --table throughput, batch-size and scaling.",
    "--table scaling --format md --foreign ray": "--foreign goes with text, csv and json.",
    "--table throughput --systems single": "No row is left to show.",
    "--per watt": "--per is for --table throughput and batch-size.",
    "--save-target ../x": "'../x' is no name for a device model.",
    "--systems none.json --table throughput": "none.json cannot be read",
    "--html /proc/none/x.html": "--html names another file.",
    "--save-target /proc/none/x.csv": "--save-target names another file.",
}


def test_wrong_usage_is_a_sentence(reports: Path, capsys: Capture) -> None:
    check_refusals(capsys, "report", REFUSED, reports)


@pytest.mark.usefixtures("unpictured")
def test_without_a_place_the_workspaces_output_is_read(
    capsys: Capture, reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report, mlbench-report and export read the directory where a suite would have put its records."""
    monkeypatch.setenv("BASE", str(tmp_path))
    assert call(capsys, "report")[2].startswith(f"cotenant: {tmp_path / 'output'} does not exist.")
    shutil.copytree(reports, tmp_path / "output")
    page = tmp_path / "page.html"
    status, out, errors = call(capsys, "report", "--html", page)
    assert (status, page.is_file()) == (0, True)
    assert errors.endswith(f"cotenant: {page} is written.\n")
    assert out == call(capsys, "report", reports)[1]
    assert call(capsys, "export", "--out", tmp_path / "rows.jsonl")[0] == 0
    assert call(capsys, "mlbench-report")[1] == call(capsys, "mlbench-report", "--reports", tmp_path / "output")[1]
    monkeypatch.setenv("OUTPUT_DIRECTORY", str(reports))
    assert call(capsys, "report")[1] == out
