"""The shim: enter a slice, prove it, wait for the word, and become the benchmark.

Run as `python -I -S enter.py SOCKET RUNNER SET|CHECK|FREE PROCESSORS PROCS_FILE... -- COMMAND...`. It says one line on
the descriptor SOCKET, `in` or what went wrong, and execs after a byte has come back. No thread, no race: the
benchmark is inside from its first instruction, and it never runs outside. Exit 125: could not isolate; 126, 127: could
not execute. Nothing but the standard library is imported, and little of that: this runs once per tenant and launch.
"""

import ctypes
import os
import signal
import sys

NOT_ISOLATED, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127
PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    split = argv.index("--")
    socket, runner, mode, processors, *procs_files = argv[:split]
    command, channel = argv[split + 1 :], int(socket)
    os.set_inheritable(channel, False)
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(runner):
            raise OSError("the runner is gone")
        for path in procs_files:
            _join(path)
        _bind(mode, {int(one) for one in processors.split(",") if one})
    except OSError as error:
        os.write(channel, f"{error}\n".encode())
        return NOT_ISOLATED
    os.write(channel, b"in\n")
    if not os.read(channel, 1):
        return NOT_ISOLATED
    return _become(command, channel)


def _join(path: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, b"0")
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), path) from None
    finally:
        os.close(descriptor)


def _bind(mode: str, planned: set[int]) -> None:
    if mode == "FREE":
        return
    if mode == "SET":
        os.sched_setaffinity(0, planned)
    actual = os.sched_getaffinity(0)
    if actual != planned:
        raise OSError(f"planned on processors {sorted(planned)}, but finds itself on {sorted(actual)}")


def _become(command: list[str], channel: int) -> int:
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(channel, f"{error.strerror}\n".encode())
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
