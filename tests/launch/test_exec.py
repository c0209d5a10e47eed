"""Any program as a tenant, through the real runner: its environment, how its work is counted, and how it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cotenant.exec.settings import HOOK
from cotenant.launch.paths import SOCKET_PATH_BYTES
from tenants.suites import Suites, errors, found, processor_share, script

TRAIN = """
import sys, torch
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.{optimizer}
data = torch.utils.data.TensorDataset(torch.randn(512, 64))
loader = torch.utils.data.DataLoader(data, batch_size=32{loader})
{before}
for epoch in range({epochs}):
    for (x,) in loader:
        {step}
"""
PLAIN = "optimizer.zero_grad(); model(x).square().sum().backward(); optimizer.step()"
WITH_A_CLOSURE = """def loss():
            optimizer.zero_grad(); value = model(x).square().sum(); value.backward(); return value
        optimizer.step(loss)"""


def trains(folder: Path, **parts: Any) -> Path:
    usual = {"optimizer": "SGD(model.parameters(), 1e-4)", "loader": "", "before": "", "epochs": 10**6, "step": PLAIN}
    path = folder / "train.py"
    path.write_text(TRAIN.format(**usual | parts))
    return path


RUN_S = 0.12
SHOWS = f"""
env > "$1"
echo "$COTENANT_TENANT $MASTER_PORT $TMPDIR $PATH" >> "$1"
exec {sys.executable} -S -c "import time; any(iter(lambda: time.process_time() > {RUN_S}, True))"
"""
"""A program that is no Python, and ends after some processor time."""


@pytest.fixture(scope="module")
def copies(shared: Suites) -> list[dict[str, Any]]:
    """The records of six runs each of two copies of a command."""
    shared.executes("sh", "-c", SHOWS, "copy", "out.{user}", flags="--baseline none --runs 6 --as mine", status=0)
    return shared.records()


def test_each_copy_of_a_command_is_told_what_is_its_own(shared: Suites, copies: list[dict[str, Any]]) -> None:
    """PATH is the caller's, and a word has its number."""
    ends = [(record["outcome"], record["name"], record["unit"]) for record in copies]
    assert ends == [("completed", "mine", "run")] * 2
    assert all(len(record["observations"]) == 6 and found(record, "unaudited") for record in copies)
    assert [record["command"][-1] for record in copies] == ["out.0", "out.1"]
    assert copies[0]["program"].endswith("copy 'out.{user}'")
    assert len({record["unique_id"] for record in copies} - {""}) == 1
    environments = [(shared.folder / f"out.{user}").read_text() for user in (0, 1)]
    last = [text.splitlines()[-1].split() for text in environments]
    assert [words[0] for words in last] == ["0", "1"]
    assert len({words[1] for words in last}) == len({words[2] for words in last}) == 2
    assert {words[3] for words in last} == {shared.environment["PATH"]}
    assert all(re.search(rf"^PYTHONPATH={re.escape(str(HOOK))}", text, re.M) for text in environments)
    assert all(len(f"{words[2]}/pymp-12345678/listener-12345678") <= SOCKET_PATH_BYTES for words in last)
    assert not re.search(r"^(DATA_DIRECTORY|USE_CUDA|JOB_ID)=", environments[0], re.M)


def test_a_command_counts_with_the_processor_time_of_all_runs(copies: list[dict[str, Any]]) -> None:
    for record in copies:
        assert "idle_load" not in errors(record), record["meters"]["beside"]
        assert processor_share(record, RUN_S) > 0.25


@pytest.mark.slow
def test_a_script_is_measured_by_the_steps_of_its_optimizer(loose: Suites) -> None:
    loose.executes(sys.executable, trains(loose.folder), status=0)
    records = loose.records()
    ends = [(record["name"], record["outcome"], record["unit"]) for record in records]
    assert ends == [("train", "completed", "step")] * 2
    for record in records:
        assert record["observed"]["counted_by"] == "optimizer"
        assert record["statistics"]["median"] > 0
        assert record["rendezvous"]["overlap"] > 0.9
    loose.gone(2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts",
    [
        {"loader": ", num_workers=2, persistent_workers=True"},
        {"optimizer": "LBFGS(model.parameters(), 1e-3, 4)", "step": WITH_A_CLOSURE},
        {"before": "model = torch.compile(model, backend='eager')"},
        {"before": "import signal; signal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True))"},
        {"before": "other = torch.optim.SGD(model.parameters(), 0.0)", "step": f"{PLAIN}; other.step()"},
        {"before": "import os\nif os.fork() == 0: model = torch.nn.Linear(64, 64); os._exit(0)"},
    ],
    ids=["workers", "LBFGS", "compile", "ignores SIGTERM", "two optimizers", "forks"],
)
def test_scripts_of_many_kinds_are_measured(loose: Suites, parts: dict[str, str]) -> None:
    loose.executes(sys.executable, trains(loose.folder, **parts), users=1, status=0)
    (record,) = loose.records()
    assert (record["outcome"], record["message"]) == ("completed", "")
    assert record["statistics"]["median"] > 0
    if "other" in parts.get("step", ""):
        assert record["observed"]["other_optimizers"]["SGD"] > 0
    loose.gone(2)


