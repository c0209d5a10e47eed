"""Forks a shim (enter.py) for every order: a fork takes a tenth of an interpreter's start, which is paid once per run.

Its arguments are SOCKET RUNNER. An order is a byte that comes with three descriptors: a file of the marshalled words,
command and environment of a shim, its channel, and its output. The answer is the shim's pid, or why there is none. The
shim is a child of the runner (CLONE_PARENT, clone(2)), which waits for it as for any of its own, and which it dies
with. Standard library only, and little of that, as enter.py says; no thread: nothing is forked in the midst of
something.
"""

import _ctypes
import _signal  # type: ignore[import-not-found] # no stub has it
import _socket
import marshal
import posix

import enter  # type: ignore[import-not-found] # its directory is the first of this process's path

CLONE_PARENT = 0x8000
CLONE = {"x86_64": 56, "aarch64": 220, "riscv64": 220, "loongarch64": 220, "ppc64le": 120}
"""The number of clone(2). clone3 has one number everywhere, but containers refuse it."""
DESCRIPTORS, DESCRIPTOR_BYTES = 3, 4


def main(argv: list[str]) -> int:
    socket, runner = map(int, argv)
    enter.end_with(runner)
    number = CLONE.get(posix.uname().machine)
    syscall = _ctypes.dlsym(_ctypes.dlopen(None, 0), "syscall")  # type: ignore[arg-type] # None is this very process
    peer = _socket.socket(fileno=socket)
    while descriptors := _order(peer):
        if number is None:
            peer.send(f"clone(2) has no known number on {posix.uname().machine}".encode())
            continue
        pid = _ctypes.call_function(syscall, (number, CLONE_PARENT | _signal.SIGCHLD, 0, 0, 0, 0))
        if pid == 0:
            _become_shim(peer, *descriptors)
        for descriptor in descriptors:
            posix.close(descriptor)
        peer.send(str(pid).encode() if pid > 0 else b"the kernel refuses another process")
    return 0


def _order(peer: _socket.socket) -> list[int]:
    """Return the descriptors of the next order; none where the runner has closed its end."""
    room = _socket.CMSG_SPACE(DESCRIPTORS * DESCRIPTOR_BYTES)
    word, ancillary, _, _ = peer.recvmsg(1, room, _socket.MSG_CMSG_CLOEXEC)
    return list(memoryview(ancillary[0][2]).cast("i")) if word else []


def _become_shim(peer: _socket.socket, order: int, channel: int, output: int) -> None:
    """Never returns: what is forked ends here, whatever happens."""
    status = enter.NOT_ISOLATED
    try:
        peer.close()
        posix.setsid()
        for standard in (1, 2):
            posix.dup2(output, standard)
        words, command, environment = marshal.loads(posix.pread(order, posix.fstat(order).st_size, 0))
        status = enter.main([str(channel), *words], command, environment)
    finally:
        posix._exit(status)
