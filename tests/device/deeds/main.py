"""Tenants, one of which does a deed to the others or to its slice: takes all memory, dies, pins pages, and so on.

python main.py --deed hog --who 0     Tenant 0 takes all memory; every tenant trains a small network.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from cotenant.bench import Benchmark, Run, flag, main

MEBIBYTE = 1 << 20
FLOOD = 5000
LONG_CYCLES = 20_000_000_000
"""Length of the long kernel: ten seconds at 2 GHz."""


class Deed(Benchmark):
    """One step = one update of a small network; tenant `who` does the deed as well."""

    item = "example"

    batch_size: int = 256
    deed: Literal["none", "hog", "die", "pin", "image", "assert", "long", "flood", "bandwidth"] = flag(
        "die",
        help="nothing; take all memory; die by SIGKILL; pin pages; load a kernel of another device; fail an "
        "assertion on the device; one kernel of ten seconds; thousands of empty kernels a step; copy memory",
    )
    who: int = flag(0, help="number of the user that does it", least=0)
    mebibytes: int = flag(1024, help="how much is pinned, or taken in a step")
    after: int = flag(50, help="steps after which it dies")

    def build(self, run: Run) -> None:
        self.does = int(os.environ.get("JOB_ID", "0")) == self.who
        self.model = run.place(nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)))
        self.optimizer = run.sgd(self.model.parameters(), lr=1e-3)
        self.held: list[Any] = []
        self.steps = 0
        if self.does and self.deed == "bandwidth":
            self.held += [torch.ones(self.mebibytes * MEBIBYTE // 8, device=run.device) for _ in range(2)]
        if self.does and self.deed == "pin":
            pages = torch.empty(self.mebibytes * MEBIBYTE, dtype=torch.uint8, pin_memory=run.device.type != "cpu")
            self.held.append(pages.fill_(1))
        if self.does and self.deed == "image":
            load_image_of_another(run.device)

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        return run.resident(torch.randn(self.batch_size, 256))

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        loss = (self.model(batch) - batch).pow(2).mean()
        run.update(loss, self.optimizer)
        self.steps += 1
        if self.does:
            self.do(run)
        return loss

    def do(self, run: Run) -> None:
        """Do the deed's part of one step: `bandwidth` and `flood` in every step, the others after `after` steps."""
        due = self.steps == self.after + 1
        if self.deed == "die" and due:
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.deed == "hog" and self.steps > self.after:
            self.held.append(torch.ones(self.mebibytes * MEBIBYTE, dtype=torch.uint8, device=run.device))
        elif self.deed == "bandwidth":
            self.held[0].copy_(self.held[1])
        elif self.deed == "flood":
            for _ in range(FLOOD):
                torch.empty(1, device=run.device).zero_()
        elif self.deed == "long" and due:
            torch.cuda._sleep(LONG_CYCLES)
        elif self.deed == "assert" and due:
            # An index beyond the table fails an assertion in the kernel, which ends the context.
            torch.zeros(1, device=run.device)[torch.tensor([7], device=run.device)].sum().item()


def load_image_of_another(device: torch.device) -> None:
    """Load a kernel that is compiled for another generation of devices than this one, as a wheel's kernels may be.

    The assembler is Triton's, which torch's CUDA builds install.
    """
    import triton
    from torch.cuda._utils import _cuda_load_module

    other = "sm_80" if torch.cuda.get_device_capability(device)[0] != 8 else "sm_75"
    assembler = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"
    source = f".version 7.0\n.target {other}\n.address_size 64\n.visible .entry nothing() {{ ret; }}\n"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as image:
        command = [str(assembler), f"--gpu-name={other}", "--output-file", image.name, "-"]
        subprocess.run(command, input=source.encode(), check=True)
        _cuda_load_module(image.read())


if __name__ == "__main__":
    main(Deed)
