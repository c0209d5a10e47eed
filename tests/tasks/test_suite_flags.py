"""Every job of the shipped job files: its command is there, and its benchmark understands every flag."""

import pytest

from cotenant.bench.arguments import parse
from cotenant.suite.cells import Cell, arguments, expand
from cotenant.suite.jobfile import load
from cotenant.suite.variables import VARIABLES
from tasks.loading import ROOT, TASKS, benchmark_in, main_of

ORDER = [
    "toy_reg",
    "toy_lstm",
    "vae",
    "loader",
    "reso",
    "translator",
    "wlm",
    "wlmfp16",
    "cart",
    "atari",
    "ssd",
    "fast_style",
    "dcgan",
    "convnet",
    "convnet_fp16",
    "recom",
    "convnet_distributed",
    "convnet_distributed_fp16",
    "dcgan_all",
]
VALUES = dict.fromkeys(VARIABLES, "/x") | {"DEVICE_TOTAL": "2"}
FILES = ("baselines.json", "profiles/cpu.json", "profiles/16gb.json")
CELLS = [cell for file in FILES for job in load(ROOT / file).jobs for cell in expand(job)]


def test_the_reference_suite_is_complete_and_in_order() -> None:
    assert [job.name for job in load(ROOT / "baselines.json").jobs] == ORDER
    assert [job.name for job in load(ROOT / "profiles/cpu.json").jobs] == [*ORDER, "scaling"]


def test_the_16_gb_profile_is_the_reference_suite_with_half_the_batches() -> None:
    for full, half in zip(load(ROOT / "baselines.json").jobs, load(ROOT / "profiles/16gb.json").jobs, strict=True):
        for (flag, (ours,)), (same_flag, (theirs,)) in zip(full.args, half.args, strict=True):
            assert flag == same_flag
            assert theirs == ours or (flag == "--batch-size" and theirs * 2 == ours)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.label)
def test_a_job_is_understood(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    command = (TASKS / cell.job.cmd).resolve()
    assert command.is_file()
    preset = ["--fp16"] if command.name == "run_fp16.sh" else []
    words = [*preset, *arguments(cell, VALUES, seed=100)]
    parsed = parse(benchmark_in(main_of(str(command.parents[1].relative_to(TASKS)))), words)
    given = dict(cell.args)
    assert parsed.values["repeat"] == given["--repeat"]
    assert parsed.values["batch_size"] == given.get("--batch-size", given.get("--num-processes"))
    distributed = cell.job.group == "all"
    assert ("torch.distributed.run" in command.read_text()) == distributed
