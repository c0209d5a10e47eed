"""Pieces of a challenge made again: `python -m cotenant.bench.replay MAIN REQUEST REPLAYS`, which a buyer starts."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cotenant.bench.arguments import declared, parse
from cotenant.bench.contract import Benchmark
from cotenant.bench.loop import Loop
from cotenant.bench.pieces import Pieces
from cotenant.bench.run import Run
from cotenant.challenge.replay import ReplayRequest
from cotenant.challenge.transcript import Replay
from cotenant.errors import EXIT_PASSED, CotenantError


def main(argv: Sequence[str]) -> int:
    """Make the pieces of a request, and write them. Returns 0, 1 or 2."""
    task, request_file, replays_file = map(Path, argv)
    try:
        request = msgspec.msgpack.decode(request_file.read_bytes(), type=ReplayRequest)
        replays_file.write_bytes(msgspec.msgpack.encode(replays(benchmark_in(task), request)))
    except CotenantError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return EXIT_PASSED


def benchmark_in(task: Path) -> type[Benchmark]:
    """Return the benchmark of a file. Raises CotenantError where there is none."""
    sys.path.insert(0, str(task.parent))
    spec = importlib.util.spec_from_file_location("replayed_task", task)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["replayed_task"] = module
    spec.loader.exec_module(module)
    classes = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    own = [each for each in classes if issubclass(each, Benchmark)]
    if not own:
        raise CotenantError(f"There is no benchmark in {task}.")
    return own[-1]


def replays(cls: type[Benchmark], request: ReplayRequest) -> list[Replay]:
    """Make the pieces again, each from the saved state. Raises CotenantError for words that it does not take.

    A vendor's words open no file here: paths are dropped, but for those without which the work would be other work.
    """
    parsed = parse(cls, request.words)
    paths = [name for name, (kind, _) in declared(cls).items() if Path in (kind, *getattr(kind, "__args__", ()))]
    named = [name for name in paths if name != "report" and parsed.values[name] is not None]
    if named:
        raise CotenantError(f"--{named[0]} names a path, and a replay opens no file.")
    benchmark = cls(**parsed.values | {"report": None, "seed": request.seed, "deterministic": True})
    run = Run(benchmark)
    loop = Loop(benchmark, run)
    loop.warm_up()
    pieces = Pieces(run, loop)
    return [
        Replay(
            tenant=request.tenant,
            index=index,
            state=pieces.state,
            items=piece.observation.items,
            losses=piece.losses,
            weights=piece.weights,
            software=pieces.software(),
        )
        for index, nonce in sorted(request.nonces.items())
        for piece in [pieces.make(nonce, request.number)]
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
