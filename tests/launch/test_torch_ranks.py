"""A launch that owns the machine: ranks started by torch.distributed.run, one model, gloo on the CPU."""

import time

import pytest

from tenants.suites import Suites, job

WORDS = ("--repeat", 6, "--number", 4, "--batch-size", 32, "--workers", 2)


@pytest.mark.v1
def test_ranks_train_one_model_and_are_one_tenant(v1: Suites) -> None:
    ended = v1.run([job("ddp.sh", *WORDS, group="all")], "--users", 2, limit_s=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr + v1.log()
    (record,) = v1.records()
    assert record["observed"]["world_size"] == 2
    assert (record["batch_size"], record["batch_size_per_device"]) == (64, 32)
    assert set(record["rank_observations"]) == {"0", "1"}
    assert {one["items"] for one in record["observations"]} == {2 * 4 * 32}
    assert {one["items"] for rows in record["rank_observations"].values() for one in rows} == {4 * 32}
    assert record["rendezvous"]["overlap"] == 1
    assert record["observed"]["threads"] == 1
    assert v1.log().count("Batch Loss") == 6


@pytest.mark.v1
def test_a_ranks_death_ends_the_launch(v1: Suites) -> None:
    begin = time.monotonic()
    ended = v1.run([job("ddp.sh", *WORDS, "--die-at", 8, group="all")], "--users", 2, limit_s=120)
    assert ended.returncode == 1
    (record,) = v1.records()
    assert record["outcome"] == "failed"
    assert time.monotonic() - begin < 60
