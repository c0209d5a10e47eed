"""A benchmark alone and as a tenant of a scripted runner: its output, its record, and its messages when it fails."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from torch._utils import ExceptionWrapper
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bench.runner import Runner
from bench.small import Small, read, record_of
from cotenant.bench import MissingDataError, Run, UnsupportedError, session
from cotenant.bench.chrono import Observation
from cotenant.bench.device import Device
from cotenant.bench.facts import Losses
from cotenant.bench.outcome import outcome_of
from cotenant.bench.session import argument_table, observation_line, record_block
from cotenant.errors import CotenantError
from cotenant.machine.wheels import DeviceHost, wheel_for
from cotenant.protocol.client import Rendezvous
from cotenant.protocol.messages import SEND_EVERY_NS, SOCKET_VARIABLE, TENANT_VARIABLE
from patience import HANG_S
from tenants.suites import ROOT


def test_the_record_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "mine.json"
    assert session.run_benchmark(Small, ["-b", "8", "--report", str(path), "--seed", "7"]) == 0
    record = read(path)
    assert (record["batch_size"], record["seed"], record["precision"]) == (8, 7, "fp32")
    told = [record[name] for name in ("suite", "name", "outcome", "unit")]
    assert told == ["alone", "small", "completed", "row"]
    assert len(record["observations"]) == 6
    assert {one["items"] for one in record["observations"]} == {24}
    assert record["skip"] == 2
    assert record["train"]["count"] == 4
    assert record["train_item"]["avg"] == pytest.approx(24 / record["train"]["avg"])
    assert record["losses_checked"] == 18
    assert record["devices"] == 0
    assert record["observed"]["dtype"] == "fp32"
    assert record["isolation"]["backend"] == "none"
    assert record["batch_loss"][-1] < record["batch_loss"][0]
    shown = capsys.readouterr()
    assert json.loads(shown.out.split("-" * 80)[-2]) == record
    assert shown.err == f"Record: {path}\n"


def test_the_record_goes_into_a_directory_or_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert session.run_benchmark(Small, ["--repeat", "1"]) == 0
    assert list(tmp_path.iterdir()) == []
    # An explicit precision wins over its aliases.
    words = "--half --opt-level O1 --precision bf16 --repeat 1 --report output"
    assert session.run_benchmark(Small, words.split()) == 0
    (path,) = (tmp_path / "output").glob("*.json")
    assert path.name.startswith("alone.small.R0.D0.2")
    assert (read(path)["completed"], read(path)["precision"]) == (True, "bf16")


def test_other_suites_words_are_said_in_ours(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Small, "aliases", {"--num-iters": "--repeat"})
    monkeypatch.setattr(Small, "ignored", {"--old": 0})
    assert session.run_benchmark(Small, ["--num-iters", "2", "--old"]) == 0
    shown = capsys.readouterr()
    assert shown.err.splitlines() == ["--num-iters is --repeat here.", "--old is accepted, without effect."]
    assert shown.out.startswith("-" * 80)
    assert shown.out.count("Batch Loss") == 2


def test_an_impossible_report_is_told_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert session.run_benchmark(Small, ["--report", str(tmp_path / "file" / "below")]) == 2
    shown = capsys.readouterr()
    assert "Nothing can be written to" in shown.err
    assert "Traceback" not in shown.err
    assert "ETA" not in shown.out


def test_going_without_an_accelerator_is_said_once_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    record = record_of(Small, tmp_path, "--cuda --repeat 1")
    assert capsys.readouterr().err.count("No accelerator was found: it ran on the CPU.") == 1
    assert "benchmark:no_accelerator" in {finding["rule"] for finding in record["findings"]}


def test_another_kernel_is_refused_before_the_flags(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(sysname="Darwin", nodename="book", machine="arm64"))
    assert session.run_benchmark(Small, []) == 2
    assert capsys.readouterr().err == (
        "Small: Measurements are made on Linux, and this is Darwin. Start it on a host with Linux.\n"
    )


def test_a_loss_that_is_not_finite_fails(tmp_path: Path) -> None:
    class Exploding(Small):
        def step(self, run: Run, batch: Any) -> torch.Tensor:
            return torch.tensor(float("inf"))

    record = record_of(Exploding, tmp_path, status=1)
    assert (record["outcome"], record["completed"]) == ("nan", False)
    assert record["message"] == "18 of 18 losses were not finite."
    assert record["batch_loss"] == [None] * 18


def test_no_loss_is_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Lossless(Small):
        def step(self, run: Run, batch: Any) -> None:
            return None

    record = record_of(Lossless, tmp_path)
    assert (record["losses_checked"], record["batch_loss"]) == (0, [])
    assert "no_loss" in {finding["rule"] for finding in record["findings"]}
    assert "Batch Loss     none\n" in capsys.readouterr().out


def raising(error: BaseException) -> Callable[..., None]:
    def method(*_: Any) -> None:
        raise error

    return method


def test_a_failure_is_recorded_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memory = "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"
    for error, outcome, sentence in (
        (RuntimeError(memory), "out_of_memory", "The host gave it no more memory. Try half the batch: --batch-size 2"),
        (ZeroDivisionError("by zero"), "failed", "ZeroDivisionError: by zero"),
        # As a DataLoader raises it whose worker has died: no word of the runner's.
        (ConnectionResetError("by peer"), "failed", "ConnectionResetError: by peer"),
    ):
        failing = type("Failing", (Small,), {"step": raising(error)})
        assert session.run_benchmark(failing, ["--report", str(tmp_path / sentence[:8])]) == 1
        (path,) = (tmp_path / sentence[:8]).glob("*.FAIL.*.json")
        record = read(path)
        assert (record["outcome"], record["message"], record["batch_size"]) == (outcome, sentence, 4)
        shown = capsys.readouterr().err
        assert f"Failing: {sentence}\n" in shown
        # Only an unforeseen error shows its traceback.
        assert ("Traceback" in shown) == (outcome == "failed")


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["--nmuber", "3"], ["--batch-size", "0"], ["--fp16", "--half"]):
        with pytest.raises(SystemExit, match="2"):
            session.main(Small, argv)
        shown = capsys.readouterr()
        assert shown.err.startswith("Small: ")
        assert "Traceback" not in shown.err
        assert shown.out == ""


HELD_BY_A_THREAD = """
import atexit, threading
from bench.small import Small
from cotenant.bench import main
atexit.register(print, "left")
threading.Thread(target=threading.Event().wait).start()
main(Small, [])
"""


def test_a_tenant_leaves_without_closing_the_interpreter(tmp_path: Path) -> None:
    nobody = {SOCKET_VARIABLE: str(tmp_path / "nobody"), TENANT_VARIABLE: "0"}
    nobody |= {"PYTHONPATH": f"{ROOT / 'common'}:{ROOT / 'tests'}"}
    line = [sys.executable, "-c", HELD_BY_A_THREAD]
    ended = subprocess.run(line, env=os.environ | nobody, capture_output=True, text=True, timeout=HANG_S)
    assert (ended.returncode, ended.stdout) == (1, "left\n"), ended.stderr


Talk = Callable[..., Runner]


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Talk]:
    """Return a function that runs a benchmark, which ends with `status`, beside a runner with a script."""
    opened: list[Rendezvous | None] = []
    connect = Rendezvous.from_environment

    def connect_here(*arguments: Any) -> Rendezvous | None:
        opened.append(connect(*arguments))
        return opened[-1]

    def talked(script: Callable[[Runner], None], cls: type[Small], *words: str, status: int = 0) -> Runner:
        monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "s"))
        monkeypatch.setenv(TENANT_VARIABLE, "1")
        monkeypatch.setattr(Rendezvous, "from_environment", connect_here)
        runner = Runner(tmp_path / "s", script)
        assert session.run_benchmark(cls, [*words]) == status
        runner.join()
        (tmp_path / "s").unlink()
        return runner

    yield talked
    for one in opened:
        if one is not None:
            one.close()


class Counted(Small):
    """Counts all its steps, also the unmeasured ones."""

    steps = 0

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        type(self).steps += 1
        return super().step(run, batch)


def end(runner: Runner) -> None:
    runner.say("stop")
    runner.hear("record")


def test_algorithms_are_tried_in_a_turn_before_the_warm_up(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "tries_algorithms", True)
    forgotten: list[int] = []
    monkeypatch.setattr(Device, "forget_memory", lambda self: forgotten.append(Counted.steps))

    def script(runner: Runner) -> None:
        runner.hear("turn")
        assert Counted.steps == 0
        runner.say("turn")
        runner.hear("turned")
        assert Counted.steps == 1
        runner.say("turned")
        runner.hear("ready")
        runner.go(number=1, repeat=1)
        runner.hear("done")
        end(runner)

    Counted.steps = 0
    runner = talk(script, Counted)
    assert runner.kinds()[:5] == ["hello", "begin", "turn", "turned", "ready"]
    assert forgotten == [1]


def test_the_whole_conversation(talk: Talk, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    t0_ns: list[int] = []

    def script(runner: Runner) -> None:
        runner.hear("ready")
        assert runner.kinds() == ["hello", "begin", "ready"]
        t0_ns.append(runner.go(number=2, repeat=4, delay_ns=100_000_000, settle_ns=50_000_000))
        runner.hear("done")
        at_done = Counted.steps
        while Counted.steps < at_done + 3:  # the cool-down goes on until STOP
            assert runner.kinds()[-1] == "done"
        end(runner)

    Counted.steps = 0
    runner = talk(script, Counted, "--repeat", "9", "-b", "5", "--report", str(tmp_path / "mine.json"))
    assert runner.kinds() == ["hello", "begin", "ready", *["observation"] * 4, "done", "record"]
    hello, begin, ready, *observations, _, last = (message.fields for message in runner.heard)
    assert (hello["tenant"], hello["rank"], hello["world"]) == (1, 0, 1)
    assert (ready["number"], ready["repeat"], ready["skip"], len(ready["warm_up_ns"])) == (3, 9, 3, 3)
    assert [one["index"] for one in observations] == [0, 1, 2, 3]
    assert {one["items"] for one in observations} == {10}
    assert observations[0]["start_ns"] >= t0_ns[0] + 50_000_000
    for one, following in itertools.pairwise(observations):
        assert one["start_ns"] < one["end_ns"] <= following["start_ns"]
        assert one["data_wait_ns"] == 0  # Its batch is resident.
        assert one["event_ns"] is None
    record = last["record"]
    assert (record["number"], record["repeat"], begin["work"]["arguments"]["repeat"]) == (2, 4, 9)
    assert record["load_end_ns"] > observations[-1]["end_ns"]
    assert (record["losses_checked"], record["losses_non_finite"]) == (8, 0)
    assert (len(record["batch_loss"]), len(record["epoch_loss"])) == (8, 4)
    assert record["observed"] | {"threads": 0} == {
        "dtype": "fp32",
        "products": {"fp32": ["addmm", "mm"]},
        "optimizers": [
            {"name": "SGD", "package": "torch", "fused": False, "weights": "fp32", "stepped": "fp32", "parameters": 8}
        ],
        "device": "cpu",
        "world_size": 1,
        "flops_reducible": 0,
        "books_every": 1,
        "item_is_row": True,
        "updates": 8,
        "updates_credited": 8,
        "flops_per_step": 2 * 2 * 5 * 3 * 2,
        "flops_closed": None,
        "flops_uncounted": [],
        "compiled": False,
        "threads": 0,
        "rows": 5,
        "items_per_row": 1.0,
        "size_per_item": {"warm_up": 3.0, "observed": 3.0, "batches": 3},
        "audit": {
            "steps": 1,
            "even": True,
            "uneven": False,
            "after": [4],
            "cost_ns": [record["observed"]["audit"]["cost_ns"][0]],
            "eager": False,
            "differences": [],
        },
    }
    assert not (tmp_path / "mine.json").exists()
    assert capsys.readouterr().out.count("| ETA: ") == 4


def test_an_early_end_takes_effect_after_the_observation(talk: Talk) -> None:
    class Told(Small):
        runner: ClassVar[Runner]
        steps = 0

        def step(self, run: Run, batch: Any) -> torch.Tensor | None:
            Told.steps += 1
            # The warm-up, and the first step of the fourth observation.
            if Told.steps == 3 + 2 * 3 + 1:
                Told.runner.say("enough")
                # The tenant reads messages only when it sends observations.
                time.sleep(SEND_EVERY_NS / 1e9)
            return super().step(run, batch)

    def script(runner: Runner) -> None:
        Told.runner = runner
        runner.hear("ready")
        runner.go(number=2, repeat=5)
        runner.hear("done")
        end(runner)

    runner = talk(script, Told)
    assert runner.kinds()[3:] == [*["observation"] * 4, "done", "record"]
    record = runner.heard[-1].fields["record"]
    assert (record["number"], record["repeat"], record["losses_checked"]) == (2, 4, 8)
    observed = record["observed"]
    assert (observed["updates"], observed["audit"]["after"], observed["audit"]["differences"]) == (8, [4], [])


def test_a_runner_that_vanishes(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    """It goes before READY, before GO, with bytes unread as a killed one (which resets the connection), at the end."""

    for heard, goes in ((("hello",), False), (("ready",), False), (("ready",), True), (("ready", "done"), True)):

        def script(runner: Runner, heard: tuple[str, ...] = heard, goes: bool = goes) -> None:
            for kind in heard:
                runner.hear(kind)
                if kind == "ready" and goes:
                    runner.go(1, 3)

        talk(script, Small, "--repeat", "3", status=1)
        error = capsys.readouterr().err
        assert error.startswith("Small: ")
        assert "Traceback" not in error
    assert session.run_benchmark(Small, []) == 1  # No runner listens any more.
    assert "Traceback" not in capsys.readouterr().err


def test_failures_are_told(talk: Talk) -> None:
    failing = type("Failing", (Small,), {"build": raising(KeyboardInterrupt())})
    for cls, argv, status, kinds, words in (
        (failing, [], 130, ["hello", "begin", "failed"], ("interrupted", "Interrupted.")),
        (Small, ["--bach-size", "3"], 2, ["hello", "failed"], ("failed", "Did you mean '--batch-size'?")),
    ):
        runner = talk(lambda runner: runner.hear("failed") and None, cls, *argv, status=status)
        assert runner.kinds() == kinds
        told = runner.heard[-1].fields
        assert (told["outcome"], told["message"].endswith(words[1])) == (words[0], True)


GOLDEN = Path(__file__).parent / "golden" / "printed.txt"


def test_printed_form() -> None:
    arguments = {
        "batch_size": 32,
        "arch": "resnet18",
        "layers": (256, 128),
        "report": None,
        "a_name_longer_than_thirty_columns": 1,
    }
    lines = [
        argument_table(arguments),
        observation_line(0, 15, 52.2, 7.03456),
        observation_line(1, 15, 48.6, None),
        observation_line(13, 15, 3.6, 25123.40625),
        observation_line(14, 15, 0.0, float("nan")),
        record_block({"batch_size": 32, "batch_loss": [7.5, None]}),
    ]
    assert "\n".join(lines) + "\n" == GOLDEN.read_text()
    assert "hf_token: (hidden)\n" in argument_table({"hf_token": "abc"})


def test_a_run_prints_this_form_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert session.run_benchmark(Small, ["--repeat", "3"]) == 0
    rule = "-" * 80
    first, table, observations, record, end = capsys.readouterr().out.split(rule + "\n")
    assert first == end == ""
    assert table.startswith(f"{'batch_size':>30}: 4\n")
    assert all(re.fullmatch(r" *\w+: \S.*", line) for line in table.splitlines())
    line = r"\[  {}/  3\] \| ETA:   0\.\d\d min \| Batch Loss [ \d]{{2}}\d\.\d{{4}}"
    shown = observations.splitlines()
    assert len(shown) == 3
    assert all(re.fullmatch(line.format(index), text) for index, text in enumerate(shown))
    assert record.startswith('{\n "batch_size": 4,\n')


class SinglePrecision(TorchDispatchMode):
    """Refuses to make fp64 tensors, as some of Intel's devices do."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if any(isinstance(one, torch.Tensor) and one.dtype == torch.float64 for one in tree_leaves(out)):
            raise RuntimeError("Required aspect fp64 is not supported on the device")
        return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_device_without_fp64_tells_its_losses(dtype: torch.dtype) -> None:
    kept = [torch.tensor(value, dtype=dtype) for value in (1.5, float("inf"), 0.25)]
    losses = Losses()
    with SinglePrecision():
        losses.take(Observation(0, 1, 3.0, 0, kept, None, True))
    assert losses.summary()["batch_loss"] == [1.5, None, 0.25]
    assert losses.summary()["losses_non_finite"] == 1


