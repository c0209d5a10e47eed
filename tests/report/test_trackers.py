"""Exports for other programs that track benchmarks, read by these programs' own code where it can be had."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pyperf
import pytest
from asv.results import iter_results
from msgspec.structs import replace

from commands.calling import Capture, call, check_refusals, write
from cotenant.commands.export import parser
from cotenant.report.trackers import TRACKERS
from cotenant.results.record import Record
from report.making import BUSY, frame, launch, lost, solo
from results.made import NOON

NUMBER = {"type": "number"}
BMF = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {"value": NUMBER, "lower_value": NUMBER, "upper_value": NUMBER},
            "additionalProperties": False,
            "required": ["value"],
        },
    },
}
"""https://bencher.dev/docs/reference/bencher-metric-format, without its freedom to add properties."""
TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
HUD = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["benchmark", "model", "metric"],
        "additionalProperties": False,
        "properties": {
            "benchmark": {
                "properties": {"name": TEXT, "mode": TEXT, "dtype": TEXT, "extra_info": TEXTS},
                "additionalProperties": False,
                "required": ["name"],
            },
            "model": {
                "properties": {"name": TEXT, "origins": {"type": "array", "items": TEXT}},
                "additionalProperties": False,
                "required": ["name"],
            },
            "metric": {
                "properties": {"name": TEXT, "benchmark_values": {"items": NUMBER, "minItems": 1}, "extra_info": TEXTS},
                "additionalProperties": False,
                "required": ["name", "benchmark_values"],
            },
            "runners": {
                "items": {
                    "properties": {"name": TEXT, "cpu_info": TEXT, "gpu_info": TEXT, "gpu_count": {"type": "integer"}},
                    "additionalProperties": False,
                }
            },
            "dependencies": {"additionalProperties": {"properties": {"version": TEXT}, "additionalProperties": False}},
        },
    },
}
"""The columns of the table `oss_ci_benchmark_v3` (pytorch/test-infra) that we fill in."""


def suite() -> list[Record]:
    """Three launches of a job with baselines, one of another with a warning, and one that failed."""
    several = [one for uid in range(3) for one in (*launch("vae", uid), *solo("vae", uid))]
    return [*several, *launch("wlm", 0, findings=(BUSY,)), *lost("ssd", 0)]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return write(tmp_path / "records", suite())


def exported(capsys: Capture, records: Path, form: str, out: str = "rows.json", *flags: object) -> Any:
    path = records.parent / out
    status, said, errors = call(capsys, "export", records, "--format", form, "--out", path, *flags)
    assert (status, said) == (0, ""), errors
    assert f"{path}" in errors.splitlines()[-1]
    return json.loads(path.read_text())