@pytest.mark.slow
def test_a_script_that_ends_early_says_after_how_many_steps(loose: Suites) -> None:
    loose.executes(sys.executable, trains(loose.folder, epochs=2), users=1)
    (record,) = loose.records()
    assert record["outcome"] == "failed"
    assert record["message"].startswith("The program ended by itself after 32 steps, while it was measured.")


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["", r"--count-line ^step"], ids=["steps", "lines"])
def test_a_script_that_ends_early_is_started_again_on_request(loose: Suites, flags: str) -> None:
    path = trains(loose.folder, epochs=40, step=f"{PLAIN}; print('step')")
    loose.executes(sys.executable, path, flags=f"--baseline none --budget 6 --again {flags}", users=1, status=0)
    (record,) = loose.records()
    assert (record["outcome"], record["message"]) == ("completed", "")
    observations = record["observations"]
    assert sum(row["items"] for row in observations) > 40 * 16
    assert record["observed"].get("starts", 2) > 1
    loose.gone(2)


VERSIONS = """
import sys, time, torch
torch.set_num_threads(1)  # Beside a neighbour, threads that wait for each other differ by more than 5 %.
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
optimizer, x = torch.optim.Adam(model.parameters(), 1e-4), torch.randn(64, 512)
while True:
    begin = time.perf_counter()
    optimizer.zero_grad(); model(x).square().mean().backward(); optimizer.step()
    {more}
"""
COME_AND_GO = """
import random, time
while True:
    until = time.monotonic() + random.uniform(1, 4)
    while time.monotonic() < until: pass
    time.sleep(random.uniform(1, 4))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "status", "verdicts"),
    [
        ("time.sleep(0.05 * (time.perf_counter() - begin))", 3, {"B is slower than A"}),
        ("pass", 0, {"It is not clear whether B is slower than A", "B is as fast as A, within 2 %"}),
    ],
    ids=["5 % slower", "the same"],
)
def test_script_versions_are_judged_beside_a_changing_neighbour(
    loose: Suites, more: str, status: int, verdicts: set[str]
) -> None:
    versions = [loose.folder / name for name in ("old.py", "new.py")]
    for path, words in zip(versions, ("pass", more), strict=True):
        path.write_text(VERSIONS.format(more=words))
    neighbour = subprocess.Popen([sys.executable, "-c", COME_AND_GO])
    try:
        words = (sys.executable, versions[0], "---", sys.executable, versions[1])
        ended = loose.executes(*words, flags="--duet", users=1, status=status)
    finally:
        neighbour.kill()
        neighbour.wait()
    records = loose.records()
    assert [record["name"] for record in records] == ["old.duet.A", "old.duet.B"] * 8
    assert [record["run_id"] for record in records[::2]] == list(range(8))
    assert any(f"\n{words}: it has" in ended.stdout for words in verdicts)
    assert "over 8 launches" in ended.stdout
    assert f"B: {sys.executable} {versions[1]}" in ended.stdout
    loose.gone(2)


@pytest.mark.slow
def test_lines_of_a_shell_script_count_after_its_ready_line(loose: Suites) -> None:
    loop = 'i=$((i+1)); j=0; while [ $j -lt 500 ]; do j=$((j+1)); done; echo "step $i"'
    path = script(loose.folder / "serve.sh", "echo step 900", "echo listening", "i=0", f"while :; do {loop}; done")
    flags = "--baseline none --budget 1 --ready-line ^listening --item request --count-line"
    loose.executes(path, flags=rf"{flags} ^step\s(\d+)", status=0)
    assert loose.outcomes() == ["completed"] * 2
    for record in loose.records():
        assert record["unit"] == "request"
        assert record["observed"]["counted_by"] == "lines"
        assert 0 < record["statistics"]["median"] < 1e5
    loose.gone(2)


@pytest.mark.slow
def test_ranks_of_torchrun_are_counted_once_per_copy(loose: Suites) -> None:
    ranked = "import torch.distributed as dist; dist.init_process_group('gloo')"
    ranked += "\nmodel = torch.nn.parallel.DistributedDataParallel(model)"
    path = trains(loose.folder, before=ranked)
    torchrun = Path(sys.executable).with_name("torchrun")
    loose.executes(torchrun, "--nproc-per-node", 2, path, users=2, status=0)
    assert loose.outcomes() == ["completed"] * 2
    assert not any(found(record, "other_steppers") for record in loose.records())
    assert os.environ.get("RANK") is None
    loose.gone(2)
