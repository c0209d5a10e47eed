"""The null device itself: torch's host side meets the rules that a device has."""

from __future__ import annotations

import json
from pathlib import Path

from device.null.elf import dynamic_symbols
from device.zygote import Zygote

RULES = Path(__file__).with_name("rules.py")


def test_its_rules(zygote: Zygote) -> None:
    small = {"NULL_DEVICE_MIB": "4096", "NULL_DEVICE_CONTEXT_MIB": "500", "NULL_DEVICE_COUNT": "3"}
    ended = zygote.start(RULES, environ=small | {"NULL_DEVICE_NAME": "Null 4 GB", "CUDA_VISIBLE_DEVICES": "1,2,9,0"})
    assert ended.status == 0, ended
    found = json.loads(ended.out)
    assert (found["kernels"], found["joined"]) == ("", "")
    for name in ("waits", "synchronize"):
        assert "operation not permitted when stream is capturing" in found[name], name
    assert "unjoined work" in found["unjoined"]
    assert "uncaptured work" in found["event_outside"]
    assert found["ones_read_as"] == [0, 0, 0, 0], "nothing is computed, and nothing is kept"
    # Segments are of 2 MiB; a context and the 2 MiB of what is small are taken.
    assert found["largest_mib"] == found["free"] == 4096 - 500 - 2
    assert (found["devices"], found["named"]) == (2, "Null 4 GB")


HOLDER = """
import os, signal, sys, torch
ready, told = os.pipe()
child = os.fork()
if not child:
    held = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    os.write(told, b"held")
    signal.pause()
os.read(ready, 4)
print(torch.cuda.mem_get_info()[0] >> 20)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
print(torch.cuda.mem_get_info()[0] >> 20)
"""


def test_processes_of_one_ledger_share_a_device(zygote: Zygote, tmp_path: Path) -> None:
    """What one holds the other cannot have; one that was killed holds nothing."""
    holder = tmp_path / "holder.py"
    holder.write_text(HOLDER)
    ledger = {"NULL_DEVICE_LEDGER": str(tmp_path / "ledger"), "NULL_DEVICE_MIB": "4096"}
    ended = zygote.start(holder, environ=ledger | {"NULL_DEVICE_CONTEXT_MIB": "500"})
    contexts_mib = 2 * 500
    assert ended.out.split() == [str(4096 - contexts_mib - 1024), str(4096 - 500)], ended


def test_every_function_that_torch_asks_of_cuda_is_there(null_device: Path) -> None:
    undefined, defined = dynamic_symbols(null_device / "libcuda.so.1")
    assert {"cudaMalloc", "cublasLtMatmul", "cudnnBackendExecute", "cuLaunchKernelEx", "ncclAllReduce"} <= defined
    assert not {name for name in undefined if name.startswith(("cuda", "cublas", "cudnn"))}
