"""Prints how many MiB of a null device are free beside a process that holds a GiB of it, and when it was killed."""

import os
import signal

import torch

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
