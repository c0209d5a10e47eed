"""The effects of the flags and variables of `run`."""

import dataclasses
import json
import os
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.calling import Capture, call
from cotenant.commands import suite_run
from cotenant.finding import Finding
from cotenant.machine.topology import discover
from cotenant.results.record import DuetPart, Record
from cotenant.stats.duet import DuetRatio
from cotenant.stats.verdict import Verdict
from results.made import a_record
from tenants.suites import ROOT, TENANTS, Suites, job

TASKS = ROOT / "tasks"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def seen(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@pytest.mark.v1
def test_dry_says_exactly_what_a_run_does_and_makes_nothing(v1: Suites) -> None:
    jobs = [job("echo.py", args={"--x": "$JOB_ID 'a b'", "--y": [1, 2]}, env={"MINE": "$TEMP_DIRECTORY"})]
    v1.jobs(jobs)
    before = seen(v1.folder), seen(v1.short)
    dry = v1.run(jobs, "--users", 2, "--dry", "--verbose")
    assert dry.returncode == 0, dry.stderr
    assert (seen(v1.folder), seen(v1.short)) == before
    assert not v1.cgroups()
    lines = dry.stdout.splitlines()
    assert [line for line in lines if line.startswith("job")] == [
        f"job.c{cell}, user {tenant} of 2" for cell in (1, 2) for tenant in (0, 1)
    ]
    assert f"  command  {TENANTS}/echo.py --x 1 'a b' --y 2 --seed 200" in lines
    assert [line.split()[2] for line in lines if line.startswith("  slice")] == ["0", "1"] * 2
    assert all(line.endswith("by v1") for line in lines if line.startswith("  slice"))
    assert v1.run(jobs, "--users", 2).returncode == 0
    told = json.loads(v1.log("job.c2", 1))
    assert told["argv"] == ["--x", "1", "a b", "--y", "2", "--seed", "200"]
    shown = dict(line.split()[1].split("=", 1) for line in lines[-60:] if line.startswith("  env"))
    changing = {"TEMP_DIRECTORY", "TMPDIR", "MINE", "COTENANT_RUN", "COTENANT_SOCKET", "MASTER_PORT"}
    assert {name: told["env"][name] for name in shown.keys() - changing} == {
        name: shown[name] for name in shown.keys() - changing
    }


def test_devices_choose_the_twins_that_own_the_machine(loose: Suites, capsys: Capture) -> None:
    axis = {"--precision": ["fp32", "bf16"]}
    jobs = [job("echo.py", name=name, group=group, args=axis) for name, group in (("a", "student"), ("a_all", "all"))]
    words = ["run", "--isolation", "none", "--users", 2, "--jobs", loose.jobs([*jobs, job(name="b")]), "--dry"]
    for chosen in (("--name", "a"), ("--name", "a_*"), ("--name", "a*", "--name", "b")):
        dry = call(capsys, *words, "--devices", 2, *chosen)[1].splitlines()
        launches = [line.split(":")[0] for line in dry if ": 1 user, " in line]
        assert launches == ["a_all_fp32", "a_all_bf16"]
        assert [line.split()[1:5] for line in dry if line.startswith("  /")] == [
            ["--precision", precision, "--devices", "2"] for precision in ("fp32", "bf16")
        ]
    assert (
        "--devices: b cannot train one model over several devices."
        in call(capsys, *words, "--name", "b", "--devices", 2)[2]
    )


def test_others_flags_are_told_where_they_are(capsys: Capture) -> None:
    for flag, meant in {
        "--model": "--name chooses a job; ./run.sh --jobs scaling -- --model resnet50",
        "--num-gpus": "--devices N trains one model over N devices",
        "--use-fp16": "--jobs scaling -- --use-fp16",
        "--batch-size": "after --",
    }.items():
        status, said, errors = call(capsys, "run", flag, "4")
        assert (status, said, errors.count("\n")) == (2, "", 1)
        assert errors.startswith(f"cotenant: There is no flag '{flag}'. ")
        assert meant in errors


def test_free_for_all_is_every_job_at_once_without_slices(loose: Suites, capsys: Capture) -> None:
    jobs = [job("echo.py", name="a", args={"--x": [1, 2]}), job("echo.py", name="b"), job(name="whole", group="all")]
    words = ["run", "--jobs", loose.jobs(jobs), "--dry", "--free-for-all"]
    status, said, errors = call(capsys, *words)
    assert (status, errors) == (0, "cotenant: whole: left out of --free-for-all, as each owns the machine.\n")
    assert "3 users without slices, as if each just started (isolation none)" in said
    launches = [line for line in said.splitlines() if line.startswith(("free-for-all", "  /"))]
    assert launches[0].startswith("free-for-all: 3 users")
    assert [" ".join(line.split()[1:3]) for line in launches[1:]] == ["--x 1", "--x 2", "--seed 300"]
    for more, why in {
        ("--isolation", "v1"): "makes no slices",
        ("--mix", "a.c1,b"): "--free-for-all and --mix",
        ("--name", "b"): "fewer than two",
    }.items():
        assert why in call(capsys, *words, *more)[2]


def test_cells_of_too_many_devices_are_left_out(loose: Suites, capsys: Capture) -> None:
    jobs = [job("echo.py", group="all", args={"--devices": [1, 2, 4, 8]})]
    left_out = "job: cells of --devices 4,8 are left out, as DEVICE_TOTAL is 2."
    words = ["run", "--isolation", "none", "--jobs", loose.jobs(jobs), "--users", 2]
    assert call(capsys, *words, "--show")[1].split() == ["job", "all", "2", "cells", "of", "4", f"{TENANTS}/echo.py"]
    dry = call(capsys, *words, "--dry")[1].splitlines()
    assert left_out in dry
    assert [line.partition(",")[0] for line in dry if line.startswith("job.")] == [
        "job.c1: 1 user",
        "job.c2: 1 user",
    ]
    assert len(dry) < 12
    document = json.loads(call(capsys, *words, "--dry", "--json")[1])
    assert [launch["label"] for launch in document["launches"]] == ["job.c1", "job.c2"]
    assert document["left_out"] == [left_out]
    (shown,) = json.loads(call(capsys, *words, "--show", "--json")[1])["jobs"]
    assert (shown["job"], shown["cells"]) == ("job", 2)


@pytest.mark.v1
def test_the_environment_of_a_tenant_in_its_slice(v1: Suites) -> None:
    machine = discover()
    caller = {"OMP_NUM_THREADS": "77", "MINE": "kept", "DATA_DIRECTORY": str(v1.folder / "sets")}
    jobs = [job("echo.py", env={"EXTRA": "$JOB_ID of $DEVICE_TOTAL"}), job("echo.py", name="whole", group="all")]
    v1.run(jobs, "--users", 2, "--uid", 3, status=0, **caller)
    first, second = (json.loads(v1.log(tenant=tenant)) for tenant in (0, 1))
    for number, told in enumerate((first, second)):
        env, threads = told["env"], str(len(told["processors"]))
        given = dict.fromkeys((*THREADS, "CPU_COUNT"), threads) | {"MINE": "kept", "EXTRA": f"{number} of 2"}
        given |= {"JOB_RUNNER": "cotenant", "JOB_FILE": "jobs", "SUITE_NAME": "jobs", "BENCH_NAME": "job"}
        given |= {"JOB_ID": str(number), "RUN_ID": "3", "DEVICE_TOTAL": "2", "COTENANT_GROUP": "student"}
        given |= {"CPU_TOTAL": str(len(machine.processors)), "RAM_TOTAL": str(machine.memory_bytes // 1024)}
        given |= {"USE_CUDA": str(int(bool(machine.accelerators))), "MASTER_ADDR": "127.0.0.1"}
        given |= {"BASE": str(v1.base), "OUTPUT_DIRECTORY": str(v1.output), "TMPDIR": env["TEMP_DIRECTORY"]}
        given |= {"DATA_DIRECTORY": str(v1.folder / "sets")}
        assert {name: env[name] for name in given} == given
        assert told["argv"] == ["--seed", str(3 + (number + 1) * 100)]
        assert 0 < int(env["RAM_CONSTRAINT"]) < machine.memory_bytes // 1024 // 2
        assert Path(env["TEMP_DIRECTORY"]).parents[1] == v1.base / "tmp"
        assert env["PATH"].startswith(str(Path(sys.executable).parent))
    assert all(first["env"][name] != second["env"][name] for name in ("TEMP_DIRECTORY", "MASTER_PORT"))
    assert set(first["processors"]).isdisjoint(second["processors"])
    # Ranks of a job that owns the machine share its threads.
    told = json.loads(v1.log("whole"))
    assert told["processors"] == sorted(os.sched_getaffinity(0))
    assert told["env"]["OMP_NUM_THREADS"] == str(max(1, len(told["processors"]) // 2))
    assert told["env"]["COTENANT_GROUP"] == "all"
    assert told["argv"] == ["--seed", str(3 + 2)]


@pytest.mark.slow
def test_without_isolation_thread_counts_stay_the_callers(loose: Suites) -> None:
    caller = {"OMP_NUM_THREADS": "77"}
    for name in THREADS[1:]:
        loose.environment.pop(name, None)
    loose.run([job("echo.py")], "--users", 2, "--isolation", "affinity", "--no-cgexec", status=0, **caller)
    for told in (json.loads(loose.log(tenant=tenant)) for tenant in (0, 1)):
        assert told["env"]["OMP_NUM_THREADS"] == "77"
        assert not set(THREADS[1:]) & told["env"].keys()
        assert told["processors"] == sorted(os.sched_getaffinity(0))
    assert {record["isolation"]["backend"] for record in loose.records()} == {"none"}


def test_output_paths_come_from_the_environment_or_flags(
    loose: Suites, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    folder = loose.folder
    monkeypatch.chdir(folder)
    words = ["run", "--isolation", "none", "--users", 1, "--dry", "--verbose", "--jobs", loose.jobs([job()])]

    def output(*flags: str, **env: str) -> Path:
        for name in ("BASE", "OUTPUT_DIRECTORY"):
            monkeypatch.setenv(name, env[name]) if name in env else monkeypatch.delenv(name, raising=False)
        status, said, errors = call(capsys, *words, *flags)
        assert (status, errors) == (0, "")
        (line,) = [line for line in said.splitlines() if "OUTPUT_DIRECTORY=" in line]
        return Path(line.partition("=")[2])

    assert output() == folder / "workspace/output"
    assert output(BASE=str(folder / "a base with spaces")) == folder / "a base with spaces/output"
    assert output(OUTPUT_DIRECTORY=str(folder / "named")) == folder / "named"
    assert output("--outdir", "here and there", OUTPUT_DIRECTORY="not") == folder / "here and there"
    spaced, jobs = folder / "a base with spaces", [job("echo.py", args={"--repeat": 9, "--keep": 1})]
    arguments = ("--", "--repeat", 5, "--new", "x y")
    ended = loose.run(jobs, "--users", 1, "--no-nocache", "--verbose", *arguments, BASE=str(spaced))
    assert ended.returncode == 0, "flags of the original's scripts are accepted"
    told = json.loads((spaced / "output/logs/job.R0.T0.log").read_text())
    assert told["argv"] == ["--keep", "1", "--repeat", "5", "--new", "x y", "--seed", "100"]
    assert (spaced / "output/summary.txt").exists()
    first, second = ended.stdout.splitlines()[:2]
    assert ": 1 launch, " in first
    assert second == "1 user without slices, as if each just started (isolation none)"


@pytest.mark.slow
def test_a_container_is_given_what_it_needs(loose: Suites) -> None:
    """A stand-in named apptainer executes the command, as an image would."""
    programs = loose.folder / "bin"
    programs.mkdir()
    (programs / "apptainer").write_text(
        '#!/bin/sh\necho "$@" >"$BASE/../called"\nwhile [ "$1" != "$IMAGE" ]; do shift; done\nshift\nexec "$@"\n'
    )
    (programs / "apptainer").chmod(0o755)
    image = loose.folder / "image.sif"
    sets = loose.folder / "sets"
    caller = {"PATH": f"{programs}:{os.environ['PATH']}", "IMAGE": str(image), "DATA_DIRECTORY": str(sets)}
    missing = loose.run([job()], "--users", 1, "--singularity", image, **caller)
    assert missing.returncode == 2
    assert f"there is no image {image}" in missing.stderr
    image.write_text("")
    sets.mkdir()
    ended = loose.run([job(args={"--repeat": 3})], "--users", 1, "--singularity", "image.sif", **caller)
    assert ended.returncode == 0, ended.stderr + loose.log()
    assert loose.outcomes() == ["completed"]
    words = (loose.folder / "called").read_text().split()
    assert words[0] == "exec"
    bound = [words[at + 1] for at, word in enumerate(words) if word == "--bind"]
    assert {str(loose.base), str(loose.output), str(sets), str(ROOT), str(TENANTS)} < set(bound)
    assert words[words.index(str(image)) + 1 :] == [f"{TENANTS}/sums.py", "--repeat", "3", "--seed", "100"]


def test_who_is_strict_with_suspects_takes_no_warning() -> None:
    findings = {"warning": Finding("drift", "warning", "."), "error": Finding("overlap", "error", "."), "info": None}
    for strict, severities in ((None, set()), ("invalid", {"error"}), ("suspect", {"error", "warning"})):
        for severity, finding in findings.items():
            record = replace(a_record(), findings=[Finding("x", "info", "."), *([finding] if finding else [])])
            assert suite_run._is_doubtful(record, strict) == (severity in severities), (strict, severity)


def test_b_is_judged_slower_only_by_valid_launches() -> None:
    slower = DuetRatio(0.9, (0.88, 0.92), 9, Verdict.SLOWER)

    def launched(uid: int, value: float, invalid: bool = False) -> Record:
        findings = [Finding("overlap", "error", ".")] if invalid else []
        part = DuetPart("A", 0, [], dataclasses.replace(slower, value=value))
        return replace(a_record(), run_id=uid, duet=part, findings=findings)

    assert suite_run.is_slower([launched(0, 0.9)])
    assert not suite_run.is_slower([launched(0, 0.9, invalid=True)])
    assert suite_run.is_slower([launched(uid, value) for uid, value in enumerate((0.9, 0.91, 0.92))])
    assert not suite_run.is_slower([launched(uid, value) for uid, value in enumerate((0.8, 1.1, 0.9))])
    assert not suite_run.is_slower([launched(0, 0.9), launched(1, 0.9, invalid=True)])
    assert suite_run.is_slower([launched(uid, value, value > 1) for uid, value in enumerate((0.9, 1.5, 0.91, 0.92))])
