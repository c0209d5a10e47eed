"""Rules of the null device, and a benchmark's device on it: its rank's number, streams, graphs and memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from device.conftest import built_or_skipped
from device.zygote import PROGRAMS, Zygote

POLYNOME = "regression/polynome"
SECOND = "GPU-a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1"


def test_its_rules(zygote: Zygote) -> None:
    small = {"NULL_DEVICE_MIB": "4096", "NULL_DEVICE_CONTEXT_MIB": "500", "NULL_DEVICE_COUNT": "3"}
    found = zygote.asked("rules", **small, NULL_DEVICE_NAME="Null 4 GB", CUDA_VISIBLE_DEVICES="1,2,9,0")
    assert (found["kernels"], found["joined"]) == ("", "")
    for name in ("waits", "synchronize"):
        assert "operation not permitted when stream is capturing" in found[name], name
    assert "unjoined work" in found["unjoined"]
    assert "uncaptured work" in found["event_outside"]
    assert found["ones_read_as"] == [0, 0, 0, 0], "nothing is computed, and nothing is kept"
    # torch allocates segments of 2 MiB. The context takes 500 MiB, and the segment of small tensors 2 MiB.
    assert found["largest_mib"] == found["free"] == 4096 - 500 - 2
    assert (found["devices"], found["named"]) == (2, "Null 4 GB")


@pytest.mark.parametrize(("ci", "end"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_another_torch_build_skips_tests_but_fails_in_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ci: str, end: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    (tmp_path / "torch/lib").mkdir(parents=True)
    with pytest.raises(end, match=r"needs torch's build for CUDA 13, not .*: TORCH_BUILD=cu130 \./test\.sh\."):
        built_or_skipped(tmp_path)


def test_processes_of_one_file_share_a_device(zygote: Zygote, tmp_path: Path) -> None:
    """A process cannot have the memory that another one holds, until the holder is killed."""
    shared = {"NULL_DEVICE_SHARED": str(tmp_path / "devices"), "NULL_DEVICE_MIB": "4096"}
    ended = zygote.start(PROGRAMS / "holder.py", NULL_DEVICE_CONTEXT_MIB="500", **shared)
    contexts_mib = 2 * 500
    assert ended.out.split() == [str(4096 - contexts_mib - 1024), str(4096 - 500)], ended


def test_each_rank_needs_a_device_of_its_own(zygote: Zygote, tmp_path: Path) -> None:
    """The benchmark asks the driver whether MPS serves the device."""
    (tmp_path / "control").touch()
    served = {"NULL_DEVICE_COUNT": "3", "CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}
    *refused, found = zygote.asked("rank", "0/4", "3/1", "2/3", **served)
    for outcome, message in refused:
        assert outcome == "unsupported"
        assert message.startswith("4 ranks need a device each, and 3 can be used here. ")
        assert "--users 3" in message
        assert "--nproc_per_node=3" in message
    assert found == {
        "device": "cuda:2",
        "current": 2,
        "name": "NVIDIA H100 80GB HBM3",
        "alike": 3,
        "cache_bytes": 50 << 20,
        "mps": True,
        "peak_mib": [16, 0],
    }


def test_inherited_switches_that_falsify_rates_are_dropped(zygote: Zygote) -> None:
    """PYTORCH_CUDA_ALLOC_CONF of the environment stays, so that the benchmark asks for no expandable segments."""
    switches = {
        "CUDA_LAUNCH_BLOCKING": "1",
        "NCCL_DEBUG": "WARN",
        "NVIDIA_TF32_OVERRIDE": "0",
        "PYTORCH_CUDA_ALLOC_CONF": "backend:native",
    }
    second = zygote.small(POLYNOME, NULL_DEVICE_COUNT="2", CUDA_VISIBLE_DEVICES=SECOND).record["observed"]
    assert (second["allocator"], second["device_share"]["uuid"]) == ("expandable segments", SECOND)
    assert second["mps"] is False
    record = zygote.small(POLYNOME, **switches).record
    assert record["machine"]["torch"]["switches"] == switches
    dropped = [finding["sentence"] for finding in record["findings"] if finding["rule"] == "benchmark:switch_dropped"]
    assert len(dropped) == 2
    assert dropped[0].startswith("The benchmark says: NVIDIA_TF32_OVERRIDE=0 was inherited and is left out: it would ")
    assert "allocator" not in record["observed"]
