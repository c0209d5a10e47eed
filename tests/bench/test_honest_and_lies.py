"""In the real loop, honest but unusual programs pass, and each lie is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from bench.small import record_of, warmed
from cotenant.bench import loop
from tenants.honest import KINDS, Plain
from tenants.lies import LIES

TIMES = 20
FOUND: dict[str, tuple[str, str]] = {
    "SkipsSteps": ("credited", "change"),
    "SkipsWeights": ("credited", "change in 17 % of the weights that it trained, not 100 %"),
    "LosesWeights": ("credited", "change in 17 % of the weights that it trained, not 100 %"),
    "Timed": ("credited", "operations, not"),
    "Quarter": ("credited", "operations, not"),
    "FirstStepAlone": ("credited", "operations, not"),
    "HalfTheWords": ("credited", "batches of 33 numbers for an item, not 64"),
    "PaddedLater": ("padding_counted", "1024 items, and its batch holds 528 words"),
    "PaddedRows": ("credited", "batches of 33 words for an item, not 64"),
    "SilentPadding": ("credited", "batches of 33 numbers for an item, not 64"),
    "BeginsLate": ("untimed", "no clock has seen it"),
}
"""The rule that finds each lie, and a part of its sentence."""


pytestmark = pytest.mark.usefixtures("one_thread")  # Several threads that wait for each other take seconds.


def errors_of(kind: type[Plain], folder: Path, words: str = "") -> dict[str, str]:
    """Run a benchmark alone; return the sentences of its record's errors by their rules."""
    record = record_of(kind, folder, words)
    assert record["outcome"] == "completed"
    return {one["rule"]: one["sentence"] for one in record["findings"] if one["severity"] == "error"}


@pytest.mark.usefixtures("own_clock")
@pytest.mark.parametrize("kind", KINDS)
def test_an_honest_program_passes(kind: str, tmp_path: Path) -> None:
    assert errors_of(KINDS[kind], tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_honest_program_passes_every_time(kind: str, tmp_path: Path) -> None:
    found = [errors_of(KINDS[kind], tmp_path, f"--seed {seed} --number 30") for seed in range(TIMES)]
    assert found == [{}] * TIMES


@pytest.mark.usefixtures("own_clock")
@pytest.mark.parametrize("times", [1, pytest.param(TIMES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", LIES)
def test_a_lie_is_found(kind: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (rule, words), observe = FOUND[kind], loop.observe
    for seed in range(times):
        monkeypatch.setattr(loop, "observe", observe)  # One of the lies replaces it.
        found = errors_of(LIES[kind], tmp_path, f"--seed {seed}")
        assert rule in found
        # Other seeds may have other numbers in the sentence.
        assert seed or words in found[rule]


def losses_of(kind: type[Plain], audits: int) -> list[Any]:
    """Return the losses of four observations, with an audit after each if `audits` is 1."""
    loop, _ = warmed(kind())
    losses: list[Any] = []
    for number in range(4):
        losses += [loss.item() for loss in loop.observe(11).losses]
        if audits:
            loop.audit(number + 1)
    assert len(loop.auditor.after) == (4 if audits else 0)
    assert all(torch.isfinite(torch.tensor(losses)))
    return losses


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_has_the_same_losses_wherever_audits_came(kind: str) -> None:
    assert losses_of(KINDS[kind], audits=1) == losses_of(KINDS[kind], audits=0)
