"""Every job of profiles whose batch sizes go by memory, in the class of hosts without a device: it runs in seconds."""

from __future__ import annotations

import time

import pytest

from cotenant.bench import Run
from cotenant.bench.arguments import parse
from cotenant.bench.loop import Loop
from cotenant.suite.cells import arguments, expand, precision_of, with_arguments
from cotenant.suite.jobfile import Job, load
from cotenant.suite.sizes import CPU, FILE, load_sizes
from cotenant.suite.variables import VARIABLES
from tasks.loading import ROOT, TASKS, of, skip_without_lstm

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
LIMIT_S = 60


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_family_runs_in_seconds_without_a_device(job: Job) -> None:
    (cell,) = expand(job)
    family, precision = job.family or job.name, precision_of(cell)
    if family in RECURRENT:
        skip_without_lstm(precision)
    size = SIZES.size_of(family, precision, CPU)
    assert size is not None
    words = arguments(with_arguments(cell, size.args), VALUES | {"BATCH_SIZE": str(size.batch_size)})
    cls = of(str((TASKS / job.cmd).resolve().parents[1].relative_to(TASKS)))
    begun_s = time.monotonic()
    benchmark = cls(**parse(cls, [*words, "--no-cuda"]).values)
    loop = Loop(benchmark, run := Run(benchmark))
    loop.warm_up()
    seen = loop.observe(benchmark.number)
    assert time.monotonic() - begun_s < LIMIT_S
    assert seen.items > 0
    assert all(loss.isfinite() for loss in seen.losses)
    assert loop.observed_dtype == precision
    assert [finding.rule for finding in run.findings if finding.severity != "info"] == []
    operations = loop.operations()
    assert operations["flops_uncounted"] == []
    if operations["flops_closed"]:
        assert operations["flops_per_step"] == pytest.approx(operations["flops_closed"], rel=0.02)
