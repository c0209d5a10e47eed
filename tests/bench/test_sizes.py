"""The sizes of batches, which are read behind the clock from a random part of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from bench.small import Small, warmed
from cotenant.bench import Run, flag, sizes
from cotenant.bench.sizes import FEW, chosen, filled, smaller
from cotenant.findings.rules import findings_of
from results.made import a_part, a_record


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ([64, 64, 64], [33] * 5, True),
        ([64, 64, 64], [33, 35, 34, 36], True),
        ([64, 64, 64], [61, 61, 61], False),
        # Batches sorted by length, shuffled ones, and one batch that comes near.
        ([64, 64, 64], [56, 48, 40, 32], False),
        ([40, 64, 20], [33, 35, 34], False),
        ([64, 64, 64], [33, 33, 33, 64], False),
        ([64, 64, 64], [33] * (FEW - 1), False),
        ([0, 0], [0, 0, 0], False),
        ([], [1, 1, 1], False),
    ],
)
def test_batches_are_smaller_where_none_comes_near(before: list[float], after: list[float], found: bool) -> None:
    assert bool(smaller(before, after, "words")) == found


def test_what_a_batch_is_filled_with() -> None:
    assert filled((torch.zeros(2), torch.tensor([[0, 1, 2], [3, 0, 0]]))) == 3
    assert filled(torch.ones(8, 4).t()) == 32, "what does not lie in one piece is taken for full"
    assert (filled(None), filled(torch.ones(0))) == (0, 0)
    half = torch.zeros(3 * sizes.LOOKED_AT)
    half[: len(half) // 3] = 1
    assert filled(half) == pytest.approx(sizes.LOOKED_AT, rel=0.01)


def test_the_batches_to_examine_are_drawn_anew() -> None:
    assert [len(chosen(number, 1)) for number in (1, 9, 10, 35)] == [1, 1, 1, 3]
    assert len(chosen(35, sizes.MOST_HELD_BYTES + 1)) == 1
    assert len(chosen(1000, sizes.MOST_HELD_BYTES // 4)) == 4, "together they are no larger"
    assert len(chosen(10, 0)) == 1
    assert len({tuple(chosen(100, 1)) for _ in range(9)}) > 1


def test_batches_are_looked_at_and_let_go_behind_the_clock() -> None:
    class Growing(Small):
        def batches(self, run: Run) -> Iterator[torch.Tensor]:
            return (torch.ones(rows, 3) for rows in range(1, 999))

        def items(self, batch: torch.Tensor) -> float:
            return 1.0

    loop, _ = warmed(Growing(skip=0))
    seen = [loop.observe(20) for _ in range(3)]
    assert [observation.held for observation in seen] == [[], [], []]
    told = loop.audited()["size_per_item"]
    assert (told["warm_up"], told["batches"]) == (2 * 3, 6)
    assert 3 * 4 <= told["observed"] <= 3 * 63


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


def test_counted_padding_is_an_error_and_padded_rows_warn() -> None:
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