def pyperf_says(*words: object) -> str:
    line = [sys.executable, "-m", "pyperf", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


def test_bencher_gets_rates_and_kept_shares_with_intervals(records: Path, capsys: Capture) -> None:
    read = exported(capsys, records, "bmf")
    jsonschema.validate(read, BMF)
    assert [*read] == [f"baselines/{job}/user {user}" for job in ("vae", "wlm") for user in (0, 1)]
    report = json.loads(call(capsys, "report", records, "--format", "json")[1])
    users = [row for row in report["rows"] if row["tenant"] is not None and row["rate"] is not None]
    assert len(users) == 4
    for row in users:
        metric = read[f"baselines/{row['job']}/user {row['tenant']}"]["throughput"]
        assert metric == {"value": row["rate"], "lower_value": row["low"], "upper_value": row["high"]}
    kept = read["baselines/vae/user 1"]["kept"]
    assert 0 < kept["lower_value"] < kept["value"] < kept["upper_value"] < 1
    assert "kept" not in read["baselines/wlm/user 0"]


def test_the_hud_gets_one_record_per_measure(records: Path, capsys: Capture) -> None:
    read = exported(capsys, records, "hud")
    jsonschema.validate(read, HUD)
    vae = [one for one in read if one["model"]["name"] == "vae" and one["benchmark"]["extra_info"]["user"] == "0"]
    assert [one["metric"]["name"] for one in vae] == ["throughput(image/s)", "kept(of the rate alone)"]
    rates = frame([one for one in suite() if (one.name, one.tenant) == ("vae", 0)])["rate"]
    assert sorted(vae[0]["metric"]["benchmark_values"]) == pytest.approx(sorted(rates))
    assert vae[0]["benchmark"] | {"extra_info": 0} == {
        "name": "baselines",
        "mode": "training",
        "dtype": "fp32",
        "extra_info": 0,
    }
    assert vae[0]["runners"] == [{"name": "node1", "cpu_info": "Some Processor", "gpu_count": 0}]
    assert read[-1]["benchmark"]["extra_info"]["warning"] == "foreign_load"


def test_the_action_gets_numbers_whose_range_it_can_read(records: Path, capsys: Capture) -> None:
    read = exported(capsys, records, "github-action-benchmark")
    assert {type(one["value"]) for one in read} == {float}
    assert [one["name"] for one in read][:2] == ["baselines/vae/user 0", "baselines/vae/user 0 kept"]
    assert len({one["name"] for one in read}) == len(read)
    assert {one["unit"] for one in read} == {"image/s", "of the rate alone"}
    for one in read:
        sign, _, width = one["range"].partition(" ")
        assert (sign, len(width) > 1, float(width) >= 0) == ("±", True, True)
    assert "warning: foreign_load" in read[-1]["extra"]


def test_pyperf_compares_and_draws_seconds_per_step(records: Path, capsys: Capture, tmp_path: Path) -> None:
    exported(capsys, records, "pyperf", "a.json")
    suite_ = pyperf.BenchmarkSuite.load(str(tmp_path / "a.json"))
    assert suite_.get_benchmark_names() == [f"baselines/{job}/user {user}" for job in ("vae", "wlm") for user in (0, 1)]
    vae = suite_.get_benchmark("baselines/vae/user 0")
    assert (vae.get_nrun(), vae.get_nvalue(), vae.get_loops(), vae.get_metadata()["hostname"]) == (3, 60, 30, "node1")
    first = vae.get_runs()[0]
    made = next(one for one in suite() if (one.name, one.tenant, one.run_id) == ("vae", 0, 0)).observations
    assert first.warmups == tuple((30, pytest.approx(one.took_ns / 30e9)) for one in made[:5])
    assert first.values == pytest.approx([one.took_ns / 30e9 for one in made[5:]])
    assert vae.get_dates() is not None
    slower = write(tmp_path / "slower", [one for uid in range(3) for one in launch("vae", uid, mean_ms=600)])
    exported(capsys, slower, "pyperf", "b.json")
    said = pyperf_says("compare_to", tmp_path / "a.json", tmp_path / "b.json", "--table")
    assert said.count(": 1.20x slower") == 2
    assert "baselines/vae/user 1" in pyperf_says("hist", tmp_path / "a.json")


def test_pyperf_gets_no_observations_alone_in_their_blocks(tmp_path: Path, capsys: Capture) -> None:
    (one,) = launch("vae", tenants=1)
    alone = [replace(made, kept=True, kind="only") for made in one.observations[:2]]
    before = [replace(made, kept=False) for made in one.observations[2:5]]
    beside = [replace(made, kept=True) for made in one.observations[5:]]
    records = write(tmp_path / "records", [replace(one, observations=[*alone, *before, *beside])])
    (benchmark,) = exported(capsys, records, "pyperf")["benchmarks"]
    (run,) = benchmark["runs"]
    assert run["values"] == pytest.approx([made.took_ns / 30e9 for made in beside])
    assert [seconds for _, seconds in run["warmups"]] == pytest.approx([made.took_ns / 30e9 for made in before])


def test_asv_publishes_two_commits_of_a_repository(records: Path, capsys: Capture, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()

    def git(*words: str) -> str:
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        line = ["git", *names, *words]
        return subprocess.run(line, cwd=repository, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet", "--initial-branch", "main")
    commits = []
    for name in ("first", "second"):
        git("commit", "--quiet", "--allow-empty", "--message", name)
        commits.append(git("rev-parse", "HEAD"))
    exported(capsys, records, "asv", f"repository/results/node1/{commits[0]}-cotenant.json")
    slower = write(tmp_path / "slower", [*launch("vae", 0, mean_ms=600), *launch("cart", 0)])
    exported(capsys, slower, "asv", f"repository/results/node1/{commits[1]}-cotenant.json")
    found = {one.commit_hash: one for one in iter_results(str(repository / "results"))}
    assert found.keys() == {*commits}
    before, after = (found[commit].get_result_value("baselines.vae.user0", [])[0] for commit in commits)
    assert before == pytest.approx(1 / exported(capsys, records, "bmf")["baselines/vae/user 0"]["throughput"]["value"])
    assert after > before
    (repository / "asv.conf.json").write_text(json.dumps({"version": 1, "repo": ".", "branches": ["main"]}))
    line = [sys.executable, "-m", "asv", "publish", "--no-pull"]
    subprocess.run(line, cwd=repository, check=True, capture_output=True)
    index = json.loads((repository / ".asv/html/index.json").read_text()) if (repository / ".asv").exists() else None
    index = index or json.loads((repository / "html/index.json").read_text())
    assert sorted(index["benchmarks"]) == [
        f"baselines.{job}.user{user}" for job in ("cart", "vae", "wlm") for user in "01"
    ]
    assert [*index["machines"]] == ["node1"]


def test_a_host_is_named_where_there_are_several(tmp_path: Path, capsys: Capture) -> None:
    both = [replace(one, hostname=host) for host in ("a", "b") for one in launch("vae", tenants=1)]
    records = write(tmp_path / "records", both[:1])
    write(records, [replace(both[1], start_time=(NOON + timedelta(hours=1)).isoformat())])
    assert [*exported(capsys, records, "bmf")] == ["baselines/vae/a/user 0", "baselines/vae/b/user 0"]
    out = tmp_path / "results/node1/0123456789abcdef-x.json"
    out.parent.mkdir(parents=True)
    lines = {f"{records} --format asv --out {out}": ["are records of a, b.", "Export the records of each host"]}
    check_refusals(capsys, "export", lines)


def test_what_asv_knows_of_a_machine_and_of_benchmarks_stays(records: Path, capsys: Capture, tmp_path: Path) -> None:
    machine, index = tmp_path / "results/node1/machine.json", tmp_path / "results/benchmarks.json"
    machine.parent.mkdir(parents=True)
    machine.write_text('{"machine": "node1", "ram": "8 GB", "version": 1}')
    index.write_text('{"other": {"name": "other"}, "version": 2}')
    exported(capsys, records, "asv", "results/node1/0123456789-cotenant.json")
    assert json.loads(machine.read_text())["ram"] == "8 GB"
    assert {"other", "baselines.vae.user0"} < json.loads(index.read_text()).keys()
    index.write_text("[]")
    line = f"{records} --format asv --out {machine.with_name('0123456789-cotenant.json')}"
    status, _, errors = call(capsys, "export", *line.split())
    assert (status, errors.endswith("Move it away.\n")) == (2, True)


REFUSED: dict[str, str | Sequence[str]] = {
    "{records} --out {base}/x.json": ["does not say its form.", "Add --format: parquet, csv, jsonl, openmetrics, bmf,"],
    "{records} --format bmf --observations --out {base}/x": "Leave out --observations.",
    "{records} --format bmf --job nobody --out {base}/x": "There is no job 'nobody' there.",
    "{records} --format bmf --out {base}": "is a directory.",
    "{failed} --format bmf --out {base}/x": "No job there has a rate that counts.",
    "{records} --format asv --out {base}/x.json": "asv files results by machine and commit; 'x.json' names none.",
    "{rows} --format pyperf --out {base}/x": "not an export of it.",
}


def test_wrong_input_is_a_sentence_with_a_remedy(records: Path, capsys: Capture, tmp_path: Path) -> None:
    failed, rows = write(tmp_path / "failed", lost("ssd", 0)), tmp_path / "rows.parquet"
    assert call(capsys, "export", records, "--out", rows)[0] == 0
    places = {"records": records, "failed": failed, "rows": rows, "base": tmp_path}
    for line, sentences in REFUSED.items():
        status, said, errors = call(capsys, "export", *line.format(**places).split())
        assert (status, said) == (2, ""), line
        for sentence in [sentences] if isinstance(sentences, str) else sentences:
            assert sentence in errors.splitlines()[-1], line
    assert {path.name for path in tmp_path.iterdir()} == {"records", "failed", "rows.parquet"}


def test_exported_rows_have_the_same_numbers(records: Path, capsys: Capture, tmp_path: Path) -> None:
    rows = tmp_path / "rows.parquet"
    assert call(capsys, "export", records, "--out", rows)[0] == 0
    for form in ("bmf", "hud", "github-action-benchmark"):
        assert exported(capsys, rows, form) == exported(capsys, records, form)


def test_the_help_lists_every_form() -> None:
    said = parser().format_help()
    assert [form for form in TRACKERS if f"\n{form}: " not in said] == []