HALF = "Try half the batch: --batch-size 32"
ALLOCATOR = "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: 1 bytes"
NO_LSTM = "could not create a primitive descriptor for the LSTM"
DEVICE_FULL = {
    "CUDA error: out of memory\nCompile with": "CUDA error: out of memory",
    "NCCL error in: x.cpp:9, unhandled cuda error\nLast error:\nCuda failure 2 'out of memory'": (
        "Cuda failure 2 'out of memory'"
    ),
} | {
    said: said
    for said in (
        "CUDA driver error: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate",
        "FIND was unable to find an engine to execute this computation",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    )
}
HOST_FULL = (
    RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"),
    RuntimeError(ALLOCATOR),
    RuntimeError(f"Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback\n{ALLOCATOR}"),
    MemoryError(),
)


@pytest.mark.parametrize(
    "error, expected",
    [
        (UnsupportedError("No fp16.", "Use bf16."), ("unsupported", "No fp16. Use bf16.", 1)),
        (MissingDataError("No set.", "Make it."), ("missing_data", "No set. Make it.", 1)),
        (CotenantError("Wrong flag."), ("failed", "Wrong flag.", 2)),
        (
            ModuleNotFoundError("No module named 'gymnasium.x'", name="gymnasium.x"),
            ("missing_package", "The package 'gymnasium' is missing. pip install gymnasium", 1),
        ),
        (KeyboardInterrupt(), ("interrupted", "Interrupted.", 130)),
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nlong advice"),
            ("device_out_of_memory", f"CUDA out of memory. Tried to allocate 2 GiB. {HALF}", 1),
        ),
        *((RuntimeError(said), ("device_out_of_memory", f"{shown} {HALF}", 1)) for said, shown in DEVICE_FULL.items()),
        *((error, ("out_of_memory", f"The host gave it no more memory. {HALF}", 1)) for error in HOST_FULL),
        (
            RuntimeError(f"{NO_LSTM}. Run workload with"),
            ("unsupported", f"{NO_LSTM}. This processor lacks it: use --precision fp32.", 1),
        ),
        (ValueError("odd"), ("failed", "ValueError: odd", 1)),
    ],
)
def test_every_error_has_its_outcome(error: BaseException, expected: tuple[str, str, int]) -> None:
    assert outcome_of(error, 64) == expected


def test_no_kernels_for_a_device_name_the_build_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.bench.outcome.device_host", lambda: DeviceHost((70,), "580.65.06"))
    text = "CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be"
    name, message, status = outcome_of(RuntimeError(text))
    assert (name, status) == ("unsupported", 1)
    assert message.startswith("This torch (cu")
    assert f"holds no kernels for this device. {wheel_for(DeviceHost((70,))).command}: " in message


def test_which_batch_is_half() -> None:
    assert outcome_of(MemoryError(), 64, under_runner=True)[1].endswith("Try half the batch: -- --batch-size 32")
    for batch_size in (None, 1):
        assert outcome_of(MemoryError(), batch_size)[1].endswith("Give it less to hold, or more memory.")


def test_errors_of_a_loader_process_are_as_plain_as_ours() -> None:
    try:
        raise MissingDataError("x.jpg cannot be decoded.", "Remove it.")
    except MissingDataError:
        carried = ExceptionWrapper(where="in DataLoader worker process 0")
    with pytest.raises(MissingDataError, match="Original Traceback") as caught:
        carried.reraise()
    assert outcome_of(caught.value, 4) == ("missing_data", "x.jpg cannot be decoded. Remove it.", 1)
