"""Enter a slice, prove it, wait for the word, and become the benchmark.

Run as `python -I -S enter.py CHANNEL RUNNER FREE|SET|CHECK PROCESSORS SHM PROCS_FILE... -- COMMAND...`. It writes
one line to the descriptor CHANNEL, `in` or an error, waits for a byte, and execs COMMAND, whose first word is a
path. There is no thread and no race: the benchmark is inside from its first instruction on.
Exit 125: could not isolate; 126, 127: could not execute. Standard library only, and little of it, since its start
delays every tenant.
"""

import ctypes
import os
import signal
import sys

NOT_ISOLATED, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127
SHM = "/dev/shm"
# From <linux/prctl.h>, <linux/sched.h> and <linux/mount.h>.
PR_SET_PDEATHSIG = 1
CLONE_NEWNS = 0x20000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x1, 0x2, 0x4, 0x8
MS_REMOUNT, MS_BIND, MS_REC, MS_SLAVE = 0x20, 0x1000, 0x4000, 0x80000


def main(argv: list[str]) -> int:
    channel, runner, mode, processors, shm = int(argv[0]), int(argv[1]), argv[2], argv[3], argv[4]
    separator = argv.index("--")
    procs_files, command = argv[5:separator], argv[separator + 1 :]
    try:
        end_with(runner)
        for path in procs_files:
            join(path)
        bind(mode, {int(number) for number in processors.split(",") if number})
        if shm != "0":
            own_shm(shm)
            if procs_files:
                close_cgroups()
    except (OSError, ValueError) as error:
        tell(channel, str(error))
        return NOT_ISOLATED
    if not (tell(channel, "in") and is_released(channel)):
        return NOT_ISOLATED
    return become(command, channel)


def end_with(runner: int) -> None:
    """Have the kernel kill us with the runner, which may be gone already."""
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != runner:
        raise OSError("the runner is gone")


def join(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY)
        try:
            os.write(descriptor, b"0")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise OSError(f"{path} cannot be entered: {error.strerror}") from None


def bind(mode: str, planned: set[int]) -> None:
    if mode == "FREE":
        return
    if mode == "SET":
        try:
            os.sched_setaffinity(0, planned)
        except OSError as error:
            raise OSError(f"processors {sorted(planned)} cannot be had: {error.strerror}") from None
    actual = os.sched_getaffinity(0)
    if actual != planned:
        raise OSError(f"planned on processors {sorted(planned)}, but finds itself on {sorted(actual)}")


def own_shm(shm: str) -> None:
    """Give this process and its children an empty /dev/shm of this many bytes, which goes with the last of them.

    The host sees no mounts of our mount namespace; the host's later mounts, for one by its automounter, still arrive
    here (mount_namespaces(7): a slave).
    """
    call("unshare", CLONE_NEWNS)
    call("mount", None, b"/", None, MS_REC | MS_SLAVE, None)
    call("mount", b"tmpfs", SHM.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, f"mode=1777,size={shm}".encode())


def close_cgroups() -> None:
    """Mount cgroups read-only in our mount namespace, so that a tenant cannot change its slice's limits.

    Root can undo it; the runner checks again at the end.
    """
    with os.fdopen(os.open("/proc/self/mountinfo", os.O_RDONLY), "rb") as file:
        mounted = [line.partition(b" - ")[::2] for line in file]
    for place, system in mounted:
        if system.startswith(b"cgroup"):
            flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC
            try:  # noqa: SIM105 # contextlib would take its time to import.
                call("mount", None, place.split(b" ")[4], None, flags, None)
            except OSError:  # A user namespace may not: then changes are only detected.
                pass


def call(name: str, *arguments: object) -> None:
    """Call a function of the C library. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    # ctypes passes an untyped number as an int, but mount(2) takes an unsigned long.
    values = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    if libc[name](*values) != 0:
        raise OSError(f"{name} is refused: {os.strerror(ctypes.get_errno())}")


def tell(channel: int, line: str) -> bool:
    """Write a line to the runner; return whether it listens. If not, the exit status tells the same."""
    try:
        os.write(channel, f"{line}\n".encode())
    except OSError:
        return False
    return True


def is_released(channel: int) -> bool:
    try:
        return os.read(channel, 1) != b""
    except OSError:  # A runner that ends without having read our word resets the channel.
        return False


def become(command: list[str], channel: int) -> int:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them, and exec would keep that.
    os.set_inheritable(channel, False)
    # The environment that we were given: in the C locale Python adds LC_CTYPE to its own (PEP 538).
    with os.fdopen(os.open("/proc/self/environ", os.O_RDONLY), "rb") as file:
        variables = file.read().split(b"\0")
    environment = dict(variable.split(b"=", 1) for variable in variables if b"=" in variable)
    try:
        os.execve(command[0], command, environment)
    except OSError as error:
        tell(channel, f"{error.strerror}")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
