"""Audits watch steps of the training, change nothing of it, and find honest mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from bench.small import Small, record_of, warmed
from cotenant.bench import Run, flag
from cotenant.bench.auditor import borders
from cotenant.bench.loop import Loop
from tenants.mistakes import Mistaken

MISTAKES = {
    "none": {},
    "cast": {"precision": "Asked for bf16, but the heaviest products of a step ran in fp32."},
    "casts": {"credited": "A step between observations did other work than the warm-up: products in fp32, not bf16."},
    "skips": {"credited": "180 updates of weights were credited, as many per batch as in the warm-up, and "},
    "halves": {"credited": "A step between observations did other work than the warm-up: batches of 64 numbers"},
    "zeros": {"benchmark:constant_input": ""},
}
"""The errors of each mistake, and how their sentences begin."""


@pytest.mark.usefixtures("one_thread", "own_clock")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_an_error(mistake: str, tmp_path: Path) -> None:
    record = record_of(Mistaken, tmp_path, f"--no-cuda --precision bf16 --repeat 9 --number 20 --mistake {mistake}")
    errors = {one["rule"]: one["sentence"] for one in record["findings"] if one["severity"] == "error"}
    assert errors.keys() == MISTAKES[mistake].keys()
    assert all(errors[rule].startswith(begin) for rule, begin in MISTAKES[mistake].items()), errors
    audit = record["observed"]["audit"]
    assert (audit["steps"], audit["after"], len(audit["cost_ns"])) == (3, [3, 6, 9], 3)


PERIOD = 63
"""Of 9 observations of 20 batches the first audit falls on a step of this period."""


class Honest(Small):
    """Does at its first step, and in all of this period, `more` than training, as others do every 50th step."""

    batch_size: int = 32
    more: str = flag("validates", "--more", help="which")

    def build(self, run: Run) -> None:
        self.model = run.place(nn.Linear(3, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.steps = -1

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        if self.steps == 0 or (self.steps % PERIOD == 0 and self.more != "initialises"):
            self.extra(run, batch)
        loss = self.model(batch).square().mean()
        run.update(loss, self.optimizer)
        return loss

    def extra(self, run: Run, batch: torch.Tensor) -> None:
        with torch.no_grad(), torch.autocast(run.device.type, enabled=False):
            if self.more == "validates":
                self.model(torch.randn(1000, 3))
            elif self.more == "initialises":
                self.model.weight.copy_(torch.linalg.qr(torch.randn(1000, 3).T @ torch.randn(1000, 3))[0][:2])
            else:  # as Shampoo's roots
                root = torch.eye(64, dtype=torch.float64)
                for _ in range(10):
                    root = root @ root


@pytest.mark.usefixtures("one_thread", "own_clock")
@pytest.mark.parametrize("more", ["validates", "initialises", "roots"])
def test_more_work_now_and_then_is_honest(more: str, tmp_path: Path) -> None:
    words = f"--no-cuda --precision bf16 --repeat 9 --number 20 --more {more}"
    record = record_of(Honest, tmp_path, words)
    assert [one for one in record["findings"] if one["severity"] == "error"] == []
    observed = record["observed"]
    assert (observed["dtype"], observed["audit"]["differences"]) == ("bf16", [])
    assert observed["audit"]["even"] == (more == "initialises")


def test_audit_borders_follow_from_the_amount_of_batches() -> None:
    for number, repeat, wanted in ((1, 1, []), (5, 4, []), (10, 4, [2]), (250, 2, [1]), (30, 21, [7, 14])):
        assert borders(number, repeat) == wanted


class Dropping(Small):
    """Draws a random number in every step, and a batch of its own."""

    def build(self, run: Run) -> None:
        self.model = run.place(nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2)))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)

    def batches(self, run: Run) -> Any:
        return (torch.randn(self.batch_size, 3) for _ in iter(int, 1))


def test_a_watched_step_trains_and_draws_as_any_other() -> None:
    def losses(between: str) -> list[float]:
        loop, _ = warmed(Dropping(seed=5))
        found = list[float]()
        for _ in range(3):
            found += [float(loss) for loss in loop.observe(2).losses]
            getattr(loop, between)()
        return found

    assert losses("audit") == losses("rehearse")


def test_steps_of_unequal_work_are_credited_no_operations() -> None:
    class Grows(Small):
        steps = 0

        def step(self, run: Run, batch: Any) -> Any:
            self.steps += 1
            return super().step(run, batch if self.steps <= 3 else torch.cat([batch, batch]))

    loop, run = warmed(Grows())
    loop.observe(2)
    loop.audit()
    told = loop.audited()["audit"]
    assert (told["even"], told["differences"], loop.auditor.operations()["flops_per_step"]) == (False, [], None)
    run.uneven = True
    assert loop.audited()["audit"]["uneven"]


def test_steps_that_are_said_to_differ_owe_no_updates() -> None:
    class Differs(Small):
        def build(self, run: Run) -> None:
            super().build(run)
            run.uneven = True

    for kind, promised in ((Small, 2), (Differs, None)):
        loop, _ = warmed(kind())
        loop.observe(2)
        assert loop.promised == promised
        assert isinstance(loop, Loop)
