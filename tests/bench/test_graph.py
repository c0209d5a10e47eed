"""A step that is recorded and replayed trains as the step itself does; steps that a graph cannot hold are refused."""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import Mock

import pytest
import torch
from torch import nn

from bench.small import Small, loop_of, record_of
from cotenant.bench import Run, UnsupportedError
from cotenant.bench.device import Device
from cotenant.bench.facts import arguments_of, tenant_facts
from cotenant.bench.graph import refuse
from cotenant.bench.loop import Loop
from cotenant.bench.outcome import outcome_of
from cotenant.bench.precision import Precision
from cotenant.results.identity import unique_id

CUDA = Device(torch.device("cuda", 0))


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Let a processor record: replaying does the work again and puts back the host's counts of updates.

    Unlike a device, it also does the work while it records. Returns a list in which the loop puts its run.
    """
    runs: list[Run] = []

    def recorded(device: Device, work: Callable[[], Any]) -> Any:
        value = work()

        def replay() -> None:
            precision = runs[0].precision
            counts = precision.updates, precision.stepped
            again = work()
            precision.updates, precision.stepped = counts
            if value is not None:
                value.copy_(again)

        return SimpleNamespace(graph=SimpleNamespace(replay=replay), value=value, memory=contextlib.nullcontext)

    monkeypatch.setattr(Device, "recorded", recorded)
    monkeypatch.setattr("cotenant.bench.loop.refuse", lambda run: runs.append(run))
    return runs


class Learning(Small):
    """Trains on new rows in every step, with an optimizer that counts its steps."""

    def build(self, run: Run) -> None:
        self.model = run.place(nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.0)))
        self.optimizer = run.adam(self.model.parameters(), lr=0.1)

    def batches(self, run: Run) -> Iterable[Any]:
        random = torch.Generator().manual_seed(7)
        return ([torch.randn(4, 3, generator=random), {"scale": 2.0}] for _ in itertools.count())

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        rows, more = batch
        return super().step(run, rows * more["scale"])

    def items(self, batch: Any) -> int:
        return len(batch[0])


def weights(benchmark: Any) -> torch.Tensor:
    return torch.cat([weight.detach().flatten() for weight in benchmark.model.parameters()])


def test_a_replayed_step_trains_on_its_own_batch_and_is_counted_as_the_step(recorder: list[Run]) -> None:
    plain = Learning()
    run = Run(plain)
    plain.build(run)
    rows = list(itertools.islice(plain.batches(run), 6))
    # The first batch is trained on once more while it is recorded.
    losses = [plain.step(run, batch) for batch in (rows[0], *rows)]
    expected = weights(plain)

    loop = Loop(benchmark := Learning(graph=True), replayed := Run(benchmark))
    loop.warm_up()
    assert loop.auditor.optimizers[0].param_groups[0]["capturable"]
    seen = loop.observe(3)
    assert torch.equal(weights(benchmark), expected)
    assert [loss.item() for loss in seen.losses] == [loss.item() for loss in losses[4:] if loss is not None]
    assert (loop.updates, loop.promised, replayed.updates) == (3, 3, 6)
    # An audit runs the step without the graph, and puts back the weights.
    loop.audit(1)
    assert torch.equal(weights(benchmark), expected)
    observed = tenant_facts(replayed, loop)["observed"]
    assert observed["graph"]
    assert (observed["audit"]["steps"], observed["audit"]["eager"], observed["audit"]["differences"]) == (1, True, [])
    ids = {unique_id("a", "b", arguments_of(one)) for one in (plain, benchmark)}
    assert len(ids) == 2
    named = arguments_of(plain)
    assert {named.pop("graph"), named["channels_last"]} == {False, None}
    assert unique_id("a", "b", named | {"channels_last": False}) in ids, "as it was before there were graphs"


class Remembered(Small):
    losses: ClassVar[list[weakref.ref[torch.Tensor]]] = []

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        loss = super().step(run, batch)
        self.losses.append(weakref.ref(loss))
        return loss


def test_no_step_before_holds_its_gradients_for_another_stream(
    recorder: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = Device.recorded
    alive: list[bool] = []

    def looked_at(device: Device, work: Callable[[], Any]) -> Any:
        alive.extend(loss() is not None for loss in Remembered.losses)
        return recorded(device, work)

    monkeypatch.setattr(Device, "recorded", looked_at)
    loop_of(Remembered(graph=True)).warm_up()
    assert alive == [False]


def test_a_resident_batch_is_copied_nowhere(recorder: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    loop = loop_of(Small(graph=True))
    monkeypatch.setattr(torch, "_foreach_copy_", None)
    loop.warm_up()
    first, second = loop.observe(2).losses
    assert first.data_ptr() != second.data_ptr()
    assert second < first


class Keeping(Small):
    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        self.last = super().step(run, batch)
        return self.last


class Slowing(Small):
    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        self.optimizer.param_groups[0]["lr"] *= 0.9
        return super().step(run, batch)


class Counting(Small):
    def build(self, run: Run) -> None:
        super().build(run)
        self.optimizer = torch.optim.Adagrad(self.model.parameters())


class Uneven(Small):
    def build(self, run: Run) -> None:
        super().build(run)
        run.uneven = True


class Shrinking(Small):
    def batches(self, run: Run) -> Iterator[Any]:
        return (torch.randn(rows, 3) for rows in (4, 1, 1))


@pytest.mark.parametrize(
    ("cls", "sentence"),
    [
        (Keeping, "Its steps keep last from one to the next"),
        (Slowing, "Its steps change an optimizer's settings"),
        (Counting, "Adagrad counts its steps on the host"),
        (Uneven, "Steps that differ in their work"),
        (Shrinking, "A batch has other shapes than the recorded one"),
    ],
)
def test_what_a_graph_would_lose_is_refused(cls: type[Small], sentence: str, recorder: list[Run]) -> None:
    loop = loop_of(cls(graph=True))
    with pytest.raises(UnsupportedError, match=sentence) as caught:
        loop.warm_up()
    assert str(caught.value).endswith("Leave --graph out.")


def test_a_step_that_cannot_be_recorded(recorder: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    refused = RuntimeError("operation not permitted when stream is capturing\nCUDA kernel errors")
    sentence = (
        "This step cannot be recorded in a CUDA graph: operation not permitted when stream is capturing. "
        "Leave --graph out."
    )
    full = torch.OutOfMemoryError("CUDA out of memory.")
    for error, expected in ((refused, ("unsupported", sentence)), (full, ("device_out_of_memory",))):
        monkeypatch.setattr(Device, "recorded", Mock(side_effect=error))
        loop = loop_of(Small(graph=True))
        with pytest.raises((UnsupportedError, torch.OutOfMemoryError)) as caught:
            loop.warm_up()
        assert outcome_of(caught.value)[: len(expected)] == expected


class Acting(Small):
    acts: ClassVar[bool] = True


def test_a_processor_records_nothing_nor_do_several_ranks_nor_who_acts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert record_of(Small, tmp_path, "--graph", status=1)["outcome"] == "unsupported"
    sentence = "--graph needs a device of CUDA or ROCm, and this run is on cpu. Leave --graph out."
    assert sentence in capsys.readouterr().err
    ranks: Any = SimpleNamespace(device=CUDA.torch_device, world=SimpleNamespace(size=2))
    with pytest.raises(UnsupportedError, match="the step of one process, and here are 2"):
        refuse(ranks)
    with pytest.raises(UnsupportedError, match="acts in an environment"):
        Acting(graph=True)


class Convolving(Small):
    fast_channels_last = True

    def build(self, run: Run) -> None:
        self.model = run.place(nn.Conv2d(3, 2, 3))


@pytest.mark.parametrize(
    ("asked", "name", "where", "chosen"),
    [
        (None, "bf16", CUDA, True),
        (None, "tf32", CUDA, True),
        (None, "fp32", CUDA, False),
        (None, "bf16", Device(torch.device("cpu")), False),
        (True, "fp32", Device(torch.device("cpu")), True),
        (False, "bf16", CUDA, False),
    ],
)
def test_convolutions_of_tensor_cores_are_channels_last_unless_told(
    asked: bool | None, name: str, where: Device, chosen: bool
) -> None:
    benchmark = Convolving(channels_last=asked)
    run = Run(benchmark)
    run.chosen, run.precision = where, Precision(name)
    run.channels_last = run._wants_channels_last()
    benchmark.build(run)
    last = benchmark.model.weight.is_contiguous(memory_format=torch.channels_last)
    assert (last, run.observed.get("memory_format") == "channels_last") == (chosen, chosen)
    benchmark.fast_channels_last = False  # type: ignore[misc]
    assert run._wants_channels_last() is bool(asked)
