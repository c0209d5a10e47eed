"""What a host with a device may lack: NVML, a C compiler, devices that this process may see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from device.jobs import SMALL, SPEECH, TEXT
from device.test_tasks import run
from device.zygote import Zygote


@pytest.fixture(scope="module")
def without_nvml(null_device: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    folder = tmp_path_factory.mktemp("compute-only")
    (folder / "libcuda.so.1").symlink_to(null_device / "libcuda.so.1")
    made = Zygote(folder)
    yield made
    made.close()


@pytest.mark.parametrize(
    "task",
    [
        f"{TEXT}/gpt",
        *(pytest.param(task, marks=pytest.mark.slow) for task in SMALL if task != f"{TEXT}/gpt"),
    ],
)
def test_without_nvml_tasks_of_any_shapes_run(without_nvml: Zygote, task: str) -> None:
    """A container may have of the driver no more than what computes; segments that grow would need NVML."""
    ended = run(without_nvml, task, "--precision", "bf16")
    assert ended.record.get("outcome") == "completed", ended
    assert "allocator" not in ended.record["observed"]


def test_without_a_compiler_the_sentence_names_it(zygote: Zygote, tmp_path: Path) -> None:
    """torch's own kernel of Triton needs one; what was compiled before lies in its cache, so this one is empty."""
    bare = {"PATH": str(tmp_path), "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    ended = run(zygote, f"{SPEECH}/tacotron2", "--precision", "bf16", **bare)
    assert ended.record["outcome"] == "unsupported", ended
    assert "C compiler" in ended.record["message"]
    assert "apt-get install gcc" in ended.record["message"]


def test_hidden_devices_are_not_seen(zygote: Zygote) -> None:
    hidden = run(zygote, "regression/polynome", CUDA_VISIBLE_DEVICES="")
    assert hidden.record["observed"]["device"] == "cpu", hidden
    second = run(
        zygote,
        "regression/polynome",
        NULL_DEVICE_COUNT="2",
        CUDA_VISIBLE_DEVICES="GPU-a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1",
    )
    assert second.record["observed"]["device_share"]["uuid"] == "GPU-a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1", second
