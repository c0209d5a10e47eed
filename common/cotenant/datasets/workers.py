"""Makes the files of a set on several processors.

Each worker is a fresh interpreter at the end of a pipe. It needs no shared memory, and it leaves as soon as
the other end is gone: also when its parent was killed.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from cotenant.datasets.files import write_file
from cotenant.datasets.maker import Content, Part
from cotenant.errors import CotenantError

_Result = int | OSError | ImportError


def make_parts(
    parts: Iterable[Part],
    folder: Path,
    content: Content,
    seed: int,
    processes: int,
    made: Callable[[int], None],
) -> None:
    """Write every part below `folder` (its folders exist), and call `made` with each one's bytes.

    Raises OSError or ImportError as a worker met it, CotenantError where one died. No worker outlives it.
    """
    if processes == 1:
        for part in parts:
            made(write_file(folder / part.path, content(part, seed)))
        return
    waiting = iter(parts)
    workers: dict[Connection, SpawnProcess] = {}
    try:
        _start(workers, processes, (folder, content, seed))
        busy = [connection for connection in workers if _hand_out(connection, waiting)]
        while busy:
            for connection in wait(busy):
                assert isinstance(connection, Connection)
                made(_result(connection, workers[connection]))
                if not _hand_out(connection, waiting):
                    busy.remove(connection)
    finally:
        with _interrupts_held():
            for process in workers.values():
                process.kill()
            for process in workers.values():
                process.join()


def _start(workers: dict[Connection, SpawnProcess], processes: int, job: tuple[Path, Content, int]) -> None:
    """Start the workers deaf to Ctrl-C, which a terminal sends to them too: their parent ends them."""
    context = multiprocessing.get_context("spawn")
    # The tracker's own start would end the hold on interrupts.
    resource_tracker.ensure_running()
    with _interrupts_held():
        for _ in range(processes):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, *job), daemon=True)
            process.start()
            workers[ours] = process
            theirs.close()


def _hand_out(connection: Connection, waiting: Iterator[Part]) -> bool:
    """Give a worker its next part; False where none is left."""
    part = next(waiting, None)
    if part is None:
        return False
    # A dead worker is told of where its result is read.
    with suppress(BrokenPipeError):
        connection.send(part)
    return True


def _result(connection: Connection, process: SpawnProcess) -> int:
    try:
        result: _Result = connection.recv()
    except (EOFError, ConnectionResetError):
        process.join()
        killed = ": it was killed, as when memory runs out" if process.exitcode == -signal.SIGKILL else ""
        raise CotenantError(
            f"A worker ended with status {process.exitcode} before its file was complete{killed}.",
            "Start again, on fewer processors if memory is short (taskset -c 0): complete files are kept.",
        ) from None
    if isinstance(result, int):
        return result
    raise result


def _work(connection: Connection, folder: Path, content: Content, seed: int) -> None:
    """Make the parts that arrive until the parent is gone."""

    def while_parent_lives(pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            # The parent says nothing while a part is made: what can be read now is the end of the pipe.
            if connection.poll():
                raise EOFError
            yield piece

    def result_of(part: Part) -> _Result:
        try:
            return write_file(folder / part.path, while_parent_lives(content(part, seed)))
        except (OSError, ImportError) as error:
            return error

    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            connection.send(result_of(connection.recv()))


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the block; processes started in it never see one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
