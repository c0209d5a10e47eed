"""The audit step finds work that is credited and no longer done, and finds no fault with honest work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from bench.small import Small, warmed
from cotenant.bench import Benchmark, Run, flag, saved
from cotenant.bench.alone import Alone
from cotenant.bench.audit import MOST_STEPS, Expected, Step
from cotenant.bench.world import World
from cotenant.findings.rules import findings_of
from cotenant.protocol.messages import STEPS_AN_AUDIT
from results.made import a_part, a_record
from tenants.frauds import Fraud

FRAUDS: dict[str, list[str]] = {
    "none": [],
    "doubles": [],
    "quarter": ["operations, not"],
    "smaller": ["operations, not", "no change of the weights that it trained before"],
    "forward": ["operations, not", "0 updates of weights, not 1"],
    "casts": ["products in bf16, not fp32", "weights in bf16, not fp32"],
    "repeats": ["operations, not", "no change of the weights", "a loss that was not computed in it"],
    "rests": ["no change of the weights"],
}
"""Parts of the differences that an audit step of each fraud reports, in order."""


def audited(benchmark: Benchmark, observations: int = 2) -> dict[str, Any]:
    """Return a record's part on the audit, of a run with one observation before the audit and others after it."""
    loop, _ = warmed(benchmark)
    loop.observe(3)
    loop.audit(0)
    loop.audit(1)
    loop.audit(1)
    for _ in range(observations - 1):
        loop.observe(3)
    return loop.audited()


@pytest.mark.parametrize("fraud", FRAUDS)
def test_what_is_no_longer_done_is_found(fraud: str) -> None:
    seen = audited(Fraud(fraud=fraud, cuda=False))
    differences = seen["audit"].pop("differences")
    assert [words for words, part in zip(differences, FRAUDS[fraud], strict=True) if part not in words] == []
    assert (seen["rows"], seen["items_per_row"]) == (32, 2.0 if fraud == "doubles" else 1.0)
    (cost_ns,) = seen["audit"].pop("cost_ns")
    assert cost_ns > 0
    watched = seen["audit"].pop("watched")
    assert watched == (STEPS_AN_AUDIT if fraud in ("none", "doubles") else MOST_STEPS)
    even = fraud in ("none", "doubles", "casts", "rests")
    assert seen["audit"] == {"steps": 1, "after": [1], "eager": False, "even": even, "uneven": False}


class Shrinking(Small):
    """Reads batches with fewer rows after the warm-up, and counts more items for them."""

    def batches(self, run: Run) -> Any:
        return (torch.randn(4, 3) if number < 4 else torch.randn(1, 3) for number in range(99))

    def items(self, batch: Any) -> float:
        self.asked = getattr(self, "asked", 0) + 1
        return 4.0 if self.asked < 6 else 8.0


def test_smaller_batches_and_other_items_are_found() -> None:
    found = audited(Shrinking(), observations=6)["audit"]["differences"]
    assert found == ["8 items, not 4", "batches of 0.375 numbers for an item, not 3"]


def test_an_observation_waits_for_every_batch_that_it_is_credited_with_also_after_an_audit() -> None:
    class Fetched(Small):
        """`fetched` counts the batches that the loop has fetched."""

        fetched = 0

        def batches(self, run: Run) -> Iterator[torch.Tensor]:
            while True:
                self.fetched += 1
                yield torch.randn(4, 3)

    loop, _ = warmed(benchmark := Fetched())
    for number in range(2):
        before = benchmark.fetched
        loop.observe(3)
        assert benchmark.fetched - before == 3
        loop.audit(number + 1)
        assert benchmark.fetched - before == 3, "what an audit fetches ahead is free for the next observation"


FIRST = Step(flops=1000, dtype="fp32", weights=("fp32",), updates=1, items=4.0, made=True)


def unlike(*steps: Step, **expected: Any) -> list[str]:
    return Expected(FIRST, **expected).unlike(steps)


def doing(*flops: int) -> list[Step]:
    return [replace(FIRST, flops=each) for each in flops]


def test_steps_may_do_more_and_what_nobody_knows_is_no_difference() -> None:
    assert unlike(replace(FIRST, flops=991)) == []
    assert unlike(replace(FIRST, flops=9000, updates=2)) == []
    assert unlike(replace(FIRST, items=5.0)) == ["5 items, not 4"]
    assert unlike(replace(FIRST, items=5.0), uneven=True) == []
    assert unlike(replace(FIRST, flops=0)) == ["no operations"]
    assert unlike(replace(FIRST, flops=None)) == []
    assert unlike(replace(FIRST, flops=989), uneven=True) == ["989 operations, not 1000"]
    other = Step(flops=7, dtype="bf16", updates=3, moved=0, made=False, items=1.0)
    assert Expected(uneven=True).unlike([other]) == []


def test_work_that_comes_back_or_that_lies_among_what_differs_is_honest() -> None:
    # Every fourth step does all the work; steps leave out parts at random; no step does as much as the first one.
    assert unlike(*doing(300, 300, 300, 1000)) == []
    assert unlike(*doing(500, 700, 900)) == []
    assert unlike(*doing(300, 300, 300, 300)) == ["300 operations, not 1000"]
    assert unlike(*doing(790, 800, 780)) == ["800 operations, not 1000"]
    # The warm-up's audit steps (`reference`): one did as little; none did; all did, and only the first step did more.
    assert unlike(*doing(300, 300), reference=tuple(doing(300, 1000))) == []
    assert unlike(*doing(300, 300), reference=tuple(doing(1000, 1000))) == ["300 operations, not 1000"]
    assert unlike(*doing(300, 300), reference=tuple(doing(300, 300))) == ["300 operations, not 1000"]


