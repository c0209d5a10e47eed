"""The profile for processors: its steps, as they were measured, are short enough for blocks."""

from __future__ import annotations

from cotenant.launch.design.designs import InBlocks
from cotenant.launch.design.shared import DesignPlan, Room
from cotenant.suite.jobfile import load
from workplace import ROOT

JOBS = {job.name: job for job in load(ROOT / "profiles/cpu.json").jobs}
STEP_MS: dict[str, tuple[float, dict[str, object]]] = {
    "toy_reg": (0.3, {"--batch-size": 256}),
    "toy_lstm": (18.5, {"--length": 20}),
    "vae": (9.5, {"--batch-size": 128}),
    "loader": (13.0, {"--batch-size": 8}),
    "reso": (10.7, {"--batch-size": 2, "--crop": 64, "--channels-last": ""}),
    "translator": (28.6, {"--batch-size": 4, "--hidden": 64, "--words": 2000}),
    "wlm": (20.6, {"--batch-size": 4, "--emsize": 128, "--nhid": 128, "--words": 2000}),
    "wlmfp16": (28.6, {"--batch-size": 4, "--emsize": 64, "--nhid": 64, "--words": 1000}),
    "cart": (0.5, {"--batch-size": 1}),
    "atari": (22.0, {"--num-steps": 2, "--num-processes": 2, "--ppo-epoch": 2, "--num-mini-batch": 1}),
    "ssd": (40.9, {"--batch-size": 1, "--size": 32, "--backbone": "resnet18"}),
    "fast_style": (32.6, {"--batch-size": 1, "--image-size": 16, "--channels-last": ""}),
    "dcgan": (20.7, {"--batch-size": 4, "--imageSize": 32, "--ngf": 16, "--ndf": 16}),
    "convnet": (18.9, {"--batch-size": 2, "--arch": "squeezenet1_1", "--size": 64, "--channels-last": ""}),
    "convnet_fp16": (55.2, {"--batch-size": 2, "--arch": "squeezenet1_1", "--size": 64, "--channels-last": ""}),
    "recom": (8.5, {"--batch-size": 512, "--layers": "64 32 16 8", "-f": 8}),
}
"""Milliseconds of processor time that a step takes, with the decoding of pictures, on one processor of a busy host (AMD
EPYC, Zen 5); in bf16 as on a processor without bf16 units (ONEDNN_MAX_CPU_ISA=AVX2). And the arguments that this time
depends on: after a change of one the step has to be measured again.
"""
MS = 1_000_000


def have_blocks(step_ms: float) -> bool:
    """Return whether two users of a job have blocks within the usual budget."""
    return isinstance(InBlocks().plan(Room(dict.fromkeys((0, 1), round(step_ms * MS)))), DesignPlan)


def test_every_job_of_users_was_measured_as_it_is() -> None:
    assert [job.name for job in JOBS.values() if job.group == "student"] == list(STEP_MS)
    for name, (_, arguments) in STEP_MS.items():
        given = dict(JOBS[name].args)
        assert {flag: given.get(flag) for flag in arguments} == {flag: (value,) for flag, value in arguments.items()}


def test_two_users_of_every_job_fit_blocks_into_the_budget() -> None:
    assert [name for name, (step_ms, _) in STEP_MS.items() if not have_blocks(step_ms)] == []
    slow = [name for name, (step_ms, _) in STEP_MS.items() if not have_blocks(2 * step_ms)]
    assert slow == ["ssd", "fast_style", "convnet_fp16"]
