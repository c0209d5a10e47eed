"""A shipped task of the group `all`, started as a suite starts it: two ranks on the processor train one model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tasks.loading import TASKS, draw_pictures
from tenants.suites import Suites

CONVNET = TASKS / "image_classification" / "convnets" / "pytorch"
# After each step: the sum of the batch's pixels, and that of all weights.
WATCHED = f"""
import sys
sys.path.insert(0, {str(CONVNET)!r})
import main

class Watched(main.ConvNet):
    def step(self, run, batch):
        loss = super().step(run, batch)
        weights = sum(parameter.detach().double().sum() for parameter in self.model.parameters())
        print("seen", batch[0].double().sum().item(), weights.item(), flush=True)
        return loss

Watched.main()
"""
WARM_UP, REPEAT, NUMBER, BATCH = 3, 3, 2, 2


def watched_convnet(folder: Path) -> dict[str, Any]:
    """A job of the shipped script beside a program that watches the shipped benchmark."""
    folder.mkdir()
    (folder / "main.py").write_text(WATCHED)
    (folder / "run_distributed.sh").symlink_to(CONVNET / "run_distributed.sh")
    args = {"--arch": "resnet18", "--size": 32, "--batch-size": BATCH, "--repeat": REPEAT, "--number": NUMBER}
    files = {"--data": str(draw_pictures(folder / "train")), "--workers": 2, "--no-cuda": ""}
    return {"name": "ranks", "cmd": str(folder / "run_distributed.sh"), "cgroup": "all", "args": args | files}


def seen(log: str) -> tuple[list[str], list[str]]:
    """Return the sums of batches and of weights that one rank has printed, step by step."""
    lines = [line.split() for line in log.splitlines() if line.startswith("seen ")]
    return [batch for _, batch, _ in lines], [weights for _, _, weights in lines]


@pytest.mark.slow
def test_ranks_of_a_shipped_task_train_one_model_on_data_of_their_own(loose: Suites) -> None:
    ended = loose.run([watched_convnet(loose.folder / "task")], "--users", 2, limit_s=180)
    assert ended.returncode == 0, ended.stdout + ended.stderr + loose.log("ranks")
    (batches, weights), (other_batches, other_weights) = (seen(loose.log("ranks", who)) for who in (0, "0.rank1"))
    assert len(weights) == WARM_UP + REPEAT * NUMBER
    assert weights == other_weights
    assert len(set(weights)) == len(weights)
    assert not set(batches) & set(other_batches)
    (record,) = loose.records()
    assert (record["observed"]["world_size"], record["observed"]["parallel"]) == (2, "ddp")
    assert [one["items"] for one in record["observations"]] == [2 * NUMBER * BATCH] * REPEAT
    for rows in record["rank_observations"].values():
        assert [one["items"] for one in rows] == [NUMBER * BATCH] * REPEAT
