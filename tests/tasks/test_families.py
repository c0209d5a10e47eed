"""Every job of profiles with batch sizes by memory, in the class of hosts without a device: each runs in seconds."""

from __future__ import annotations

import time

import pytest

from bench.small import warmed
from cotenant.bench.arguments import parse
from cotenant.results.record import SOLO
from cotenant.suite.cells import ON_PROCESSORS, Job, arguments, expand, precision_of, with_arguments
from cotenant.suite.jobfile import load
from cotenant.suite.sizes import CPU, FILE, load_sizes
from cotenant.suite.variables import VARIABLES
from tasks.loading import ROOT, TASKS, of, skip_without_lstm
from tenants.suites import Suites

PROFILES = ("lambda", "modern")
JOBS = [
    job
    for profile in PROFILES
    for job in load(ROOT / f"profiles/{profile}.json").jobs
    if precision_of(expand(job)[0]) in ("fp32", "bf16")
]
SIZES = load_sizes(ROOT / "profiles" / FILE)
VALUES = dict.fromkeys(VARIABLES, "/x")
RECURRENT = ("gnmt", "tacotron2")
FAST = "ncf_bf16"
LIMIT_S = 60


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    "job",
    [job if job.name == FAST else pytest.param(job, marks=pytest.mark.slow) for job in JOBS],
    ids=lambda job: job.name,
)
def test_a_family_runs_in_seconds_without_a_device(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    (cell,) = expand(job)
    family, precision = job.family or job.name, precision_of(cell)
    if family in RECURRENT:
        skip_without_lstm(precision)
    size = SIZES.size_of(family, precision, CPU)
    words = arguments(with_arguments(cell, size.args), VALUES | {"BATCH_SIZE": str(size.batch_size)})
    cls = of(str((TASKS / job.cmd).resolve().parents[1].relative_to(TASKS)))
    if job.name == FAST:
        monkeypatch.setattr("cotenant.bench.loop.WARM_UP_STEPS", 1)
    begun_s = time.process_time()
    loop, run = warmed(benchmark := cls(**parse(cls, [*words, "--no-cuda"]).values))
    seen = loop.observe(benchmark.number)
    assert time.process_time() - begun_s < LIMIT_S
    assert seen.items > 0
    assert all(loss.isfinite() for loss in seen.losses)
    assert loop.auditor.dtype == precision
    assert [finding.rule for finding in run.findings if finding.severity != "info"] == []
    operations = loop.auditor.operations()
    assert operations["flops_uncounted"] == []
    if operations["flops_closed"]:
        assert operations["flops_per_step"] == pytest.approx(operations["flops_closed"], rel=0.02)


@pytest.mark.slow
def test_the_vendors_suite_runs_through(loose: Suites) -> None:
    profile = ROOT / "profiles/lambda.json"
    ended = loose.run(None, "--jobs", profile, "--users", 2, "--isolation", "affinity", limit_s=1800)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    records = loose.records()
    families = {job.name for job in load(profile).jobs if job.name.endswith(ON_PROCESSORS)}
    names = [record["name"].removesuffix(SOLO) for record in records]  # A job of long steps has its alone launch.
    assert set(names) == families
    for name, record in zip(names, records, strict=True):
        assert record["observed"]["dtype"] == record["precision"] == name.rpartition("_")[2]
        assert record["isolation"]["policies"]["memory_class"] == CPU
        # Tenants of one launch have to count equally many items, though their seeds differ.
        assert [finding["rule"] for finding in record["findings"] if finding["severity"] == "error"] == []
    (left_out,) = [line for line in ended.stdout.splitlines() if "left out" in line]
    assert left_out.startswith("resnet50, ssd, maskrcnn,")
    assert "cells in tf32 and fp16 are left out" in left_out
