"""The shim: enter a slice, prove it, wait for the word, and become the benchmark.

Its arguments are SOCKET RUNNER SET|CHECK|FREE PROCESSORS PROCS_FILE..., and a command with its environment: it says one
line on the descriptor SOCKET, `in` or what went wrong, and execs after a byte has come back. The first word of the
command is a path. No thread, no race: the benchmark is inside from its first instruction, and it never runs outside.
Exit 125: could not isolate; 126, 127: could not execute. forkserver.py forks it. Nothing but the standard library is
imported, and little of that: `ctypes`, `os` and `signal` would take as long to import as all the rest takes, and every
page is one to copy; what they are made of does not.
"""

import _ctypes
import _signal  # type: ignore[import-not-found] # no stub has it
import posix

NOT_ISOLATED, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127
PR_SET_PDEATHSIG = 1


def main(argv: list[str], command: list[bytes], environment: dict[bytes, bytes]) -> int:
    socket, runner, mode, processors, *procs_files = argv
    channel = int(socket)
    try:
        end_with(int(runner))
        for path in procs_files:
            _join(path)
        _bind(mode, {int(one) for one in processors.split(",") if one})
    except (OSError, ValueError) as error:
        _say(channel, str(error))
        return NOT_ISOLATED
    if not (_say(channel, "in") and _released(channel)):
        return NOT_ISOLATED
    return _become(command, environment, channel)


def end_with(runner: int) -> None:
    """Have the kernel kill us with the runner, which may be gone before the kernel knows."""
    libc = _ctypes.dlopen(None, 0)  # type: ignore[arg-type] # None is this very process
    if _ctypes.call_function(_ctypes.dlsym(libc, "prctl"), (PR_SET_PDEATHSIG, _signal.SIGKILL)):
        raise OSError("the kernel does not end a process with its parent")
    if posix.getppid() != runner:
        raise OSError("the runner is gone")


def _join(path: str) -> None:
    try:
        descriptor = posix.open(path, posix.O_WRONLY)
        try:
            posix.write(descriptor, b"0")
        finally:
            posix.close(descriptor)
    except OSError as error:
        raise OSError(f"{path} cannot be entered: {error.strerror}") from None


def _bind(mode: str, planned: set[int]) -> None:
    if mode == "FREE":
        return
    if mode == "SET":
        try:
            posix.sched_setaffinity(0, planned)
        except OSError as error:
            raise OSError(f"processors {sorted(planned)} cannot be had: {error.strerror}") from None
    actual = posix.sched_getaffinity(0)
    if actual != planned:
        raise OSError(f"planned on processors {sorted(planned)}, but finds itself on {sorted(actual)}")


def _say(channel: int, line: str) -> bool:
    """Return whether anybody listens; where nobody does, the exit status says the same."""
    try:
        posix.write(channel, f"{line}\n".encode())
    except OSError:
        return False
    return True


def _released(channel: int) -> bool:
    try:
        return posix.read(channel, 1) != b""
    except OSError:  # A runner that ends without having read our word resets the channel.
        return False


def _become(command: list[bytes], environment: dict[bytes, bytes], channel: int) -> int:
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)  # Python ignores them, and an ignored signal stays so across exec.
    try:
        posix.execve(command[0], command, environment)
    except ValueError as error:
        _say(channel, str(error))
        return NOT_EXECUTABLE
    except OSError as error:
        _say(channel, f"{error.strerror}")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
