"""A benchmark alone and as a tenant of a scripted runner: what it prints, records and says where it cannot go on."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch
from torch._utils import ExceptionWrapper
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bench.runner import Runner
from bench.small import Small
from cotenant.bench import MissingDataError, Run, UnsupportedError, session
from cotenant.bench.chrono import Observation
from cotenant.bench.facts import Losses
from cotenant.bench.outcome import outcome_of
from cotenant.bench.session import argument_table, observation_line, record_block
from cotenant.errors import CotenantError
from cotenant.protocol.client import Rendezvous
from cotenant.protocol.messages import SOCKET_VARIABLE, TENANT_VARIABLE
from cotenant.results.schema import record_schema


def read(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    jsonschema.validate(record, record_schema())
    return record


def test_the_record_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "mine.json"
    assert session.main(Small, ["-b", "8", "--report", str(path), "--seed", "7"]) == 0
    record = read(path)
    assert (record["batch_size"], record["seed"], record["precision"]) == (8, 7, "fp32")
    assert (record["suite"], record["name"], record["outcome"], record["unit"]) == (
        "alone",
        "small",
        "completed",
        "row",
    )
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


def test_the_record_goes_into_a_directory(tmp_path: Path) -> None:
    assert session.main(Small, ["--report", str(tmp_path / "output")]) == 0
    (path,) = (tmp_path / "output").glob("*.json")
    assert path.name.startswith("alone.small.R0.D0.2")
    assert read(path)["completed"] is True


def test_nothing_is_written_without_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert session.main(Small, ["--repeat", "1"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_an_impossible_report_is_told_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert session.main(Small, ["--report", str(tmp_path / "file" / "below")]) == 2
    shown = capsys.readouterr()
    assert "Nothing can be written to" in shown.err
    assert "Traceback" not in shown.err
    assert "ETA" not in shown.out


def test_going_without_an_accelerator_is_said_once_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert session.main(Small, ["--cuda", "--repeat", "1", "--report", str(tmp_path / "r.json")]) == 0
    assert capsys.readouterr().err.count("No accelerator was found: it ran on the CPU.") == 1
    assert "no_accelerator" in {finding["rule"] for finding in read(tmp_path / "r.json")["findings"]}


def test_a_loss_that_is_not_finite_fails(tmp_path: Path) -> None:
    class Exploding(Small):
        def step(self, run: Run, batch: Any) -> torch.Tensor:
            return torch.tensor(float("inf"))

    assert session.main(Exploding, ["--report", str(tmp_path / "r.json")]) == 1
    record = read(tmp_path / "r.json")
    assert (record["outcome"], record["completed"]) == ("nan", False)
    assert record["message"] == "18 of 18 losses were not finite."
    assert record["batch_loss"] == [None] * 18


def test_no_loss_is_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Lossless(Small):
        def step(self, run: Run, batch: Any) -> None:
            return None

    assert session.main(Lossless, ["--report", str(tmp_path / "r.json")]) == 0
    record = read(tmp_path / "r.json")
    assert (record["losses_checked"], record["batch_loss"]) == (0, [])
    assert "no_loss" in {finding["rule"] for finding in record["findings"]}
    assert "Batch Loss     none\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "error, outcome, status, sentence",
    [
        (UnsupportedError("No.", "Use another."), "unsupported", 1, "No. Use another."),
        (MissingDataError("There is no set."), "missing_data", 1, "There is no set."),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
            "out_of_memory",
            1,
            "The host gave it no more memory. Try half the batch: --batch-size 2",
        ),
    ],
)
def test_a_failure_is_recorded_too(
    error: Exception, outcome: str, status: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Failing(Small):
        def step(self, run: Run, batch: Any) -> torch.Tensor | None:
            raise error

    assert session.main(Failing, ["--report", str(tmp_path)]) == status
    (path,) = tmp_path.glob("*.FAIL.*.json")
    record = read(path)
    assert (record["outcome"], record["message"]) == (outcome, sentence)
    assert record["batch_size"] == 4
    shown = capsys.readouterr().err
    assert f"Failing: {sentence}\n" in shown
    assert "Traceback" not in shown


def test_an_unforeseen_error_shows_where(capsys: pytest.CaptureFixture[str]) -> None:
    class Failing(Small):
        def build(self, run: Run) -> None:
            raise ZeroDivisionError("by zero")

    assert session.main(Failing, []) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert shown.endswith("Failing: ZeroDivisionError: by zero\n")


@pytest.mark.parametrize("argv", [["--nmuber", "3"], ["--batch-size", "0"], ["--fp16", "--half"]])
def test_wrong_usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert session.main(Small, argv) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("Small: ")
    assert "Traceback" not in shown.err
    assert shown.out == ""


def test_an_explicit_precision_wins_over_its_aliases(tmp_path: Path) -> None:
    words = [
        "--half",
        "--opt-level",
        "O1",
        "--precision",
        "bf16",
        "--repeat",
        "1",
        "--report",
        str(tmp_path / "r.json"),
    ]
    assert session.main(Small, words) == 0
    assert read(tmp_path / "r.json")["precision"] == "bf16"


def test_main_leaves_with_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    for argv, status in ((["--repeat", "1"], 0), (["--nmuber"], 2)):
        with pytest.raises(SystemExit) as caught:
            Small.main(argv)
        assert caught.value.code == status


Start = Callable[[Callable[[Runner], None]], Runner]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    opened: list[Rendezvous | None] = []
    connect = Rendezvous.from_environment

    def connect_here(*arguments: Any) -> Rendezvous | None:
        opened.append(connect(*arguments))
        return opened[-1]

    def begin(script: Callable[[Runner], None]) -> Runner:
        monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "s"))
        monkeypatch.setenv(TENANT_VARIABLE, "1")
        monkeypatch.setattr(Rendezvous, "from_environment", connect_here)
        return Runner(tmp_path / "s", script)

    yield begin
    for one in opened:
        if one is not None:
            one.close()


class Counted(Small):
    """Counts its steps, also those nobody measures."""

    steps = 0

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        type(self).steps += 1
        return super().step(run, batch)


def end(runner: Runner) -> None:
    runner.say("stop")
    runner.hear("record")


def test_the_whole_conversation(start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    t0_ns: list[int] = []

    def script(runner: Runner) -> None:
        runner.hear("ready")
        assert runner.kinds() == ["hello", "begin", "ready"]
        t0_ns.append(runner.go(number=2, repeat=4, delay_ns=100_000_000))
        runner.hear("done")
        at_done = Counted.steps
        while Counted.steps < at_done + 3:  # the cool-down goes on until STOP
            assert runner.kinds()[-1] == "done"
        end(runner)

    Counted.steps = 0
    runner = start(script)
    assert session.main(Counted, ["--repeat", "9", "-b", "5", "--report", str(tmp_path / "mine.json")]) == 0
    runner.join()
    assert runner.kinds() == ["hello", "begin", "ready", *["observation"] * 4, "done", "record"]
    hello, begin, ready, *observations, _, last = (message.fields for message in runner.heard)
    assert (hello["tenant"], hello["rank"], hello["world"]) == (1, 0, 1)
    assert (ready["number"], ready["repeat"], ready["skip"], len(ready["warm_up_ns"])) == (3, 9, 3, 3)
    assert [one["index"] for one in observations] == [0, 1, 2, 3]
    assert {one["items"] for one in observations} == {10}
    assert observations[0]["start_ns"] >= t0_ns[0]
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
        "optimizers": [{"name": "SGD", "package": "torch", "fused": False, "weights": "fp32", "stepped": "fp32"}],
        "device": "cpu",
        "world_size": 1,
        "flops_reducible": 0,
        "books_every": 1,
        "item_is_row": True,
        "updates": 8,
        "updates_credited": 8,
        "flops_per_step": 2 * 2 * 5 * 3 * 2,
        "flops_uncounted": [],
        "compiled": False,
        "threads": 0,
    }
    assert not (tmp_path / "mine.json").exists()
    assert capsys.readouterr().out.count("| ETA: ") == 4


def test_observations_end_when_the_runner_has_seen_enough(start: Start) -> None:
    """The one that it is in when it hears so is finished; the record names what was done."""

    class Told(Small):
        steps = 0

        def step(self, run: Run, batch: Any) -> torch.Tensor | None:
            Told.steps += 1
            if Told.steps == 3 + 2 * 3 + 1:  # the warm-up, and the first step of the fourth observation
                runner.say("enough")
            return super().step(run, batch)

    def script(runner: Runner) -> None:
        runner.hear("ready")
        runner.go(number=2, repeat=9)
        runner.hear("done")
        end(runner)

    runner = start(script)
    assert session.main(Told, []) == 0
    runner.join()
    assert runner.kinds()[3:] == [*["observation"] * 4, "done", "record"]
    record = runner.heard[-1].fields["record"]
    assert (record["number"], record["repeat"], record["losses_checked"]) == (2, 4, 8)


def test_losses_that_are_not_finite_are_told_and_the_runner_judges(start: Start) -> None:
    class Exploding(Small):
        def step(self, run: Run, batch: Any) -> torch.Tensor:
            return torch.tensor(float("nan"))

    def script(runner: Runner) -> None:
        runner.hear("ready")
        runner.go(2, 3)
        end(runner)

    runner = start(script)
    assert session.main(Exploding, []) == 0
    runner.join()
    record = runner.heard[-1].fields["record"]
    assert (record["losses_checked"], record["losses_non_finite"]) == (6, 6)
    assert record["batch_loss"] == [None] * 6
    assert record["epoch_loss"] == [None] * 3


def vanish_before_ready(runner: Runner) -> None:
    runner.hear("hello")


def vanish_before_go(runner: Runner) -> None:
    runner.hear("ready")


def vanish_unheard(runner: Runner) -> None:
    """Leave with bytes unread, as one that was killed does: the other end sees a reset."""
    runner.hear("ready")
    runner.go(1, 3)


def vanish_in_the_cool_down(runner: Runner) -> None:
    runner.hear("ready")
    runner.go(1, 3)
    runner.hear("done")


@pytest.mark.parametrize(
    "script",
    [vanish_before_ready, vanish_before_go, vanish_unheard, vanish_in_the_cool_down],
    ids=lambda one: one.__name__,
)
def test_a_runner_that_vanishes(
    start: Start, script: Callable[[Runner], None], capsys: pytest.CaptureFixture[str]
) -> None:
    runner = start(script)
    assert session.main(Small, ["--repeat", "3"]) == 1
    runner.join()
    error = capsys.readouterr().err
    assert error.startswith("Small: ")
    assert "Traceback" not in error


def test_no_runner_at_the_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "nobody"))
    monkeypatch.setenv(TENANT_VARIABLE, "0")
    assert session.main(Small, []) == 1
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    assert shown.out == ""


def hear_the_failure(runner: Runner) -> None:
    runner.hear("failed")


@pytest.mark.parametrize(
    "error, outcome, status",
    [
        (torch.OutOfMemoryError("CUDA out of memory."), "device_out_of_memory", 1),
        (MissingDataError("There is no set."), "missing_data", 1),
        (ModuleNotFoundError("No module named 'ale_py.roms'", name="ale_py.roms"), "missing_package", 1),
        (KeyboardInterrupt(), "interrupted", 130),
        (ZeroDivisionError("by zero"), "failed", 1),
    ],
)
def test_failures_are_told(start: Start, error: BaseException, outcome: str, status: int) -> None:
    class Failing(Small):
        def build(self, run: Run) -> None:
            raise error

    runner = start(hear_the_failure)
    assert session.main(Failing, []) == status
    runner.join()
    assert runner.kinds() == ["hello", "begin", "failed"]
    assert "batch_size" in runner.heard[1].fields["work"]["arguments"]
    assert runner.heard[-1].fields["outcome"] == outcome


def test_wrong_usage_is_told(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    runner = start(hear_the_failure)
    assert session.main(Small, ["--bach-size", "3"]) == 2
    runner.join()
    assert runner.heard[-1].fields == {
        "outcome": "failed",
        "message": "This benchmark knows no argument '--bach-size'. Did you mean '--batch-size'?",
    }
    assert "Traceback" not in capsys.readouterr().err


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


def test_a_run_prints_this_form_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert session.main(Small, ["--repeat", "3"]) == 0
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
    """A device without fp64, as some of Intel's are: it refuses to make such a tensor."""

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
        (
            RuntimeError("CUDA error: out of memory\nCompile with"),
            ("device_out_of_memory", f"CUDA error: out of memory {HALF}", 1),
        ),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"),
            ("device_out_of_memory", f"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate {HALF}", 1),
        ),
        (RuntimeError(ALLOCATOR), ("out_of_memory", f"The host gave it no more memory. {HALF}", 1)),
        (
            RuntimeError(f"Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback\n{ALLOCATOR}"),
            ("out_of_memory", f"The host gave it no more memory. {HALF}", 1),
        ),
        (MemoryError(), ("out_of_memory", f"The host gave it no more memory. {HALF}", 1)),
        (
            RuntimeError("could not create a primitive descriptor for the LSTM. Run workload with"),
            (
                "unsupported",
                "could not create a primitive descriptor for the LSTM. This processor lacks it: use --precision fp32.",
                1,
            ),
        ),
        (ValueError("odd"), ("failed", "ValueError: odd", 1)),
    ],
)
def test_every_error_has_its_outcome(error: BaseException, expected: tuple[str, str, int]) -> None:
    assert outcome_of(error, 64) == expected


def test_under_a_runner_the_flag_goes_behind_its_own() -> None:
    assert outcome_of(MemoryError(), 64, under_runner=True)[1].endswith("Try half the batch: -- --batch-size 32")


@pytest.mark.parametrize("batch_size", [None, 1])
def test_where_no_batch_can_be_halved(batch_size: int | None) -> None:
    assert outcome_of(MemoryError(), batch_size)[1].endswith("Give it less to hold, or more memory.")


def test_errors_of_a_loader_process_are_as_plain_as_ours() -> None:
    try:
        raise MissingDataError("x.jpg cannot be decoded.", "Remove it.")
    except MissingDataError:
        carried = ExceptionWrapper(where="in DataLoader worker process 0")
    with pytest.raises(MissingDataError, match="Original Traceback") as caught:
        carried.reraise()
    assert outcome_of(caught.value, 4) == ("missing_data", "x.jpg cannot be decoded. Remove it.", 1)