def test_movement_is_that_of_the_warm_up_on_the_mean() -> None:
    def moving(*parts: float | None) -> list[Step]:
        return [replace(FIRST, moved=part) for part in parts]

    assert unlike(*moving(1, 1), moved=1) == []
    assert unlike(*moving(None, None), moved=1) == []
    assert unlike(*moving(0, 0, 1, 0), moved=1) == ["change in 25 % of the weights that it trained, not 100 %"]
    assert unlike(*moving(0.125, 0.125), moved=1) == ["change in 12 % of the weights that it trained, not 100 %"]
    assert unlike(*moving(0, 0, 1, 0), moved=0.5) == []
    assert unlike(*moving(0, 0), moved=0.5) == ["no change of the weights that it trained before"]
    assert unlike(*moving(0, 0), moved=None) == []
    assert unlike(replace(FIRST, trained=False), moved=1) == ["no change of the weights that it trained before"]


def test_a_rank_that_hears_late_makes_the_audit_of_the_others_and_none_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, _ = warmed(Small())
    loop.observe(2)
    with monkeypatch.context() as others:
        others.setattr(World, "any_says", lambda *asked: True)
        loop.audit(0)
    assert loop.auditor.differences == ["other work on another rank"]
    loop.audit(1)
    assert loop.load_until(lambda: True, lambda: 1) > 0
    assert loop.auditor.after == [1]
    loop.load_until(lambda: True, lambda: 3)
    assert loop.auditor.after == [1, 1, 1]


def test_of_a_run_alone_every_rank_makes_equally_many_audits_also_behind_its_last_observation() -> None:
    """A rank with one more audit than the others would wait for them."""
    for rank in (0, 1):
        alone = Alone("small", World(rank=rank, size=2))
        alone.ready(30, 8, 0, [])
        alone.await_go()
        for index in range(8):
            alone.observation(index=index)
        assert alone.audits() == 3


class Coupled(torch.optim.Adam):
    """An optimizer of a program's own, in which a weight's step may depend on other weights."""


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW, Coupled])
def test_weights_that_are_not_looked_at_stand_still_in_an_audit_where_they_can(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "MOST_BYTES", 10)  # Of the layer's two weights, only the bias is so small.

    class Stepping(Small):
        def build(self, run: Run) -> None:
            self.model = run.place(torch.nn.Linear(3, 2))
            self.optimizer = kind(self.model.parameters(), lr=0.1)

    loop, _ = warmed(benchmark := Stepping())
    before, changed = [weight.detach().clone() for weight in benchmark.model.parameters()], []
    state = {key: value.clone() for key, value in flat(benchmark.optimizer).items()}

    def seen(*_: Any) -> None:
        changed.extend(not torch.equal(*pair) for pair in zip(before, benchmark.model.parameters(), strict=True))

    benchmark.optimizer.register_step_post_hook(seen)
    loop.audit(1)
    assert changed == STEPS_AN_AUDIT * [kind is Coupled, True]
    assert loop.auditor.differences == []
    torch.testing.assert_close(list(benchmark.model.parameters()), before, rtol=0, atol=0)
    torch.testing.assert_close(flat(benchmark.optimizer), state, rtol=0, atol=0)
    assert "step" not in vars(benchmark.optimizer)


def flat(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Return the tensors of an optimizer's state."""
    return {
        f"{index} {name}": value
        for index, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
        if isinstance(value, torch.Tensor)
    }


def test_weights_that_have_learned_all_need_not_move() -> None:
    class Learned(Small):
        def step(self, run: Run, batch: Any) -> Any:
            loss = self.model(batch).square().mean()
            self.steps = getattr(self, "steps", 0) + 1
            run.update(loss if self.steps <= 3 else loss * 0.0, self.optimizer)
            return loss

    assert audited(Learned())["audit"]["differences"] == []


def test_gradients_that_are_cleared_behind_each_step_give_an_audit_nothing_to_compare_with() -> None:
    class Clears(Small):
        acts = True

        def step(self, run: Run, batch: Any) -> torch.Tensor | None:
            loss = self.model(batch).square().mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            return loss

    loop, _ = warmed(Clears())
    loop.observe(3)
    loop.load_until(lambda: True, lambda: 1)
    assert loop.audited()["audit"]["differences"] == []


# ---- words, and the padding of rows up to the longest sentence of a batch


class Sentences(Small):
    """Reads four sentences of 5, 3, 2 and 2 words; `count` says whether words, places or rows are its items."""

    item = "token"
    padding = 0
    count: str = flag("words", help="words, places or rows")

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        words = [torch.arange(1, length + 1) for length in (5, 3, 2, 2)]
        return run.resident(torch.nn.utils.rnn.pad_sequence(words, batch_first=True))

    def items(self, batch: torch.Tensor) -> float:
        return {"words": 12, "places": batch.numel(), "rows": len(batch)}[self.count]

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        return super().step(run, batch[:, :3].float())  # type: ignore[return-value]


class Rows(Sentences):
    items = Small.items


def test_padding_that_is_counted_is_an_error_and_padded_rows_a_warning() -> None:
    for cls, count, found in [
        (Sentences, "words", []),
        (Sentences, "rows", []),
        (Sentences, "places", [("error", "A step counts 20 items, and its batch holds 12 words that are no padding.")]),
        (Rows, "", [("warning", "40.0 % of the words of a batch are padding: its tokens are shorter than they look.")]),
    ]:
        loop, _ = warmed(benchmark := cls(count=count))
        seen = loop.audited() | {"item_is_row": benchmark.item_is_row}
        record = a_record(told={"part": a_part(item="token", observed=seen)})
        rules = [finding for finding in findings_of(record) if finding.rule == "padding_counted"]
        assert [(finding.severity, finding.sentence) for finding in rules] == found, (cls, count)
