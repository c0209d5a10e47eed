"""Real torch under the runner: ranks started by torch.distributed.run train one model, with gloo on the CPU; benchmarks
that ask for too much, or for a feature that this device lacks, end with an outcome and a remedy."""

import re
from datetime import datetime
from typing import Any

import pytest

from cotenant.machine.topology import discover
from tenants.suites import Suites, found, job

WORDS = ("--repeat", 6, "--number", 4, "--batch-size", 32, "--workers", 2)


@pytest.mark.v1
@pytest.mark.slow
def test_ranks_train_one_model_and_are_one_tenant(v1: Suites) -> None:
    v1.run([job("ddp.sh", *WORDS, group="all")], "--users", 2, status=0)
    (record,) = v1.records()
    assert record["observed"]["world_size"] == 2
    assert (record["batch_size"], record["batch_size_per_device"]) == (64, 32)
    assert set(record["rank_observations"]) == {"0", "1"}
    assert {one["items"] for one in record["observations"]} == {2 * 4 * 32}
    assert {one["items"] for rows in record["rank_observations"].values() for one in rows} == {4 * 32}
    assert record["rendezvous"]["overlap"] == 1
    assert record["observed"]["threads"] == 1
    assert v1.log().count("Batch Loss") == 6
    assert record["observed"]["audit"]["steps"] >= 1
    assert record["observed"]["audit"]["differences"] == []


@pytest.mark.slow
def test_a_warm_up_that_is_long_for_one_rank_ends_for_all(loose: Suites) -> None:
    """A step more on some ranks would wait for the others for ever. The least budget leaves six observations."""
    words = ("--repeat", 6, "--number", 4, "--tardy", 4, "--long", 3.5)
    loose.run([job("ddp.sh", *words, group="all")], "--users", 2, "--budget", 0.1, status=0)
    (record,) = loose.records()
    assert len(record["rendezvous"]["warm_up_ns"]) == 1
    assert found(record, "benchmark:short_warm_up")
    assert {len(rows) for rows in record["rank_observations"].values()} == {6}


@pytest.mark.slow
def test_a_reference_suite_script_runs_beside_its_neighbour(loose: Suites) -> None:
    loose.run([job("polynome.py", "--repeat", 100_000, "--number", 20)], "--users", 2, "--budget", 4, status=0)
    assert loose.outcomes() == ["completed"] * 2
    for record in loose.records():
        assert record["unit"] == "item"
        assert record["rendezvous"]["overlap"] > 0.9
        assert len(record["observations"]) >= 16
        assert {seen["items"] % (20 * 64) for seen in record["observations"]} == {0}
        assert found(record, "unaudited")


DEATHS = {
    "kill": "was killed by SIGKILL before its record was complete. Its log ends: ",
    "raise": ": ValueError: an odd batch. Its log ends: ",
    "leave": "ended with exit status 0 before its record was complete. Its log ends: ",
}


@pytest.mark.v1
@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "who", "step"),
    [
        pytest.param("kill", 1, 8, id="killed"),
        pytest.param("raise", 1, 8, id="raised"),
        pytest.param("leave", 1, 8, id="left"),
        pytest.param("kill", 0, 2, id="killed before GO"),
    ],
)
def test_a_ranks_death_ends_the_launch_within_5_s_with_its_log(v1: Suites, how: str, who: int, step: int) -> None:
    words = ("--die-at", step, "--die-how", how, "--die-who", who)
    v1.run([job("ddp.sh", *WORDS, *words, group="all")], "--users", 2, status=1)
    (record,) = v1.records()
    assert record["outcome"] == "failed"
    assert re.match(f"Rank {who} of 2 ?" + re.escape(DEATHS[how]) + ".*(last words|ValueError)", record["message"])
    assert (died := re.search(r"last words at (\d+)", v1.log("job", f"0.rank{who}" if who else 0)))
    end_s = datetime.fromisoformat(record["end_time"]).timestamp()
    assert 0 < end_s - int(died[1]) / 1e9 < 5


POLYNOME, CONVNETS = "./regression/polynome/pytorch/run.sh", "./image_classification/convnets/pytorch/run.sh"


def benchmark(cmd: str, *words: str | int, name: str = "job") -> dict[str, Any]:
    return job("", "--repeat", 6, "--number", 1, "--no-cuda", *words, name=name) | {"cmd": cmd}


@pytest.mark.slow
def test_unsupported_precision_and_refused_memory_name_a_remedy(loose: Suites) -> None:
    """fp16 on a processor is unsupported, and bf16 is offered; too large a batch is answered with half of it."""
    jobs = [benchmark(POLYNOME, "--half", name="fp16"), benchmark(POLYNOME, "--batch-size", 1 << 46, name="large")]
    loose.run(jobs, "--users", 1, status=1)
    fp16, large = loose.records()
    assert fp16["outcome"] == "unsupported"
    assert fp16["message"].endswith("so it is not measured. Use --precision bf16.")
    assert large["outcome"] == "out_of_memory"
    assert large["message"].endswith(f"Try half the batch: -- --batch-size {1 << 45}")


@pytest.mark.v1
@pytest.mark.slow
def test_a_batch_too_large_for_its_slice_suggests_half_of_it(v1: Suites) -> None:
    """The default batch, which stands on no command line."""
    words = ("--arch", "resnet18", "--size", "320")
    reserve = discover().memory_bytes - (1200 << 20)
    v1.run([benchmark(CONVNETS, *words)], "--users", 1, "--reserve", reserve, status=1)
    (record,) = v1.records()
    assert record["outcome"] == "out_of_memory"
    assert record["message"].endswith("Try half the batch: -- --batch-size 32")
