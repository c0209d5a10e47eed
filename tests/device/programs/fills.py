"""Prints how long the middle third of some fills of a null device's memory took, in ms by its events, and in ms by the
host from the first one's issue to the last one's issue and end, with its processor time: `fills.py COUNT MS`.

Without torch. Several of it that share a device begin when each is told so, by a line of its standard input.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time

BYTES_MS = 3350e6
"""Of the device's memory, as clock.c models it."""
LAUNCH_MS = 0.005


def main(count: int, fill_ms: float) -> None:
    cuda = ctypes.CDLL("libcuda.so.1")
    events = [ctypes.c_void_p() for _ in range(2)]
    for event in events:
        cuda.cudaEventCreate(ctypes.byref(event))
    size = ctypes.c_size_t(round((fill_ms - LAUNCH_MS) * BYTES_MS))
    cuda.cudaDeviceSynchronize()
    print("ready", flush=True)
    sys.stdin.readline()
    began_s, processor_s = time.monotonic(), time.process_time()
    for index in range(count):
        if index in (count // 3, 2 * count // 3):
            cuda.cudaEventRecord(events[index // (2 * count // 3)], None)
        cuda.cudaMemsetAsync(None, 0, size, None)
    issued_s = time.monotonic()
    cuda.cudaDeviceSynchronize()
    ended_s, milliseconds = time.monotonic(), ctypes.c_float()
    cuda.cudaEventElapsedTime(ctypes.byref(milliseconds), *events)
    processor_ms = 1e3 * (time.process_time() - processor_s)
    host_ms, issued_ms = 1e3 * (ended_s - began_s), 1e3 * (issued_s - began_s)
    found = {"host_ms": host_ms, "issued_ms": issued_ms, "processor_ms": processor_ms}
    print(json.dumps(found | {"event_ms": milliseconds.value}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
